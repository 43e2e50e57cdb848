// Summarizes a step in one line.

import { plural } from './format.js';
import { taskLabel } from './trace.js';

/** Why a run moved from one node to the next: "because …". */
const WHY = {
  admitted: 'the message was accepted', low: 'the message can be answered without tools', medium: 'the message needs tools, but no plan',
  high: 'the message needs a plan', no_plan: 'the plan could not be used', planning_failed: 'no plan could be made', planned: 'the plan is ready',
  no_brief: 'the preparation could not be used', ready: 'the task is prepared', rounds_left: 'the model may go on',
  rounds_spent: 'the model has used all its rounds', task_ended: 'the task has ended', no_verdict: 'the review could not be used',
  tasks_remain: 'more tasks are left', needs_fix: 'the result needs a fix', replan: 'another plan is needed', plan_exhausted: 'all tasks are done',
  replans_exhausted: 'no further plan is allowed', limit_reached: 'a limit was reached', cancelled: 'the run was cancelled',
  cycle_incomplete: 'more messages arrived', cycle_complete: 'everything is answered',
};

/** Names of nodes for people. */
const NODES = {
  input: 'the message', retrieval: 'the context', planner: 'the plan', approval: 'your approval', reasoning: 'the preparation of a task', action: 'the work',
  critic: 'the review', output: 'the reply', end: 'the end',
};

export const nodeWords = (node) => NODES[node] ?? node;

export const why = (word) => WHY[word] ?? String(word).replaceAll('_', ' ');

/** The outcome of a verdict, a task or a tool, and the colour of its badge. */
const STATUS = {
  ok: ['ok', 'good'], needs_fix: ['needs a fix', 'warn'], replan: ['needs a new plan', 'bad'], done: ['done', 'good'], failed: ['failed', 'bad'],
  interrupted: ['interrupted', 'warn'], partial: ['partial', 'warn'], error: ['error', 'bad'], blocked: ['blocked', 'bad'],
  running: ['running', 'busy'], waiting: ['needs you', 'warn'], held: ['paused', 'warn'], cancelled: ['cancelled', 'warn'],
};

export const statusWords = (status) => STATUS[status] ?? [String(status).replaceAll('_', ' '), ''];

const BY = {
  fast_path: 'without a model: short and conceptual', pill: 'by the pill', default: 'by default: the router’s answer could not be used',
};

export const routedBy = (by) => BY[by] ?? '';

/** Returns the status for the badge of a step, if it has one. */
export function statusOf({ kind, body }) {
  if (kind === 'executed') return body.report?.status === 'done' && body.report.exit_code ? 'failed' : body.report?.status;
  if (kind === 'reviewed') return body.verdict?.status;
  if (kind === 'called' && body.results?.length) {
    const all = body.results.map((one) => one.status);
    return ['blocked', 'error', 'partial'].find((status) => all.includes(status)) ?? 'ok';
  }
  return null;
}

const first = (text) => (text ?? '').trim().split('\n')[0];
const names = (list) => list.map((one) => one.name).join(', ');
const unusable = (what, body) => [`No usable ${what}`, first(body.correction?.violations?.[0])];

const HEADLINES = {
  admitted: (body) => ['Message received', [
    body.pill && `pill ${body.pill.name}`, ...(body.tags ?? []).map((tag) => `#${tag}`), body.archived && `too long, stands in ref:${body.archived}`,
  ].filter(Boolean).join(', ') || first(body.message)],
  retrieved: (body) => ['Gathered context', [
    `${plural(body.files?.length ?? 0, 'file')} in /work`, body.memory?.length && `${plural(body.memory.length, 'passage')} of memory`,
    body.credentials?.length && plural(body.credentials.length, 'secret'),
  ].filter(Boolean).join(', ')],
  routed: (body) => [`Routed: ${body.routing?.effort} effort`, first(body.routing?.goal)],
  planned: (body) => [`Planned ${plural(body.plan?.tasks?.length ?? 0, 'task')}`, first(body.plan?.goal)],
  unplanned: (body) => unusable('plan', body),
  briefed: (body) => ['Brief written', first(body.brief?.action)],
  unbriefed: (body) => unusable('brief', body),
  started: (body, task) => [`Task ${body.task + 1} started`, task ? taskLabel(task) : ''],
  executed: (body) => [`Task ${body.task + 1}`, body.report ? taskLabel(body.report.task) : ''],
  acted: (body) => body.calls?.length ? [`Asked for ${plural(body.calls.length, 'call')}`, names(body.calls)] : ['Answered', first(body.text)],
  compressed: (body) => ['Summarized findings', `the whole stands in ref:${body.reference}`],
  calls_started: () => ['Calls started', ''],
  called: (body) => [plural(body.results?.length ?? 0, 'tool ended', 'tools ended'), names(body.results ?? [])],
  assessed: (body) => ['Self-assessment at the round limit', first(body.text)],
  reviewed: (body) => ['Verdict', first(body.verdict?.reason)],
  unreviewed: (body) => unusable('verdict', body),
  conversed: (body) => ['Answered without tools', first(body.text)],
  model_failed: (body) => ['The model gave no answer', first(body.message)],
  stopped: (body) => ['Stopped by a limit', body.limit ? `${body.limit.limit} = ${body.limit.value}` : ''],
  cancelled: () => ['Cancelled', ''],
  told: (body) => ['Notified the user', first(body.text)],
  finished: (body) => [body.continues ? 'Reply delivered; more messages arrived' : 'Reply delivered', first(body.reply)],
};

/** Returns `[event, object]`; the second may come from models and tools. */
export function headline({ kind, body, task, sealed }) {
  if (sealed) return [kind.replaceAll('_', ' '), 'sealed'];
  return (HEADLINES[kind] ?? (() => [kind.replaceAll('_', ' '), '']))(body, task);
}
