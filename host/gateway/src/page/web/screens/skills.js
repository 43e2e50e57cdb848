// Skills: the list, their permissions, and the page of one skill.

import { html, useEffect, useMemo, useRef, useState, useLoaded, useStore } from '../lib/preact.js';
import { del, get, isAdmin, me, part, post } from '../lib/api.js';
import { bytes, duration, fullTime, plural } from '../lib/format.js';
import { Asked, GrantQuestion, NOTHING, asksAnything, choiceOf, difference, everything, heldOf, permissions } from '../lib/grants.js';
import { Installer } from '../lib/install.js';
import { Pages, usePages } from '../lib/pages.js';
import { go, href, route } from '../lib/router.js';
import { Badge, Button, CopyButton, Empty, Icon, Loaded, Menu, Said, ScreenHead, Trouble, announce, confirm, toast } from '../lib/ui.js';
import { Call } from './call.js';
import { Indexes } from './indexes.js';

const PAGE = 100;

/** Maximum number of functions, and of requests, that a card lists. */
const NAMED = 8;
const ASKED = 3;

export default function Screen() {
  const name = useStore(route, (parts) => parts[1] ?? '');
  return name ? html`<${Skill} key=${name} name=${name} />` : html`<${List} />`;
}

const installed = ({ skill }) => go('skills', skill);

/** Moves the focus to the head if the link that led here is gone. */
function useHead() {
  useEffect(() => {
    if (document.activeElement === document.body) document.querySelector('#main h1')?.focus();
  }, []);
}

function List() {
  useStore(me);
  useHead();
  const [query, setQuery] = useState('');
  const [room, setRoom] = useState(PAGE);
  const pages = usePages((before, signal) => get('/skills', { before, limit: PAGE }, signal));
  const { items, next, loading, error } = pages;
  useEffect(() => {
    // A match may be on any page.
    if (query && next && !loading && !error) pages.more();
  }, [query, next, loading]);
  const words = query.trim().toLowerCase().split(/\s+/).filter(Boolean);
  const found = useMemo(() => items.filter((one) => {
    const text = [one.skill, one.category, one.summary, one.origin, one.error, ...(one.tools ?? []).map((tool) => tool.name)].join(' ').toLowerCase();
    return words.every((word) => text.includes(word));
  }), [items, words.join(' ')]);
  const more = () => {
    setRoom(room + PAGE);
    if (next && found.length < room + PAGE) pages.more();
  };
  let counted = pages.known ? `${plural(items.length, 'skill')}${next ? ' so far' : ''}` : '';
  if (counted && query) counted = `${found.length} of ${items.length}`;
  return html`<div class="screen">
    <${ScreenHead} title="Skills" about="Tools kiso can use. Each runs in its own sandbox with only the permissions you grant.">
      ${isAdmin() && html`<${Installer} button=${true} onInstalled=${installed} />`}<//>
    ${isAdmin() && html`<${Indexes} />`}
    <div class="skills-search">
      <${Icon} name="search" />
      <input type="search" value=${query} placeholder="Filter by name, category or what it does" aria-label="Filter skills"
        onInput=${(event) => { setQuery(event.target.value); setRoom(PAGE); }} />
      <span class="muted" role="status">${counted}</span>
    </div>
    <${Pages} of=${{ ...pages, next: null }} empty=${html`<${Empty} icon="skills" title="No skills yet">
        ${isAdmin() ? 'Drop the file of a skill here to install it.' : 'Ask an administrator to install one.'}<//>`}>
      ${() => (found.length ? html`<ul class="skills-list">${found.slice(0, room).map((one) => html`<${Line} key=${one.skill} of=${one} again=${pages.reload} />`)}</ul>`
        : !loading && html`<${Empty} icon="search" title="No matching skills">Try fewer words.<//>`)}<//>
    ${(found.length > room || (next && !query)) && !error && html`<p class="pages-more">
      <${Button} icon="down" busy=${loading} onClick=${more}>Show more<//></p>`}
  </div>`;
}

/**
 * Returns whether one of the requests is for a site. A bundled skill follows the rules for sites, so it works without a
 * permission.
 */
const reaches = (asks) => asks.some((line) => line.startsWith('reach '));

/** A skill in the list; `again` reloads the list after its permissions have changed. */
function Line({ of, again }) {
  const [question, ask] = useState(null);
  const allow = async () => ask(held(await get(`/skills/${part(of.skill)}`)));
  const done = () => {
    ask(null);
    announce('Permissions updated');
    again();
  };
  const functions = (of.tools ?? []).map((tool) => tool.name.split('.').at(-1));
  const asks = of.asks ?? [];
  const bundled = of.origin === 'bundled';
  return html`<li class="card skills-card">
    <h2><a href=${href('skills', of.skill)}><${Said}>${of.skill}<//></a></h2>
    <p class="skills-marks">
      ${of.error && html`<${Badge} kind="bad">broken<//>`}
      ${of.version && html`<span class="muted"><${Said}>${of.version}<//></span>`}
      ${of.category && html`<${Badge}><${Said}>${of.category}<//><//>`}
      ${of.origin === 'installed' && html`<${Badge} kind="busy">installed<//>`}
      ${bundled && reaches(asks) && html`<${Badge}>Asks before it opens a site<//>`}
      ${asks.length > 0 && !bundled && html`<${Badge} kind="warn">not granted: ${asks.length}<//>`}
      ${asks.length > 0 && isAdmin() && html`<${Button} class="button small" aria-label=${`Allow what ${of.skill} requests`} onClick=${allow}>Allow…<//>`}
    </p>
    <p class=${of.error ? 'skills-broken' : 'skills-about'}><${Said}>${of.error ?? of.summary}<//></p>
    ${asks.length > 0 && !bundled && html`<ul class="skills-asks" aria-label="Requested, not granted">
      ${asks.slice(0, ASKED).map((line) => html`<li key=${line}><${Icon} name="lock" size=${14} /><${Said}>${line}<//></li>`)}
      ${asks.length > ASKED && html`<li class="muted">and ${asks.length - ASKED} more</li>`}</ul>`}
    ${functions.length > 1 && html`<p class="muted skills-tools"><${Said}>${functions.slice(0, NAMED).join(', ')}<//>
      ${functions.length > NAMED ? ` and ${functions.length - NAMED} more` : ''}</p>`}
    ${question && html`<${GrantQuestion} name=${of.skill} needs=${question.asked} granted=${question.granted} choice=${everything(question.asked)}
      onClose=${() => ask(null)} onDone=${done} />`}
  </li>`;
}

function Skill({ name }) {
  useStore(me);
  const loaded = useLoaded((signal) => get(`/skills/${part(name)}`, null, signal), [name]);
  const renewed = (other) => (other.skill === name ? loaded.again() : installed(other));
  return html`<div class="screen">
    ${isAdmin() && html`<${Installer} onInstalled=${renewed} />`}
    <p><a class="skills-back" href=${href('skills')}><${Icon} name="chevron" size=${16} />All skills</a></p>
    ${loaded.error && loaded.value === undefined ? html`<${Broken} name=${name} error=${loaded.error} again=${loaded.again} />`
      : html`<${Loaded} of=${loaded}>${(skill) => html`<${Detail} skill=${skill} again=${loaded.again} />`}<//>`}
  </div>`;
}

/** Status codes that mean that the skill itself does not load. */
const BROKEN = [409, 422, 500];

/** A skill that does not load can still be removed. */
function Broken({ name, error, again }) {
  useHead();
  return html`<h1 tabindex="-1"><${Said}>${name}<//></h1><${Trouble} error=${error} again=${again} />
    ${BROKEN.includes(error.status) && isAdmin() && html`<div class="actions">
      <${Button} kind="danger" icon="trash" onClick=${() => remove(name)}>Remove ${name}<//></div>`}`;
}

async function remove(name) {
  const text = 'This deletes the skill and its permissions. Files it created stay in their workspaces.';
  if (!await confirm({ title: `Remove ${name}?`, text, action: 'Remove' })) return;
  await del(`/skills/${part(name)}`);
  toast(`${name} was removed`, 'good');
  go('skills');
}

function Detail({ skill, again }) {
  useHead();
  const [tool, setTool] = useState(skill.tools[0]?.name);
  const call = useRef(null);
  const choose = (one) => {
    setTool(one);
    call.current.scrollIntoView({ block: 'start' });
    call.current.focus({ preventScroll: true });
  };
  const removable = skill.origin === 'installed' && isAdmin();
  return html`<header class="screen-head"><div><h1 tabindex="-1"><${Said}>${skill.skill}<//></h1>
      <p class="skills-marks">${skill.version && html`<span class="muted">version <${Said}>${skill.version}<//></span>`}<${Badge}><${Said}>${skill.category}<//><//>
        <${Badge} kind=${skill.origin === 'installed' ? 'busy' : ''}>${skill.origin}<//></p></div>
      ${removable && html`<div class="actions"><${Menu} label=${`Actions for ${skill.skill}`}
        items=${[{ label: 'Remove…', icon: 'trash', danger: true, run: () => remove(skill.skill) }]} /></div>`}</header>
    <div class="skills-detail">
      <div class="cards">
        <section class="card cards" aria-labelledby="about"><h2 id="about">About</h2>
          <p class="skills-text"><${Said}>${skill.description || skill.summary}<//></p>
          ${skill.description && skill.summary !== skill.description && html`<p class="muted"><${Said}>${skill.summary}<//></p>`}
          <${Facts} skill=${skill} /></section>
        ${skill.agent_skill ? html`<${AgentSkill} of=${skill.agent_skill} />` : html`
        <${Granted} key=${JSON.stringify(skill.grant)} skill=${skill} again=${again} />
        ${isAdmin() && html`<${Used} key=${`used ${JSON.stringify(skill.grant)}`} skill=${skill} again=${again} />`}
        <section class="card cards" aria-labelledby="tools"><h2 id="tools">${skill.tools.length === 1 ? 'Arguments' : 'Functions'}</h2>
          ${skill.tools.map((one) => html`<${Tool} key=${one.name} tool=${one} alone=${skill.tools.length === 1}
            choose=${() => choose(one.name)} />`)}</section>`}
        ${skill.examples?.length > 0 && html`<section class="card cards" aria-labelledby="examples"><h2 id="examples">Example requests</h2>
          <ul class="skills-examples">${skill.examples.map((one) => html`<li key=${one}><${Said}>${`“${one}”`}<//></li>`)}</ul></section>`}
      </div>
      ${skill.tools.length > 0 && html`<section class="card cards" ref=${call} tabindex="-1" aria-labelledby="call"><h2 id="call">Try it</h2>
        <${Call} skill=${skill.skill} tools=${skill.tools} tool=${tool} setTool=${setTool} allowed=${skill.allowed} /></section>`}
    </div>`;
}

const SHAPES = {
  skill: 'a component of kiso:skill', command: 'a WASI command', functions: 'plain functions',
  'agent-skill': 'an Agent Skill: instructions for models, and scripts',
};

/** Details of an Agent Skill. It has no permissions and cannot be called. */
function AgentSkill({ of }) {
  const told = [['License', of.license], ['Needs', of.compatibility], ...Object.entries(of.metadata)];
  return html`<section class="card cards" aria-labelledby="publisher"><h2 id="publisher">From its publisher</h2>
      <dl class="skills-facts">${told.filter(([, text]) => text).map(([name, text]) => html`<div key=${name}>
        <dt><${Said}>${name}<//></dt><dd><${Said}>${text}<//></dd></div>`)}
        <div><dt>Tools</dt><dd><${Said}>${of.allowed_tools ? `only ${of.allowed_tools.join(', ') || 'none'} while it is in use` : 'any'}<//></dd></div>
        <div><dt>Models</dt><dd>${of.by_name_only ? 'are not told of it: a message names it' : 'are told its description'}</dd></div></dl>
      ${of.warnings.length > 0 && html`<ul class="skills-asks" aria-label="Not as the specification says">
        ${of.warnings.map((line) => html`<li key=${line}><${Said}>${line}<//></li>`)}</ul>`}</section>
    <section class="card cards" aria-labelledby="files"><h2 id="files">Files in ${of.place}</h2>
      <ul class="skills-examples">${of.files.map((file) => html`<li key=${file.path}><code><${Said}>${file.path}<//></code></li>`)}</ul></section>`;
}

const Facts = ({ skill }) => html`<dl class="skills-facts">
  <div><dt>Digest</dt><dd><code title=${skill.digest}>${skill.digest.slice(0, 12)}…${skill.digest.slice(-4)}</code>
    <${CopyButton} text=${skill.digest} label="Copy the digest" /></dd></div>
  <div><dt>Shape</dt><dd>${SHAPES[skill.shape] ?? skill.shape}</dd></div>
  ${skill.sdk && html`<div><dt>Made with</dt><dd><${Said}>${skill.sdk}<//></dd></div>`}
</dl>`;

/** A tool with its arguments, collapsed, because the form beside it shows them, too. */
function Tool({ tool, alone, choose }) {
  const all = Object.entries(tool.args?.properties ?? {});
  const required = new Set(tool.args?.required ?? []);
  if (alone && !all.length) return html`<p class="muted">${tool.args?.additionalProperties === false ? 'None.' : 'Not described.'}</p>`;
  const names = all.map(([name]) => name).join(', ') || 'without arguments';
  return html`<details class="skills-tool">
    <summary>${!alone && html`<code><${Said}>${tool.name}<//></code> `}<span class="muted"><${Said}>${names}<//></span></summary>
    <dl class="skills-args">${all.map(([name, schema]) => html`<div key=${name}>
      <dt><code><${Said}>${name}<//></code>${required.has(name) && html`<${Badge}>required<//>`}</dt>
      <dd><span class="muted"><${Said}>${typeWords(schema)}<//></span>${schema.description && html`<br /><${Said}>${schema.description}<//>`}</dd>
    </div>`)}</dl>
    ${!alone && html`<${Button} class="button small" icon="play" onClick=${choose} aria-label=${`Call ${tool.name}`}>Call<//>`}
  </details>`;
}

/** Describes the type of an argument, its bounds and its default. */
function typeWords(schema) {
  const told = (value) => (typeof value === 'string' ? value : JSON.stringify(value));
  let kind = schema.format ?? schema.type ?? 'one of several forms';
  if (schema.type === 'array') kind = `list of ${schema.items?.format ?? schema.items?.type ?? 'values'}`;
  if (schema.enum) kind = `one of ${schema.enum.map(told).join(', ')}`;
  const bounds = schema.minimum != null && schema.maximum != null ? `${schema.minimum} to ${schema.maximum}` : '';
  return [kind, bounds, schema.default !== undefined && `default ${told(schema.default)}`].filter(Boolean).join(' · ');
}

const WORKSPACE = {
  none: 'No access to files.',
  read: 'Reads files of the chat that uses it.',
  write: 'Reads and writes files of the chat that uses it.',
};

/** Returns the requests of a skill, and its grant. */
function held({ allowed, needs: wanted, grant }) {
  const [needs, granted] = [permissions(wanted), permissions(grant)];
  // The default memory and time of skills, and of bundled ones, need no grant.
  const beyond = (most, given, has) => (given != null || most > has ? most : null);
  const [memory, seconds] = [beyond(needs.memory, granted.memory, allowed.memory_mib), beyond(needs.seconds, granted.seconds, allowed.timeout_s)];
  return { asked: { ...needs, memory, seconds }, granted };
}

/** The requested and granted permissions; administrators can change them. */
function Granted({ skill, again }) {
  const { allowed } = skill;
  const { asked, granted } = useMemo(() => held(skill), [skill]);
  const [choice, setChoice] = useState(() => heldOf(asked, granted));
  const [question, setQuestion] = useState(null);
  const admin = isAdmin();
  const changes = difference(asked, granted, choice);
  const something = granted.http.length > 0 || granted.secrets.length > 0 || granted.others.length > 0 || choiceOf(asked, granted).limits !== 'none';
  const open = asksAnything(asked) || something;
  const lacks = asksAnything(asked) && difference(asked, granted, everything(asked)).length > 0;
  const done = () => {
    setQuestion(null);
    announce('Permissions updated');
    again();
  };
  return html`<section class="card cards" aria-labelledby="granted"><h2 id="granted">Permissions</h2>
    <p>${WORKSPACE[allowed.workspace]} Each call has ${allowed.memory_mib} MiB of memory and ${allowed.timeout_s} s.</p>
    ${!open && html`<p class="muted">Requests nothing else: no network, no secrets.</p>`}
    ${open && html`<${Asked} needs=${asked} granted=${granted} choice=${choice} bundled=${skill.origin === 'bundled'} onChange=${admin ? setChoice : null} />`}
    ${open && !admin && html`<p class="muted">Only administrators can change this.</p>`}
    ${open && admin && html`<div class="actions"><${Button} kind="primary" disabled=${!changes.length} onClick=${() => setQuestion(choice)}>Review changes…<//>
        ${changes.length > 0 && html`<${Button} onClick=${() => setChoice(heldOf(asked, granted))}>Undo<//>`}
        ${lacks && html`<${Button} kind="quiet" onClick=${() => setChoice(everything(asked))}>Select all<//>`}
        ${something && html`<${Button} kind="danger" onClick=${() => setQuestion(NOTHING)}>Revoke all…<//>`}</div>`}
    ${question && html`<${GrantQuestion} name=${skill.skill} needs=${asked} granted=${granted} choice=${question}
      onClose=${() => setQuestion(null)} onDone=${done} />`}
  </section>`;
}

/** The used permissions, loaded on demand; administrators can revoke the others. */
function Used({ skill, again }) {
  const [audit, setAudit] = useState(null);
  const load = async () => setAudit(await get(`/skills/${part(skill.skill)}/audit`));
  const tighten = async () => {
    const text = `${skill.skill} is then allowed: ${audit.least_allowed.join('; ')}.`;
    if (!await confirm({ title: 'Allow only what was used?', text, action: 'Allow only this' })) return;
    await post(`/skills/${part(skill.skill)}/tighten`);
    toast('Permissions were reduced', 'good');
    again();
  };
  const used = audit?.used;
  return html`<section class="card cards" aria-labelledby="used"><h2 id="used">Used so far</h2>
    ${!audit && html`<div class="actions"><${Button} icon="search" onClick=${load}>Show what it used<//></div>`}
    ${audit && !used && html`<p class="muted">No calls are recorded yet.</p>`}
    ${used && html`<p>${plural(used.calls, 'call')} since ${fullTime(used.first_ms)}${used.failed ? `, ${used.failed} failed` : ''}. At most
        ${' '}${bytes(used.memory_bytes)} of memory, ${duration(used.longest_ms)}, and ${bytes(used.written_bytes)} written.</p>
      ${used.things.length > 0 && html`<ul class="skills-asks" aria-label="Used hosts, folders and secrets">
        ${used.things.map((thing) => html`<li key=${`${thing.capability} ${thing.how} ${thing.name}`}><${Said}>
          ${`${thing.how} ${thing.name} (${plural(thing.calls, 'call')})`}<//></li>`)}</ul>`}
      ${audit.narrower.length === 0 && html`<p class="muted">It is allowed no more than it used.</p>`}
      ${audit.narrower.length > 0 && html`<p>Less would have been enough:</p>
        <ul class="skills-asks" aria-label="Less would have been enough">${audit.narrower.map((line) => html`<li key=${line}><${Said}>${line}<//></li>`)}</ul>
        <div class="actions"><${Button} onClick=${tighten}>Allow only what was used…<//></div>`}`}
  </section>`;
}
