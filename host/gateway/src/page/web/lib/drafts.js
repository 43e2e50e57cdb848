// What was written and not sent yet, and what was sent before: both survive a reload, and both are gone after a log-out.

import { me } from './api.js';

const DRAFT = 'kiso.draft.';
const SENT = 'kiso.sent.';

/** Messages on their way (`lib/unsent.js`). */
export const UNSENT = 'kiso.unsent/';

/** Files that belong to a draft (`lib/uploads.js`). */
export const FILES = 'kiso.files.';

/** Sent messages that are kept for a session, and their characters. */
const MOST_SENT = 100;
const MOST_SENT_CHARACTERS = 50_000;

/** Milliseconds without a key before a draft is written down. */
const REST = 250;

/** Characters of a draft that are kept: the browser's store has 5 MB for everything. */
const LONGEST_DRAFT = 500_000;

/** Words that tell of a secret, and those that may be one: long, of letters and digits. */
const TELLING = /passw|passphrase|secret|api[-_ ]?key|private key|bearer |\btoken\b/i;
const LONG_WORD = /[\w+=~.:-]{24,}/g;

/** Whether something should not be kept for longer than it is needed. */
export const looksSecret = (text) => TELLING.test(text) || (text.match(LONG_WORD) ?? []).some((word) => /[a-z]/i.test(word) && /\d/.test(word));

// A browser without a store, or with a full one, forgets; writing must go on.
function keep(place, key, value) {
  try {
    if (value) place.setItem(key, value);
    else place.removeItem(key);
  } catch {
    place.removeItem(key);
  }
}

/** Drafts that are open in this tab, by key. */
const open = new Map();

/**
 * The draft of a session, kept for all tabs (`localStorage`), and for this one (`sessionStorage`), so that two tabs that write at
 * once each get back their own. What looks like a secret is kept for this tab alone. `current()` is what stands in the field;
 * `adopt(text)` is called when another tab wrote, if the field has what both had before.
 */
export function openDraft(session, current, adopt) {
  const key = DRAFT + session;
  let [timer, written] = [0, null];
  const flush = () => {
    clearTimeout(timer);
    if (written === null || !me.get()) return;
    const text = written.length > LONGEST_DRAFT ? '' : written;
    written = null;
    keep(sessionStorage, key, text);
    keep(localStorage, key, looksSecret(text) ? '' : text);
  };
  const draft = {
    text: sessionStorage.getItem(key) ?? localStorage.getItem(key) ?? '',
    write(text) {
      written = text;
      clearTimeout(timer);
      timer = setTimeout(flush, REST);
    },
    clear() {
      written = '';
      flush();
    },
    flush,
    heard: (before, after) => written === null && current() === before && adopt(after),
    close() {
      flush();
      open.delete(key);
    },
  };
  open.set(key, draft);
  return draft;
}

window.addEventListener('storage', ({ key, oldValue, newValue }) => {
  if (!key?.startsWith(DRAFT)) return;
  const [before, after] = [oldValue ?? '', newValue ?? ''];
  // What this tab has of its own stays; what it had from the others goes with them.
  if (sessionStorage.getItem(key) === before) keep(sessionStorage, key, after);
  open.get(key)?.heard(before, after);
});

// A tab that is closed, or put to sleep on a phone, gets no other chance.
window.addEventListener('pagehide', () => open.forEach((draft) => draft.flush()));
document.addEventListener('visibilitychange', () => open.forEach((draft) => draft.flush()));

/** What was sent in this session, the last one first. */
export function sentIn(session) {
  try {
    const all = JSON.parse(localStorage.getItem(SENT + session) ?? '[]');
    return Array.isArray(all) ? all.filter((text) => typeof text === 'string') : [];
  } catch {
    return [];
  }
}

export function rememberSent(session, text) {
  if (text.length > MOST_SENT_CHARACTERS || looksSecret(text)) return;
  let room = MOST_SENT_CHARACTERS;
  const all = [text, ...sentIn(session).filter((one) => one !== text)].slice(0, MOST_SENT);
  keep(localStorage, SENT + session, JSON.stringify(all.filter((one) => (room -= one.length) >= 0)));
}

/** Forgets what was written in a session that is no more. */
export function forgetSession(session) {
  for (const key of [DRAFT + session, SENT + session, FILES + session]) {
    localStorage.removeItem(key);
    sessionStorage.removeItem(key);
  }
  for (const key of Object.keys(localStorage)) if (key.startsWith(`${UNSENT}${session}/`)) localStorage.removeItem(key);
}
