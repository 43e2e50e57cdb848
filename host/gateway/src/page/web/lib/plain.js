// Texts that are too long for Markdown, shown unformatted: in parts, of which the browser lays out only the visible ones.

import { visible } from './inline.js';

/** Characters per part, and milliseconds of work per step. */
const PART = 12_000;
const SLICE = 8;

/** Values for estimating the height of a part before its layout: characters per line, and line height. */
const WIDTH = 95;
const LINE = 1.22;

/** Adds `text` to `element` part by part; returns a function that stops it. */
export function pour(element, text) {
  let at = 0;
  let timer = 0;
  const more = () => {
    const deadline = performance.now() + SLICE;
    while (at < text.length && performance.now() < deadline) {
      let end = Math.min(text.length, at + PART);
      // A part ends at a nearby line break if there is one; it must not split a character.
      const line = text.lastIndexOf('\n', end - 1);
      const cut = line > at + PART / 2;
      if (end < text.length && cut) end = line;
      else if (/[\ud800-\udbff]/.test(text[end - 1])) end -= 1;
      const part = document.createElement('span');
      part.className = 'md-plain-part';
      const shown = visible(text.slice(at, end));
      part.textContent = shown;
      part.style.containIntrinsicSize = `auto ${Math.max(shown.split('\n').length, shown.length / WIDTH) * LINE}rem`;
      element.append(part);
      at = cut && text[end] === '\n' ? end + 1 : end;
    }
    timer = at < text.length ? setTimeout(more, 0) : 0;
  };
  more();
  return () => clearTimeout(timer);
}
