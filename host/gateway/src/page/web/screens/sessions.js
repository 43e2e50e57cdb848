// The sidebar: all sessions by activity, and a search in their messages.

import { html, Component, useEffect, useLayoutEffect, useMemo, useRef, useState, useStore } from '../lib/preact.js';
import { now } from '../lib/api.js';
import { connection } from '../lib/events.js';
import { clock, dates, fullTime, plural } from '../lib/format.js';
import { href } from '../lib/router.js';
import { marked, query, snippet, useSearch, wordsOf } from '../lib/search.js';
import {
  MOST_UNREAD, SessionDialog, SessionMenu, archived, beginChat, givenTitle, loadSessions, moreArchived, moreSessions, others, place, remove, rename,
  sessionOf, sessions, titleOf,
} from '../lib/sessions.js';
import { Selection, selection, tick } from '../lib/selection.js';
import { Busy, Button, Icon, Trouble, report } from '../lib/ui.js';

/** Number of sessions with matching titles that are shown at first. */
const TITLES = 8;

/** Number of sessions that are drawn at first, and added at a time. */
const DRAWN = 100;

const MAC = /^Mac|^iP/.test(navigator.platform);

/** `current` is the name of the open session, or null; `onLeave()` is called when the user continues in another session. */
export function Sidebar({ current, onLeave }) {
  const q = useStore(query);
  const search = query.set;
  const field = useRef(null);
  const selecting = useStore(selection, Boolean);
  useEffect(() => {
    loadSessions();
  }, []);
  const begin = () => {
    search('');
    beginChat(current);
    onLeave();
  };
  useEffect(() => {
    const press = (event) => {
      if (!event.shiftKey || !(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== 'o' || event.target.closest?.('dialog')) return;
      event.preventDefault();
      begin();
    };
    document.addEventListener('keydown', press);
    return () => document.removeEventListener('keydown', press);
  });
  const keys = (event) => {
    if (event.key === 'Escape' && q) {
      event.stopPropagation();
      search('');
    } else if (event.key === 'ArrowDown') {
      event.preventDefault();
      document.querySelector('.sessions a')?.focus();
    }
  };
  return html`<div class="sessions-head">
      <${Button} icon="plus" title=${`New chat (${MAC ? '⌘⇧O' : 'Ctrl+Shift+O'})`} onClick=${begin}>New chat<//>
      <div class="sessions-search" role="search">
        <${Icon} name="search" size=${16} />
        <input id="search" ref=${field} type="search" aria-label="Search chats and messages" placeholder="Search" autocomplete="off"
          spellcheck=${false} value=${q} onInput=${(event) => search(event.target.value)} onKeyDown=${keys} />
        ${!q && html`<kbd aria-hidden="true">${MAC ? '⌘K' : 'Ctrl K'}</kbd>`}
      </div>
    </div>
    ${selecting && html`<${Selection} actions=${{ place, remove }} />`}
    <nav class="sessions" aria-label="Chats" onKeyDown=${(event) => walk(event, field.current)}>
      ${q.trim() ? html`<${Found} q=${q} current=${current} />` : html`<${All} current=${current} />`}
    </nav>
    <${SessionDialog} />`;
}

/** Moves between the links of the list with the arrow keys, and from the first one back to the field. */
function walk(event, field) {
  if (!['ArrowDown', 'ArrowUp', 'Home', 'End'].includes(event.key) || !event.target.matches('a') || event.target.closest('.menu')) return;
  const links = [...event.currentTarget.querySelectorAll('a:not(.menu a)')];
  const at = links.indexOf(event.target);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: links.length - 1 }[event.key];
  event.preventDefault();
  (to < 0 ? field : links[Math.min(to, links.length - 1)]).focus();
}

/** All sessions in groups. More are loaded and drawn when the end becomes visible. */
function All({ current }) {
  const { items: known, next, loaded, error } = useStore(sessions);
  useStore(others);
  const [drawn, draw] = useState(DRAWN);
  const [failed, fail] = useState(false);
  const [renaming, setRenaming] = useState(null);
  const ticked = useStore(selection);
  const away = useStore(archived);
  // One row is reachable with Tab; arrow keys move to the others.
  const [at, reach] = useState(null);
  useEffect(() => reach(null), [current]);
  const end = useRef(null);
  /** Names in the displayed order, for selecting a range. */
  const ordered = useRef([]);
  const tickOf = useRef((name, yes, range) => tick(name, yes, range, ordered.current)).current;
  const items = known.slice(0, drawn);
  const more = next || known.length > drawn;
  useEffect(() => {
    if (!more || failed) return undefined;
    // Recreated with each page, because the end may still be visible after a short one. The last entry counts.
    const watch = new IntersectionObserver((looks) => {
      if (!looks.at(-1).isIntersecting) return;
      draw(Math.min(drawn, known.length) + DRAWN);
      if (known.length < drawn + DRAWN) {
        moreSessions().catch((error) => {
          report(error);
          fail(true);
        });
      }
    }, { rootMargin: '400px' });
    watch.observe(end.current);
    return () => watch.disconnect();
  }, [more, known.length, drawn, failed]);
  useEffect(() => connection.watch(({ state }) => state === 'open' && fail(false)), []);
  if (!loaded) return error ? html`<${Trouble} error=${error} again=${loadSessions} />` : html`<${Busy} />`;
  const stranger = current && !items.some((one) => one.name === current) && (sessionOf(current) ?? { name: current, title: null, active_ms: now() });
  const isAway = stranger?.placement === 'archived';
  const groups = grouped(stranger && !isAway ? [stranger, ...items] : items);
  if (!groups.length && !away.any) return html`<p class="sessions-none muted">No chats yet. Send a message to start one.</p>`;
  const there = (name) => name === stranger?.name || items.some((one) => one.name === name) || away.items.some((one) => one.name === name);
  const first = [at, current].find((name) => name && there(name)) ?? items[0]?.name;
  const names = [...groups.flatMap(([, members]) => members), ...away.items].map((one) => one.name);
  const list = (members) => html`<ul>${members.map((one) => html`<${Row} key=${one.name} session=${one} current=${one.name === current}
    reached=${one.name === first} renaming=${one.name === renaming} ticked=${ticked?.has(one.name)} onTick=${tickOf} onRename=${setRenaming} onReach=${reach} />`)}</ul>`;
  ordered.current = names;
  return html`
    ${groups.map(([label, members]) => html`<section key=${label} class="sessions-group" aria-label=${label}>
      <h2>${label}</h2>
      ${list(members)}
    </section>`)}
    ${more && html`<div ref=${end}>${failed ? html`<${Button} onClick=${() => fail(false)}>Show more<//>` : html`<${Busy}>Loading more…<//>`}</div>`}
    ${away.any && html`<${Folded} of=${away} stranger=${isAway && !away.items.some((one) => one.name === current) ? stranger : null} unfold=${isAway} list=${list} />`}`;
}

/** Archived sessions, collapsed. They are loaded when the section is expanded. */
function Folded({ of, stranger, unfold, list }) {
  const [wanted, set] = useState(null);
  const open = wanted ?? unfold;
  useEffect(() => {
    if (open && !of.loaded) moreArchived();
  }, [open]);
  const all = stranger && !of.items.includes(stranger) ? [stranger, ...of.items] : of.items;
  return html`<section class="sessions-group" aria-label="Archived">
    <h2><button type="button" class="sessions-fold" aria-expanded=${String(open)} onClick=${() => set(!open)}>
      <${Icon} name="chevron" size=${13} />Archived</button></h2>
    ${open && (of.loaded ? html`${list(all)}${all.length === 0 && html`<p class="sessions-none muted">No archived chats.</p>`}
        ${of.next && html`<${Button} kind="quiet small" onClick=${() => moreArchived()}>Show more<//>`}`
      : of.error ? html`<${Trouble} error=${of.error} again=${() => moreArchived()} />` : html`<${Busy} />`)}
  </section>`;
}

const DAY = 86_400_000;

const MONTH = dates({ month: 'long', year: 'numeric' });

/** Groups sorted sessions: `[[label, sessions]]`; pinned ones come first. */
function grouped(items) {
  const today = new Date(now()).setHours(0, 0, 0, 0);
  const groups = new Map();
  for (const one of items) {
    const age = (today - one.active_ms) / DAY;
    const label = one.placement === 'pinned' ? 'Pinned' : age <= 0 ? 'Today' : age <= 1 ? 'Yesterday' : age <= 7 ? 'Previous 7 days'
      : age <= 30 ? 'Previous 30 days' : MONTH.format(one.active_ms);
    if (!groups.has(label)) groups.set(label, []);
    groups.get(label).push(one);
  }
  return [...groups];
}

/** A badge for a session whose run waits for an answer. */
const NeedsYou = () => html`<span class="badge warn">Needs you</span>`;

/** One session. Updated only when its data changed, because there may be thousands. */
class Row extends Component {
  shouldComponentUpdate(next) {
    return ['session', 'current', 'reached', 'renaming', 'ticked'].some((name) => next[name] !== this.props[name]);
  }

  render({ session, current, reached, renaming, ticked, onTick, onRename, onReach }) {
    const { name, active_ms: at, running, waiting, unread } = session;
    const many = unread < MOST_UNREAD ? unread : `${MOST_UNREAD}+`;
    if (renaming) return html`<li><${Title} session=${session} onDone=${() => onRename(null)} /></li>`;
    if (ticked !== undefined) {
      // With Shift, selects all between this one and the last one.
      return html`<li class="sessions-ticked"><label title=${titleOf(session)}><input type="checkbox" checked=${ticked}
        onClick=${(event) => onTick(name, event.target.checked, event.shiftKey)} />
        <bdi class="sessions-title">${titleOf(session)}</bdi>${waiting ? html`<${NeedsYou} />` : running && html`<span class="spinner" aria-hidden="true"></span>`}</label></li>`;
    }
    const keys = (event) => {
      if (event.key === 'F2') onRename(name);
      else if (event.key === 'ArrowRight') event.currentTarget.parentElement.querySelector('.menu button').focus();
    };
    // The scrolling list would clip the menu; near the lower edge it opens upwards.
    const aim = (event) => {
      const row = event.currentTarget;
      row.classList.toggle('up', row.getBoundingClientRect().bottom > innerHeight - 340);
    };
    return html`<li class=${current ? 'current' : ''} onPointerDown=${aim} onKeyDown=${aim} onFocusIn=${() => reached || onReach(name)}>
      <a href=${href('s', name)} aria-current=${current ? 'page' : undefined} tabindex=${reached ? 0 : -1} title=${titleOf(session)}
        onKeyDown=${keys}>
        <bdi class="sessions-title">${titleOf(session)}</bdi>
        ${waiting ? html`<${NeedsYou} />` : running && html`<span class="spinner" aria-hidden="true"></span><span class="unseen">, at work</span>`}
        ${unread > 0 && !current && html`<span class="unread" aria-hidden="true">${many}</span><span class="unseen">, ${many} unread</span>`}
        ${!running && !waiting && !(unread > 0 && !current) && html`<${When} ms=${at} />`}
      </a>
      <${SessionMenu} session=${name} onRename=${() => onRename(name)} tabindex=${reached ? 0 : -1} />
    </li>`;
  }
}

const WEEKDAY = dates({ weekday: 'short' });
const DATE = dates({ day: 'numeric', month: 'short' });
const YEAR = dates({ month: 'short', year: 'numeric' });

/** A time in the shortest form that its group allows. */
function When({ ms }) {
  const today = new Date(now()).setHours(0, 0, 0, 0);
  const text = ms >= today ? clock(ms) : ms >= today - 6 * DAY ? WEEKDAY.format(ms) : ms >= today - 300 * DAY ? DATE.format(ms) : YEAR.format(ms);
  return html`<time class="sessions-when" dateTime=${new Date(ms).toISOString()} title=${fullTime(ms)}>${text}</time>`;
}

/** An editable title: Enter and leaving the field save it, Escape does not. */
function Title({ session, onDone }) {
  const field = useRef(null);
  const done = useRef(false);
  useLayoutEffect(() => field.current.select(), []);
  const end = async (keep) => {
    if (done.current) return;
    done.current = true;
    const title = field.current.value.trim();
    const focused = document.activeElement === field.current;
    const row = field.current.closest('li');
    try {
      if (keep && title && title !== givenTitle(session)) await rename(session.name, title);
    } catch (error) {
      report(error);
    }
    onDone();
    if (focused) setTimeout(() => row.querySelector('a')?.focus(), 0);
  };
  const keys = (event) => {
    event.stopPropagation();
    if (event.key === 'Enter' && !event.isComposing) end(true);
    if (event.key === 'Escape') end(false);
  };
  return html`<input ref=${field} class="sessions-field" aria-label=${`Title of ${session.name}`} defaultValue=${givenTitle(session)}
    onKeyDown=${keys} onBlur=${() => end(true)} />`;
}

const Marked = ({ pieces }) => pieces.map((one) => (one.marked ? html`<mark>${one.text}</mark>` : one.text));

/** Matching session titles at once, and messages when the daemon has responded. */
function Found({ q, current }) {
  const { items: listed, next: unloaded } = useStore(sessions);
  const away = useStore(archived);
  const { items, next, busy, error, more, again } = useSearch(q);
  const [most, show] = useState(TITLES);
  const words = wordsOf(q);
  const titles = useMemo(() => {
    const small = words.map((word) => word.toLowerCase());
    return [...listed, ...away.items].filter((one) => small.every((word) => `${one.title ?? ''} ${one.name}`.toLowerCase().includes(word)));
  }, [listed, away, q]);
  useEffect(() => {
    // All sessions must be loaded to search their titles.
    if (unloaded) moreSessions(500).catch(report);
    if (away.any && (!away.loaded || away.next) && !away.error) moreArchived();
  }, [unloaded, away]);
  const said = `${plural(titles.length, 'chat')} and ${plural(items?.length ?? 0, 'message')}${next ? ' or more' : ''} found`;
  return html`
    <p class="unseen" role="status">${busy ? '' : said}</p>
    ${titles.length > 0 && html`<section class="sessions-group" aria-label="Chats found"><h2>Chats</h2>
      <ul>${titles.slice(0, most).map((one) => html`<li key=${one.name} class=${one.name === current ? 'current' : ''}>
        <a href=${href('s', one.name)} aria-current=${one.name === current ? 'page' : undefined} title=${one.name}>
          <bdi class="sessions-title"><${Marked} pieces=${marked(titleOf(one), words)} /></bdi>
          ${one.placement === 'archived' && html`<span class="sessions-away"><${Icon} name="archive" size=${14} label="archived" /></span>`}<${When} ms=${one.active_ms} /></a></li>`)}</ul>
      ${titles.length > most && html`<${Button} kind="quiet small" onClick=${() => show(most + DRAWN)}>${plural(titles.length - most, 'more chat')}<//>`}
    </section>`}
    ${items?.length > 0 && html`<section class="sessions-group" aria-label="Messages found"><h2>Messages</h2>
      <ul>${items.map((one) => html`<li key=${one.id}><a class="sessions-hit" href=${href('s', one.session, 'm', String(one.id))}>
        <span class="sessions-of"><bdi>${titleOf(one.session)}</bdi><${When} ms=${one.at_ms} /></span>
        <span class="sessions-snippet"><span class="unseen">${one.role === 'user' ? 'You' : 'kiso'}: </span>
          <bdi><${Marked} pieces=${snippet(one.text, words)} /></bdi></span>
      </a></li>`)}</ul>
    </section>`}
    ${error && html`<${Trouble} error=${error} again=${again} />`}
    ${busy && html`<${Busy}>Looking through messages…<//>`}
    ${!busy && !error && next && html`<${Button} kind="quiet small" onClick=${more}>Search older messages<//>`}
    ${!busy && !error && !titles.length && !items?.length && html`<p class="sessions-none muted">
      ${items ? 'Nothing found.' : 'No chat has that title. To search messages, type at least two letters.'}</p>`}`;
}
