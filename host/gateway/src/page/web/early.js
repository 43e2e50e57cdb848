// Runs before the page itself is there: what the screen needs that the address names is asked for together with all else.

import { askAhead, whoCame } from './lib/ahead.js';
import { SCREENS, prefetch, style } from './lib/modules.js';

/** The conversation of who opens the page without an address. */
const DEFAULT = 'default';

/** What each screen asks for first. A test holds that nothing is asked for that nobody takes. */
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

/** What the sidebar asks for, whatever the screen. */
const ALWAYS = ['/sessions?placement=listed&limit=100', '/sessions?placement=pinned&limit=500', '/sessions?placement=archived&limit=1', '/models'];

const [place, name, more] = location.hash.replace(/^#\/?/, '').split('/');
const known = Object.hasOwn(SCREENS, place) && (place !== 's' || name) ? [place, name, more] : ['s', encodeURIComponent(localStorage.getItem('kiso.session') || (whoCame?.who.scope === 'chat' ? '' : DEFAULT))];
const [script, styles] = SCREENS[known[0]];
prefetch(script);
if (styles) style(styles);
const link = place.startsWith('code=');
if (whoCame && !link) {
  const [screen, ...of] = known;
  // Where nothing has happened yet there is nothing to ask for.
  const questions = whoCame.who.last_event_id ? QUESTIONS[screen]?.(...of) || [] : [];
  for (const question of [...questions, ...ALWAYS]) askAhead(question);
} else if (!link) {
  // Nobody is logged in, or another site led here, of which the browser tells only what asks from within the page.
  askAhead('/me');
}
