// The files of a session's workspace; loaded on demand.

import { html, useEffect, useState } from './preact.js';
import { del, fileUrl, get, part, sharedUrl } from './api.js';
import { bytes } from './format.js';
import { iconOf, viewOf } from './kinds.js';
import { href } from './router.js';
import { plain } from './run-text.js';
import { titleOf } from './sessions.js';
import { Busy, Button, Dialog, Empty, Icon, Time, Trouble, confirm, showDialog, toast } from './ui.js';

const PAGE = 100;

export function Workspace({ session, onClose }) {
  const [state, set] = useState({ items: null, next: null, error: null });
  const load = async (before) => {
    set((old) => ({ ...old, error: null }));
    try {
      const { items, next } = await get(`/sessions/${part(session)}/files`, { before, limit: PAGE });
      return set((old) => ({ items: before ? [...old.items, ...items] : items, next: next ?? null, error: null }));
    } catch (error) {
      // A new session has no files, either.
      if (error.status === 404 && !before) return set({ items: [], next: null, error: null });
      return set((old) => ({ ...old, error }));
    }
  };
  useEffect(() => { load(); }, [session]);
  const remove = async (path) => {
    if (!await confirm({ title: `Delete “${path}”?`, text: 'This permanently deletes the file from the workspace.', action: 'Delete' })) return;
    await del(fileUrl(session, path));
    set((old) => ({ ...old, items: old.items.filter((one) => one.path !== path) }));
    toast('Deleted', 'good');
  };
  const saveTo = async (path) => {
    const { FolderSaver } = await import('./folder-chooser.js');
    onClose();
    showDialog(FolderSaver, { session, path });
  };
  const { items, next, error } = state;
  return html`<${Dialog} wide title=${html`Files of <bdi>${titleOf(session)}</bdi>`} onClose=${onClose}>
    ${error && html`<${Trouble} error=${error} again=${() => load()} />`}
    ${!items && !error && html`<${Busy} />`}
    ${items?.length === 0 && html`<${Empty} icon="file" title="No files in this chat yet">Files you attach and files kiso creates appear here.<//>`}
    ${items?.length > 0 && html`<ul class="rows workspace" aria-label="Files">${items.map((one) => html`<li key=${one.path}>
      <${Icon} name=${iconOf(one.path)} />
      <div>${viewOf(one.path) ? html`<a href=${href('s', session, 'f', one.path)} onClick=${onClose}><bdi>${plain(one.path)}</bdi></a>`
        : html`<bdi>${plain(one.path)}</bdi>`}
        <span class="muted">${bytes(one.bytes)} · <${Time} ms=${one.modified_ms} /></span></div>
      <a class="button quiet bare" href=${fileUrl(session, one.path)} download=${one.path.split('/').pop()}
        aria-label=${`Download ${one.path}`} title="Download"><${Icon} name="download" /></a>
      <${Button} kind="quiet" icon="save" label=${`Save ${one.path} to a folder or to the shared files`} onClick=${() => saveTo(one.path)} />
      <${Button} kind="quiet" icon="trash" label=${`Delete ${one.path}`} onClick=${() => remove(one.path)} />
    </li>`)}</ul>`}
    ${next && html`<${Button} onClick=${() => load(next)}>Show more<//>`}
    <${Shared} session=${session} onClose=${onClose} />
  <//>`;
}

/** Maximum number of shared files that are listed beside those of a session. */
const SHARED = 50;

/** The shared files at the top level. */
function Shared({ session, onClose }) {
  const [state, set] = useState({});
  const load = () => get('/files', { limit: SHARED }).then((value) => set({ value }), (error) => set({ error }));
  useEffect(() => void load(), []);
  const { value, error } = state;
  if (error) return html`<${Trouble} error=${error} again=${load} />`;
  if (!value?.items.length) return null;
  return html`<h3>Shared with all chats</h3>
    <ul class="rows workspace" aria-label="Shared with all chats">${value.items.map((one) => {
      const place = `/shared/${one.path}`;
      const to = one.is_directory ? href('files', ...one.path.split('/')) : viewOf(place) && href('s', session, 'f', place);
      return html`<li key=${one.path}><${Icon} name=${one.is_directory ? 'folder' : iconOf(one.path)} />
        <div>${to ? html`<a href=${to} onClick=${onClose}><bdi>${plain(one.path)}</bdi></a>` : html`<bdi>${plain(one.path)}</bdi>`}
          <span class="muted">${!one.is_directory && `${bytes(one.bytes)} · `}<${Time} ms=${one.modified_ms} /></span></div>
        ${!one.is_directory && html`<a class="button quiet bare" href=${sharedUrl(one.path)} download=${one.path.split('/').pop()}
          aria-label=${`Download ${one.path}`} title="Download"><${Icon} name="download" /></a>`}</li>`;
    })}</ul>
    ${(value.next || value.incomplete) && html`<p class="muted"><a href=${href('files')} onClick=${onClose}>All shared files</a></p>`}`;
}
