// The one stream of what happens. Everything with an id is told exactly once, also across a lost connection and a daemon
// that was started anew.

import { store } from './preact.js';
import { me, whoAmI } from './api.js';

/**
 * `{state: 'connecting' | 'open' | 'lost', since, first}`; `since` is when the connection was lost, in the browser's time. `first`: it was
 * never lost.
 */
export const connection = store({ state: 'connecting', since: Date.now(), first: true });

const KINDS = ['message', 'run', 'event', 'session', 'deleted', 'live', 'gap'];

/** Milliseconds before the stream is opened again: first and at most. */
const FIRST_WAIT = 500;
const LONGEST_WAIT = 10_000;

/** Milliseconds of silence after which a stream is dead: the daemon says that it is alive every 15 seconds. */
const SILENCE = 40_000;

/** Milliseconds after which a tab that nobody sees gives its connection back: a browser has six for all tabs. */
const UNSEEN = 5 * 60_000;

const listeners = new Map(KINDS.map((kind) => [kind, new Set()]));
let stream = null;
let last = null;
let wait = FIRST_WAIT;
let timer = 0;
let unseen = 0;
let silence = 0;

/** A tab that opens its stream asks those that nobody sees for their place; they open theirs again when they are seen. */
const others = new BroadcastChannel('kiso.events');
others.onmessage = () => document.visibilityState === 'hidden' && !stays() && close();

/** Whether a tab that nobody sees goes on listening. */
let stays = () => false;

/** Sets when a tab that nobody sees goes on listening: as long as `wanted()` is true. */
export const stayWhile = (wanted) => { stays = wanted; };

/** Calls `listener(data, id)` for each event of this kind; gives back what ends it. */
export function on(kind, listener) {
  listeners.get(kind).add(listener);
  return () => listeners.get(kind).delete(listener);
}

/**
 * Calls `look` when the stream is open again; gives back what ends it. When it opens for the first time, only if something has
 * `failed()`: what has happened since the page came is told, however late that is.
 */
export function onOpen(look, failed = () => false) {
  return connection.watch(({ state, first }) => state === 'open' && (!first || failed()) && look());
}

/** Opens the stream, and keeps it open until `unfollow`. */
export function follow() {
  unfollow();
  connect();
  document.addEventListener('visibilitychange', visibility);
  window.addEventListener('online', hurry);
  // One that was opened behind others may never be seen.
  visibility();
}

export function unfollow() {
  close();
  document.removeEventListener('visibilitychange', visibility);
  window.removeEventListener('online', hurry);
  clearTimeout(unseen);
}

function connect() {
  others.postMessage(null);
  clearTimeout(timer);
  timer = 0;
  // From what there was before anything was asked for: what happens between an answer and the stream's beginning is told.
  last ??= me.get().last_event_id;
  const opened = new EventSource(`/events?after=${last}`);
  stream = opened;
  opened.onopen = () => {
    wait = FIRST_WAIT;
    connection.set(({ state }) => ({ state: 'open', since: Date.now(), first: state === 'connecting' }));
    hear(opened);
  };
  for (const kind of KINDS) {
    opened.addEventListener(kind, (event) => {
      hear(opened);
      if (event.lastEventId) last = Number(event.lastEventId);
      tell(kind, JSON.parse(event.data), last);
    });
  }
  opened.addEventListener('alive', () => hear(opened));
  opened.addEventListener('shutdown', () => retry(opened));
  opened.addEventListener('unauthorized', () => {
    close();
    // The browser may have logged in anew in another tab; then this one goes on with that.
    whoAmI().then(() => me.get() && !stream && connect(), () => me.set(null));
  });
  // The browser would try again by itself after some errors and not after others; so it is always done here.
  opened.onerror = () => retry(opened);
}

/** A connection can be gone without a word, after a sleep or a change of network. */
function hear(of) {
  clearTimeout(silence);
  silence = setTimeout(retry, SILENCE, of);
}

function tell(kind, data, id) {
  for (const listener of [...listeners.get(kind)]) {
    try {
      listener(data, id);
    } catch (error) {
      // One screen that stumbles must not keep the others from hearing.
      console.error(error);
    }
  }
}

function retry(of) {
  if (of !== stream) return;
  close();
  if (connection.get().state !== 'lost') connection.set({ state: 'lost', since: Date.now(), first: false });
  timer = setTimeout(async () => {
    try {
      // Tells a daemon that is away from a log-in that is over.
      await whoAmI();
    } catch {
      // It is away still; the stream finds out when it is back.
    }
    if (me.get() && timer) connect();
  }, wait * (0.75 + Math.random() / 2));
  wait = Math.min(wait * 2, LONGEST_WAIT);
}

function close() {
  clearTimeout(timer);
  clearTimeout(silence);
  timer = 0;
  stream?.close();
  stream = null;
}

/** The network is back, or somebody looks: no reason to wait longer. */
function hurry() {
  if (timer) {
    wait = FIRST_WAIT;
    connect();
  }
}

function visibility() {
  clearTimeout(unseen);
  if (document.visibilityState === 'hidden') {
    unseen = setTimeout(() => (stays() ? visibility() : close()), UNSEEN);
  } else if (!stream && !timer) {
    connect();
  } else {
    hurry();
  }
}
