// The details of a tool call: its arguments, its result, and the files that it changed.

import { html, useEffect, useState } from './preact.js';
import { get, part } from './api.js';
import { Gallery } from './gallery.js';
import { href } from './router.js';
import { Changed } from './run-calls.js';
import { Long } from './run-output.js';
import { plain } from './run-text.js';
import { Terminal } from './terminal.js';
import { Busy, Trouble } from './ui.js';

/** The details are loaded again when the call has `ended`. */
export function CallBody({ call, run, session, ended }) {
  const [{ body, error }, set] = useState({});
  const ask = () => get(`/runs/${part(run)}/calls/${call.seq}/${call.place}`).then((found) => set({ body: found }), (trouble) => set({ error: trouble }));
  useEffect(() => {
    ask();
  }, [run, call.seq, call.place, ended]);
  if (error) return html`<${Trouble} error=${error} again=${ask} />`;
  if (!body) return html`<${Busy} />`;
  const { command, args, output, stderr, hint, cut, result_seq: seq } = body;
  return html`<div class="run-body">
    ${command != null ? html`<${Terminal} command=${command} output=${output ?? ''} stderr=${stderr} exit_code=${call.exit_code} done
        pending=${output === null} />`
      : html`<${Args} of=${args} /> ${output ? html`<${Long} text=${output} label=${`Result of ${plain(body.tool)}`} />` : output === '' && html`<p class="muted">No output</p>`}`}
    ${hint && html`<p class="muted">Hint to the model: <bdi>${plain(hint)}</bdi></p>`}
    <${Changed} of=${call} />
    ${call.files.length > 0 && html`<${Gallery} files=${call.files} session=${session} />`}
    ${seq && html`<p class="muted">${cut && 'The text is shortened. '}<a href=${href('run', run, 'step', String(seq))}>Open this step in the trace</a></p>`}
  </div>`;
}

/** Shows arguments by name, or as text if they are not an object. */
function Args({ of }) {
  if (of === null || typeof of !== 'object') return html`<${Long} text=${String(of)} label="Arguments" />`;
  return html`<dl class="run-arguments">${Object.entries(of).map(([name, value]) => html`<div key=${name}><dt>${plain(name)}</dt>
    <dd><${Long} text=${typeof value === 'string' ? value : JSON.stringify(value, null, 1)} /></dd></div>`)}</dl>`;
}
