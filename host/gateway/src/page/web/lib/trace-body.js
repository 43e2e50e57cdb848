// The content of an open step, by its kind.

import { html } from './preact.js';
import { duration, plural } from './format.js';
import { routedBy } from './trace-words.js';
import { taskLabel } from './trace.js';
import { Component, Facts, Files, Limits, Said, Sentences, StatusBadge, Text, pretty } from './trace-parts.js';

/** Joins a list of words; null if it is empty. */
const listed = (list) => (list?.length ? list.join(', ') : null);

const Correction = ({ of, what }) => html`
  <${Sentences} label="Problems" of=${of?.violations} />
  ${of?.broken && html`<${Text} label=${what} text=${of.broken} />`}`;

/** A task of a plan, or a task that a reviewer added. */
const Task = ({ of }) => html`<li class="trace-task">
  <p><span class="mono strong"><${Said}>${taskLabel(of)}<//></span>
    ${of.review && html` <span class="badge">reviewed</span>`}${of.notify && html` <span class="badge">for the user</span>`}</p>
  <${Facts} of=${[
    ['Detail', of.detail !== taskLabel(of) && `$ ${of.detail}` !== taskLabel(of) && of.detail], ['Expects', of.expect], ['Model', of.model],
    ['Arguments', of.args && html`<code><${Said}>${JSON.stringify(of.args)}<//></code>`],
  ]} /></li>`;

const Tasks = ({ label, of }) => of?.length > 0 && html`<section class="trace-text"><header><h3>${label}</h3></header>
  <ol class="trace-tasks">${of.map((task, at) => html`<${Task} key=${at} of=${task} />`)}</ol></section>`;

function Report({ of, session }) {
  const { task, error, failed_command: failed } = of;
  return html`
    <${Facts} of=${[
      ['Expects', task.expect], ['Exit code', of.exit_code !== undefined && String(of.exit_code)],
      ['Failed in', failed && `line ${failed.line}: ${failed.command} (${failed.code})`],
      ['Error', error && html`<code>${error.code}</code> <${Said}>${error.message}<//>`],
      ['Limit', error?.limit], ['Refused by', error?.policy && 'what an administrator allowed'], ['May succeed later', error?.retryable && 'yes'],
    ]} />
    ${task.args ? html`<${Text} label="Arguments" text=${pretty(task.args)} kind="code" />`
      : html`<${Text} label=${task.type === 'exec' ? 'Command' : 'Task'} text=${task.detail} kind=${task.type === 'exec' ? 'code' : ''} />`}
    <${Text} label=${task.type === 'msg' ? 'Message' : 'Output'} text=${of.text} kind=${task.type === 'msg' ? '' : 'code'} />
    ${of.stderr && html`<${Text} label="Standard error" text=${of.stderr} kind="code" />`}
    ${of.data !== undefined && html`<${Text} label="Data" text=${pretty(of.data)} kind="code" />`}
    <${Files} of=${of.files} session=${session} />
    <${Sentences} label="Log" of=${of.log?.map((line) => `${line.level}: ${line.message}`)} />
    <${Limits} used=${of.used} limits=${of.limits} />
    <${Component} digest=${of.skill_digest} grant=${of.grant} />`;
}

/** The calls that an actor requests. */
const Wanted = ({ of }) => of?.length > 0 && html`<ol class="trace-wanted" aria-label="Calls">${of.map((call) => html`<li key=${call.id}>
  <p class="mono strong"><${Said}>${call.name}<//></p><${Text} label="Arguments" text=${pretty(call.args)} kind="code" /></li>`)}</ol>`;

/** The host's note about a call for the next step. */
const Reflection = ({ of }) => of && html`<section class="trace-text trace-reflection"><header><h3>Reflection</h3><${StatusBadge} of=${of.status} />
  </header>
  <${Facts} of=${[['Finding', of.finding], ['Next', of.next_action]]} /></section>`;

/** Results of a round; calls run concurrently, so their times share one scale. */
function Results({ of, wanted, reflections, session }) {
  const longest = Math.max(1, ...of.map((one) => one.millis ?? 0));
  return html`<ol class="trace-results" aria-label="Results">${of.map((one, at) => html`<li key=${one.id ?? at}>
    <header><span class="mono strong"><${Said}>${one.name}<//></span><${StatusBadge} of=${one.status} />
      <span class="trace-share" aria-hidden="true"><span style=${{ width: `${((one.millis ?? 0) / longest) * 100}%` }}></span></span>
      <span class="number">${duration(one.millis ?? 0)}</span></header>
    ${wanted?.get(one.id) && html`<${Text} label="Arguments" text=${pretty(wanted.get(one.id).args)} kind="code" />`}
    <${Text} label="Result" text=${one.text} kind="code" />
    <${Facts} of=${[['Error', one.code], ['Hint', one.hint], ['Whole result', one.archived && `ref:${one.archived}`]]} />
    <${Files} of=${one.files} session=${session} />
    <${Limits} used=${one.used} limits=${one.limits} />
    <${Component} digest=${one.skill_digest} grant=${one.grant} />
    <${Reflection} of=${reflections?.[at]} /></li>`)}</ol>`;
}

const BRIEF = [['discovery', 'Discovered'], ['credentials', 'Credentials'], ['artifacts', 'Files and refs'], ['blockers', 'Blockers']];

const Brief = ({ of }) => html`
  <${Facts} of=${[['Action', of.action], ['Goal', of.goal], ['Missing', of.delta],
    ['Check', of.context?.recheck !== 'none' && of.context?.recheck]]} />
  <${Sentences} label="Required" of=${of.required} /><${Sentences} label="Success criteria" of=${of.success} />
  ${BRIEF.map(([key, label]) => html`<${Sentences} key=${key} label=${label} of=${of.context?.[key]} />`)}`;

const BODIES = {
  admitted: ({ body }) => html`<${Facts} of=${[
    ['Pill', body.pill && `${body.pill.name}, ${body.pill.effort} effort`], ['Tags', listed(body.tags?.map((tag) => `#${tag}`))],
    ['Tools of', listed(body.categories)], ['Whole message', body.archived && `ref:${body.archived}`],
  ]} /><${Text} label="Message" text=${body.message} />`,
  retrieved: ({ body }) => html`<${Facts} of=${[['Secrets of the chat', listed(body.credentials)]]} />
    <${Sentences} label="Memory" of=${body.memory} />
    ${body.files?.length ? html`<${Text} label=${plural(body.files.length, 'file')} text=${body.files.join('\n')} kind="code" />` : html`<p
      class="muted">The workspace has no files.</p>`}`,
  routed: ({ body }) => html`<${Facts} of=${[
    ['Effort', body.routing?.effort], ['Decided', routedBy(body.by)], ['Tools needed', body.routing && `${body.routing.tool_need} %`],
    ['Tools of', listed(body.routing?.categories)], ['Goal', body.routing?.goal], ['Remember', body.routing?.durable && 'yes'],
    ['Secrets removed', listed(body.secrets)], ['Not usable', body.trouble],
  ]} />`,
  planned: ({ body }) => html`<${Facts}
    of=${[['Goal', body.plan?.goal], ['Blocked', body.plan?.blocked], ['Secrets removed', listed(body.secrets)]]} />
    ${body.chatter && html`<${Text} label="Notes with the plan" text=${body.chatter} />`}
    <${Tasks} label="Tasks" of=${body.plan?.tasks} /><${Sentences} label="Skill requirements" of=${body.skill_environment} />`,
  unplanned: ({ body }) => html`${body.chatter && html`<${Text} label="Notes with the plan" text=${body.chatter} />`}
    <${Correction} of=${body.correction} what="The planner’s answer" />`,
  briefed: ({ body }) => body.brief && html`<${Brief} of=${body.brief} />`,
  unbriefed: ({ body }) => html`<${Correction} of=${body.correction} what="The reasoner’s answer" />`,
  started: ({ task }) => html`<p class="muted">Written down before the effect, so that a crash cannot hide it.</p>
    ${task && html`<${Text} label="Task" text=${task.args ? pretty(task.args) : task.detail} kind="code" />`}`,
  executed: ({ body, session }) => body.report && html`<${Report} of=${body.report} session=${session} />`,
  acted: ({ body }) => html`${body.text && html`<${Text} label="Said" text=${body.text} />`}<${Wanted} of=${body.calls} />`,
  compressed: ({ body }) => html`<${Facts} of=${[['Whole', `ref:${body.reference}`]]} /><${Text} label="Summary" text=${body.summary} />`,
  calls_started: () => html`<p class="muted">Recorded before the calls run, so a crash can’t hide them.</p>`,
  called: ({ body, wanted, event, session }) => html`<${Results} of=${body.results ?? []} wanted=${wanted} reflections=${event.reflections}
    session=${session} />`,
  assessed: ({ body }) => html`<${Text} label="Self-assessment" text=${body.text} />`,
  reviewed: ({ body: { verdict = {} } }) => html`<${Facts} of=${[
    ['Verdict', html`<${StatusBadge} of=${verdict.status} />`], ['Reason', verdict.reason], ['Learned', verdict.learn],
    ['Goal met', verdict.goal_met === undefined ? null : verdict.goal_met ? 'yes' : 'no'],
  ]} /><${Tasks} label="Tasks added" of=${verdict.inject} />`,
  unreviewed: ({ body }) => html`<${Correction} of=${body.correction} what="The reviewer’s answer" />`,
  conversed: ({ body }) => html`<${Text} label="Answer" text=${body.text} />`,
  model_failed: ({ body }) => html`<${Text} label="Why" text=${body.message} />`,
  stopped: () => null,
  cancelled: () => html`<p class="muted">Cancelled by the user.</p>`,
  told: ({ body }) => html`<${Text} label="Text" text=${body.text} />`,
  finished: ({ body }) => html`<${Text} label="Reply" text=${body.reply} />
    ${body.arrived?.map((text, at) => html`<${Text} key=${at} label="New messages" text=${text} />`)}`,
};

export function Body({ step, session }) {
  const { body, sealed } = step;
  if (sealed) return html`<p class="muted">Encrypted: no model has checked it for secrets yet, so it isn’t shown.</p>`;
  const Of = BODIES[step.kind];
  const limits = [...(body.limits ?? []), ...(body.limit ? [body.limit] : [])];
  return html`${Of && html`<${Of} ...${step} session=${session} />`}
    ${limits.length > 0 && html`<ul class="trace-sentences" aria-label="Limits reached">${limits.map((one) => html`<li key=${one.limit}>
      The limit <code>${one.limit}</code> of ${one.value} is reached; <code>${one.setting}</code> in config.toml raises it.</li>`)}</ul>`}
    ${body.say && step.kind !== 'executed' && html`<${Text} label="Sent to the user" text=${body.say} />`}
    ${body.continues && html`<p class="muted">The run continues with the messages that arrived meanwhile.</p>`}`;
}
