// Questions that are put before what wants to know is there: while the page's scripts are on their way, so are the answers.

/** How the page asks. The browser's cookie says who it is; the header, that it is this page. */
export const HOW = { cache: 'no-store', credentials: 'same-origin', redirect: 'error', headers: { accept: 'application/json', 'x-kiso-page': '1' } };

/** Milliseconds after which an answer that nobody has taken is too old. Long: a slow machine takes its time for the scripts, and what has changed meanwhile comes with the events. */
const FRESH = 60_000;

/** Address -> the answer that is on its way, and when it was asked for. */
const under = new Map();

/** An answer with its text: one that is not read keeps a connection. */
export async function ask(address, how) {
  const answer = await fetch(address, how);
  return [answer, await answer.text()];
}

export function askAhead(address) {
  const answer = ask(address, HOW);
  // Whoever takes it hears of it.
  answer.catch(() => {});
  under.set(address, { answer, at: performance.now() });
}

/** The answer that was asked for ahead, for the first who wants it; undefined where there is none. */
export function answered(address) {
  const one = under.get(address);
  under.delete(address);
  return one && performance.now() - one.at < FRESH ? one.answer : undefined;
}

const given = document.getElementById('me')?.textContent;

/**
 * Who is logged in, as the document says it, with the browser's time when it came; null where it does not say. Once: what it
 * says is true of the moment in which it was sent.
 */
export const whoCame = given ? { who: JSON.parse(given), at_ms: performance.timeOrigin + (performance.getEntriesByType('navigation')[0]?.responseStart ?? 0) } : null;
