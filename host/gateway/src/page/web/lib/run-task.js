// A task of a plan: its state and its result.

import { html, useStore } from './preact.js';
import { Gallery } from './gallery.js';
import { Calls, Changed, Outside, Reached } from './run-calls.js';
import { Long } from './run-output.js';
import { Elapsed, Mark } from './run-mark.js';
import { plain } from './run-text.js';
import { Running } from './terminal.js';
import { Badge, Icon } from './ui.js';

const STATES = ['waiting', 'running', 'done', 'failed', 'interrupted', 'dropped'];

const KINDS = { exec: 'command', skill: 'skill', msg: 'answer', act: 'step' };

const VERDICTS = { ok: 'accepted', needs_fix: 'asks for a fix', replan: 'asks for another plan' };

export function Task({ task, run, session, live }) {
  const status = STATES.includes(task.status) ? task.status : 'waiting';
  const head = html`<${Mark} status=${status} />
    <span class="run-kind">${KINDS[task.kind] ?? task.kind}</span>
    <span class=${`run-label ${task.kind === 'exec' ? 'mono' : ''}`}><bdi>${plain(titleOf(task))}</bdi>
      ${task.kind === 'skill' && html`<span class="run-args"><bdi>${plain(shortArgs(task))}</bdi></span>`}</span>
    ${task.attempt > 1 && html`<span class="muted">attempt ${task.attempt}</span>`}
    ${['failed', 'interrupted'].includes(status)
      ? html`<${Badge} kind="bad">${status}<//>`
      : html`<span class=${status === 'dropped' ? 'muted' : 'unseen'}>${status}</span>`}
    ${task.outside && html`<${Outside} />`}
    ${task.started_ms && html`<${Elapsed} since=${task.started_ms} until=${task.ended_ms} />`}`;
  const verdict = task.verdict && task.verdict.status !== 'ok' && html`<${Verdict} of=${task.verdict} />`;
  const body = hasBody(task);
  return html`<li class=${`run-task ${status}`}>
    ${body ? html`<details><summary>${head}</summary><${Body} task=${task} session=${session} /></details>` : html`<div class="run-row">${head}</div>`}
    ${status === 'running' && task.kind === 'exec' && live && html`<${Live} command=${titleOf(task)} live=${live} />`}
    <${Reached} of=${task} />
    ${task.calls?.length > 0 && html`<${Calls} run=${run} task=${task} session=${session} live=${live} />`}
    ${verdict}
  </li>`;
}

/** The output of a running command. */
export function Live({ command, live }) {
  const output = useStore(live, (heard) => heard.outputs[0]);
  return html`<${Running} command=${command} output=${output?.stdout ?? ''} stderr=${output?.stderr ?? ''} />`;
}

/** Returns the command of an `exec` task. */
export const commandOf = ({ label, detail }) => detail ?? label.replace(/^\$ /, '');

/** Returns the description of the work from the plan; the label is a shortened form of it. */
function titleOf({ kind, label, detail }) {
  if (kind === 'exec') return commandOf({ label, detail });
  if (kind === 'skill') return label.replace(/^skill /, '');
  // The instructions for the writer are internal.
  return kind === 'msg' ? 'Write the answer' : detail || label;
}

/** Returns the arguments of a skill from `detail`, which is JSON. */
function argsOf({ detail }) {
  try {
    return JSON.parse(detail);
  } catch {
    return null;
  }
}

const shortArgs = (task) => Object.entries(argsOf(task) ?? {})
  .map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`).join(', ');

const hasBody = (task) => Boolean((task.detail && (task.kind === 'skill' || (task.kind === 'exec' && isLong(task.detail))))
  || task.output || task.stderr || task.error || task.files?.length || task.changed?.length || task.verdict || task.exit_code);

/** Maximum length in characters of an expanded command in its line. */
const LINE = 200;

const isLong = (command) => command.length > LINE || command.includes('\n');

function Body({ task, session }) {
  const { output, stderr, error, files, verdict, exit_code, label } = task;
  const of = plain(label);
  return html`<div class="run-body">
    ${task.kind === 'exec' && isLong(commandOf(task)) && html`<pre class="run-output command" tabindex="0" role="group" aria-label=${`Command of ${of}`}>${plain(titleOf(task))}</pre>`}
    ${task.kind === 'skill' && argsOf(task) && html`
      <pre class="run-output args" tabindex="0" role="group" aria-label=${`Arguments of ${of}`}>${plain(JSON.stringify(argsOf(task), null, 2))}</pre>`}
    ${output && html`<${Long} text=${output} label=${`Output of ${of}`} />`}
    ${error && error !== verdict?.reason && html`<p class="wrong"><${Icon} name="alert" /><bdi>${plain(error)}</bdi></p>`}
    ${exit_code != null && exit_code !== 0 && html`<p class="wrong">Exit code ${exit_code}</p>`}
    ${stderr && html`<p class="muted">Error output</p><${Long} text=${stderr} label=${`Error output of ${of}`} />`}
    <${Changed} of=${task} />
    ${verdict?.status === 'ok' && html`<${Verdict} of=${verdict} />`}
    ${files?.length > 0 && html`<${Gallery} files=${files} session=${session} />`}
  </div>`;
}

const Verdict = ({ of }) => html`<p class=${`run-verdict ${of.status}`}><${Icon} name=${of.status === 'ok' ? 'check' : 'retry'} size=${15} />
  <span>The reviewer ${VERDICTS[of.status] ?? of.status}${of.reason ? ': ' : ''}<bdi>${plain(of.reason ?? '')}</bdi></span></p>`;

