// Drafts and sent messages of the user: both survive a reload, and both are deleted by a logout.

import { me } from './api.js';

const DRAFT = 'kiso.draft.';
const SENT = 'kiso.sent.';

/** Storage prefix of messages that are being sent (`lib/unsent.js`). */
export const UNSENT = 'kiso.unsent/';

/** Storage prefix of a draft's files (`lib/uploads.js`). */
export const FILES = 'kiso.files.';

/** Maximum number of sent messages that are stored for a session, and their total characters. */
const MOST_SENT = 100;
const MOST_SENT_CHARACTERS = 50_000;

/** Milliseconds without a key press before a draft is stored. */
const REST = 250;

/** Maximum length in characters of a stored draft: the browser's storage has 5 MB for everything. */
const LONGEST_DRAFT = 500_000;

/** Words that indicate a secret, and words that may be one: long, with letters and digits. */
const TELLING = /passw|passphrase|secret|api[-_ ]?key|private key|bearer |\btoken\b/i;
const LONG_WORD = /[\w+=~.:-]{24,}/g;

/** Returns whether a text may contain a secret, so that it should not be stored longer than necessary. */
export const looksSecret = (text) => TELLING.test(text) || (text.match(LONG_WORD) ?? []).some((word) => /[a-z]/i.test(word) && /\d/.test(word));

// Without storage, or if it is full, the draft is not stored; writing must still work.
function keep(place, key, value) {
  try {
    if (value) place.setItem(key, value);
    else place.removeItem(key);
  } catch {
    place.removeItem(key);
  }
}

/** Open drafts of this tab, by key. */
const open = new Map();

/**
 * The draft of a session, stored for all tabs (`localStorage`) and for this one (`sessionStorage`), so that two tabs that write
 * at once each keep their own text. Text that looks like a secret is stored only for this tab. `current()` returns the text in
 * the field; `adopt(text)` is called when another tab has changed the draft, if the field contains the previous common text.
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
  // This tab keeps its own text; text that it got from other tabs changes with them.
  if (sessionStorage.getItem(key) === before) keep(sessionStorage, key, after);
  open.get(key)?.heard(before, after);
});

// The last chance to store the draft of a tab that is closed, or suspended on a phone.
window.addEventListener('pagehide', () => open.forEach((draft) => draft.flush()));
document.addEventListener('visibilitychange', () => open.forEach((draft) => draft.flush()));

/** Returns the messages sent in this session, latest first. */
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

/** Deletes the stored texts of a deleted session. */
export function forgetSession(session) {
  for (const key of [DRAFT + session, SENT + session, FILES + session]) {
    localStorage.removeItem(key);
    sessionStorage.removeItem(key);
  }
  for (const key of Object.keys(localStorage)) if (key.startsWith(`${UNSENT}${session}/`)) localStorage.removeItem(key);
}
