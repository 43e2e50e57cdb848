// The files that all chats share, which tasks see at /shared.

import { html, useEffect, useRef, useState, useStore } from '../lib/preact.js';
import { del, get, part, post, request, sharedUrl } from '../lib/api.js';
import { Beside, useNarrow } from '../lib/beside.js';
import { bytes } from '../lib/format.js';
import { iconOf, viewOf } from '../lib/kinds.js';
import { Pages, usePages } from '../lib/pages.js';
import { href, route } from '../lib/router.js';
import { Badge, Button, Empty, Icon, Said, ScreenHead, Time, announce, confirm, report, toast } from '../lib/ui.js';
import { foldersOf } from '../lib/upload-folder.js';
import { filesOf } from '../lib/uploads.js';

const PAGE = 100;

const nameOf = (path) => path.split('/').pop();

/** Returns the path of a shared file for tasks and the panel. */
const placeOf = (path) => `/shared/${path}`;

export default function Screen() {
  const dir = useStore(route, (parts) => parts.slice(1).join('/'));
  const pages = usePages((before, signal) => get('/files', { path: dir, before, limit: PAGE }, signal), [dir]);
  const [sending, setSending] = useState('');
  const [opened, open] = useState(null);
  useEffect(() => open(null), [dir]);
  const narrow = useNarrow();
  const chooser = useRef(null);
  const upload = async (files) => {
    const done = [];
    for (const [at, file] of files.entries()) {
      setSending(`Uploading ${file.name}${files.length > 1 ? ` (${at + 1} of ${files.length})` : ''}…`);
      try {
        const change = await send(file, dir);
        if (change) done.push(change);
      } catch (error) {
        report(error);
      }
    }
    setSending('');
    pages.reload();
    if (done.length === 1) toast('Uploaded', 'good', '', undo(done[0], 'The upload is undone'));
    else if (done.length) toast(`${done.length} files uploaded`, 'good');
  };
  /** The button that undoes a change. */
  const undo = ({ session, run }, words) => ({
    label: 'Undo',
    run: async () => {
      await post(`/sessions/${part(session)}/undo`, { run });
      pages.reload();
      announce(words);
    },
  });
  const picked = async ({ target }) => {
    const files = [...target.files];
    target.value = '';
    await upload(files);
  };
  const over = useDropped(upload);
  const remove = async (one) => {
    const name = nameOf(one.path);
    const text = `${one.is_directory ? 'Everything in it is deleted' : 'It is deleted'} for all chats. You can undo this.`;
    if (!await confirm({ title: `Delete “${name}”?`, text, action: 'Delete' })) return;
    const change = await del(sharedUrl(one.path));
    pages.change((items) => items.filter((other) => other.path !== one.path));
    if (opened === one.path) open(null);
    document.querySelector('#main h1')?.focus();
    toast(`“${name}” is deleted`, 'good', '', undo(change, `${name} is back`));
  };
  const empty = dir ? html`<${Empty} icon="folder" title="This directory is empty">Drop files here to upload them.<//>`
    : html`<${Empty} icon="folder" title="No shared files yet">Upload files, or ask kiso to put something in /shared: “put milk on my shopping list in /shared”.<//>`;
  return html`<div class=${`screen ${opened ? 'beside' : ''}`} inert=${Boolean(opened) && narrow}>
    <${ScreenHead} title="Shared files" about="All chats see these files. Tasks find them at /shared.">
      <${Button} kind="primary" icon="attach" busy=${Boolean(sending)} onClick=${() => chooser.current.click()}>Upload files<//><//>
    <input ref=${chooser} type="file" multiple hidden aria-label="Files to upload" onChange=${picked} />
    ${dir && html`<${Path} dir=${dir} />`}
    ${sending && html`<p class="busy" role="status"><span class="spinner" aria-hidden="true"></span><${Said}>${sending}<//></p>`}
    <${Pages} of=${pages} empty=${empty}>${(items) => html`<ul class="card lists-rows" aria-label="Shared files" aria-busy=${pages.loading ? 'true' : undefined}>
      ${items.map((one) => html`<${Line} key=${one.path} of=${one} onOpen=${open} onRemove=${remove} />`)}</ul>`}<//>
    ${pages.first?.incomplete && html`<p class="muted">This directory has more entries than are shown here.</p>`}
    ${over && html`<div class="lists-over"><p><${Icon} name="folder" size=${40} /><span class="strong">Drop files to share them with all chats</span></p></div>`}
  </div>
  ${opened && html`<${Beside} key=${opened} path=${placeOf(opened)} onClose=${() => open(null)} onFail=${() => open(null)} />`}`;
}

/** The open directory, with links to its parents. */
function Path({ dir }) {
  const names = dir.split('/');
  return html`<nav class="lists-path" aria-label="Directory"><a href=${href('files')}>Shared files</a>
    ${names.map((name, at) => html`<${Icon} key=${`${at}>`} name="chevron" size=${14} />
      ${at + 1 < names.length ? html`<a key=${at} href=${href('files', ...names.slice(0, at + 1))}><${Said}>${name}<//></a>`
    : html`<span key=${at} class="strong" aria-current="page"><${Said}>${name}<//></span>`}`)}</nav>`;
}

function Line({ of, onOpen, onRemove }) {
  const name = nameOf(of.path);
  const beside = (event) => {
    // With a modifier key, the browser opens another tab.
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    onOpen(of.path);
  };
  const place = of.is_directory ? { href: href('files', ...of.path.split('/')) } : { href: sharedUrl(of.path), ...(viewOf(placeOf(of.path)) ? { onClick: beside } : { download: name }) };
  return html`<li>
    <div class="lists-file"><${Icon} name=${of.is_directory ? 'folder' : iconOf(of.path)} label=${of.is_directory ? 'Directory' : undefined} />
      <div><a ...${place}><${Said}>${name}<//></a>
        <p class="lists-marks">${!of.is_directory && html`<span>${bytes(of.bytes)}</span>`}<${Time} ms=${of.modified_ms} />
          ${of.from_outside && html`<${Badge} kind="warn">from outside<//>`}</p></div></div>
    <span class="lists-acts">
      ${!of.is_directory && html`<a class="button quiet bare" href=${sharedUrl(of.path)} download=${name} aria-label=${`Download ${name}`} title="Download"><${Icon} name="download" /></a>`}
      <${Button} kind="quiet" icon="trash" label=${`Delete ${name}`} onClick=${() => onRemove(of)} /></span>
  </li>`;
}

/** Uploads a file to a directory; asks before it replaces one. Returns the change, or null if it is cancelled. */
async function send(file, dir) {
  const name = safeName(file.name);
  const path = sharedUrl(dir ? `${dir}/${name}` : name);
  const raw = new Blob([file], { type: 'application/octet-stream' });
  try {
    return await request('PUT', path, { raw });
  } catch (error) {
    if (error.code !== 'taken') throw error;
    if (!await confirm({ title: `Replace “${name}”?`, text: 'Something with this name is there already. You can undo this.', action: 'Replace' })) return null;
    return request('PUT', path, { raw, query: { replace: true } });
  }
}

/** Returns a valid name: not hidden, without control characters and slashes. */
const safeName = (name) => name.normalize('NFC').replace(/[\p{C}\\/]+/gu, '-').replace(/^[.\s]+/, '') || 'file';

/** Handles files that are dropped anywhere on the page. Returns whether some are held over it. */
function useDropped(take) {
  const [over, set] = useState(false);
  const last = useRef(take);
  last.current = take;
  useEffect(() => {
    let depth = 0;
    const carries = (event) => event.dataTransfer?.types.includes('Files') && !document.querySelector('dialog[open]');
    const enter = (event) => {
      if (!carries(event)) return;
      event.preventDefault();
      event.dataTransfer.dropEffect = 'copy';
      depth += event.type === 'dragenter' ? 1 : 0;
      set(true);
    };
    const leave = (event) => {
      if (!carries(event)) return;
      depth -= 1;
      if (depth <= 0) set(false);
    };
    const drop = (event) => {
      if (!carries(event)) return;
      event.preventDefault();
      depth = 0;
      set(false);
      if (foldersOf(event.dataTransfer).length) toast('Folders can’t be shared as a whole', 'bad', 'Drop the files themselves, or a zip archive.');
      last.current(filesOf(event.dataTransfer)).catch(report);
    };
    const listeners = Object.entries({ dragenter: enter, dragover: enter, dragleave: leave, drop });
    for (const [name, listener] of listeners) document.addEventListener(name, listener);
    return () => {
      for (const [name, listener] of listeners) document.removeEventListener(name, listener);
    };
  }, []);
  return over;
}
