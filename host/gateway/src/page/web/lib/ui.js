// Elements of all screens.

import { html, store, useEffect, useLayoutEffect, useRef, useState, useStore } from './preact.js';
import { me, now } from './api.js';
import { connection } from './events.js';
import { ago, fullTime, visible } from './format.js';
import { route } from './router.js';
import { Sentence } from './said.js';

/** Outlines in a 24 by 24 box. */
const ICONS = {
  menu: 'M4 7h16M4 12h16M4 17h16',
  plus: 'M12 5v14M5 12h14',
  close: 'M6 6l12 12M18 6L6 18',
  search: 'M11 4a7 7 0 1 1 0 14a7 7 0 0 1 0-14M20 20l-4-4',
  send: 'M12 19V5M5.5 11.5L12 5l6.5 6.5',
  stop: 'M7 7h10v10H7z',
  retry: 'M20 12a8 8 0 1 1-2.4-5.7M20 4v5h-5',
  undo: 'M9 14 4 9l5-5M4 9h10a6 6 0 0 1 0 12h-3',
  redo: 'm15 14 5-5-5-5M20 9H10a6 6 0 0 0 0 12h3',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  check: 'M5 12.5l4.5 4.5L19 7.5',
  alert: 'M12 4l9 16H3zM12 10v4M12 17v.5',
  info: 'M12 3a9 9 0 1 1 0 18a9 9 0 0 1 0-18M12 11v6M12 7.5v.5',
  chevron: 'M9 6l6 6l-6 6',
  down: 'M6 9l6 6l6-6',
  dots: 'M5 12h.01M12 12h.01M19 12h.01',
  chat: 'M5 5h14v11H10l-5 4z',
  skills: 'M5 5h6v6H5zM13 13h6v6h-6zM16 4v6M13 7h6M5 16h6',
  pill: 'M8.500 15.500l7-7a3.540 3.540 0 0 1 5 5l-7 7a3.540 3.540 0 0 1-5-5M12 12l5 5M4 6h8M4 10h4',
  clock: 'M12 3a9 9 0 1 1 0 18a9 9 0 0 1 0-18M12 7v5l3.5 2',
  pin: 'M9 4h6l-1 6l3 3H7l3-3zM12 13v7',
  archive: 'M4 5h16v4H4zM6 9v10h12V9M10 13h4',
  memory: 'M12 4c4.4 0 8 1.3 8 3s-3.6 3-8 3s-8-1.3-8-3s3.6-3 8-3M4 7v10c0 1.7 3.6 3 8 3s8-1.3 8-3V7M4 12c0 1.7 3.6 3 8 3s8-1.3 8-3',
  settings: 'M4 7h9M17 7h3M4 17h3M11 17h9M15 5v4M9 15v4',
  usage: 'M5 20V10M12 20V4M19 20v-7',
  health: 'M3 12h4l3-7l4 14l3-7h4',
  trace: 'M5 6h8M5 12h14M9 18h10',
  file: 'M6 3h8l5 5v13H6zM14 3v5h5',
  folder: 'M3 6h6l2 2.500h10V19H3z',
  files: 'M9 3h7l4 4v10H9zM16 3v4h4M5 7v14h11',
  'folder-up': 'M3 6h6l2 2.500h10V19H3zM12 16.500v-5M9.500 14l2.500-2.500l2.500 2.500',
  save: 'M5 4h11l3 3v13H5zM8.500 4v5h6V4M8.500 20v-6h7v6',
  attach: 'M19 11l-7.5 7.5a4.5 4.5 0 0 1-6.4-6.4L13 4.2a3 3 0 0 1 4.3 4.3L9.5 16.3a1.5 1.5 0 0 1-2.2-2.2L14 7.5',
  download: 'M12 4v11M7 11l5 5l5-5M5 20h14',
  trash: 'M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13',
  edit: 'M4 20l1-4L16 5l3 3L8 19z',
  link: 'M10 14a4 4 0 0 0 6 .4l3-3a4 4 0 0 0-5.700-5.600l-1 1M14 10a4 4 0 0 0-6-.4l-3 3a4 4 0 0 0 5.700 5.600l1-1',
  play: 'M8 5l11 7l-11 7z',
  pause: 'M8 5v14M16 5v14',
  logout: 'M14 4h5v16h-5M10 8l-4 4l4 4M6 12h9',
  lock: 'M6 11h12v9H6zM9 11V8a3 3 0 0 1 6 0v3',
  sun: 'M12 8a4 4 0 1 1 0 8a4 4 0 0 1 0-8M12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.400 1.400M17.600 17.600L19 19M5 19l1.400-1.400M17.600 6.400L19 5',
  moon: 'M20 14.500A8.500 8.500 0 1 1 9.500 4a7 7 0 0 0 10.500 10.500',
  screen: 'M3 5h18v11H3zM9 20h6M12 16v4',
  diff: 'M8 4v12M5 7l3-3l3 3M16 20V8M13 17l3 3l3-3',
  bell: 'M6 16V11a6 6 0 0 1 12 0v5l2 2H4zM10 21h4',
  table: 'M4 5h16v14H4zM4 10h16M10 10v9',
  picture: 'M4 5h16v14H4zM4 16l5-5l4 4l2.500-2.500L20 17M15.500 9h.01',
  page: 'M6 3h8l5 5v13H6zM14 3v5h5M9 13h6M9 17h6',
  code: 'M9 8l-4 4l4 4M15 8l4 4l-4 4',
};

/** An icon beside a text; with `label` it has a meaning of its own for screen readers. */
export function Icon({ name, label, size = 18 }) {
  const heard = label ? { role: 'img', 'aria-label': label } : { 'aria-hidden': 'true' };
  return html`<svg class="icon" width=${size} height=${size} viewBox="0 0 24 24" fill="none" stroke="currentColor"
    stroke-width="1.8" stroke-linecap="round" stroke-linejoin="round" ...${heard}><path d=${ICONS[name]} /></svg>`;
}

/**
 * A button. With `icon` and without children it shows only the icon, and `label` is its name. `kind`: "primary", "quiet",
 * "danger" or nothing. While the promise from `onClick` is pending, it cannot be pressed again; errors are shown as a toast.
 */
export function Button({ icon, label, kind = '', busy, disabled, onClick, children, ...rest }) {
  const [under, setUnder] = useState(false);
  const gone = useRef(false);
  useEffect(() => () => { gone.current = true; }, []);
  const press = async (event) => {
    const work = onClick?.(event);
    if (!(work instanceof Promise)) return;
    setUnder(true);
    try {
      await work;
    } catch (error) {
      report(error);
    } finally {
      if (!gone.current) setUnder(false);
    }
  };
  const bare = children == null || children === '' || children.length === 0;
  return html`<button type="button" class=${`button ${kind} ${bare ? 'bare' : ''}`} title=${bare ? label : undefined}
    aria-label=${bare ? label : undefined} aria-busy=${under || busy ? 'true' : undefined}
    disabled=${disabled || under || busy} onClick=${press} ...${rest}>
    ${icon && html`<${Icon} name=${icon} />`}${!bare && html`<span>${children}</span>`}
  </button>`;
}

/** Copies `text` (or the result, if it is a function) and confirms it. */
export function CopyButton({ text, label = 'Copy', ...rest }) {
  const [done, set] = useState(false);
  const copy = async () => {
    await copyText(typeof text === 'function' ? text() : text);
    set(true);
    announce('Copied');
    setTimeout(set, 1_500, false);
  };
  return html`<${Button} kind="quiet small" icon=${done ? 'check' : 'copy'} label=${done ? 'Copied' : label} onClick=${copy} ...${rest} />`;
}

/** Copies to the clipboard, even if the page is not served over a secure connection. */
export async function copyText(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement('textarea');
  area.value = text;
  area.className = 'unseen';
  document.body.append(area);
  area.select();
  document.execCommand('copy');
  area.remove();
}

let dialogs = 0;

/** A modal dialog; Escape and a click outside close it. `title` is its name. */
export function Dialog({ title, onClose, wide, children }) {
  const dialog = useRef(null);
  const id = useRef(`dialog-${dialogs += 1}`).current;
  useLayoutEffect(() => {
    const [shown, before] = [dialog.current, document.activeElement];
    shown.showModal();
    return () => {
      // While it is open, nothing behind it gets the focus.
      shown.close();
      before?.focus?.();
    };
  }, []);
  const beside = ({ target, clientX: x, clientY: y }) => {
    const { left, right, top, bottom } = dialog.current.getBoundingClientRect();
    // Its own scroll bar belongs to it.
    if (target === dialog.current && (x < left || x > right || y < top || y > bottom)) onClose();
  };
  return html`<dialog ref=${dialog} class=${`dialog ${wide ? 'wide' : ''}`} aria-labelledby=${id} onCancel=${(event) => { event.preventDefault(); onClose(); }}
    onMouseDown=${beside}>
    <div class="dialog-body">
      <header><h2 id=${id}>${title}</h2><${Button} kind="quiet" icon="close" label="Close" onClick=${onClose} /></header>
      ${children}
    </div>
  </dialog>`;
}

const asked = store(null);

const inFront = store(null);

/** Shows a component as a dialog, with these properties and `onClose`. */
export const showDialog = (Shown, props) => inFront.set({ Shown, props });

/** Asks for confirmation of an irreversible action: a promise of true or false. `list` names the affected items. */
export function confirm({ title, text, list, action, danger = true }) {
  return new Promise((answer) => asked.set({ title, text, list, action, danger, answer }));
}

/** Milliseconds for which a toast stays when the screen changes. */
const FRESH = 1_000;

const toasts = store([]);
// Questions to a user who has logged out are not shown to the next one.
me.watch((who) => {
  if (!who) inFront.set(null);
  if (who || !asked.get()) return;
  asked.get().answer(false);
  asked.set(null);
});

let number = 0;

/** Shows a message for a while. `kind`: "info", "good" or "bad". `action`: a button in it, `{label, run}`. */
export function toast(text, kind = 'info', hint = '', action = null) {
  const one = { id: number += 1, text, kind, hint, action, at: Date.now() };
  toasts.set((all) => [...all.slice(-3), one]);
  setTimeout(() => dismiss(one.id), kind === 'bad' || action ? 12_000 : 5_000);
}

/** Shows an error. */
export function report(error) {
  if (error?.name === 'AbortError' || error?.status === 401) return;
  if (!error?.code) console.error(error);
  toast(error?.message ?? String(error), 'bad', error?.hint);
}

// Messages about a screen disappear with it, except very recent ones, which concern the new screen. The first address is not a
// change of screen.
let screen = route.get();
route.watch((now) => {
  if (screen.length) toasts.set((all) => all.filter(({ at }) => Date.now() - at < FRESH));
  screen = now;
});

const dismiss = (id) => toasts.set((all) => all.filter((one) => one.id !== id));

/** Executes the action of a toast, once. */
async function act({ id, action }) {
  dismiss(id);
  try {
    await action.run();
  } catch (error) {
    report(error);
  }
}

const said = store('');

/** Announces a text to screen readers. */
export function announce(text) {
  said.set('');
  setTimeout(() => said.set(text), 30);
}

/** Toasts, questions and announcements; rendered once per page. */
export function Overlay() {
  const [question, all, heard, front] = [useStore(asked), useStore(toasts), useStore(said), useStore(inFront)];
  const answer = (yes) => {
    asked.set(null);
    question.answer(yes);
  };
  return html`
    <div class="unseen" role="status" aria-live="polite">${heard}</div>
    <div class="toasts" role="region" aria-label="Notices">
      ${all.map((one) => html`<div key=${one.id} class=${`toast ${one.kind}`} role=${one.kind === 'bad' ? 'alert' : 'status'}>
        <${Icon} name=${one.kind === 'bad' ? 'alert' : one.kind === 'good' ? 'check' : 'info'} />
        <div><p>${one.text}</p>${one.hint && html`<p class="muted">${one.hint}</p>`}</div>
        ${one.action && html`<${Button} kind="small" onClick=${() => act(one)}>${one.action.label}<//>`}
        <${Button} kind="quiet small" icon="close" label="Dismiss" onClick=${() => dismiss(one.id)} />
      </div>`)}
    </div>
    ${front && html`<${front.Shown} ...${front.props} onClose=${() => inFront.set(null)} />`}
    ${question && html`<${Dialog} title=${question.title} onClose=${() => answer(false)}>
      ${question.list && html`<ul class="dialog-list" tabindex="0" aria-label="What is meant">${question.list.map((one, at) => html`<li key=${at}>
        <${Said}>${one}<//></li>`)}</ul>`}
      <p>${question.text}</p>
      <footer><${Button} onClick=${() => answer(false)}>Cancel<//>
        <${Button} kind=${question.danger ? 'danger' : 'primary'} onClick=${() => answer(true)}>${question.action}<//></footer>
    <//>`}`;
}

const ITEMS = '[role=menuitem], [role=menuitemradio]';

/**
 * A button that opens a list of actions: `[{label, icon, danger, run}]`, or `{label, href}`; an entry with `checked` is a choice.
 * Arrow keys move, Escape closes. `up`: the list opens above the button; `text` is shown beside its icon.
 */
export function Menu({ label, icon = 'dots', items, kind = 'quiet', up = false, text, ...rest }) {
  const [open, set] = useState(false);
  const root = useRef(null);
  useEffect(() => {
    if (!open) return undefined;
    root.current.querySelector(ITEMS)?.focus();
    const away = (event) => root.current?.contains(event.target) || set(false);
    document.addEventListener('pointerdown', away);
    return () => document.removeEventListener('pointerdown', away);
  }, [open]);
  const close = () => {
    set(false);
    root.current.querySelector('button').focus();
  };
  const keys = (event) => {
    const all = [...root.current.querySelectorAll(ITEMS)];
    const at = all.indexOf(document.activeElement);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (event.key === 'Escape' && open) {
      event.stopPropagation();
      close();
    } else if (event.key === 'Tab') {
      set(false);
    } else if (open && next !== undefined) {
      event.preventDefault();
      all[(next + all.length) % all.length].focus();
    }
  };
  const run = (item) => async () => {
    close();
    try {
      await item.run();
    } catch (error) {
      report(error);
    }
  };
  return html`<div class="menu" ref=${root} onKeyDown=${keys}>
    <${Button} kind=${kind} icon=${icon} label=${label} aria-haspopup="menu" aria-expanded=${String(open)} onClick=${() => set(!open)} ...${rest}>${text && html`<span class="unseen">${label}: </span><bdi>${text}</bdi>`}<//>
    ${open && html`<div class=${`menu-items ${up ? 'up' : ''}`} role="menu" aria-label=${label}>
      ${items.map((item) => item.href
        ? html`<a key=${item.label} role="menuitem" tabindex="-1" href=${item.href} download=${item.download} onClick=${close}><${Icon} name=${item.icon} />${item.label}</a>`
        : html`<button key=${item.label} type="button" role=${item.checked === undefined ? 'menuitem' : 'menuitemradio'} tabindex="-1"
          aria-checked=${item.checked === undefined ? undefined : String(item.checked)} class=${item.danger ? 'danger' : ''} onClick=${run(item)}>
          <${Icon} name=${item.icon} />${item.label}</button>`)}
    </div>`}
  </div>`;
}

/** A relative time, with the full time as title; updated every half minute. */
export function Time({ ms }) {
  const [, draw] = useState(0);
  useEffect(() => {
    const timer = setInterval(draw, 30_000, (count) => count + 1);
    return () => clearInterval(timer);
  }, []);
  return html`<time dateTime=${new Date(ms).toISOString()} title=${fullTime(ms)}>${ago(ms, now())}</time>`;
}

/** A foreign text, which does not affect the direction of surrounding text. */
export const Said = ({ children }) => html`<bdi>${visible(children)}</bdi>`;

/** A state in a word. `kind`: "good", "bad", "busy", "warn" or nothing. */
export const Badge = ({ kind = '', children }) => html`<span class=${`badge ${kind}`}>${children}</span>`;

/** Something is loading. */
export const Busy = ({ children = 'Loading…' }) => html`<p class="busy" role="status"><span class="spinner" aria-hidden="true"></span>${children}</p>`;

/** An empty state, with a suggestion. */
export const Empty = ({ icon = 'info', title, children }) => html`<div class="empty"><${Icon} name=${icon} size=${32} /><p class="strong">${title}</p>
  ${children && html`<p class="muted">${children}</p>`}</div>`;

/** An error with a retry button. If the daemon was unreachable, it is retried when the daemon is back. */
export function Trouble({ error, again }) {
  const last = useRef(again);
  last.current = again;
  useEffect(() => {
    if (error.status !== 0 || !again) return undefined;
    return connection.watch(({ state }) => state === 'open' && last.current());
  }, [error]);
  return html`<div class="trouble" role="alert"><${Icon} name="alert" /><div><p><${Sentence} text=${error.message} /></p>
    ${error.hint && html`<p class="muted"><${Sentence} text=${error.hint} /></p>`}</div>${again && html`<${Button} icon="retry" onClick=${again}>Try again<//>`}</div>`;
}

/** The result of `useLoaded`: a busy sign, an error, or `children(value)`. */
export function Loaded({ of, children }) {
  if (of.value !== undefined) return html`${of.error && html`<${Trouble} error=${of.error} again=${of.again} />`}${children(of.value)}`;
  return of.error ? html`<${Trouble} error=${of.error} again=${of.again} />` : html`<${Busy} />`;
}

/** The head of a screen: its name, its purpose, and actions. */
export const ScreenHead = ({ title, about, children }) => html`<header class="screen-head"><div><h1 tabindex="-1">${title}</h1>${about && html`<p class="muted">${about}</p>`}</div>
  <div class="actions">${children}</div></header>`;
