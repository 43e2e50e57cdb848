// The state of kiso: its activity, its data, and its warnings.

import { html, useEffect, useLoaded, useMemo, useRef, useState } from '../lib/preact.js';
import { get, isAdmin, now } from '../lib/api.js';
import { ago, bytes, count, duration, fullTime, plural } from '../lib/format.js';
import { Busy, Button, Empty, Icon, Loaded, ScreenHead, Trouble } from '../lib/ui.js';

/** Milliseconds between two requests while the page is visible. */
const EVERY = 5_000;

/** Milliseconds per day. */
const DAY = 86_400_000;

/** Free disk space that is shown as low. */
const LITTLE = 1e9;

/** Milliseconds without a sign of life after which a fleet member counts as gone. */
const GONE = 30_000;

export default function Health() {
  const { value, error, again } = useRepeated();
  return html`<div class="screen">
    <${ScreenHead} title="Health" about="Status of kiso, refreshed every five seconds."><${Button} icon="retry" label="Refresh" onClick=${again} />
      <//>
    ${error && html`<${Trouble} error=${error} again=${again} />`}
    ${value ? html`<${State} of=${value} away=${Boolean(error)} /><${Warnings} of=${value.warnings ?? []} />
      <${Groups} of=${value} />${value.fleet && isAdmin() && html`<${Fleet} health=${value} />`}` : !error && html`<${Busy} />`}
    ${isAdmin() && (value || error) && html`<${Config} />`}
  </div>`;
}

/** Loads the details repeatedly, one request at a time; a hidden page sends none. */
function useRepeated() {
  const [state, set] = useState({});
  const ask = useRef(() => {});
  useEffect(() => {
    const ended = new AbortController();
    let timer = 0;
    let under = false;
    ask.current = async () => {
      clearTimeout(timer);
      if (under || ended.signal.aborted) return;
      under = true;
      try {
        const value = await get('/health/details', undefined, ended.signal);
        if (!ended.signal.aborted) set({ value });
      } catch (error) {
        if (!ended.signal.aborted) set((old) => ({ ...old, error }));
      }
      under = false;
      if (document.visibilityState === 'visible' && !ended.signal.aborted) timer = setTimeout(ask.current, EVERY);
    };
    const seen = () => (document.visibilityState === 'visible' ? ask.current() : clearTimeout(timer));
    document.addEventListener('visibilitychange', seen);
    ask.current();
    return () => {
      ended.abort();
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', seen);
    };
  }, []);
  return { ...state, again: () => ask.current() };
}

/** Formats the uptime; hours are shown for two days. */
const upFor = (ms) => (ms < 2 * DAY ? duration(ms) : plural(Math.floor(ms / DAY), 'day'));

function State({ of, away }) {
  const well = of.status === 'ok' && !away;
  const warned = (of.warnings ?? []).length;
  const trouble = away ? 'kiso isn’t responding' : of.status === 'not_ready' ? 'kiso cannot work' : `Problem: ${of.status}`;
  const words = !well ? trouble : warned ? `Healthy, with ${plural(warned, 'warning')}` : 'Healthy';
  return html`<section class="card health-state" aria-label="State"><h2>
    <span class=${`health-lamp ${well ? (warned ? 'warn' : '') : 'bad'}`} aria-hidden="true"></span><span role="status">${words}</span></h2>
    <p class="muted">kiso ${of.version}, up since ${fullTime(of.started_ms)} (${upFor(of.now_ms - of.started_ms)})</p></section>`;
}

/** The daemon's warnings. */
const Warnings = ({ of }) => of.length > 0 && html`<section aria-label="Warnings"><ul class="health-warnings">
  ${of.map((warning) => html`<li key=${warning}><${Icon} name="alert" /><span><bdi>${warning}</bdi></span></li>`)}</ul>
  <p class="muted">On the machine that runs kiso, <code>kiso doctor</code> checks each and suggests a fix.</p></section>`;

function Groups({ of }) {
  const slots = of.model_slots ?? {};
  const webhooks = of.webhooks ?? {};
  const hooks = of.hooks ?? [];
  const servers = of.mcp_servers ?? [];
  const groups = [
    ['At work', [
      ['Active runs', count(of.running)], ['Queued messages', count(of.queued), of.queued > 10],
      ['Free model slots', slots.free === undefined ? null : count(slots.free)],
      ['Waiting calls', slots.waiting === undefined ? null : count(slots.waiting), slots.waiting > 0],
    ]],
    ['Stored data', [['Chats', count(of.sessions)], ['Messages', count(of.messages)], ['Runs', count(of.runs)]]],
    ['Machine', [
      ['Store', bytes(of.store_bytes)], ['Write-ahead log', bytes(of.wal_bytes), of.wal_bytes > 256e6],
      ['Free on disk', of.free_bytes == null ? null : bytes(of.free_bytes), of.free_bytes < LITTLE],
      ['Memory', of.rss_bytes == null ? null : bytes(of.rss_bytes)],
    ]],
    ['Connections', [
      ['Event streams', count(of.event_streams)], ['Pending webhooks', count(webhooks.waiting ?? 0)],
      ['Failed webhooks', count(webhooks.failed ?? 0), webhooks.failed > 0],
    ]],
    // Only if hooks are configured: events since the daemon's start.
    ...(hooks.length > 0 ? [['Hooks', hooks.map((hook) => [
      hook.name, `${count(hook.queued)} received${hook.trouble ? `, last refused: ${hook.trouble}` : ''}`, Boolean(hook.trouble),
    ])]] : []),
    // A program outside of the sandbox is marked, because the sandbox's guarantees do not apply to it.
    ...(servers.length > 0 ? [['MCP servers', servers.map((server) => [
      server.name, `runs ${server.place}${server.usable ? '' : '; cannot be used'}`, server.outside_the_sandbox || !server.usable,
    ])]] : []),
  ];
  return html`<div class="health-groups">${groups.map(([name, rows]) => html`<section key=${name} class="card" aria-label=${name}><h2>${name}</h2>
    <dl>${rows.filter(([, value]) => value !== null).map(([label, value, high]) => html`<div key=${label} class=${high ? 'high' : ''}><dt>${label}
      </dt><dd>${value}</dd></div>`)}</dl></section>`)}</div>`;
}

/** The machines of the fleet, loaded with each update. */
function Fleet({ health }) {
  const [{ value, error }, set] = useState({});
  useEffect(() => {
    const ended = new AbortController();
    get('/fleet', undefined, ended.signal).then((value) => set({ value }), (error) => ended.signal.aborted || set((old) => ({ ...old, error })));
    return () => ended.abort();
  }, [health]);
  return html`<section class="card health-fleet" aria-label="Fleet"><h2>Fleet <bdi>${health.fleet}</bdi></h2>
    ${error && html`<${Trouble} error=${error} />`}${value ? html`<${Members} of=${value} />` : !error && html`<${Busy} />`}</section>`;
}

const Members = ({ of }) => html`<p class="muted">${of.owner ? html`<bdi>${of.owner}</bdi> owns the home` : 'Nobody owns the home'}
    ${` (epoch ${count(of.epoch)}). The log has ${plural(of.log_messages, 'message')} since the last copy of the store, ${bytes(of.log_bytes)} in all.`}</p>
  <div class="scrolling" tabindex="0" role="group" aria-label="Table of members"><table class="table"><caption class="unseen">Members of the fleet</caption>
    <thead><tr><th scope="col">Member</th><th scope="col">Role</th><th scope="col">Labels</th><th scope="col">Last seen</th><th scope="col">kiso</th></tr></thead>
    <tbody>${of.members.map((member) => html`<tr key=${member.name} class=${member.ago_ms < GONE ? '' : 'high'}>
      <th scope="row"><bdi>${member.name}</bdi></th><td>${member.ago_ms < GONE ? role(member) : 'Not there'}</td>
      <td><bdi>${member.labels.join(', ')}</bdi></td><td>${seen(member.ago_ms)}</td><td><bdi>${member.version}</bdi></td></tr>`)}</tbody></table></div>`;

const seen = (ms) => (ms < GONE ? 'just now' : ms < 60_000 ? 'less than a minute ago' : ago(now() - ms, now()));
const role = ({ owns, stands_by }) => (owns ? 'Owns the home' : stands_by ? 'Stands by' : 'Doesn’t take over');

/** The current `config.toml`; loaded when it is opened. */
function Config() {
  const [open, setOpen] = useState(false);
  return html`<details class="card health-config" onToggle=${(event) => setOpen(event.target.open)}><summary>
    <strong>Configuration</strong> <span class="muted">every key with the value in force</span></summary>
    ${open && html`<${Keys} />`}</details>`;
}

function Keys() {
  const config = useLoaded((signal) => get('/config', undefined, signal));
  const [search, setSearch] = useState('');
  const keys = useMemo(() => (config.value ? flat(config.value) : []), [config.value]);
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const found = keys.filter(([key, value]) => words.every((word) => `${key} ${value}`.toLowerCase().includes(word)));
  return html`<div><label class="field"><span class="unseen">Search configuration</span>
      <input type="search" value=${search} placeholder="Search configuration" onInput=${(event) => setSearch(event.target.value)} /></label>
    <p class="muted" role="status">
      ${found.length === keys.length ? plural(keys.length, 'key') : `${count(found.length)} of ${plural(keys.length, 'key')}`}</p>
    <${Loaded} of=${config}>${() => (found.length ? html`<div class="scrolling" tabindex="0" role="group" aria-label="Table of keys">
      <table class="table"><caption class="unseen">Configuration</caption>
      <thead><tr><th scope="col">Key</th><th scope="col">Value</th></tr></thead>
      <tbody>${found.map(([key, value]) => html`<tr key=${key}><th scope="row"><span class="mono">${key}</span></th><td class="mono"><bdi>${value}
        </bdi></td></tr>`)}</tbody></table></div>`
      : html`<${Empty} icon="search" title="No matching keys" />`)}<//></div>`;
}

/** `[["llm.max_attempts", "3"], …]` */
function flat(value, path = '') {
  if (value && typeof value === 'object' && !Array.isArray(value) && Object.keys(value).length) {
    return Object.entries(value).flatMap(([key, one]) => flat(one, path ? `${path}.${key}` : key));
  }
  return [[path, value === null ? 'not set' : typeof value === 'string' ? value : JSON.stringify(value)]];
}
