// Modules that are fetched when they are needed: each with all that it needs at once, not one after the other.

/** Module -> what it needs beyond what every screen has, as the daemon found it. */
const LATER = JSON.parse(document.getElementById('later')?.textContent || '{}');

/** Screen, as the address names it -> its module, and the styles that it alone has. */
export const SCREENS = {
  s: ['screens/chat.js'],
  run: ['screens/trace.js', 'screens/trace.css'],
  skills: ['screens/skills.js', 'screens/skills.css'],
  sites: ['screens/sites.js', 'screens/lists.css'],
  pills: ['screens/pills.js', 'screens/lists.css'],
  schedule: ['screens/schedule.js', 'screens/lists.css'],
  files: ['screens/files.js', 'screens/lists.css'],
  memory: ['screens/memory.js', 'screens/lists.css'],
  usage: ['screens/usage.js', 'screens/usage.css'],
  health: ['screens/health.js', 'screens/usage.css'],
};

const BASE = new URL('..', import.meta.url);

/** What was asked for: path -> a promise of it. */
const asked = new Map();

const link = (rel, path) => {
  if (!asked.has(path)) {
    asked.set(path, new Promise((done) => {
      document.head.append(Object.assign(document.createElement('link'), { rel, href: new URL(path, BASE).href, onload: done, onerror: done }));
    }));
  }
  return asked.get(path);
};

/** Asks for a module and all that it needs, without running it. */
export function prefetch(path) {
  for (const name of LATER[path] ?? []) link('modulepreload', name);
}

/** Loads a stylesheet of the page once; gives a promise. */
export const style = (path) => link('stylesheet', path);
