// Formulas: converts TeX, as models write it, to MathML, which the browser draws, selects and reads aloud. Loaded with the first
// formula. The source never becomes markup: every element and attribute is named in this file, and the rest is text.

import { alphabet, BIG, FUNCTIONS, LETTERS, LIMITS, NOT, RELATIONS, SPACES } from './math-signs.js';

const MATHML = 'http://www.w3.org/1998/Math/MathML';

/** Maximum length and depth of a source; beyond these, it is shown unchanged. */
const LONGEST = 4_000;
const DEEPEST = 24;

/** Maximum number of cells in a table. */
const MOST_CELLS = 400;

/** Commands whose argument is text. */
const WORDS = new Set(['text', 'textrm', 'textbf', 'textit', 'textsf', 'texttt', 'mbox', 'hbox']);

/** Accents over (and lines under) an argument. Wide ones stretch. */
const OVER = {
  hat: '^', bar: '¯', vec: '→', tilde: '~', dot: '˙', ddot: '¨', check: 'ˇ', breve: '˘', acute: '´', grave: '`', mathring: '˚',
  widehat: '^', widetilde: '~', overrightarrow: '→', overleftarrow: '←', overbrace: '⏞',
};
const UNDER = { underbrace: '⏟', underrightarrow: '→' };
const WIDE = /^(?:wide|over|under)/;

/** Lines over and under an argument, drawn by the page's styles. */
const LINES = { overline: 'md-over', underline: 'md-under' };

/** Brackets around the tables of environments: left, right. */
const TABLES = {
  matrix: ['', ''], pmatrix: ['(', ')'], bmatrix: ['[', ']'], Bmatrix: ['{', '}'], vmatrix: ['|', '|'], Vmatrix: ['‖', '‖'], smallmatrix: ['', ''],
  cases: ['{', '', 'l'], dcases: ['{', '', 'l'], rcases: ['', '}', 'l'], array: ['', ''], aligned: ['', '', 'rl'], align: ['', '', 'rl'], split: ['', '', 'rl'],
  alignat: ['', '', 'rl'], alignedat: ['', '', 'rl'], eqnarray: ['', '', 'rcl'], gathered: ['', ''], gather: ['', ''], multline: ['', ''], equation: ['', ''], substack: ['', ''],
};

/** Alphabets, by the commands that select them. */
const STYLES = {
  mathbb: 'bb', mathbf: 'bf', boldsymbol: 'bf', bm: 'bf', mathcal: 'cal', mathscr: 'cal', mathfrak: 'frak', mathsf: 'sf', mathtt: 'tt', mathit: 'it', mathrm: 'rm', mathnormal: 'it',
};

/** Sizes of brackets, in em. */
const SIZES = { big: 1.2, Big: 1.8, bigg: 2.4, Bigg: 3 };

/** Commands without an effect here. */
const SILENT = new Set(['displaystyle', 'textstyle', 'scriptstyle', 'limits', 'nolimits', 'nonumber', 'notag', 'hline', 'centering', 'allowbreak', 'mathstrut', 'strut']);

/** Commands whose argument is left out. */
const DROPPED = new Set(['label', 'phantom', 'hphantom', 'vphantom', 'hspace', 'vspace', 'color', 'require']);

const FENCES = {
  '\\{': '{', '\\}': '}', '\\lbrace': '{', '\\rbrace': '}', '\\|': '‖', '\\Vert': '‖', '\\vert': '|', '\\lvert': '|', '\\rvert': '|', '\\lVert': '‖', '\\rVert': '‖',
  '\\langle': '⟨', '\\rangle': '⟩', '\\lfloor': '⌊', '\\rfloor': '⌋', '\\lceil': '⌈', '\\rceil': '⌉', '\\uparrow': '↑', '\\downarrow': '↓', '<': '⟨', '>': '⟩', '.': '',
};
const BRACKET = /^[()[\]|]$/;

const TOO_MUCH = new Error('a formula is nested too deep, or too large');

/** Returns the `math` element for a formula in `page` (a document), or null if it must be shown unchanged. */
export function formula(page, tex, display = false) {
  const source = tex.trim();
  if (!source || source.length > LONGEST) return null;
  const read = new Reader(page, source);
  try {
    const rows = read.rows(new Set(), 0);
    const math = read.element('math', [rows.length > 1 || rows[0].length > 1 ? read.table(rows, 'rl') : read.row(rows[0][0])]);
    if (display) math.setAttribute('display', 'block');
    return math;
  } catch (error) {
    if (error !== TOO_MUCH) throw error;
    return null;
  }
}

class Reader {
  at = 0;
  cells = 0;

  constructor(page, source) {
    this.page = page;
    this.tokens = source.match(/\\(?:[A-Za-z]+\*?|[^])|\d+(?:\.\d+)?|\s+|[^]/gu) ?? [];
  }

  element(name, children = [], attributes = {}) {
    const made = this.page.createElementNS(MATHML, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  /** Combines several nodes into one. */
  row(nodes) {
    return nodes.length === 1 ? nodes[0] : this.element('mrow', nodes);
  }

  sign(text, attributes) {
    return this.element('mo', [text], attributes);
  }

  /** A bracket as high as a letter, unless a size is given. */
  bracket(text, size) {
    return this.sign(text, size ? { stretchy: 'true', minsize: `${size}em`, maxsize: `${size}em`, lspace: '0', rspace: '0' } : { stretchy: 'false', lspace: '0', rspace: '0' });
  }

  space(em) {
    return this.element('mspace', [], { width: `${em}em` });
  }

  /** Returns the next token that is not a space without consuming it; '' at the end. */
  peek() {
    while (/^\s/.test(this.tokens[this.at] ?? '')) this.at += 1;
    return this.tokens[this.at] ?? '';
  }

  take() {
    const token = this.peek();
    this.at += 1;
    return token;
  }

  /** Parses rows of cells up to one of `ends`, which is not consumed. */
  rows(ends, depth) {
    const stops = new Set([...ends, '&', '\\\\', '\\cr']);
    const rows = [[]];
    for (;;) {
      this.cells += 1;
      if (this.cells > MOST_CELLS) throw TOO_MUCH;
      rows.at(-1).push(this.list(stops, depth));
      const token = this.peek();
      if (!token || ends.has(token)) break;
      this.at += 1;
      if (token === '&') continue;
      // A spacing argument after the end of a row.
      if (this.peek() === '[') this.group(']', depth);
      if (!this.peek() || ends.has(this.peek())) break;
      rows.push([]);
    }
    return rows;
  }

  table(rows, sides = '') {
    const side = (at) => ({ l: 'md-l', r: 'md-r' })[sides[at % sides.length]];
    return this.element('mtable', rows.map((row) => this.element('mtr', row.map((cell, at) => this.element('mtd', cell, side(at) ? { class: side(at) } : {})))),
      sides ? { displaystyle: 'true' } : {});
  }

  /** Parses nodes up to one of `stops`, which is not consumed. */
  list(stops, depth) {
    if (depth > DEEPEST) throw TOO_MUCH;
    const nodes = [];
    for (let token = this.peek(); token && !stops.has(token); token = this.peek()) {
      // An unmatched closing bracket.
      if (token === '}') this.at += 1;
      else if (token === '\\over' || token === '\\choose') {
        this.at += 1;
        const [above, below] = [this.row(nodes.splice(0)), this.row(this.list(stops, depth + 1))];
        nodes.push(token === '\\over' ? this.element('mfrac', [above, below]) : this.binomial(above, below));
      } else nodes.push(...this.scripted(depth));
    }
    return nodes;
  }

  /** Parses everything up to `end`, which is consumed; the opening token is consumed, too. */
  group(end, depth) {
    this.at += 1;
    const nodes = this.list(new Set([end]), depth + 1);
    this.at += 1;
    return nodes;
  }

  /** Parses the argument of a command: a group or one sign. */
  argument(depth) {
    if (depth > DEEPEST) throw TOO_MUCH;
    if (this.peek() === '{') return this.row(this.group('}', depth));
    return this.peek() ? this.row(this.atom(depth + 1)) : this.element('mrow');
  }

  /** Returns the text of an argument unchanged. */
  words() {
    if (this.peek() !== '{') return this.take();
    let [text, open] = ['', 0];
    for (; this.at < this.tokens.length; this.at += 1) {
      const token = this.tokens[this.at];
      open += token === '{' ? 1 : token === '}' ? -1 : 0;
      if (!open) break;
      if (token !== '{' && token !== '}') text += token.replace(/^\\(?=[^A-Za-z])/, '').replace('~', '\u00a0').replace(/\s+/, ' ');
    }
    this.at += 1;
    return text;
  }

  /** Parses a sign with its scripts. */
  scripted(depth) {
    const begins = this.peek();
    const [base, ...rest] = '^_'.includes(begins) || begins === "'" ? [this.element('mrow')] : this.atom(depth);
    if (!base) return [];
    let [sub, sup] = [null, null];
    let stacked = base.under ?? false;
    const primes = () => {
      let text = '';
      for (; this.peek() === "'"; this.at += 1) text += '′';
      return text && this.sign(text, { lspace: '0', rspace: '0' });
    };
    for (;;) {
      const token = this.peek();
      if (token === '\\limits' || token === '\\nolimits') {
        stacked = token === '\\limits';
        this.at += 1;
      } else if (token === "'" && !sup) {
        sup = primes();
      } else if ((token === '^' && (!sup || sup.localName === 'mo')) || (token === '_' && !sub)) {
        this.at += 1;
        const inside = this.argument(depth + 1);
        if (token === '_') sub = inside;
        else sup = sup ? this.element('mrow', [sup, inside]) : inside;
      } else break;
    }
    const name = stacked ? ['munderover', 'munder', 'mover'] : ['msubsup', 'msub', 'msup'];
    const done = sub && sup ? this.element(name[0], [base, sub, sup]) : sub ? this.element(name[1], [base, sub]) : sup ? this.element(name[2], [base, sup]) : base;
    const nodes = [done, ...rest];
    // As in TeX, there is space between a function and an argument without brackets.
    if (base.applied && !/^(?:[([{)\]},.;&}]|\\(?:left|right|big|Big|\\|[,;:!]).*|)$/.test(this.peek())) nodes.push(this.space(0.1667));
    return nodes;
  }

  atom(depth) {
    if (depth > DEEPEST) throw TOO_MUCH;
    const token = this.take();
    if (token === '{') {
      this.at -= 1;
      return [this.row(this.group('}', depth))];
    }
    if (token[0] === '\\' && token.length > 1) return this.command(token.slice(1).replace('*', ''), depth);
    if (token === '~') return [this.space(0.3333)];
    if (/^\d/.test(token)) return [this.element('mn', [token])];
    if (/^\p{L}/u.test(token)) return [this.element('mi', [token])];
    if (BRACKET.test(token)) return [this.bracket(token)];
    if (token === '/') return [this.sign('/', { lspace: '0', rspace: '0' })];
    return [this.sign({ '-': '−', '*': '∗' }[token] ?? token)];
  }

  binomial(above, below) {
    return this.element('mrow', [this.sign('('), this.element('mfrac', [above, below], { linethickness: '0' }), this.sign(')')]);
  }

  command(name, depth) {
    if (/^[dtc]?frac$/.test(name)) return [this.element('mfrac', [this.argument(depth), this.argument(depth)], name === 'dfrac' ? { displaystyle: 'true' } : {})];
    if (/^[dt]?binom$/.test(name)) return [this.binomial(this.argument(depth), this.argument(depth))];
    if (name === 'sqrt') {
      const root = this.peek() === '[' ? this.row(this.group(']', depth)) : null;
      const inside = this.argument(depth);
      return [root ? this.element('mroot', [inside, root]) : this.element('msqrt', [inside])];
    }
    if (WORDS.has(name)) return [this.element('mtext', [this.words()])];
    if (name === 'operatorname') return [Object.assign(this.element('mi', [this.words().trim()]), { applied: true })];
    if (Object.hasOwn(STYLES, name)) return [this.styled(this.argument(depth), STYLES[name])];
    if (name === 'boxed' || name === 'fbox') return [this.element('mrow', [this.argument(depth)], { class: 'md-boxed' })];
    if (Object.hasOwn(LINES, name)) return [this.element('mrow', [this.argument(depth)], { class: LINES[name] })];
    if (Object.hasOwn(OVER, name) || Object.hasOwn(UNDER, name)) return [this.accented(name, depth)];
    if (name === 'overset' || name === 'underset' || name === 'stackrel') {
      const [beside, base] = [this.argument(depth), this.argument(depth)];
      return [this.element(name === 'underset' ? 'munder' : 'mover', [base, beside])];
    }
    if (name === 'xrightarrow' || name === 'xleftarrow') {
      return [this.element('mover', [this.sign(name === 'xrightarrow' ? '→' : '←', { stretchy: 'true', minsize: '2em' }), this.argument(depth)])];
    }
    if (name === 'left') return [this.fenced(depth)];
    if (name === 'right' || name === 'middle') return this.fence() ? [this.bracket(this.last)] : [];
    const [size] = /^[Bb]igg?(?=[lrm]?$)/.exec(name) ?? [];
    if (size) return this.fence() ? [this.bracket(this.last, SIZES[size])] : [];
    if (name === 'begin') return [this.environment(depth)];
    if (name === 'end') return [this.words(), this.element('mrow')].slice(1);
    if (name === 'substack') {
      this.peek();
      this.at += 1;
      const rows = this.rows(new Set(['}']), depth + 1);
      this.at += 1;
      return [this.table(rows)];
    }
    if (name === 'not') return this.negated(depth);
    if (name === 'tag') return [this.space(2), this.element('mtext', [`(${this.words()})`])];
    if (name === 'pmod' || name === 'bmod' || name === 'mod') {
      const mod = [this.space(0.3333), this.element('mtext', ['mod']), this.space(0.3333)];
      return name === 'pmod' ? [this.bracket('('), ...mod.slice(1), this.argument(depth), this.bracket(')')] : mod;
    }
    if (SILENT.has(name)) return [this.element('mrow')];
    if (DROPPED.has(name)) return [this.words(), this.element('mrow')].slice(1);
    return [this.letter(name)];
  }

  letter(name) {
    if (Object.hasOwn(SPACES, name)) return this.space(SPACES[name]);
    if (Object.hasOwn(LETTERS, name)) return this.element('mi', [LETTERS[name]]);
    if (Object.hasOwn(FENCES, `\\${name}`)) return this.bracket(FENCES[`\\${name}`]);
    if (Object.hasOwn(BIG, name)) return Object.assign(this.sign(BIG[name]), { under: !BIG[name].includes('∫') && !BIG[name].includes('∮') });
    if (LIMITS.has(name)) return Object.assign(this.sign(name.replace(/^(lim|arg)(?=.)/, '$1\u2009'), { movablelimits: 'true', lspace: '0', rspace: '0' }), { under: true, applied: true });
    if (FUNCTIONS.has(name)) return Object.assign(this.element('mi', [name]), { applied: true });
    if (Object.hasOwn(RELATIONS, name)) return this.sign(RELATIONS[name]);
    if (/^[#$%&_]$/.test(name)) return this.element('mtext', [name]);
    // An unknown command is shown by name.
    return this.element('mtext', [`\\${name}`]);
  }

  /** Converts the letters of a node to another alphabet. */
  styled(node, style) {
    const walk = (one) => {
      if (one.localName === 'mi' || one.localName === 'mn') {
        const text = [...one.textContent].map((letter) => alphabet(style, letter)).join('');
        one.textContent = text;
        if (one.localName === 'mi' && text.length === 1 && style !== 'it') one.setAttribute('mathvariant', 'normal');
      }
      for (const child of one.children) walk(child);
    };
    // Letters of an upright word belong together.
    if (style === 'rm' && node.localName === 'mrow' && [...node.children].every(({ localName }) => localName === 'mi')) return this.element('mi', [node.textContent]);
    walk(node);
    return node;
  }

  accented(name, depth) {
    const stretchy = String(WIDE.test(name));
    const under = Object.hasOwn(UNDER, name);
    const mark = this.sign((under ? UNDER : OVER)[name], { stretchy, lspace: '0', rspace: '0' });
    const node = this.element(under ? 'munder' : 'mover', [this.argument(depth), mark], under ? { accentunder: 'true' } : { accent: 'true' });
    return Object.assign(node, { under: name.endsWith('brace') });
  }

  /** Parses a bracket into `last`; returns false for `.`, which means that there is none. */
  fence() {
    const token = this.take();
    this.last = Object.hasOwn(FENCES, token) ? FENCES[token] : token;
    return this.last !== '';
  }

  fenced(depth) {
    const sign = (text) => this.sign(text, { stretchy: 'true', fence: 'true', lspace: '0', rspace: '0' });
    const nodes = this.fence() ? [sign(this.last)] : [];
    const stops = new Set(['\\right', '\\middle']);
    nodes.push(...this.list(stops, depth + 1));
    while (this.peek() === '\\middle') {
      this.at += 1;
      if (this.fence()) nodes.push(sign(this.last));
      nodes.push(...this.list(stops, depth + 1));
    }
    if (this.take() && this.fence()) nodes.push(sign(this.last));
    return this.element('mrow', nodes);
  }

  environment(depth) {
    const name = this.words().replace('*', '');
    const [left, right, sides = ''] = Object.hasOwn(TABLES, name) ? TABLES[name] : ['', ''];
    const columns = /^(?:array|alignedat|alignat)$/.test(name) ? this.words().replace(/[^lcr]/g, '') : '';
    const rows = this.rows(new Set(['\\end']), depth + 1);
    if (this.take()) this.words();
    const sign = (text) => this.sign(text, { stretchy: 'true', fence: 'true' });
    return this.element('mrow', [...(left ? [sign(left)] : []), this.table(rows, name === 'array' ? columns : sides), ...(right ? [sign(right)] : [])]);
  }

  negated(depth) {
    const [node, ...rest] = this.atom(depth + 1);
    if (node) node.textContent = Object.hasOwn(NOT, node.textContent) ? NOT[node.textContent] : `${node.textContent}\u0338`;
    return node ? [node, ...rest] : [];
  }
}
