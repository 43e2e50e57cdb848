// What a run asks before it goes on: each effect with where it goes and what with, and buttons that answer.

import { html, useEffect, useState } from './preact.js';
import { get, isAdmin, post } from './api.js';
import { plural } from './format.js';
import { Badge, Button, Time, Trouble, announce } from './ui.js';

/** Methods that change nothing at a host. */
const READING = ['GET', 'HEAD', 'OPTIONS'];

/** What an effect may use, in words. */
function destination({ hosts = [], secrets = [], of }) {
  const reads = (methods) => of === 'network' && methods.every((method) => READING.includes(method));
  const parts = hosts.map(({ host, methods }) => `${reads(methods) ? 'reading from' : `${methods.join(', ')} to`} ${host === '*' ? 'any public host' : host}`);
  if (!parts.length && of.includes('.')) parts.push(`MCP server ${of.split('.')[0]}`);
  return [...parts, ...secrets.map((name) => `with the secret ${name}`)].join(', ');
}

/** The card of a run that waits. Everything in it is text, whatever it says. */
export function ApprovalCard({ run, session }) {
  const [{ card, error }, set] = useState({});
  const [chosen, choose] = useState([]);
  useEffect(() => {
    let over = false;
    const take = ({ items }) => {
      const found = items.find((one) => one.run === run);
      if (over || !found) return;
      set({ card: found });
      choose(found.effects.map((_, index) => index + 1));
      announce('kiso asks for your approval');
    };
    get('/approvals', { session, limit: 100 }).then(take, (trouble) => over || set({ error: trouble }));
    return () => { over = true; };
  }, [run, session]);
  if (error) return html`<${Trouble} error=${error} />`;
  if (!card) return null;
  const many = card.effects.length > 1;
  // What is asked because of where its words came from is asked each time.
  const lasts = card.effects.some((effect) => !effect.because?.length);
  // A question about hosts alone can be answered for good.
  const hosts = card.effects.every((effect) => effect.tool === 'network' && !effect.because?.length);
  const toggle = (number, on) => choose(on ? [...chosen, number].sort((a, b) => a - b) : chosen.filter((one) => one !== number));
  const answer = (accept, always) => post(`/approvals/${card.id}`, { accept, ...(always ? { always } : {}) });
  return html`<div class="card approval" role="group" aria-label=${`Approval ${card.id}`}>
    <p>Before this goes on, kiso asks for ${plural(card.effects.length, 'approval')}.</p>
    <ol>${card.effects.map((effect, index) => {
      const what = html`<span><bdi class="strong">${effect.tool}</bdi>${' '}
        ${effect.access.map((access) => html`<bdi>${destination(access)}</bdi> `)}
        ${effect.task && html`<${Badge}>task ${effect.task}<//>`}</span>`;
      return html`<li key=${index}>
        ${many ? html`<label class="checked"><input type="checkbox" aria-label=${`Approve ${index + 1}: ${effect.tool}`} checked=${chosen.includes(index + 1)}
          onChange=${(event) => toggle(index + 1, event.target.checked)} />${what}</label>` : what}
        ${(effect.args ?? []).map((arg) => html`<div class="approval-arg"><bdi class="muted">${arg.name}</bdi>${' '}<bdi class="mono">${arg.shown}</bdi>
          ${arg.left_out > 0 && html` <span class="muted">… ${plural(arg.left_out, 'more character')}</span>`}</div>`)}
        ${(effect.because ?? []).map((why) => html`<div class="approval-why"><bdi>${why}</bdi></div>`)}
        ${effect.more_args > 0 && html`<div class="muted">and ${plural(effect.more_args, 'more argument')}</div>`}
      </li>`;
    })}</ol>
    <div class="actions">
      <${Button} kind="primary" disabled=${!chosen.length} onClick=${() => answer(chosen)}>${many && chosen.length < card.effects.length ? `Approve ${chosen.length}` : 'Approve'}<//>
      ${lasts && html`<${Button} disabled=${!chosen.length} onClick=${() => answer(chosen, 'session')}>${hosts ? 'In this conversation' : 'Always in this session'}<//>`}
      ${hosts && isAdmin() && html`<${Button} disabled=${!chosen.length} onClick=${() => answer(chosen, '30_days')}>Always<//>`}
      <${Button} kind="danger" onClick=${() => answer([])}>Refuse<//>
      ${hosts && html`<${Button} kind="danger" onClick=${() => answer([], 'session')}>Never here<//>`}
      <span class="muted">until <${Time} ms=${card.expires_ms} /></span>
    </div>
  </div>`;
}
