// Messages that are being sent to the daemon. Each has a key, so that it is processed once however often it is sent, and stays in
// the browser's storage until the daemon has it. So no message is lost by a lost connection, a reload, or a change of the
// session.

import { store } from './preact.js';
import { ApiError, freshKey, me, request } from './api.js';
import { UNSENT } from './drafts.js';
import { connection } from './events.js';

/** Milliseconds before a message is sent again: initial and maximum value. */
const FIRST_WAIT = 1_000;
const LONGEST_WAIT = 10_000;

/** Status codes of a daemon that is unreachable, stopping or starting, and of a proxy in front of it. */
const AWAY = [0, 502, 503, 504];

/** Time limit in milliseconds for the response to a message, which is then sent again. */
const PATIENCE = 60_000;

const place = (session, key = '') => `${UNSENT}${session}/${key}`;

/** Session -> its outbox, for the lifetime of the page. */
const outboxes = new Map();

/**
 * The unsent messages of a session: `list` is a store of `{key, text, at_ms, state, error, id}`, in order. `state` is "sending",
 * "waiting" (for the daemon), "refused" (with `error`) or "sent" (with the `id` from the daemon).
 */
export function unsent(session) {
  if (!outboxes.has(session)) outboxes.set(session, outbox(session));
  return outboxes.get(session);
}

function outbox(session) {
  const list = store(kept(session));
  let under = false;
  let wake = null;
  /** The view of the session: `onSent(one)` is called for each accepted message, `onAnswer(one, text)` for a command's answer. */
  let watcher = null;

  const change = (key, what) => list.set((all) => all.map((one) => (one.key === key ? { ...one, ...what } : one)));

  function send(text) {
    const one = { key: freshKey(), text, at_ms: Date.now(), state: 'sending' };
    keep(session, one);
    list.set((all) => [...all, one]);
    pump();
  }

  function again(key) {
    change(key, { state: 'sending', error: null });
    keep(session, list.get().find((one) => one.key === key));
    pump();
  }

  function remove(key) {
    localStorage.removeItem(place(session, key));
    list.set((all) => all.filter((one) => one.key !== key));
  }

  /** Sends one message after the other, so that they arrive in order. */
  async function pump() {
    if (under) return;
    under = true;
    let wait = FIRST_WAIT;
    const by = me.get()?.name;
    // A message of one user is not sent in the name of another.
    while (me.get() && me.get().name === by) {
      const one = list.get().find(({ state }) => state === 'sending' || state === 'waiting');
      if (!one) break;
      try {
        // The field is emptied after its text was accepted; this lets that happen first.
        await null;
        const isLast = list.get().findLast(({ state }) => state === 'sending' || state === 'waiting')?.key === one.key;
        const body = { session, text: one.text, key: one.key, flush: isLast && !isWriting() };
        const told = await request('POST', '/msg', { body, signal: AbortSignal.timeout(PATIENCE) });
        if (told?.message === undefined && told?.answer === undefined) {
          throw new ApiError(502, { code: 'away', message: 'the answer is not from kiso' });
        }
        wait = FIRST_WAIT;
        taken(one, told);
      } catch (error) {
        if (error.name === 'TimeoutError' || AWAY.includes(error.status)) {
          list.set((all) => all.map((other) => (other.state === 'sending' ? { ...other, state: 'waiting' } : other)));
          await pause(wait);
          wait = Math.min(wait * 2, LONGEST_WAIT);
        } else if (error.status !== 401) {
          const { code, message, hint } = error;
          change(one.key, { state: 'refused', error: { code, message, hint } });
          keep(session, { ...one, refused: { code, message, hint } });
        }
      }
    }
    under = false;
  }

  function taken(one, { message, answer = '' }) {
    localStorage.removeItem(place(session, one.key));
    if (message === undefined || !watcher) {
      remove(one.key);
      if (message === undefined) watcher?.onAnswer(one, answer);
    } else {
      change(one.key, { state: 'sent', id: message });
      watcher.onSent({ ...one, id: message });
    }
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

  connection.watch(({ state }) => state === 'open' && wake?.());
  return {
    list, send, again, remove, pump,
    /** Returns a function that ends it. */
    watch(by) {
      watcher = by;
      return () => {
        if (watcher !== by) return;
        watcher = null;
        // A new view finds them among the session's messages.
        list.set((all) => all.filter((one) => one.state !== 'sent'));
      };
    },
  };
}

const isWriting = () => Boolean(document.querySelector('.composer textarea')?.value.trim());

function keep(session, { key, text, at_ms, refused }) {
  try {
    localStorage.setItem(place(session, key), JSON.stringify({ text, at_ms, refused, by: me.get()?.name ?? null }));
  } catch {
    // Too large for the storage: the message lives as long as the page.
  }
}

/** Returns the stored messages of this session, or of all; messages of another user are not sent. */
function kept(session) {
  const found = [];
  for (let index = 0; index < localStorage.length; index += 1) {
    const name = localStorage.key(index);
    if (!name.startsWith(session === undefined ? UNSENT : place(session))) continue;
    const [of, key] = name.slice(UNSENT.length).split('/');
    try {
      const { text, at_ms, by, refused } = JSON.parse(localStorage.getItem(name));
      // A refused message waits for its author.
      const state = refused ? 'refused' : 'sending';
      if (by === (me.get()?.name ?? null)) found.push({ of, key, text, at_ms, state, error: refused });
    } catch {
      // Not an entry of this page.
    }
  }
  return found.sort((one, other) => one.at_ms - other.at_ms);
}

let named;

me.watch((who) => {
  if (!who) return;
  if (named !== undefined && named !== who.name) outboxes.clear();
  named = who.name;
  for (const { of } of kept()) unsent(of);
  for (const one of outboxes.values()) one.pump();
});
