// List of runs, for opening one or choosing one for a comparison.

import { html, useEffect, useState, useStore } from './preact.js';
import { get } from './api.js';
import { on, onOpen } from './events.js';
import { duration } from './format.js';
import { go, href } from './router.js';
import { sessions, titleOf } from './sessions.js';
import { Badge, Busy, Button, Dialog, Empty, Icon, ScreenHead, Time, Trouble } from './ui.js';
import { Said, StatusBadge } from './trace-parts.js';

const PAGE = 50;

/** Milliseconds within which events are processed together. */
const TOGETHER = 300;

/** Runs, latest first, page by page; updated by events. */
function useRuns(session, status) {
  const [state, set] = useState({ items: [], next: undefined, loading: true, error: null, of: status });
  const fetch = async (before, quiet) => {
    if (!quiet) set((old) => ({ ...old, loading: true, error: null }));
    try {
      const page = await get('/runs', { session, status, before, limit: PAGE });
      set((old) => {
        const fresh = new Map(page.items.map((run) => [run.id, run]));
        const known = old.of === status ? old.items : [];
        // With a filter, a run that now has another state is left out.
        const oldest = page.items.at(-1)?.id ?? '';
        const rest = known.filter((run) => !fresh.has(run.id) && (!status || before || run.id < oldest));
        const older = before || !known.length;
        const items = before ? [...rest, ...page.items] : [...page.items, ...rest];
        return { items, next: older ? page.next : old.next, loading: false, error: null, of: status };
      });
    } catch (error) {
      if (!quiet) set((old) => ({ ...old, loading: false, error }));
    }
  };
  useEffect(() => {
    let timer = 0;
    const soon = () => {
      timer ||= setTimeout(() => {
        timer = 0;
        fetch(undefined, true);
      }, TOGETHER);
    };
    fetch();
    const off = [on('run', soon), on('gap', soon), onOpen(soon)];
    return () => {
      off.forEach((stop) => stop());
      clearTimeout(timer);
    };
  }, [session, status]);
  return { ...state, items: state.of === status ? state.items : [], more: () => fetch(state.next), again: () => fetch() };
}

const Took = ({ run }) => (run.ended_ms ? duration(run.ended_ms - run.started_ms) : '');

const Message = ({ run }) => (run.message ? html`<${Said}>${run.message.split('\n')[0]}<//>` : html`<span class="muted">sealed message</span>`);

const Rest = ({ runs }) => html`${runs.error && html`<${Trouble} error=${runs.error} again=${runs.again} />`}
  ${runs.loading && html`<${Busy} />`}${runs.next && !runs.loading && html`<div class="trace-more"><${Button} onClick=${runs.more}>Show more runs<//>
    </div>`}`;

/** States for filtering the list. */
const STATES = [
  ['', 'All'], ['running', 'Running'], ['waiting', 'Needs you'], ['held', 'Paused'], ['done', 'Done'], ['failed', 'Failed'], ['cancelled', 'Cancelled'],
];

/** All runs of all sessions. */
export function Runs() {
  const [status, narrow] = useState('');
  const runs = useRuns(undefined, status || undefined);
  // Titles come with the listing of sessions.
  useStore(sessions);
  return html`<div class="screen trace">
    <${ScreenHead} title="Runs" about="One run for each message, newest first. Open one to see its trace." />
    <label class="field trace-state"><span>State</span><select value=${status} onChange=${(event) => narrow(event.target.value)}>
      ${STATES.map(([value, words]) => html`<option key=${value} value=${value}>${words}</option>`)}</select></label>
    ${runs.items.length > 0 && html`<ul class="card trace-runs" aria-label="Runs">${runs.items.map((run) => html`<li key=${run.id}>
      <a href=${href('run', run.id)}>
      <${StatusBadge} of=${run.status} /><span class="trace-of"><${Message} run=${run} /></span><span class="muted trace-session" title=${run.session}><bdi>${titleOf(run.session)}</bdi></span>
      <span class="muted number"><${Took} run=${run} /></span><span class="muted"><${Time} ms=${run.started_ms} /></span></a></li>`)}</ul>`}
    ${!runs.loading && !runs.error && runs.items.length === 0 && (status
      ? html`<${Empty} icon="trace" title="No such runs">No run is in this state.<//>`
      : html`<${Empty} icon="trace" title="No runs yet">Send a message to start one.<//>`)}
    <${Rest} runs=${runs} />
  </div>`;
}

/** Chooses the run for a comparison: runs of the same message first, any other by its id. */
export function Compare({ run, onClose }) {
  const runs = useRuns(run.session);
  const [id, setId] = useState('');
  const others = runs.items.filter((one) => one.id !== run.id);
  const same = (one) => Boolean(run.message) && one.message === run.message;
  const sorted = [...others.filter(same), ...others.filter((one) => !same(one))];
  const submit = (event) => {
    event.preventDefault();
    go('run', run.id, 'diff', id.trim());
  };
  return html`<${Dialog} title="Compare with another run" onClose=${onClose}>
    <p class="muted">Runs of the same message are listed first.</p>
    ${sorted.length > 0 && html`<ul class="trace-choice" aria-label="Runs of the chat">${sorted.map((one) => html`<li key=${one.id}>
      <a href=${href('run', run.id, 'diff', one.id)}>
      <span class="trace-of"><${Message} run=${one} /></span>${same(one) && html`<${Badge} kind="good">same message<//>`}
        <${StatusBadge} of=${one.status} />
      <span class="muted"><${Time} ms=${one.started_ms} />, <${Took} run=${one} /></span></a></li>`)}</ul>`}
    ${!runs.loading && !runs.error && sorted.length === 0 && html`<p class="muted">This chat has no other runs.</p>`}
    <${Rest} runs=${runs} />
    <form class="trace-by-id" onSubmit=${submit}><label class="field"><span>Or enter a run ID</span>
      <input value=${id} onInput=${(event) => setId(event.target.value)} placeholder="01m8…" spellcheck=${false} autocomplete="off" /></label>
      <button class="button" disabled=${!id.trim()}><${Icon} name="diff" /><span>Compare</span></button></form>
  <//>`;
}
