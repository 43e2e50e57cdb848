// Messages on their way to the daemon. Each has a key, by which it is done once however often it is sent, and stands in the
// browser's storage until the daemon has it: neither a lost connection nor a reload loses one.

import { store } from './preact.js';
import { freshKey, post } from './api.js';
import { connection } from './events.js';

/** Milliseconds before a message is sent again: first and at most. */
const FIRST_WAIT = 1_000;
const LONGEST_WAIT = 10_000;

/** Answers of a daemon that is away, ends or begins, and of what may stand in front of it. */
const AWAY = [0, 502, 503, 504];

const place = (session, key = '') => `kiso.unsent/${session}/${key}`;

/**
 * What is not sent yet in a session: `list` is a store of `{key, text, at_ms, state, error, id}`, in order. `state` is
 * "sending", "waiting" (for the daemon), "refused" (with `error`) or "sent" (with the `id` that the daemon gave).
 * `onSent(one)` hears of each that was taken, `onAnswer(one, text)` of a command's answer.
 */
export function unsent(session, { onSent, onAnswer }) {
  const list = store(kept(session));
  let under = false;
  let ended = false;
  let wake = null;

  const change = (key, what) => list.set((all) => all.map((one) => (one.key === key ? { ...one, ...what } : one)));

  function send(text) {
    const one = { key: freshKey(), text, at_ms: Date.now(), state: 'sending' };
    keep(session, one);
    list.set((all) => [...all, one]);
    pump();
  }

  function again(key) {
    change(key, { state: 'sending', error: null });
    pump();
  }

  function remove(key) {
    localStorage.removeItem(place(session, key));
    list.set((all) => all.filter((one) => one.key !== key));
  }

  /** One after the other, so that they arrive in the order in which they were written. */
  async function pump() {
    if (under) return;
    under = true;
    let wait = FIRST_WAIT;
    for (;;) {
      const one = list.get().find(({ state }) => state === 'sending' || state === 'waiting');
      if (!one || ended) break;
      try {
        const told = await post('/msg', { session, text: one.text, key: one.key });
        wait = FIRST_WAIT;
        localStorage.removeItem(place(session, one.key));
        if (told?.message === undefined) {
          remove(one.key);
          onAnswer(one, told?.answer ?? '');
        } else {
          change(one.key, { state: 'sent', id: told.message });
          onSent({ ...one, id: told.message });
        }
      } catch (error) {
        // Who logs in again finds it in the storage.
        if (error.status === 401) break;
        if (AWAY.includes(error.status)) {
          list.set((all) => all.map((other) => (other.state === 'sending' ? { ...other, state: 'waiting' } : other)));
          await pause(wait);
          wait = Math.min(wait * 2, LONGEST_WAIT);
        } else {
          change(one.key, { state: 'refused', error });
        }
      }
    }
    under = false;
  }

  function pause(ms) {
    return new Promise((done) => {
      const timer = setTimeout(done, ms);
      wake = () => {
        clearTimeout(timer);
        done();
      };
    });
  }

  const unwatch = connection.watch(({ state }) => state === 'open' && wake?.());
  return {
    list, send, again, remove,
    begin: pump,
    end() {
      ended = true;
      unwatch();
      wake?.();
    },
  };
}

function keep(session, { key, text, at_ms }) {
  try {
    localStorage.setItem(place(session, key), JSON.stringify({ text, at_ms }));
  } catch {
    // Too large for the storage: it lives as long as the page does.
  }
}

function kept(session) {
  const found = [];
  for (let index = 0; index < localStorage.length; index += 1) {
    const name = localStorage.key(index);
    if (!name.startsWith(place(session))) continue;
    try {
      found.push({ key: name.slice(place(session).length), state: 'sending', ...JSON.parse(localStorage.getItem(name)) });
    } catch {
      // Not of this page's making.
    }
  }
  return found.sort((one, other) => one.at_ms - other.at_ms);
}
