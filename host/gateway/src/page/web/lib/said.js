// Formats a sentence of the daemon for the page: capitalizes it, and shows command names as code.

import { html } from './preact.js';
import { visible } from './format.js';

export function Sentence({ text }) {
  const said = visible(text);
  // A name at the beginning, such as a variable, a model or kiso, keeps its case.
  const whole = /^(?!kiso\b)[a-z]+(?:['’][a-z]+)?[ ,]/.test(said) ? said[0].toUpperCase() + said.slice(1) : said;
  return whole.split('`').map((one, at) => (at % 2 && one ? html`<code key=${at}>${one}</code>` : one));
}
