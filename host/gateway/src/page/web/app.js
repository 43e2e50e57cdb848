// The page: logged-in users see the frame with a screen, everybody else sees the login.

import { html, render, store, useEffect, useLayoutEffect, useRef, useState, useStore, useErrorBoundary } from './lib/preact.js';
import { isAdmin, known, logIn, logOut, me, whoAmI } from './lib/api.js';
import { connection, follow, unfollow } from './lib/events.js';
import { href, route } from './lib/router.js';
import { SCREENS as FILES, prefetch, style } from './lib/modules.js';
import { Busy, Button, Icon, Menu, Overlay, Trouble, announce, confirm, report, toast } from './lib/ui.js';
import { Login, Logo } from './screens/login.js';
import { Sidebar } from './screens/sessions.js';
import { ConnectDialog, loadModels } from './lib/models.js';
import { query } from './lib/search.js';
import { drawer as sidebar, freshName, unread } from './lib/sessions.js';
// These modules receive the output of runs, and send unsent messages, whichever screen is open.
import { notifications, toggleNotifications } from './lib/notify.js';
import './lib/run-live.js';
import './lib/unsent.js';

/** Screens that are loaded when they are first opened. */
const SCREENS = {
  run: { title: 'Runs', icon: 'trace', load: () => import('./screens/trace.js') },
  skills: { title: 'Skills', icon: 'skills', load: () => import('./screens/skills.js') },
  sites: { title: 'Sites', icon: 'link', load: () => import('./screens/sites.js'), admin: true },
  pills: { title: 'Pills', icon: 'pill', load: () => import('./screens/pills.js') },
  schedule: { title: 'Schedule', icon: 'clock', load: () => import('./screens/schedule.js') },
  files: { title: 'Files', icon: 'files', load: () => import('./screens/files.js') },
  memory: { title: 'Memory', icon: 'memory', load: () => import('./screens/memory.js'), admin: true },
  usage: { title: 'Usage', icon: 'usage', load: () => import('./screens/usage.js') },
  health: { title: 'Health', icon: 'health', load: () => import('./screens/health.js') },
};

/** The chat screen, which needs the most code. */
const CHAT = { title: 'Chat', load: () => import('./screens/chat.js') };

/** Milliseconds after which the chat screen is loaded in advance. */
const BY_AND_BY = 3_000;

/** The session that is opened without an address. */
const DEFAULT = 'default';

/** Milliseconds before a lost connection is reported: a restarting daemon is back earlier. */
const PATIENCE = 1_000;

/** Milliseconds between attempts to reach an unreachable daemon before there is an event stream. */
const AGAIN = 2_000;

/** Width below which the sidebar overlays the screen, as in base.css. */
const NARROW = '(max-width: 46rem)';

let trouble = null;

function App() {
  const who = useStore(me);
  const someone = Boolean(who);
  useEffect(() => {
    if (!someone) return undefined;
    follow();
    return unfollow;
  }, [someone]);
  if (who === undefined) return html`<main class="boot"><${Away} /></main>`;
  if (who === false) return html`<main class="boot"><${Busy}>Logging out…<//></main>`;
  return html`${who ? html`<${Frame} />` : html`<${Login} trouble=${trouble} />`}<${Overlay} />`;
}

/** Shown if the daemon is unreachable at the first request. */
function Away() {
  const [error, set] = useState(null);
  const ask = () => whoAmI().catch(set);
  useEffect(() => {
    ask();
  }, []);
  // There is no event stream yet that would report the daemon's return. Only network errors are retried, because a refusal would
  // be repeated.
  useEffect(() => {
    const timer = error?.status === 0 && setTimeout(ask, AGAIN);
    return () => clearTimeout(timer);
  }, [error]);
  return error ? html`<${Trouble} error=${error} again=${ask} />` : html`<${Busy}>kiso is loading…<//>`;
}

function Frame() {
  const [place, name] = useStore(route);
  const drawer = useStore(sidebar);
  const setDrawer = sidebar.set;
  const waiting = useStore(unread);
  const [Help, showHelp] = useState(null);
  const help = () => import('./lib/keys.js').then(({ Keys }) => showHelp(() => Keys), report);
  const main = useRef(null);
  const first = useRef(true);
  const screen = Object.hasOwn(SCREENS, place) ? SCREENS[place] : undefined;
  const title = screen?.title ?? 'Chat';
  useEffect(() => void loadModels(), []);
  // Search results are in the sidebar, so a search from within a chat opens it.
  useEffect(() => query.watch((q) => q && matchMedia(NARROW).matches && setDrawer(true)), []);
  useEffect(() => {
    // A chat sets its own title.
    if (place !== 's') document.title = `${waiting ? `(${waiting}) ` : ''}${title} · kiso`;
  }, [title, place, waiting]);
  useEffect(() => {
    // A user who may read only their own sessions may not have the default one.
    if (place !== 's' && !screen) location.replace(href('s', localStorage.getItem('kiso.session') || (isAdmin() ? DEFAULT : freshName())));
    setDrawer(false);
  }, [place, name]);
  useLayoutEffect(() => {
    // Keyboard and screen reader users start at the head of a new screen; a chat has its own input field.
    if (!first.current && screen) main.current?.focus();
    first.current = false;
  }, [place]);
  useEffect(() => {
    const keys = (event) => {
      if (event.key === 'Escape' && document.querySelector('.frame.drawn')) {
        setDrawer(false);
        [...document.querySelectorAll('[aria-controls=sidebar]')].find((one) => one.checkVisibility())?.focus();
      }
      if ((event.ctrlKey || event.metaKey) && event.key === 'k') {
        event.preventDefault();
        if (matchMedia(NARROW).matches) setDrawer(true);
        setTimeout(() => document.getElementById('search')?.focus(), 0);
      }
      // In a text field or a dialog, it is an ordinary character.
      if (event.key === '?' && !event.target.closest('input, textarea, select, [contenteditable], dialog')) {
        event.preventDefault();
        help();
      }
    };
    const [narrow, wide] = [matchMedia(NARROW), () => setDrawer(false)];
    document.addEventListener('keydown', keys);
    narrow.addEventListener('change', wide);
    return () => {
      document.removeEventListener('keydown', keys);
      narrow.removeEventListener('change', wide);
    };
  }, []);
  return html`<div class=${`frame ${drawer ? 'drawn' : ''} ${place === 's' ? 'talk' : ''}`}>
    <a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); main.current.focus(); }}>Skip to the content</a>
    <header class="topbar">
      <${Button} kind="quiet" icon="menu" label=${drawer ? 'Close the menu' : 'Open the menu'} aria-expanded=${String(drawer)} aria-controls="sidebar" onClick=${() => setDrawer(!drawer)} />
      <span class="brand"><${Logo} /> kiso</span>
      ${waiting > 0 && html`<span class="unread" aria-label=${`${waiting} unread`}>${waiting}</span>`}
    </header>
    <aside id="sidebar" class="sidebar" aria-label="Chats and screens" onClick=${(event) => event.target.closest('a') && setDrawer(false)}>
      <div class="brand"><${Logo} /> <strong>kiso</strong><${Button} kind="quiet sidebar-close" icon="close" label="Close the sidebar" onClick=${() => setDrawer(false)} /></div>
      <${Sidebar} current=${place === 's' ? name : null} onLeave=${() => setDrawer(false)} />
      <${Manage} open=${Boolean(screen)}>
        ${Object.entries(SCREENS).filter(([, one]) => one.icon && (!one.admin || isAdmin())).map(([key, one]) => html`<a key=${key} href=${href(key)} aria-current=${place === key ? 'page' : undefined}>
          <${Icon} name=${one.icon} />${one.title}</a>`)}
      <//>
      <${Account} onKeys=${help} />
    </aside>
    ${Help && html`<${Help} onClose=${() => showHelp(null)} />`}
    <${ConnectDialog} />
    <div class="veil" onClick=${() => setDrawer(false)}></div>
    <main id="main" ref=${main} tabindex="-1" inert=${drawer} aria-label=${title}>
      <${Connection} />
      ${screen ? html`<${Lazy} key=${place} css=${FILES[place][1]} ...${screen} />` : place === 's' && name ? html`<${Lazy} key="s" session=${name} ...${CHAT} />` : null}
    </main>
  </div>`;
}

/** Screens for administrators, collapsed by default; `open` if one of them is shown. */
function Manage({ open, children }) {
  const [unfolded, set] = useState(open);
  useEffect(() => set(open), [open]);
  return html`<nav class="places" aria-label="Screens">
    <button type="button" class="places-fold" aria-expanded=${String(unfolded)} onClick=${() => set(!unfolded)}>
      <${Icon} name="settings" />Manage<${Icon} name="chevron" size=${14} /></button>
    ${unfolded && html`<div class="places-all">${children}</div>`}
  </nav>`;
}

/** A screen whose module is loaded when it is needed. */
function Lazy({ load, css, title, session }) {
  const [state, set] = useState({});
  // An error in one skill or run does not affect the others.
  const shown = useStore(route, (parts) => parts.slice(0, 2).join('/'));
  const fetch = () => {
    set({});
    Promise.all([load(), css && style(css)]).then(
      ([module]) => set({ Screen: module.default }),
      // Another version of kiso has other files.
      () => set({ error: { message: `${title} could not be loaded`, hint: 'kiso was updated, or is away: reload the page' } }),
    );
  };
  useEffect(fetch, []);
  // A browser may remember that a module could not be loaded, so the page reloads. Nothing is lost by that.
  useEffect(() => state.error && connection.watch(({ state: now }) => now === 'open' && location.reload()), [state.error]);
  if (state.error) return html`<${Trouble} error=${state.error} again=${() => location.reload()} />`;
  return state.Screen ? html`<${Guarded} key=${session} at=${shown}><${state.Screen} session=${session} /><//>` : html`<${Busy} />`;
}

/** Catches errors of a screen, so that the others keep working. The screen is tried again when `at` changes. */
function Guarded({ at, children }) {
  const [error, reset] = useErrorBoundary((caught) => console.error(caught));
  useEffect(() => {
    if (error) reset();
  }, [at]);
  if (!error) return children;
  return html`<${Trouble} error=${{ message: 'Something went wrong here.', hint: String(error.message ?? error) }} again=${reset} />`;
}

/** Shows when kiso is offline, and when it is back. */
function Connection() {
  const { state, since } = useStore(connection);
  const [shown, set] = useState(false);
  useEffect(() => {
    if (state !== 'lost') {
      if (shown) announce('Connected again');
      set(false);
      return undefined;
    }
    const timer = setTimeout(set, Math.max(0, PATIENCE - (Date.now() - since)), true);
    return () => clearTimeout(timer);
  }, [state]);
  return shown && html`<div class="away" role="status"><span class="spinner" aria-hidden="true"></span>kiso is offline. Reconnecting… Your messages are saved.</div>`;
}

const THEMES = [['', 'System theme', 'screen'], ['light', 'Light', 'sun'], ['dark', 'Dark', 'moon']];

/** Asks for confirmation. Until the logout is complete, nothing may send requests. */
async function leave() {
  const text = isAdmin() ? 'To log in again, run “kiso open” on the machine that runs kiso, and open its link. Your chats stay.'
    : 'To log in again, you need your token, or a new link from the person who runs this kiso. Your chats stay.';
  if (!await confirm({ title: 'Log out?', text, action: 'Log out' })) return;
  unfollow();
  try {
    await logOut();
  } catch (error) {
    follow();
    throw error;
  }
}

function Account({ onKeys }) {
  const who = useStore(me);
  const theme = useStore(chosen);
  const notices = useStore(notifications);
  const choose = (value) => () => {
    localStorage.setItem(THEME, value);
    paint();
  };
  const themes = THEMES.map(([value, label, icon]) => ({ label, icon, checked: theme === value, run: choose(value) }));
  const items = [
    ...themes,
    { label: 'Keyboard shortcuts', icon: 'info', run: onKeys },
    ...(notices === 'none' ? [] : [{ label: notices === 'on' ? 'Turn off notifications' : 'Turn on notifications', icon: 'bell', run: toggleNotifications }]),
    { label: 'Licenses', icon: 'file', href: new URL('licenses.txt', import.meta.url).href },
    { label: 'Log out', icon: 'logout', run: leave },
  ];
  return html`<footer class="account">
    <div><bdi class="strong">${who?.name ?? 'owner'}</bdi><span class="muted">${who?.scope === 'admin' ? 'administrator' : 'may chat'} · kiso ${who?.version}</span></div>
    <${Menu} label="Account and theme" items=${items} up />
  </footer>`;
}

const THEME = 'kiso.theme';

/** "light", "dark", or "" for the system's. */
const chosen = store('');

function paint() {
  const theme = localStorage.getItem(THEME) ?? '';
  chosen.set(theme);
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}

/** The one-time link of `kiso open`. */
const CODE = /^#code=([\w.-]+)$/;

/** Prevents the browser from leaving the page when a file is dropped on a part that does not accept files. */
function keepFiles(event) {
  if (!event.defaultPrevented && event.dataTransfer?.types.includes('Files')) {
    event.preventDefault();
    event.dataTransfer.dropEffect = 'none';
  }
}

async function begin() {
  paint();
  setTimeout(prefetch, BY_AND_BY, 'screens/chat.js');
  // Another tab has changed the theme.
  window.addEventListener('storage', ({ key }) => (key === THEME || key === null) && paint());
  // Pasting a link into an open tab does not load the page by itself.
  window.addEventListener('hashchange', () => CODE.test(location.hash) && location.reload());
  window.addEventListener('dragover', keepFiles);
  window.addEventListener('drop', keepFiles);
  const code = CODE.exec(location.hash)?.[1];
  if (code) {
    // Removes the code from the browser history and from links that are passed on.
    history.replaceState(null, '', location.pathname);
    route.set([]);
    try {
      await logIn({ code });
    } catch (error) {
      trouble = error;
      // A user who follows an old link may already be logged in.
      await whoAmI().catch(() => me.set(null));
      if (me.get()) {
        toast(error.message, 'bad', error.hint);
        trouble = null;
      }
    }
  }
  if (!code) known();
  const root = document.getElementById('app');
  root.textContent = '';
  render(html`<${App} />`, root);
}

begin();
