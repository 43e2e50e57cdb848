// The result of a test of a model, with the meaning and the remedy of each ability that it lacks.

import { html } from './preact.js';
import { visible } from './format.js';
import { Sentence } from './said.js';
import { Badge, Icon } from './ui.js';

const NAMES = { answers: 'Answers', streams: 'Streams its answer', usage: 'Counts tokens', tools: 'Calls tools', 'json schema': 'Keeps to a JSON Schema', pictures: 'Reads pictures' };

export function Found({ check }) {
  const { model, ok, detail, remedy, capabilities } = check;
  if (!ok) {
    return html`<div class="connect-found"><p><${Badge} kind="bad">failed<//> <span class="strong">${visible(model)}</span></p>
      <p class="connect-why"><${Sentence} text=${detail} /></p>${remedy && html`<p>${remedy}</p>`}</div>`;
  }
  return html`<div class="connect-found"><p><${Badge} kind="good">works<//> <span class="strong">${visible(model)}</span></p>
    <ul>${capabilities.map(({ name, works, note, meaning }) => html`<li key=${name} class=${works ? 'able' : 'unable'}>
      <${Icon} name=${works ? 'check' : 'close'} label=${works ? 'Yes' : 'No'} size=${15} /><div><span>${NAMES[name] ?? name}</span>
      ${!works && meaning && html`<p class="muted">${meaning}</p>`}
      ${!works && note && html`<details class="muted"><summary>Details</summary>${visible(note)}</details>`}</div></li>`)}</ul></div>`;
}
