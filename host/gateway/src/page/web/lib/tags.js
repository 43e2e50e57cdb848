// Tags in a user's message: each links to all messages with the same tag.

import { html, useStore } from './preact.js';
import { input } from './complete.js';
import { lookFor } from './search.js';

/** A possible tag after an allowed preceding character. The daemon determines which ones are tags. */
const TAG = /(^|[\s([{"'“‘«„,;、。（「])#(\p{L}[\p{L}\p{N}_-]*)/gu;

/** A text with marked `tags`; a tag that is not a category of tools looks the same. */
export function Tagged({ text, tags }) {
  const categories = useStore(input, (known) => known.tags);
  const pieces = [];
  let from = 0;
  for (const found of text.matchAll(TAG)) {
    const word = found[2].replace(/[_-]+$/, '');
    const name = word.toLowerCase();
    if (!tags.includes(name)) continue;
    const at = found.index + found[1].length;
    pieces.push(text.slice(from, at));
    from = at + 1 + word.length;
    const unknown = categories.length > 0 && !categories.some((one) => one.name.toLowerCase() === name);
    const title = unknown ? 'Not a tool category. Show all messages with this tag' : 'Show all messages with this tag';
    pieces.push(html`<button type="button" class=${`chat-tag ${unknown ? 'unknown' : ''}`} title=${title} onClick=${() => lookFor(`#${name}`)}>#${word}</button>`);
  }
  return [...pieces, text.slice(from)];
}
