// A command line and its output, in the style of a terminal.

import { html, useEffect, useLayoutEffect, useRef } from './preact.js';
import { Long } from './run-output.js';
import { plain } from './run-text.js';
import { Badge, CopyButton } from './ui.js';

/** Maximum length in characters of the command in the name of its block. */
const NAMED = 60;

/** Distance in pixels from the end within which new lines are followed. */
const NEAR = 24;

const nameOf = (command) => plain(command).replace(/\s+/g, ' ').slice(0, NAMED);

/**
 * A command that has ended, or was stopped. In a run that is `done`, a nonzero exit code is a result, such as grep's. If the
 * command is `said` in the message above, it is not repeated. `pending`: the output has not arrived yet.
 */
export function Terminal({ command, output, stderr, exit_code, error, done, said, pending }) {
  const [failed, name] = [(exit_code > 0 && !done) || error, nameOf(command)];
  return html`<figure class=${`terminal ${failed ? 'failed' : ''}`} aria-label=${`Command: ${name}`}>
    <figcaption>${said ? html`<span class="terminal-said">Output</span>` : html`<code class="terminal-command"><bdi>${plain(command)}</bdi></code>`}
      ${exit_code != null && html`<${Badge} kind=${failed ? 'bad' : exit_code ? '' : 'good'}>exit ${exit_code}<//>`}
      <${CopyButton} text=${[output, stderr].filter(Boolean).join('\n') || command} label="Copy output" /></figcaption>
    ${output && html`<${Long} text=${output} label=${`Output of ${name}`} />`}
    ${stderr && html`<div class="terminal-errors"><${Long} text=${stderr} label=${`Error output of ${name}`} /></div>`}
    ${!output && !stderr && !error && !pending && html`<p class="muted">No output</p>`}
    ${error && error !== 'stopped' && html`<p class="wrong">${plain(error)}</p>`}
  </figure>`;
}

/** The output of a running command; its end stays visible unless the user scrolls back. */
export function Running({ command, output, stderr }) {
  const box = useRef(null);
  const follows = useRef(true);
  useLayoutEffect(() => {
    if (follows.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [output, stderr]);
  const name = nameOf(command);
  useEffect(() => () => { follows.current = true; }, []);
  if (!output && !stderr) return null;
  return html`<pre class="run-output terminal-live" ref=${box} tabindex="0" role="group" aria-label=${`Output of ${name} so far`}
    onScroll=${({ target }) => { follows.current = target.scrollHeight - target.scrollTop - target.clientHeight < NEAR; }}>${plain(output)}${stderr && html`<span class="terminal-stderr">${plain(stderr)}</span>`}</pre>`;
}
