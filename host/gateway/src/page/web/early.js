// Runs before the page's scripts are loaded: sends the first requests of the screen in the address in parallel with loading the
// scripts.

import { askAhead, whoCame } from './lib/ahead.js';
import { SCREENS, prefetch, style } from './lib/modules.js';

/** The session that is opened without an address. */
const DEFAULT = 'default';

/** The first requests of each screen. A test checks that every response is used. */
const QUESTIONS = {
  s: (name, more) => (!name || (more && more !== 'f') ? [] : [`/sessions/${name}/messages?limit=50`, `/status/${name}`]),
  run: (id, more) => (id ? !more && [`/runs/${id}`, `/runs/${id}/trace?after=0&limit=100`] : ['/runs?limit=50']),
  skills: (name) => [name ? `/skills/${name}` : '/skills?limit=100'],
  pills: () => ['/pills'],
  schedule: () => ['/schedules'],
  files: (dir) => (dir ? [] : ['/files?limit=100']),
  usage: () => ['/usage?limit=90'],
  health: () => ['/health/details'],
};

/** The requests of the sidebar, for every screen. */
const ALWAYS = ['/sessions?placement=listed&limit=100', '/sessions?placement=pinned&limit=500', '/sessions?placement=archived&limit=1', '/models'];

const [place, name, more] = location.hash.replace(/^#\/?/, '').split('/');
const known = Object.hasOwn(SCREENS, place) && (place !== 's' || name) ? [place, name, more] : ['s', encodeURIComponent(localStorage.getItem('kiso.session') || (whoCame?.who.scope === 'chat' ? '' : DEFAULT))];
const [script, styles] = SCREENS[known[0]];
prefetch(script);
if (styles) style(styles);
const link = place.startsWith('code=');
if (whoCame && !link) {
  const [screen, ...of] = known;
  // Without any events yet, there is nothing to request.
  const questions = whoCame.who.last_event_id ? QUESTIONS[screen]?.(...of) || [] : [];
  for (const question of [...questions, ...ALWAYS]) askAhead(question);
} else if (!link) {
  // Nobody is logged in, or another site led here; in that case the browser sends the cookie only with requests from within the
  // page.
  askAhead('/me');
}
