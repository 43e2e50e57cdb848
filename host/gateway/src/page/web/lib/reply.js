// A reply in parts: text, output of commands and programs, tables, and files. The daemon sends them as data.

import { html, useState } from './preact.js';
import { fileUrl } from './api.js';
import { Chips } from './chips.js';
import { count } from './format.js';
import { isPicture, openImage } from './gallery.js';
import { visible } from './inline.js';
import { Markdown } from './markdown.js';
import { withFiles } from './run-files.js';
import { Long } from './run-output.js';
import { Terminal } from './terminal.js';
import { Button, showDialog } from './ui.js';

/** Number of table rows that are shown at first. */
const ROWS = 40;

/** Maximum length in characters of a cell without line breaks. */
const SHORT = 28;

/** Returns the parts of a message and its files. Messages of older versions are parsed from their text. */
export function partsOf({ text, blocks, files, status }) {
  if (!status) {
    const read = withFiles(text);
    return { blocks: [{ type: 'text', text: read.text }], files: read.files };
  }
  const known = new Set((files ?? []).map((file) => file.path));
  // A model may list the files in its text that are shown as chips below.
  const shown = (block) => {
    if (block.type !== 'text') return block;
    const read = withFiles(block.text);
    return read.files.length && read.files.every(({ path }) => known.has(path)) ? { ...block, text: read.text } : block;
  };
  return { blocks: (blocks ?? [{ type: 'text', text }]).map(shown), files: files ?? [] };
}

export const Parts = ({ blocks, ...rest }) => blocks.map((block, at) => html`<${Part} key=${at} block=${block} ...${rest} />`);

function Part({ block, session, done, typed }) {
  switch (block.type) {
    case 'command': return html`<${Terminal} ...${block} done=${done} said=${block.command.trim() === typed} />`;
    case 'output': return html`<${Long} text=${block.text} label="Output" />`;
    case 'table': return html`<${Table} ...${block} />`;
    case 'partial': return html`<details class="chat-cut" open><summary>Partial reply</summary>
      <div class="chat-text"><${Markdown} text=${block.text} session=${session} /></div></details>`;
    default: return block.text && html`<div class="chat-text"><${Markdown} text=${block.text} session=${session} /></div>`;
  }
}

/** Rounds a number with more significant digits than anybody reads. */
const rounded = (number) => String(Number.isInteger(number) ? number : Number(number.toPrecision(6)));

function Table({ columns, rows, total }) {
  const [shown, show] = useState(ROWS);
  const numeric = columns.map((_, at) => rows.some((row) => typeof row[at] === 'number') && rows.every((row) => row[at] === null || typeof row[at] === 'number'));
  const side = (at) => (numeric[at] ? 'md-right' : '');
  const cell = (value) => visible(value === null ? '' : typeof value === 'number' ? rounded(value) : typeof value === 'object' ? JSON.stringify(value) : String(value));
  const look = (value, at) => `${side(at)} ${String(value ?? '').length < SHORT ? 'reply-short' : ''}`;
  const rest = Math.min(rows.length, total) - shown;
  return html`<div class="reply-table"><div class="md-table" role="region" tabindex="0" aria-label="Table"><table>
      <thead><tr>${columns.map((name, at) => html`<th key=${at} scope="col" class=${side(at)}><bdi>${visible(name)}</bdi></th>`)}</tr></thead>
      <tbody>${rows.slice(0, shown).map((row, of) => html`<tr key=${of}>${row.map((value, at) => html`<td key=${at} class=${look(value, at)}><bdi>${cell(value)}</bdi></td>`)}</tr>`)}</tbody>
    </table></div>
    ${(rest > 0 || total > rows.length || rows.length === 0) && html`<p class="muted">${rows.length ? `Showing ${count(Math.min(shown, rows.length))} of ${count(total)} rows` : 'No rows'}
      ${rest > 0 && html` · <button type="button" class="link" onClick=${() => show(rows.length)}>Show ${count(rows.length)}</button>`}</p>`}
  </div>`;
}

/** Extensions for versions of the same picture, best first. */
const FORMS = ['svg', 'png', 'webp', 'jpg', 'jpeg', 'gif'];

const form = (file) => FORMS.indexOf(file.path.split('.').pop().toLowerCase());
const stem = (file) => file.path.replace(/\.\w+$/, '');

/**
 * Returns whether the text already shows the file: a picture that it links to, or one drawn from a `chart` block with the same
 * title.
 */
function isShown(file, blocks) {
  return blocks.some(({ type, text }) => type === 'text'
    && (text.includes(`](${file.path})`) || text.includes(`](/work/${file.path})`)
      || (text.includes('```chart') && (!file.title || text.includes(JSON.stringify(file.title).slice(1, -1))))));
}

/** Pictures at full width, each once; all files as chips below. */
export function Made({ files, blocks, session, undone }) {
  const source = (file) => file.link ?? fileUrl(session, file.path);
  const best = new Map();
  for (const file of files.filter(isPicture)) {
    const known = best.get(stem(file));
    if (!known || form(file) < form(known)) best.set(stem(file), file);
  }
  const pictures = undone ? [] : [...best.values()].filter((file) => !isShown(file, blocks));
  const list = pictures.map((file) => ({ src: source(file), alt: file.title || file.path.split('/').pop(), name: file.path.split('/').pop() }));
  return html`<div class="made">
    ${list.map((one, at) => html`<${Picture} key=${one.src} one=${one} onOpen=${() => openImage(list, at)} />`)}
    <${Chips} files=${files} session=${session} undone=${undone} extra=${({ path }) => !undone && html`<${Button} kind="quiet small" icon="save" label=${`Save ${visible(path)} to a folder or to the shared files`} onClick=${() => saveTo(session, path)} />`} />
  </div>`;
}

/** Asks for the folder to save a file in. */
const saveTo = async (session, path) => {
  const { FolderSaver } = await import('./folder-chooser.js');
  showDialog(FolderSaver, { session, path });
};

function Picture({ one, onOpen }) {
  const [broken, set] = useState(false);
  if (broken) return null;
  const name = visible(one.alt);
  return html`<button type="button" class="made-picture" aria-label=${`Open picture: ${name}`} title=${name} onClick=${onOpen}>
    <img src=${one.src} alt="" decoding="async" onError=${() => set(true)} /></button>`;
}
