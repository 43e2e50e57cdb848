// What stands in a session in which nobody has written yet.

import { html } from './preact.js';
import { fillComposer } from './composer.js';
import { Icon } from './ui.js';

const EXAMPLES = [
  ['chat', 'Explain something', 'What happens between typing an address and seeing the page?'],
  ['usage', 'Work with data', 'Make a table of the ten largest cities of Europe, and draw it as a bar chart.'],
  ['clock', 'Get something done', 'Write a Python script that finds duplicate files, run it on a small example, and show me what it prints.'],
];

export const Welcome = ({ session }) => html`<div class="chat-welcome">
  <svg class="logo" width="44" height="44" viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="8" />
    <path d="M7 22h18M10 22v-6h12v6M13 16v-6h6v6" /></svg>
  <h2>What shall be done?</h2>
  <p>kiso answers, or makes a plan and carries it out: it runs commands in this session’s workspace, uses skills, and checks the results.
    You see each step while it is done, and can open it afterwards.</p>
  <ul aria-label="Examples">${EXAMPLES.map(([icon, title, text]) => html`<li key=${title}>
    <button type="button" onClick=${() => fillComposer(session, text)}><${Icon} name=${icon} />
      <span class="strong">${title}</span><span>${text}</span></button></li>`)}</ul>
</div>`;
