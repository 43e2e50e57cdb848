// Both sides of a changed file: pictures side by side, tables row by row, texts hunk by hunk.

import { html, useState } from './preact.js';
import { part } from './api.js';
import { align } from './diff.js';
import { bytes, plural, visible } from './format.js';
import { Button } from './ui.js';

/** Maximum number of lines of all hunks, of rows and columns of a table, and of characters in a cell. */
const LINES = 1_000;
const ROWS = 200;
const COLUMNS = 30;
const CELL = 120;

/** Maximum number of rows that are compared. */
const MOST_ROWS = 10_000;

const SEPARATORS = { csv: ',', tsv: '\t' };

/** `onHunk(number)` applies one hunk. */
export function Sides({ session, at, change, sides, onHunk }) {
  const [asLines, setAsLines] = useState(false);
  const kinds = [sides.before_kind, sides.after_kind];
  if (kinds.includes('picture')) return html`<${Pictures} session=${session} at=${at} change=${change} sides=${sides} />`;
  if (kinds.includes('binary') || sides.hunks.length === 0) return html`<p class="muted folder-note">${described(change, kinds)}</p>`;
  const separator = SEPARATORS[change.path.split('.').pop().toLowerCase()];
  const rows = separator && tableRows(sides.before ?? '', sides.after ?? '', separator);
  const hunks = html`<${Hunks} change=${change} sides=${sides} onHunk=${onHunk} />`;
  if (!rows) return hunks;
  return html`<div>${asLines ? hunks : html`<${Table} rows=${rows} />`}
    <${Button} kind="small quiet" onClick=${() => setAsLines(!asLines)}>${asLines ? 'Show as table' : 'Show as lines'}<//></div>`;
}

/** Describes a file that is neither text nor picture. */
function described({ path, bytes_before: before, bytes_after: after }, kinds) {
  const ending = /\.([^./]+)$/.exec(path)?.[1];
  const size = [before, after].filter((one) => one !== undefined).map(bytes).join(' → ');
  if (!kinds.includes('binary')) return kinds.includes('text') ? `No line of it differs. ${size}` : 'It is not shown.';
  return `This is not a short text${ending ? `, but a file of the kind “${visible(ending)}”` : ''}. ${size}`;
}

function Pictures({ session, at, change, sides }) {
  const both = [['before', 'Before', sides.before_kind, change.bytes_before], ['after', 'After', sides.after_kind, change.bytes_after]];
  return html`<div class="folder-pictures">${both.filter(([, , kind]) => kind).map(([side, title, kind, size]) => html`<${Picture} key=${side}
    title=${title} size=${size} name=${change.path} src=${kind === 'picture' && url(session, at, change.path, side)} />`)}</div>`;
}

const url = (session, at, path, side) => `/sessions/${part(session)}/folders/side?${new URLSearchParams({ at, path, side })}`;

function Picture({ title, size, name, src }) {
  const [seen, setSeen] = useState('');
  const load = ({ target }) => setSeen(`${target.naturalWidth} × ${target.naturalHeight}`);
  return html`<figure>
    ${src && html`<img src=${src} alt=${`${title}: ${visible(name)}`} decoding="async" onLoad=${load} onError=${() => setSeen('cannot be shown')} />`}
    <figcaption class="muted">${[title, src ? seen : 'not a picture', size !== undefined && bytes(size)].filter(Boolean).join(', ')}</figcaption>
  </figure>`;
}

function Hunks({ change, sides, onHunk }) {
  const canChoose = change.change === 'changed' && !change.collision && sides.hunks.length > 1;
  let left = LINES;
  const shown = sides.hunks.map((hunk) => {
    const lines = hunk.lines.slice(0, Math.max(0, left));
    left -= lines.length;
    return { ...hunk, lines, more: hunk.lines.length - lines.length };
  });
  return html`<div class="folder-diff" tabindex="0" role="group" aria-label="Changed lines">${shown.filter((hunk) => hunk.lines.length > 0).map((hunk, at) => html`<div key=${at} class="folder-hunk">
    <div class="folder-hunk-head"><code class="diff-skipped">${hunk.header}</code>
      ${canChoose && html`<${Button} kind="small quiet" aria-label=${`Apply hunk ${at + 1} of ${change.path}`} onClick=${() => onHunk(at + 1)}>Apply hunk<//>`}</div>
    <pre><bdi>${hunk.lines.map((line, number) => html`<span key=${number} class=${{ '+': 'diff-new', '-': 'diff-old', ' ': '' }[line[0]]}>${line[0]} ${visible(line.slice(1))}${'\n'}</span>`)}</bdi></pre>
    ${hunk.more > 0 && html`<p class="muted">and ${plural(hunk.more, 'line')} more</p>`}
  </div>`)}${left <= 0 && html`<p class="muted">Only the first ${LINES} lines are shown.</p>`}</div>`;
}

/**
 * Compares two tables row by row: `{header, rows: [{kind, before, after} | {skipped}], more}`. Returns `null` if these are not
 * tables. A removed row next to an added one counts as a changed row.
 */
export function tableRows(before, after, separator) {
  const [old, now] = [cells(before, separator), cells(after, separator)];
  if (Math.max(old.length, now.length) > MOST_ROWS || Math.max(old[0]?.length ?? 0, now[0]?.length ?? 0) < 2) return null;
  const pairs = align(old, now, (row) => row.join('\u0000'));
  const rows = [];
  let [removed, added] = [[], []];
  const settle = () => {
    for (let at = 0; at < Math.max(removed.length, added.length); at += 1) {
      const kind = removed[at] && added[at] ? 'changed' : removed[at] ? 'removed' : 'added';
      rows.push({ kind, before: removed[at], after: added[at] });
    }
    [removed, added] = [[], []];
  };
  for (const [left, right] of pairs) {
    if (left === undefined) added.push(right);
    else if (right === undefined) removed.push(left);
    else {
      settle();
      if (rows.at(-1)?.skipped) rows.at(-1).skipped += 1;
      else rows.push({ skipped: 1 });
    }
  }
  settle();
  return { header: (now[0] ?? old[0]).slice(0, COLUMNS), rows: rows.slice(0, ROWS), more: Math.max(0, rows.length - ROWS) };
}

/** Returns the rows of a table with separated values (RFC 4180). */
function cells(text, separator) {
  const rows = [];
  let [row, cell, quoted] = [[], '', false];
  const end = () => {
    row.push(cell);
    cell = '';
  };
  for (let at = 0; at < text.length; at += 1) {
    const sign = text[at];
    if (quoted) {
      if (sign !== '"') cell += sign;
      else if (text[at + 1] === '"') cell += text[at += 1];
      else quoted = false;
    } else if (sign === '"' && cell === '') quoted = true;
    else if (sign === separator) end();
    else if (sign === '\n') {
      end();
      rows.push(row);
      row = [];
    } else if (sign !== '\r' || text[at + 1] !== '\n') cell += sign;
  }
  if (cell !== '' || row.length > 0) {
    end();
    rows.push(row);
  }
  return rows;
}

const CLASSES = { added: 'diff-new', removed: 'diff-old', changed: 'folder-row-changed' };
const SIGNS = { added: '+', removed: '−', changed: '±' };
const SPOKEN = { added: 'added', removed: 'removed', changed: 'changed' };

function Table({ rows: { header, rows, more } }) {
  const shown = (text) => visible((text ?? '').length > CELL ? `${text.slice(0, CELL)}…` : text ?? '');
  const cell = (row, at) => {
    const [before, after] = [row.before?.[at], row.after?.[at]];
    if (row.kind !== 'changed' || before === after) return shown(after ?? before);
    return html`<del class="diff-old">${shown(before)}</del> <ins class="diff-new">${shown(after)}</ins>`;
  };
  const columns = header.length + 1;
  return html`<div class="folder-diff" tabindex="0" role="group" aria-label="Changed rows"><table class="table">
    <thead><tr><th aria-label="Change"></th>${header.map((name, at) => html`<th key=${at}>${shown(name)}</th>`)}</tr></thead>
    <tbody>${rows.map((row, at) => (row.skipped ? html`<tr key=${at}><td colspan=${columns} class="diff-skipped">… ${plural(row.skipped, 'row')} …</td></tr>`
    : html`<tr key=${at} class=${CLASSES[row.kind]}><td aria-label=${SPOKEN[row.kind]}>${SIGNS[row.kind]}</td>${header.map((_, column) => html`<td key=${column}>${cell(row, column)}</td>`)}</tr>`))}</tbody>
  </table>${more > 0 && html`<p class="muted">and ${plural(more, 'row')} more</p>`}</div>`;
}
