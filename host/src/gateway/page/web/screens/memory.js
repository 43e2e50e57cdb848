// What kiso remembers beyond sessions: core memory, passages and facts.

import { html, useEffect, useRef, useState, useStore } from '../lib/preact.js';
import { del, get, isAdmin, me } from '../lib/api.js';
import { Pages, usePages } from '../lib/pages.js';
import { href, route } from '../lib/router.js';
import { Badge, Button, Empty, Icon, Said, ScreenHead, Time, announce, confirm, report } from '../lib/ui.js';

const PAGE = 50;

/** Milliseconds after the last letter before it is looked for. */
const TYPED = 250;

const PLACES = [['', 'Core memory'], ['passages', 'Passages'], ['facts', 'Facts']];

export default function Screen() {
  useStore(me);
  const place = useStore(route, (parts) => parts[1] ?? '');
  if (!isAdmin()) {
    return html`<div class="screen"><${ScreenHead} title="Memory" />
      <${Empty} icon="lock" title="Only for administrators">Memory covers all sessions.<//></div>`;
  }
  return html`<div class="screen">
    <${ScreenHead} title="Memory" about="What kiso remembers across sessions and gives to models when relevant." />
    <nav class="lists-tabs" aria-label="Kinds of memory">${PLACES.map(([key, words]) => html`
      <a key=${key} href=${key ? href('memory', key) : href('memory')} aria-current=${place === key ? 'page' : undefined}>${words}</a>`)}</nav>
    ${KINDS[place] ? html`<${Remembered} key=${place} ...${KINDS[place]} />` : html`<${Core} />`}
  </div>`;
}

const KINDS = {
  passages: {
    path: '/memory', one: 'passage', many: 'passages',
    sources: { turn: 'from a conversation', memory_save: 'saved on purpose', import: 'imported' },
    none: 'kiso saves parts of conversations here and finds them again by meaning.',
  },
  facts: {
    path: '/facts', one: 'fact', many: 'facts',
    sources: { user: 'told by a person', reviewer: 'learned in a review', summarizer: 'learned from a conversation' },
    none: 'kiso saves what it learns from conversations and reviews here.',
  },
};

/** A list of what is remembered, the newest first, or what fits what is looked for. */
function Remembered({ path, one, many, sources, none }) {
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
      // Somebody else was faster.
      if (error.status !== 404) return report(error);
    }
    pages.change((items) => items.filter((other) => other.id !== item.id));
    announce('Forgotten');
    search.current?.focus();
  };
  const nothing = query ? html`<${Empty} icon="search" title=${`No matching ${many}`}>Try other words.<//>`
    : html`<${Empty} icon="memory" title=${`No ${many} yet`}>${none}<//>`;
  return html`<div class="lists-search"><${Icon} name="search" />
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
        <${Button} kind="quiet" icon="trash" label=${`Forget ${one} ${item.id}`} onClick=${() => forget(item)} /></li>`)}</ul>`}<//>`;
}

/** How sure it is; low where it should not be relied on. */
const Confidence = ({ percent }) => html`<${Badge} kind=${percent >= 80 ? 'good' : percent >= 50 ? '' : 'warn'}>${percent} % sure<//>`;

/** Characters from which on a text is folded. */
const LONG = 400;

function Text({ text }) {
  const [open, set] = useState(false);
  if (text.length <= LONG) return html`<p class="lists-text"><${Said}>${text}<//></p>`;
  return html`<div><p class=${`lists-text ${open ? '' : 'lists-folded'}`}><${Said}>${text}<//></p>
    <${Button} class="button quiet small" aria-expanded=${String(open)} onClick=${() => set(!open)}>${open ? 'Show less' : 'Show all'}<//></div>`;
}

/** Core memory is one document: it is shown as it is built. */
function Core() {
  const pages = usePages((_, signal) => get('/memory', { limit: 1 }, signal).then(({ core }) => ({ items: [core] })));
  return html`<${Pages} of=${pages}>${([core]) => (Object.keys(core ?? {}).length
    ? html`<div class="card"><${Members} of=${core} /></div>
      <p class="muted">Given to models in every conversation. <code>kiso memory forget --core NAME</code>${' '}
        forgets a part of it, such as <code>user.city</code>.</p>`
    : html`<${Empty} icon="memory" title="Core memory is empty">Add what matters in every conversation: who you are, what you prefer.<//>`)}<//>`;
}

const Members = ({ of }) => html`<dl class="lists-core">${Object.entries(of).map(([name, value]) => html`<div key=${name}>
  <dt><${Said}>${name}<//></dt><dd><${Value} of=${value} /></dd></div>`)}</dl>`;

function Value({ of }) {
  if (Array.isArray(of)) return html`<ul class="lists-values">${of.map((one, at) => html`<li key=${at}><${Value} of=${one} /></li>`)}</ul>`;
  if (of && typeof of === 'object') return html`<${Members} of=${of} />`;
  return html`<span class="lists-text"><${Said}>${typeof of === 'string' ? of : JSON.stringify(of)}<//></span>`;
}
