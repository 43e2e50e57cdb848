// Parses Markdown line by line as it arrives, and builds its blocks: quotes, lists, headings, paragraphs, code, tables.
//
// Each line is parsed once: finished blocks never change, only the last one does. So the time for a piece of text does not depend
// on the length of the text before it. The nesting of containers and the size of a block are limited; anything beyond is shown as
// text.

import { Code } from './code.js';
import { Formula, Table, Words, cells } from './leaves.js';

/** Maximum depth of nested containers. */
const DEEPEST = 12;

/** Number of blocks or list items per part; the browser skips parts that are off-screen. */
const MOST_BLOCKS = 24;
const MOST_ITEMS = 100;

/** Number of parts at the beginning of a text that are always laid out, so that the page knows their height. */
const MOST_PARTS = 4;

/** Maximum length of a horizontal rule. */
const LONGEST_RULE = 200;

/** Maximum number of characters of a line that are examined at once. */
const PIECE = 2_000;

const QUOTE = /^ {0,3}> ?/;
const FENCE = /^( {0,3})(`{3,}|~{3,})[ \t]*(.*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+|$)/;
const UNDERLINE = /^ {0,3}(=+|-+)[ \t]*$/;
const RULE = /^ {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$/;
const ITEM = /^( {0,3})([-*+]|(\d{1,9})[.)])(?:( {1,4})(?=\S)| {5,}(?=\S)|[ \t]*$)/;
const TASK = /^\[([ xX])\] +/;
const DELIMITERS = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;
const DEFINITION = /^ {0,3}\[((?!\^)[^\]]{1,200})\]:[ \t]*<?([^\s<>]+)>?(?:[ \t]+(?:"[^"]*"|'[^']*'|\([^)]*\)))?[ \t]*$/;
const DISPLAY = /^ {0,3}(\$\$|\\\[)/;
const NOTE = /^ {0,3}\[\^([^\]\s]{1,60})\]:[ \t]*/;

/** Maximum number of footnotes in a text. */
const MOST_NOTES = 500;

/** Beginnings of a line whose meaning is still open. */
const NESTS = /^(?: {0,3}> ?| *(?:[-*+]|\d{1,9}[.)]) +(?:\[[ xX]\] +)?)*/;
const OPEN = /^(?:\s*|\s*[-*_=+>#|:~`$\\ \t]*|\s*\d{1,9}[.)]?|\s*`{3,}[^`]*|\s*~{3,}.*|\s*(?:\$\$|\\\[).*|\s*\[[^\]]{0,100}\]?|\s*\[[^\]]{1,100}\]:.*)$/;
const OPEN_CODE = /^\s*(?:`*|~*)\s*$/;
const LONGEST_OPEN = 400;

export class Blocks {
  /**
   * Builds into `root`. `context`: see `inline`. `growing`: the text is still being written, so each of its parts was visible
   * and the browser knows its size.
   */
  constructor(root, context, growing) {
    this.parts = growing ? MOST_PARTS : 0;
    this.context = { ...context, part: () => this.part(), definitions: Object.create(null), notes: 0, waiting: [], endings: [], headings: {} };
    this.stack = [{ kind: 'root', element: root }];
    this.leaf = null;
    this.source = '';
    this.at = 0;
    this.searched = 0;
    this.begun = false;
    this.mute = false;
    this.ended = false;
    this.done = false;
  }

  /** Sets the whole text so far, which begins with the previous text. */
  write(source) {
    this.source = source;
  }

  /** Marks the text as complete. */
  end() {
    this.ended = true;
  }

  /** Continues parsing until `deadline` (of `performance.now()`); returns true when everything is shown. */
  work(deadline) {
    while (!this.done) {
      const { source, at } = this;
      if (at >= source.length) {
        if (this.ended) this.finish();
        break;
      }
      let end = source.indexOf('\n', Math.max(at, this.searched));
      const closed = end >= 0 || this.ended;
      if (end < 0) end = source.length;
      this.searched = end;
      let piece = Math.min(end, at + PIECE);
      // The second half of a line break may still follow.
      if (!(closed && piece === end) && source[piece - 1] === '\r') piece -= 1;
      if (piece === at && !closed) break;
      const whole = closed && piece === end;
      if (!this.take(source.slice(at, piece), whole)) break;
      this.at = whole ? end + 1 : piece;
      if (performance.now() > deadline && this.at < source.length) {
        this.leaf?.show(false);
        return false;
      }
    }
    this.leaf?.show(false);
    return true;
  }

  /** Processes a piece of a line; returns false if more of the line is needed. */
  take(piece, whole) {
    const text = whole && piece.endsWith('\r') ? piece.slice(0, -1) : piece;
    if (this.begun) {
      if (!this.mute) this.leaf.append(text);
    } else {
      const rest = this.line(untab(text), whole);
      if (rest === UNDECIDED) return false;
      this.begun = true;
      this.mute = rest === null;
      if (!this.mute) this.leaf.append(rest);
    }
    if (whole) {
      if (!this.mute) this.leaf.endLine();
      if (this.leaf?.heading) this.close();
      this.begun = false;
    }
    return true;
  }

  /** Determines the kind of a line; returns the text for the current leaf block, or null if there is none. */
  line(line, whole) {
    let { rest, depth } = this.enter(line);
    if (!whole && this.undecided(rest, depth)) return UNDECIDED;
    const within = depth === this.stack.length;
    if (this.leaf?.take && within) {
      const kept = this.leaf.take(rest);
      if (kept !== undefined && kept !== null) return kept;
      this.close();
      if (kept === null) return null;
    }
    if (!rest.trim()) {
      this.closeTo(this.base(depth));
      return null;
    }
    let words = this.leaf?.kind === 'words' ? this.leaf : null;
    if (words && within) {
      if (UNDERLINE.test(rest)) {
        words.becomeHeading(rest.includes('=') ? 1 : 2);
        this.close();
        return null;
      }
      if (rest.includes('|') && DELIMITERS.test(rest) && this.table(words, rest)) return null;
    }
    while (this.stack.length <= DEEPEST) {
      if (indent(rest) >= 4 && words) break;
      if (indent(rest) >= 4) {
        this.closeTo(this.base(depth));
        this.open(new Code('', this.context));
        return rest.slice(4);
      }
      const quote = QUOTE.exec(rest);
      const left = quote ? rest.slice(quote[0].length) : this.item(rest, depth, words);
      if (left === null) break;
      if (quote) {
        this.closeTo(this.base(depth));
        this.push('quote', 'blockquote');
      }
      rest = quote ? left : this.tick(left);
      depth = this.stack.length;
      words = null;
      if (!rest.trim()) return null;
    }
    const block = this.begin(rest, depth);
    if (block !== undefined) return block;
    if (words || (this.leaf?.kind === 'table' && within)) return rest.trimStart();
    this.closeTo(this.base(depth));
    this.open(new Words(this.context));
    return rest.trimStart();
  }

  /** Returns the number of open containers that a line continues, and the rest of the line. */
  enter(line) {
    let rest = line;
    let depth = 1;
    for (; depth < this.stack.length; depth += 1) {
      const box = this.stack[depth];
      if (box.kind === 'quote') {
        const found = QUOTE.exec(rest);
        if (!found) break;
        rest = rest.slice(found[0].length);
      } else if (box.kind === 'item') {
        const spaces = indent(rest);
        if (!rest.trim()) rest = '';
        else if (spaces >= box.indent) rest = rest.slice(box.indent);
        // Models often indent by two spaces, where the standard requires three.
        else if (spaces >= box.mark + 2 && ITEM.test(rest.trimStart())) rest = rest.trimStart();
        else break;
      } else if (box.kind === 'note') {
        const spaces = indent(rest);
        if (rest.trim() && spaces < 2) break;
        rest = rest.slice(Math.min(spaces, 4));
      }
    }
    return { rest, depth };
  }

  /** Returns whether an incomplete line can still change its meaning. */
  undecided(rest, depth) {
    if (rest.length > LONGEST_OPEN) return false;
    const leaf = depth === this.stack.length ? this.leaf : null;
    if (leaf?.kind === 'formula') return true;
    return leaf?.kind === 'code' ? OPEN_CODE.test(rest) : OPEN.test(rest.replace(NESTS, ''));
  }

  /**
   * Returns the number of containers that stay open when a line does not continue the one at `depth`: a list does not outlive its
   * item.
   */
  base(depth) {
    return this.stack[depth]?.kind === 'item' ? depth - 1 : depth;
  }

  /** Starts a block that begins with a marker; `undefined` if `rest` has no marker. */
  begin(rest, depth) {
    const fence = FENCE.exec(rest);
    if (fence && !(fence[2][0] === '`' && fence[3].includes('`'))) {
      this.closeTo(this.base(depth));
      this.open(new Code(fence[3].trim(), this.context, fence[2], fence[1].length));
      return null;
    }
    const heading = HEADING.exec(rest);
    if (heading) {
      this.closeTo(this.base(depth));
      this.open(new Words(this.context)).becomeHeading(heading[1].length);
      return rest.slice(heading[0].length);
    }
    if (isRule(rest)) {
      this.closeTo(this.base(depth));
      this.inside.append(document.createElement('hr'));
      return null;
    }
    const display = DISPLAY.exec(rest);
    if (display) {
      this.closeTo(this.base(depth));
      const after = rest.slice(display[0].length).trim();
      const kept = this.open(new Formula(display[1], this.context)).take(after) ?? after;
      if (this.leaf.closed) this.close();
      return this.leaf ? kept : null;
    }
    const note = this.context.notes < MOST_NOTES ? NOTE.exec(rest) : null;
    if (note) return this.note(note[1].toLowerCase(), rest.slice(note[0].length), depth);
    const definition = this.leaf ? null : DEFINITION.exec(rest);
    if (!definition) return undefined;
    this.closeTo(this.base(depth));
    const name = definition[1].toLowerCase().replace(/\s+/g, ' ').trim();
    this.context.definitions[name] ??= { href: definition[2], title: null };
    for (const leaf of this.context.waiting) leaf.again(name);
    return null;
  }

  /** Opens a footnote; its number links back to the reference in the text. */
  note(label, rest, depth) {
    this.closeTo(this.base(depth));
    const number = this.context.notes += 1;
    const box = this.push('note', 'div');
    box.element.className = 'md-note';
    box.element.dataset.footnote = number;
    box.element.tabIndex = -1;
    const back = Object.assign(document.createElement('button'), { type: 'button', className: 'md-act', textContent: number });
    back.dataset.back = number;
    back.setAttribute('aria-label', `Back to the reference of footnote ${number}`);
    const body = document.createElement('div');
    box.element.append(back, body);
    box.element = body;
    // Shares the table of reference links; no reference link can have this name.
    this.context.definitions[`^${label}`] ??= { href: '', title: null, note: number };
    for (const leaf of this.context.waiting) leaf.again(`^${label}`);
    if (!rest.trim()) return null;
    this.open(new Words(this.context));
    return rest;
  }

  /** Opens an item, and a list around it if necessary; returns the item's text, or null if `rest` is not an item. */
  item(rest, depth, words) {
    const found = ITEM.exec(rest);
    if (!found || isRule(rest)) return null;
    const [whole, before, marker, number, space] = found;
    const empty = rest.length === whole.length;
    if (words && depth === this.stack.length && (empty || (number !== undefined && number !== '1'))) return null;
    const sign = marker.at(-1);
    const list = this.stack[depth]?.kind === 'item' ? this.stack[depth - 1] : null;
    if (list?.sign === sign && list.items < MOST_ITEMS) {
      this.closeTo(depth);
      list.items += 1;
    } else {
      this.closeTo(this.base(depth));
      const goesOn = list?.sign === sign;
      const start = goesOn ? list.start + list.items : Number(number ?? 1);
      const { element } = this.push('list', number === undefined ? 'ul' : 'ol', { sign, start, items: 1 });
      if (start !== 1 && number !== undefined) element.start = start;
      if (goesOn) element.className = `md-more ${this.part()}`;
    }
    const width = before.length + marker.length;
    this.push('item', 'li', { indent: width + (space?.length ?? 1), mark: before.length });
    return rest.slice(space === undefined ? width + 1 : whole.length);
  }

  /** Shows an item that begins with `[ ]` as a task with its state. */
  tick(rest) {
    const found = TASK.exec(rest);
    if (!found) return rest;
    const done = found[1] !== ' ';
    const { element } = this.stack.at(-1);
    const box = Object.assign(document.createElement('input'), { type: 'checkbox', checked: done, disabled: true });
    box.setAttribute('aria-label', done ? 'Done' : 'Not done');
    element.className = 'md-task';
    element.append(box);
    return rest.slice(found[0].length);
  }

  /** Turns the last line of a paragraph into the head of a table, if this line is its delimiter row. */
  table(words, delimiters) {
    const head = cells(words.lastLine());
    const aligned = cells(delimiters);
    if (head.length !== aligned.length || !words.lastLine().includes('|')) return false;
    words.dropLine();
    this.close();
    this.open(new Table(head, aligned, this.context));
    return true;
  }

  /** Returns the class of the next part. */
  part() {
    this.parts += 1;
    return this.parts > MOST_PARTS ? 'md-part md-away' : 'md-part';
  }

  /** The element for the next block. */
  get inside() {
    const [root] = this.stack;
    if (this.stack.length > 1) return this.stack.at(-1).element;
    if (!root.part || root.part.childElementCount >= MOST_BLOCKS) {
      root.part = document.createElement('div');
      root.part.className = this.part();
      root.element.append(root.part);
    }
    return root.part;
  }

  push(kind, name, more) {
    const element = document.createElement(name);
    this.inside.append(element);
    const box = { kind, element, ...more };
    this.stack.push(box);
    return box;
  }

  open(leaf) {
    this.leaf = leaf;
    this.inside.append(leaf.element);
    return leaf;
  }

  close() {
    this.leaf?.show(true);
    this.leaf = null;
  }

  closeTo(depth) {
    this.close();
    this.stack.length = Math.max(1, depth);
  }

  /** The text is no longer shown. */
  leave() {
    this.context.left = true;
    for (const ending of this.context.endings) ending();
  }

  finish() {
    this.closeTo(1);
    this.done = true;
  }
}

const UNDECIDED = Symbol('undecided');

const isRule = (text) => text.length < LONGEST_RULE && RULE.test(text);

const indent = (text) => /^ */.exec(text)[0].length;

/** Expands tabs at the beginning of a line to up to four spaces. */
function untab(line) {
  if (!/^[ >*+\-\d.)]*\t/.test(line)) return line;
  let column = '';
  for (let at = 0; at < line.length; at += 1) {
    if (line[at] === '\t') column += ' '.repeat(4 - (column.length % 4));
    else if (/[ >*+\-\d.)]/.test(line[at])) column += line[at];
    else return column + line.slice(at);
  }
  return column;
}
