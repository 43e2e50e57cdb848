// Requests to the daemon. The browser's cookie identifies the user; the header shows that this page sends the request.

import { store } from './preact.js';
import { HOW, answered, ask, whoCame } from './ahead.js';

/**
 * The logged-in user: `undefined` until known, `false` during a logout, `null` if nobody is logged in, otherwise the response of
 * `GET /me`.
 */
export const me = store(undefined);

/** Milliseconds by which the daemon's clock is ahead of the browser's. */
let ahead = 0;

/** The current time of the daemon. */
export const now = () => Date.now() + ahead;

/** The daemon's error for a failed request. */
export class ApiError extends Error {
  constructor(status, { code, message, hint, ...more }) {
    super(message);
    Object.assign(this, { status, code, hint, more });
  }
}

/**
 * Sends a request. `body` is sent as JSON, `raw` (a Blob or text) unchanged; null values in `query` are left out. Returns the
 * JSON of the response, or null if it is empty; throws an `ApiError`.
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
    // Not a response of kiso: probably of a proxy in between.
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

/** Encodes a text as a part of a path. */
export const part = (text) => encodeURIComponent(text);

/** Prefix of the path of a shared file, where files of a session are also possible. */
const SHARED = '/shared/';

export const isShared = (path) => path.startsWith(SHARED);

/** The address of a workspace's file, below `/sessions/NAME/files`, or of a shared file. */
export const fileUrl = (session, path) => isShared(path) ? sharedUrl(path.slice(SHARED.length)) : `/sessions/${part(session)}/files/${path.split('/').map(part).join('/')}`;

/** The address of a shared file. */
export const sharedUrl = (path) => `/files/${path.split('/').map(part).join('/')}`;

/** Uses the logged-in user that is embedded in the document, without a request. */
export function known() {
  if (whoCame) greet(whoCame.who, whoCame.at_ms);
}

/** Requests the logged-in user. */
export async function whoAmI() {
  try {
    greet(await get('/me'));
  } catch (error) {
    // An unreachable daemon does not mean that nobody is logged in.
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
  // Set first, so that no more requests are sent. Only the daemon's response ends the login: until then the cookie is valid.
  me.set(false);
  try {
    await post('/logout');
  } catch (error) {
    // A login that is already invalid has ended, too.
    if (error.status !== 401) {
      me.set(who);
      throw error;
    }
  }
  PLACES.forEach(forget);
  me.set(null);
}

const PLACES = [localStorage, sessionStorage];

/** Storage key for the user who stored data. */
const OWNER = 'kiso.who';

/** Removes the user's texts, which the next user must not see. The theme is not secret. */
function forget(place) {
  for (const key of Object.keys(place)) if (key.startsWith('kiso.') && key !== 'kiso.theme') place.removeItem(key);
}

export const isAdmin = () => me.get()?.scope === 'admin';

function greet(who, at_ms = Date.now()) {
  const owner = `${who.scope} ${who.name ?? ''}`;
  for (const place of PLACES) {
    // The data belongs to another user: a login may have ended without a logout, or in another tab.
    if (place.getItem(OWNER) !== owner) forget(place);
    try {
      place.setItem(OWNER, owner);
    } catch {
      // The storage may be full; the page must keep working.
    }
  }
  ahead = who.now_ms - at_ms;
  me.set(who);
}

/** Returns a unique key for a request, so that a repeated request is executed only once. */
export function freshKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `page-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}
