// Thoughts of a model before its answer, collapsed above the reply: streamed while they arrive, and read from the run later.

import { html, store, useRef, useState, useStore } from './preact.js';
import { get, me, now, part } from './api.js';
import { on } from './events.js';
import { duration } from './format.js';
import { plain } from './run-text.js';
import { Busy, Trouble } from './ui.js';

/** Maximum number of characters of a step's thoughts that are kept; the end is kept. */
const MOST = 200_000;

/** Number of characters that are drawn while more arrive. */
const DRAWN = 6_000;

/** Maximum number of runs whose thoughts are kept. */
const MOST_RUNS = 30;

const NOTHING = { parts: [], since: null, ms: 0 };

/**
 * Run -> a store of `{parts: [{seq, role, text}], since, ms}`: `since` is when the model began to think, null if it is not
 * thinking.
 */
const runs = new Map();

function thoughtsOf(run) {
  let known = runs.get(run);
  if (!known) {
    known = { now: NOTHING, drawn: false, shown: store(NOTHING) };
    runs.set(run, known);
    if (runs.size > MOST_RUNS) runs.delete(runs.keys().next().value);
  }
  return known;
}

// The next user must not see them.
me.watch((who) => who || runs.clear());

on('live', ({ run, seq, type, role, text, whole }) => {
  if (type !== 'reasoning' && !runs.has(run)) return;
  const known = thoughtsOf(run);
  const { parts, since, ms } = known.now;
  const last = parts.at(-1);
  const goesOn = last?.seq === seq && last.role === role;
  if (type === 'reasoning') {
    const all = (goesOn && !whole ? last.text + text : text).slice(-MOST);
    known.now = { parts: [...(goesOn ? parts.slice(0, -1) : parts), { seq, role, text: all }], since: since ?? now(), ms };
  } else if (type === 'restart' && goesOn) {
    known.now = { parts: parts.slice(0, -1), since: null, ms };
  } else if (since !== null && type !== 'thought') {
    known.now = { parts, since: null, ms: ms + now() - since };
  } else {
    return;
  }
  draw(known);
});

on('run', ({ id, status }) => {
  const known = runs.get(id);
  if (!known || status === 'running' || known.now.since === null) return;
  known.now = { ...known.now, since: null, ms: known.now.ms + now() - known.now.since };
  draw(known);
});

/** Draws at most once per frame. */
function draw(known) {
  if (known.drawn) return;
  known.drawn = true;
  requestAnimationFrame(() => {
    known.drawn = false;
    known.shown.set(known.now);
  });
}

const ROLES = { router: 'Finding out what is needed', planner: 'Planning', reasoner: 'Preparing a task', actor: 'Deciding what to do', reviewer: 'Reviewing', worker: 'Writing the answer' };

const QUIET = store(NOTHING);

/**
 * The collapsed thoughts above a reply. `ms` is how long the models of an ended run thought; `under` tells whether the run is
 * active.
 */
export function Reasoning({ run, ms, under }) {
  const source = useRef(null);
  source.current ??= under ? thoughtsOf(run).shown : runs.get(run)?.shown ?? QUIET;
  const live = useStore(source.current);
  const [open, set] = useState(false);
  const [told, tell] = useState(null);
  const [error, fail] = useState(null);
  if (!ms && !live.parts.length) return null;
  const load = () => {
    fail(null);
    get(`/runs/${part(run)}`).then(({ reasoning }) => tell(reasoning), fail);
  };
  const toggle = (event) => {
    set(event.target.open);
    if (event.target.open && ms && !told) load();
  };
  const thinking = !ms && live.since !== null;
  const parts = told ?? live.parts;
  return html`<details class="chat-thought" onToggle=${toggle}>
    <summary>${thinking ? html`<span class="spinner" aria-hidden="true"></span>Thinking…` : `Thought for ${duration(ms || live.ms)}`}</summary>
    ${open && html`<div class="chat-thought-text" tabindex="0" role="group" aria-label="Thoughts of the model">
      ${error && html`<${Trouble} error=${error} again=${load} />`}
      ${!parts.length && !error && html`<${Busy} />`}
      ${parts.map((one, at) => html`<div key=${at}>${parts.length > 1 && html`<h4>${ROLES[one.role] ?? one.role}</h4>`}
        <p dir="auto">${plain(thinking && at === parts.length - 1 ? one.text.slice(-DRAWN) : one.text)}${one.cut && '…'}</p></div>`)}</div>`}
  </details>`;
}
