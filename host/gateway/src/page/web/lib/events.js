// The page's single event stream. Each event with an id is delivered exactly once, even across lost connections and restarts of
// the daemon.

import { store } from './preact.js';
import { me, whoAmI } from './api.js';

/**
 * `{state: 'connecting' | 'open' | 'lost', since, first}`; `since` is the time of the loss, on the browser's clock. `first`: the
 * connection was never lost.
 */
export const connection = store({ state: 'connecting', since: Date.now(), first: true });

const KINDS = ['message', 'run', 'event', 'session', 'deleted', 'live', 'gap'];

/** Milliseconds before the stream is opened again: initial and maximum value. */
const FIRST_WAIT = 500;
const LONGEST_WAIT = 10_000;

/** Milliseconds without data after which a stream counts as dead: the daemon sends a sign of life every 15 seconds. */
const SILENCE = 40_000;

/** Milliseconds after which a hidden tab closes its stream: a browser has six connections for all tabs. */
const UNSEEN = 5 * 60_000;

const listeners = new Map(KINDS.map((kind) => [kind, new Set()]));
let stream = null;
let last = null;
let wait = FIRST_WAIT;
let timer = 0;
let unseen = 0;
let silence = 0;

/** A tab that opens its stream asks hidden tabs to close theirs; these reopen it when they become visible. */
const others = new BroadcastChannel('kiso.events');
others.onmessage = () => document.visibilityState === 'hidden' && !stays() && close();

/** Returns whether a hidden tab keeps its stream. */
let stays = () => false;

/** Keeps the stream of a hidden tab open as long as `wanted()` is true. */
export const stayWhile = (wanted) => { stays = wanted; };

/** Calls `listener(data, id)` for each event of this kind; returns a function that ends it. */
export function on(kind, listener) {
  listeners.get(kind).add(listener);
  return () => listeners.get(kind).delete(listener);
}

/**
 * Calls `look` when the stream is open again; returns a function that ends it. When the stream opens for the first time, calls it
 * only if something has `failed()`, because the stream delivers all events since the page was loaded.
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
  // A tab that was opened in the background may never become visible.
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
  // Starts at the last event before the first request, so that no event between a response and the start of the stream is missed.
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
    // The browser may have logged in again in another tab; this tab then continues with that login.
    whoAmI().then(() => me.get() && !stream && connect(), () => me.set(null));
  });
  // Browsers reconnect by themselves after some errors and not after others, so it is always done here.
  opened.onerror = () => retry(opened);
}

/** Detects a dead connection: after sleep or a change of network, a connection can be gone without an error. */
function hear(of) {
  clearTimeout(silence);
  silence = setTimeout(retry, SILENCE, of);
}

function tell(kind, data, id) {
  for (const listener of [...listeners.get(kind)]) {
    try {
      listener(data, id);
    } catch (error) {
      // An error of one listener must not affect the others.
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
      // Distinguishes an unreachable daemon from an expired login.
      await whoAmI();
    } catch {
      // The daemon is still unreachable; the stream keeps trying.
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

/** Reconnects at once, because the network is back or the tab became visible. */
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
