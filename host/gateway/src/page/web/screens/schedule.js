// Schedules: messages that kiso sends by itself.

import { html, useEffect, useMemo, useRef, useState, useLoaded, useStore } from '../lib/preact.js';
import { ApiError, del, get, isAdmin, me, now, part, patch, post } from '../lib/api.js';
import { on } from '../lib/events.js';
import { dates, duration, plural, slug } from '../lib/format.js';
import { Pages, usePages } from '../lib/pages.js';
import { href } from '../lib/router.js';
import { sessionOf as knownChat, sessions as listed, titleOf } from '../lib/sessions.js';
import { MONTH_DAYS, PRESETS, UNITS, WEEKDAYS, chosenBy, expression, inWords } from '../lib/when.js';
import { Badge, Button, Dialog, Empty, Icon, Loaded, Menu, Said, ScreenHead, Time, Trouble, confirm, toast } from '../lib/ui.js';

/** Returns the session in which a schedule's message is answered. */
const sessionOf = (name) => `schedule.${name}`;

/** Milliseconds within which several events cause one reload. */
const SETTLE = 400;

/** Times per page. */
const TIMES = 20;

export default function Screen() {
  useStore(me);
  const schedules = useLoaded((signal) => get('/schedules', null, signal));
  const [adding, setAdding] = useState(false);
  const [turns, setTurns] = useState({ all: 0 });
  const again = useRef(schedules.again);
  again.current = schedules.again;
  useEffect(() => {
    let timer = 0;
    let number = 0;
    let came = {};
    const soon = (changed) => {
      Object.assign(came, changed);
      clearTimeout(timer);
      timer = setTimeout(() => {
        again.current();
        setTurns((old) => (came.all ? came : { ...old, ...came }));
        came = {};
      }, SETTLE);
    };
    // A schedule that fired has a new run and a new next time.
    const ends = [
      on('run', ({ session }) => session.startsWith(sessionOf('')) && soon({ [session.slice(sessionOf('').length)]: number += 1 })),
      on('gap', () => soon({ all: number += 1 })),
    ];
    return () => {
      clearTimeout(timer);
      for (const end of ends) end();
    };
  }, []);
  const added = (schedule) => {
    setAdding(false);
    toast(`${schedule.name} is scheduled`, 'good');
    schedules.again();
  };
  return html`<div class="screen">
    <${ScreenHead} title="Schedule" about="Messages that kiso sends at set times.">
      <${Button} kind="primary" icon="plus" onClick=${() => setAdding(true)}>Add a schedule<//><//>
    <${Loaded} of=${schedules}>${({ items }) => (items.length
      ? html`<ul class="lists-cards" aria-label="Schedules">
          ${items.map((one) => html`<${Line} key=${one.name} of=${one} turn=${turns[one.name] ?? turns.all} again=${schedules.again} />`)}</ul>`
      : html`<${Empty} icon="clock" title="No schedules yet">
          Add a schedule, or ask for one in a chat: “remind me about tea every day at 4 pm”.<//>`)}<//>
    ${adding && html`<${Editor} onClose=${() => setAdding(false)} onDone=${added} />`}
  </div>`;
}

function Line({ of, turn, again }) {
  const may = isAdmin() || of.role !== 'admin';
  const words = inWords(of.when);
  const path = `/schedules/${part(of.name)}`;
  const [times, setTimes] = useState(false);
  const [editing, setEditing] = useState(false);
  const edited = () => {
    setEditing(false);
    toast(`${of.name} was changed`, 'good');
    again();
  };
  const run = async () => {
    await post(`${path}/run`);
    toast(`${of.name} was sent`, 'good');
    again();
  };
  const pause = async () => {
    await post(`${path}/${of.paused ? 'resume' : 'pause'}`);
    again();
  };
  const remove = async () => {
    const text = 'It stops running. Its past replies stay in the chat.';
    if (!await confirm({ title: `Delete the schedule ${of.name}?`, text, action: 'Delete' })) return;
    await del(path);
    toast(`${of.name} was deleted`, 'good');
    document.querySelector('#main h1').focus();
    again();
  };
  const items = [
    { label: 'Edit…', icon: 'edit', run: () => setEditing(true) },
    { label: 'Open chat', icon: 'chat', href: href('s', sessionOf(of.name)) },
    { label: 'Delete…', icon: 'trash', danger: true, run: remove },
  ];
  return html`<li class=${`card lists-card ${of.paused ? 'lists-paused' : ''}`}>
    <div class="lists-head"><h2><${Said}>${of.name}<//></h2>
      ${of.paused && html`<${Badge} kind="warn">paused<//>`}${of.role === 'admin' && html`<${Badge}>administrator’s<//>`}
      <div class="actions">${may ? html`<${Button} class="button small" icon="play" aria-label=${`Run now: ${of.name}`} onClick=${run}>Run now<//>
        <${Button} class="button small" icon=${of.paused ? 'play' : 'pause'} aria-label=${`${of.paused ? 'Resume' : 'Pause'} ${of.name}`}
          onClick=${pause}>${of.paused ? 'Resume' : 'Pause'}<//>
        <${Menu} label=${`Actions for ${of.name}`} items=${items} />`
      : html`<span class="muted"><${Icon} name="lock" size=${14} /> Only an administrator changes it.</span>`}</div></div>
    <p class="lists-message"><${Said}>${of.message}<//></p>
    <dl class="lists-facts">
      <div><dt>When</dt><dd>${words && html`<span>${words}</span> `}
        ${!words?.startsWith('once') && words !== of.when && html`<code><${Said}>${of.when}<//></code> `}<span class="muted"><${Said}>${of.zone}<//></span></dd></div>
      <div><dt>Next</dt><dd>${of.next_ms && !of.paused ? html`<${Next} ms=${of.next_ms} />`
        : html`<span class="muted">${of.paused ? 'paused' : 'not again'}</span>`}</dd></div>
      <div><dt>Last</dt><dd><${Last} name=${of.name} turn=${turn} onAll=${() => setTimes(true)} /></dd></div>
      ${of.session && html`<div><dt>Reports to</dt><dd><a href=${href('s', of.session)}><bdi>${titleOf(of.session)}</bdi></a></dd></div>`}
      ${of.model && html`<div><dt>Model</dt><dd><${Said}>${of.model}<//></dd></div>`}
    </dl>
    ${editing && html`<${Editor} of=${of} onClose=${() => setEditing(false)} onDone=${edited} />`}
    ${times && html`<${Times} name=${of.name} turn=${turn} onClose=${() => setTimes(false)} />`}</li>`;
}

/** The next time: how long until then, and the time itself. */
function Next({ ms }) {
  const [, draw] = useState(0);
  useEffect(() => {
    const timer = setInterval(draw, 10_000, (count) => count + 1);
    return () => clearInterval(timer);
  }, []);
  return html`<time dateTime=${new Date(ms).toISOString()}>${dateAndTime(ms)}</time> <span class="muted">${until(ms - now())}</span>`;
}

const THIS_YEAR = dates({ weekday: 'short', day: 'numeric', month: 'short', hour: 'numeric', minute: '2-digit' });
const OTHER_YEAR = dates({ day: 'numeric', month: 'short', year: 'numeric', hour: 'numeric', minute: '2-digit' });

const dateAndTime = (ms) => (new Date(ms).getFullYear() === new Date(now()).getFullYear() ? THIS_YEAR : OTHER_YEAR).format(ms);

function until(ms) {
  const minutes = Math.round(ms / 60_000);
  if (minutes < 1) return 'in a moment';
  if (minutes < 60) return `in ${plural(minutes, 'minute')}`;
  if (minutes < 48 * 60) return `in ${plural(Math.round(minutes / 60), 'hour')}`;
  return `in ${plural(Math.round(minutes / 1_440), 'day')}`;
}

const STATES = { queued: 'warn', running: 'busy', done: 'good', failed: 'bad' };

/** Seconds of delay from which a time is shown as late, because the daemon was not running. */
const LATE_S = 60;

const receipts = (name, asked, signal) => get(`/schedules/${part(name)}/receipts`, asked, signal);

/** The outcome of the last time. */
function Last({ name, turn, onAll }) {
  const last = useLoaded((signal) => receipts(name, { limit: 1 }, signal), [name, turn]);
  if (last.value === undefined) return html`<span class="muted">${last.error ? last.error.message : '…'}</span>`;
  const [receipt] = last.value.items;
  if (!receipt) return html`<span class="muted">not yet</span>`;
  return html`<${Receipt} of=${receipt} /> <${Button} class="link" aria-label=${`History of ${name}`} onClick=${onAll}>History<//>`;
}

/** The outcome of one time, with a link to it; `exact` is for lists, in which times are compared. */
function Receipt({ of, exact }) {
  const { state, run, due_ms, fired_ms, by_hand } = of;
  const late = Math.floor((fired_ms - due_ms) / 1_000);
  const about = state === 'skipped' ? 'the message before still waited' : state === 'gone' ? 'not kept any more' : '';
  const notes = [by_hand && 'by hand', late >= LATE_S && `${duration(late * 1_000)} late`, about].filter(Boolean).join(', ');
  const time = exact ? html`<time dateTime=${new Date(due_ms).toISOString()}>${dateAndTime(due_ms)}</time>` : html`<${Time} ms=${due_ms} />`;
  return html`<span class="lists-receipt"><${Badge} kind=${STATES[state] ?? ''}>${state}<//>${run ? html`<a href=${href('run', run)}>${time}</a>` : time}
    ${notes && html`<span class="muted">${notes}</span>`}</span>`;
}

/** All recorded times, loaded on demand. */
function Times({ name, turn, onClose }) {
  const times = usePages((before, signal) => receipts(name, { before, limit: TIMES }, signal), [name, turn]);
  return html`<${Dialog} title=${`History of ${name}`} onClose=${onClose}>
    <${Pages} of=${times} empty=${html`<p class="muted">It hasn’t run yet.</p>`}>
      ${(items) => html`<ol class="lists-times" aria-label="Times">${items.map((one) => html`<li key=${one.id}><${Receipt} of=${one} exact /></li>`)}</ol>`}<//>
    <footer><${Button} onClick=${onClose}>Close<//></footer><//>`;
}

/** Patterns of the daemon's errors, to show each at its field. */
const BLAMED = [
  ['name', /name of a schedule|a schedule named/], ['zone', /time zone/], ['model', /no model/],
  ['session', /name of a session|own session/], ['message', /message (is empty|has)/],
  ['when', /says no time|cron expression|no interval|not an interval|is not a time|would come|a timing has/],
];

const BLANK = { name: '', preset: 'daily', minute: '0', time: '08:00', weekday: 'MON', day: '1', every: '30', unit: 'm', at: '', words: '', cron: '', message: '', model: '' };

/** Maximum length in characters of a schedule's name. */
const MAX_NAME = 40;

/** The value for "new chat", which cannot be the name of a chat. */
const NEW = '+';

/** Returns the name of a new chat for a schedule's replies: the schedule's name, with a number if that chat exists. */
function freeName(name, taken) {
  for (let [free, number] = [name, 1]; ; free = `${name}-${number += 1}`) if (!taken.includes(free) && !knownChat(free)) return free;
}

/** Returns the initial form values for an existing schedule. */
const begun = ({ name, when, message, session, model, zone }) => ({
  ...BLANK, ...chosenBy(when), name, message, session: session ?? '', model: model ?? '', zone,
});

const fresh = () => ({
  ...BLANK, session: NEW, zone: Intl.DateTimeFormat().resolvedOptions().timeZone ?? '',
});

/** The form that adds a schedule, or changes `of`, whose name stays. */
function Editor({ of, onClose, onDone }) {
  const [value, set] = useState(() => (of ? begun(of) : fresh()));
  const [errors, setErrors] = useState({});
  const [under, setUnder] = useState(false);
  const form = useRef(null);
  const sessions = useLoaded((signal) => get('/sessions', { limit: 100 }, signal));
  const models = useLoaded((signal) => get('/models', null, signal));
  useStore(listed);
  // The selected chat may be new, or not among the recent ones.
  const names = [...new Set([value.session === NEW ? '' : value.session, ...(sessions.value?.items.map((one) => one.name) ?? [])])].filter(Boolean);
  const title = (name) => titleOf(sessions.value?.items.find((one) => one.name === name) ?? name);
  // Chats with the same title are distinguished by their names.
  const places = names.map((name) => [name, names.some((one) => one !== name && title(one) === title(name)) ? `${title(name)} (${name})` : title(name)]);
  const has = (field) => PRESETS.find(([preset]) => preset === value.preset)[2].includes(field);
  // There are hundreds of zones, so the list is created once, not with each letter.
  const zones = useMemo(() => html`<datalist id="schedule-zones">
    ${Intl.supportedValuesOf?.('timeZone').map((zone) => html`<option key=${zone} value=${zone} />`)}</datalist>`, []);
  const when = expression(value.preset, value);
  const named = slug(value.name, MAX_NAME);
  const refuse = (found) => {
    setErrors(found);
    setTimeout(() => form.current?.querySelector('[aria-invalid=true]')?.focus(), 0);
  };
  const send = async (event) => {
    event.preventDefault();
    const missing = {};
    const name = slug(value.name, MAX_NAME);
    if (!of && !name) missing.name = value.name.trim() ? 'Use letters from a to z, or digits.' : 'Give it a name.';
    if (!when) missing.when = 'Say when it comes.';
    if (!value.message.trim()) missing.message = 'Say what is sent.';
    if (Object.keys(missing).length) return refuse(missing);
    setErrors({});
    setUnder(true);
    try {
      const given = (key) => (key === 'session' && value.session === NEW ? freeName(of?.name ?? name, names) : value[key].trim() || undefined);
      const { message } = value;
      if (!of) return onDone(await post('/schedules', { name, when, message, session: given('session'), model: given('model'), zone: given('zone') }));
      // Unchanged values are not sent, because they may have been changed elsewhere in the meantime.
      const made = { when, message, session: given('session') ?? null, model: given('model') ?? null, zone: value.zone.trim() };
      const changed = Object.fromEntries(Object.entries(made).filter(([key, one]) => one !== of[key]));
      return onDone(Object.keys(changed).length ? await patch(`/schedules/${part(of.name)}`, changed) : of);
    } catch (error) {
      setUnder(false);
      const field = error instanceof ApiError && BLAMED.find(([, words]) => words.test(error.message))?.[0];
      return refuse(field ? { [field]: error.message } : { whole: error });
    }
  };
  // A control: its name in `value` is also the key of its error, unless the error concerns the whole time.
  const put = (key) => (event) => set({ ...value, [key]: event.target.value });
  const told = (key, ...also) => ({ id: `schedule-${key}`, value: value[key], onInput: put(key), 'aria-invalid': errors[key] ? 'true' : undefined,
    'aria-describedby': [...also, errors[key] && `schedule-${key}-wrong`].filter(Boolean).join(' ') || undefined });
  const timed = (key) => ({ ...told(key), 'aria-invalid': errors.when ? 'true' : undefined, 'aria-describedby': 'schedule-when' });
  const choices = (key, all) => all.map(([one, words]) => html`<option key=${one} value=${one} selected=${one === value[key]}>${words}</option>`);
  return html`<${Dialog} title=${of ? `Edit ${of.name}` : 'Add a schedule'} onClose=${onClose}><form ref=${form} class="lists-form" onSubmit=${send} novalidate>
    ${!of && html`<${Labelled} name="name" label="Name" wrong=${errors.name}>
      <input ...${told('name', 'schedule-name-help')} spellcheck=${false} autocapitalize="none" autocomplete="off" maxlength="60" autofocus />
      <p class="muted" id="schedule-name-help">${named && named !== value.name ? html`Its name will be <code>${named}</code>.` : 'Such as “Morning news”.'}</p><//>`}
    <${Labelled} name="message" label="Message" wrong=${errors.message}>
      <textarea ...${told('message')} rows="3" placeholder="What is sent, as you would write it" autofocus=${Boolean(of)}></textarea><//>
    <fieldset class="lists-when"><legend>When</legend>
      <${Labelled} name="preset" label="How often">
        <select id="schedule-preset" value=${value.preset} onChange=${put('preset')}>${choices('preset', PRESETS)}</select><//>
      ${has('weekday') && html`<${Labelled} name="weekday" label="Day"><select ...${timed('weekday')}>${choices('weekday', WEEKDAYS)}</select><//>`}
      ${has('day') && html`<${Labelled} name="day" label="Day of the month"><select ...${timed('day')}>${choices('day', MONTH_DAYS)}</select><//>`}
      ${has('time') && html`<${Labelled} name="time" label="Time"><input type="time" ...${timed('time')} /><//>`}
      ${has('minute') && html`<${Labelled} name="minute" label="Minute"><input type="number" min="0" max="59" ...${timed('minute')} /><//>`}
      ${has('every') && html`<${Labelled} name="every" label="Every"><input type="number" min="1" ...${timed('every')} /><//>
        <${Labelled} name="unit" label="Unit"><select ...${timed('unit')}>${choices('unit', UNITS)}</select><//>`}
      ${has('at') && html`<${Labelled} name="at" label="Date and time"><input type="datetime-local" ...${timed('at')} /><//>`}
      ${has('words') && html`<${Labelled} name="words" label="When, in words">
        <input placeholder="every weekday at 8" autocomplete="off" ...${timed('words')} /><//>`}
      ${has('cron') && html`<${Labelled} name="cron" label="Cron expression">
        <input class="mono" placeholder="30 8 * * MON-FRI" spellcheck=${false} autocomplete="off" ...${timed('cron')} /><//>`}
      <p class="lists-preview" id="schedule-when">
        ${when && value.preset !== 'words' && html`<code>${when}</code> <span class="muted">${inWords(when) ?? ''}</span>`}
        ${value.preset === 'cron' && html`<span class="muted">Minute, hour, day of month, month, day of week.</span>`}
        ${errors.when && html`<span class="wrong"><${Icon} name="alert" size=${16} />${errors.when}</span>`}</p></fieldset>
    <div class="lists-pair">
      <${Labelled} name="zone" label="Time zone" wrong=${errors.zone}>
        <input ...${told('zone')} list="schedule-zones" spellcheck=${false} autocomplete="off" />${zones}<//>
      <${Labelled} name="model" label="Model" wrong=${errors.model}>
        <select ...${told('model')}><option value="">the chat’s</option>
          ${choices('model', models.value?.items.map(({ model }) => [model, model]) ?? [])}</select><//></div>
    <${Labelled} name="session" label="Send replies to" wrong=${errors.session}>
      <select ...${told('session')}>${choices('session', [[NEW, 'A new chat'], ['', 'Only the chat of the schedule'], ...places])}</select><//>
    ${errors.whole && html`<${Trouble} error=${errors.whole} />`}
    <footer><${Button} onClick=${onClose}>Cancel<//>
      <button class="button primary" disabled=${under} aria-busy=${under ? 'true' : undefined}><span>${of ? 'Save' : 'Add schedule'}</span></button></footer>
  </form><//>`;
}

const Labelled = ({ name, label, wrong, children }) => html`<div class="field"><label for=${`schedule-${name}`}>${label}</label>${children}
  ${wrong && html`<p class="wrong" id=${`schedule-${name}-wrong`}><${Icon} name="alert" size=${16} />${wrong}</p>`}</div>`;
