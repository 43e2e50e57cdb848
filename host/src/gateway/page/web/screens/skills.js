// Skills: what there is, what each may do, and one of them in full.

import { html, useEffect, useMemo, useRef, useState, useLoaded, useStore } from '../lib/preact.js';
import { del, get, isAdmin, me, part } from '../lib/api.js';
import { plural } from '../lib/format.js';
import { Asked, GrantQuestion, NOTHING, Unable, asksAnything, canGrant, choiceOf, difference, everything, permissions } from '../lib/grants.js';
import { Installer } from '../lib/install.js';
import { Pages, usePages } from '../lib/pages.js';
import { go, href, route } from '../lib/router.js';
import { Badge, Button, CopyButton, Empty, Icon, Loaded, Menu, ScreenHead, Trouble, announce, confirm, toast } from '../lib/ui.js';
import { Call } from './call.js';

const PAGE = 100;

export default function Screen() {
  const name = useStore(route, (parts) => parts[1] ?? '');
  return name ? html`<${Skill} key=${name} name=${name} />` : html`<${List} />`;
}

function List() {
  useStore(me);
  const [query, setQuery] = useState('');
  const pages = usePages((before, signal) => get('/skills', { before, limit: PAGE }, signal));
  const { items, next, loading, error } = pages;
  useEffect(() => {
    // What is looked for may stand on any page.
    if (query && next && !loading && !error) pages.more();
  }, [query, next, loading]);
  const words = query.trim().toLowerCase().split(/\s+/).filter(Boolean);
  const found = useMemo(() => items.filter((one) => {
    const text = [one.skill, one.category, one.summary, one.origin, one.error, ...(one.tools ?? []).map((tool) => tool.name)].join(' ').toLowerCase();
    return words.every((word) => text.includes(word));
  }), [items, words.join(' ')]);
  const known = useMemo(() => new Set(items.map((one) => one.skill)), [items]);
  const installed = (skill) => go('skills', skill.skill);
  return html`<div class="screen">
    <${ScreenHead} title="Skills" about="What kiso can do beyond talking. Each runs in its own sandbox and may do only what it was granted.">
      ${isAdmin() && html`<${Installer} known=${known} onInstalled=${installed} />`}<//>
    <div class="skills-search"><${Icon} name="search" /><input type="search" value=${query} placeholder="Filter by name, category or what it does" aria-label="Filter skills"
      onInput=${(event) => setQuery(event.target.value)} /><span class="muted" role="status">${pages.known ? query ? `${found.length} of ${items.length}` : plural(items.length, 'skill') + (next ? ' so far' : '') : ''}</span></div>
    <${Pages} of=${pages} empty=${html`<${Empty} icon="skills" title="No skills yet">${isAdmin() ? 'Drop a .wasm file here to install one.' : 'An administrator can install some.'}<//>`}>
      ${() => (found.length ? html`<ul class="skills-list">${found.map((one) => html`<${Line} key=${one.skill} of=${one} />`)}</ul>`
        : html`<${Empty} icon="search" title="No skill fits">Try fewer words.<//>`)}<//>
  </div>`;
}

/** A skill in the list. */
const Line = ({ of }) => html`<li class="card skills-card">
  <h2><a href=${href('skills', of.skill)}><bdi>${of.skill}</bdi></a></h2>
  <p class="skills-marks">${of.error ? html`<${Badge} kind="bad">broken<//>` : html`<span class="muted"><bdi>${of.version}</bdi></span><${Badge}><bdi>${of.category}</bdi><//>${of.origin === 'installed' && html`<${Badge} kind="busy">installed<//>`}
    ${of.asks?.length > 0 && html`<${Badge} kind="warn">not granted: ${of.asks.length}<//>`}`}</p>
  <p class=${of.error ? 'skills-broken' : 'skills-about'}><bdi>${of.error ?? of.summary}</bdi></p>
  ${of.asks?.length > 0 && html`<ul class="skills-asks" aria-label="Asks for, and was not granted">${of.asks.slice(0, 3).map((line) => html`<li key=${line}><${Icon} name="lock" size=${14} /><bdi>${line}</bdi></li>`)}
    ${of.asks.length > 3 && html`<li class="muted">and ${of.asks.length - 3} more</li>`}</ul>`}
  ${of.tools?.length > 1 && html`<p class="muted skills-tools"><bdi>${of.tools.slice(0, 8).map((tool) => tool.name.split('.').at(-1)).join(', ')}</bdi>${of.tools.length > 8 ? ` and ${of.tools.length - 8} more` : ''}</p>`}
</li>`;

function Skill({ name }) {
  useStore(me);
  const loaded = useLoaded((signal) => get(`/skills/${part(name)}`, null, signal), [name]);
  return html`<div class="screen">
    <p><a class="skills-back" href=${href('skills')}><${Icon} name="chevron" size=${16} />All skills</a></p>
    ${loaded.error && loaded.value === undefined ? html`<${Broken} name=${name} error=${loaded.error} again=${loaded.again} />`
      : html`<${Loaded} of=${loaded}>${(skill) => html`<${Detail} skill=${skill} again=${loaded.again} />`}<//>`}
  </div>`;
}

/** One that does not load can still be removed. */
function Broken({ name, error, again }) {
  return html`<h1><bdi>${name}</bdi></h1><${Trouble} error=${error} again=${again} />
    ${error.status !== 404 && isAdmin() && html`<div class="actions"><${Button} kind="danger" icon="trash" onClick=${() => remove(name)}>Remove ${name}<//></div>`}`;
}

async function remove(name) {
  if (!await confirm({ title: `Remove ${name}?`, text: 'The skill and what it was granted are deleted. What it made stays in the workspaces.', action: 'Remove' })) return;
  await del(`/skills/${part(name)}`);
  toast(`${name} was removed`, 'good');
  go('skills');
}

function Detail({ skill, again }) {
  const [tool, setTool] = useState(skill.tools[0]?.name);
  const call = useRef(null);
  const choose = (one) => {
    setTool(one);
    call.current.scrollIntoView({ block: 'start' });
    call.current.focus({ preventScroll: true });
  };
  const removable = skill.origin === 'installed' && isAdmin();
  return html`<header class="screen-head"><div><h1><bdi>${skill.skill}</bdi></h1>
      <p class="skills-marks"><span class="muted">version <bdi>${skill.version}</bdi></span><${Badge}><bdi>${skill.category}</bdi><//><${Badge} kind=${skill.origin === 'installed' ? 'busy' : ''}>${skill.origin}<//></p></div>
      ${removable && html`<div class="actions"><${Menu} label=${`Actions for ${skill.skill}`} items=${[{ label: 'Remove…', icon: 'trash', danger: true, run: () => remove(skill.skill) }]} /></div>`}</header>
    <div class="skills-detail">
      <div class="cards">
        <section class="card cards" aria-labelledby="about"><h2 id="about">What it does</h2><p class="skills-text"><bdi>${skill.description || skill.summary}</bdi></p>
          ${skill.description && skill.summary !== skill.description && html`<p class="muted"><bdi>${skill.summary}</bdi></p>`}
          <${Facts} skill=${skill} /></section>
        <${Granted} key=${JSON.stringify(skill.grant)} skill=${skill} again=${again} />
        <section class="card cards" aria-labelledby="tools"><h2 id="tools">${skill.tools.length === 1 ? 'Arguments' : 'Functions'}</h2>
          ${skill.tools.map((one) => html`<${Tool} key=${one.name} tool=${one} alone=${skill.tools.length === 1} choose=${() => choose(one.name)} />`)}</section>
        ${skill.examples?.length > 0 && html`<section class="card cards" aria-labelledby="examples"><h2 id="examples">What leads to it</h2>
          <ul class="skills-examples">${skill.examples.map((one) => html`<li key=${one}><bdi>“${one}”</bdi></li>`)}</ul></section>`}
      </div>
      ${skill.tools.length > 0 && html`<section class="card cards" ref=${call} tabindex="-1" aria-labelledby="call"><h2 id="call">Call it</h2>
        <${Call} skill=${skill.skill} tools=${skill.tools} tool=${tool} setTool=${setTool} allowed=${skill.allowed} /></section>`}
    </div>`;
}

const SHAPES = { skill: 'a component of kiso:skill', command: 'a WASI command', functions: 'plain functions' };

const Facts = ({ skill }) => html`<dl class="skills-facts">
  <div><dt>Digest</dt><dd><code title=${skill.digest}>${skill.digest.slice(0, 12)}…${skill.digest.slice(-4)}</code><${CopyButton} text=${skill.digest} label="Copy the digest" /></dd></div>
  <div><dt>Shape</dt><dd>${SHAPES[skill.shape] ?? skill.shape}</dd></div>
  ${skill.sdk && html`<div><dt>Made with</dt><dd><bdi>${skill.sdk}</bdi></dd></div>`}
</dl>`;

/** A tool with its arguments, folded: the form beside it tells them too. */
function Tool({ tool, alone, choose }) {
  const all = Object.entries(tool.args?.properties ?? {});
  const required = new Set(tool.args?.required ?? []);
  if (alone && !all.length) return html`<p class="muted">It takes none.</p>`;
  return html`<details class="skills-tool"><summary>${!alone && html`<code><bdi>${tool.name}</bdi></code> `}<span class="muted"><bdi>${all.map(([name]) => name).join(', ') || 'without arguments'}</bdi></span></summary>
    <dl class="skills-args">${all.map(([name, schema]) => html`<div key=${name}><dt><code><bdi>${name}</bdi></code>${required.has(name) && html`<${Badge}>required<//>`}</dt>
      <dd><span class="muted"><bdi>${typeWords(schema)}</bdi></span>${schema.description && html`<br /><bdi>${schema.description}</bdi>`}</dd></div>`)}</dl>
    ${!alone && html`<${Button} class="button small" icon="play" onClick=${choose} aria-label=${`Call ${tool.name}`}>Call<//>`}</details>`;
}

/** The type of an argument, its bounds and its default. */
function typeWords(schema) {
  const told = (value) => (typeof value === 'string' ? value : JSON.stringify(value));
  const kind = schema.enum ? `one of ${schema.enum.map(told).join(', ')}` : schema.type === 'array' ? `list of ${schema.items?.format ?? schema.items?.type ?? 'values'}` : schema.format ?? schema.type ?? 'one of several forms';
  const bounds = schema.minimum != null && schema.maximum != null ? `${schema.minimum} to ${schema.maximum}` : '';
  return [kind, bounds, schema.default !== undefined && `default ${told(schema.default)}`].filter(Boolean).join(' · ');
}

const WORKSPACE = { none: 'It sees no files.', read: 'It reads the files of the session that calls it.', write: 'It reads and writes the files of the session that calls it.' };

/** What it asks for and was granted; administrators change it. */
function Granted({ skill, again }) {
  const needs = useMemo(() => permissions(skill.needs), [skill]);
  const granted = useMemo(() => permissions(skill.grant), [skill]);
  // A bundled skill has the memory and time that it needs without being granted them.
  const asked = skill.origin === 'bundled' ? { ...needs, memory: null, seconds: null } : needs;
  const [choice, setChoice] = useState(() => choiceOf(granted));
  const [question, setQuestion] = useState(null);
  const admin = isAdmin();
  const { allowed } = skill;
  const changes = difference(asked, granted, choice);
  const something = granted.http.length > 0 || granted.secrets.length > 0 || choiceOf(granted).limits;
  const open = asksAnything(asked) || something;
  const able = canGrant(asked, granted, choice);
  const done = () => {
    setQuestion(null);
    announce('The grant was changed');
    again();
  };
  return html`<section class="card cards" aria-labelledby="granted"><h2 id="granted">What it may do</h2>
    <p>${WORKSPACE[allowed.workspace]} Each call has ${allowed.memory_mib} MiB of memory and ${allowed.timeout_s} s.</p>
    ${!open && html`<p class="muted">It asks for nothing else: no network, no secrets.</p>`}
    ${open && html`<${Asked} needs=${asked} granted=${granted} choice=${choice} onChange=${admin ? setChoice : null} />`}
    ${open && !admin && html`<p class="muted">Only an administrator changes this.</p>`}
    ${open && admin && html`${!able && html`<${Unable} />`}
      <div class="actions"><${Button} kind="primary" disabled=${!changes.length || !able} onClick=${() => setQuestion(choice)}>Review the change…<//>
        ${changes.length > 0 && html`<${Button} onClick=${() => setChoice(choiceOf(granted))}>Undo<//>`}
        ${asksAnything(asked) && difference(asked, granted, everything(asked)).length > 0 && html`<${Button} kind="quiet" onClick=${() => setChoice(everything(asked))}>Tick everything<//>`}
        ${something && html`<${Button} kind="danger" onClick=${() => setQuestion(NOTHING)}>Revoke all…<//>`}</div>`}
    ${question && html`<${GrantQuestion} name=${skill.skill} needs=${asked} granted=${granted} choice=${question} onClose=${() => setQuestion(null)} onDone=${done} />`}
  </section>`;
}
