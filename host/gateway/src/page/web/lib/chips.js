// Files in a chat: chips with a thumbnail or an icon, a name and a size. Files that the page can show open beside the chat;
// others are downloaded.

import { html, store, useEffect, useState, useStore } from './preact.js';
import { fileUrl, get, me, part } from './api.js';
import { bytes, plural, visible } from './format.js';
import { iconOf, viewOf } from './kinds.js';
import { href } from './router.js';
import { Icon, report, showDialog } from './ui.js';

/** Maximum size in bytes of a picture that is loaded for its thumbnail. */
const LARGEST_THUMB = 4_000_000;

/** Number of chips that are shown at first. */
const SHOWN = 12;

/**
 * Files (`{path, bytes, link, title}`) of a session; `label` is the name of the list, `extra(file)` adds content to each chip.
 * `undone`: the files are in their state before the run.
 */
export function Chips({ files, session, label = 'Files', extra, undone }) {
  const [all, show] = useState(false);
  const rest = files.length - SHOWN;
  return html`<ul class="file-chips" aria-label=${label}>
    ${files.slice(0, all ? undefined : SHOWN).map((file) => html`<li key=${file.path}><${Chip} file=${file} session=${session} undone=${undone} />${extra?.(file)}</li>`)}
    ${!all && rest > 0 && html`<li><button type="button" class="file-chip more" onClick=${() => show(true)}>${rest} more</button></li>`}
  </ul>`;
}

/** Maximum number of a workspace's files that are loaded for their sizes. */
const LISTED = 500;

/** Session -> its files: path -> bytes. */
const sizes = store({});
const asked = new Map();

me.watch((who) => {
  if (who) return;
  sizes.set({});
  asked.clear();
});

/** Loads the sizes of a session's files, with one request at a time. */
async function loadSizes(session) {
  try {
    const { items } = await get(`/sessions/${part(session)}/files`, { limit: LISTED });
    sizes.set((all) => ({ ...all, [session]: new Map(items.map((one) => [one.path, one.bytes])) }));
  } catch {
    // Chips work without sizes.
  }
}

/** Chips for the files that a user's message lists. */
export function Attached({ files, folders, session }) {
  const known = useStore(sizes, (all) => all[session]);
  const names = [...files.map((file) => file.path), ...folders].join();
  const inside = (folder) => known && [...known.keys()].filter((path) => path.startsWith(`${folder}/`)).length;
  useEffect(() => {
    if (!names || (files.every(({ path }) => known?.has(path)) && folders.every(inside)) || asked.get(session)?.has(names)) return;
    asked.set(session, (asked.get(session) ?? new Set()).add(names));
    loadSizes(session);
  }, [names]);
  const open = async () => {
    const { Workspace } = await import('./workspace.js');
    showDialog(Workspace, { session });
  };
  return html`${folders.length > 0 && html`<ul class="file-chips" aria-label="Attached folders">${folders.map((name) => html`<li key=${name}>
      <button type="button" class="file-chip" onClick=${() => open().catch(report)}><span class="file-chip-icon"><${Icon} name="folder" size=${20} /></span>
        <span class="file-chip-text"><bdi class="file-chip-name">${visible(name)}</bdi>${inside(name) > 0 && html`<span class="muted">${plural(inside(name), 'file')}</span>`}</span></button></li>`)}</ul>`}
    ${files.length > 0 && html`<${Chips} label="Attached files" files=${files.map((file) => ({ ...file, bytes: known?.get(file.path) }))} session=${session} />`}`;
}

function Chip({ file, session, undone }) {
  const { path, bytes: size, link } = file;
  const name = visible(path.split('/').pop());
  const view = viewOf(path);
  const source = link ?? fileUrl(session, path);
  const inside = html`<${Thumb} src=${view === 'picture' && !undone && !(size > LARGEST_THUMB) ? source : null} icon=${iconOf(path)} />
    <span class="file-chip-text"><bdi class="file-chip-name">${name}</bdi>${undone ? html`<span class="muted">undone</span>` : size != null && html`<span class="muted">${bytes(size)}</span>`}</span>`;
  if (!view) return html`<a class="file-chip" href=${source} download=${path.split('/').pop()} title=${`Download ${visible(path)}`}>${inside}</a>`;
  return html`<a class="file-chip" href=${href('s', session, 'f', path)} title=${visible(path)}>${inside}</a>`;
}

/** A thumbnail; the icon if there is no picture or it cannot be shown. */
function Thumb({ src, icon }) {
  const [broken, set] = useState(false);
  return src && !broken ? html`<img src=${src} alt="" loading="lazy" decoding="async" width="36" height="36" onError=${() => set(true)} />`
    : html`<span class="file-chip-icon"><${Icon} name=${icon} size=${20} /></span>`;
}

/** The last line of a message, in which the page and `kiso run` list its files. */
const NAMED = /(?:^|\n)[ \t]*Files:[ \t]*([^\n]{1,8000})\s*$/;

/** File names as the page writes them: without commas, and with an extension, or ending in "/". */
const NAME = /^[^\s,/][^,\n]{0,250}$/;

/** Splits a message into its text and its list of files: `{text, files: [{path}], folders: [name]}`. */
export function attachedOf(text) {
  const found = NAMED.exec(text);
  const names = found ? found[1].split(',').map((name) => name.trim()).filter(Boolean) : [];
  const isFile = (name) => NAME.test(name) && (/[^/]\.\w{1,10}$/.test(name) || name.includes('/')) && !name.split('/').includes('..');
  if (!names.length || !names.every(isFile)) return { text, files: [], folders: [] };
  const isFolder = (name) => name.endsWith('/');
  return {
    text: text.slice(0, found.index).trimEnd(),
    files: names.filter((name) => !isFolder(name)).map((path) => ({ path })),
    folders: names.filter(isFolder).map((name) => name.slice(0, -1)),
  };
}
