// Requests that are sent ahead, so that their responses arrive while the page's scripts are loading.

/** Options of the page's requests. The browser's cookie identifies the user; the header identifies this page. */
export const HOW = { cache: 'no-store', credentials: 'same-origin', redirect: 'error', headers: { accept: 'application/json', 'x-kiso-page': '1' } };

/**
 * Milliseconds after which an unused response is too old. The value is large because slow machines need time to load the scripts,
 * and later changes arrive as events.
 */
const FRESH = 60_000;

/** Address -> the pending response, and the time of the request. */
const under = new Map();

/** Returns a response with its text. An unread response would occupy a connection. */
export async function ask(address, how) {
  const answer = await fetch(address, how);
  return [answer, await answer.text()];
}

export function askAhead(address) {
  const answer = ask(address, HOW);
  // Whoever uses the response handles its error.
  answer.catch(() => {});
  under.set(address, { answer, at: performance.now() });
}

/** Returns the response that was requested ahead, to the first caller; undefined if there is none. */
export function answered(address) {
  const one = under.get(address);
  under.delete(address);
  return one && performance.now() - one.at < FRESH ? one.answer : undefined;
}

const given = document.getElementById('me')?.textContent;

/**
 * The logged-in user as embedded in the document, with the browser's time when the document arrived; null if it is not embedded.
 * Used once, because it is valid only for the time when the document was sent.
 */
export const whoCame = given ? { who: JSON.parse(given), at_ms: performance.timeOrigin + (performance.getEntriesByType('navigation')[0]?.responseStart ?? 0) } : null;
