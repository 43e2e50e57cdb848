// Formulas as text: TeX becomes letters, raised and lowered parts that everybody can read, select and hear.

const SIGNS = {
  alpha: 'α', beta: 'β', gamma: 'γ', delta: 'δ', epsilon: 'ε', varepsilon: 'ε', zeta: 'ζ', eta: 'η', theta: 'θ', iota: 'ι', kappa: 'κ', lambda: 'λ',
  mu: 'μ', nu: 'ν', xi: 'ξ', pi: 'π', rho: 'ρ', sigma: 'σ', tau: 'τ', upsilon: 'υ', phi: 'φ', varphi: 'φ', chi: 'χ', psi: 'ψ', omega: 'ω',
  Gamma: 'Γ', Delta: 'Δ', Theta: 'Θ', Lambda: 'Λ', Xi: 'Ξ', Pi: 'Π', Sigma: 'Σ', Phi: 'Φ', Psi: 'Ψ', Omega: 'Ω',
  times: ' × ', cdot: ' · ', div: ' ÷ ', pm: ' ± ', mp: ' ∓ ', ast: '∗', circ: '°', bullet: '•', oplus: ' ⊕ ', otimes: ' ⊗ ',
  le: ' ≤ ', leq: ' ≤ ', ge: ' ≥ ', geq: ' ≥ ', ne: ' ≠ ', neq: ' ≠ ', approx: ' ≈ ', equiv: ' ≡ ', sim: ' ∼ ', propto: ' ∝ ', ll: ' ≪ ', gg: ' ≫ ', lt: ' < ', gt: ' > ',
  in: ' ∈ ', notin: ' ∉ ', subset: ' ⊂ ', subseteq: ' ⊆ ', cup: ' ∪ ', cap: ' ∩ ', emptyset: '∅', setminus: ' ∖ ', forall: '∀', exists: '∃', neg: '¬', land: ' ∧ ', lor: ' ∨ ',
  wedge: ' ∧ ', vee: ' ∨ ', to: ' → ', rightarrow: ' → ', leftarrow: ' ← ', Rightarrow: ' ⇒ ', Leftarrow: ' ⇐ ', leftrightarrow: ' ↔ ', Leftrightarrow: ' ⇔ ', implies: ' ⇒ ', iff: ' ⇔ ', mapsto: ' ↦ ',
  sum: '∑', prod: '∏', int: '∫', oint: '∮', infty: '∞', partial: '∂', nabla: '∇', sqrt: '√', prime: '′', degree: '°', angle: '∠', perp: ' ⊥ ', parallel: ' ∥ ', mid: ' | ', hbar: 'ℏ', ell: 'ℓ',
  dots: '…', ldots: '…', cdots: '⋯', vdots: '⋮', langle: '⟨', rangle: '⟩', lfloor: '⌊', rfloor: '⌋', lceil: '⌈', rceil: '⌉', vert: '|', Vert: '‖', lbrace: '{', rbrace: '}',
  quad: '  ', qquad: '    ', ',': '\u2009', ';': ' ', ':': ' ', ' ': ' ', '!': '', '%': '%', '$': '$', '&': '&', '#': '#', '_': '_', '{': '{', '}': '}', '|': '‖', '\\': '\n',
};

/** Commands that only say how their argument looks. */
const LOOKS = new Set(['mathbf', 'mathit', 'mathsf', 'mathtt', 'mathcal', 'boldsymbol', 'mathfrak', 'boxed', 'overline', 'underline']);

/** Commands whose argument is words. */
const TEXTS = new Set(['text', 'textbf', 'textit', 'mathrm', 'operatorname', 'mbox']);

/** Commands that say nothing to a reader of text. */
const SILENT = new Set(['left', 'right', 'big', 'Big', 'bigg', 'Bigg', 'displaystyle', 'textstyle', 'limits', 'nolimits', 'bigl', 'bigr', 'Bigl', 'Bigr', 'nonumber']);

const BLACKBOARD = { R: 'ℝ', N: 'ℕ', Z: 'ℤ', Q: 'ℚ', C: 'ℂ', P: 'ℙ', E: '𝔼' };
const MARKS = { hat: '\u0302', bar: '\u0304', vec: '\u20D7', tilde: '\u0303', dot: '\u0307', ddot: '\u0308' };

/** What is longer, or nested deeper, is shown as it was written. */
const LONGEST = 600;
const DEEPEST = 12;

/** Nodes of `page` (a document) for a formula. */
export function formula(page, tex) {
  const source = tex.trim();
  if (source.length > LONGEST) return [page.createTextNode(source)];
  const read = new Reader(page, source);
  try {
    return tidy(read.until(null, 0));
  } catch (error) {
    if (error !== TOO_DEEP) throw error;
    return [page.createTextNode(source)];
  }
}

const TOO_DEEP = new Error('a formula is nested too deep');

class Reader {
  /** What was written last, but for spaces: a sign after another one is that of a number. */
  last = '';

  constructor(page, source) {
    Object.assign(this, { page, source, at: 0 });
  }

  text(text) {
    this.last = text.trim().at(-1) ?? this.last;
    return this.page.createTextNode(text);
  }

  raised(name, nodes) {
    const element = this.page.createElement(name);
    element.append(...nodes);
    return element;
  }

  /** Everything up to `end` (a character), which is passed over, or to the end of the formula. */
  until(end, depth) {
    if (depth > DEEPEST) throw TOO_DEEP;
    const nodes = [];
    while (this.at < this.source.length) {
      if (end && this.source[this.at] === end) {
        this.at += 1;
        break;
      }
      nodes.push(...this.one(depth));
    }
    return nodes;
  }

  /** One letter, group or command. TeX reads over spaces, and makes its own. */
  one(depth) {
    const sign = this.source[this.at];
    this.at += 1;
    if (sign === '{') return this.until('}', depth + 1);
    if (/[\s}]/.test(sign)) return [];
    if (sign === '^' || sign === '_') {
      const inside = this.argument(depth);
      const text = inside.map((node) => node.textContent).join('');
      if (sign === '^' && /^[°′]+$/.test(text)) return [this.text(text)];
      for (const node of inside) if (node.nodeType === 3) node.data = node.data.replace(/ /g, '');
      return [this.raised(sign === '^' ? 'sup' : 'sub', tidy(inside))];
    }
    if (sign === '\\') return this.command(depth);
    if (sign === '~' || sign === '&') return [this.text(' ')];
    if (sign === "'") return [this.text('′')];
    if (sign === ',' || sign === ';') return [this.text(`${sign} `)];
    if (sign === '=' || sign === '<' || sign === '>') return [this.text(` ${sign} `)];
    if (sign === '+' || sign === '-' || sign === '*') {
      const shown = { '+': '+', '-': '−', '*': '∗' }[sign];
      return [this.text(/[\p{L}\p{N})\]′°]/u.test(this.last) ? ` ${shown} ` : shown)];
    }
    return [this.text(sign)];
  }

  argument(depth) {
    while (this.source[this.at] === ' ') this.at += 1;
    if (depth >= DEEPEST) throw TOO_DEEP;
    return this.at < this.source.length ? this.one(depth + 1) : [];
  }

  command(depth) {
    const name = /^(?:[A-Za-z]+|[^])/.exec(this.source.slice(this.at, this.at + 32))?.[0] ?? '';
    this.at += name.length;
    if (name === 'frac' || name === 'dfrac' || name === 'tfrac') {
      return [...grouped(this, this.argument(depth)), this.text('/'), ...grouped(this, this.argument(depth))];
    }
    if (name === 'sqrt') {
      const root = this.source[this.at] === '[' ? (this.at += 1, this.until(']', depth + 1)) : [];
      return [...(root.length ? [this.raised('sup', root)] : []), this.text('√'), ...grouped(this, this.argument(depth))];
    }
    if (name === 'binom') return [this.text('('), ...this.argument(depth), this.text(' over '), ...this.argument(depth), this.text(')')];
    if (name === 'begin' || name === 'end') {
      this.argument(depth);
      return [];
    }
    if (name === 'mathbb') {
      const inside = this.argument(depth).map((node) => node.textContent).join('');
      return [this.text(BLACKBOARD[inside] ?? inside)];
    }
    if (MARKS[name]) return [...this.argument(depth), this.text(MARKS[name])];
    if (TEXTS.has(name) && this.source[this.at] === '{') {
      const end = this.source.indexOf('}', this.at);
      const inside = this.source.slice(this.at + 1, end < 0 ? undefined : end);
      this.at = end < 0 ? this.source.length : end + 1;
      return [this.text(inside)];
    }
    if (LOOKS.has(name)) return this.argument(depth);
    if (SILENT.has(name)) {
      if (this.source[this.at] === '.') this.at += 1;
      return [];
    }
    // A command that is not known keeps its name: sin, log, max and the like read well so.
    return [this.text(Object.hasOwn(SIGNS, name) ? SIGNS[name] : /^[A-Za-z]+$/.test(name) ? ` ${name} ` : name)];
  }
}

/** Brackets around what is more than one sign, so that a fraction in one line means the same. */
function grouped(read, nodes) {
  const text = nodes.map((node) => node.textContent).join('');
  return /^[\p{L}\p{N}.]*$/u.test(text) ? nodes : [read.text('('), ...nodes, read.text(')')];
}

/** Texts that stand beside each other become one, with single spaces. */
function tidy(nodes) {
  const tidied = [];
  for (const node of nodes) {
    const last = tidied.at(-1);
    if (node.nodeType === 3 && last?.nodeType === 3) last.data += node.data;
    else tidied.push(node);
  }
  for (const node of tidied) if (node.nodeType === 3) node.data = node.data.replace(/ {2,}/g, ' ');
  return tidied;
}
