// Markdown as a component. The text may grow while it is shown; finished blocks stay unchanged.

import { html, useEffect, useLayoutEffect, useRef, useState } from './preact.js';
import { Blocks } from './blocks.js';
import { pressed } from './code.js';
import { bytes } from './format.js';
import { openImage } from './gallery.js';
import { forget } from './highlight.js';
import { pour } from './plain.js';

/** Maximum number of characters that are parsed as Markdown; the rest can be shown unformatted. */
const LONGEST = 100_000;

/** Time limits in milliseconds: per frame for all texts, and at once for new texts, so that most messages appear immediately. */
const SLICE = 6;
const FIRST = 24;

/** Milliseconds between updates of a text in a hidden tab, which has no frames. */
const UNSEEN = 300;

/**
 * Shows `text` as Markdown. `streaming`: more text will follow; `session`: whose workspace relative links and pictures refer to,
 * starting at the folder `base`. While it streams, `text` should begin with its previous value; any other text restarts.
 */
export function Markdown({ text = '', streaming = false, session, base }) {
  const root = useRef(null);
  const flow = useRef(null);
  useLayoutEffect(() => {
    flow.current ??= new Flow(root.current, { session, base });
    flow.current.write(beginning(text), streaming && text.length <= LONGEST);
  }, [text, streaming, session, base]);
  useLayoutEffect(() => () => {
    flow.current?.stop();
    flow.current = null;
  }, [session, base]);
  const press = (event) => {
    const picture = event.target.closest('.md-picture');
    if (picture) open(root.current, picture);
    else if (!followed(root.current, event.target)) pressed(event.target);
  };
  return html`<div class="md-whole"><div class="md" ref=${root} onClick=${press}></div>
    ${text.length > LONGEST && html`<${Rest} text=${text} />`}</div>`;
}

/** Returns the parsed part of a text that is too long: whole lines, if there are any. */
function beginning(text) {
  if (text.length <= LONGEST) return text;
  const line = text.lastIndexOf('\n', LONGEST);
  return text.slice(0, line > LONGEST / 2 ? line : LONGEST);
}

/** The rest of a very long text, on demand. */
function Rest({ text }) {
  const [shown, show] = useState(false);
  const box = useRef(null);
  const whole = text.length;
  const from = beginning(text).length;
  useEffect(() => {
    if (!shown) return undefined;
    box.current.textContent = '';
    // The button that had the focus is gone.
    if (document.activeElement === document.body) box.current.focus({ preventScroll: true });
    return pour(box.current, text.slice(from));
  }, [shown, text]);
  return html`<div class="md-rest">
    ${shown ? html`<div class="md-plain" ref=${box} tabindex="-1" role="group" aria-label="The rest, as plain text"></div>`
      : html`<button type="button" class="button" onClick=${() => show(true)}>Show all (${bytes(whole)}) as plain text</button>`}
  </div>`;
}

/** Moves to a footnote, or from it back to the text. */
function followed(root, target) {
  const { note, back } = target.closest('[data-note], [data-back]')?.dataset ?? {};
  const found = note ? root.querySelector(`.md-note[data-footnote="${note}"]`) : back ? root.querySelector(`.md-ref > [data-note="${back}"]`) : null;
  found?.scrollIntoView({ block: 'nearest' });
  found?.focus({ preventScroll: true });
  return Boolean(note || back);
}

/** Opens all pictures of a message in the lightbox, starting with the clicked one. */
function open(root, pressedOne) {
  const all = [...root.querySelectorAll('.md-picture')];
  openImage(all.map((one) => ({ src: one.firstChild.src, alt: one.firstChild.alt })), all.indexOf(pressedOne));
}

/** Texts with more to show, and the frame in which they continue. */
const unfinished = new Set();
let frame = 0;
let timer = 0;
let spent = 0;

function plan(flow) {
  unfinished.add(flow);
  if (document.hidden) timer ||= setTimeout(go, UNSEEN);
  else frame ||= requestAnimationFrame(go);
}

/** Processes the newest texts first, because those are read. */
function go() {
  clearTimeout(timer);
  cancelAnimationFrame(frame);
  frame = timer = spent = 0;
  const deadline = performance.now() + SLICE;
  for (const flow of [...unfinished].reverse()) {
    if (performance.now() > deadline) break;
    if (flow.blocks.work(deadline)) unfinished.delete(flow);
  }
  for (const flow of unfinished) plan(flow);
}

/** Returns the incomplete texts below an element, each with its `root`; only from `among` if that is given. */
export const pouring = (element, among = unfinished) => [...among].filter((flow) => unfinished.has(flow) && element.contains(flow.root));

/** Adds a text to the page step by step: at most once per frame, with limited work. */
class Flow {
  constructor(root, context) {
    Object.assign(this, { root, context, text: '', blocks: null });
  }

  write(text, growing) {
    const first = this.text === '';
    if (this.blocks && (!text.startsWith(this.text) || (this.blocks.ended && text !== this.text))) this.stop();
    this.blocks ??= new Blocks(this.root, this.context, growing);
    this.text = text;
    this.blocks.write(text);
    if (!growing) this.blocks.end();
    if (!first || spent > FIRST) {
      plan(this);
      return;
    }
    const began = performance.now();
    if (!this.blocks.work(began + FIRST - spent)) plan(this);
    spent += performance.now() - began;
    // The used time counts until the next frame.
    frame ||= requestAnimationFrame(go);
  }

  /** Removes the text. */
  stop() {
    unfinished.delete(this);
    forget(this.root);
    this.blocks?.leave();
    this.blocks = null;
    this.root.replaceChildren();
  }
}

/** Returns a text without its markup, on one line: for titles and screen readers. */
export function plainText(text, most = 200) {
  const plain = text.slice(0, most * 8)
    .replace(/^ {0,3}(`{3,}|~{3,}).*$/gm, '')
    .replace(/^ {0,3}\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/gm, '')
    .replace(/^[ \t]*(?:#{1,6} |> ?|[-*+] (?:\[[ xX]\] )?|\d{1,9}[.)] )+/gm, '')
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/(\*\*|__|~~|`+)(?=\S)([^]*?\S)\1/g, '$2')
    .replace(/(^|[^\w*])\*(?=\S)([^*\n]*\S)\*/g, '$1$2')
    .replace(/\s+/g, ' ')
    .trim();
  return plain.length > most ? `${plain.slice(0, most - 1).trimEnd()}…` : plain;
}
