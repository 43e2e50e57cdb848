// Elements of steps: texts, limits, components and their grants, calls of models.

import { html, useLayoutEffect, useRef, useState } from './preact.js';
import { fileUrl } from './api.js';
import { bytes, cost, count, duration, plural, visible } from './format.js';
import { plain } from './run-text.js';
import { Badge, Button, CopyButton, Icon } from './ui.js';
import { statusWords } from './trace-words.js';

/** Number of characters of a text that are drawn at once. */
const PIECE = 20_000;

/** A foreign text within a line. */
export const Said = ({ children }) => html`<bdi>${visible(children)}</bdi>`;

/** A longer text, with its label above unless that is `hidden`; a very long one is shown in pieces. */
export function Text({ label, text, kind = '', hidden }) {
  const whole = String(text ?? '');
  const [shown, show] = useState(PIECE);
  const [scrolls, setScrolls] = useState(false);
  const box = useRef(null);
  // Without a mouse, scrolling requires the focus.
  useLayoutEffect(() => setScrolls(box.current && box.current.scrollHeight > box.current.clientHeight + 1), [whole, shown]);
  const pieces = [];
  for (let at = 0; at < Math.min(shown, whole.length); at += PIECE) pieces.push(whole.slice(at, at + PIECE));
  return html`<section class=${`trace-text ${hidden ? 'unnamed' : ''}`}>
    <header>${!hidden && html`<h3>${visible(label)}</h3>`}${whole && html`<${CopyButton} label=${`Copy: ${visible(label)}`} text=${whole} />`}
      </header>
    ${whole ? html`<pre ref=${box} class=${kind} tabindex=${scrolls ? 0 : undefined} role=${scrolls ? 'group' : undefined}
      aria-label=${scrolls ? visible(label) : undefined}>
      ${pieces.map((piece, at) => html`<span key=${at}>${plain(piece)}</span>`)}</pre>` : html`<p class="muted">nothing</p>`}
    ${shown < whole.length && html`<${Button} kind="quiet small"
      onClick=${() => show(shown + PIECE * 10)}>Show more of ${plural(whole.length, 'character')}<//>`}
  </section>`;
}

/** Content that is drawn only when it is opened. */
export function Folded({ label, kind, begins, children }) {
  const [open, set] = useState(Boolean(begins));
  return html`<details class=${kind} open=${open} onToggle=${(event) => set(event.currentTarget.open)}><summary>${label}</summary>${open && children}
    </details>`;
}

/** Parses a text as JSON; any other text is returned unchanged. */
export function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Formats JSON for people; any other text is returned unchanged. */
export function pretty(value) {
  const what = typeof value === 'string' ? parsed(value) : value;
  return typeof what === 'string' ? value : JSON.stringify(what, null, 2) ?? '';
}

/** Names with values: `[[name, value], …]`; empty values are left out. */
export function Facts({ of }) {
  const rows = of.filter(([, value]) => value !== null && value !== undefined && value !== '' && value !== false);
  return rows.length > 0 && html`<dl class="trace-facts">
    ${rows.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${typeof value === 'string' ? html`<${Said}>${value}<//>` : value}</dd>
      </div>`)}</dl>`;
}

/** A list of sentences. */
export const Sentences = ({ label, of }) => of?.length > 0 && html`<section class="trace-text"><header><h3>${label}</h3></header>
  <ul class="trace-sentences">${of.map((one, at) => html`<li key=${at}><${Said}>${one}<//></li>`)}</ul></section>`;

export const StatusBadge = ({ of }) => {
  const [words, kind] = statusWords(of);
  return html`<${Badge} kind=${kind}>${words}<//>`;
};

/** The model calls of a step. */
export function Calls({ step }) {
  return step.calls.length > 0 && html`<ul class="trace-calls" aria-label="Model calls">${step.calls.map((call, at) => html`<li key=${at}>
    <span class="mono"><${Said}>${call.model}<//></span>
    <span>${count(call.usage?.input_tokens ?? 0)} tokens in${call.usage?.cached_tokens > 0 ? ` (${count(call.usage.cached_tokens)} cached)` : ''},
      ${' '}${count(call.usage?.output_tokens ?? 0)} out</span>
    ${call.usage?.cost_micros > 0 && html`<span>${cost(call.usage.cost_micros)}</span>`}
    ${call === step.body.lost && html`<${Badge} kind="warn">came to nothing<//>`}</li>`)}</ul>`;
}

const MIB = 1 << 20;

/** Formats memory, which is in MiB; less than a tenth of a MiB is shown in smaller units. */
function mib(number) {
  if (number && number < MIB / 10) return bytes(number);
  return `${(number / MIB).toFixed(number < 10 * MIB ? 1 : 0).replace(/\.0$/, '')} MiB`;
}

/** "12 of 64 MiB", "4.1 kB of 64 MiB". */
const ofMib = (used, limit) => `${mib(used).replace(/ MiB$/, '')} of ${mib(limit)}`;

/** Limited resources: the name, and how to format an amount, alone and relative to a limit. */
const MEASURES = {
  millis: ['Time', duration, (used, limit) => `${duration(used)} of ${duration(limit)}`],
  memory_bytes: ['Memory', mib, ofMib],
  written_bytes: ['Written', bytes, ofMib],
  output_bytes: ['Output', bytes, ofMib],
  host_calls: ['Host calls', count, (used, limit) => `${count(used)} of ${count(limit)}`],
  processes: ['Processes', count, (used, limit) => `${count(used)} of ${count(limit)}`],
  processes_at_once: ['At once', count, (used, limit) => `${count(used)} of ${count(limit)}`],
};

/** The usage of each limit. */
export function Limits({ used, limits }) {
  if (!used) return null;
  const known = Object.entries(MEASURES).filter(([name]) => used[name] !== undefined || (limits?.[name] && used.millis !== undefined));
  return html`<section class="trace-text"><header><h3>Limits used</h3></header><div class="trace-limits">
    ${known.map(([name, [label, alone, outOf]]) => {
      const [amount, limit] = [used[name] ?? 0, limits?.[name]];
      const words = limit ? outOf(amount, limit) : alone(amount);
      const share = limit ? Math.min(1, amount / limit) : 0;
      return html`<div key=${name} class="trace-limit"><span class="muted">${label}</span><span class="number">${words}</span>
        ${limit > 0 && html`<span class=${`trace-meter ${share > 0.9 ? 'near' : ''}`} role="meter" aria-label=${label} aria-valuemin="0"
          aria-valuemax=${limit} aria-valuenow=${Math.min(amount, limit)} aria-valuetext=${words}>
          <span style=${{ width: `${Math.max(share * 100, amount ? 1 : 0)}%` }}></span></span>`}</div>`;
    })}</div></section>`;
}

/** The digest of the executed code, and its grant at that time. */
export function Component({ digest, grant }) {
  if (!digest && !grant) return null;
  return html`<section class="trace-text"><header><h3>Component</h3></header><dl class="trace-facts">
    ${digest && html`<div><dt>SHA-256</dt><dd class="trace-digest"><code title=${digest}>${digest.slice(0, 12)}…</code>
      <${CopyButton} label="Copy the digest" text=${digest} /></dd></div>`}
    ${grant && html`<div><dt>Grant</dt><dd><${Grant} of=${grant} /></dd></div>`}</dl></section>`;
}

function Grant({ of }) {
  const rights = grantWords(of);
  return rights.length ? html`<ul class="trace-chips">${rights.map((right) => html`<li key=${right} class="badge"><${Said}>${right}<//></li>`)}</ul>`
    : html`<span class="muted">nothing but its sandbox</span>`;
}

/** Describes the permissions of a grant, each in a few words. */
export function grantWords({ http = [], secrets = [], others = [], workspace, memory_mib: memory, time_ms: time }) {
  const hosts = http.map((one) => `${one.methods?.length ? `${one.methods.join(', ')} ` : ''}${one.host}${one.private ? ' (private network)' : ''}`);
  return [
    ...hosts, ...secrets.map((one) => `secret ${one.name}`), ...others.map((one) => one.text), workspace && `workspace: ${workspace}`,
    memory && `${count(memory)} MiB of memory`, time && `${duration(time)} of time`,
  ].filter(Boolean);
}

/** Files that were created. */
export const Files = ({ of, session }) => of?.length > 0 && html`<section class="trace-text"><header><h3>Files</h3></header>
  <ul class="trace-files">${of.map((file) => html`<li key=${file.path}><${Icon} name="file" size=${15} />
    <a href=${/^\/pub\/[\w.-]+$/.test(file.link ?? '') ? file.link : fileUrl(session, file.path)} target="_blank" rel="noopener"><${Said}>
      ${file.title || file.path}<//></a>
    <span class="muted"><${Said}>${file.path}<//>, ${bytes(file.bytes ?? 0)}</span></li>`)}</ul></section>`;
