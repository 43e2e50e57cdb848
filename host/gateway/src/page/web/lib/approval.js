// Questions of a run: each effect with its destination and its arguments, buttons to answer, and afterwards the decision.

import { html, store, useEffect, useState, useStore } from './preact.js';
import { get, isAdmin, me, now, part, post } from './api.js';
import { on, onOpen } from './events.js';
import { fullTime, plural } from './format.js';
import { plain } from './run-text.js';
import { Badge, Button, Icon, Trouble, announce } from './ui.js';

/** Maximum number of a session's questions that are loaded. */
const MOST = 100;

/** HTTP methods that change nothing. */
const READING = ['GET', 'HEAD', 'OPTIONS'];

/** Approvals by number, as last received from the daemon. */
const known = store(new Map());

me.watch((who) => who || known.set(new Map()));

const learn = (lines) => known.set((old) => new Map([...old, ...lines.map((line) => [line.id, line])]));

/** Describes the access of an effect. */
function destination({ hosts = [], secrets = [], of }) {
  const reads = (methods) => of === 'network' && methods.every((method) => READING.includes(method));
  const parts = hosts.map(({ host, methods }) => `${reads(methods) ? 'reading from' : `${methods.join(', ')} to`} ${host === '*' ? 'any public host' : host}`);
  if (!parts.length && of.includes('.')) parts.push(`MCP server ${of.split('.')[0]}`);
  return [...parts, ...secrets.map((name) => `with the secret ${name}`)].join(', ');
}

const isSite = (effect) => effect.tool === 'network';

/** The hosts, grouped by the kind of access. */
function Sites({ effect }) {
  const all = effect.access.flatMap(({ hosts }) => hosts ?? []);
  const reads = ({ methods }) => methods.every((method) => READING.includes(method));
  const named = (some) => some.map(({ host }, at) => html`${at > 0 && ', '}<bdi class="strong">${host}</bdi>`);
  const [read, sent] = [all.filter(reads), all.filter((one) => !reads(one))];
  const methods = [...new Set(sent.flatMap((one) => one.methods))].join(', ');
  return html`<span>${read.length > 0 && html`open ${named(read)}`}${read.length > 0 && sent.length > 0 && ' and '}
    ${sent.length > 0 && html`send something to ${named(sent)} <span class="muted">(${methods})</span>`}</span>`;
}

/** An effect in one line. */
const Effect = ({ effect }) => (isSite(effect) ? html`<${Sites} effect=${effect} />` : html`<span><bdi class="strong">${effect.tool}</bdi>${' '}
  ${effect.access.map((access) => html`<bdi>${destination(access)}</bdi> `)}
  ${effect.task && html`<${Badge}>task ${effect.task}<//>`}</span>`);

/** Returns the label and the text for the origin of a question about sites: the command or the skill that requests one. */
function wanting({ name, shown }) {
  const line = name === 'for' && /^exec: ([^]*)$/.exec(shown);
  return line ? ['Command', line[1]] : [name === 'for' ? 'For' : name, shown];
}

/** Formats a reason from the daemon as a sentence. */
const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`;

/** Returns the reason for a question. */
function whyOf(effect) {
  if (effect.because?.length) return effect.because.map(sentence).join(' ');
  return isSite(effect) ? `Nobody has allowed this ${effect.access.flatMap(({ hosts }) => hosts ?? []).length > 1 ? 'yet' : 'site yet'}.` : '';
}

/** The oldest unanswered question of the chat, with its buttons; the next one follows after the answer. */
export function ApprovalDock({ session }) {
  const [{ ids, error }, set] = useState({ ids: [] });
  const all = useStore(known);
  useEffect(() => {
    let [over, runs] = [false, new Set()];
    const take = ({ items }) => {
      if (over) return;
      runs = new Set(items.map((one) => one.run));
      learn(items);
      set((old) => {
        if (items.some((one) => !old.ids.includes(one.id))) announce('kiso asks for your approval');
        return { ids: items.map((one) => one.id).reverse() };
      });
    };
    const look = () => get('/approvals', { session, limit: MOST }).then(take, (trouble) => over || set({ ids: [], error: trouble }));
    look();
    const ends = [
      on('run', (run) => (run.session === session || runs.has(run.id)) && look()),
      on('message', (message) => message.session === session && message.approval && look()),
      on('gap', look),
      onOpen(look),
    ];
    return () => {
      over = true;
      ends.forEach((end) => end());
    };
  }, [session]);
  const waiting = ids.map((id) => all.get(id)).filter((line) => line?.state === 'pending');
  if (error) return html`<${Trouble} error=${error} />`;
  return waiting.length > 0 && html`<${ApprovalCard} key=${waiting[0].id} card=${waiting[0]} more=${waiting.length - 1} />`;
}

/** Formats a remaining time, rounded. */
function remaining(ms) {
  const minutes = Math.max(1, Math.round(ms / 60_000));
  return minutes < 90 ? plural(minutes, 'minute') : plural(Math.round(minutes / 60), 'hour');
}

/** The card of a waiting run. All its content is shown as text. */
function ApprovalCard({ card, more }) {
  const [chosen, choose] = useState(card.effects.map((_, index) => index + 1));
  const many = card.effects.length > 1;
  // Questions that depend on the origin of a text are asked every time, so their answers cannot be remembered.
  // Nor can those for hosts near this machine.
  const lasts = card.effects.some((effect) => !effect.because?.length && !effect.once);
  const near = card.effects.some((effect) => effect.once);
  // Questions about hosts alone can be answered permanently.
  const hosts = card.effects.every((effect) => isSite(effect) && !effect.because?.length);
  const sites = card.effects.every(isSite);
  const toggle = (number, on) => choose(on ? [...chosen, number].sort((a, b) => a - b) : chosen.filter((one) => one !== number));
  const answer = async (accept, always) => {
    try {
      learn([await post(`/approvals/${card.id}`, { accept, ...(always ? { always } : {}) })]);
    } catch (error) {
      // Somebody else has answered, or the question has expired.
      if (error.code !== 'over') throw error;
      learn([await get(`/approvals/${card.id}`)]);
    }
    announce(accept.length ? 'Approved' : 'Refused');
    document.querySelector('.composer textarea')?.focus();
  };
  return html`<div class="card approval" role="group" aria-label=${`Approval ${card.id}`}>
    <p>${sites ? 'kiso wants to:' : `Before this goes on, kiso asks for ${plural(card.effects.length, 'approval')}.`}${more > 0 && html` <span class="muted">${plural(more, 'more question')} after this one.</span>`}</p>
    <ol>${card.effects.map((effect, index) => {
      const what = html`<${Effect} effect=${effect} />`;
      return html`<li key=${index}>
        ${many ? html`<label class="checked"><input type="checkbox" aria-label=${`Approve ${index + 1}: ${effect.tool}`} checked=${chosen.includes(index + 1)}
          onChange=${(event) => toggle(index + 1, event.target.checked)} />${what}</label>` : what}
        ${(effect.args ?? []).map((arg) => {
          const [label, shown] = isSite(effect) ? wanting(arg) : [arg.name, arg.shown];
          return html`<div class="approval-arg"><bdi class="muted">${label}</bdi>${' '}<bdi class="mono">${shown}</bdi>
            ${arg.left_out > 0 && html` <span class="muted">… ${plural(arg.left_out, 'more character')}</span>`}</div>`;
        })}
        ${whyOf(effect) && html`<div class="approval-why"><bdi>Why kiso asks: ${whyOf(effect)}</bdi></div>`}
        ${effect.more_args > 0 && html`<div class="muted">and ${plural(effect.more_args, 'more argument')}</div>`}
      </li>`;
    })}</ol>
    <div class="actions">
      <${Button} kind="primary" disabled=${!chosen.length} onClick=${() => answer(chosen)}>${many && chosen.length < card.effects.length ? `Approve ${chosen.length}` : 'Approve'}<//>
      ${lasts && html`<${Button} disabled=${!chosen.length} onClick=${() => answer(chosen, 'session')}>${hosts ? 'In this chat' : 'Always in this chat'}<//>`}
      ${hosts && lasts && isAdmin() && html`<${Button} disabled=${!chosen.length} onClick=${() => answer(chosen, '30_days')}>Always<//>`}
      <${Button} kind="danger" onClick=${() => answer([])}>Refuse<//>
      ${hosts && html`<${Button} kind="danger" onClick=${() => answer([], 'session')}>Never here<//>`}
      ${near && html`<span class="muted">A site near this computer is asked about each time. <code>kiso network allow HOST --private</code> allows it.</span>`}
      <span class="muted" title=${fullTime(card.expires_ms)}>You have ${remaining(card.expires_ms - now())} to answer.</span>
    </div>
  </div>`;
}

/** The duration of an answer's validity. */
const SCOPES = { session: ' for this chat', '30_days': ' for every chat' };

/** Returns the outcome of a question, and the colour of its mark. */
function ending({ state, answer, effects }) {
  const accepted = answer?.accepted.length ?? 0;
  if (state === 'pending') return ['Waiting for your answer below', ''];
  if (state === 'withdrawn') return ['No longer asked: the run was cancelled', ''];
  if (state === 'expired' || answer?.expired) return ['Refused: nobody answered in time', 'bad'];
  const by = answer?.by ? ` by ${plain(answer.by)}` : '';
  const sites = effects.every(isSite);
  const scope = SCOPES[answer?.always] ?? (sites ? ' once' : '');
  if (!accepted) return [`Refused${scope}${by}`, 'bad'];
  const word = sites ? 'Allowed' : 'Approved';
  return [`${word}${accepted < effects.length ? ` ${accepted} of ${effects.length}` : ''}${scope}${by}`, 'good'];
}

/** The decision, shown in place of the question's message. */
export function Decision({ message, marked }) {
  const [error, fail] = useState(null);
  const card = useStore(known, (all) => all.get(message.approval));
  const pending = card?.state === 'pending';
  useEffect(() => {
    let over = false;
    const look = () => get(`/approvals/${part(String(message.approval))}`).then((line) => over || learn([line]), (trouble) => over || fail(trouble));
    if (!known.get().has(message.approval)) look();
    // Somebody may answer in another place.
    const end = on('run', (run) => run.id === (known.get().get(message.approval)?.run ?? message.run) && look());
    return () => {
      over = true;
      end();
    };
  }, [message.approval]);
  // An approval is deleted together with its run.
  if (error) return html`<article class="approval-done" data-message=${message.id} tabindex="-1"><p class="muted">An approval that is no longer on record</p></article>`;
  if (!card) return null;
  const [words, kind] = ending(card);
  return html`<article class=${`approval-done ${marked ? 'marked' : ''}`} data-message=${message.id} tabindex="-1" aria-label=${`Approval ${card.id}: ${words}`}>
    <p>${kind && html`<span class=${`run-mark ${kind === 'good' ? 'done' : 'failed'}`}><${Icon} name=${kind === 'good' ? 'check' : 'close'} size=${15} /></span>`}
      <span class=${pending ? 'muted' : 'strong'}>${words}</span></p>
    ${!pending && html`<ul>${card.effects.map((effect, index) => html`<li key=${index} class=${card.answer?.accepted.includes(index + 1) ? '' : 'muted'}>
      <${Effect} effect=${effect} />${card.effects.length > 1 && card.answer?.accepted.length > 0 && html` <span class="muted">${card.answer.accepted.includes(index + 1) ? 'approved' : 'refused'}</span>`}</li>`)}</ul>`}
  </article>`;
}
