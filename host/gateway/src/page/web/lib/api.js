// Requests to the daemon. The browser's cookie says who asks; the header shows that this page does.

import { store } from './preact.js';
import { HOW, answered, ask, whoCame } from './ahead.js';

/** Who is logged in: `undefined` until known, `false` while a log-out is on its way, `null` for nobody, else what `GET /me` says. */
export const me = store(undefined);

/** Milliseconds by which the daemon's clock is ahead of the browser's. */
let ahead = 0;

/** The daemon's time. */
export const now = () => Date.now() + ahead;

/** Why a request failed, in the daemon's words. */
export class ApiError extends Error {
  constructor(status, { code, message, hint, ...more }) {
    super(message);
    Object.assign(this, { status, code, hint, more });
  }
}

/**
 * One request. `body` is sent as JSON, `raw` (a Blob or text) as it is; `query` leaves out what is null.
 * Gives the JSON that came back, or null for an empty answer; throws an `ApiError`.
 */
export async function request(method, path, { body, raw, query, signal } = {}) {
  const asked = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) if (value != null && value !== '') asked.set(name, value);
  const address = asked.size ? `${path}?${asked}` : path;
  const headers = body === undefined ? HOW.headers : { ...HOW.headers, 'content-type': 'application/json' };
  let [answer, text] = [];
  try {
    const ahead = method === 'GET' && answered(address);
    [answer, text] = await (ahead || ask(address, { ...HOW, method, headers, signal, body: body === undefined ? raw : JSON.stringify(body) }));
    signal?.throwIfAborted();
  } catch (error) {
    if (error.name === 'AbortError' || error.name === 'TimeoutError') throw error;
    throw new ApiError(0, { code: 'away', message: 'kiso isn’t responding', hint: method === 'GET' ? 'kiso keeps trying' : 'try again when it is back' });
  }
  let told = null;
  try {
    told = text ? JSON.parse(text) : null;
  } catch {
    // Not from kiso: a proxy in between, most likely.
  }
  if (answer.ok) return told;
  const error = new ApiError(answer.status, told?.error ?? { code: 'unknown', message: `the answer was ${answer.status}` });
  if (error.status === 401 && path !== '/login') me.set(null);
  throw error;
}

export const get = (path, query, signal) => request('GET', path, { query, signal });
export const post = (path, body = {}) => request('POST', path, { body });
export const put = (path, body) => request('PUT', path, { body });
export const patch = (path, body) => request('PATCH', path, { body });
export const del = (path) => request('DELETE', path);

/** A part of a path, whatever is in it. */
export const part = (text) => encodeURIComponent(text);

/** How the path of a shared file begins where files of a session are meant as well. */
const SHARED = '/shared/';

export const isShared = (path) => path.startsWith(SHARED);

/** A workspace's file, below `/sessions/NAME/files`, or a shared one. */
export const fileUrl = (session, path) => isShared(path) ? sharedUrl(path.slice(SHARED.length)) : `/sessions/${part(session)}/files/${path.split('/').map(part).join('/')}`;

/** A file that all sessions share. */
export const sharedUrl = (path) => `/files/${path.split('/').map(part).join('/')}`;

/** Who is logged in, where the document says so: that needs no question. */
export function known() {
  if (whoCame) greet(whoCame.who, whoCame.at_ms);
}

/** Asks who is logged in. */
export async function whoAmI() {
  try {
    greet(await get('/me'));
  } catch (error) {
    // A daemon that is away says nothing about who is logged in.
    if (error.status === 401) me.set(null);
    else throw error;
  }
}

/** Logs in with a token, or with the code of a one-time link. */
export async function logIn(given) {
  greet(await post('/login', given));
}

export async function logOut() {
  const who = me.get();
  // First, so that nothing is asked by who is logged in no more. Only the daemon's word ends it: until then a cookie is valid.
  me.set(false);
  try {
    await post('/logout');
  } catch (error) {
    // One that is void already is over too.
    if (error.status !== 401) {
      me.set(who);
      throw error;
    }
  }
  PLACES.forEach(forget);
  me.set(null);
}

const PLACES = [localStorage, sessionStorage];

/** Who it was that left something in a place. */
const OWNER = 'kiso.who';

/** Who sits here next has no business with what was written; how the page looks is not a secret. */
function forget(place) {
  for (const key of Object.keys(place)) if (key.startsWith('kiso.') && key !== 'kiso.theme') place.removeItem(key);
}

export const isAdmin = () => me.get()?.scope === 'admin';

function greet(who, at_ms = Date.now()) {
  const owner = `${who.scope} ${who.name ?? ''}`;
  for (const place of PLACES) {
    // Somebody else's: a log-in may have ended without a log-out, and another tab may have seen it.
    if (place.getItem(OWNER) !== owner) forget(place);
    try {
      place.setItem(OWNER, owner);
    } catch {
      // A full store forgets; the page must go on.
    }
  }
  ahead = who.now_ms - at_ms;
  me.set(who);
}

/** A name that no other request has, so that one that is sent twice is done once. */
export function freshKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `page-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}
