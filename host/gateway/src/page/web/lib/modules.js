// Modules that are loaded on demand: each together with all its dependencies, instead of one after the other.

/** Module -> its dependencies beyond those of every screen, as determined by the daemon. */
const LATER = JSON.parse(document.getElementById('later')?.textContent || '{}');

/** Screen, as named in the address -> its module, and its own styles. */
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

/** Loaded files: path -> a promise. */
const asked = new Map();

const link = (rel, path) => {
  if (!asked.has(path)) {
    asked.set(path, new Promise((done) => {
      document.head.append(Object.assign(document.createElement('link'), { rel, href: new URL(path, BASE).href, onload: done, onerror: done }));
    }));
  }
  return asked.get(path);
};

/** Preloads a module and all its dependencies, without running it. */
export function prefetch(path) {
  for (const name of LATER[path] ?? []) link('modulepreload', name);
}

/** Loads a stylesheet of the page once; returns a promise. */
export const style = (path) => link('stylesheet', path);
