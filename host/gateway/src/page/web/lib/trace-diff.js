// Comparison of two runs: their outcomes, their costs, and the differences of their tasks and steps.

import { html, useEffect, useLoaded, useMemo, useState } from './preact.js';
import { cost, count, duration, plural, visible } from './format.js';
import { href } from './router.js';
import { Markdown } from './markdown.js';
import { titleOf } from './sessions.js';
import { Badge, Icon, Loaded, ScreenHead, Time } from './ui.js';
import { LANES, measure, taskLabel } from './trace.js';
import { align, lines } from './diff.js';
import { wholeTrace } from './trace-load.js';
import { headline, statusOf } from './trace-words.js';
import { Said, StatusBadge, grantWords, pretty } from './trace-parts.js';

/** Maximum number of events that are compared, and of lines of a difference that are drawn. */
const EVENTS = 2_000;
const DRAWN = 400;

const LANE_NAME = Object.fromEntries(LANES);
const SIDES = ['A', 'B'];

export function Difference({ runs: chosen }) {
  // Run ids begin with the time: the older run is A, so that later content is marked with "+".
  const runs = [...chosen].sort();
  const loaded = useLoaded((signal) => Promise.all(runs.map((run) => wholeTrace(run, EVENTS, signal))), runs);
  // The dialog returns the focus to a button that no longer exists.
  useEffect(() => {
    if (document.activeElement === document.body) document.querySelector('#main h1')?.focus();
  }, []);
  return html`<div class="screen trace">
    <${ScreenHead} title="Two runs compared" about="A is the older one. Identical parts are shown once; differences are shown side by side.">
      ${loaded.value && html`<a class="button" href=${href('s', loaded.value[1].board.run.session)}><${Icon} name="chat" /><span>Back to the chat</span></a>`}<//>
    <${Loaded} of=${loaded}>${(pair) => html`<${Both} pair=${pair} />`}<//>
  </div>`;
}

function Both({ pair }) {
  const sides = useMemo(() => pair.map(({ board, events, cut }) => {
    const steps = measure(events, board.run.started_ms);
    const plans = steps.filter((step) => step.kind === 'planned');
    const tasks = steps.filter((step) => step.kind === 'executed' && step.body.report);
    return { board, cut, steps, tasks, run: board.run, goals: plans.map((step) => step.body.plan?.goal).join('\n') };
  }), [pair]);
  const [a, b] = sides;
  const runs = sides.map((side) => side.run.id);
  const tasks = useMemo(() => align(a.tasks, b.tasks, (step) => `${step.task.type} ${taskLabel(step.task)}`), [a, b]);
  const steps = useMemo(() => align(a.steps, b.steps, (step) => `${step.kind} ${step.task ? taskLabel(step.task) : ''}`), [a, b]);
  return html`
    <div class="trace-sides">${sides.map((side, at) => html`<section key=${at} class="card" aria-label=${`Run ${SIDES[at]}`}>
      <p><span class=${`trace-side side-${at}`}>${SIDES[at]}</span> <a href=${href('run', side.run.id)} class="mono">${side.run.id}
        </a> <${StatusBadge} of=${side.run.status} /></p>
      <p class="trace-message">${side.run.message ? html`<${Said}>${side.run.message}<//>` : 'sealed'}</p>
      <p class="muted"><bdi>${titleOf(side.run.session)}</bdi>, <${Time} ms=${side.run.started_ms} />${side.cut && `, the first ${count(EVENTS)} steps`}</p>
        </section>`)}</div>
    ${a.run.message !== b.run.message && html`<p class="muted">These are runs of different messages.</p>`}
    ${sides.some(replyOf) && html`<section class="trace-part"><h2>Answers</h2>
      <div class="trace-sides trace-answers">${sides.map((side, at) => html`<section key=${at} class="card" aria-label=${`Answer ${SIDES[at]}`}>
        <p><span class=${`trace-side side-${at}`}>${SIDES[at]}</span></p>
        ${replyOf(side) ? html`<div class="chat-text"><${Markdown} text=${replyOf(side)} session=${side.run.session} /></div>`
          : html`<p class="muted">No answer.</p>`}</section>`)}</div></section>`}
    <${Figures} sides=${sides} />
    <${Part} title="Goal" same=${a.goals === b.goals} empty=${!a.goals && !b.goals && 'Neither run made a plan.'} text=${a.goals}>
      <${Lines} a=${a.goals} b=${b.goals} /><//>
    <${Part} title="Reply" same=${replyOf(a) === replyOf(b)} text=${replyOf(a)}><${Lines} a=${replyOf(a)} b=${replyOf(b)} /><//>
    <${Pairs} title="Tasks" pairs=${tasks} runs=${runs} name=${(step) => taskLabel(step.task)} texts=${taskTexts}
      empty="Neither run executed a task." />
    <${Pairs} title="Steps" pairs=${steps} runs=${runs} name=${(step) => headline(step)[0]} about=${(step) => LANE_NAME[step.lane]}
      texts=${stepTexts} />`;
}

const replyOf = ({ board }) => board.outcome?.reply ?? '';

/** The costs of both runs, and the difference. */
function Figures({ sides }) {
  const rows = [
    ['Duration', ({ run }) => (run.ended_ms ? run.ended_ms - run.started_ms : null), (ms) => (ms === null ? 'under way' : duration(ms))],
    ['Steps', ({ steps }) => steps.length, count], ['Model calls', ({ board }) => board.usage.calls, count],
    ['Tokens in', ({ board }) => board.usage.input_tokens, count], ['Tokens out', ({ board }) => board.usage.output_tokens, count],
    ['Cost', ({ board }) => board.usage.cost_micros, cost],
  ];
  return html`<div class="card scrolling"><table class="table trace-compare"><caption class="unseen">Figures of both runs</caption>
    <thead><tr><th scope="col">Figure</th><th scope="col" class="number">A</th><th scope="col" class="number">B</th>
      <th scope="col" class="number">Difference</th></tr></thead>
    <tbody><tr><th scope="row">Outcome</th>${sides.map(({ board }, at) => html`<td key=${at} class="number">${endingOf(board)}</td>`)}<td></td></tr>
      ${rows.map(([name, of, words]) => {
        const [a, b] = sides.map(of);
        // A cost may be unknown, and a run may not have ended.
        const known = a != null && b != null;
        return html`<tr key=${name}><th scope="row">${name}</th><td class="number">${words(a)}</td><td class="number">
          ${words(b)}</td>
          <td class="number muted">
            ${known && apart(a, b, words)}</td></tr>`;
      })}</tbody></table></div>`;
}

/** Formats the difference of the second value: "+1.2 s (+10 %)". */
function apart(a, b, words) {
  if (a === b) return '=';
  const [sign, by] = [b > a ? '+' : '−', Math.abs(b - a)];
  return `${sign}${words(by)}${a ? ` (${sign}${Math.round((by / a) * 100)}\u00a0%)` : ''}`;
}

const endingOf = ({ run, outcome }) => (outcome?.ending ?? run.status).replaceAll('_', ' ');

/** A text of both runs: shown once if it is the same. */
const Part = ({ title, same, empty, text, children }) => html`<section class="trace-part"><h2>
  ${title} ${!empty && html`<${Badge} kind=${same ? '' : 'warn'}>${same ? 'same' : 'differs'}<//>`}</h2>
  ${empty ? html`<p class="muted">${empty}</p>` : same ? html`<p class="trace-clamped"><${Said}>${text || 'nothing'}<//></p>` : children}</section>`;

/** Returns the parts of a task or step that can differ, with their names. */
function taskTexts({ body: { report } }) {
  return [
    ['Task', report.task.detail], ['Arguments', report.task.args ? pretty(report.task.args) : ''], ['Output', report.text],
    ['Standard error', report.stderr ?? ''], ['Error', report.error?.message ?? ''], ['Component', report.skill_digest ?? ''],
    ['Grant', report.grant ? grantWords(report.grant).join('\n') : ''],
  ];
}

/** Measurements always differ, and the totals are in the figures. */
const MEASURED = new Set(['millis', 'used', 'usage']);
const stepTexts = (step) => [['Body', JSON.stringify(step.event.body, (name, value) => (MEASURED.has(name) ? undefined : value), 2) ?? 'sealed']];

function Pairs({ title, pairs, runs, name, about, texts, empty }) {
  const rows = useMemo(() => pairs.map(([a, b]) => ({ a, b, parts: a && b ? differing(texts(a), texts(b)) : [] })), [pairs]);
  const differ = rows.filter(({ a, b, parts }) => !a || !b || parts.length).length;
  const [all, setAll] = useState(true);
  return html`<section class="trace-part"><h2>${title} <${Badge} kind=${differ ? 'warn' : ''}>
    ${differ ? `${count(differ)} of ${count(rows.length)} differ` : 'same'}<//></h2>
    ${rows.length === 0 && html`<p class="muted">${empty}</p>`}
    ${differ > 0 && differ < rows.length && html`<label class="checked"><input type="checkbox" checked=${!all} onChange=${() => setAll(!all)} />
      <span>Only what differs, of the ${title.toLowerCase()}</span></label>`}
    <ul class="trace-pairs" aria-label=${title}>${rows.length > 0 && html`<li class="trace-ab" aria-hidden="true"><span></span>
      <div class="trace-halves">${SIDES.map((side, at) => html`<span key=${side}><span class=${`trace-side side-${at}`}>${side}</span></span>`)}</div>
      </li>`}${rows.map((row, at) => (all || !row.a || !row.b || row.parts.length > 0) && html`<${Pair} key=${at} ...${row}
      ...${{ name, about, runs }} />`)}</ul></section>`;
}

const differing = (a, b) => a.map(([name, text], at) => [name, text, b[at][1]]).filter(([, left, right]) => left !== right);

function Pair({ a, b, parts, name, about, runs }) {
  const [open, setOpen] = useState(false);
  const only = !a ? 'B' : !b ? 'A' : null;
  const one = a ?? b;
  const line = html`<span class="trace-of">${about && html`<span class="muted">${about(one)}</span> `}<${Said}>${name(one)}<//></span>
    ${only ? html`<${Badge} kind="warn">only in ${only}<//>` : parts.length ? html`<${Badge} kind="warn">
      ${parts.map(([part]) => part.toLowerCase()).join(', ')}<//>` : html`<span class="muted">same</span>`}`;
  return html`<li class=${only ? `only side-${only === 'A' ? 0 : 1}` : ''}>
    ${parts.length ? html`<button type="button" class="trace-pair" aria-expanded=${String(open)} onClick=${() => setOpen(!open)}>
      <${Icon} name="chevron" size=${14} />${line}</button>`
      : html`<p class="trace-pair">${line}</p>`}
    <div class="trace-halves">${[a, b].map((step, side) => html`<span key=${side}>${step ? html`<span class="unseen">Run ${SIDES[side]}: </span>
      <${Half} step=${step} run=${runs[side]} />` : html`<span class="muted" aria-hidden="true">–</span>`}</span>`)}</div>
    ${open && parts.map(([part, left, right]) => html`<div key=${part} class="trace-text"><header><h3>${part}</h3></header>
      <${Lines} a=${left} b=${right} /></div>`)}</li>`;
}

function Half({ run, step }) {
  const status = statusOf(step);
  const tokens = step.input + step.output;
  return html`<a href=${href('run', run, 'step', String(step.seq))} aria-label=${`Step ${step.seq}`}>${step.seq}</a>
    ${status && html`<${StatusBadge} of=${status} />`}<span class="number">${duration(step.ms)}</span>${tokens > 0 && html`<span class="muted number">
    ${plural(tokens, 'token')}</span>`}`;
}

/** Two texts, compared line by line. */
function Lines({ a, b }) {
  const all = useMemo(() => lines(a, b), [a, b]);
  const [shown, show] = useState(DRAWN);
  if (!all.length) return html`<p class="muted">No difference.</p>`;
  return html`<div class="trace-lines" role="group" aria-label="Differences line by line" tabindex="0">
    ${all.slice(0, shown).map((line, at) => (line.skipped ? html`<p key=${at} class="skipped">${plural(line.skipped, 'equal line')}</p>`
      : html`<p key=${at} class=${{ '-': 'gone', '+': 'come' }[line.sign] ?? ''}><span aria-hidden="true">${line.sign}</span>
        ${line.sign !== ' ' && html`<span class="unseen">${line.sign === '-' ? 'Only in A: ' : 'Only in B: '}</span>`}<bdi>
        ${visible(line.text).slice(0, 4_000) || ' '}</bdi></p>`))}
    ${all.length > shown && html`<button type="button" class="button quiet small"
      onClick=${() => show(shown + DRAWN * 5)}>Show ${plural(all.length - shown, 'more line')}</button>`}
  </div>`;
}
