// A file beside the chat: its preview, its earlier versions, and actions. On a phone it covers the chat.

import { html, useEffect, useRef, useState, useStore } from './preact.js';
import { fileUrl, get, isShared, part } from './api.js';
import { visible } from './format.js';
import { endOf, iconOf, viewOf } from './kinds.js';
import { View } from './panel-views.js';
import { href, route } from './router.js';
import { revert, reverts } from './undo.js';
import { Button, Dialog, Empty, Icon, Loaded, Time, showDialog } from './ui.js';

/** Alternative views of a file, by its view: the name of the alternative, and the label of its button. */
const OTHER = {
  table: { text: 'Show as text', table: 'Open as table' },
  markdown: { text: 'Show the source', markdown: 'Show as page' },
  page: { document: 'Show the text', page: 'Show the pages' },
};

const otherOf = (path) => {
  const view = viewOf(path);
  if (view === 'picture' && endOf(path) === 'svg') return { text: 'Show the source', picture: 'Show as picture' };
  if (view === 'text' && endOf(path) === 'json') return { objects: 'Open as table', text: 'Show as text' };
  return OTHER[view] ?? null;
};

/** A file of a session, or a shared one. `onClose` closes the panel; without it, the panel closes with the address. */
export function Panel({ session, path, onClose }) {
  const first = viewOf(path);
  const other = otherOf(path);
  const [view, show] = useState(first);
  const panel = useRef(null);
  const shared = isShared(path);
  // An undo, a redo or another run may change the file.
  const turn = useStore(reverts, (all) => all[session]?.turn ?? 0);
  const close = () => {
    if (onClose) return onClose();
    // The back button skips files that were opened in between.
    history.replaceState(null, '', href('s', session));
    return route.set(['s', session]);
  };
  useEffect(() => {
    const [before, shown] = [document.activeElement, panel.current];
    shown.focus({ preventScroll: true });
    return () => {
      // The user has moved the focus elsewhere.
      if (document.activeElement !== document.body && !shown.contains(document.activeElement)) return;
      // After a reload, there is no element to return the focus to.
      const back = before?.isConnected && before !== document.body ? before : document.querySelector('.composer textarea');
      back?.focus({ preventScroll: true });
    };
  }, []);
  useEffect(() => {
    const keys = (event) => {
      if (event.key !== 'Escape' || event.defaultPrevented || document.querySelector('dialog[open]') || event.target.closest?.('.menu, .composer, .sidebar')) return;
      event.preventDefault();
      close();
    };
    document.addEventListener('keydown', keys);
    return () => document.removeEventListener('keydown', keys);
  }, []);
  const name = path.split('/').pop();
  const next = other && Object.keys(other).find((way) => way !== view);
  const saveTo = async () => {
    const { FolderSaver } = await import('./folder-chooser.js');
    showDialog(FolderSaver, { session, path });
  };
  return html`<aside class="panel" ref=${panel} tabindex="-1" aria-label=${`File: ${visible(path)}`}>
    <header class="panel-head">
      <${Icon} name=${iconOf(path)} />
      <h2 title=${visible(path)}><bdi>${visible(name)}</bdi></h2>
      ${next && html`<${Button} kind="quiet small" onClick=${() => show(next)}>${other[next]}<//>`}
      ${!shared && html`<${Button} kind="quiet" icon="clock" label="Versions" onClick=${() => showDialog(Versions, { session, path })} />
        <${Button} kind="quiet" icon="save" label="Save to a folder or to the shared files" onClick=${saveTo} />`}
      <a class="button quiet bare" href=${fileUrl(session, path)} download=${name} aria-label=${`Download ${visible(name)}`} title="Download"><${Icon} name="download" /></a>
      <${Button} kind="quiet" icon="close" label="Close the file" onClick=${close} />
    </header>
    <div class="panel-body"><${View} key=${view} view=${view} session=${session} path=${path} turn=${turn} /></div>
  </aside>`;
}

/** Number of runs whose changed files are requested. */
const MOST_RUNS = 20;

/** The runs that changed a file, newest first; each can be undone. */
function Versions({ session, path, onClose }) {
  const [state, set] = useState({});
  const load = async () => {
    set({});
    try {
      const { items } = await get(`/sessions/${part(session)}/undo`, { limit: MOST_RUNS });
      const plans = await Promise.all(items.filter(({ kind, run }) => kind === 'undo' && run)
        .map(async (one) => ({ ...one, changes: (await get(`/runs/${part(one.run)}/undo`, { kind: 'undo' })).changes })));
      set({ value: plans.filter(({ changes }) => changes.some((one) => one.path.replace(/^\/work\//, '') === path)) });
    } catch (error) {
      if (error.status === 404) set({ value: [] });
      else set({ error });
    }
  };
  useEffect(() => void load(), []);
  const undo = (run) => {
    onClose();
    return revert(run, 'undo', session);
  };
  return html`<${Dialog} title=${html`Versions of <bdi>${visible(path)}</bdi>`} onClose=${onClose}>
    <${Loaded} of=${{ ...state, again: load }}>${(runs) => (runs.length
      ? html`<ul class="rows workspace" aria-label="Versions">${runs.map(({ run, at_ms }) => html`<li key=${run}><${Icon} name="clock" />
          <div><a href=${href('run', run)} onClick=${onClose}>Before the changes of this run</a> <span class="muted"><${Time} ms=${at_ms} /></span></div>
          <${Button} kind="small" icon="undo" onClick=${() => undo(run)}>Put back…<//></li>`)}</ul>`
      : html`<${Empty} icon="clock" title="No earlier version">Files are kept as they were before a run changed them.<//>`)}<//>
  <//>`;
}
