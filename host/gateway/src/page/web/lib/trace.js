// The steps of a run as the trace shows them: who took each, how long it took, what it cost.

/** Who takes steps, in the order of the graph, as the rows of the timeline. */
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

/** A step that failed says only where the run stood. */
const LANE_AT = {
  input: 'input', retrieval: 'router', planner: 'planner', reasoning: 'reasoner', action: 'actor', critic: 'reviewer', output: 'output',
};

/** What can be left in view, with the test that a step has to pass. */
export const FILTERS = [
  ['all', 'All', () => true],
  ['models', 'Models', (step) => step.calls.length > 0],
  ['tools', 'Tools', (step) => step.lane === 'tools'],
  ['verdicts', 'Verdicts', (step) => step.lane === 'reviewer'],
  ['trouble', 'Errors', (step) => step.tone === 'bad' || step.tone === 'warn'],
];

/** A task in a few words, as lists name it. */
export function taskLabel(task) {
  if (task.type === 'skill' && task.skill) return `skill ${task.skill}`;
  if (task.type === 'exec') return `$ ${(task.detail ?? '').trim().split('\n')[0]}`;
  return task.type ?? 'task';
}

/**
 * Steps of `events`, oldest first. A step begins where the one before it ended, unless what it ran says how long that took.
 * `{seq, event, kind, body, sealed, lane, from, begin, end, ms, calls, input, output, cost, tone, task, wanted}`; `from` is when
 * the step before ended, `wanted` the calls that an actor asked for, by id, where they have ended.
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

/** Every call of a model that a step paid for. */
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

/** What a search looks through, made once for each event. */
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
