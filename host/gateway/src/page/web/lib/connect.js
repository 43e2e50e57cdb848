// Setup of a language model: provider, key, model, test. The key is sent once to the daemon, which stores it encrypted and never
// returns it.

import { html, useEffect, useRef, useState } from './preact.js';
import { del, get, isAdmin, part, post, put, request } from './api.js';
import { count, visible } from './format.js';
import { refreshModels } from './models.js';
import { Sentence } from './said.js';
import { Badge, Button, Busy, Dialog, Icon, Said, Trouble, confirm, report, toast } from './ui.js';

/** The card for all other servers. */
const OTHER = { name: '', title: 'Other server', kind: 'openai', base_url: '', key_url: null, key_env: null, model: '' };

/** The order of the cards. */
const ORDER = ['openai', 'anthropic', 'openrouter', 'gemini', 'groq', 'ollama', 'lmstudio', 'llama.cpp', 'vllm'];

/** Number of models that are listed at once; a search finds the others. */
const SHOWN = 60;

/** Returns the provider's name for a card. */
const nameOfCard = (card) => card.name.replace('.', '');

/** `chat` as in `showConnect`. */
export function Connect({ chat, onClose }) {
  const [known, set] = useState(null);
  const [error, fail] = useState(null);
  // A card, and the provider whose models are requested.
  const [[card, own], choose] = useState([]);
  const setup = useRef(null);
  const load = () => Promise.all([get('/models'), get('/providers')]).then(([{ presets, unready }, told]) => {
    set({ cards: [...ORDER.map((name) => presets.find((one) => one.name === name)).filter(Boolean), OTHER], unready: unready ?? [], ...told });
    fail(null);
    return told.items;
  }, fail);
  useEffect(() => void (isAdmin() && load()), []);
  if (!isAdmin()) {
    return html`<${Dialog} title="Connect a model" onClose=${onClose}>
      <p>Only an administrator can connect a model. Ask the person who runs this kiso.</p><//>`;
  }
  const chosen = known?.cards.find((one) => one.name === card);
  const open = ({ name }) => {
    choose([known.cards.find((one) => one !== OTHER && nameOfCard(one) === name)?.name ?? OTHER.name, name]);
    setTimeout(() => setup.current?.scrollIntoView({ block: 'start' }), 0);
  };
  return html`<${Dialog} title="Connect a model" onClose=${onClose}>
    ${error && html`<${Trouble} error=${error} again=${load} />`}
    ${!known && !error && html`<${Busy} />`}
    ${known && html`
      ${known.unready.map(({ model, why }) => html`<p key=${model} class="connect-unready"><${Icon} name="alert" /><span>${visible(model)} has no key: ${visible(why)}.
        Set it where kiso runs, or connect another model here.</span></p>`)}
      <fieldset class="connect-cards"><legend class="strong">Provider</legend>
        ${known.cards.map((one) => html`<label key=${one.name} class="connect-card"><input type="radio" name="preset" checked=${one.name === card} onChange=${() => choose([one.name])} />
          <span>${one.title}</span><span class="muted">${one === OTHER ? 'any address' : one.key_env ? 'needs a key' : 'on your machine'}</span></label>`)}</fieldset>
      <div ref=${setup} class="connect-setup">${chosen && html`<${Setup} key=${`${card} ${own}`} card=${chosen} own=${own} known=${known} chat=${chat} onChange=${load} onClose=${onClose} />`}</div>
      <${Connected} items=${known.items} current=${known.default} onOpen=${open} onChange=${load} />`}
  <//>`;
}

/** Returns a name for the provider at an address: its host, reduced to valid characters. */
function nameOf(address, taken) {
  let host = 'server';
  try {
    host = new URL(address).host;
  } catch {
    // The daemon reports the problem.
  }
  const stem = host.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^[^a-z]+|-+$/g, '').slice(0, 24) || 'server';
  for (let n = 1; ; n += 1) {
    const name = n === 1 ? stem : `${stem}-${n}`;
    if (!taken.has(name)) return name;
  }
}

/** Setup of one provider: its address and key, then its models. `own` is the name of an already connected one. */
function Setup({ card, own, known, chat, onChange, onClose }) {
  const usual = own ?? nameOfCard(card);
  const [name, setName] = useState(usual || null);
  const provider = known.items.find((one) => one.name === name && !one.hidden);
  const [editing, edit] = useState(false);
  const [refused, refuse] = useState(null);
  const taken = new Set(known.items.map((one) => one.name));
  if (provider && !editing) {
    const failed = async (error) => {
      const now = await onChange();
      // A rejected key can be replaced at once.
      if (!provider.configured && now?.find((one) => one.name === name)?.last_call === 'key_refused') {
        refuse(error);
        edit(true);
      }
    };
    return html`<${Models} key=${name} card=${card} provider=${provider} known=${known} chat=${chat} onEdit=${provider.configured ? null : () => edit(true)}
      onFailed=${failed} onChange=${onChange} onClose=${onClose} />`;
  }
  const done = async (saved) => {
    await onChange();
    setName(saved);
    edit(false);
    refuse(null);
  };
  return html`<${Entry} card=${card} provider=${provider} refused=${refused} name=${(address) => provider?.name ?? (card === OTHER ? nameOf(address, taken) : usual)} onDone=${done} />`;
}

function Entry({ card, provider, refused, name, onDone }) {
  const cloud = Boolean(card.key_env);
  const [address, setAddress] = useState(provider?.base_url ?? card.base_url);
  const [kind, setKind] = useState(provider?.kind ?? card.kind);
  const [error, fail] = useState(refused);
  const [busy, wait] = useState(false);
  const key = useRef(null);
  useEffect(() => void (refused && key.current.focus()), []);
  const submit = async (event) => {
    event.preventDefault();
    const value = key.current.value.trim();
    // The key is removed from the page as soon as it was sent.
    key.current.value = '';
    wait(true);
    fail(null);
    try {
      const { name: saved } = await put(`/providers/${part(name(address))}`, { kind, base_url: address.trim(), ...(value && { key: value }) });
      await onDone(saved);
    } catch (trouble) {
      fail(trouble);
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

function Models({ card, provider, known, chat, onEdit, onFailed, onChange, onClose }) {
  const [list, set] = useState(null);
  const [error, fail] = useState(null);
  const [words, search] = useState('');
  const [model, pick] = useState('');
  const [found, show] = useState(null);
  const status = useRef(null);
  const base = `/providers/${part(provider.name)}`;
  const whole = (name) => `${provider.name}:${name}`;
  const load = () => {
    fail(null);
    set(null);
    return get(`${base}/models`).then(({ items }) => {
      set(items);
      const usual = card.model.slice(card.model.indexOf(':') + 1);
      const first = items.length === 1 ? items[0].name : (items.find((one) => whole(one.name) === known.default) ?? items.find((one) => one.name === usual))?.name;
      pick((old) => old || first || '');
      // The provider works now, so the list of providers changes.
      if (provider.last_call !== 'works') onChange();
    }, (refused) => {
      set([]);
      fail(refused);
      return onFailed(refused);
    });
  };
  useEffect(() => void load(), [provider.base_url, provider.has_key]);
  useEffect(() => {
    if (found) status.current.scrollIntoView({ block: 'nearest' });
  }, [found]);
  const asked = words.trim().toLowerCase();
  // Models that were added by name may be missing from the list.
  const listed = list ?? [];
  const added = provider.models.map((name) => ({ name: name.slice(provider.name.length + 1) })).filter(({ name }) => !listed.some((one) => one.name === name));
  const fits = [...added, ...listed].filter((one) => one.name.toLowerCase().includes(asked));
  const typed = words.trim() && !fits.some((one) => one.name === words.trim()) ? [{ name: words.trim(), typed: true }] : [];
  const shown = [...fits.slice(0, SHOWN), ...typed];
  const isAdded = provider.models.includes(whole(model));
  const choose = (name) => {
    pick(name);
    show(null);
  };
  const test = async () => {
    show({ model });
    try {
      show(await post(`${base}/check`, { model }));
    } catch (refused) {
      show(null);
      throw refused;
    } finally {
      await onChange();
    }
  };
  const save = (is_default) => {
    const context = listed.find((one) => one.name === model)?.context;
    return put(`${base}/models`, { model, default: is_default, ...(context && { context }) });
  };
  const changed = () => Promise.all([onChange(), refreshModels()]);
  const add = async () => {
    await save(false);
    await changed();
    toast(`${visible(model)} is in the model menu of each chat`, 'good');
  };
  const remove = async () => {
    await request('DELETE', `${base}/models`, { query: { model } });
    await changed();
    toast(`${visible(model)} is no longer in the model menu`, 'good');
  };
  const take = async () => {
    const used = await save(true);
    await changed();
    onClose();
    const name = visible(used.model);
    if (!used.in_use) {
      toast(`${name} is in the model menu of each chat`, 'good', 'The configuration file of kiso names another default model, which takes precedence.');
      return;
    }
    const other = chat?.model && chat.model !== used.model;
    toast(`Done. Chats now use ${name}`, 'good', other ? `This chat keeps ${visible(chat.model)}, which was chosen for it.` : 'A chat with a model of its own keeps it.',
      other ? { label: 'Use it here too', run: () => chat.use(used.model) } : null);
  };
  const mark = (name) => (whole(name) === known.default ? 'default' : provider.models.includes(whole(name)) ? 'in the menu' : '');
  return html`<div class="connect-models">
    <p class="connect-at"><${Standing} provider=${error ? { ...provider, last_call: provider.last_call ?? 'failed' } : provider} /> <span class="muted"><bdi>${visible(provider.base_url)}</bdi></span>
      ${onEdit && html`<button type="button" class="link" onClick=${onEdit}>Change key or address</button>`}</p>
    ${error && html`<${Trouble} error=${error} again=${load} />`}
    ${!list && html`<${Busy}>Reading the list of models…<//>`}
    ${list && html`<div class="field"><label for="connect-search">Model</label>
      <input id="connect-search" type="search" autocomplete="off" spellcheck=${false} value=${words} placeholder=${list.length ? `Search ${count(list.length)} models, or type a name` : 'Type the model’s name'} onInput=${(event) => search(event.target.value)} /></div>
      <fieldset class="connect-list" aria-label="Models">${shown.map((one) => html`<label key=${one.name} class="checked"><input type="radio" name="connect-model" checked=${one.name === model} onChange=${() => choose(one.name)} />
        <span><bdi>${visible(one.name)}</bdi>${[one.typed && 'as typed', one.context && `${count(one.context)} tokens`, mark(one.name)].filter(Boolean).map((about) => html` <span class="muted">${about}</span>`)}</span></label>`)}
        ${fits.length > SHOWN && html`<p class="muted">${count(fits.length - SHOWN)} more: type a part of the name.</p>`}</fieldset>
      <footer><${Button} icon="health" disabled=${!model} onClick=${test}>Test<//>
        ${provider.configured ? html`<p class="muted">This provider is in the configuration file of kiso. Its models are named there.</p>`
          : html`${isAdded ? html`<${Button} disabled=${whole(model) === known.default} onClick=${remove}>Remove from the menu<//>` : html`<${Button} disabled=${!model} onClick=${add}>Add to the menu<//>`}
            <${Button} kind="primary" disabled=${!model} onClick=${take}>Use this model<//>`}</footer>
      ${!provider.configured && html`<p class="muted connect-scope"><b>Use this model</b> makes it the model of new chats, and of all chats that have not chosen their own. <b>Add to the menu</b> only offers it in the model menu of each chat.</p>`}`}
    <div role="status" ref=${status}>
      ${found && (found.ok === undefined ? html`<${Busy}>Testing ${visible(found.model)}: an answer, a tool call, a form and a picture…<//>` : html`<${Found} check=${found} />`)}
    </div></div>`;
}

/** The result of a provider's last call, in words; nothing if there was none since kiso started. */
const STANDING = { works: ['good', 'Works'], key_refused: ['bad', 'Key rejected'], no_key: ['bad', 'No key'], unreachable: ['bad', 'Cannot be reached'], no_credit: ['bad', 'No credit'] };

function Standing({ provider: { last_call: last, wants_key: wants, has_key: has } }) {
  const [kind, text] = wants && !has ? STANDING.no_key : last ? STANDING[last] ?? ['bad', 'Not working'] : ['', has ? 'Key saved, not tested' : 'Not tested'];
  return html`<${Badge} kind=${kind}>${text}<//>`;
}

/** Names of a model's capabilities for people. */
const ABILITIES = { answers: 'Answers', streams: 'Streams its answer', usage: 'Counts tokens', tools: 'Calls tools', 'json schema': 'Keeps to a JSON Schema', pictures: 'Reads pictures' };

/** The result of a test, with the meaning and the remedy of each missing capability. */
function Found({ check }) {
  const { model, ok, detail, remedy, capabilities } = check;
  if (!ok) {
    return html`<div class="connect-found"><p><${Badge} kind="bad">Failed<//> <span class="strong">${visible(model)}</span></p>
      <p class="connect-why"><${Sentence} text=${detail} /></p>${remedy && html`<p><${Sentence} text=${remedy} /></p>`}</div>`;
  }
  return html`<div class="connect-found"><p><${Badge} kind="good">Works<//> <span class="strong">${visible(model)}</span></p>
    <ul>${capabilities.map(({ name, works, unclear, note, meaning }) => html`<li key=${name} class=${works ? 'able' : unclear ? 'unclear' : 'unable'}>
      <${Icon} name=${works ? 'check' : unclear ? 'info' : 'close'} label=${works ? 'Yes' : unclear ? 'Unclear' : 'No'} size=${15} /><div><span>${ABILITIES[name] ?? name}${unclear && ': could not be shown'}</span>
      ${!works && meaning && html`<p class="muted"><${Sentence} text=${meaning} /></p>`}
      ${!works && note && html`<details class="muted"><summary>Details</summary><${Sentence} text=${note} /></details>`}</div></li>`)}</ul></div>`;
}

/** The connected providers. */
function Connected({ items, current, onOpen, onChange }) {
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
  return html`<section class="connect-own" aria-label="Connected providers"><h3>Your providers</h3><ul>${items.map((one) => html`<li key=${`${one.name} ${one.configured}`}>
    <div><span class="strong"><${Said}>${one.name}<//></span> ${one.configured && html`<${Badge}>configuration file<//>`} ${one.hidden && html`<${Badge} kind="warn">Replaced by the configuration file<//>`}
      <${Standing} provider=${one} />
      <p class="muted"><bdi>${visible(one.base_url)}</bdi></p>
      ${one.models.map((model) => html`<p key=${model} class="muted"><bdi>${visible(model)}</bdi>${model === current && ' · default'}</p>`)}</div>
    ${!one.hidden && html`<${Button} kind="small" aria-label=${`Models of ${visible(one.name)}`} onClick=${() => onOpen(one)}>Models<//>`}
    ${!one.configured && html`<${Button} kind="quiet small" icon="trash" label=${`Remove ${visible(one.name)}`} onClick=${() => remove(one)} />`}</li>`)}</ul></section>`;
}
