// Calls a skill manually: a form for its arguments, the result, and earlier calls.

import { html, useEffect, useMemo, useRef, useState, useLoaded } from '../lib/preact.js';
import { fileUrl, get, part, post } from '../lib/api.js';
import { bytes, clock, count, duration, visible } from '../lib/format.js';
import { Fields, emptyOf, fieldOf, valueOf, wrongBy } from '../lib/form.js';
import { Badge, Button, CopyButton, Icon, Said, Trouble, announce } from '../lib/ui.js';

/** Maximum number of calls that are kept while the page is open, latest first. */
const MAX_CALLS = 20;
const calls = new Map();
let number = 0;

/** The schema of a skill without declared arguments, which accepts any. */
const FREE = { type: 'object', properties: { arguments: { type: 'object', description: 'an object, handed over as it is' } } };
const isFree = (schema) => !Object.keys(schema?.properties ?? {}).length && schema?.additionalProperties !== false;

/** Maximum length in characters of a shown result; Copy has the rest. */
const MAX_SHOWN = 100_000;

/** `tool`: the selected tool of the skill. `allowed`: the limits of a call. */
export function Call({ skill, tools, tool, setTool, allowed }) {
  const chosen = tools.find((one) => one.name === tool) ?? tools[0];
  // Undeclared arguments use a single field.
  const free = isFree(chosen.args);
  const field = useMemo(() => fieldOf(free ? FREE : chosen.args), [chosen]);
  const [raws, setRaws] = useState({});
  const [session, setSession] = useState(localStorage.getItem('kiso.session') || 'default');
  const sessions = useLoaded((signal) => get('/sessions', { limit: 100 }, signal));
  const [errors, setErrors] = useState(new Map());
  const [result, setResult] = useState(null);
  const [trouble, setTrouble] = useState(null);
  const [under, setUnder] = useState(false);
  const [past, setPast] = useState(calls.get(skill) ?? []);
  const form = useRef(null);
  // A new session has no files yet.
  const isThere = sessions.value && (sessions.value.next || sessions.value.items.some((one) => one.name === session));
  const raw = raws[chosen.name] ?? emptyOf(field);
  const args = () => {
    const found = new Map();
    const made = valueOf(field, raw, true, 'arg', found);
    return [free ? made.arguments ?? {} : made, found];
  };
  const change = (value) => {
    setRaws({ ...raws, [chosen.name]: value });
    // An invalid field shows its error until it is valid; a field that is being filled in is not interrupted.
    if (errors.size) {
      const found = new Map();
      valueOf(field, value, true, 'arg', found);
      setErrors(new Map([...found].filter(([path]) => errors.has(path))));
    }
  };
  const blame = (found) => {
    setErrors(found);
    announce(`${found.size === 1 ? 'One field is' : `${found.size} fields are`} wrong`);
    setTimeout(() => form.current?.querySelector('[aria-invalid=true]')?.focus(), 0);
  };
  const send = async (event) => {
    event.preventDefault();
    const [given, found] = args();
    setTrouble(null);
    if (found.size) {
      blame(found);
      return;
    }
    setErrors(found);
    setUnder(true);
    setResult(null);
    try {
      const ended = await post(`/skills/${part(chosen.name)}/call`, { session, args: given });
      setResult({ ...ended, session });
      const one = { id: number += 1, at: Date.now(), tool: chosen.name, session, raw, args: given, ok: ended.ok };
      calls.set(skill, [one, ...(calls.get(skill) ?? [])].slice(0, MAX_CALLS));
      setPast(calls.get(skill));
      announce(ended.ok ? 'Call finished' : 'Call failed');
    } catch (error) {
      const wrong = error.status === 400 && !free ? wrongBy(error.message, field, 'arg') : null;
      if (wrong) blame(wrong);
      else setTrouble(error);
    } finally {
      setUnder(false);
    }
  };
  const choose = (name) => {
    setTool(name);
    setErrors(new Map());
    setTrouble(null);
    setResult(null);
  };
  const clear = () => {
    setRaws({ ...raws, [chosen.name]: emptyOf(field) });
    setErrors(new Map());
    setTrouble(null);
  };
  const again = (one) => {
    setTool(one.tool);
    setRaws({ ...raws, [one.tool]: one.raw });
    setSession(one.session);
    setErrors(new Map());
    setResult(null);
    form.current.scrollIntoView({ block: 'nearest' });
    form.current.querySelector('input, textarea, select')?.focus();
  };
  return html`<form ref=${form} class="call" onSubmit=${send} novalidate aria-label=${`Call ${chosen.name}`}>
    <div class="call-where">
      ${tools.length > 1 && html`<div class="field"><label for="call-tool">Function</label><select id="call-tool" value=${chosen.name}
        onChange=${(event) => choose(event.target.value)}>
        ${tools.map((one) => html`<option key=${one.name} value=${one.name} selected=${one.name === chosen.name}>${one.name}</option>`)}
      </select></div>`}
      <${SessionField} session=${session} sessions=${sessions.value?.items ?? []} onChange=${setSession} />
    </div>
    <${WithFiles} session=${session} wanted=${isThere && JSON.stringify(chosen.args).includes('"format":"file"')}>
      ${(files) => html`<${Fields} key=${chosen.name} field=${field} raw=${raw} onChange=${change} errors=${errors} path="arg" files=${files} />`}<//>
    ${!free && !Object.keys(chosen.args.properties).length && html`<p class="muted">No arguments.</p>`}
    ${trouble && html`<${Trouble} error=${trouble} />`}
    <div class="actions"><button class="button primary" disabled=${under} aria-busy=${under ? 'true' : undefined}>
        ${under ? html`<span class="spinner" aria-hidden="true"></span>` : html`<${Icon} name="play" />`}<span>${under ? 'Calling…' : 'Call'}</span></button>
      <${Button} kind="quiet" onClick=${clear}>Clear<//>
      <${CopyButton} class="button quiet" text=${() => JSON.stringify({ session, args: args()[0] }, null, 2)}>As JSON<//></div>
  </form>
  ${result && html`<${Result} of=${result} allowed=${allowed} />`}
  ${past.length > 0 && html`<section class="call-past" aria-labelledby="call-past"><h3 id="call-past">Previous calls</h3>
    <ul class="rows">${past.map((one) => html`<li key=${one.id}>
    <${Badge} kind=${one.ok ? 'good' : 'bad'}>${one.ok ? 'done' : 'failed'}<//><span class="muted">${clock(one.at)}</span>
    <code class="call-args"><${Said}>${`${one.tool} ${JSON.stringify(one.args)}`}<//></code>
    <${Button} class="button small" icon="retry" onClick=${() => again(one)}
      aria-label=${`Use again: ${one.tool} of ${clock(one.at)}`}>Use again<//></li>`)}</ul></section>`}`;
}

/** Selects the workspace: any session, including a new one. */
function SessionField({ session, sessions, onChange }) {
  return html`<div class="field"><label for="call-session">Chat</label>
    <input id="call-session" list="call-sessions" value=${session} required spellcheck=${false} autocomplete="off" autocapitalize="none"
      aria-describedby="call-session-help" onInput=${(event) => onChange(event.target.value)} />
    <datalist id="call-sessions">${sessions.map((one) => html`<option key=${one.name} value=${one.name}>${one.title}</option>`)}</datalist>
    <p class="muted" id="call-session-help">The skill sees this chat’s files.</p></div>`;
}

/** Loads the names of the workspace's files, if an argument is a file. */
function WithFiles({ session, wanted, children }) {
  const [files, set] = useState([]);
  useEffect(() => {
    set([]);
    if (!wanted || !session) return undefined;
    const ended = new AbortController();
    // Waits, so that not every letter of the session's name causes a request.
    const timer = setTimeout(async () => {
      try {
        const listed = await get(`/sessions/${part(session)}/files`, { limit: 500 }, ended.signal);
        set(listed.items.map((one) => one.path));
      } catch {
        // Without suggestions, the name is typed.
      }
    }, 300);
    return () => {
      clearTimeout(timer);
      ended.abort();
    };
  }, [session, wanted]);
  return html`${children(files)}
    ${files.length > 0 && html`<datalist id="form-files">${files.map((path) => html`<option key=${path} value=${path} />`)}</datalist>`}`;
}

const BLAME = { caller: 'the call', skill: 'the skill', policy: 'not granted', host: 'this machine' };

function Result({ of, allowed }) {
  const root = useRef(null);
  useEffect(() => root.current.scrollIntoView({ block: 'nearest' }), [of]);
  const text = of.text ?? '';
  return html`<section ref=${root} class="call-result" aria-labelledby="call-result">
    <header><h3 id="call-result">Result</h3><${Badge} kind=${of.ok ? 'good' : 'bad'}>${of.ok ? 'done' : 'failed'}<//>
      ${text && html`<${CopyButton} text=${text} label="Copy the answer" />`}</header>
    ${of.error && html`<div class="trouble"><${Icon} name="alert" /><div><p><${Said}>${of.error.message}<//></p>
      <p class="muted"><code>${of.error.code}</code> · ${BLAME[of.error.blame] ?? of.error.blame}
        ${of.error.retryable && ' · the same call may work later'}
        ${of.error.limit && html` · the limit is ${of.error.limit.value}; <code>${of.error.limit.setting}</code> raises it`}</p></div></div>`}
    ${text && html`<${Output} name="Answer">${text}<//>`}
    ${of.files?.length > 0 && html`<ul class="call-files" aria-label="Files">
      ${of.files.map((file) => html`<${File} key=${file.path} session=${of.session} file=${file} />`)}</ul>`}
    ${of.data != null && html`<${Folded} name="Data" text=${JSON.stringify(of.data, null, 2)} />`}
    ${of.log?.length > 0 && html`<ul class="call-log" aria-label="Log">${of.log.map((line, at) => html`<li key=${at}>
      <${Badge} kind=${{ error: 'bad', warn: 'warn' }[line.level] ?? ''}>${line.level}<//><code><${Said}>${line.message}<//></code></li>`)}</ul>`}
    ${of.stdout && html`<${Folded} name="Standard output" text=${of.stdout} />`}
    ${of.stderr && html`<${Folded} name="Standard error" text=${of.stderr} />`}
    ${of.used && html`<${Used} used=${of.used} limits=${of.limits} allowed=${allowed} />`}
  </section>`;
}

const mebibytes = (number) => `${(number / 2 ** 20).toFixed(number < 10 * 2 ** 20 ? 1 : 0)} MiB`;

function cut(text) {
  const more = text.length - MAX_SHOWN;
  return more > 0 ? `${text.slice(0, MAX_SHOWN)}\n… ${count(more)} more characters: copy it to see them` : text;
}

/** A text that scrolls, also with the keyboard. */
const Output = ({ name, children }) => html`<pre class="call-output" tabindex="0" role="region" aria-label=${name}>
  <${Said}>${cut(children)}<//></pre>`;

const Folded = ({ name, text }) => html`<details class="call-folded">
  <summary>${name} <span class="muted">${bytes(new Blob([text]).size)}</span></summary>
  <${CopyButton} text=${text} label=${`Copy: ${name}`} /><${Output} name=${name}>${text}<//></details>`;

function File({ session, file }) {
  const url = file.link ?? fileUrl(session, file.path);
  const [broken, setBroken] = useState(false);
  const picture = file.media_type?.startsWith('image/') && !broken;
  return html`<li>
    ${picture && html`<a href=${url} target="_blank" rel="noopener" class="call-picture">
      <img src=${url} alt=${visible(file.title ?? file.path)} loading="lazy" onError=${() => setBroken(true)} /></a>`}
    <a href=${url} target="_blank" rel="noopener"><${Icon} name="file" size=${16} /><${Said}>${file.path}<//></a>
    <span class="muted">${file.media_type} · ${bytes(file.bytes)}</span></li>`;
}

/** The usage of the call, relative to its limits. */
function Used({ used, limits, allowed }) {
  const rows = [
    ['time', used.millis, limits?.millis ?? (allowed?.timeout_s && allowed.timeout_s * 1_000), duration],
    ['memory', used.memory_bytes, limits?.memory_bytes ?? (allowed?.memory_mib && allowed.memory_mib * 2 ** 20), mebibytes],
    ['written', used.written_bytes ?? 0, limits?.written_bytes, bytes],
    ['calls to kiso', used.host_calls ?? 0, limits?.host_calls, count],
  ];
  return html`<dl class="call-used" aria-label="Resources used">${rows.map(([name, value, limit, form]) => html`<div key=${name}><dt>${name}</dt>
    <dd>${form(value)}${limit ? html` <span class="muted">of ${form(limit)}</span>` : ''}</dd>
    ${limit ? html`<span class="call-bar" aria-hidden="true"><span style=${{ width: `${Math.min(100, Math.max(1, (value / limit) * 100))}%` }}>
      </span></span>` : ''}</div>`)}</dl>`;
}
