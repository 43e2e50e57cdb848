// Leaf blocks: paragraphs and headings, tables, display formulas. Each receives text (`append`, `endLine`) and shows it (`show`):
// at most once per frame while it grows, and once more when it is complete.

import { heal, parting } from './heal.js';
import { displayed, inline } from './inline.js';

/**
 * Maximum length in characters of a paragraph element; a longer one continues in another, so that a change at its end does not
 * affect the layout of the rest.
 */
const SEGMENT = 2_500;
const MOST_LINES = 150;

/** Beginning of a picture embedded in the text. */
const DATA = '](data:image/';
const LONGEST_DATA = 90_000;

/** Maximum number of paragraphs that may refer to an address that is defined later. */
const MOST_WAITING = 200;

/** Level of the first heading of a message, below the page's own headings, which end with the day's. */
const FIRST_HEADING = 3;

/** Makes the content of `element` equal to `fragment`; equal nodes stay, so that pictures do not load again. */
export function patch(element, fragment) {
  let old = element.firstChild;
  for (let fresh = fragment.firstChild; fresh; fresh = fragment.firstChild) {
    if (!old) {
      element.append(fragment);
      return;
    }
    if (old.nodeType === Node.TEXT_NODE && fresh.nodeType === Node.TEXT_NODE) {
      if (old.data !== fresh.data && fresh.data.startsWith(old.data)) old.appendData(fresh.data.slice(old.data.length));
      else if (old.data !== fresh.data) old.data = fresh.data;
      fresh.remove();
    } else if (old.isEqualNode(fresh)) {
      fresh.remove();
    } else {
      old.replaceWith(fresh);
      old = fresh;
    }
    old = old.nextSibling;
  }
  while (old) {
    const next = old.nextSibling;
    old.remove();
    old = next;
  }
}

/** A paragraph, or a heading. */
export class Words {
  kind = 'words';
  heading = false;
  text = '';
  lines = 0;
  changed = false;

  constructor(context) {
    this.context = context;
    this.element = made('p');
  }

  append(text) {
    this.text += text;
    this.changed = true;
    if (this.text.length <= SEGMENT) return;
    if (this.text.length < LONGEST_DATA && this.text.includes(DATA)) return;
    while (this.text.length > SEGMENT) this.part(parting(this.text, SEGMENT));
  }

  endLine() {
    this.text += '\n';
    this.lines += 1;
    this.changed = true;
    if (this.lines >= MOST_LINES) this.part(this.text.length);
  }

  /** The text before `cut` is complete; the rest continues below it. */
  part(cut) {
    patch(this.element, inline(this.text.slice(0, cut).trimEnd(), this.context));
    this.text = this.text.slice(cut);
    this.lines = 0;
    const next = made(this.element.localName);
    next.className = 'md-more';
    this.element.after(next);
    this.element = next;
  }

  lastLine() {
    const lines = this.text.trimEnd();
    return lines.slice(lines.lastIndexOf('\n') + 1);
  }

  dropLine() {
    const lines = this.text.trimEnd();
    this.text = lines.slice(0, lines.lastIndexOf('\n') + 1);
    this.changed = true;
    if (!this.text.trim()) this.element.remove();
  }

  becomeHeading(level) {
    const element = made(`h${this.levelOf(level)}`);
    this.heading = true;
    this.changed = true;
    this.element.replaceWith(element);
    this.element = element;
  }

  /** Returns the level of a heading without gaps, whatever level the message begins with. */
  levelOf(level) {
    const { headings } = this.context;
    headings.first ??= level;
    const shown = FIRST_HEADING + Math.max(0, level - headings.first);
    headings.last = Math.min(6, shown, (headings.last ?? FIRST_HEADING - 1) + 1);
    return headings.last;
  }

  show(final) {
    if (!final && !this.changed) return;
    this.changed = false;
    patch(this.element, inline(final ? this.complete() : heal(this.sure()), this.context));
    if (final && this.text.includes('[') && this.context.waiting.length < MOST_WAITING) this.context.waiting.push(this);
  }

  complete() {
    return this.heading ? this.text.replace(/(?:^|[ \t])#+[ \t]*\n?$/, '').trim() : this.text.trimEnd();
  }

  /** Returns the text that can already be shown: a line that may become the head of a table waits for the next line. */
  sure() {
    const last = this.lastLine();
    return last.startsWith('|') ? this.text.trimEnd().slice(0, -last.length).trimEnd() : this.text.trimEnd();
  }

  /** Updates the paragraph if it may refer to an address that was just defined. */
  again(name) {
    if (this.text.toLowerCase().includes(`[${name}]`)) patch(this.element, inline(this.complete(), this.context));
  }
}

/** Creates a block's element; the direction of its text follows its letters. */
function made(name) {
  const element = document.createElement(name);
  element.dir = 'auto';
  return element;
}

/** Splits a line of a table into cells. A `|` after a backslash or within code is not a separator. */
export function cells(line) {
  const inside = line.trim().replace(/^\|/, '');
  const found = [];
  let cell = '';
  let code = false;
  for (let at = 0; at < inside.length; at += 1) {
    const sign = inside[at];
    if (sign === '\\' && inside[at + 1] === '|') {
      cell += '|';
      at += 1;
    } else if (sign === '|' && !code) {
      found.push(cell.trim());
      cell = '';
    } else {
      if (sign === '`') code = !code && inside.indexOf('`', at + 1) > 0;
      cell += sign;
    }
  }
  if (cell.trim()) found.push(cell.trim());
  return found;
}

/** Maximum number of columns, and of characters per line, in a table. */
const MOST_CELLS = 60;
const LONGEST_LINE = 8_000;

/**
 * Maximum number of rows per `<table>`. A browser lays out a table as a whole, so a long one continues in another with the same
 * columns.
 */
const MOST_ROWS = 100;

export class Table {
  kind = 'table';
  text = '';
  row = null;

  constructor(head, delimiters, context) {
    this.context = context;
    this.head = head.slice(0, MOST_CELLS);
    this.aligned = delimiters.map((cell) => (cell.endsWith(':') ? (cell.startsWith(':') ? 'md-center' : 'md-right') : ''));
    this.element = document.createElement('div');
    this.element.className = 'md-table';
    scrolls(this.element, 'Table');
    this.begin();
  }

  begin() {
    const table = document.createElement('table');
    const head = table.createTHead();
    this.body = table.createTBody();
    this.fill(head.insertRow(), this.head, 'th');
    if (this.element.firstChild) this.goOn(table, head);
    const part = document.createElement('div');
    part.className = this.context.part();
    part.append(table);
    this.element.append(part);
  }

  /** Continues a table with the same column widths; its head is only for screen readers. */
  goOn(table, head) {
    const above = this.element.lastChild.firstChild;
    const widths = [...above.rows[0].cells].map((cell) => cell.getBoundingClientRect().width);
    for (const one of [above, table]) {
      if (one.querySelector('colgroup')) continue;
      const columns = document.createElement('colgroup');
      for (const width of widths) columns.append(Object.assign(document.createElement('col'), { width: String(Math.ceil(width)) }));
      one.prepend(columns);
      one.classList.add('md-fixed');
    }
    head.className = 'md-unseen-head';
  }

  fill(row, texts, name) {
    for (let at = 0; at < this.head.length; at += 1) {
      let cell = row.cells[at];
      if (!cell) {
        cell = document.createElement(name);
        cell.dir = 'auto';
        if (name === 'th') cell.scope = 'col';
        if (this.aligned[at]) cell.className = this.aligned[at];
        row.append(cell);
      }
      patch(cell, inline(texts[at] ?? '', this.context));
    }
  }

  append(text) {
    if (this.text.length < LONGEST_LINE) this.text += text;
    this.changed = true;
  }

  endLine() {
    this.draw(this.text);
    this.text = '';
    this.row = null;
    this.changed = false;
    if (this.body.rows.length >= MOST_ROWS) this.full = true;
  }

  draw(text) {
    if (this.full) this.begin();
    this.full = false;
    this.row ??= this.body.insertRow();
    this.fill(this.row, cells(text), 'td');
  }

  show(final) {
    if (!this.changed || !this.text) return;
    this.changed = false;
    this.draw(final ? this.text : heal(this.text));
  }
}

/** A formula on its own lines. */
export class Formula {
  kind = 'formula';
  text = '';

  constructor(opening, context) {
    this.context = context;
    this.closing = opening === '$$' ? '$$' : '\\]';
    this.opening = opening;
    this.element = document.createElement('p');
    this.element.className = 'md-display';
  }

  take(line) {
    const end = line.indexOf(this.closing);
    if (end >= 0) {
      this.text += line.slice(0, end);
      this.closed = true;
      this.after = line.slice(end + 2).trim();
      return null;
    }
    return line.trim() ? line : undefined;
  }

  append(text) {
    this.text += text;
  }

  endLine() {
    this.text += '\n';
  }

  show(final) {
    if (!final) return;
    if (this.closed && this.text.trim()) {
      this.element.replaceChildren(displayed(this.text));
      if (this.after) this.element.append(' ', inline(this.after, this.context));
    } else {
      // The formula was not closed, so it is a text that begins with dollar signs.
      this.element.className = '';
      this.element.replaceChildren(inline(`${this.opening}${this.text}${this.closed ? this.closing : ''}`.trim(), this.context));
    }
  }
}

/** Makes a box that scrolls sideways focusable as long as it overflows. */
export function scrolls(element, label) {
  element.dataset.label = label;
  widths.observe(element);
}

const widths = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    if (target.scrollWidth > target.clientWidth + 1) {
      target.tabIndex = 0;
      target.setAttribute('role', 'group');
      target.setAttribute('aria-label', `${target.dataset.label}, scrolls sideways`);
    } else if (target.hasAttribute('tabindex')) {
      for (const name of ['tabindex', 'role', 'aria-label']) target.removeAttribute(name);
    }
  }
});
