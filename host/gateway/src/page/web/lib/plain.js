// Texts that are too long to be read as Markdown, shown as they are: in parts, of which the browser lays out those in view.

import { visible } from './inline.js';

/** Characters of one part, and milliseconds of work at a time. */
const PART = 12_000;
const SLICE = 8;

/** How high a part is, about, before it is laid out: signs of a line, and its height. */
const WIDTH = 95;
const LINE = 1.22;

/** Puts `text` into `element`, a part at a time; gives what ends it. */
export function pour(element, text) {
  let at = 0;
  let timer = 0;
  const more = () => {
    const deadline = performance.now() + SLICE;
    while (at < text.length && performance.now() < deadline) {
      let end = Math.min(text.length, at + PART);
      // A part ends with a line, where one ends nearby; it must not end within a letter.
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
