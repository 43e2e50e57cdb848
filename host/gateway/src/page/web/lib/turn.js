// Rows of a chat: messages of the user, finished and active replies, notes, and unsent messages.

import { Component, html, store, useLoaded, useMemo, useRef, useState, useStore } from './preact.js';
import { Attached, attachedOf } from './chips.js';
import { clock, dates, fullTime } from './format.js';
import { Markdown } from './markdown.js';
import { href } from './router.js';
import { Reasoning } from './reasoning.js';
import { Made, Parts, partsOf } from './reply.js';
import { RunCard } from './run.js';
import { liveOf } from './run-live.js';
import { Long } from './run-output.js';
import { plain } from './run-text.js';
import { Tagged } from './tags.js';
import { TroubleCard } from './trouble-card.js';
import { revert, reverts } from './undo.js';
import { Badge, Button, CopyButton, Icon, Loaded, Menu, copyText, toast } from './ui.js';

const SILENT = store({ thoughts: [], said: [], reply: '', outputs: [] });

/** One row of `rows` (lib/messages.js). It is updated only when its data changed, because there may be many. */
export class Row extends Component {
  shouldComponentUpdate(next) {
    const { row, ...rest } = this.props;
    const { row: nextRow, ...nextRest } = next;
    return Object.keys(nextRest).some((name) => nextRest[name] !== rest[name])
      || ['type', 'message', 'run', 'note', 'one', 'at_ms'].some((name) => nextRow[name] !== row[name]);
  }

  render({ row, acts, ...rest }) {
    if (row.type === 'day') return html`<h2 class="chat-day"><time dateTime=${new Date(row.at_ms).toISOString()}>${day(row.at_ms)}</time></h2>`;
    if (row.type === 'segment') return html`<p class="chat-segment">Context cleared. Earlier messages won’t be sent to the model.</p>`;
    if (row.type === 'soon') return html`<p class="chat-soon"><span class="spinner" aria-hidden="true"></span>Thinking…</p>`;
    if (row.type === 'note') return html`<${Note} note=${row.note} session=${rest.session} acts=${acts} />`;
    if (row.type === 'unsent') return html`<${Unsent} one=${row.one} session=${rest.session} acts=${acts} />`;
    if (row.message?.approval) return html`<${Question} message=${row.message} marked=${rest.marked} />`;
    if (row.message?.role === 'user') return html`<${Asked} message=${row.message} acts=${acts} ...${rest} />`;
    // A reply in progress and the finished one are the same component, so that the change does not flicker.
    return html`<${Reply} run=${row.run ?? row.message.run} message=${row.message} acts=${acts} ...${rest} />`;
  }
}

const DAY = dates({ weekday: 'long', day: 'numeric', month: 'long', year: 'numeric' });

function day(ms) {
  const midnight = new Date().setHours(0, 0, 0, 0);
  if (ms >= midnight) return 'Today';
  return ms >= midnight - 86_400_000 ? 'Yesterday' : DAY.format(ms);
}

const When = ({ ms }) => html`<time class="chat-time" dateTime=${new Date(ms).toISOString()} title=${fullTime(ms)}>${clock(ms)}</time>`;

/** A user's message as text. */
function Asked({ message, session, marked, queued, typed, acts }) {
  const { id, text, at_ms, tags } = message;
  const draw = tags?.length ? (part) => html`<${Tagged} text=${part} tags=${tags} />` : undefined;
  const attached = useMemo(() => attachedOf(text), [text]);
  return html`<article class=${`chat-asked ${marked ? 'marked' : ''}`} data-message=${id} tabindex="-1" aria-label=${`You, ${clock(at_ms)}`}>
    ${attached.text && html`<div class=${`chat-bubble ${typed ? 'mono' : ''}`} dir="auto"><${Long} text=${attached.text} draw=${draw} /></div>`}
    <${Attached} ...${attached} session=${session} />
    <footer class="chat-foot">
      ${queued && html`<span class="chat-state">Queued</span>`}
      <div class="chat-acts">${message.run && html`<${Button} kind="quiet small" icon="edit" aria-label="Edit message" onClick=${() => acts.edit(text, id)}>Edit<//>`}
        <${CopyButton} text=${text} label="Copy message" />
        <${Menu} label="Actions for this message" kind="quiet small" items=${[
          { label: 'Send again', icon: 'retry', run: () => acts.send(text) },
          linkTo(session, id),
        ].filter(Boolean)} /></div>
      <${Versions} kind="version" of=${message} acts=${acts} />
      <${When} ms=${at_ms} />
    </footer>
  </article>`;
}

/**
 * Switches between versions of a message ("version"), or between answers to the same text ("answer"). `of` is the user's message.
 * The newest answer represents another wording.
 */
function Versions({ kind, of, acts }) {
  const { id, version_runs: known } = of ?? {};
  const own = known?.find((one) => one.message === id);
  if (!own) return null;
  const all = kind === 'answer' ? known.filter((one) => one.wording === own.wording)
    : [...new Map(known.map((one) => [one.wording, one.wording === own.wording ? own : one])).values()];
  if (all.length < 2) return null;
  const at = all.indexOf(own);
  const step = (by, sign, label) => html`<${Button} kind="quiet small" aria-label=${label} disabled=${!all[at + by]}
    onClick=${({ currentTarget }) => acts.version(all[at + by].message, kind, by, currentTarget)}><span aria-hidden="true">${sign}</span><//>`;
  const words = `${kind === 'answer' ? 'Answer' : 'Version'} ${at + 1} of ${all.length}`;
  // The older one is on the left.
  const [a, b] = at ? [all[at - 1], own] : [own, all[1]];
  return html`<div class="chat-versions" role="group" aria-label=${words} data-kind=${kind} data-turn=${id}>
    ${step(-1, '‹', `Previous ${kind}`)}<span aria-hidden="true">${words}</span>${step(1, '›', `Next ${kind}`)}
    ${a.run && b.run && html`<a class="button quiet small" href=${href('run', a.run, 'diff', b.run)} aria-label=${`Compare this ${kind} with ${at ? 'the one before' : 'the next one'}`}>Compare</a>`}</div>`;
}

const linkTo = (session, id) => ({
  label: 'Copy link',
  icon: 'link',
  run: async () => {
    await copyText(new URL(href('s', session, 'm', String(id)), location.href).href);
    toast('Link copied', 'good');
  },
});

/** The first line of a reply that was given at the limit of rounds, with the badge for an unreached goal. */
const UNMET = [['⚠ GOAL PARTIALLY ACHIEVED', 'Partly done', 'warn'], ['❌ GOAL NOT ACHIEVED', 'Gave up', 'bad']];

/**
 * A reply to the message `asked`, with its run; without `message` it is in progress. `typed`: the command, if the message was
 * one.
 */
function Reply({ run, message, asked, session, marked, known, stopping, typed, acts }) {
  // Steps are visible while the run is active, and stay visible if something failed.
  const [begun] = useState(!message);
  const [wanted, set] = useState(null);
  const live = useRef(null);
  live.current ??= message ? SILENT : liveOf(run);
  const reply = useStore(live.current, (heard) => heard.reply);
  // The message has no surrounding blanks, and it begins with the text that was drawn before.
  const { blocks, files } = useMemo(() => (message ? partsOf(message) : { blocks: [], files: [] }), [message]);
  const at_ms = message?.at_ms;
  const ways = useStore(reverts, (all) => all[session]?.runs.get(run));
  const status = message?.status ?? known?.status;
  const failed = message && ['failed', 'cancelled'].includes(status);
  const unmet = message && UNMET.find(([line]) => message.text.startsWith(line))?.slice(1);
  const open = wanted ?? (begun && (!message || status !== 'done'));
  const again = () => acts.again(run);
  const said = blocks.length === 1 && blocks[0].type === 'text' || !message
    ? (message ? blocks[0].text : reply.trim()) && html`<div class="chat-text"><${Markdown} text=${message ? blocks[0].text : reply.trim()} streaming=${!message} session=${session} /></div>`
    : html`<${Parts} blocks=${blocks} session=${session} done=${status === 'done'} typed=${typed} />`;
  return html`<article class=${`chat-reply ${marked ? 'marked' : ''}`} data-message=${message?.id} tabindex="-1"
    aria-label=${message ? `kiso, ${clock(at_ms)}` : 'kiso, at work'}>
    <header class="chat-from"><span class="strong">kiso</span>${message && html`<${When} ms=${at_ms} />`}
      ${failed && html`<${Badge} kind=${status === 'failed' ? 'bad' : 'warn'}>${status === 'failed' ? 'Failed' : 'Cancelled'}<//>`}
      ${!failed && unmet && html`<${Badge} kind=${unmet[1]}>${unmet[0]}<//>`}
      ${message && run && html`<button type="button" class="chat-done" aria-expanded=${String(open)} onClick=${() => set(!open)}>
        <${Icon} name="chevron" size=${14} />${open ? 'Hide steps' : 'Show steps'}</button>`}</header>
    ${open && run && html`<${RunCard} run=${run} session=${session} live=${live.current} known=${known} stopping=${stopping} typed=${typed} replied=${Boolean(message)} />`}
    ${run && html`<${Reasoning} run=${run} ms=${message?.thought_ms} under=${!message} />`}
    ${message?.trouble ? html`<${TroubleCard} trouble=${message.trouble} run=${run} acts=${acts}>${said}<//>` : said}
    ${files.length > 0 && html`<${Made} files=${files} blocks=${blocks} session=${session} undone=${Boolean(ways?.includes('redo') && !ways.includes('undo'))} />`}
    <footer class="chat-foot">${message && html`
      ${failed && !message.trouble && html`<${Button} kind="small" icon="retry" onClick=${again}>Try again<//>`}
      <div class="chat-acts">${run && html`<${Button} kind="quiet small" icon="retry" onClick=${again}>Regenerate<//>`}
        <${CopyButton} text=${message.text} label="Copy reply" />
        <${Menu} label="Actions for this reply" kind="quiet small" items=${[
          linkTo(session, message.id),
          ways?.includes('undo') && { label: 'Undo file changes', icon: 'undo', run: () => revert(run, 'undo', session) },
          ways?.includes('redo') && { label: 'Redo file changes', icon: 'redo', run: () => revert(run, 'redo', session) },
          run && { label: 'Trace', icon: 'trace', href: href('run', run) },
        ].filter(Boolean)} /></div>
      ${message.status && html`<${Versions} kind="answer" of=${asked} acts=${acts} />`}`}</footer>
  </article>`;
}

/** A question of a run, and its answer. The code is loaded with the first question. */
function Question(props) {
  const module = useLoaded(() => import('./approval.js'));
  return html`<${Loaded} of=${module}>${({ Decision }) => html`<${Decision} ...${props} />`}<//>`;
}

/** The answer of a command, which is not stored. */
const Note = ({ note, session, acts }) => html`<article class="chat-note" aria-label=${`Answer to ${plain(note.asked)}`}>
  <header><code><bdi>${plain(note.asked)}</bdi></code>
    <${Button} kind="quiet small" icon="close" label="Dismiss the answer" onClick=${() => acts.dismiss(note.key)} /></header>
  <div class="chat-text"><${Markdown} text=${note.text} session=${session} /></div>
</article>`;

function Unsent({ one, session, acts }) {
  const { key, text, state, error } = one;
  const attached = attachedOf(text);
  return html`<article class=${`chat-asked unsent ${state}`} aria-label=${state === 'refused' ? 'You, not sent' : 'You, sending'}>
    ${attached.text && html`<div class="chat-bubble" dir="auto"><${Long} text=${attached.text} /></div>`}
    <${Attached} ...${attached} session=${session} />
    <footer class="chat-foot">
      ${state === 'sending' && html`<span class="chat-state sending">Sending…</span>`}
      ${state === 'waiting' && html`<span class="chat-state">Waiting for kiso. Your message is saved.</span>`}
      ${state === 'refused' && html`<div class="chat-refused" role="alert"><${Icon} name="alert" size=${16} />
          <span>${error.message}${error.hint ? ` (${error.hint})` : ''}</span></div>
        <${Button} kind="small" icon="retry" onClick=${() => acts.sendAgain(key)}>Try again<//>
        <${Button} kind="small" icon="edit" onClick=${() => { acts.drop(key); acts.edit(text); }}>Edit<//>
        <${Button} kind="small quiet" icon="trash" label="Discard the message" onClick=${() => acts.drop(key)} />`}
    </footer>
  </article>`;
}
