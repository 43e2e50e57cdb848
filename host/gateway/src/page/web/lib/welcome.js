// What stands in a session in which nobody has written yet.

import { html, useStore } from './preact.js';
import { isAdmin } from './api.js';
import { fillComposer } from './composer.js';
import { models, openConnect } from './models.js';
import { Icon } from './ui.js';

/** What a language model can do. */
const EXAMPLES = [
  ['chat', 'Explain something', 'What happens between typing an address and seeing the page?'],
  ['usage', 'Work with data', 'Make a table of the ten largest cities of Europe, and draw it as a bar chart.'],
  ['clock', 'Get something done', 'Find out which five words are most frequent in the documentation of kiso, and show the commands that you used.'],
];

/** What the built-in rules can do. Each runs as it is written, in a session without files. */
const RULES = [
  ['play', 'Run a command', '$ for n in 1 2 3 4 5; do echo "$n squared is $((n * n))"; done'],
  ['usage', 'Draw a chart', '$ printf \'month,rain_mm\\nJan,61\\nFeb,48\\nMar,72\\nApr,55\\n\' > rain.csv\nchart file=rain.csv kind=bar x=month y=["rain_mm"] title="Rain by month"'],
  ['info', 'See what is possible', 'What can you do?'],
];

export function Welcome({ session, model }) {
  const preset = useStore(models, (told) => told?.default ?? null);
  const chosen = model ?? preset;
  const rules = chosen === 'reflex';
  return html`<div class="chat-welcome">
  <svg class="logo" width="44" height="44" viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="8" />
    <path d="M7 22h18M10 22v-6h12v6M13 16v-6h6v6" /></svg>
  <h2>What would you like to do?</h2>
  <p>${rules
    ? 'kiso runs on its built-in rules now: commands, charts and tables work. To ask anything in your own words, connect a language model.'
    : 'Ask a question, or give kiso a task. It makes a plan, runs it in a sandbox, and shows you each step.'}</p>
  <ul aria-label="Examples" class=${chosen === null ? 'pending' : ''}>
    ${rules && isAdmin() && html`<li><button type="button" class="connect" onClick=${openConnect}><${Icon} name="link" />
      <span class="strong">Connect a model</span><span>Use OpenAI, Anthropic, OpenRouter, or a model on this machine.</span></button></li>`}
    ${(rules ? RULES : EXAMPLES).map(([icon, title, text]) => html`<li key=${title}>
    <button type="button" onClick=${() => fillComposer(session, text)}><${Icon} name=${icon} />
      <span class="strong">${title}</span><span class=${text.startsWith('$') ? 'mono' : ''}>${text}</span></button></li>`)}</ul>
</div>`;
}
