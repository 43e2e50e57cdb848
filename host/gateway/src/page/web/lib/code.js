// Code blocks: their language, Copy and Wrap, and colours once they are complete. A `chart` block becomes a chart.

import { announce, copyText, report } from './ui.js';
import { visible } from './inline.js';
import { scrolls } from './leaves.js';
import { paint } from './highlight.js';

/** Maximum number of lines and characters in a part: a browser lays out only the changed part, not the whole block. */
const MOST_LINES = 50;
const MOST_CHARACTERS = 4_000;

/** Milliseconds that "Copied" is shown. */
const SAID = 1_500;

const COPY = 'Copy code';

/** The source of each block, for Copy. */
const sources = new WeakMap();

export class Code {
  kind = 'code';
  source = '';
  buffer = '';
  newline = false;
  lines = 0;
  length = 0;

  /** `info` is the text after the opening fence; a block without a `fence` is indented. */
  constructor(info, context, fence = '', indent = 0) {
    Object.assign(this, { context, fence, indent });
    this.language = /^[\w+#.-]{1,30}/.exec(info)?.[0].toLowerCase() ?? '';
    this.chart = this.language === 'chart';
    this.element = document.createElement('div');
    this.element.className = this.chart ? 'md-chart' : 'md-code';
    if (this.chart) this.element.append(text('p', 'md-chart-wait', 'Drawing chart…'));
    else this.build();
  }

  build() {
    const head = text('div', 'md-code-head', '');
    const wrap = button('wrap', 'Wrap', 'Wrap lines');
    wrap.setAttribute('aria-pressed', 'false');
    head.append(text('span', 'md-language', this.language || 'text'), wrap, button('copy', 'Copy', COPY));
    this.code = text('code', '', '');
    this.code.dir = 'ltr';
    if (this.language) this.code.className = `language-${this.language}`;
    const pre = text('pre', '', '');
    pre.append(this.code);
    this.element.append(head, pre);
    scrolls(pre, 'Code');
    sources.set(this.element, this);
    this.part();
  }

  part() {
    this.flush();
    this.current = document.createTextNode('');
    const span = text('span', 'md-lines', '');
    span.append(this.current);
    this.code.append(span);
    this.lines = 0;
    this.length = 0;
  }

  flush() {
    if (this.buffer) this.current.appendData(visible(this.buffer));
    this.buffer = '';
  }

  /** Returns the code of a line; null if the line closes the block, undefined if it does not belong to the block. */
  take(line) {
    if (!this.fence) return line.startsWith('    ') ? line.slice(4) : line.trim() ? undefined : '';
    const spaces = /^ */.exec(line)[0].length;
    const bare = line.trim();
    if (spaces < 4 && bare.length >= this.fence.length && bare === this.fence[0].repeat(bare.length)) {
      this.closed = true;
      return null;
    }
    return line.slice(Math.min(spaces, this.indent));
  }

  append(piece) {
    if (this.newline) this.source += '\n';
    this.source += piece;
    if (!this.chart) this.add(piece);
    this.newline = false;
  }

  add(piece) {
    if (this.newline) {
      this.lines += 1;
      if (this.lines >= MOST_LINES) this.part();
      else this.buffer += '\n';
    }
    if (this.length + piece.length > MOST_CHARACTERS) this.part();
    this.buffer += piece;
    this.length += piece.length + 1;
  }

  endLine() {
    this.newline = true;
  }

  show(final) {
    if (this.chart) {
      if (final) this.draw();
      return;
    }
    this.flush();
    // Empty lines belong to an indented block only if more code follows.
    if (final && !this.fence) this.current.data = this.current.data.trimEnd();
    if (final && this.language) paint(this.code, this.source, this.language);
  }

  /** Loads the code for charts with the first one. */
  async draw() {
    const { element, source } = this;
    try {
      const { place } = await import('./chart.js');
      // The text was removed in the meantime.
      if (this.context.left) return;
      this.context.endings.push(place(element, source));
    } catch (error) {
      this.chart = false;
      element.className = 'md-code';
      element.replaceChildren();
      this.newline = false;
      this.build();
      for (const line of source.split('\n')) {
        this.add(line);
        this.newline = true;
      }
      this.flush();
      const why = error.reader ? error.message : 'The code that draws charts could not be loaded.';
      element.before(text('p', 'md-wrong', this.closed ? `This chart cannot be drawn. ${why}` : 'This chart is not complete.'));
    }
  }
}

function text(name, kind, content) {
  const element = document.createElement(name);
  if (kind) element.className = kind;
  if (content) element.textContent = content;
  return element;
}

function say(button, label, name) {
  button.textContent = label;
  button.setAttribute('aria-label', name);
}

function button(act, label, name) {
  const element = text('button', 'md-act', label);
  element.type = 'button';
  element.dataset.act = act;
  element.setAttribute('aria-label', name);
  return element;
}

/** Handles Copy and Wrap of all blocks in `root`. */
export async function pressed(target) {
  const found = target.closest('[data-act]');
  const block = found?.closest('.md-code');
  if (!block) return;
  if (found.dataset.act === 'wrap') {
    const wrapped = block.classList.toggle('md-wrapped');
    found.setAttribute('aria-pressed', String(wrapped));
    return;
  }
  try {
    await copyText(sources.get(block).source);
    say(found, 'Copied', 'Copied');
    announce('Copied');
    setTimeout(say, SAID, found, 'Copy', COPY);
  } catch (error) {
    report(error);
  }
}
