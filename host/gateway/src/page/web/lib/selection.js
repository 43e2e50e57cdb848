// Selected sessions, for actions on all of them.

import { html, store, useEffect, useStore } from './preact.js';
import { isAdmin } from './api.js';
import { Button } from './ui.js';

/** Names of the selected sessions; null outside of selection mode. */
export const selection = store(null);

/** Starts selection mode with these names, or ends it with null. */
export const select = (names) => selection.set(names && new Set(names));

let last = null;

/** Selects or deselects a session; with `range`, all between it and the last one, in the order of `names`. */
export function tick(name, ticked, range, names) {
  const [from, to] = [names.indexOf(last), names.indexOf(name)].sort((a, b) => a - b);
  const meant = range && from >= 0 ? names.slice(from, to + 1) : [name];
  last = name;
  selection.set((old) => {
    const all = new Set(old);
    for (const one of meant) ticked ? all.add(one) : all.delete(one);
    return all;
  });
}

/** Actions on the selected sessions; `actions` are functions that receive their names. */
export function Selection({ actions: { place, remove } }) {
  const names = [...useStore(selection)];
  const none = names.length === 0;
  const end = () => select(null);
  useEffect(() => {
    const keys = (event) => {
      if (event.key === 'Escape' && !event.defaultPrevented && !document.querySelector('dialog[open]')) end();
    };
    document.addEventListener('keydown', keys);
    return () => document.removeEventListener('keydown', keys);
  }, []);
  const put = (placement) => async () => {
    await place(names, placement);
    end();
  };
  return html`<div class="sessions-selection" role="group" aria-label="Selected chats">
    <p role="status">${names.length} selected</p>
    <${Button} kind="quiet small" icon="pin" label="Pin" disabled=${none} onClick=${put('pinned')} />
    <${Button} kind="quiet small" icon="archive" label="Archive" disabled=${none} onClick=${put('archived')} />
    ${isAdmin() && html`<${Button} kind="quiet small" icon="trash" label="Delete" disabled=${none} onClick=${async () => await remove(names) && end()} />`}
    <${Button} kind="quiet small" icon="close" label="Stop selecting" onClick=${end} />
  </div>`;
}
