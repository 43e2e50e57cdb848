// Folders that an administrator lists in config.toml, for opening in a chat; loaded on demand.

import { html, useEffect, useState } from './preact.js';
import { get, isAdmin, part, post } from './api.js';
import { plain } from './run-text.js';
import { titleOf } from './sessions.js';
import { Badge, Busy, Button, Dialog, Empty, Icon, Trouble, toast } from './ui.js';

/** The entry for the shared files in the list of destinations. */
const SHARED = { name: 'shared', title: 'Shared files', about: 'seen by all chats', available: true };

/** Saves a file of the workspace in a folder. `path` is the file. */
export function FolderSaver({ session, path, onClose }) {
  const [state, set] = useState({ items: null, error: null });
  const load = async () => {
    try {
      const { items } = await get('/folders');
      set({ items: [SHARED, ...items.filter((one) => one.write)], error: null });
    } catch (error) {
      set((old) => ({ ...old, error }));
    }
  };
  useEffect(() => { load(); }, []);
  const save = async ({ name: folder, title }) => {
    const { name } = await post(`/sessions/${part(session)}/deliver`, { file: path, folder });
    // A change of the shared files is one of the session's undo entries. It is read now, because a run may follow before the
    // button is pressed.
    const { items: [change] } = folder === SHARED.name ? await get(`/sessions/${part(session)}/undo`, { limit: 1 }) : { items: [] };
    const undo = async () => {
      if (change) await post(`/sessions/${part(session)}/undo`, { run: change.run });
      else await post(`/sessions/${part(session)}/folders/undo`, {});
      toast(`“${plain(name)}” in ${title ?? folder} is as it was before`, 'good');
    };
    toast(`Saved as “${plain(name)}” in ${title ?? folder}`, 'good', '', { label: 'Undo', run: undo });
    onClose();
  };
  const { items, error } = state;
  return html`<${Dialog} title=${html`Save <bdi>${plain(path.split('/').pop())}</bdi>`} onClose=${onClose}>
    ${error && html`<${Trouble} error=${error} again=${load} />`}
    ${!items && !error && html`<${Busy} />`}
    ${items && html`<ul class="rows workspace" aria-label="Folders">${items.map((one) => html`<li key=${one.name}>
      <${Icon} name="folder" />
      <div><bdi>${one.title ?? one.name}</bdi> ${(one.path || one.about || !one.available) && html`<span class="muted"><bdi>${one.about ?? plain(one.path ?? '')}</bdi>${!one.available && ' · not connected'}</span>`}</div>
      <${Button} kind="small primary" aria-label=${`Save in ${one.title ?? one.name}`} disabled=${!one.available} onClick=${() => save(one)}>Save<//>
    </li>`)}</ul>`}
  <//>`;
}

export function FolderChooser({ session, onClose }) {
  const [state, set] = useState({ items: null, error: null });
  const load = async () => {
    try {
      const { items } = await get('/folders', { session });
      set({ items, error: null });
    } catch (error) {
      set((old) => ({ ...old, error }));
    }
  };
  useEffect(() => { load(); }, [session]);
  const open = async ({ name }) => {
    const { at } = await post(`/sessions/${part(session)}/folders`, { name });
    toast(`${name} is open at ${at}. Its files change only when you apply the difference.`, 'good');
    await load();
  };
  const close = async ({ name, at }) => {
    await post(`/sessions/${part(session)}/folders/close`, { at });
    toast(`${name} is closed`, 'good');
    await load();
  };
  const { items, error } = state;
  const none = isAdmin() ? 'As an administrator, you choose in config.toml which folders of this machine can be opened in a chat.'
    : 'An administrator chooses which folders of this machine can be opened in a chat.';
  return html`<${Dialog} title=${html`Folders for <bdi>${titleOf(session)}</bdi>`} onClose=${onClose}>
    ${error && html`<${Trouble} error=${error} again=${load} />`}
    ${!items && !error && html`<${Busy} />`}
    ${items?.length === 0 && html`<${Empty} icon="folder" title="No folder can be opened yet">${none}<//>`}
    ${items?.length > 0 && html`<ul class="rows workspace" aria-label="Folders">${items.map((one) => html`<li key=${one.name}>
      <${Icon} name="folder" />
      <div><span><bdi>${one.name}</bdi> ${!one.write && html`<${Badge}>read only<//>`}</span>
        <span class="muted">${one.path && html`<bdi>${plain(one.path)}</bdi>`}${one.at && html`${one.path && ' · '}open at ${one.at}`}${!one.available && ' · not connected'}</span></div>
      ${one.at ? html`<${Button} kind="small" aria-label=${`Close ${one.name}`} onClick=${() => close(one)}>Close<//>`
        : html`<${Button} kind="small primary" aria-label=${`Open ${one.name}`} disabled=${!one.available} onClick=${() => open(one)}>Open<//>`}
    </li>`)}</ul>`}
  <//>`;
}
