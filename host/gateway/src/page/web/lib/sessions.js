// The sessions that there are, kept true by the event stream, and what can be done with one.

import { html, store, useState, useStore } from './preact.js';
import { del, get, isAdmin, me, part, patch } from './api.js';
import { connection, on } from './events.js';
import { plural, stamp } from './format.js';
import { go, href, route } from './router.js';
import { forgetSession } from './drafts.js';
import { plain } from './run-text.js';
import { select } from './selection.js';
import { Button, Dialog, Menu, announce, confirm, copyText, report, toast } from './ui.js';

/** Sessions of a page, and the most that are asked for at once. */
const PAGE = 100;
const MAX_PAGE = 500;

/** Milliseconds after which somebody who comes back to the page gets a new listing. */
const STALE = 60_000;

/** Replies that are counted at most. */
export const MOST_UNREAD = 99;

const NONE = { items: [], next: null, loaded: false, error: null };

/** `{items, next, loaded, error}`; `items` are sessions as the daemon tells of them: those that are pinned, then the one that was active last. */
export const sessions = store(NONE);

/** The same of those that are archived, which are fetched when somebody looks for them; `any`: whether there are some. */
export const archived = store({ ...NONE, any: false });

/** Whether the sidebar is open where it comes over the screen. */
export const drawer = store(false);

/** Replies that nobody has read, in all sessions but the one that is in view. */
export const unread = store(0);

let asked = 0;
let [listed, folded, byName] = [null, null, new Map()];

/** Sessions that are not in the part of the listing that was loaded, and were opened all the same: name -> what is known. */
export const others = store(new Map());

/** What the status of a session says of it. */
export function meet({ session: name, title, active_ms, running, placement }) {
  if (byName.has(name) || active_ms === undefined) return;
  others.set((old) => new Map(old).set(name, { ...old.get(name), name, title, active_ms, running, placement }));
}

/** The session with this name, if it is known. */
export function sessionOf(name) {
  const [{ items }, { items: away }] = [sessions.get(), archived.get()];
  if (items !== listed || away !== folded) {
    [listed, folded, byName] = [items, away, new Map([...away, ...items].map((one) => [one.name, one]))];
  }
  return byName.get(name) ?? others.get().get(name);
}

/** Names that the page and the OpenAI interface make up, which say nothing to a person. */
const MADE_UP = /^chat-(?:\d{4}-\d{2}-\d{2}-\d{4}(?:-\d+)?|[0-9a-f]{20})$/;

/** The title of a session as it was given. One without a title is called by its name, and "New chat" where nobody chose that. Takes the session, or its name. */
export function givenTitle(session) {
  const known = typeof session === 'string' ? sessionOf(session) : session;
  const name = known?.name ?? session;
  return known?.title || (name === 'default' || MADE_UP.test(name) ? 'New chat' : /^shared-files-[0-9a-f]{16}$/.test(name) ? 'Shared files' : name);
}

/** What a session is called where people read it: nothing in a title turns the text around it. */
export const titleOf = (session) => plain(givenTitle(session));

/** The name of the session in view, or null. */
export const shown = () => (route.get()[0] === 's' ? route.get()[1] : null);

let [loading, following] = [Promise.resolve(), null];

/**
 * Loads the first page; what was loaded behind it is loaded again, so that nobody is scrolled away from. One at a time: of
 * two answers that overtake each other, the older one would look like news. Who asks meanwhile gets one that begins after.
 */
export function loadSessions() {
  following ??= loading.then(() => {
    following = null;
    return (loading = load());
  });
  return following;
}

/** Names of which something was told while the listing is on its way, which is older than that; null while none is. */
let told = null;

async function load() {
  asked = Date.now();
  told = new Set();
  const before = new Set(sessions.get().items);
  const limit = Math.min(MAX_PAGE, Math.max(PAGE, before.size));
  try {
    const [{ items, next }, pinned, away] = await Promise.all([
      get('/sessions', { placement: 'listed', limit }),
      get('/sessions', { placement: 'pinned', limit: MAX_PAGE }),
      get('/sessions', { placement: 'archived', limit: 1 }),
    ]);
    archived.set((old) => ({ ...old, any: away.items.length > 0 }));
    if (archived.get().loaded) moreArchived(true).catch(report);
    const here = sessions.get().items;
    const news = (one) => told.has(one.name);
    const all = [...here.filter((one) => !before.has(one)), ...[...pinned.items, ...items].filter((one) => !news(one)), ...here.filter(news)];
    sessions.set({ items: sorted(all), next: next ?? null, loaded: true, error: null });
  } catch (error) {
    sessions.set((old) => ({ ...old, error }));
  } finally {
    told = null;
  }
}

let more = null;

/** Loads the next page, if there is one. One at a time: who asks meanwhile waits for the same. */
export function moreSessions(limit = PAGE) {
  const { next } = sessions.get();
  if (!next) return Promise.resolve();
  more ??= get('/sessions', { placement: 'listed', before: next, limit })
    .then((page) => sessions.set((old) => ({ ...old, items: sorted([...page.items, ...old.items]), next: page.next ?? null })))
    .finally(() => { more = null; });
  return more;
}

let moreAway = null;

/** Loads the next page of what is archived; the first one where there is none yet, or `anew`. */
export function moreArchived(anew = false) {
  const { next, loaded, items } = archived.get();
  const first = anew || !loaded;
  if (!first && !next) return Promise.resolve();
  moreAway ??= get('/sessions', { placement: 'archived', before: first ? undefined : next, limit: MAX_PAGE })
    .then((page) => archived.set({
      items: sorted(first ? page.items : [...items, ...page.items]), next: page.next ?? null, loaded: true, error: null, any: !first || page.items.length > 0,
    }))
    .catch((error) => archived.set((old) => ({ ...old, error })))
    .finally(() => { moreAway = null; });
  return moreAway;
}

/** Those that are pinned, then by activity, each once; of two that have the same name the later one is the newer. */
function sorted(items) {
  const all = new Map(items.map((one) => [one.name, one]));
  const pinned = ({ placement }) => placement === 'pinned';
  return [...all.values()].sort((a, b) => pinned(b) - pinned(a) || b.active_ms - a.active_ms || (a.name < b.name ? -1 : 1));
}

let learning = 0;

/** A name that was not heard before may be one that is not listed, such as a subagent's: the listing knows. */
function learn() {
  learning ||= setTimeout(() => {
    learning = 0;
    loadSessions();
  }, 100);
}

/** Changes one session; `change` gets what is known of it. */
function put(name, change) {
  const before = sessionOf(name);
  if (!before) return void learn();
  const after = change(before);
  if (after === before) return;
  told?.add(name);
  const away = after.placement === 'archived';
  const without = (items) => (items.some((one) => one.name === name) ? items.filter((one) => one.name !== name) : items);
  sessions.set((old) => ({ ...old, items: away ? without(old.items) : sorted([...without(old.items), after]) }));
  archived.set((old) => {
    const items = away && old.loaded ? sorted([...without(old.items), after]) : without(old.items);
    return { ...old, items, any: away || (old.loaded && !old.next ? items.length > 0 : old.any) };
  });
  // Whether it was the last one is known to the listing.
  if (!away && before.placement === 'archived' && archived.get().any) learn();
  // It is known by its name, wherever it stands.
  if (away && !archived.get().loaded) others.set((old) => new Map(old).set(name, after));
}

/** Takes a session out of the lists; who is in it goes to the next one. */
export function drop(name) {
  const leave = leaving(name);
  told?.add(name);
  forgetSession(name);
  others.set((old) => new Map([...old].filter(([one]) => one !== name)));
  for (const list of [sessions, archived]) {
    // Some are not listed.
    if (list.get().items.some((one) => one.name === name)) list.set((old) => ({ ...old, items: old.items.filter((one) => one.name !== name) }));
  }
  leave();
}

/** What leads who is in this session to the one beside it, when it is not there any more. */
function leaving(name) {
  const { items } = sessions.get();
  const at = items.findIndex((one) => one.name === name);
  const rest = items.filter((one) => one.name !== name);
  return () => shown() === name && go('s', (rest[Math.max(at, 0)] ?? rest[at - 1])?.name ?? freshName());
}

// One that was forgotten is told of as never active.
on('session', (data) => (data.active_ms < 0 ? drop(data.name) : put(data.name, (old) => ({ ...old, ...data }))));
on('deleted', ({ name }) => drop(name));

on('message', (message) => put(message.session, (old) => {
  // What a listing told already is not counted twice.
  if (message.at_ms <= old.active_ms) return old;
  const begun = { ...old, created_ms: old.created_ms || message.at_ms, active_ms: message.at_ms };
  if (message.role !== 'assistant' || inView(message.session)) return begun;
  return { ...begun, unread: Math.min(MOST_UNREAD, (old.unread ?? 0) + 1) };
}));

on('run', (run) => put(run.session, (old) => {
  const waiting = run.status === 'waiting' ? run.id : old.waiting === run.id ? null : old.waiting;
  if (run.status === 'running') return { ...old, running: run.id, waiting, active_ms: Math.max(old.active_ms, run.started_ms) };
  return { ...old, running: old.running === run.id ? null : old.running, waiting };
}));

on('gap', loadSessions);
connection.watch(({ state }) => state === 'open' && sessions.get().error && loadSessions());

/** Whether somebody looks at this session. */
const inView = (name) => name === shown() && document.visibilityState === 'visible';

function count() {
  unread.set(sessions.get().items.reduce((sum, one) => sum + (inView(one.name) ? 0 : one.unread ?? 0), 0));
}

sessions.watch(count);
route.watch(count);
document.addEventListener('visibilitychange', () => {
  count();
  // Not all that happens to a session is told, such as that it was deleted on the command line.
  if (document.visibilityState === 'visible' && Date.now() - asked > STALE && me.get()) loadSessions();
});

// Somebody else may log in, who sees what is there then.
me.watch((who) => {
  if (who) return;
  sessions.set(NONE);
  archived.set({ ...NONE, any: false });
  others.set(new Map());
  select(null);
});

/** Gives a session another title. */
export async function rename(name, title) {
  const changed = await patch(`/sessions/${part(name)}`, { title });
  put(name, (old) => ({ ...old, ...changed }));
  announce('Renamed');
}

const PLACED = { listed: 'Back in the list', pinned: 'Pinned', archived: 'Archived' };

/** Pins sessions, archives them, or puts them back into the list. */
export async function place(names, placement) {
  for (const name of names) {
    const leave = leaving(name);
    const changed = await patch(`/sessions/${part(name)}`, { placement });
    put(name, (old) => ({ ...old, ...changed }));
    if (placement === 'archived') leave();
  }
  toast(names.length === 1 ? `${PLACED[placement]}: “${titleOf(names[0])}”` : `${PLACED[placement]}: ${names.length} chats`, 'good');
}

/** Whether the page gave this name: those of others, such as a schedule's or a subagent's, may be left out of the listing. */
export const isOurs = (name) => /^(?:default|chat-[\w-]+)$/.test(name);

/** The name of a session that is begun now. */
export function freshName() {
  const name = `chat-${stamp()}`;
  let [free, number] = [name, 1];
  while (sessionOf(free)) free = `${name}-${number += 1}`;
  return free;
}

/** Opens a new chat; `current` is the name of the one in view, or null. */
export function beginChat(current) {
  // One that has no message yet is new enough.
  if (current === null || sessionOf(current) || !isOurs(current)) go('s', freshName());
  else document.querySelector('.composer textarea')?.focus();
}

/** Deletes sessions for good, after asking once; who is in one of them goes to the next one. True unless nothing was. */
export async function remove(names) {
  // The event of its end may come before the answer.
  const titles = new Map(names.map((name) => [name, titleOf(name)]));
  const one = names.length === 1;
  const [its, it] = one ? ['its', 'it'] : ['their', 'them'];
  // The daemon deletes what would report to a chat that is gone.
  const { items } = await get('/schedules');
  const schedules = items.filter((one) => names.includes(one.session) || names.includes(`schedule.${one.name}`)).map((one) => one.name);
  const also = schedules.length && `${plural(schedules.length, 'schedule')} with replies in ${it} ${schedules.length === 1 ? 'is' : 'are'} deleted, too: ${
    schedules.map((name) => `“${plain(name)}”`).join(', ')}. To keep ${schedules.length === 1 ? 'it' : 'one'}, first choose another chat for its replies under Schedule.`;
  const text = `This permanently deletes ${its} messages, runs, files, and what kiso learned in ${it}. You can’t undo this.${also ? ` ${also}` : ''}`;
  const title = one ? `Delete “${titles.get(names[0])}”?` : `Delete ${names.length} chats?`;
  if (!await confirm({ title, text, list: one ? undefined : [...titles.values()], action: 'Delete' })) return false;
  const gone = [];
  // The one in view at last: the one beside it may be going as well.
  for (const name of [...names].sort((a, b) => (a === shown()) - (b === shown()))) {
    const busy = () => toast(`“${titles.get(name)}” is running and can’t be deleted now`, 'bad', 'Stop it, or wait until it has answered.');
    try {
      if (sessionOf(name)?.running) busy();
      else {
        await del(`/sessions/${part(name)}`);
        drop(name);
        gone.push(name);
      }
    } catch (error) {
      if (error.code === 'at_work') busy();
      // Another tab was faster.
      else if (error.status === 404) drop(name);
      else throw error;
    }
  }
  if (gone.length) toast(gone.length === 1 ? `Deleted “${titles.get(gone[0])}”` : `Deleted ${gone.length} chats`, 'good');
  return true;
}

/** The dialog that is open for a session: `{name, Dialog}`, or null. */
const opened = store(null);

/** What can be done with a session. `onRename` is where the title can be written in place; without it, a dialog asks. */
export function SessionMenu({ session, onRename, ...rest }) {
  const name = session?.name ?? session;
  // One that has no message yet is not there.
  const born = useStore(sessions, ({ next }) => Boolean(next || sessionOf(name) || !isOurs(name)));
  useStore(others);
  useStore(archived);
  const placement = sessionOf(name)?.placement;
  const title = useStore(sessions, () => titleOf(name));
  const files = async () => {
    const { Workspace } = await import('./workspace.js');
    opened.set({ name, Dialog: Workspace });
  };
  const folders = async () => {
    const { FolderChooser } = await import('./folder-chooser.js');
    opened.set({ name, Dialog: FolderChooser });
  };
  const copy = async () => {
    await copyText(new URL(href('s', name), location.href).href);
    toast('Link copied', 'good');
  };
  const items = [
    born && (placement === 'pinned' ? { label: 'Unpin', icon: 'pin', run: () => place([name], 'listed') }
      : { label: 'Pin', icon: 'pin', run: () => place([name], 'pinned') }),
    born && { label: 'Rename', icon: 'edit', run: onRename ?? (() => opened.set({ name, Dialog: Rename })) },
    { label: 'Files', icon: 'file', run: files },
    { label: 'Folders', icon: 'folder', run: folders },
    { label: 'Copy link', icon: 'link', run: copy },
    born && { label: 'Export', icon: 'download', href: `/sessions/${part(name)}/export`, download: `${name}.jsonl` },
    born && (placement === 'archived' ? { label: 'Unarchive', icon: 'archive', run: () => place([name], 'listed') }
      : { label: 'Archive', icon: 'archive', run: () => place([name], 'archived') }),
    born && onRename && { label: 'Select', icon: 'check', run: () => select([name]) },
    born && isAdmin() && { label: 'Delete', icon: 'trash', danger: true, run: () => remove([name]) },
  ].filter(Boolean);
  return html`<${Menu} label=${`Actions for ${title}`} items=${items} ...${rest} />`;
}

/** The dialog of a menu; stands once in the page, so that it outlives the row that it was opened from. */
export function SessionDialog() {
  const one = useStore(opened);
  return one && html`<${one.Dialog} session=${one.name} onClose=${() => opened.set(null)} />`;
}

function Rename({ session, onClose }) {
  const [title, set] = useState(givenTitle(session));
  const [error, fail] = useState(null);
  const submit = async (event) => {
    event.preventDefault();
    try {
      await rename(session, title.trim());
      onClose();
    } catch (refused) {
      fail(refused);
    }
  };
  return html`<${Dialog} title="Rename chat" onClose=${onClose}>
    <form class="sessions-rename" onSubmit=${submit}>
      <label class="field">Title
        <input autofocus value=${title} onInput=${(event) => set(event.target.value)} aria-invalid=${error ? 'true' : undefined} /></label>
      ${error && html`<p class="wrong" role="alert">${error.message}${error.hint ? ` (${error.hint})` : ''}</p>`}
      <footer><${Button} onClick=${onClose}>Cancel<//><button class="button primary" disabled=${!title.trim()}>Save</button></footer>
    </form>
  <//>`;
}
