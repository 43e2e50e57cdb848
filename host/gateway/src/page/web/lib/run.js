// The card of a run: its current activity, its plan with tasks, and its usage.

import { html, useStore } from './preact.js';
import { post } from './api.js';
import { cost, duration, plural, short } from './format.js';
import { href } from './router.js';
import { useBoard } from './run-data.js';
import { plain } from './run-text.js';
import { Calls, Reached } from './run-calls.js';
import { Elapsed, Mark } from './run-mark.js';
import { busyWords } from './run-live.js';
import { Live, Task, commandOf } from './run-task.js';
import { Busy, Button, Icon, Trouble } from './ui.js';

const ENDINGS = { done: 'Done in', failed: 'Failed after', cancelled: 'Cancelled after' };

/**
 * `live` is the run's live output (lib/run-live.js), `known` its state from events, `stopping` whether it was asked to stop,
 * `typed` the command if the message was one, `replied` whether its reply has arrived.
 */
export function RunCard({ run, session, live, known, stopping, typed, replied }) {
  const { board, error, again } = useBoard(run, true);
  const thoughts = useStore(live, (heard) => heard.thoughts);
  const said = useStore(live, (heard) => heard.said);
  const line = known && known.status !== 'running' ? known : board?.run ?? known;
  const waiting = line?.status === 'waiting';
  const running = !line || line.status === 'running';
  if (!board && !running && !waiting) return error ? html`<${Trouble} error=${error} again=${again} />` : html`<div class="run"><${Busy} /></div>`;
  const thought = thoughts.at(-1) ?? (board?.thought && { ...board.thought, text: busyWords(board.thought) });
  const tasks = board?.tasks ?? [];
  const why = line?.status === 'failed' ? whyFailed(board) : null;
  // The tasks are listed below, so the command is not repeated here.
  const [, step, of] = (tasks.length && /^(\d+)\/(\d+) /.exec(thought?.text ?? '')) || [];
  const doing = stopping ? 'Stopping' : step ? `Step ${step} of ${of}` : thought?.text ?? 'Starting';
  return html`<section role="group" class=${`run ${tasks.length ? '' : 'slim'}`} aria-label="Steps">
    <div class="run-now">
      <${Mark} status=${running ? 'running' : line.status} />
      ${running
        ? html`<span class="run-thought" role="status"><bdi>${plain(doing)}</bdi></span>
          ${line?.started_ms && html`<${Elapsed} since=${line.started_ms} />`}`
        : waiting ? html`<span role="status">Waiting for you</span>`
        : line.status === 'held' ? html`<span>Paused: kiso was interrupted while working on this, and does not start it again by itself</span>
          <${Button} onClick=${() => post(`/runs/${run}/retry`)}>Try again<//>`
        : html`<span>${ENDINGS[line.status] ?? line.status} ${duration(line.ended_ms - line.started_ms)}${why && !replied && html`: <bdi>${plain(why)}</bdi>`}</span>`}
    </div>
    ${error && html`<${Trouble} error=${error} again=${again} />`}
    ${said.map((text, index) => html`<p key=${index} class="run-said"><bdi>${plain(text)}</bdi></p>`)}
    ${tasks.length > 0 && html`<${Plans} board=${board} run=${run} status=${line?.status} tasks=${tasks} session=${session} live=${live} typed=${typed} replied=${replied} />`}
    ${thoughts.length > 1 && (tasks.length > 0 || !running) && html`<${Thoughts} all=${thoughts} ended_ms=${running || waiting ? null : line.ended_ms} />`}
    ${board && (tasks.length > 0 || !running) && html`<${Used} run=${run} usage=${board.usage} running=${running || waiting} />`}
  </section>`;
}

/** Maximum length in characters of the reason for a failure. */
const REASON = 300;

/** Returns why a run failed, as a sentence; null if it is unknown. */
function whyFailed(board) {
  const reason = board?.outcome?.reason ?? (board?.outcome?.limit && `it reached the limit ${board.outcome.limit} of ${board.outcome.value}`);
  const first = reason?.split('\n')[0] ?? board?.tasks.findLast((task) => task.error)?.error;
  return first ? first.slice(0, REASON) : null;
}

/** The current plan is expanded; replaced plans are collapsed. */
function Plans({ board, run, status, tasks, session, live, typed, replied }) {
  const { goal } = board;
  const numbers = [...new Set(tasks.map((task) => task.plan ?? 1))].sort((a, b) => a - b);
  const last = numbers.at(-1);
  const of = (number) => tasks.filter((task) => (task.plan ?? 1) === number);
  const why = (number) => of(number).findLast((task) => task.verdict?.status === 'replan')?.verdict.reason;
  const counted = of(last).filter((task) => task.status !== 'dropped');
  const done = counted.filter((task) => task.status === 'done').length;
  // A typed command is its own plan: the message shows it, and the reply shows its output.
  const isOneLine = last === 1 && counted[0]?.kind === 'exec' && counted.filter((task) => task.kind !== 'msg').length === 1;
  if (isOneLine && typed && (replied || counted[0].status !== 'interrupted') && commandOf(counted[0]).trim() === typed) {
    return counted[0].status === 'running' ? html`<${Live} command=${typed} live=${live} />` : html`<${Reached} of=${counted[0]} />`;
  }
  // A run without a plan has one task, the message itself, so its calls are counted instead.
  if (last === 0) {
    const calls = tasks.reduce((sum, task) => sum + task.calls.length + task.earlier_calls, 0);
    return html`
      ${goal && html`<div class="run-goal"><p><bdi>${plain(goal)}</bdi></p>${calls > 0 && html`<span class="muted">${plural(calls, 'tool call')}</span>`}</div>`}
      ${tasks.filter((task) => task.calls.length).map((task) => html`<${Calls} key=${task.id} run=${run} task=${task} session=${session} live=${live} />`)}`;
  }
  const list = (number) => html`<ol class="run-tasks">${of(number).map((task) => html`<${Task} key=${task.id} task=${task} run=${run} session=${session} live=${live} />`)}</ol>`;
  return html`
    ${!isOneLine && html`<div class="run-goal">${goal && !(typed && goal.endsWith(typed)) ? html`<p><bdi>${plain(goal)}</bdi></p>` : html`<p>Plan</p>`}
      <span class="muted">${status === 'failed' ? failedWords(tasks) : `${done} of ${plural(counted.length, 'task')} done`}</span></div>`}
    ${numbers.slice(0, -1).map((number) => html`<details key=${number} class="run-earlier">
      <summary>Plan ${number}, replaced</summary>${list(number)}</details>`)}
    ${last > 1 && html`<p class="run-replan">Plan ${last}${why(numbers.at(-2)) && html`, because: <bdi>${plain(why(numbers.at(-2)))}</bdi>`}</p>`}
    ${list(last)}`;
}

/** Describes the unsuccessful tasks of a failed run, of all its plans. */
function failedWords(tasks) {
  const failed = tasks.filter((task) => ['failed', 'interrupted'].includes(task.status)).length;
  return failed ? `${plural(failed, 'task')} failed` : '';
}

/** The earlier activity, collapsed. */
const Thoughts = ({ all, ended_ms }) => html`<details class="run-thoughts"><summary>Activity</summary>
  <ol>${all.map((one, index) => {
    const until = all[index + 1]?.at_ms ?? ended_ms;
    return html`<li key=${index}><span><bdi>${plain(one.text)}</bdi></span>
      ${until && html`<span class="run-time">${duration(Math.max(0, until - one.at_ms))}</span>`}</li>`;
  })}</ol></details>`;

const usedWords = ({ calls, input_tokens, output_tokens, cost_micros }) => (calls === 0 ? 'No model was called' : [
  plural(calls, 'model call'), `${short(input_tokens)} tokens in, ${short(output_tokens)} out`, cost_micros > 0 && cost(cost_micros),
].filter(Boolean).join(' · '));

const Used = ({ run, usage, running }) => html`<footer class="run-used">
  <span class="muted">${usedWords(usage)}</span>
  ${!running && html`<a href=${href('run', run)}><${Icon} name="trace" size=${15} />Trace</a>`}
</footer>`;
