// Pills: workflows that a message selects by name. They can be created, changed and shared.

import { html, useEffect, useLoaded, useRef, useState, useStore } from '../lib/preact.js';
import { ApiError, del, get, isAdmin, me, part, put } from '../lib/api.js';
import { slug } from '../lib/format.js';
import { input, loadInput, renewInput } from '../lib/complete.js';
import { Badge, Button, Dialog, Empty, Icon, Loaded, Menu, Said, ScreenHead, Trouble, confirm, copyText, toast } from '../lib/ui.js';

const EFFORTS = [['low', 'Low: answer without tools'], ['medium', 'Medium: tools without a plan'], ['high', 'High: a plan']];

/** Limits of the input, the same as the daemon's. */
const NAME = 32;
const TEMPLATE = 8_000;
const DESCRIPTION = 200;

const path = (name) => `/pills/${part(name)}`;

/** The shared form of a pill, without its owner. */
const shared = ({ name, template, categories, effort, description }) => JSON.stringify({ name, template, categories, effort, description });

export default function Screen() {
  useStore(me);
  const pills = useLoaded((signal) => get('/pills', null, signal));
  const [editing, edit] = useState(null);
  const [taking, take] = useState(false);
  const changed = (words) => {
    edit(null);
    take(false);
    toast(words, 'good');
    pills.again();
    renewInput();
  };
  return html`<div class="screen">
    <${ScreenHead} title="Pills" about="Reusable prompts. Start a message with !NAME to use one.">
      <${Button} icon="download" onClick=${() => take(true)}>Add shared pills<//>
      <${Button} kind="primary" icon="plus" onClick=${() => edit({})}>New pill<//><//>
    <${Loaded} of=${pills}>${({ items }) => (items.length
      ? html`<ul class="lists-cards" aria-label="Pills">
          ${items.map((one) => html`<${Line} key=${one.name} of=${one} onEdit=${edit} changed=${changed} />`)}</ul>`
      : html`<${Empty} icon="pill" title="No pills yet">Create one for requests you repeat, such as “!digest URL”.<//>`)}<//>
    ${editing && html`<${Edit} of=${editing} onClose=${() => edit(null)} changed=${changed} />`}
    ${taking && html`<${Take} onClose=${() => take(false)} changed=${changed} />`}
  </div>`;
}

function Line({ of, onEdit, changed }) {
  const may = of.origin === 'user' || (of.origin === 'admin' && isAdmin());
  const share = async () => {
    await copyText(shared(of));
    toast(`Copied ${of.name}: paste it where you need it`, 'good');
  };
  const remove = async () => {
    if (!await confirm({ title: `Delete the pill ${of.name}?`, text: 'Messages that used it stay.', action: 'Delete' })) return;
    await del(path(of.name));
    document.querySelector('#main h1').focus();
    changed(`${of.name} was deleted`);
  };
  return html`<li class="card lists-card">
    <div class="lists-head"><h2>!<${Said}>${of.name}<//></h2>
      <${Badge}>${of.effort} effort<//>${of.origin === 'config' && html`<${Badge}>config.toml<//>`}
      ${of.origin === 'user' && isAdmin() && html`<${Badge} kind="warn">by a user: not for your messages<//>`}
      <div class="actions"><${Button} class="button small" icon="copy" aria-label=${`Share ${of.name}`} onClick=${share}>Share<//>
        ${may ? html`<${Button} class="button small" icon="edit" aria-label=${`Change ${of.name}`} onClick=${() => onEdit(of)}>Change<//>
          <${Menu} label=${`Actions for ${of.name}`} items=${[{ label: 'Delete…', icon: 'trash', danger: true, run: remove }]} />`
    : html`<span class="muted"><${Icon} name="lock" size=${14} /> ${of.origin === 'config' ? 'Defined in config.toml' : 'Only administrators can change it'}</span>`}</div></div>
    ${of.description && html`<p><${Said}>${of.description}<//></p>`}
    <p class="lists-message"><${Said}>${of.template}<//></p>
    <p class="muted">Tools: ${of.categories?.length ? html`<${Said}>${of.categories.join(', ')}<//>` : 'all'}</p></li>`;
}

/** Patterns of the daemon's errors, to show each at its field. */
const BLAMED = [
  ['name', /name of a pill|a pill named|the pill/], ['template', /the template/], ['description', /the description/], ['categories', /categories/],
];

/** The form for a new pill, or for changing `of` if it has a name. */
function Edit({ of, onClose, changed }) {
  const [value, set] = useState({
    name: of.name ?? '', template: of.template ?? '', description: of.description ?? '', effort: of.effort ?? 'high', categories: of.categories ?? [],
  });
  const [errors, setErrors] = useState({});
  const [under, setUnder] = useState(false);
  const form = useRef(null);
  const known = useStore(input, ({ tags }) => tags);
  useEffect(() => {
    loadInput();
  }, []);
  // An existing pill keeps its name; a valid name stays as typed.
  const named = /^[A-Za-z0-9_-]{1,32}$/.test(value.name) ? value.name : slug(value.name, NAME);
  const names = [...new Set([...known.map((one) => one.name), ...value.categories])];
  const refuse = (found) => {
    setErrors(found);
    setTimeout(() => form.current?.querySelector('[aria-invalid=true]')?.focus(), 0);
  };
  const send = async (event) => {
    event.preventDefault();
    const missing = {};
    const name = of.name ?? named;
    if (!name) missing.name = value.name.trim() ? 'Use letters from a to z, or digits.' : 'Give it a name.';
    if (!value.template.trim()) missing.template = 'Say what the message becomes.';
    if (Object.keys(missing).length) return refuse(missing);
    setErrors({});
    setUnder(true);
    try {
      const { name: typed, ...rest } = value;
      await put(path(name), { ...rest, replace: Boolean(of.name) });
      return changed(of.name ? `${name} was changed` : `${name} was made: write !${name}`);
    } catch (error) {
      setUnder(false);
      const field = error instanceof ApiError && BLAMED.find(([, words]) => words.test(error.message))?.[0];
      return refuse(field ? { [field]: error.message } : { whole: error });
    }
  };
  const write = (key) => (event) => set({ ...value, [key]: event.target.value });
  const told = (key, help) => ({ id: `pill-${key}`, value: value[key], onInput: write(key), 'aria-invalid': errors[key] ? 'true' : undefined,
    'aria-describedby': [help, errors[key] && `pill-${key}-wrong`].filter(Boolean).join(' ') || undefined });
  const tick = (name) => set({ ...value, categories: value.categories.includes(name) ? value.categories.filter((one) => one !== name) : [...value.categories, name] });
  return html`<${Dialog} title=${of.name ? `Change ${of.name}` : 'New pill'} onClose=${onClose}><form ref=${form} class="lists-form" onSubmit=${send} novalidate>
    <${Labelled} name="name" label="Name" wrong=${errors.name}>
      <input ...${told('name', 'pill-name-help')} disabled=${Boolean(of.name)} spellcheck=${false} autocapitalize="none" autocomplete="off" maxlength="60" autofocus />
      <p class="muted" id="pill-name-help">${named && named !== value.name ? html`Messages will begin with <code>!${named}</code>.` : 'Such as “Weekly digest”.'}</p><//>
    <${Labelled} name="template" label="Prompt" wrong=${errors.template}>
      <textarea ...${told('template', 'pill-template-help')} rows="4" maxlength=${TEMPLATE} placeholder="Read {input} and tell me the five things that matter"></textarea>
      <p class="muted" id="pill-template-help"><code>{input}</code> is replaced by the text after the name.</p><//>
    <${Labelled} name="description" label="Description" wrong=${errors.description}><input ...${told('description')} maxlength=${DESCRIPTION} autocomplete="off" /><//>
    <${Labelled} name="effort" label="Effort"><select id="pill-effort" onChange=${write('effort')}>
      ${EFFORTS.map(([one, words]) => html`<option key=${one} value=${one} selected=${one === value.effort}>${words}</option>`)}</select><//>
    ${names.length > 0 && html`<fieldset class="lists-when"><legend>Tools it may use (none selected: all)</legend>
      ${names.map((name) => html`<label key=${name} class="lists-tick"><input type="checkbox" checked=${value.categories.includes(name)} onChange=${() => tick(name)} /> <${Said}>${name}<//></label>`)}
      ${errors.categories && html`<p class="wrong"><${Icon} name="alert" size=${16} />${errors.categories}</p>`}</fieldset>`}
    ${errors.whole && html`<${Trouble} error=${errors.whole} />`}
    <footer><${Button} onClick=${onClose}>Cancel<//>
      <button class="button primary" disabled=${under} aria-busy=${under ? 'true' : undefined}><span>${of.name ? 'Save pill' : 'Create pill'}</span></button></footer>
  </form><//>`;
}

/** Imports shared pills, one per line; existing ones are not replaced. */
function Take({ onClose, changed }) {
  const [text, set] = useState('');
  const [wrong, setWrong] = useState('');
  const send = async (event) => {
    event.preventDefault();
    const lines = text.split('\n').filter((line) => line.trim());
    let done = 0;
    try {
      if (!lines.length) throw new Error('Paste one pill per line.');
      const pills = lines.map((line, at) => {
        try {
          const { name, template, categories, effort, description } = JSON.parse(line);
          if (typeof name !== 'string') throw new Error('without a name');
          return [name, { template, categories, effort, description }];
        } catch {
          throw new Error(`Line ${at + 1} is not a pill.`);
        }
      });
      for (const [name, pill] of pills) {
        await put(path(name), pill);
        done += 1;
      }
      changed(done === 1 ? 'Pill added' : `${done} pills were added`);
    } catch (error) {
      setWrong(done ? `${error.message} (${done} before it were added)` : error.message);
      if (done) renewInput();
    }
  };
  return html`<${Dialog} title="Add shared pills" onClose=${onClose}><form class="lists-form" onSubmit=${send} novalidate>
    <${Labelled} name="lines" label="Pills as lines of JSON" wrong=${wrong}>
      <textarea id="pill-lines" rows="6" class="mono" spellcheck=${false} value=${text} onInput=${(event) => set(event.target.value)} autofocus
        aria-invalid=${wrong ? 'true' : undefined} aria-describedby=${wrong ? 'pill-lines-wrong' : undefined}></textarea><//>
    <footer><${Button} onClick=${onClose}>Cancel<//><button class="button primary"><span>Add pills</span></button></footer>
  </form><//>`;
}

const Labelled = ({ name, label, wrong, children }) => html`<div class="field"><label for=${`pill-${name}`}>${label}</label>${children}
  ${wrong && html`<p class="wrong" id=${`pill-${name}-wrong`}><${Icon} name="alert" size=${16} />${wrong}</p>`}</div>`;
