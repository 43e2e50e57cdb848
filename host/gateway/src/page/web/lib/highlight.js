// Colours for code. highlight.js runs in a worker, because it is large and slow for some code. Its results come back as words and
// kinds, and are applied here step by step when the browser is idle.

import { visible } from './inline.js';

/** Maximum length in characters of a coloured block; longer ones stay plain. */
const LONGEST = 40_000;

/** Time limits in milliseconds: of the worker for a block, and of a step in the page. */
const PATIENCE = 15_000;
const SLICE = 6;

/** Milliseconds after which a block with a text selection is tried again. */
const LATER = 1_500;

const WORKER = new URL('highlight-worker.js', import.meta.url).href;

const waiting = new Map();
const asked = new Map();
let script = null;
let worker = null;
let ready = false;
/** Whether the worker is unavailable, because another version of kiso has other files. */
let broken = false;
let number = 0;
let over = 0;

/** Colours `code`, an element whose children are parts of `source`, when it becomes visible. */
export function paint(code, source, language) {
  if (!source || source.length > LONGEST) return;
  waiting.set(code, { source: visible(source), language });
  views.observe(code);
}

/** Drops these blocks, which are no longer shown. */
export function forget(root) {
  for (const code of root.querySelectorAll('.md-code code')) {
    waiting.delete(code);
    views.unobserve(code);
  }
}

const views = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (!isIntersecting) continue;
    views.unobserve(target);
    const one = waiting.get(target);
    waiting.delete(target);
    if (one) ask({ code: target, ...one });
  }
}, { rootMargin: '600px' });

function ask(one) {
  if (broken) return;
  worker ??= start();
  number += 1;
  asked.set(number, one);
  worker.postMessage({ id: number, source: one.source, language: one.language });
  if (asked.size === 1) watch();
}

/** Leaves code plain if highlight.js does not finish, and continues with other blocks. */
function watch() {
  clearTimeout(over);
  if (!asked.size || !ready) return;
  over = setTimeout(() => {
    worker.terminate();
    worker = null;
    ready = false;
    const [, ...others] = asked.values();
    asked.clear();
    others.forEach(ask);
  }, PATIENCE);
}

function start() {
  // The only script that the page may start; no text of a model reaches this.
  script ??= globalThis.trustedTypes?.createPolicy('kiso', { createScriptURL: () => WORKER }).createScriptURL('') ?? WORKER;
  const started = new Worker(script, { type: 'module' });
  started.onerror = () => {
    if (ready) return;
    broken = true;
    asked.clear();
  };
  started.onmessage = ({ data }) => {
    ready = true;
    const one = asked.get(data.id);
    asked.delete(data.id);
    watch();
    if (one && data.words) idle(() => colour(one, data.words));
  };
  return started;
}

const idle = (work) => (globalThis.requestIdleCallback ? requestIdleCallback(work, { timeout: 500 }) : setTimeout(work, 30));

/** `words` are alternating texts and kinds. */
function colour(one, words, from = { part: 0, word: 0, inside: 0, at: 0 }) {
  const { code, source } = one;
  if (!code.isConnected) return;
  const chosen = getSelection();
  if (!chosen.isCollapsed && chosen.containsNode(code, true)) {
    // Waits, because changing the elements would destroy the user's selection.
    setTimeout(colour, LATER, one, words, from);
    return;
  }
  const deadline = performance.now() + SLICE;
  let { part, word, inside, at } = from;
  for (; part < code.children.length; part += 1) {
    if (performance.now() > deadline) {
      idle(() => colour(one, words, { part, word, inside, at }));
      return;
    }
    const span = code.children[part];
    let left = span.textContent.length;
    const coloured = document.createDocumentFragment();
    while (left > 0 && word < words.length) {
      const piece = words[word].slice(inside, inside + left);
      coloured.append(piece && words[word + 1] ? kind(piece, words[word + 1]) : piece);
      left -= piece.length;
      at += piece.length;
      inside += piece.length;
      if (inside >= words[word].length) [word, inside] = [word + 2, 0];
    }
    if (coloured.textContent === span.textContent) span.replaceChildren(coloured);
    // Parts are separated by line breaks.
    if (source[at] === '\n') {
      at += 1;
      inside += 1;
      if (words[word] !== undefined && inside >= words[word].length) [word, inside] = [word + 2, 0];
    }
  }
}

function kind(piece, name) {
  const span = document.createElement('span');
  span.className = `hl-${name}`;
  span.textContent = piece;
  return span;
}
