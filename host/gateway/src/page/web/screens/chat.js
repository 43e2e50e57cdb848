// A chat: its messages, the work on them, and the message field.

import { html, useEffect, useLayoutEffect, useMemo, useRef, useState, useStore } from '../lib/preact.js';
import { part, post } from '../lib/api.js';
import { Beside, useNarrow } from '../lib/beside.js';
import { Composer, fillComposer, isCommand } from '../lib/composer.js';
import { connection } from '../lib/events.js';
import { FolderBar } from '../lib/folders.js';
import { plural } from '../lib/format.js';
import { Log } from '../lib/log.js';
import { plainText } from '../lib/markdown.js';
import { commandsOf, conversation, rows } from '../lib/messages.js';
import { ModelMenu } from '../lib/models.js';
import { href, repeated, route } from '../lib/router.js';
import { plain } from '../lib/run-text.js';
import { SessionMenu, beginChat, drawer, sessionOf, sessions, titleOf, unread } from '../lib/sessions.js';
import { Row } from '../lib/turn.js';
import { Busy, Button, Trouble, announce, report, toast } from '../lib/ui.js';
import { loadReverts } from '../lib/undo.js';
import { Welcome } from '../lib/welcome.js';

/** Milliseconds for which the end must be visible before the chat counts as read. */
const READING = 500;

/** Number of characters of a new reply that are announced to screen readers. */
const HEARD = 200;

export default function Chat({ session }) {
  const log = useRef(null);
  const [atEnd, setAtEnd] = useState(true);
  const [fresh, setFresh] = useState(0);
  const end = useRef(atEnd);
  end.current = atEnd;
  const talk = useMemo(() => conversation(session, {
    onMessage(message) {
      if (!end.current) setFresh((number) => number + 1);
      if (message.role === 'assistant') announce(`kiso replied: ${plain(plainText(message.text, HEARD))}`);
    },
  }), [session]);
  const state = useStore(talk.state);
  const waiting = useStore(talk.unsent.list);
  const asked = useStore(route, ([place, name, kind, id]) => (place === 's' && name === session && kind === 'm' ? Number(id) : 0));
  const file = useStore(route, ([place, name, kind, path]) => (place === 's' && name === session && kind === 'f' ? path ?? '' : ''));
  const again = useStore(repeated);
  const [stopping, setStopping] = useState(null);
  // A daemon that was unreachable may have lost the request to stop; the run itself reports its state.
  useEffect(() => connection.watch(({ state: at }) => at === 'lost' && setStopping(null)), []);

  useEffect(() => {
    localStorage.setItem('kiso.session', session);
    talk.begin(asked);
    return talk.end;
  }, [talk]);

  // A link to a message.
  useEffect(() => {
    if (!asked || state.phase !== 'ready') return;
    talk.show(asked).then((found) => {
      if (found) setTimeout(() => log.current?.show(asked), 0);
      else toast('This message no longer exists', 'bad');
    }, report);
  }, [asked, state.phase, again]);

  const title = plain(state.status?.title || titleOf(session));
  const elsewhere = useStore(unread);
  useEffect(() => {
    document.title = `${elsewhere ? `(${elsewhere}) ` : ''}${title} · kiso`;
  }, [title, elsewhere]);

  useRead(talk, state, atEnd);

  // Runs and commands change what can be undone.
  const said = state.phase === 'ready' ? state.items.at(-1)?.id : undefined;
  useEffect(() => {
    if (said) loadReverts(session).catch(() => {});
  }, [session, said, state.notes.length]);

  const running = state.drafts.find((run) => state.runs[run]?.status === 'running') ?? null;
  const stop = async () => {
    if (!running) return;
    setStopping(running);
    try {
      await post(`/runs/${part(running)}/cancel`);
    } catch (error) {
      // The run ended before it could be stopped.
      if (error.code === 'ended') return;
      setStopping(null);
      throw error;
    }
  };
  // Registered as soon as the button exists.
  useLayoutEffect(() => {
    const keys = (event) => {
      if (event.key !== '.' || !(event.ctrlKey || event.metaKey) || !running) return;
      event.preventDefault();
      stop().catch(report);
    };
    document.addEventListener('keydown', keys);
    return () => document.removeEventListener('keydown', keys);
  }, [running]);

  const toEnd = async () => {
    if (asked) {
      // A user who moves on from a linked message does not want to return there after a reload.
      history.replaceState(null, '', href('s', session));
      route.set(['s', session]);
    }
    if (state.newer) await talk.toEnd();
    setFresh(0);
    setTimeout(() => {
      log.current?.toEnd();
      log.current?.focus();
    }, 0);
  };
  const [editing, setEditing] = useState(null);
  // The new version arrives with the session's event.
  const revise = async (id, text) => (await import('../lib/versions.js')).revise(id, text);
  const change = async (id, text) => {
    setEditing(null);
    try {
      if (await revise(id, text)) return;
    } catch (error) {
      report(error);
    }
    setEditing(id);
    fillComposer(session, text);
  };
  const send = (text) => {
    talk.unsent.send(text);
    if (talk.state.get().newer) talk.toEnd().catch(report);
    setTimeout(() => log.current?.toEnd(), 0);
  };
  const submit = (text) => {
    // A command is executed; it does not become another version.
    if (editing && !isCommand(text)) return change(editing, text);
    setEditing(null);
    return send(text);
  };
  const acts = useMemo(() => ({
    send,
    edit(text, id = null) {
      setEditing(id);
      fillComposer(session, text);
    },
    async version(id, kind, by, button) {
      // The button keeps its position, so that it can be pressed again.
      const { top } = button.closest('.chat-versions').getBoundingClientRect();
      await talk.showVersion(id);
      log.current?.keep(() => document.querySelector(`.chat-versions[data-kind=${kind}][data-turn="${Number(id)}"]`), top, (one) => {
        const [back, forth] = one.querySelectorAll('button');
        const [same, other] = by < 0 ? [back, forth] : [forth, back];
        (same.disabled ? other : same).focus({ preventScroll: true });
      });
    },
    sendAgain: talk.unsent.again,
    drop: talk.unsent.remove,
    dismiss: talk.dismiss,
    async again(run) {
      const of = talk.state.get().items.findLast((one) => one.run === run);
      if (of) await revise(of.id);
      else toast('The original message no longer exists', 'bad');
    },
  }), [talk]);
  const near = (edge) => {
    const more = edge === 'older' ? state.older && talk.more : state.newer && talk.onward;
    // The offline state is already shown.
    if (more) more().catch((error) => error.status && report(error));
  };

  // Scrolls the chat from the message field, so that the user can look up earlier messages.
  const leaf = (event) => {
    const by = { PageUp: -1, PageDown: 1 }[event.key];
    if (!by || event.target.tagName !== 'TEXTAREA' || event.target.scrollHeight > event.target.clientHeight + 1) return;
    event.preventDefault();
    log.current?.leaf(by);
  };

  const list = useMemo(() => rows(state, waiting, talk.keys), [state, waiting]);
  const versioned = useMemo(() => new Map(state.items.filter((one) => one.run && one.versions).map((one) => [one.run, one])), [state.items]);
  const commands = useMemo(() => commandsOf([...state.items, ...waiting]), [state.items, waiting]);
  // Attached files create a session without messages.
  const silent = state.phase === 'new' || (state.phase === 'ready' && !state.items.length && !state.older && !state.drafts.length);
  const empty = silent && !waiting.length && !state.notes.length;
  const narrow = useNarrow();
  return html`<section class=${`chat ${file ? 'beside' : ''}`} aria-label="Chat" inert=${Boolean(file) && narrow} onKeyDown=${leaf}>
    <header class="chat-head">
      <${Opener} />
      <div><h1><bdi>${title}</bdi></h1><${ModelMenu} session=${session} model=${state.status?.model} onChange=${talk.lookAgain} /></div>
      ${narrow && html`<${Button} kind="quiet" icon="plus" label="New chat" onClick=${() => beginChat(session)} />`}
      <${SessionMenu} session=${session} />
    </header>
    ${state.phase === 'loading' && html`<div class="chat-wait"><${Busy} /></div>`}
    ${state.phase === 'failed' && html`<div class="chat-wait"><${Trouble} error=${state.error} again=${() => talk.begin(asked)} /></div>`}
    ${empty && html`<div class="chat-log" tabindex="0" role="region" aria-label="Welcome"><${Welcome} session=${session} model=${state.status?.model} /></div>`}
    ${!empty && (['ready', 'new'].includes(state.phase) || waiting.length > 0) && html`<${Log} label="Messages" api=${log} hold=${state.newer} onNear=${near}
      onEnd=${(there) => { setAtEnd(there); if (there) setFresh(0); }}>
      ${state.older && html`<${More} key="older">Loading older messages<//>`}
      ${list.map((row) => html`<${Row} key=${row.key} row=${row} session=${session} acts=${acts} marked=${row.message?.id === asked && asked > 0}
        queued=${state.drafts.length > 0 && state.queued.includes(row.message?.id)} known=${state.runs[row.run ?? row.message?.run]} asked=${versioned.get(row.message?.run)}
        typed=${commands.get(row.run ?? row.message?.run) ?? (row.type === 'draft' && commands.get(''))}
        stopping=${stopping !== null && stopping === (row.run ?? row.message?.run)} />`)}
      ${state.newer && html`<${More} key="newer">Loading newer messages<//>`}
    <//>`}
    <div class="chat-foot-area">
      ${!empty && state.phase === 'ready' && (!atEnd || state.newer) && html`<${Button} icon="down" class="button small chat-jump" onClick=${toEnd}>
        ${fresh ? plural(fresh, 'new message') : 'Jump to latest'}<//>`}
      <${Asking} session=${session} items=${state.items} />
      <${FolderBar} session=${session} running=${running !== null} />
      ${editing && html`<div class="chat-editing"><span>Editing a message. Sending makes a new version; the earlier one is kept.</span>
        <${Button} kind="small" onClick=${() => { setEditing(null); fillComposer(session, ''); }}>Cancel<//></div>`}
      <${Composer} session=${session} running=${running !== null} onSend=${submit} onStop=${stop} />
    </div>
  </section>
  ${file && html`<${Beside} key=${file} session=${session} path=${file} onFail=${() => location.replace(href('s', session))} />`}`;
}

/** Questions of the chat's runs, above the message field. The code is loaded with the first question. */
function Asking({ session, items }) {
  const [Dock, set] = useState(null);
  const waits = useStore(sessions, () => Boolean(sessionOf(session)?.waiting));
  const wanted = waits || items.some((one) => one.approval);
  useEffect(() => {
    if (wanted) import('../lib/approval.js').then((module) => set(() => module.ApprovalDock), report);
  }, [wanted]);
  return Dock && html`<${Dock} key=${session} session=${session} />`;
}

/** The menu button; on a phone, the chat's head is the only one. */
function Opener() {
  const [open, waiting] = [useStore(drawer), useStore(unread)];
  return html`<${Button} kind="quiet chat-menu" icon="menu" label=${open ? 'Close the menu' : 'Open the menu'} aria-expanded=${String(open)} aria-controls="sidebar"
    data-unread=${waiting || undefined} onClick=${() => drawer.set(!open)} />`;
}

const More = ({ children }) => html`<p class="chat-more"><span class="spinner" aria-hidden="true"></span><span class="unseen">${children}</span></p>`;

/** Marks the session as read when its end was visible for a moment. */
function useRead(talk, { items, newer }, atEnd) {
  const last = newer || !atEnd ? 0 : items.findLast((one) => one.role === 'assistant')?.id ?? 0;
  const [seen, look] = useState(document.visibilityState === 'visible');
  const done = useRef(0);
  useEffect(() => {
    const change = () => look(document.visibilityState === 'visible');
    document.addEventListener('visibilitychange', change);
    return () => document.removeEventListener('visibilitychange', change);
  }, []);
  useEffect(() => {
    if (!last || !seen || done.current >= last) return undefined;
    const timer = setTimeout(() => {
      const first = done.current === 0;
      done.current = last;
      // Nothing to mark if everything was read before.
      if (first && sessionOf(talk.session)?.unread === 0) return;
      post(`/sessions/${part(talk.session)}/read`, { message: last }).catch(() => { done.current = 0; });
    }, READING);
    return () => clearTimeout(timer);
  }, [last, seen]);
}
