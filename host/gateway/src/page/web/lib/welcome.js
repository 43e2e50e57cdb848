// The first screen of an empty session: examples that a click writes into the field.

import { html, useEffect, useState, useStore } from './preact.js';
import { get, isAdmin } from './api.js';
import { fillComposer } from './composer.js';
import { models, openConnect } from './models.js';
import { Icon, toast } from './ui.js';
import { upload, uploads } from './uploads.js';

/** The folder of this screen's files. */
const FILES = new URL('../welcome/', import.meta.url);

/** The example table: the weather of two cities in the months of a year. */
const TABLE = 'weather.csv';

/** Examples for a language model: title, message, and whether the table is attached. */
const TASKS = [
  ['table', 'Ask about a file', 'Which of the two cities has the better summer? Give reasons from the table, and draw them.', true],
  ['search', 'Look something up', 'What is new in the latest release of Rust? Give me the five things that matter, with links.'],
  ['clock', 'Have it done regularly', 'Every weekday at 8, tell me in five lines what is on the front page of https://news.ycombinator.com/.'],
  ['folder', 'Work in a folder', 'Look through my folder, group its files by topic, and propose better names. Change nothing yet.'],
];

/** Examples for the built-in rules. Each works as written, and its picture shows the real result: a test compares them. */
const RULES = [
  ['usage', 'Draw a chart', 'plot the mean temperature by month as a line chart', html`<${Chart} />`],
  ['table', 'Compare', 'Which city is warmer?', html`<table><thead><tr><th>city</th><th>mean_temperature_c</th></tr></thead>
    <tbody><tr><td>Lisbon</td><td>17.0083</td></tr><tr><td>Oslo</td><td>7.425</td></tr></tbody></table>`],
  ['play', 'Run a command', '$ sort -t, -k4 -nr weather.csv | head -n 3', html`<pre>${'2024-02,Lisbon,11.1,146\n2024-10,Oslo,8.2,126\n2024-08,Oslo,13.7,117'}</pre>`],
];

/** The chart of the first example. */
function Chart() {
  const { theme } = document.documentElement.dataset;
  const dark = theme ? theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  return html`<img src=${new URL(`chart-${dark ? 'dark' : 'light'}.svg`, FILES).href} alt="" width="480" height="240" loading="lazy" />`;
}

/** Writes an example into the field, with the table if it needs that. */
async function write(session, text, table) {
  fillComposer(session, text);
  if (!table || uploads.get()[session]?.some(({ name }) => name === TABLE)) return;
  const answer = await fetch(new URL(TABLE, FILES)).catch(() => null);
  if (!answer?.ok) {
    toast(`${TABLE} could not be loaded`, 'bad', 'Choose the task again when kiso is back.');
    return;
  }
  upload(session, [new File([await answer.blob()], TABLE, { type: 'text/csv' })]);
}

export function Welcome({ session, model }) {
  const preset = useStore(models, (told) => told?.default ?? null);
  const chosen = model ?? preset;
  const rules = chosen === 'reflex';
  // The example with a folder is offered only if there are folders to open.
  const [folders, found] = useState(null);
  const wanted = chosen !== null && !rules;
  useEffect(() => {
    if (wanted) get('/folders').then(({ items }) => found(items.length > 0), () => found(false));
  }, [wanted]);
  const cards = rules ? RULES.map(([icon, title, text, result]) => [icon, title, text, true, result]) : TASKS.filter(([icon]) => icon !== 'folder' || folders);
  return html`<div class="chat-welcome">
  <svg class="logo" width="44" height="44" viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="8" />
    <path d="M7 22h18M10 22v-6h12v6M13 16v-6h6v6" /></svg>
  <h2>What would you like to do?</h2>
  <p>${rules
    ? 'Without a language model, kiso works by built-in rules: commands, tables and charts. Connect a model to ask anything in your own words.'
    : 'Ask a question, or give kiso a task. It makes a plan, runs it in a sandbox, and shows you each step.'}</p>
  <ul aria-label="Examples" class=${`${chosen === null || (wanted && folders === null) ? 'pending' : ''} ${cards.length === 3 ? 'three' : ''}`}>
    ${rules && isAdmin() && html`<li class="wide"><button type="button" class="connect" onClick=${openConnect}><${Icon} name="link" />
      <span class="strong">Connect a model</span><span>Use OpenAI, Anthropic, OpenRouter, or a model on this machine.</span></button></li>`}
    ${cards.map(([icon, title, text, table, result]) => html`<li key=${title}>
    <button type="button" onClick=${() => write(session, text, table)}><${Icon} name=${icon} />
      <span class="strong">${title}</span>${result && html`<span class="welcome-shown" aria-hidden="true">${result}</span>`}<span class=${text.startsWith('$') ? 'mono' : ''}>${text}</span></button></li>`)}</ul>
</div>`;
}
