// The folders of a chat: pending changes of its runs are shown above the message field until they are applied or discarded.

import { html, useEffect, useState } from './preact.js';
import { get, part, post } from './api.js';
import { bytes, plural, visible } from './format.js';
import { Badge, Button, Icon, confirm, toast } from './ui.js';

/** Maximum number of changes that are shown. */
const SHOWN = 200;

const WORDS = { added: 'Added', changed: 'Changed', deleted: 'Deleted', moved: 'Moved', repository: 'Git' };

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
    // Another run may have started; the list is loaded again at its end.
    if (!running) load().catch(() => {});
  }, [session, running]);
  if (running || folders.length === 0) return null;
  return folders.map((folder) => html`<${Waiting} key=${folder.at} session=${session} folder=${folder} open=${open} onOpen=${setOpen} onChange=${load} />`);
}

function Waiting({ session, folder, open, onOpen, onChange }) {
  const { count: all, deleted, from_outside: marked } = folder;
  const settle = async (way, chosen = {}) => {
    const { changes } = await post(`/sessions/${part(session)}/folders/${way}`, { at: folder.at, ...chosen });
    const what = chosen.hunks ? plural(chosen.hunks.length, 'hunk') : plural(changes, 'change');
    const undo = async () => {
      await post(`/sessions/${part(session)}/folders/undo`, {});
      toast(`${folder.path} is as it was before`, 'good');
      await onChange();
    };
    if (way === 'accept') toast(`${what} applied to ${folder.path}`, 'good', '', { label: 'Undo', run: undo });
    else toast(`${what} dropped`, 'good');
    await onChange();
  };
  const apply = async () => {
    const list = [
      deleted > 10 && `${plural(deleted, 'file')} will be deleted`,
      marked > 0 && `${plural(marked, 'change')} were decided by text from outside, or contain it`,
    ].filter(Boolean);
    const text = 'What is replaced or deleted is kept, and can be undone.';
    if (list.length && !await confirm({ title: `Apply ${plural(all, 'change')} to ${folder.path}?`, text, list, action: 'Apply', danger: true })) return;
    await settle('accept');
  };
  const drop = async () => {
    const text = 'The folder stays as it is.';
    if (await confirm({ title: `Drop ${plural(all, 'change')}?`, text, action: 'Drop' })) await settle('discard');
  };
  const more = Math.max(0, folder.changes.length - SHOWN) + folder.more;
  return html`<section class="folder-bar card" aria-label=${`Changes to ${folder.path}`}>
    <div class="folder-head">
      <button type="button" class="folder-title" aria-expanded=${String(open)} onClick=${() => onOpen(!open)}>
        <${Icon} name="down" size=${16} /><span>${plural(all, 'change')} to <bdi>${visible(folder.path)}</bdi>${deleted > 0 && `, ${plural(deleted, 'file')} deleted`}</span></button>
      <${Button} kind="small" onClick=${drop}>Drop all<//>
      <${Button} kind="small primary" onClick=${apply}>Apply all<//>
    </div>
    ${open && html`<ul class="folder-changes">${folder.changes.slice(0, SHOWN).map((change) => html`<${Change} key=${(change.group?.id ?? change.path) + change.change}
      session=${session} folder=${folder} change=${change} onSettle=${settle} />`)}
      ${more > 0 && html`<li class="muted">and ${more} more</li>`}</ul>`}
  </section>`;
}

/** A file, a directory, a group of similar files, or a git repository. */
function Change({ session, folder, change, onSettle }) {
  const { group, repository } = change;
  const [view, setView] = useState(null);
  // In a newly loaded list, the file may have another state.
  useEffect(() => setView(null), [change]);
  const name = group ? groupName(change) : change.path;
  const what = group ? { groups: [group.id] } : { paths: [change.path] };
  const canShow = group || repository?.newest.length > 0 || repository?.settings.length > 0 || (!repository && change.change !== 'moved' && !change.is_directory);
  const look = async () => {
    if (view) return setView(null);
    if (group) return setView({});
    const { Sides } = await import('./folder-sides.js');
    const sidesOf = (path) => get(`/sessions/${part(session)}/folders/change`, { at: folder.at, path });
    if (!repository) return setView({ sides: await sidesOf(change.path), Sides });
    const settings = await Promise.all(repository.settings.map(async (path) => ({ path, sides: await sidesOf(path), Sides })));
    return setView({ settings });
  };
  return html`<li>
    <div class="folder-change">
      <${Badge} kind=${change.change === 'deleted' ? 'bad' : ''}>${WORDS[change.change]}<//>
      <span class="folder-path">${!group && change.from && html`<bdi>${visible(change.from)}</bdi> → `}<bdi>${visible(name)}${change.is_directory && !group && !repository ? '/' : ''}</bdi>
        <span class="muted"> ${note(change)}</span></span>
      ${change.from_outside && html`<${Badge} kind="warn">from outside<//>`}
      ${change.collision && html`<${Badge} kind="bad">${visible(change.collision)}<//>`}
      ${canShow && html`<${Button} kind="small quiet" aria-expanded=${String(view !== null)} aria-label=${`${view ? 'Hide' : 'Show'} ${name}`} onClick=${look}>${view ? 'Hide' : 'Show'}<//>`}
      <${Button} kind="small quiet" aria-label=${`Drop ${name}`} onClick=${() => onSettle('discard', what)}>Drop<//>
      ${!change.collision && html`<${Button} kind="small quiet" aria-label=${`Apply ${name}`} onClick=${() => onSettle('accept', what)}>Apply<//>`}
    </div>
    ${view?.Sides && html`<${view.Sides} session=${session} at=${folder.at} change=${change} sides=${view.sides}
      onHunk=${(number) => onSettle('accept', { paths: [change.path], hunks: [number], revision: view.sides.revision })} />`}
    ${view && group && html`<p class="muted folder-note">${group.first.map((one) => html`<bdi>${visible(one)}</bdi>, `)}…</p>`}
    ${view && repository && html`<ul class="folder-commits">${repository.newest.map((one) => html`<li key=${one.id}><code>${one.id.slice(0, 7)}</code> <bdi>${visible(one.subject)}</bdi></li>`)}
      ${view.settings.map(({ path, sides, Sides }) => html`<li key=${path}><bdi>${visible(path)}</bdi>
        <${Sides} session=${session} at=${folder.at} change=${{ path, change: 'repository' }} sides=${sides} /></li>`)}
      ${repository.commits > repository.newest.length && html`<li class="muted">and ${repository.commits - repository.newest.length} more</li>`}</ul>`}
  </li>`;
}

/** Returns a pattern for the files of a group: "in/*.pdf → pdf/". */
function groupName({ path, from, group }) {
  const [only, ...others] = group.endings;
  const names = only?.ending && others.length === 0 ? `*.${only.ending}` : '*';
  const inside = (dir) => (dir ? `${dir}/` : '');
  return from === undefined ? `${inside(path)}${names}` : `${inside(from)}${names} → ${inside(path) || names}`;
}

/** Summarizes the size of a change. */
function note({ group, repository, is_directory: isDirectory, files, bytes_before: before, bytes_after: after }) {
  if (repository) return visible(repository.summary);
  if (group) {
    const kinds = group.endings.length > 1 && group.endings.slice(0, 3).map((one) => `${one.files} ${one.ending ? visible(one.ending) : 'without an ending'}`).join(', ');
    return [plural(group.files, 'file'), bytes(group.bytes), kinds].filter(Boolean).join(', ');
  }
  if (isDirectory) return files > 0 && plural(files, 'file');
  if (before !== undefined && after !== undefined && before !== after) return `${bytes(before)} → ${bytes(after)}`;
  return (after ?? before) !== undefined && bytes(after ?? before);
}
