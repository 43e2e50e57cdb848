// Modules that are fetched when they are needed: each with all that it needs at once, not one after the other.

/** Module -> what it needs beyond what every screen has, as the daemon found it. */
const LATER = JSON.parse(document.getElementById('later')?.textContent || '{}');

const BASE = new URL('..', import.meta.url);

const link = (attributes) => {
  const { href } = attributes;
  const there = document.querySelector(`link[href="${href}"]`);
  if (there) return null;
  const made = Object.assign(document.createElement('link'), attributes);
  document.head.append(made);
  return made;
};

/** Asks for a module and all that it needs, without running it. */
export function prefetch(path) {
  for (const name of LATER[path] ?? []) link({ rel: 'modulepreload', href: new URL(name, BASE).href });
}

/** Loads a stylesheet of the page once; gives a promise. */
export function style(path) {
  return new Promise((done) => {
    const made = link({ rel: 'stylesheet', href: new URL(path, BASE).href });
    if (made) made.onload = made.onerror = () => done();
    else done();
  });
}
