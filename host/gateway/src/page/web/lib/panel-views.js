// Views of a file: picture, pages, table, Markdown, text, audio or video. Nothing in a file is executed: HTML is shown as source,
// and SVG as a picture.

import { html, useEffect, useMemo, useRef, useState } from './preact.js';
import { HOW } from './ahead.js';
import { ApiError, fileUrl, get, isShared, me, part } from './api.js';
import { readCsv, readObjects } from './csv.js';
import { bytes, count, visible } from './format.js';
import { openImage } from './gallery.js';
import { endOf } from './kinds.js';
import { Markdown } from './markdown.js';
import { Busy, Button, Empty, Icon, Loaded } from './ui.js';
import { revert, undoneBy } from './undo.js';

/** Maximum size in bytes of a text that is loaded. */
const MOST_TEXT = 1_000_000;

/** Maximum number of rows that are read, and number of rows that are shown at a time. */
const MOST_ROWS = 20_000;
const ROWS = 200;

/** Languages of code, for file extensions with another name. */
const LANGUAGES = { mjs: 'js', cjs: 'js', htm: 'html', yml: 'yaml', h: 'c', cc: 'cpp', hpp: 'cpp', jsonl: 'json', ndjson: 'json', mk: 'makefile', patch: 'diff', log: '', text: '', txt: '', svg: 'xml' };

export function View({ view, ...file }) {
  switch (view) {
    // A different fragment makes the browser revalidate the picture.
    case 'picture': return html`<${Picture} key=${file.turn} src=${`${fileUrl(file.session, file.path)}#${file.turn}`} ...${file} />`;
    case 'page': case 'drawn': return html`<${Pages} ...${file} />`;
    case 'table': return html`<${Text} ...${file}>${(text, whole) => html`<${Rows} path=${file.path} rows=${readCsv(text, MOST_ROWS, whole)} />`}<//>`;
    case 'objects': return html`<${Text} ...${file}>${(text, whole) => html`<${Objects} path=${file.path} text=${text} whole=${whole} />`}<//>`;
    case 'markdown': return html`<${Text} ...${file}>${(text) => html`<${Markdown} text=${text} session=${file.session} base=${file.path.split('/').slice(0, -1).join('/')} />`}<//>`;
    case 'document': return html`<${Document} ...${file} />`;
    case 'text': return html`<${Text} ...${file}>${(text) => html`<${Source} text=${text} path=${file.path} />`}<//>`;
    case 'sound': return html`<audio controls preload="metadata" src=${fileUrl(file.session, file.path)}></audio>`;
    case 'video': return html`<video controls preload="metadata" src=${fileUrl(file.session, file.path)}></video>`;
    default: return html`<${NoPreview} ...${file} />`;
  }
}

const NoPreview = ({ session, path, why = 'This kind of file has no preview' }) => html`<${Empty} icon="file" title=${why}>
  <a class="button" href=${fileUrl(session, path)} download=${path.split('/').pop()}><${Icon} name="download" />Download<//><//>`;

/** A file that no longer exists. If an undo removed it, that can be redone. */
function Gone({ session, path, turn }) {
  const run = useFetched(() => (isShared(path) ? Promise.resolve(null) : undoneBy(session, path)), [session, path, turn]);
  if (run.value === undefined && !run.error) return html`<${Busy} />`;
  return run.value ? html`<${Empty} icon="undo" title="This file was undone"><${Button} icon="redo" onClick=${() => revert(run.value, 'redo', session)}>Redo<//><//>`
    : html`<${Empty} icon="file" title="This file is not there any more">It was deleted or renamed.<//>`;
}

/** Passes the content of a loaded file to `children`, or shows the error. */
const Read = ({ of, file, children }) => (of.error?.status === 404 ? html`<${Gone} ...${file} />` : html`<${Loaded} of=${of}>${children}<//>`);

/** A picture that the browser cannot show, or that does not exist. */
function NoPicture({ session, path, turn }) {
  const asked = useFetched((signal) => fetched(fileUrl(session, path), signal, 'HEAD'), [session, path, turn]);
  return html`<${Read} of=${asked} file=${{ session, path, turn }}>${() => html`<${NoPreview} session=${session} path=${path} why="This picture cannot be shown" />`}<//>`;
}

function Picture({ src, session, path, turn }) {
  const [broken, set] = useState(false);
  if (broken) return html`<${NoPicture} session=${session} path=${path} turn=${turn} />`;
  const name = path.split('/').pop();
  return html`<button type="button" class="panel-picture" aria-label=${`Open picture: ${visible(name)}`} onClick=${() => openImage([{ src, alt: name, name }])}>
    <img src=${src} alt="" decoding="async" onError=${() => set(true)} /></button>`;
}

/** Returns the result of `load(signal)`, or its error; loads again when `watched` changes. */
function useFetched(load, watched) {
  const [state, set] = useState({});
  const [turn, again] = useState(0);
  useEffect(() => {
    const ended = new AbortController();
    set((old) => ({ value: old.value }));
    load(ended.signal).then((value) => ended.signal.aborted || set({ value }), (error) => ended.signal.aborted || set({ error }));
    return () => ended.abort();
  }, [...watched, turn]);
  return { ...state, again: () => again(turn + 1) };
}

/** Requests something that is not JSON; throws the daemon's error. */
async function fetched(address, signal, method) {
  let answer;
  try {
    answer = await fetch(address, { ...HOW, method, headers: { ...HOW.headers, accept: '*/*' }, signal });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ApiError(0, { code: 'away', message: 'kiso isn’t responding', hint: 'kiso keeps trying' });
  }
  if (answer.ok) return answer;
  if (answer.status === 401) me.set(null);
  throw new ApiError(answer.status, (await answer.json().catch(() => null))?.error ?? { code: 'unknown', message: `the answer was ${answer.status}` });
}

/** Returns the shown part of a body as text. */
async function beginning(body) {
  const decoder = new TextDecoder();
  let [text, read] = ['', 0];
  while (read < MOST_TEXT) {
    const { value, done } = await body.read();
    if (done) return { text: text + decoder.decode(), read, whole: true };
    read += value.length;
    text += decoder.decode(value, { stream: true });
  }
  await body.cancel();
  return { text, read, whole: false };
}

/** The beginning of a text file, passed to `children(text, whole)`. */
function Text({ session, path, turn, children }) {
  const file = useFetched(async (signal) => {
    const answer = await fetched(fileUrl(session, path), signal);
    const { text, read, whole } = await beginning(answer.body.getReader());
    return { text, whole, total: Number(answer.headers.get('content-length')) || read };
  }, [session, path, turn]);
  return html`<${Read} of=${file} file=${{ session, path, turn }}>${({ text, whole, total }) => {
    if (text.includes('\0')) return html`<${NoPreview} session=${session} path=${path} why="This file is not text" />`;
    if (!text.trim()) return html`<${Empty} icon="file" title="This file is empty" />`;
    return html`${!whole && html`<p class="panel-note" role="note">The first ${bytes(MOST_TEXT)}${total > MOST_TEXT ? ` of ${bytes(total)}` : ''}</p>`}${children(text, whole)}`;
  }}<//>`;
}

/** A text as a block of code. */
function Source({ text, path }) {
  const end = endOf(path);
  const longest = Math.max(2, ...(text.match(/`{3,}/g) ?? []).map((ticks) => ticks.length));
  const fence = '`'.repeat(longest + 1);
  return html`<div class="panel-source"><${Markdown} text=${`${fence}${LANGUAGES[end] ?? end}\n${text.replace(/\n$/, '')}\n${fence}`} /></div>`;
}

function Objects({ path, text, whole }) {
  const rows = useMemo(() => (whole ? readObjects(text, MOST_ROWS) : null), [text]);
  return rows ? html`<${Rows} path=${path} rows=${rows} />` : html`<${Empty} icon="table" title="Not a table">Only a list of objects can be opened as a table.<//>`;
}

const NUMBER = /^\s*[-+−]?[\d.,\s]*\d(?:e[-+]?\d+)?\s*[%€$£]?\s*$/i;

/** A table whose first row contains the column names. */
function Rows({ path, rows }) {
  const [shown, show] = useState(ROWS);
  const [head = [], ...body] = rows;
  const numeric = useMemo(() => head.map((_, at) => {
    const some = body.slice(0, ROWS).map((row) => row[at] ?? '').filter(Boolean);
    return some.length > 0 && some.every((cell) => NUMBER.test(cell));
  }), [rows]);
  if (!head.length) return html`<${Empty} icon="table" title="No rows" />`;
  return html`<div class="reply-table panel-table"><div class="md-table" role="region" tabindex="0" aria-label=${`Rows of ${visible(path.split('/').pop())}`}><table>
      <thead><tr>${head.map((name, at) => html`<th key=${at} scope="col" class=${numeric[at] ? 'md-right' : ''}><bdi>${visible(name)}</bdi></th>`)}</tr></thead>
      <tbody>${body.slice(0, shown).map((row, of) => html`<tr key=${of}>${head.map((_, at) => html`<td key=${at} class=${numeric[at] ? 'md-right' : ''}><bdi>${visible(row[at] ?? '')}</bdi></td>`)}</tr>`)}</tbody>
    </table></div>
    <p class="muted">${shown < body.length ? `${count(shown)} of ${count(body.length)}${body.length >= MOST_ROWS - 1 ? ' or more' : ''} rows` : `${count(body.length)} ${body.length === 1 ? 'row' : 'rows'}`}
      ${shown < body.length && html` · <button type="button" class="link" onClick=${() => show(shown + 5 * ROWS)}>Show more</button>`}</p>
  </div>`;
}

/** Pages rendered by the sandbox, one at a time. */
function Pages({ session, path, turn }) {
  const [page, go] = useState(1);
  const last = useRef(null);
  const drawn = useFetched(async (signal) => {
    const answer = await fetched(`/sessions/${part(session)}/pages/${path.split('/').map(part).join('/')}?page=${page}`, signal);
    const pages = Number(answer.headers.get('x-kiso-pages')) || 1;
    return { src: URL.createObjectURL(await answer.blob()), pages, page };
  }, [session, path, page, turn]);
  const { value } = drawn;
  useEffect(() => {
    if (value && last.current !== value.src) {
      if (last.current) URL.revokeObjectURL(last.current);
      last.current = value.src;
    }
  }, [value]);
  useEffect(() => () => last.current && URL.revokeObjectURL(last.current), []);
  const pages = value?.pages ?? 1;
  const keys = (event) => {
    const by = { ArrowRight: 1, PageDown: 1, ArrowLeft: -1, PageUp: -1 }[event.key];
    if (!by || pages < 2 || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    go(Math.min(pages, Math.max(1, page + by)));
  };
  return html`<div class="panel-pages" role="group" aria-label="Pages" tabindex="0" onKeyDown=${keys}>
    ${pages > 1 && html`<p class="panel-turn"><${Button} kind="quiet" icon="chevron" class="button quiet bare back" label="Previous page" disabled=${page <= 1} onClick=${() => go(page - 1)} />
      <span role="status">Page ${page} of ${count(pages)}</span>
      <${Button} kind="quiet" icon="chevron" label="Next page" disabled=${page >= pages} onClick=${() => go(page + 1)} /></p>`}
    <${Read} of=${drawn} file=${{ session, path, turn }}>${(shown) => html`<div class=${shown.page === page ? '' : 'panel-waits'}>
      <img class="panel-page" src=${shown.src} alt=${`Page ${shown.page} of ${visible(path.split('/').pop())}`} />${shown.page !== page && html`<${Busy}>Drawing page ${page}…<//>`}</div>`}<//>
  </div>`;
}

/** The text of a document, part by part: sheets, slides or pages. */
function Document({ session, path, turn }) {
  const read = useFetched((signal) => get(`/sessions/${part(session)}/text/${path.split('/').map(part).join('/')}`, {}, signal), [session, path, turn]);
  return html`<${Read} of=${read} file=${{ session, path, turn }}>${({ parts, cut }) => html`
    ${cut && html`<p class="panel-note" role="note">Only the beginning is shown</p>`}
    ${parts.length === 0 && html`<${Empty} icon="file" title="This file has no text" />`}
    ${parts.map(({ label, text }, at) => html`<section class="panel-part" key=${at}>
      ${label && html`<h3>${visible(label)}</h3>`}<${Markdown} text=${text} session=${session} /></section>`)}`}<//>`;
}
