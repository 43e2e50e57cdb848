// The prompts of a step's models, loaded on demand.

import { html, useState } from './preact.js';
import { get, part } from './api.js';
import { visible } from './format.js';
import { Button, CopyButton, Trouble } from './ui.js';
import { Folded, Text, parsed, pretty } from './trace-parts.js';

/** The parts of an event that contain the result of the answer; kiso does not store the answer itself. */
const ANSWER = ['text', 'chatter', 'plan', 'brief', 'verdict', 'routing', 'summary'];

export function Prompt({ run, step }) {
  const [state, set] = useState(null);
  const fetch = async () => {
    set({ busy: true });
    try {
      const page = await get(`/runs/${part(run)}/trace`, { after: step.seq - 1, limit: 1, prompts: true });
      set({ prompts: page.items.find((event) => event.seq === step.seq)?.prompts ?? [] });
    } catch (error) {
      set({ error });
    }
  };
  if (state?.error) return html`<${Trouble} error=${state.error} again=${fetch} />`;
  if (!state?.prompts) return html`<${Button} icon="chat" kind="small" aria-expanded="false" busy=${state?.busy}
    onClick=${fetch}>Prompt and answer<//>`;
  return html`<section class="trace-prompt" aria-label=${`Prompt and answer of step ${step.seq}`}>
    <${Button} icon="chat" kind="small" aria-expanded="true" onClick=${() => set(null)}>Prompt and answer<//>
    ${state.prompts.length === 0 && html`<p class="muted">This prompt has expired.</p>`}
    ${state.prompts.map((prompt, at) => html`<div key=${at} class="trace-asked">
      <header><h3>Asked of the ${visible(prompt.role)}</h3><${CopyButton} label=${`Copy the prompt of the ${visible(prompt.role)}`}
        text=${prompt.text} /></header>
      ${sections(prompt.text).map((one, nth) => html`<${Folded} key=${nth} label=${`[${visible(one.name)}]`} begins=${nth > 0}>
        <${Text} hidden label=${`[${one.name}]`} text=${one.text} kind="code" /><//>`)}</div>`)}
    ${answerOf(step).map(([name, text]) => html`<${Text} key=${name} label=${`[answer] ${name}`} text=${text} kind="code" />`)}
  </section>`;
}

const answerOf = ({ kind, body }) => [
  ...ANSWER.filter((name) => body[name]?.length ?? body[name]).map((name) => [name, pretty(body[name])]),
  ...(kind === 'acted' && body.calls?.length ? [['calls', pretty(body.calls.map((call) => ({ ...call, args: parsed(call.args) })))]] : []),
  ...(kind === 'executed' && body.report ? [['text', body.report.text]] : []),
  ...(body.correction ? [['not usable', body.correction.broken]] : []),
];

const HEAD = /^\[(system|user|assistant|tool [^\]]*|note|tools)\](.*)$/;

/**
 * Splits a prompt at its headings. Text between the host's fences, `<<<BOUNDARY` and `BOUNDARY>>>`, comes from outside, so
 * headings in it are ignored.
 */
export function sections(text) {
  const all = [];
  let fence = null;
  for (const line of text.split('\n')) {
    const head = fence ? null : HEAD.exec(line);
    if (head && (head[1] === 'system') === (all.length === 0)) {
      all.push({ name: head[1], lines: head[2].trim() ? [head[2].trim()] : [] });
      continue;
    }
    if (fence) {
      if (line === `${fence}>>>`) fence = null;
    } else {
      fence = /^<<<([0-9a-f]{8,})$/.exec(line)?.[1] ?? null;
    }
    (all.at(-1) ?? all[all.push({ name: 'prompt', lines: [] }) - 1]).lines.push(line);
  }
  return all.map(({ name, lines }) => ({ name, text: lines.join('\n') }));
}
