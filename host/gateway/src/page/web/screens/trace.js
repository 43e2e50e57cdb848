// A finished or active run: the duration and cost of its parts, and every step with its details.

import { html, useEffect, useMemo, useRef, useState, useStore, store } from '../lib/preact.js';
import { now } from '../lib/api.js';
import { cost, count, duration, elapsed, plural } from '../lib/format.js';
import { href, route } from '../lib/router.js';
import { Busy, Button, CopyButton, Empty, Icon, Time, Trouble, announce } from '../lib/ui.js';
import { FILTERS, matches, measure } from '../lib/trace.js';
import { openTrace } from '../lib/trace-load.js';
import { Timeline } from '../lib/timeline.js';
import { titleOf } from '../lib/sessions.js';
import { Step, toggle } from '../lib/trace-step.js';
import { Said, StatusBadge } from '../lib/trace-parts.js';
import { Compare, Runs } from '../lib/trace-runs.js';
import { Difference } from '../lib/trace-diff.js';

export default function Trace() {
  const [, run, what, other] = useStore(route);
  if (!run) return html`<${Runs} />`;
  if (what === 'diff' && other) return html`<${Difference} key=${`${run} ${other}`} runs=${[run, other]} />`;
  return html`<${Viewer} key=${run} run=${run} linked=${what === 'step' ? Number(other) || 0 : 0} />`;
}

function Viewer({ run, linked }) {
  const trace = useMemo(() => openTrace(run), [run]);
  const opened = useMemo(() => store(new Set()), [run]);
  const state = useStore(trace.state);
  const [filter, setFilter] = useState('all');
  const [search, setSearch] = useState('');
  const [current, setCurrent] = useState(0);
  const [comparing, compare] = useState(false);
  const { board, events, more, loading, error } = state;
  const started = board?.run.started_ms ?? 0;
  const steps = useMemo(() => (board ? measure(events, started) : []), [events, started]);
  useEffect(() => trace.begin(linked), [trace]);

  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const passes = FILTERS.find(([name]) => name === filter)[2];
  const shown = useMemo(() => steps.filter((step) => passes(step) && matches(step, words)), [steps, filter, search]);
  const inList = useMemo(() => new Set(shown), [shown]);

  /** Opens a step, in whichever part of the list, and scrolls to it. */
  const choose = (seq) => {
    if (!shown.some((step) => step.seq === seq)) {
      setFilter('all');
      setSearch('');
    }
    toggle(opened, seq, true);
    setCurrent(seq);
    history.replaceState(null, '', href('run', run, 'step', seq));
    requestAnimationFrame(() => {
      const step = document.getElementById(`step-${seq}`);
      step?.querySelector('button').focus({ preventScroll: true });
      settle(step, 10);
    });
  };
  // A link may lead to a step that is not loaded yet.
  const came = useRef(0);
  useEffect(() => {
    if (!linked || came.current === linked) return;
    if (steps.some((step) => step.seq === linked)) {
      came.current = linked;
      choose(linked);
    } else if (more && !loading) {
      trace.reach(linked);
    }
  }, [linked, steps, more, loading]);

  if (!board) return html`<div class="screen trace"><nav class="muted" aria-label="Breadcrumb"><a href=${href('run')}>Runs</a></nav>
    <h1 tabindex="-1" class="unseen">Trace</h1>
    ${error ? html`<${Trouble} error=${error} again=${trace.again} />` : html`<${Busy}>Loading trace…<//>`}</div>`;
  const running = board.run.status === 'running';
  const longest = Math.max(1, ...steps.map((step) => step.ms));
  return html`<div class="screen trace">
    <${Head} board=${board} steps=${steps} more=${more} onCompare=${() => compare(true)} />
    ${error && html`<${Trouble} error=${error} again=${trace.again} />`}
    ${linked > 0 && !more && !loading && !steps.some((step) => step.seq === linked) && html`<p class="muted"
      role="status">The run has no step ${linked}.</p>`}
    ${steps.length > 0 && html`<${Timeline} steps=${steps} shown=${(step) => inList.has(step)} current=${current} onChoose=${choose}
      running=${running} thought=${state.thought} />`}
    ${steps.length > 0 && html`<${Narrow} ...${{ filter, setFilter, search, setSearch, shown: shown.length, all: steps.length, more }} />`}
    ${steps.length === 0 && !loading && !running && html`<${Empty} icon="trace"
      title="No steps">They have expired. Set traces_days under [retention] in config.toml to keep traces longer.<//>`}
    ${shown.length > 0 && html`<div class="trace-list"><h2 class="unseen">Steps</h2>
      <p class="trace-columns" aria-hidden="true"><span>Step</span><span>Node</span><span>What happened</span><span></span><span>At</span>
        <span>Took</span><span>Tokens</span><span>Cost</span></p>
      <ol aria-label="Steps">
        ${shown.map((step) => html`<${Step} key=${step.seq} ...${{ step, run, session: board.run.session, started, longest, opened }}
          marked=${step.seq === current} />`)}
      </ol></div>`}
    ${steps.length > 0 && shown.length === 0 && html`<${Empty} icon="search" title="No matching steps">
      ${more ? 'Load more steps, or change the filter.' : 'Try other words or another filter.'}<//>`}
    ${running && !more && html`<${Going} thought=${state.thought} />`}
    ${more && steps.length > 0 && html`<${More} load=${trace.more} loading=${loading} failed=${Boolean(error)} />`}
    ${comparing && html`<${Compare} run=${board.run} onClose=${() => compare(false)} />`}
  </div>`;
}

/** Scrolls a step to the top, repeatedly, because the steps above may change their height when they are drawn. */
function settle(step, frames) {
  if (!step?.isConnected) return;
  step.scrollIntoView({ block: 'start' });
  if (frames) requestAnimationFrame(() => settle(step, frames - 1));
}

function Head({ board: { run, usage, goal, outcome }, steps, more, onCompare }) {
  const models = [...new Set(steps.flatMap((step) => step.calls.map((call) => call.model)))];
  const running = run.status === 'running';
  const link = () => location.href.replace(/#.*$/, '') + href('run', run.id);
  const reason = outcome?.ending === 'limit_hit' ? `stopped by the limit ${outcome.limit} of ${outcome.value}` : outcome?.reason;
  return html`<header class="trace-head">
    <nav class="muted" aria-label="Breadcrumb"><a href=${href('run')}>Runs</a> <span aria-hidden="true">›</span> <a
      href=${href('s', run.session)}>
      <bdi>${titleOf(run.session)}</bdi></a> <span aria-hidden="true">›</span> <span class="mono">${run.id}</span></nav>
    <div class="screen-head"><div>
      <h1 tabindex="-1" class="trace-message">${run.message ? html`<${Said}>
        ${run.message}<//>` : html`<span class="muted">Message hidden until it has been checked for secrets</span>`}</h1>
      ${goal && goal !== run.message && html`<p class="muted">Goal: <${Said}>${goal}<//></p>`}
      ${reason && html`<p class="wrong"><${Icon} name="alert" size=${15} /><${Said}>${reason}<//></p>`}
      <p class="trace-when"><${StatusBadge} of=${run.status} /><span class="muted">began <${Time} ms=${run.started_ms} /></span>
        ${models.length > 0 && html`<span class="muted mono"><${Said}>${models.join(', ')}<//></span>`}</p>
    </div><div class="actions">
      <${Button} icon="diff" onClick=${onCompare}>Compare with…<//><${CopyButton} label="Copy link to this trace" text=${link} kind="" />
      <a class="button" href=${href('s', run.session)}><${Icon} name="chat" /><span>Chat</span></a>
    </div></div>
    <dl class="trace-figures">
      <div><dt>Duration</dt><dd>${running ? html`<${Elapsed}
        since=${run.started_ms} />` : duration((run.ended_ms ?? run.started_ms) - run.started_ms)}</dd></div>
      <div><dt>Steps</dt><dd>${count(steps.length)}${more ? '+' : ''}</dd></div>
      <div><dt>Model calls</dt><dd>${count(usage?.calls ?? 0)}</dd></div>
      <div><dt>Tokens in</dt><dd>${count(usage?.input_tokens ?? 0)}${usage?.cached_tokens > 0 ? ` (${count(usage.cached_tokens)} cached)` : ''}</dd></div>
      <div><dt>Tokens out</dt><dd>${count(usage?.output_tokens ?? 0)}</dd></div>
      <div><dt>Cost</dt><dd>${cost(usage ? usage.cost_micros : 0)}</dd></div>
    </dl>
  </header>`;
}

/** The elapsed time, with tenths. */
function Elapsed({ since }) {
  const [at, set] = useState(now());
  useEffect(() => {
    const timer = setInterval(() => set(now()), 100);
    return () => clearInterval(timer);
  }, []);
  return elapsed(at - since);
}

/** Filters the list of steps. */
function Narrow({ filter, setFilter, search, setSearch, shown, all, more }) {
  const said = shown === all ? `${plural(all, 'step')}${more ? ' so far' : ''}` : `${count(shown)} of ${plural(all, 'step')}`;
  const choose = (event) => {
    setFilter(event.target.value);
    announce(`Showing: ${event.target.value}`);
  };
  return html`<div class="trace-narrow">
    <fieldset class="trace-filter"><legend class="unseen">Show</legend>
      ${FILTERS.map(([name, label]) => html`<label key=${name}><input type="radio" name="trace-filter" value=${name} checked=${filter === name}
        onChange=${choose} /><span>${label}</span></label>`)}</fieldset>
    <label class="trace-search"><span class="unseen">Search in the steps</span>
      <input type="search" value=${search} placeholder="Search in the steps" onInput=${(event) => setSearch(event.target.value)} /></label>
    <span class="muted" role="status">${said}</span>
  </div>`;
}

/** The current activity. */
const Going = ({ thought }) => html`<p class="trace-going"><span class="spinner" aria-hidden="true"></span><span>${thought?.text ? html`<${Said}>
  ${thought.text}<//>` : 'The run is still going'}</span>
  ${thought?.since_ms && html`<span class="number"><${Elapsed} since=${thought.since_ms} /></span>`}</p>`;

/** Loads the next page when it becomes visible, or on a click. */
function More({ load, loading, failed }) {
  const place = useRef(null);
  useEffect(() => {
    if (failed) return undefined;
    const watch = new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && !loading && load(), { rootMargin: '600px' });
    watch.observe(place.current);
    return () => watch.disconnect();
  }, [loading, failed]);
  return html`<div ref=${place} class="trace-more"><${Button} busy=${loading} onClick=${load}>Show more steps<//></div>`;
}
