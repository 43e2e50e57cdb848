// Reads Markdown line by line, as it comes, and builds what it says: quotes, lists, headings, paragraphs, code, tables.
//
// A line is decided once: what is finished is never built again, and only the block at the end changes. So the time that a piece
// of text takes does not depend on how much stands before it. How far containers nest and how long one block grows is bounded;
// what goes beyond is text.

import { Code } from './code.js';
import { Formula, Table, Words, cells } from './leaves.js';

/** Containers within containers. */
const DEEPEST = 12;

/** Blocks, and items of a list, that stand together; the browser leaves out those parts that are out of view. */
const MOST_BLOCKS = 24;
const MOST_ITEMS = 100;

/** Parts at the beginning of a text that are always laid out: of them the page knows how large they are. */
const MOST_PARTS = 4;

/** A line of dashes that is longer is none. */
const LONGEST_RULE = 200;

/** Characters of a line that are looked at in one go. */
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

/** Footnotes of a text. */
const MOST_NOTES = 500;

/** Beginnings of a line that can still become more than one thing. */
const NESTS = /^(?: {0,3}> ?| *(?:[-*+]|\d{1,9}[.)]) +(?:\[[ xX]\] +)?)*/;
const OPEN = /^(?:\s*|\s*[-*_=+>#|:~`$\\ \t]*|\s*\d{1,9}[.)]?|\s*`{3,}[^`]*|\s*~{3,}.*|\s*(?:\$\$|\\\[).*|\s*\[[^\]]{0,100}\]?|\s*\[[^\]]{1,100}\]:.*)$/;
const OPEN_CODE = /^\s*(?:`*|~*)\s*$/;
const LONGEST_OPEN = 400;

export class Blocks {
  /**
   * Builds into `root`. `context`: see `inline`. `growing`: the text is read while it is written, so that each part of it was
   * in view and the browser knows how large it is.
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

  /** All of the text so far; it begins with what was there before. */
  write(source) {
    this.source = source;
  }

  /** Nothing follows. */
  end() {
    this.ended = true;
  }

  /** Reads on until `deadline` (of `performance.now()`); true when everything that there is stands in the page. */
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
      // The second half of a line's end may still come.
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

  /** A piece of a line; false when it says too little to be decided. */
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

  /** Decides what a line is; gives what of it belongs to the leaf, or null when nothing does. */
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

  /** How many of the open containers a line goes on with, and what of it is left within them. */
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
        // Models often indent by two where the standard wants three.
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

  /** Can a line that is not complete still become something else? */
  undecided(rest, depth) {
    if (rest.length > LONGEST_OPEN) return false;
    const leaf = depth === this.stack.length ? this.leaf : null;
    if (leaf?.kind === 'formula') return true;
    return leaf?.kind === 'code' ? OPEN_CODE.test(rest) : OPEN.test(rest.replace(NESTS, ''));
  }

  /** The containers that stay open when a line does not go on with the one at `depth`: a list does not outlive its item. */
  base(depth) {
    return this.stack[depth]?.kind === 'item' ? depth - 1 : depth;
  }

  /** Blocks that begin with a sign of their own; `undefined` when `rest` is none of them. */
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

  /** Opens a footnote; its number leads back to where the text refers to it. */
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
    // Reference links have the same table; this name can be none of theirs.
    this.context.definitions[`^${label}`] ??= { href: '', title: null, note: number };
    for (const leaf of this.context.waiting) leaf.again(`^${label}`);
    if (!rest.trim()) return null;
    this.open(new Words(this.context));
    return rest;
  }

  /** Opens an item, and the list around it when there is none of its kind; gives what stands in it, or null when it is none. */
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

  /** An item that begins with `[ ]` is a task, and shows whether it is done. */
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

  /** The last line of a paragraph is the head of a table when this one underlines its cells. */
  table(words, delimiters) {
    const head = cells(words.lastLine());
    const aligned = cells(delimiters);
    if (head.length !== aligned.length || !words.lastLine().includes('|')) return false;
    words.dropLine();
    this.close();
    this.open(new Table(head, aligned, this.context));
    return true;
  }

  /** The class of the next part. */
  part() {
    this.parts += 1;
    return this.parts > MOST_PARTS ? 'md-part md-away' : 'md-part';
  }

  /** Where the next block goes. */
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

  /** The page does not show it any more. */
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

/** Tabs at the beginning of a line stand for up to four spaces. */
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
