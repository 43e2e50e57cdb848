// A sentence of the daemon, as a page shows it: with a capital at its beginning, and names of commands as code.

import { html } from './preact.js';
import { visible } from './format.js';

export function Sentence({ text }) {
  const said = visible(text);
  // A name in the first place, such as of a variable, a model or kiso, is written as it is.
  const whole = /^(?!kiso\b)[a-z]+(?:['’][a-z]+)?[ ,]/.test(said) ? said[0].toUpperCase() + said.slice(1) : said;
  return whole.split('`').map((one, at) => (at % 2 && one ? html`<code key=${at}>${one}</code>` : one));
}
