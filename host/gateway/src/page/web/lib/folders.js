// The folders of a conversation: what its runs have changed there waits above the composer until it is applied or dropped.

import { html, useEffect, useState } from './preact.js';
import { get, part, post } from './api.js';
import { lines } from './diff.js';
import { bytes, plural, visible } from './format.js';
import { Badge, Button, Icon, confirm, toast } from './ui.js';

/** Changes, and lines of one, that are drawn. */
const SHOWN = 200;
const LINES = 400;

const WORDS = { added: 'Added', changed: 'Changed', deleted: 'Deleted', moved: 'Moved' };

/** `running`: whether a run works in the session. */
export function FolderBar({ session, running }) {
  const [folders, setFolders] = useState([]);
  const [open, setOpen] = useState(false);
  const load = async () => {
    const { items } = await get(`/sessions/${part(session)}/folders`);
    setFolders(items.filter((folder) => folder.changes.length > 0));
  };
  useEffect(() => {
    setOpen(false);
    setFolders([]);
  }, [session]);
  useEffect(() => {
    // Another run may have begun; its end loads them again.
    if (!running) load().catch(() => {});
  }, [session, running]);
  if (running || folders.length === 0) return null;
  return folders.map((folder) => html`<${Waiting} key=${folder.at} session=${session} folder=${folder} open=${open} onOpen=${setOpen} onChange=${load} />`);
}

function Waiting({ session, folder, open, onOpen, onChange }) {
  const all = folder.changes.length + folder.more;
  const deleted = folder.changes.reduce((sum, change) => sum + change.files, 0);
  const settle = async (way, paths) => {
    const { changes } = await post(`/sessions/${part(session)}/folders/${way}`, paths ? { at: folder.at, paths } : { at: folder.at });
    toast(way === 'accept' ? `${plural(changes, 'change')} applied to ${folder.path}. Send /undo to take them back.` : `${plural(changes, 'change')} dropped`, 'good');
    await onChange();
  };
  const apply = async () => {
    const marked = folder.changes.filter((change) => change.from_outside).length;
    const list = [
      deleted > 10 && `${plural(deleted, 'file')} will be deleted`,
      marked > 0 && `${plural(marked, 'change')} were decided by text from outside, or contain it`,
    ].filter(Boolean);
    const text = 'What is replaced or deleted is kept, and /undo puts it back.';
    if (list.length && !await confirm({ title: `Apply ${plural(all, 'change')} to ${folder.path}?`, text, list, action: 'Apply', danger: true })) return;
    await settle('accept');
  };
  const drop = async () => {
    const text = 'The folder stays as it is.';
    if (await confirm({ title: `Drop ${plural(all, 'change')}?`, text, action: 'Drop' })) await settle('discard');
  };
  return html`<section class="folder-bar card" aria-label=${`Changes to ${folder.path}`}>
    <div class="folder-head">
      <button type="button" class="folder-title" aria-expanded=${String(open)} onClick=${() => onOpen(!open)}>
        <${Icon} name="down" size=${16} /><span>${plural(all, 'change')} to <bdi>${visible(folder.path)}</bdi>${deleted > 0 && `, ${plural(deleted, 'file')} deleted`}</span></button>
      <${Button} kind="small" onClick=${drop}>Drop all<//>
      <${Button} kind="small primary" onClick=${apply}>Apply all<//>
    </div>
    ${open && html`<ul class="folder-changes">${folder.changes.slice(0, SHOWN).map((change) => html`<${Change} key=${change.path + change.change}
      session=${session} folder=${folder} change=${change} onApply=${() => settle('accept', [change.path])} onDrop=${() => settle('discard', [change.path])} />`)}
      ${all > SHOWN && html`<li class="muted">and ${all - SHOWN} more</li>`}</ul>`}
  </section>`;
}

function Change({ session, folder, change, onApply, onDrop }) {
  const [sides, setSides] = useState(null);
  const isText = change.change !== 'moved' && !change.is_directory;
  const look = async () => {
    setSides(sides ? null : await get(`/sessions/${part(session)}/folders/change`, { at: folder.at, path: change.path }));
  };
  const size = change.bytes_after ?? change.bytes_before;
  return html`<li>
    <div class="folder-change">
      <${Badge} kind=${change.change === 'deleted' ? 'bad' : ''}>${WORDS[change.change]}<//>
      <span class="folder-path">${change.from && html`<bdi>${visible(change.from)}</bdi> → `}<bdi>${visible(change.path)}${change.is_directory ? '/' : ''}</bdi>
        <span class="muted"> ${change.is_directory && change.files > 0 ? plural(change.files, 'file') : size !== undefined && bytes(size)}</span></span>
      ${change.from_outside && html`<${Badge} kind="warn">from outside<//>`}
      ${change.collision && html`<${Badge} kind="bad">${change.collision}<//>`}
      ${isText && html`<${Button} kind="small quiet" aria-expanded=${String(sides !== null)} aria-label=${`${sides ? 'Hide' : 'Show'} ${change.path}`} onClick=${look}>${sides ? 'Hide' : 'Show'}<//>`}
      <${Button} kind="small quiet" aria-label=${`Drop ${change.path}`} onClick=${onDrop}>Drop<//>
      ${!change.collision && html`<${Button} kind="small quiet" aria-label=${`Apply ${change.path}`} onClick=${onApply}>Apply<//>`}
    </div>
    ${sides && html`<${Sides} sides=${sides} />`}
  </li>`;
}

function Sides({ sides }) {
  const { before, after } = sides;
  if (before === null && after === null) return html`<p class="muted folder-note">This is not a short text.</p>`;
  const shown = lines(before ?? '', after ?? '').slice(0, LINES);
  const line = (one, at) => (one.skipped ? html`<span key=${at} class="diff-skipped">… ${plural(one.skipped, 'line')} …${'\n'}</span>`
    : html`<span key=${at} class=${{ '+': 'diff-new', '-': 'diff-old', ' ': '' }[one.sign]}>${one.sign} ${visible(one.text)}${'\n'}</span>`);
  return html`<pre class="folder-diff" tabindex="0" aria-label="Changed lines"><bdi>${shown.map(line)}</bdi></pre>`;
}
