// Leads somebody to a language model: provider, key, model, test. The key leaves this page once, to the daemon, which keeps it
// encrypted and never sends it back.

import { html, useEffect, useRef, useState } from './preact.js';
import { del, get, isAdmin, part, post, put } from './api.js';
import { count, visible } from './format.js';
import { refreshModels } from './models.js';
import { Sentence } from './said.js';
import { Badge, Button, Busy, Dialog, Icon, Said, Trouble, confirm, report, toast } from './ui.js';

/** The card for every other server. */
const OTHER = { name: '', title: 'Other server', kind: 'openai', base_url: '', key_url: null, key_env: null, model: '' };

/** Cards in the order in which people look for them. */
const ORDER = ['openai', 'anthropic', 'openrouter', 'gemini', 'groq', 'ollama', 'lmstudio', 'llama.cpp', 'vllm'];

/** Models of a list that are shown at once; a search finds the others. */
const SHOWN = 60;

export function Connect({ onClose }) {
  const [known, set] = useState(null);
  const [error, fail] = useState(null);
  const [card, choose] = useState(null);
  const load = () => Promise.all([get('/models'), get('/providers')]).then(([{ presets, unready }, told]) => {
    set({ cards: [...ORDER.map((name) => presets.find((one) => one.name === name)).filter(Boolean), OTHER], unready: unready ?? [], ...told });
    fail(null);
  }, fail);
  useEffect(() => void (isAdmin() && load()), []);
  if (!isAdmin()) {
    return html`<${Dialog} title="Connect a model" onClose=${onClose}>
      <p>Only an administrator can connect a model. Ask the person who runs this kiso.</p><//>`;
  }
  const chosen = known?.cards.find((one) => one.name === card);
  return html`<${Dialog} title="Connect a model" onClose=${onClose}>
    ${error && html`<${Trouble} error=${error} again=${load} />`}
    ${!known && !error && html`<${Busy} />`}
    ${known && html`
      ${known.unready.map(({ model, why }) => html`<p key=${model} class="connect-unready"><${Icon} name="alert" /><span>${visible(model)} has no key: ${visible(why)}.
        Set it where kiso runs, or connect another model here.</span></p>`)}
      <fieldset class="connect-cards"><legend class="strong">Provider</legend>
        ${known.cards.map((one) => html`<label key=${one.name} class="connect-card"><input type="radio" name="preset" checked=${one.name === card} onChange=${() => choose(one.name)} />
          <span>${one.title}</span><span class="muted">${one === OTHER ? 'any address' : one.key_env ? 'needs a key' : 'on your machine'}</span></label>`)}</fieldset>
      ${chosen && html`<${Setup} key=${card} card=${chosen} providers=${known.items} onChange=${load} />`}
      <${Connected} items=${known.items} current=${known.default} onChange=${load} />`}
  <//>`;
}

/** A name for the provider at an address: its host, as far as a name can have it. */
function nameOf(address, taken) {
  let host = 'server';
  try {
    host = new URL(address).host;
  } catch {
    // The daemon says what is wrong with it.
  }
  const stem = host.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^[^a-z]+|-+$/g, '').slice(0, 24) || 'server';
  for (let n = 1; ; n += 1) {
    const name = n === 1 ? stem : `${stem}-${n}`;
    if (!taken.has(name)) return name;
  }
}

/** One provider: its address and key, then its models. */
function Setup({ card, providers, onChange }) {
  const own = card.name.replace('.', '');
  const [name, setName] = useState(card === OTHER ? null : own);
  const provider = providers.find((one) => one.name === name);
  const [editing, edit] = useState(false);
  const taken = new Set(providers.map((one) => one.name));
  if (provider && !editing) {
    return html`<${Models} key=${name} card=${card} provider=${provider} onEdit=${provider.configured ? null : () => edit(true)} onChange=${onChange} />`;
  }
  const done = async (saved) => {
    await onChange();
    setName(saved);
    edit(false);
  };
  return html`<${Entry} card=${card} provider=${provider} name=${(address) => provider?.name ?? (card === OTHER ? nameOf(address, taken) : own)} onDone=${done} />`;
}

function Entry({ card, provider, name, onDone }) {
  const cloud = Boolean(card.key_env);
  const [address, setAddress] = useState(provider?.base_url ?? card.base_url);
  const [kind, setKind] = useState(provider?.kind ?? card.kind);
  const [error, fail] = useState(null);
  const [busy, wait] = useState(false);
  const key = useRef(null);
  const submit = async (event) => {
    event.preventDefault();
    const value = key.current.value.trim();
    // It is in the page no longer than it takes to send it.
    key.current.value = '';
    wait(true);
    fail(null);
    try {
      const { name: saved } = await put(`/providers/${part(name(address))}`, { kind, base_url: address.trim(), ...(value && { key: value }) });
      await onDone(saved);
    } catch (refused) {
      fail(refused);
    }
    wait(false);
  };
  return html`<form class="connect-entry" onSubmit=${submit} autocomplete="off">
    ${cloud ? html`<p class="muted">${card.key_url && html`Create a key at <a href=${card.key_url} target="_blank" rel="noopener noreferrer">${new URL(card.key_url).host}</a>. `}It is kept encrypted on your server, and sent only to ${new URL(card.base_url).host}.</p>`
      : html`<div class="field"><label for="connect-address">Address</label>
        <input id="connect-address" type="url" required maxlength="500" spellcheck=${false} value=${address} placeholder="http://localhost:8000/v1" onInput=${(event) => setAddress(event.target.value)} />
        <p class="muted">As the machine that runs kiso reaches it. Most end in /v1.</p></div>`}
    ${card === OTHER && html`<div class="field"><label for="connect-kind">Format</label>
      <select id="connect-kind" value=${kind} onChange=${(event) => setKind(event.target.value)}>
        <option value="openai">OpenAI chat completions (most servers)</option><option value="anthropic">Anthropic Messages</option></select></div>`}
    <div class="field"><label for="connect-key">API key${!cloud && html` <span class="muted">if the server wants one</span>`}</label>
      <input id="connect-key" ref=${key} type="password" autocomplete="off" spellcheck=${false} required=${cloud} maxlength="4096" data-1p-ignore data-lpignore="true" /></div>
    ${error && html`<${Trouble} error=${error} />`}
    <footer><${Button} kind="primary" type="submit" busy=${busy}>${provider ? 'Save' : 'Connect'}<//></footer>
  </form>`;
}

function Models({ card, provider, onEdit, onChange }) {
  const [list, set] = useState(null);
  const [error, fail] = useState(null);
  const [words, search] = useState('');
  const [model, pick] = useState('');
  const [found, show] = useState(null);
  const [used, use] = useState(null);
  const base = `/providers/${part(provider.name)}`;
  const load = () => {
    fail(null);
    set(null);
    return get(`${base}/models`).then(({ items }) => {
      set(items);
      const usual = card.model.slice(card.model.indexOf(':') + 1);
      const first = items.length === 1 ? items[0].name : items.find((one) => one.name === usual)?.name;
      pick((old) => old || first || '');
    }, (refused) => {
      set([]);
      fail(refused);
    });
  };
  useEffect(() => void load(), [provider.base_url, provider.has_key]);
  const asked = words.trim().toLowerCase();
  const fits = (list ?? []).filter((one) => one.name.toLowerCase().includes(asked));
  const typed = words.trim() && !fits.some((one) => one.name === words.trim()) ? [{ name: words.trim(), typed: true }] : [];
  const shown = [...fits.slice(0, SHOWN), ...typed];
  const choose = (name) => {
    pick(name);
    show(null);
    use(null);
  };
  const test = async () => {
    show(null);
    show(await post(`${base}/check`, { model }));
  };
  const take = async () => {
    const context = list.find((one) => one.name === model)?.context;
    use(await put(`${base}/models`, { model, default: true, ...(context && { context }) }));
    await Promise.all([onChange(), refreshModels()]);
  };
  return html`<div class="connect-models">
    <p class="connect-at"><${Badge} kind=${error ? 'bad' : 'good'}>${error ? 'does not work' : provider.has_key ? 'key saved' : 'connected'}<//> <span class="muted"><bdi>${visible(provider.base_url)}</bdi></span>
      ${onEdit && html`<button type="button" class="link" onClick=${onEdit}>Change key or address</button>`}</p>
    ${error && html`<${Trouble} error=${error} again=${load} />`}
    ${!list && html`<${Busy}>Reading the list of models…<//>`}
    ${list && html`<div class="field"><label for="connect-search">Model</label>
      <input id="connect-search" type="search" autocomplete="off" spellcheck=${false} value=${words} placeholder=${list.length ? `Search ${count(list.length)} models, or type a name` : 'Type the model’s name'} onInput=${(event) => search(event.target.value)} /></div>
      <fieldset class="connect-list" aria-label="Models">${shown.map((one) => html`<label key=${one.name} class="checked"><input type="radio" name="connect-model" checked=${one.name === model} onChange=${() => choose(one.name)} />
        <span><bdi>${visible(one.name)}</bdi>${one.typed ? html` <span class="muted">as typed</span>` : one.context && html` <span class="muted">${count(one.context)} tokens</span>`}</span></label>`)}
        ${fits.length > SHOWN && html`<p class="muted">${count(fits.length - SHOWN)} more: type a part of the name.</p>`}</fieldset>
      <footer><${Button} icon="health" disabled=${!model} onClick=${test}>Test<//>
        ${provider.configured ? html`<p class="muted">This provider stands in config.toml. Name its models there.</p>`
          : html`<${Button} kind="primary" disabled=${!model} onClick=${take}>Use this model<//>`}</footer>`}
    <div role="status">
      ${found && html`<${Found} check=${found} />`}
      ${used && html`<p class="connect-done"><${Icon} name="check" />${used.in_use ? html`<span>Done. New messages use <b>${visible(used.model)}</b>.</span>`
        : html`<span><b>${visible(used.model)}</b> can be chosen in the model menu of each chat. config.toml names another default, which takes precedence.</span>`}</p>`}
    </div></div>`;
}

/** Abilities of a model, as people call them. */
const ABILITIES = { answers: 'Answers', streams: 'Streams its answer', usage: 'Counts tokens', tools: 'Calls tools', 'json schema': 'Keeps to a JSON Schema', pictures: 'Reads pictures' };

/** The result of a test, with the meaning and the remedy of each ability that the model lacks. */
function Found({ check }) {
  const { model, ok, detail, remedy, capabilities } = check;
  if (!ok) {
    return html`<div class="connect-found"><p><${Badge} kind="bad">failed<//> <span class="strong">${visible(model)}</span></p>
      <p class="connect-why"><${Sentence} text=${detail} /></p>${remedy && html`<p>${remedy}</p>`}</div>`;
  }
  return html`<div class="connect-found"><p><${Badge} kind="good">works<//> <span class="strong">${visible(model)}</span></p>
    <ul>${capabilities.map(({ name, works, note, meaning }) => html`<li key=${name} class=${works ? 'able' : 'unable'}>
      <${Icon} name=${works ? 'check' : 'close'} label=${works ? 'Yes' : 'No'} size=${15} /><div><span>${ABILITIES[name] ?? name}</span>
      ${!works && meaning && html`<p class="muted">${meaning}</p>`}
      ${!works && note && html`<details class="muted"><summary>Details</summary>${visible(note)}</details>`}</div></li>`)}</ul></div>`;
}

/** What is there already. */
function Connected({ items, current, onChange }) {
  if (!items.length) return null;
  const remove = async ({ name, models }) => {
    const sure = await confirm({ title: `Remove ${name}?`, text: 'Its key and its models are deleted from kiso. Chats that use them fall back to the default.', list: models, action: 'Remove' });
    if (!sure) return;
    try {
      await del(`/providers/${part(name)}`);
      toast(`${name} is removed`, 'good');
    } catch (error) {
      report(error);
    }
    await Promise.all([onChange(), refreshModels()]);
  };
  return html`<section class="connect-own" aria-label="Connected providers"><h3>Connected</h3><ul>${items.map((one) => html`<li key=${`${one.name} ${one.configured}`}>
    <div><span class="strong"><${Said}>${one.name}<//></span> ${one.configured && html`<${Badge}>config.toml<//>`} ${one.hidden && html`<${Badge} kind="warn">replaced by config.toml<//>`}
      ${one.wants_key && !one.has_key && html`<${Badge} kind="bad">no key<//>`}
      <p class="muted"><bdi>${visible(one.base_url)}</bdi></p>
      ${one.models.map((model) => html`<p key=${model} class="muted"><bdi>${visible(model)}</bdi>${model === current && ' · default'}</p>`)}</div>
    ${!one.configured && html`<${Button} kind="quiet small" icon="trash" label=${`Remove ${visible(one.name)}`} onClick=${() => remove(one)} />`}</li>`)}</ul></section>`;
}
