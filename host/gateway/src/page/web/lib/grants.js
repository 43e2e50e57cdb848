// Permissions of a skill: shows requested and granted ones, lets the user select them, and describes a change before it is made.

import { html, useState } from './preact.js';
import { part, put } from './api.js';
import { Badge, Button, Dialog, Icon, Said, Trouble } from './ui.js';

/** Normalizes needs, missing permissions or a grant from the daemon; empty without one. `seconds` and `memory` may be null.
 * `others` are capabilities that are granted by name: a capability, a name and its effect. */
export function permissions(given) {
  const http = (given?.http ?? []).map(({ host, methods, inject, private: near }) => ({ host, methods, inject: inject ?? null, private: near }));
  const secrets = (given?.secrets ?? []).map(({ name }) => name);
  const ask = { hosts: (given?.ask?.http ?? []).map(({ host }) => host), secrets: (given?.ask?.secrets ?? []).map(({ name }) => name) };
  return { http, secrets, ask, others: given?.others ?? [], memory: given?.memory_mib ?? null, seconds: given?.timeout_s ?? null };
}

/** Returns how much of the requested memory and time is granted: "all", "some" or "none". */
function limitsOf(needs, granted) {
  if (granted.memory == null && granted.seconds == null) return 'none';
  return (granted.memory ?? 0) >= (needs.memory ?? 0) && (granted.seconds ?? 0) >= (needs.seconds ?? 0) ? 'all' : 'some';
}

/** Returns the selection that corresponds to `granted`. */
export const choiceOf = (needs, granted) => ({
  hosts: granted.http.map(({ host, private: near }) => ({ host, private: near })),
  secrets: [...granted.secrets],
  others: [...granted.others],
  limits: limitsOf(needs, granted),
});

/** Removes everything from a selection that the skill no longer requests: it has no effect, and cannot be granted again. */
export const fitting = (needs, { hosts, secrets, others, limits }) => ({
  hosts: hosts.filter(({ host }) => needOf(needs, host)), secrets: secrets.filter((name) => needs.secrets.includes(name)),
  others: others.filter((one) => needs.others.some(({ capability }) => capability === one.capability)), limits,
});

/** Returns whether a list of other capabilities contains this one. */
const holds = (others, one) => others.some(({ capability, name }) => capability === one.capability && name === one.name);

export const heldOf = (needs, granted) => fitting(needs, choiceOf(needs, granted));

/** Returns the selection with everything. */
export const everything = (needs) => ({
  hosts: needs.http.map(({ host }) => ({ host, private: false })), secrets: [...needs.secrets], others: [...needs.others],
  limits: asksLimits(needs) ? 'all' : 'none',
});

export const NOTHING = { hosts: [], secrets: [], others: [], limits: 'none' };

export const isNothing = ({ hosts, secrets, others, limits }) => !hosts.length && !secrets.length && !others.length && limits === 'none';

const asksLimits = (needs) => needs.memory != null || needs.seconds != null;

/** Returns whether the skill requests anything that needs a grant. */
export const asksAnything = (needs) => needs.http.length > 0 || needs.secrets.length > 0 || needs.others.length > 0 || asksLimits(needs);

/** Returns whether the pattern `wide` matches every host that `narrow` matches. */
const covers = (wide, narrow) => wide === narrow || wide === '*' || (wide.startsWith('*.') && narrow.endsWith(wide.slice(1)));

const needOf = (needs, host) => needs.http.find((need) => covers(need.host, host));

export const hostWords = (host) => (host === '*' ? 'every public host' : host);

export function limitWords({ memory, seconds }) {
  return [memory != null && `${memory} MiB of memory`, seconds != null && `${seconds} s of time`].filter(Boolean).join(' and ');
}

/** Saves the selection `choice`. `/work` stays unchanged, and so do memory and time unless the user changed them. */
export function saveGrant(name, needs, granted, choice) {
  const { hosts, secrets, limits } = choice;
  const others = choice.others.map(({ capability, name: of }) => ({ capability, name: of }));
  const changed = limits === limitsOf(needs, granted) ? {} : { limits: limits === 'all' };
  return put(`/skills/${part(name)}/grants`, { hosts, secrets, ...(others.length ? { others } : {}), ...changed });
}

/** Describes the changes for the skill: `[{more, text}]`. */
export function difference(needs, granted, choice) {
  const told = [];
  const now = new Map(choice.hosts.map((one) => [one.host, one.private]));
  for (const [host, near] of now) {
    const before = granted.http.find((one) => one.host === host);
    const need = needOf(needs, host);
    const secret = need?.inject ? `, with the secret ${need.inject.secret} in the header ${need.inject.header}` : '';
    const extra = `${secret}${near ? ', also at private addresses' : ''}`;
    const unasked = granted.ask.hosts.includes(host) ? ' without asking' : '';
    if (!before) told.push({ more: true, text: `may now reach ${hostWords(host)}${unasked} (${need.methods.join(', ')})${extra}` });
    else if (near !== before.private) told.push({ more: near, text: `may ${near ? 'now' : 'no longer'} reach ${hostWords(host)} at private addresses` });
  }
  for (const { host } of granted.http) if (!now.has(host)) told.push({ more: false, text: `may no longer reach ${hostWords(host)}` });
  for (const name of choice.secrets) if (!granted.secrets.includes(name)) told.push({ more: true, text: `may now use the secret ${name}${granted.ask.secrets.includes(name) ? ' without asking' : ''}` });
  for (const name of granted.secrets) if (!choice.secrets.includes(name)) told.push({ more: false, text: `may no longer use the secret ${name}` });
  for (const one of choice.others) if (!holds(granted.others, one)) told.push({ more: true, text: `may now ${one.text}` });
  for (const one of granted.others) if (!holds(choice.others, one)) told.push({ more: false, text: `may no longer ${one.text}` });
  const changed = choice.limits !== limitsOf(needs, granted);
  if (changed && choice.limits === 'all') told.push({ more: true, text: `may now use ${limitWords(needs)}` });
  if (changed && choice.limits === 'none') told.push({ more: false, text: `may no longer use ${limitWords(granted)}` });
  return told;
}

/**
 * The requested permissions with their state. With `onChange`, each can be selected; otherwise they are only shown. `fresh`:
 * nothing was granted yet, so no state is shown. `bundled`: the rules for sites apply to the skill, so it asks.
 */
export function Asked({ needs, granted, choice, onChange, fresh, bundled }) {
  const tick = { needs, granted, choice, onChange, fresh, bundled };
  const stray = granted.http.filter((one) => !needOf(needs, one.host));
  return html`<div class="asked">
    ${needs.http.length > 0 && html`<fieldset><legend>Hosts</legend>
      <ul>${needs.http.map((need) => html`<${HostAsked} key=${need.host} need=${need} ...${tick} />`)}</ul></fieldset>`}
    ${stray.length > 0 && html`<fieldset><legend>Hosts it no longer asks for</legend>
      <ul>${stray.map((one) => html`<${HostRow} key=${one.host} host=${one.host} about="has no effect; removed with the next change"
        ...${tick} onChange=${null} />`)}</ul></fieldset>`}
    ${needs.secrets.length > 0 && html`<fieldset><legend>Secrets</legend>
      <ul>${needs.secrets.map((name) => html`<${SecretRow} key=${name} name=${name} ...${tick} />`)}</ul></fieldset>`}
    ${needs.others.length > 0 && html`<fieldset><legend>Other permissions</legend>
      <ul>${needs.others.map((one) => html`<${OtherRow} key=${one.text} one=${one} ...${tick} />`)}</ul></fieldset>`}
    ${asksLimits(needs) && html`<fieldset><legend>Memory and time</legend><ul><${LimitRow} ...${tick} /></ul></fieldset>`}
  </div>`;
}

/** A line that can be selected, or shows whether it is granted or asked for in each run. `name` is the control's name. */
function Row({ on, was, asks, fresh, without, name, about, onToggle, children }) {
  const state = fresh ? null : was ? html`<${Badge} kind="good">granted<//>`
    : asks ? html`<${Badge}>asks you in each run<//>` : without ? html`<${Badge}>${without}<//>` : html`<${Badge} kind="warn">not granted<//>`;
  const words = html`<span class="asked-what">${children}${about && html`<span class="muted">${about}</span>`}</span>`;
  return onToggle
    ? html`<label class="checked"><input type="checkbox" aria-label=${name} checked=${on}
      onChange=${(event) => onToggle(event.target.checked)} />${words}${state}</label>`
    : html`<div class="checked"><span class="asked-mark"><${Icon} name=${was ? 'check' : 'lock'} size=${16} /></span>${words}${state}</div>`;
}

function HostRow({ host, about, granted, choice, onChange, fresh, bundled }) {
  const chosen = choice.hosts.find((one) => one.host === host);
  const others = choice.hosts.filter((one) => one.host !== host);
  const held = granted.http.find((one) => one.host === host);
  const set = (hosts) => onChange({ ...choice, hosts });
  const near = `Reach ${host} also at private addresses`;
  return html`<li>
    <${Row} name=${`Reach ${hostWords(host)}`} on=${chosen !== undefined} was=${held !== undefined} fresh=${fresh} about=${about}
      asks=${granted.ask.hosts.includes(host)} without=${bundled && 'asks before it opens this'}
      onToggle=${onChange && ((yes) => set(yes ? [...others, { host, private: false }] : others))}>
      <bdi class=${host === '*' ? 'strong' : 'mono'}>${hostWords(host)}</bdi><//>
    ${onChange && chosen && html`<label class="checked asked-under"><input type="checkbox" aria-label=${near} checked=${chosen.private}
      onChange=${(event) => set([...others, { host, private: event.target.checked }])} />
      <span class="muted">also where its address is private (this machine, the local network)</span></label>`}
    ${!onChange && held?.private && html`<p class="muted asked-under">also where its address is private</p>`}
  </li>`;
}

/** A host, or a pattern of hosts of which individual ones may be granted instead. */
function HostAsked({ need, ...tick }) {
  const { choice, granted, onChange } = tick;
  const [name, setName] = useState('');
  const { inject } = need;
  const about = need.methods.join(', ')
    + (inject ? ` · kiso adds the header ${inject.header} with the secret ${inject.secret}; the skill never sees it` : '');
  const wide = need.host.startsWith('*');
  const below = (one) => one.host !== need.host && covers(need.host, one.host);
  const asked = granted.ask.hosts.map((one) => ({ host: one }));
  const narrow = wide ? [...new Set([...granted.http, ...choice.hosts, ...asked].filter(below).map((one) => one.host))] : [];
  const host = name.trim().toLowerCase();
  const fits = /^[a-z0-9._:[\]-]+$/.test(host) && covers(need.host, host);
  const add = () => {
    setName('');
    onChange({ ...choice, hosts: [...choice.hosts.filter((one) => one.host !== host && one.host !== need.host), { host, private: false }] });
  };
  const enter = (event) => {
    if (event.key !== 'Enter') return;
    event.preventDefault();
    if (fits) add();
  };
  const id = `host-${need.host}`;
  return html`<${HostRow} host=${need.host} about=${about} ...${tick} />
    ${narrow.map((one) => html`<${HostRow} key=${one} host=${one} about=${`of ${hostWords(need.host)}`} ...${tick} />`)}
    ${wide && onChange && html`<li class="asked-under asked-one">
      <label for=${id}>Or only this host</label>
      <div><input id=${id} value=${name} placeholder=${need.host === '*' ? 'example.org' : need.host.replace('*', 'name')} spellcheck=${false}
        autocapitalize="none" aria-invalid=${name && !fits ? 'true' : undefined}
        onInput=${(event) => setName(event.target.value)} onKeyDown=${enter} />
      <${Button} icon="plus" disabled=${!fits} onClick=${add}>Add host<//></div></li>`}`;
}

function SecretRow({ name, granted, choice, onChange, fresh, bundled }) {
  const others = choice.secrets.filter((one) => one !== name);
  return html`<li><${Row} name=${`Use the secret ${name}`} on=${choice.secrets.includes(name)} was=${granted.secrets.includes(name)} fresh=${fresh}
    asks=${granted.ask.secrets.includes(name)} without=${bundled && 'optional'} about="the skill itself may read it" onToggle=${onChange && ((yes) => onChange({ ...choice, secrets: yes ? [...others, name] : others }))}>
    <bdi class="mono">${name}</bdi><//></li>`;
}

function OtherRow({ one, granted, choice, onChange, fresh }) {
  const rest = choice.others.filter((other) => !holds([other], one));
  return html`<li><${Row} name=${one.text} on=${holds(choice.others, one)} was=${holds(granted.others, one)} fresh=${fresh}
    onToggle=${onChange && ((yes) => onChange({ ...choice, others: yes ? [...rest, one] : rest }))}>${one.text}<//></li>`;
}

function LimitRow({ needs, granted, choice, onChange, fresh }) {
  const held = limitsOf(needs, granted);
  return html`<li><${Row} name=${`Use ${limitWords(needs)}`} on=${choice.limits === 'all'} was=${held === 'all'} fresh=${fresh}
    about=${`more than the default${held === 'some' ? `; ${limitWords(granted)} is granted` : ''}`}
    onToggle=${onChange && ((yes) => onChange({ ...choice, limits: yes ? 'all' : 'none' }))}>${limitWords(needs)}<//></li>`;
}

/** Shows the changes for confirmation; calls `onDone` after they are saved. */
export function GrantQuestion({ name, needs, granted, choice, onClose, onDone }) {
  const told = difference(needs, granted, choice);
  const less = told.every((one) => !one.more);
  const [error, setError] = useState(null);
  const change = () => saveGrant(name, needs, granted, choice).then(onDone, setError);
  return html`<${Dialog} title=${`Change permissions of ${name}?`} onClose=${onClose}>
    <ul class="asked-difference" aria-label="What changes">${told.map((one) => html`<li key=${one.text} class=${one.more ? 'more' : 'less'}>
      <${Icon} name=${one.more ? 'plus' : 'close'} size=${16} /><span><${Said}>${name}<//> <${Said}>${one.text}<//></span></li>`)}</ul>
    <p class="muted">Takes effect on the next call.</p>
    ${error && html`<${Trouble} error=${error} />`}
    <footer><${Button} onClick=${onClose}>Cancel<//>
      <${Button} kind=${less ? 'danger' : 'primary'} onClick=${change}>${less ? 'Revoke' : 'Change'}<//></footer>
  <//>`;
}
