// Long text in pieces: the beginning at once, the rest on demand, and never so much at once that the page blocks.

import { html, useEffect, useState } from './preact.js';
import { bytes } from './format.js';
import { plain } from './run-text.js';
import { Button } from './ui.js';

/** Number of characters that are shown at first. */
const CHARACTERS = 3_000;
const LINES = 24;

/** Characters per piece, whose layout the browser skips while it is off-screen, and pieces per frame. */
const PIECE = 20_000;
const AT_ONCE = 8;

/** Plain text. `label` is the name of the scrolling box for a program's output; `draw(text)` formats its parts. */
export function Long({ text, label, draw = (part) => part }) {
  const [pieces, set] = useState(0);
  const beginning = cut(text);
  const whole = beginning.length === text.length;
  const all = Math.ceil(text.length / PIECE);
  useEffect(() => {
    if (!pieces || pieces >= all) return undefined;
    const frame = requestAnimationFrame(() => set((count) => count + AT_ONCE));
    return () => cancelAnimationFrame(frame);
  }, [pieces, all]);
  const shown = pieces && !whole
    ? Array.from({ length: Math.min(pieces, all) }, (_, index) => html`<${Piece} key=${index} draw=${draw} text=${text.slice(edge(text, index * PIECE), edge(text, (index + 1) * PIECE))} />`)
    : draw(plain(beginning));
  const inside = html`${shown}${!whole && !pieces && '…'}`;
  return html`
    ${label ? html`<pre class="run-output" tabindex="0" role="group" aria-label=${label}>${inside}</pre>` : html`<div class="run-text">${inside}</div>`}
    ${!whole && html`<${Button} kind="small" onClick=${() => set(pieces ? 0 : AT_ONCE)}>${pieces ? 'Show less' : `Show all (${bytes(text.length)})`}<//>`}`;
}

function Piece({ text, draw }) {
  const [shown] = useState(() => draw(plain(text)));
  return html`<span class=${text.length >= PIECE - 1 ? 'run-piece' : ''}>${shown}</span>`;
}

function cut(text) {
  let end = -1;
  for (let line = 0; line < LINES; line += 1) {
    end = text.indexOf('\n', end + 1);
    if (end < 0 || end > CHARACTERS) break;
  }
  // A text that is only slightly longer is shown completely.
  const at = end < 0 ? CHARACTERS : Math.min(end, CHARACTERS);
  return text.length <= at * 1.2 ? text : text.slice(0, edge(text, at));
}

/** Returns a position at which a text can be split: not between the halves of a surrogate pair. */
const edge = (text, at) => (/[\ud800-\udbff]/.test(text[at - 1] ?? '') ? at - 1 : at);
