// What runs say while they work: thoughts, texts and the output of commands, piece by piece. Heard for all sessions from the beginning, so that
// who opens a conversation in the middle of a reply sees what was said of it before.

import { store } from './preact.js';
import { now } from './api.js';
import { connection, on } from './events.js';

/** Milliseconds for which the words of a run that ended are kept: until its reply stands in their place. */
const KEPT = 30_000;

/** Thoughts of which the beginning is forgotten. */
const MOST_THOUGHTS = 200;

/** Characters of a command's output that are shown while it runs: the end of them. */
const MOST_OUTPUT = 60_000;

/** Runs that are kept in mind; the end of one can be missed while kiso is offline. */
const MOST_RUNS = 50;

/** Run -> what it said: `thoughts`, and `parts`, texts of one role in one step each. */
const runs = new Map();

/**
 * A store of `{thoughts: [{kind, text, at_ms}], said, reply, outputs}`: `reply` is becoming the answer, `said` was on the way there, and
 * `outputs` is `{stdout, stderr, ended}` for each command line of the step, by its place among the calls that run at once.
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
  // Pieces may be missed: the texts stay in view until they are told whole, or the step that said them begins anew.
  for (const live of runs.values()) for (const part of live.parts) part.stale = part.open;
});

/** Describes the current step of a run. The categories that the router chose are left to the trace. */
export const busyWords = ({ kind, text }) => (kind === 'routing' ? 'finding out what it needs' : text);

/** A step begins with its thought, so the texts of the step before are complete. */
function think(live, kind, told, since_ms) {
  const last = live.thoughts.at(-1);
  if (kind === 'routing' && last?.kind === kind) return;
  const text = busyWords({ kind, text: told });
  if (since_ms !== undefined && last && Math.abs(last.at_ms - since_ms) < 1_000 && last.text === text) return;
  // This is told within a step.
  if (kind !== 'interrogating') live.outputs = [];
  live.thoughts = [...live.thoughts.slice(-MOST_THOUGHTS), { kind, text, at_ms: since_ms ?? now() }];
  for (const part of live.parts) {
    part.open = part.stale && part.open;
    // What the actor says before it calls tools, or within a task, is not the answer.
    if (kind === 'working' || kind === 'thinking') part.answer = part.answer && part.role !== 'actor';
  }
}

const SILENT = { stdout: '', stderr: '', ended: null };

/** Changes what is known of a call of this step. */
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

/** At most once per frame, however fast the pieces come. */
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
      // What did not change is not drawn again with each piece of the reply.
      said: said.length === old.said.length && said.every((text, index) => text === old.said[index]) ? old.said : said,
      reply: answer.length === 1 ? answer[0].text : answer.map((part) => part.text).join('\n\n'),
    }));
  });
}
