// The steps of a run for the trace: their node, duration and cost.

/** Nodes in the order of the graph, as the rows of the timeline. */
export const LANES = [
  ['input', 'Message'],
  ['retrieval', 'Context'],
  ['router', 'Router'],
  ['planner', 'Planner'],
  ['reasoner', 'Reasoner'],
  ['actor', 'Actor'],
  ['tools', 'Tools'],
  ['worker', 'Worker'],
  ['reviewer', 'Reviewer'],
  ['output', 'Reply'],
];

const LANE_OF = {
  admitted: 'input',
  retrieved: 'retrieval',
  routed: 'router',
  planned: 'planner',
  unplanned: 'planner',
  briefed: 'reasoner',
  unbriefed: 'reasoner',
  started: 'tools',
  executed: 'tools',
  acted: 'actor',
  compressed: 'actor',
  assessed: 'actor',
  calls_started: 'tools',
  called: 'tools',
  reviewed: 'reviewer',
  unreviewed: 'reviewer',
  conversed: 'worker',
  told: 'output',
  finished: 'output',
};

/** Nodes by position of the run, for a failed step, which contains only the position. */
const LANE_AT = {
  input: 'input', retrieval: 'router', planner: 'planner', reasoning: 'reasoner', action: 'actor', critic: 'reviewer', output: 'output',
};

/** Filters, with the condition for a step. */
export const FILTERS = [
  ['all', 'All', () => true],
  ['models', 'Models', (step) => step.calls.length > 0],
  ['tools', 'Tools', (step) => step.lane === 'tools'],
  ['verdicts', 'Verdicts', (step) => step.lane === 'reviewer'],
  ['trouble', 'Errors', (step) => step.tone === 'bad' || step.tone === 'warn'],
];

/** Returns a short label for a task, as lists show it. */
export function taskLabel(task) {
  if (task.type === 'skill' && task.skill) return `skill ${task.skill}`;
  if (task.type === 'exec') return `$ ${(task.detail ?? '').trim().split('\n')[0]}`;
  return task.type ?? 'task';
}

/**
 * Returns the steps of `events`, oldest first. A step begins where the previous one ended, unless its work reports its own
 * duration. `{seq, event, kind, body, sealed, lane, from, begin, end, ms, calls, input, output, cost, tone, task, wanted}`;
 * `from` is the end of the previous step, `wanted` the calls that an actor requested, by id, on the step where they have ended.
 */
export function measure(events, startedMs) {
  const tasks = new Map();
  for (const { body } of events) if (body?.kind === 'executed') tasks.set(body.task, body.report.task);
  let last = startedMs;
  let wanted = null;
  return events.map((event) => {
    const body = event.body ?? {};
    const end = Math.max(event.at_ms, last);
    const ran = body.report?.millis ?? (body.results?.length ? Math.max(...body.results.map((one) => one.millis ?? 0)) : null);
    const ms = ran ?? end - last;
    const from = last;
    const begin = Math.max(from, end - ms);
    last = end;
    if (event.kind === 'acted') wanted = new Map((body.calls ?? []).map((call) => [call.id, call]));
    const calls = callsOf(body);
    const task = body.report?.task ?? (body.kind === 'started' ? tasks.get(body.task) : undefined);
    return {
      seq: event.seq, event, kind: event.kind, body, sealed: event.body === null,
      lane: laneOf(event.kind, body, task), from, begin, end, ms, calls, ...spent(calls), tone: toneOf(event.kind, body), task,
      wanted: event.kind === 'called' ? wanted : null,
    };
  });
}

/** Returns all model calls of a step. */
function callsOf(body) {
  return [body.call, ...(body.kind === 'compressed' ? body.calls ?? [] : []), body.lost].filter(Boolean);
}

function spent(calls) {
  const sum = { input: 0, output: 0, cost: 0 };
  for (const { usage = {} } of calls) {
    sum.input += usage.input_tokens ?? 0;
    sum.output += usage.output_tokens ?? 0;
    sum.cost += usage.cost_micros ?? 0;
  }
  return sum;
}

function laneOf(kind, body, task) {
  // A message to the user is written by the worker, and runs nothing.
  if (task?.type === 'msg') return 'worker';
  return LANE_OF[kind] ?? LANE_AT[body.moves?.[0]?.from] ?? 'output';
}

function toneOf(kind, body) {
  if (['model_failed', 'stopped'].includes(kind)) return 'bad';
  if (kind === 'executed') return body.report && (body.report.status !== 'done' || body.report.exit_code) ? 'bad' : '';
  if (kind === 'called') {
    const all = (body.results ?? []).map((one) => one.status);
    return all.includes('error') || all.includes('blocked') ? 'bad' : all.includes('partial') ? 'warn' : '';
  }
  if (kind === 'reviewed') return { needs_fix: 'warn', replan: 'bad' }[body.verdict?.status] ?? '';
  if (['unplanned', 'unbriefed', 'unreviewed', 'cancelled'].includes(kind) || body.trouble || body.limits?.length) return 'warn';
  return '';
}

/** The searchable text of each event, computed once. */
const texts = new WeakMap();

export function matches(step, words) {
  if (!words.length) return true;
  let text = texts.get(step.event);
  if (text === undefined) {
    text = `${step.seq} ${step.kind} ${step.lane} ${JSON.stringify(step.event.body)}`.toLowerCase();
    texts.set(step.event, text);
  }
  return words.every((word) => text.includes(word));
}
