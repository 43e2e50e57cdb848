// A step in the list of a trace: a line with a summary, and its details.

import { Component, html, useStore } from './preact.js';
import { cost, duration, short } from './format.js';
import { href } from './router.js';
import { CopyButton, Icon } from './ui.js';
import { LANES } from './trace.js';
import { headline, nodeWords, statusOf, why } from './trace-words.js';
import { Body } from './trace-body.js';
import { Prompt } from './trace-prompt.js';
import { Calls, Folded, Said, StatusBadge, Text, pretty } from './trace-parts.js';

/** Events that only announce an action. */
const QUIET = new Set(['started', 'calls_started']);

const LANE_NAME = Object.fromEntries(LANES);

/** Updated only when its step changes, because there may be thousands. */
export class Step extends Component {
  shouldComponentUpdate(next) {
    const [a, b] = [this.props, next];
    return a.marked !== b.marked || a.longest !== b.longest || ['event', 'ms', 'task'].some((name) => a.step[name] !== b.step[name]);
  }

  render({ step, run, session, started, longest, marked, opened }) {
    const [what, of] = headline(step);
    const status = statusOf(step);
    const { moves = [] } = step.body;
    const marks = { quiet: QUIET.has(step.kind), moves: moves.length, marked };
    const classes = ['trace-step', `lane-${step.lane}`, step.tone, ...Object.keys(marks).filter((name) => marks[name])];
    const tokens = step.input + step.output;
    return html`<li id=${`step-${step.seq}`}
      class=${classes.join(' ')}>
      <${Line} seq=${step.seq} opened=${opened}>
        <span class="trace-seq"><span class="unseen">Step </span>${step.seq}</span>
        <span class="trace-lane"><span class="trace-dot" aria-hidden="true"></span>${LANE_NAME[step.lane]}</span>
        <span class="trace-what"><span class="strong">${what}</span>${of && html` <span class="trace-of"><${Said}>${of}<//></span>`}</span>
        <span class="trace-badges">${status && html`<${StatusBadge} of=${status} />`}${step.body.limits?.map((one) => html`<span key=${one.limit}
          class="badge warn">limit reached</span>`)}</span>
        <span class="trace-at number">+${duration(step.end - started)}</span>
        <span class="trace-took number"><span>${duration(step.ms)}</span><span class="trace-share" aria-hidden="true">
          <span style=${{ width: `${Math.min(100, (step.ms / longest) * 100)}%` }}></span></span></span>
        <span class="trace-tokens number">${tokens > 0 && html`${short(tokens)}<span class="unseen"> tokens</span>`}</span>
        <span class="trace-cost number">${step.cost > 0 && cost(step.cost)}</span>
      <//>
      ${moves.length > 0 && html`<p class="trace-moves">Next: ${moves.map((move) => nodeWords(move.to)).join(', then ')}${' '}
        <span>because ${moves.map((move) => why(move.why)).join(', and ')}</span></p>`}
      <${Open} ...${{ step, run, session, opened }} />
    </li>`;
  }
}

/** Open steps are updated when they change; the list is not. */
function Line({ seq, opened, children }) {
  const open = useStore(opened, (all) => all.has(seq));
  return html`<button type="button" class="trace-line" aria-expanded=${String(open)} aria-controls=${open ? `step-${seq}-body` : undefined}
    onClick=${() => toggle(opened, seq, !open)}>
    <${Icon} name="chevron" size=${14} />${children}</button>`;
}

function Open({ step, run, session, opened }) {
  if (!useStore(opened, (all) => all.has(step.seq))) return null;
  const link = () => location.href.replace(/#.*$/, '') + href('run', run, 'step', step.seq);
  return html`<div id=${`step-${step.seq}-body`} class="trace-body">
    <${Calls} step=${step} />
    <${Body} step=${step} session=${session} />
    <div class="trace-foot">
      ${step.calls.length > 0 && html`<${Prompt} run=${run} step=${step} />`}
      <${Folded} kind="trace-raw" label="Raw JSON"><${Raw} of=${step.event} /><//>
      <${CopyButton} label=${`Copy link to step ${step.seq}`} text=${link} icon="link" />
    </div>
  </div>`;
}

const Raw = ({ of }) => html`<${Text} hidden label=${`event ${of.seq}`} text=${pretty(of)} kind="code" />`;

/** Opens or closes a step. */
export function toggle(opened, seq, open) {
  opened.set((all) => {
    const next = new Set(all);
    if (open) next.add(seq);
    else next.delete(seq);
    return next;
  });
}
