// What happened in a step, in a line.

import { plural } from './format.js';
import { taskLabel } from './trace.js';

/** Why a run went from one node to the next. */
const WHY = {
  admitted: 'taken in', low: 'conversation', medium: 'tools without a plan', high: 'it needs a plan', no_plan: 'no usable plan',
  planning_failed: 'planning failed', planned: 'planned', no_brief: 'no usable brief', ready: 'ready', rounds_left: 'rounds are left',
  rounds_spent: 'rounds are spent', task_ended: 'the task ended', no_verdict: 'no usable verdict', tasks_remain: 'tasks remain',
  needs_fix: 'needs a fix', replan: 'needs a new plan', plan_exhausted: 'the plan is done', replans_exhausted: 'no further plan is allowed',
  limit_reached: 'a limit is reached', cancelled: 'cancelled', cycle_incomplete: 'messages arrived', cycle_complete: 'the turn is complete',
};

export const why = (word) => WHY[word] ?? String(word).replaceAll('_', ' ');

/** How a verdict, a task or a tool ended, and the colour of its badge. */
const STATUS = {
  ok: ['ok', 'good'], needs_fix: ['needs a fix', 'warn'], replan: ['needs a new plan', 'bad'], done: ['done', 'good'], failed: ['failed', 'bad'],
  interrupted: ['interrupted', 'warn'], partial: ['partial', 'warn'], error: ['error', 'bad'], blocked: ['blocked', 'bad'],
  running: ['running', 'busy'], held: ['waits for you', 'warn'], cancelled: ['cancelled', 'warn'],
};

export const statusWords = (status) => STATUS[status] ?? [String(status).replaceAll('_', ' '), ''];

const BY = {
  fast_path: 'without a model: short and conceptual', pill: 'by the pill', default: 'by default: the router’s answer could not be used',
};

export const routedBy = (by) => BY[by] ?? '';

/** The status that stands as a badge beside a step, if it has one. */
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

/** `[what happened, of what]`; the second may come from models and tools. */
export function headline({ kind, body, task, sealed }) {
  if (sealed) return [kind.replaceAll('_', ' '), 'sealed'];
  return (HEADLINES[kind] ?? (() => [kind.replaceAll('_', ' '), '']))(body, task);
}
