// Files that are uploaded to a session's workspace while a message is written. Uploads continue while another session is open.

import { store } from './preact.js';
import { ApiError, del, fileUrl, get, me, part } from './api.js';
import { FILES } from './drafts.js';
import { stamp } from './format.js';
import { loadSessions, sessionOf } from './sessions.js';
import { announce, toast } from './ui.js';

/** Maximum number of alternative names that are tried. */
const TRIES = 100;

/** Size in bytes at which a file may be too large. */
const LARGE = 16_000_000;

/** Maximum length of a name in bytes: file systems allow 255, and a number may be added. */
const LONGEST_NAME = 200;

/** Maximum size in bytes of a picture with a preview. */
const LARGEST_PREVIEW = 20_000_000;

/** Extensions of pictures that every browser shows. */
const PICTURE = /\.(png|jpe?g|gif|webp)$/i;

/**
 * The files of each session, by its name: `{id, name, bytes, state, sent, error, preview}`. `state` is "waiting", "sending",
 * "done" or "failed"; `sent` is the progress from 0 to 1. A folder has `files`, their `count`, and the number that are `there`.
 */
export const uploads = store({});

let number = 0;
let current = null;

const of = (session) => uploads.get()[session] ?? [];
const setOf = (session, change) => uploads.set((all) => ({ ...all, [session]: change(all[session] ?? []) }));
const change = (session, id, what) => setOf(session, (files) => files.map((one) => (one.id === id ? { ...one, ...what } : one)));

me.watch((who) => {
  if (who) return;
  current?.xhr?.abort();
  Object.values(uploads.get()).forEach(forget);
  uploads.set({});
});

/** Stores for this tab which uploaded files were not sent with a message yet: they survive a reload, like a draft. */
function keep(session) {
  const done = of(session).filter((one) => one.state === 'done').map(({ name, bytes, count }) => ({ name, bytes, count }));
  if (done.length) sessionStorage.setItem(FILES + session, JSON.stringify(done));
  else sessionStorage.removeItem(FILES + session);
}

/** Restores these files after a reload. */
export function restore(session) {
  const kept = sessionStorage.getItem(FILES + session);
  if (!kept || uploads.get()[session]) return;
  setOf(session, () => JSON.parse(kept).map(({ name, bytes, count }) => ({
    id: number += 1, name, bytes, count, state: 'done', sent: 1, error: null,
    preview: PICTURE.test(name) && bytes <= LARGEST_PREVIEW ? fileUrl(session, name) : null,
  })));
}

/** Adds files; they are uploaded one after the other. */
export function upload(session, files) {
  const added = [...files].map((file) => ({
    id: number += 1, file, name: safeName(file), bytes: file.size, state: 'waiting', sent: 0, error: null,
    preview: PICTURE.test(file.type.replace('/', '.')) && file.size <= LARGEST_PREVIEW ? URL.createObjectURL(file) : null,
  }));
  setOf(session, (old) => [...old, ...added]);
  next();
}

/** Adds a folder, `{name, files: [{file, path}]}`; its files are uploaded one after the other, below a directory of its name. */
export function uploadFolder(session, { name, files }) {
  if (!files.length) {
    toast(`“${name}” has no files to send`, 'info');
    return;
  }
  const taken = new Set();
  const named = files.map(({ file, path }) => {
    const wanted = path.map((one) => safeName({ name: one })).join('/');
    let free = wanted;
    for (let turn = 2; taken.has(free); turn += 1) free = numbered(wanted, turn);
    taken.add(free);
    return { file, path: free };
  });
  const bytes = files.reduce((sum, { file }) => sum + file.size, 0);
  setOf(session, (old) => [...old, { id: number += 1, name: safeName({ name }), files: named, count: named.length, there: 0, bytes, state: 'waiting', sent: 0, error: null, preview: null }]);
  next();
}

/** Retries a failed upload. */
export function again(session, id) {
  change(session, id, { state: 'waiting', error: null });
  next();
}

/** Removes a file: cancels its upload and deletes what was uploaded. */
export function drop(session, id) {
  const one = of(session).find((file) => file.id === id);
  if (current?.id === id) current.xhr?.abort();
  if (one.count) removeAll(session, one);
  else if (one.state === 'done') del(fileUrl(session, one.name)).catch(() => {});
  forget([one]);
  setOf(session, (old) => old.filter((file) => file.id !== id));
  keep(session);
  next();
}

/** Deletes the uploaded files of a folder. After a reload its files are unknown, so they stay. */
async function removeAll(session, { name, files = [], there }) {
  for (const { path } of files.slice(0, there)) await del(fileUrl(session, `${name}/${path}`)).catch(() => {});
}

/** Returns the uploaded files and folders (`{name, count}`) for a message, and removes them from the list. */
export function take(session) {
  const done = of(session).filter((one) => one.state === 'done');
  forget(done);
  setOf(session, (old) => old.filter((one) => one.state !== 'done'));
  keep(session);
  return done.map(({ name, count }) => ({ name, count }));
}

function forget(files) {
  for (const one of files) if (one.preview) URL.revokeObjectURL(one.preview);
}

async function next() {
  if (current) return;
  for (const [session, files] of Object.entries(uploads.get())) {
    const one = files.find((file) => file.state === 'waiting');
    if (!one) continue;
    current = { id: one.id, xhr: null };
    change(session, one.id, { state: 'sending' });
    try {
      const name = await (one.files ? sendFolder(session, one) : send(session, one));
      change(session, one.id, { state: 'done', sent: 1, name });
      keep(session);
      announce(`${name} is there`);
      // The first file may create the session.
      if (!sessionOf(session)) loadSessions();
    } catch (error) {
      change(session, one.id, { state: 'failed', error });
    }
    current = null;
    return void next();
  }
}

/** Uploads a file under the first free name; returns the name. */
async function send(session, { id, file, name }) {
  const taken = await namesIn(session);
  for (let turn = 1; turn <= TRIES; turn += 1) {
    const free = turn === 1 ? name : numbered(name, turn);
    if (taken.has(free)) continue;
    if (!of(session).some((one) => one.id === id)) throw new ApiError(0, { code: 'dropped', message: 'upload canceled' });
    change(session, id, { name: free, sent: 0 });
    try {
      await sendAs(session, id, file, free);
      return free;
    } catch (error) {
      if (error.code !== 'taken') throw error;
    }
  }
  throw new ApiError(409, { code: 'taken', message: `there are ${TRIES} files with such a name` });
}

const numbered = (name, turn) => name.replace(/(\.[^./]*)?$/, `-${turn}$1`);

/** Uploads the missing files of a folder; returns the directory's name, which is the first free one. */
async function sendFolder(session, { id, files, name, there, bytes }) {
  const taken = new Set([...await namesIn(session)].map((path) => path.split('/')[0]));
  let root = name;
  for (let turn = 2; !there && taken.has(root); turn += 1) root = `${name}-${turn}`;
  let before = files.slice(0, there).reduce((sum, { file }) => sum + file.size, 0);
  for (const [at, { file, path }] of files.entries()) {
    if (at < there) continue;
    if (!of(session).some((one) => one.id === id)) throw new ApiError(0, { code: 'dropped', message: 'upload canceled' });
    change(session, id, { name: root });
    try {
      await sendAs(session, id, file, `${root}/${path}`, (part) => (before + part * file.size) / Math.max(1, bytes));
    } catch (error) {
      error.message = `${root}/${path}: ${error.message}`;
      throw error;
    }
    before += file.size;
    change(session, id, { there: at + 1 });
  }
  return root;
}

/** Returns the names in use, from one page of the listing, so that most files are sent only once. */
async function namesIn(session) {
  if (!sessionOf(session)) return new Set();
  try {
    const { items } = await get(`/sessions/${part(session)}/files`, { limit: 500 });
    return new Set(items.map((one) => one.path));
  } catch {
    return new Set();
  }
}

/** `fetch` does not report upload progress. */
function sendAs(session, id, file, name, sent = (part) => part) {
  return new Promise((done, fail) => {
    const xhr = new XMLHttpRequest();
    if (current?.id === id) current.xhr = xhr;
    xhr.open('PUT', fileUrl(session, name));
    xhr.setRequestHeader('x-kiso-page', '1');
    xhr.setRequestHeader('content-type', 'application/octet-stream');
    xhr.upload.onprogress = ({ loaded, total }) => total && change(session, id, { sent: sent(loaded / total) });
    xhr.onabort = () => fail(new ApiError(0, { code: 'dropped', message: 'upload canceled' }));
    // The daemon can refuse a file by its size before it is complete, and a browser may then lose the response.
    const hint = file.size > LARGE ? 'the file may be larger than gateway.max_upload_mib allows' : 'try again when it is back';
    xhr.onerror = () => fail(new ApiError(0, { code: 'away', message: 'kiso isn’t responding', hint }));
    xhr.onload = () => {
      if (xhr.status < 300) return done();
      if (xhr.status === 401) me.set(null);
      let told = null;
      try {
        told = JSON.parse(xhr.responseText).error;
      } catch {
        // Not a response of kiso: probably of a proxy in between.
      }
      return fail(new ApiError(xhr.status, told ?? { code: 'unknown', message: `the answer was ${xhr.status}` }));
    };
    xhr.send(file);
  });
}

/** Returns a name that needs no quoting in a command line, a skill's argument or a list of files. */
function safeName(file) {
  const name = file.name.normalize('NFC').replace(/[\p{C}\p{Z}\s/\\:*?"'<>|`$;&,]+/gu, '-').replace(/^[.-]+/, '');
  return shortened(name) || 'file';
}

/** Shortens a name, and keeps its extension. */
function shortened(name) {
  const size = (text) => new TextEncoder().encode(text).length;
  const ending = /\.[^.]{1,16}$/.exec(name)?.[0] ?? '';
  let room = LONGEST_NAME - size(ending);
  const letters = [...name.slice(0, name.length - ending.length)];
  return letters.filter((letter) => (room -= size(letter)) >= 0).join('') + ending;
}

/** Returns the dropped files, without folders. Must be called while the event is handled. */
export function filesOf(transfer) {
  const items = [...transfer.items].filter((item) => item.kind === 'file');
  return items.filter((item) => !item.webkitGetAsEntry?.()?.isDirectory).map((item) => item.getAsFile()).filter(Boolean);
}

/** Returns the pasted files. Text that comes with a picture of itself, such as a copied table, counts as text. */
export function filesPasted(transfer) {
  if (!transfer.files.length || (transfer.getData('text/plain') && transfer.getData('text/html'))) return [];
  // Browsers give all pictures from the clipboard the same name.
  const named = (file) => new File([file], `pasted-${stamp()}.${file.name.split('.').pop()}`, { type: file.type });
  return [...transfer.files].map((file) => (/^image\.\w+$/.test(file.name) ? named(file) : file));
}
