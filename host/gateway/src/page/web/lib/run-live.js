// Live output of runs: thoughts, texts and the output of commands, piece by piece. Received for all sessions, so that a chat that
// is opened in the middle of a reply shows its beginning.

import { store } from './preact.js';
import { now } from './api.js';
import { connection, on } from './events.js';

/** Milliseconds for which the text of an ended run is kept, until its reply replaces it. */
const KEPT = 30_000;

/** Maximum number of thoughts; the oldest are dropped. */
const MOST_THOUGHTS = 200;

/** Maximum number of characters of a command's output that are shown while it runs; the end is kept. */
const MOST_OUTPUT = 60_000;

/** Maximum number of runs that are kept; the end of one can be missed while kiso is offline. */
const MOST_RUNS = 50;

/** Run -> its output: `thoughts`, and `parts`, each a text of one role in one step. */
const runs = new Map();

/**
 * Returns a store of `{thoughts: [{kind, text, at_ms}], said, reply, outputs}`: `reply` is the beginning of the answer, `said`
 * contains other texts, and `outputs` is `{stdout, stderr, ended}` for each command line of the step, by its index among the
 * concurrent calls.
 */
export const liveOf = (run) => of(run).shown;

function of(run) {
  let live = runs.get(run);
  if (!live) {
    live = { thoughts: [], parts: [], drawn: false, outputs: [], shown: store({ thoughts: [], said: [], reply: '', outputs: [] }) };
    runs.set(run, live);
    if (runs.size > MOST_RUNS) runs.delete(runs.keys().next().value);
  }
  return live;
}

on('live', ({ run, seq, type, role, kind, text, since_ms, stream, whole, call = 0, ...rest }) => {
  const live = of(run);
  // Thoughts of models are shown elsewhere (lib/reasoning.js).
  if (type === 'reasoning' || kind === 'reasoning') return;
  if (type === 'thought') think(live, kind, text, since_ms);
  else if (type === 'output') write(live, seq, call, stream, whole, text);
  else if (type === 'call_ended') change(live, seq, call, { ended: rest });
  else hear(live, seq, type, role, text);
  draw(live);
});

on('run', ({ id, status }) => {
  if (status !== 'running') setTimeout(() => runs.delete(id), KEPT);
});

connection.watch(({ state }) => {
  if (state !== 'lost') return;
  // Pieces may be missed: texts stay visible until they arrive as a whole, or their step restarts.
  for (const live of runs.values()) for (const part of live.parts) part.stale = part.open;
});

/** Describes the current step of a run. The categories that the router chose are shown only in the trace. */
export const busyWords = ({ kind, text }) => (kind === 'routing' ? 'finding out what it needs' : text);

/** A step begins with its thought, so the texts of the previous step are complete. */
function think(live, kind, told, since_ms) {
  const last = live.thoughts.at(-1);
  if (kind === 'routing' && last?.kind === kind) return;
  const text = busyWords({ kind, text: told });
  if (since_ms !== undefined && last && Math.abs(last.at_ms - since_ms) < 1_000 && last.text === text) return;
  // This thought occurs within a step.
  if (kind !== 'interrogating') live.outputs = [];
  live.thoughts = [...live.thoughts.slice(-MOST_THOUGHTS), { kind, text, at_ms: since_ms ?? now() }];
  for (const part of live.parts) {
    part.open = part.stale && part.open;
    // Text that the actor writes before it calls tools, or within a task, is not the answer.
    if (kind === 'working' || kind === 'thinking') part.answer = part.answer && part.role !== 'actor';
  }
}

const SILENT = { stdout: '', stderr: '', ended: null };

/** Updates a call of this step. */
function change(live, seq, call, to) {
  const outputs = live.seq === seq ? [...live.outputs] : [];
  live.seq = seq;
  outputs[call] = { ...(outputs[call] ?? SILENT), ...to };
  live.outputs = outputs;
}

/** Adds to the output of a command line of this step. */
function write(live, seq, call, stream, whole, text) {
  const before = live.seq === seq ? live.outputs[call]?.[stream] ?? '' : '';
  const all = whole ? text : before + text;
  change(live, seq, call, { [stream]: all.length > MOST_OUTPUT ? all.slice(-MOST_OUTPUT) : all });
}

function hear(live, seq, type, role, text) {
  let part = live.parts.findLast((one) => one.role === role && one.open && one.seq === seq);
  if (part?.stale) {
    if (type === 'token') part.text = '';
    part.stale = false;
  }
  if (type === 'restart') {
    if (part) part.text = '';
    return;
  }
  if (!part) {
    part = { role, seq, text: '', open: true, stale: false, answer: role !== 'planner' };
    live.parts.push(part);
  }
  part.text = type === 'text' ? text : part.text + text;
}

/** Draws at most once per frame. */
function draw(live) {
  if (live.drawn) return;
  live.drawn = true;
  requestAnimationFrame(() => {
    live.drawn = false;
    const answer = live.parts.filter((part) => part.answer && part.text);
    const said = live.parts.filter((part) => !part.answer && part.text.trim()).map((part) => part.text.trim())
      .filter((text, index, all) => text !== all[index - 1]);
    live.shown.set((old) => ({
      thoughts: live.thoughts,
      outputs: live.outputs,
      // Unchanged values stay the same object, so that they are not drawn again with each piece of the reply.
      said: said.length === old.said.length && said.every((text, index) => text === old.said[index]) ? old.said : said,
      reply: answer.length === 1 ? answer[0].text : answer.map((part) => part.text).join('\n\n'),
    }));
  });
}
