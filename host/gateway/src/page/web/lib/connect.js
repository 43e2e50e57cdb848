// Leads somebody from the built-in rules to a language model. The key never comes here: it goes from a terminal, or a file of
// systemd's, into the daemon's environment; the page only asks whether it works.

import { html, useEffect, useState } from './preact.js';
import { get, isAdmin, post } from './api.js';
import { visible } from './format.js';
import { Badge, Button, Busy, CopyButton, Dialog, Icon, Trouble } from './ui.js';

const NAMES = { openrouter: 'OpenRouter', openai: 'OpenAI', anthropic: 'Anthropic', ollama: 'Ollama', 'llama.cpp': 'llama.cpp', vllm: 'vLLM' };

export function Connect({ onClose }) {
  const [presets, set] = useState(null);
  const [error, fail] = useState(null);
  const [name, choose] = useState(null);
  const load = () => get('/models').then((told) => { set(told.presets); fail(null); }, fail);
  useEffect(() => void load(), []);
  const preset = presets?.find((one) => one.name === name);
  return html`<${Dialog} title="Connect a model" onClose=${onClose}>
    ${error && html`<${Trouble} error=${error} again=${load} />`}
    ${!presets && !error && html`<${Busy} />`}
    ${presets && html`<fieldset class="connect-presets"><legend class="strong">Provider</legend>
      ${presets.map((one) => html`<label key=${one.name} class="checked"><input type="radio" name="preset" checked=${one.name === name} onChange=${() => choose(one.name)} />
        <span>${NAMES[one.name] ?? one.name} <span class="muted">${one.key_env ? 'needs a key' : 'on your machine'}</span></span></label>`)}</fieldset>`}
    ${preset && html`<${Steps} key=${preset.name} preset=${preset} />`}
  <//>`;
}

function Steps({ preset }) {
  const { name, model, advice, key_env, key_is_set } = preset;
  return html`<p class="muted">${visible(advice)}</p>
    <ol class="connect-steps">
      <li><p><span class="strong">Add the provider.</span> In a terminal on the machine that runs kiso:</p>
        <${Command} text=${`kiso config preset ${name} --write`} />
        <p class="muted">This sets <code>${model}</code> in config.toml. You can change the model there.</p></li>
      ${key_env && html`<li><p><span class="strong">Give kiso your key.</span> ${key_is_set
          ? html`<${Badge} kind="good"><${Icon} name="check" size=${14} />${key_env} is set<//>` : 'Never paste it into a chat. Set it before you start kiso:'}</p>
        ${!key_is_set && html`<${Command} text=${`read -rs ${key_env}\nexport ${key_env}\nkiso serve`} />
          <p class="muted">With systemd, keep it in a file that only root can read, run <code>systemctl edit kiso</code> and add:</p>
          <${Command} text=${`[Service]\nLoadCredential=${key_env}:/etc/kiso/${key_env.toLowerCase()}`} />`}</li>`}
      <li><p><span class="strong">Load the new configuration.</span>${key_env && !key_is_set ? ' Not needed if you just restarted kiso.' : ''}</p>
        <${Command} text="kiso config reload" /></li>
      <li><p><span class="strong">Test it.</span> kiso sends each configured model three short requests.</p>
        ${isAdmin() ? html`<${Check} />` : html`<${Command} text="kiso doctor" />`}</li>
    </ol>`;
}

const Command = ({ text }) => html`<div class="connect-command"><pre tabindex="0" role="group" aria-label="Command">${text}</pre><${CopyButton} text=${text} label="Copy command" /></div>`;

function Check() {
  const [told, set] = useState(null);
  const check = async () => {
    set(null);
    set(await post('/models/check'));
  };
  const models = told?.checks.filter((one) => !one.built_in) ?? [];
  return html`<${Button} icon="health" onClick=${check}>Test the connection<//>
    <div role="status">
    ${told && !models.length && html`<p class="wrong">config.toml names no model yet. Do step 1 first.</p>`}
    ${models.length > 0 && html`<ul class="connect-found">${models.map((one) => html`<li key=${one.model}>
      <${Badge} kind=${one.ok ? 'good' : 'bad'}>${one.ok ? 'works' : 'failed'}<//> <span class="strong">${visible(one.model)}</span>
      ${!one.ok && html`<p class="muted">${visible(one.detail)}</p>`}
      ${one.ok && html`<p class="muted">${one.capabilities.map(({ name, works }) => `${works ? '✓' : '✗'} ${name}`).join(' · ')}</p>`}</li>`)}</ul>`}
    ${told && models.length > 0 && !told.in_use && html`<p class="wrong">kiso still uses the old configuration. Run <code>kiso config reload</code>.</p>`}
    ${told && told.in_use && models.length > 0 && models.every((one) => one.ok) && html`<p>All set. New messages use this model.</p>`}
    </div>`;
}
