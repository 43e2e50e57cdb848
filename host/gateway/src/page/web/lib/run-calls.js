// Tool calls of the action loop for a task: one line each, which can be opened.

import { html, useLoaded, useState, useStore } from './preact.js';
import { duration, plural } from './format.js';
import { Elapsed, Mark } from './run-mark.js';
import { plain } from './run-text.js';
import { Running } from './terminal.js';
import { Badge, Icon, Loaded } from './ui.js';

/** Number of calls that are shown at first: the last ones. */
const SHOWN = 30;

const NONE = { stdout: '', stderr: '', ended: null };

/** Final states of a call that ends before others of the same step: the stream's names, and those of the listing. */
const ENDED = { ok: 'done', partial: 'partial', error: 'failed', blocked: 'blocked' };

/** A mark for a call that read text from outside. */
export const Outside = () => html`<span class="badge outside" title="It read text from outside, such as a web page or another person’s message. kiso does not follow instructions in it.">from outside</span>`;

const CHANGES = { created: 'plus', changed: 'edit', deleted: 'trash' };

/** The changed files. */
export function Changed({ of: { changed, more_changed: more } }) {
  if (!changed?.length) return null;
  return html`<ul class="run-changed" aria-label="Changed files">${changed.map(({ path, change }) => html`<li key=${path}>
      <${Icon} name=${CHANGES[change] ?? 'file'} size=${14} /><bdi class="mono">${plain(path)}</bdi> <span class="muted">${change}</span></li>`)}
    ${more > 0 && html`<li class="muted">and ${plural(more, 'more file')}</li>`}</ul>`;
}

/** The reached sites, and why they were allowed. */
export const Reached = ({ of: { reached } }) => (reached?.length > 0 ? html`<ul class="run-changed" aria-label="Sites that were opened">${reached.map(({ host, because }) => html`<li key=${`${host} ${because}`}>
  <${Icon} name="link" size=${14} /><span><bdi>${plain(host)}</bdi><span class="muted">: ${plain(because)}</span></span></li>`)}</ul>` : null);

export function Calls({ run, task, session, live }) {
  const { calls, earlier_calls: before } = task;
  const [all, show] = useState(false);
  const shown = all ? calls : calls.slice(-SHOWN);
  const left = calls.length - shown.length;
  return html`<ol class="run-calls" aria-label="Tool calls">
    ${(left > 0 || before > 0) && html`<li class="muted">${left > 0
      ? html`<button type="button" class="link" onClick=${() => show(true)}>Show ${plural(left, 'earlier call')}</button>`
      : `${plural(before, 'earlier call')}: see the trace`}</li>`}
    ${shown.map((call) => html`<${Call} key=${`${call.seq}/${call.place}`} call=${call} run=${run} session=${session} live=${live} />`)}</ol>`;
}

function Call({ call, run, session, live }) {
  const heard = useStore(live, ({ outputs }) => (call.status === 'running' ? outputs[call.place] : undefined)) ?? NONE;
  const [open, set] = useState(false);
  const { ended } = heard;
  const status = ended ? ENDED[ended.status] ?? 'done' : call.status;
  const exit = call.exit_code ?? ended?.exit_code;
  const isCommand = call.tool === 'exec';
  const took = call.millis ?? ended?.millis;
  const bad = ['failed', 'blocked'].includes(status);
  return html`<li class=${`run-call ${status}`}>
    <details open=${open} onToggle=${(event) => set(event.currentTarget.open)}>
      <summary><${Mark} status=${status} />
        ${isCommand ? html`<span class="run-prompt mono" aria-hidden="true">$</span>` : html`<span class="run-kind">${plain(call.tool)}</span>`}
        <span class=${`run-label ${isCommand ? 'mono' : 'run-args'}`}><bdi>${plain(call.label)}</bdi></span>
        ${exit > 0 && html`<${Badge}>exit ${exit}<//>`}
        ${bad || status === 'interrupted' ? html`<${Badge} kind=${bad ? 'bad' : 'warn'}>${status}<//>` : html`<span class="unseen">${status}</span>`}
        ${call.outside && html`<${Outside} />`}
        ${call.changed.length > 0 && html`<span class="muted run-count">${plural(call.changed.length + call.more_changed, 'file')} changed</span>`}
        ${took != null ? html`<span class="run-time">${duration(took)}</span>` : call.started_ms && status === 'running' && html`<${Elapsed} since=${call.started_ms} />`}
      </summary>
      ${open && html`<${Body} call=${call} run=${run} session=${session} ended=${call.millis != null} />`}
    </details>
    <${Reached} of=${call} />
    ${bad && call.error && !open && html`<p class="wrong run-why"><bdi>${plain(call.error)}</bdi></p>`}
    ${call.status === 'running' && !ended && (heard.stdout || heard.stderr) && html`<${Running} command=${call.label} output=${heard.stdout} stderr=${heard.stderr} />`}
  </li>`;
}

/** The code for an open call is loaded with the first one. */
function Body(props) {
  const module = useLoaded(() => import('./call-body.js'));
  return html`<${Loaded} of=${module}>${({ CallBody }) => html`<${CallBody} ...${props} />`}<//>`;
}
