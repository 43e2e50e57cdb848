// Memory across sessions: core memory, passages and facts.

import { html, useEffect, useRef, useState, useStore } from '../lib/preact.js';
import { del, get, isAdmin, me, part, patch, post, put } from '../lib/api.js';
import { Pages, usePages } from '../lib/pages.js';
import { href, route } from '../lib/router.js';
import { Badge, Button, Dialog, Empty, Icon, Said, ScreenHead, Time, announce, confirm, report } from '../lib/ui.js';

const PAGE = 50;

/** Milliseconds after the last key press before the search starts. */
const TYPED = 250;

const PLACES = [['', 'Core memory'], ['passages', 'Passages'], ['facts', 'Facts']];

export default function Screen() {
  useStore(me);
  const place = useStore(route, (parts) => parts[1] ?? '');
  if (!isAdmin()) {
    return html`<div class="screen"><${ScreenHead} title="Memory" />
      <${Empty} icon="lock" title="Only for administrators">Memory covers all chats.<//></div>`;
  }
  return html`<div class="screen">
    <${ScreenHead} title="Memory" about="What kiso remembers across chats and gives to models when relevant." />
    <nav class="lists-tabs" aria-label="Kinds of memory">${PLACES.map(([key, words]) => html`
      <a key=${key} href=${key ? href('memory', key) : href('memory')} aria-current=${place === key ? 'page' : undefined}>${words}</a>`)}</nav>
    ${KINDS[place] ? html`<${Remembered} key=${place} ...${KINDS[place]} />` : html`<${Core} />`}
  </div>`;
}

const KINDS = {
  passages: {
    path: '/memory', one: 'passage', many: 'passages',
    sources: { turn: 'from a chat', memory_save: 'saved on purpose', import: 'imported' },
    none: 'kiso saves parts of chats here and finds them again by meaning.',
  },
  facts: {
    path: '/facts', one: 'fact', many: 'facts', edits: true,
    sources: { user: 'told by a person', reviewer: 'learned in a review', summarizer: 'learned from a chat' },
    none: 'kiso saves what it learns from chats and reviews here.',
  },
};

/** A list of memory entries, newest first, or search results. */
function Remembered({ path, one, many, sources, none, edits }) {
  const [typed, setTyped] = useState('');
  const [query, setQuery] = useState('');
  const search = useRef(null);
  useEffect(() => {
    const timer = setTimeout(setQuery, TYPED, typed.trim());
    return () => clearTimeout(timer);
  }, [typed]);
  const pages = usePages((before, signal) => get(path, { q: query, before, limit: PAGE }, signal), [query]);
  const forget = async (item) => {
    const text = item.text.length > 160 ? `${item.text.slice(0, 160)}…` : item.text;
    if (!await confirm({ title: `Forget this ${one}?`, text: html`<q class="lists-quote"><${Said}>${text}<//></q>`, action: 'Forget' })) return;
    try {
      await del(`${path}/${item.id}`);
    } catch (error) {
      // Somebody else has already deleted it.
      if (error.status !== 404) return report(error);
    }
    pages.change((items) => items.filter((other) => other.id !== item.id));
    announce('Forgotten');
    search.current?.focus();
  };
  // The edited entry: a new fact, or an existing one.
  const [writing, write] = useState(null);
  const save = async (text) => {
    if (writing.id) await put(`${path}/${part(String(writing.id))}`, { text });
    else await post(path, { text });
    pages.reload();
    announce('Saved');
  };
  const nothing = query ? html`<${Empty} icon="search" title=${`No matching ${many}`}>Try other words.<//>`
    : html`<${Empty} icon="memory" title=${`No ${many} yet`}>${none}<//>`;
  return html`${edits && html`<div class="actions"><${Button} icon="plus" onClick=${() => write({ text: '' })}>Add a fact<//></div>`}
    ${writing && html`<${Writing} title=${writing.id ? 'Edit fact' : 'Add a fact'} text=${writing.text} onSave=${save} onClose=${() => write(null)} />`}
    <div class="lists-search"><${Icon} name="search" />
      <input ref=${search} type="search" value=${typed} maxlength="1000" aria-label=${`Search ${many}`} placeholder=${`Search ${many}`}
        onInput=${(event) => setTyped(event.target.value)} /></div>
    <${Pages} of=${pages} empty=${nothing}>${(items) => html`
      <p class="unseen" role="status">${query ? `${items.length} found` : ''}</p>
      <ul class="card lists-rows" aria-label=${many} aria-busy=${pages.loading ? 'true' : undefined}>${items.map((item) => html`<li key=${item.id}>
        <${Text} text=${item.text} />
        <p class="lists-marks">
          ${item.confidence != null && html`<${Confidence} percent=${item.confidence} />`}
          <span>${sources[item.source] ?? item.source}</span>
          ${item.session && html`<a href=${href('s', item.session)}><${Said}>${item.session}<//></a>`}
          <${Time} ms=${item.at_ms} /></p>
        <span class="lists-acts">${edits && html`<${Button} kind="quiet" icon="edit" label=${`Edit ${one} ${item.id}`} onClick=${() => write(item)} />`}
          <${Button} kind="quiet" icon="trash" label=${`Forget ${one} ${item.id}`} onClick=${() => forget(item)} /></span></li>`)}</ul>`}<//>`;
}

/** A dialog for editing a text; `named`: with the name of the entry. */
function Writing({ title, text, name, named, onSave, onClose }) {
  const [written, set] = useState(text);
  const [called, call] = useState(name ?? '');
  const [error, fail] = useState(null);
  const submit = async (event) => {
    event.preventDefault();
    try {
      await onSave(written.trim(), called.trim());
      onClose();
    } catch (refused) {
      fail(refused);
    }
  };
  return html`<${Dialog} title=${title} onClose=${onClose}><form class="cards" onSubmit=${submit}>
    ${named && html`<label class="field">Name<input autofocus value=${called} readonly=${Boolean(name)} placeholder="user.city" onInput=${(event) => call(event.target.value)} /></label>`}
    <label class="field">Text<textarea autofocus=${!named} rows="3" value=${written} onInput=${(event) => set(event.target.value)}></textarea></label>
    ${error && html`<p class="wrong" role="alert">${error.message}${error.hint ? ` (${error.hint})` : ''}</p>`}
    <footer><${Button} onClick=${onClose}>Cancel<//><button class="button primary" disabled=${!written.trim() || (named && !called.trim())}>Save</button></footer>
  </form><//>`;
}

/** The confidence of a fact; low values should not be relied on. */
const Confidence = ({ percent }) => html`<${Badge} kind=${percent >= 80 ? 'good' : percent >= 50 ? '' : 'warn'}>${percent} % sure<//>`;

/** Length in characters at which a text is collapsed. */
const LONG = 400;

function Text({ text }) {
  const [open, set] = useState(false);
  if (text.length <= LONG) return html`<p class="lists-text"><${Said}>${text}<//></p>`;
  return html`<div><p class=${`lists-text ${open ? '' : 'lists-folded'}`}><${Said}>${text}<//></p>
    <${Button} class="button quiet small" aria-expanded=${String(open)} onClick=${() => set(!open)}>${open ? 'Show less' : 'Show all'}<//></div>`;
}

/** Core memory is one document: it is shown with its structure, and each value can be changed. */
function Core() {
  const pages = usePages((_, signal) => get('/memory', { limit: 1 }, signal).then(({ core }) => ({ items: [core] })));
  const [writing, write] = useState(null);
  const change = async (path, value) => {
    await patch('/memory/core', path.reduceRight((inner, name) => ({ [name]: inner }), value));
    pages.reload();
    announce('Saved');
  };
  const forget = async (path, value) => {
    if (!await confirm({ title: `Forget ${path.join('.')}?`, text: html`<q class="lists-quote"><${Said}>${shown(value)}<//></q>`, action: 'Forget' })) return;
    await change(path, null).catch(report);
  };
  const acts = { edit: (path, value) => write({ path, text: shown(value) }), forget };
  return html`<div class="actions"><${Button} icon="plus" onClick=${() => write({ text: '' })}>Add to core memory<//></div>
    ${writing && html`<${Writing} title=${writing.path ? 'Edit core memory' : 'Add to core memory'} named text=${writing.text} name=${writing.path?.join('.')}
      onSave=${(text, name) => change(writing.path ?? name.split('.').filter(Boolean), text)} onClose=${() => write(null)} />`}
    <${Pages} of=${pages}>${([core]) => (Object.keys(core ?? {}).length
    ? html`<div class="card"><${Members} of=${core} path=${[]} acts=${acts} /></div>
      <p class="muted">Given to models in every chat.</p>`
    : html`<${Empty} icon="memory" title="Core memory is empty">Add what matters in every chat: who you are, what you prefer.<//>`)}<//>`;
}

const shown = (value) => (typeof value === 'string' ? value : JSON.stringify(value));

const Members = ({ of, path, acts }) => html`<dl class="lists-core">${Object.entries(of).map(([name, value]) => html`<div key=${name}>
  <dt><${Said}>${name}<//></dt><dd><${Value} of=${value} path=${[...path, name]} acts=${acts} /></dd></div>`)}</dl>`;

function Value({ of, path, acts }) {
  if (of && typeof of === 'object' && !Array.isArray(of)) return html`<${Members} of=${of} path=${path} acts=${acts} />`;
  const name = path.join('.');
  return html`<span class="lists-value">${Array.isArray(of)
    ? html`<ul class="lists-values">${of.map((one, at) => html`<li key=${at}><span class="lists-text"><${Said}>${shown(one)}<//></span></li>`)}</ul>`
    : html`<span class="lists-text"><${Said}>${shown(of)}<//></span>`}
    <span class="lists-acts">${typeof of === 'string' && html`<${Button} kind="quiet small" icon="edit" label=${`Edit ${name}`} onClick=${() => acts.edit(path, of)} />`}
      <${Button} kind="quiet small" icon="trash" label=${`Forget ${name}`} onClick=${() => acts.forget(path, of)} /></span></span>`;
}
