// Where the page is: everything that can be linked to stands behind the `#` of the address.
//
//   #/s/SESSION            a conversation        #/s/SESSION/m/MESSAGE   with this message in view
//   #/s/SESSION/f/PATH     with a file of its workspace beside it
//   #/run/RUN              a trace               #/run/RUN/step/SEQ      with this step open
//   #/run/RUN/diff/OTHER   two runs beside each other
//   #/skills  #/skills/NAME  #/pills  #/schedule  #/files/DIRECTORY  #/memory  #/usage  #/health

import { store } from './preact.js';

/** Parts of the path, decoded. */
export const route = store(parse());

export const href = (...parts) => `#/${parts.map(encodeURIComponent).join('/')}`;

export function go(...parts) {
  location.hash = href(...parts);
}

function parse() {
  const path = location.hash.replace(/^#\/?/, '');
  try {
    return path.split('/').filter(Boolean).map(decodeURIComponent);
  } catch {
    return [];
  }
}

window.addEventListener('hashchange', () => route.set(parse()));

/** Counts how often somebody follows a link to where they are already, of which the browser tells nothing. */
export const repeated = store(0);

document.addEventListener('click', (event) => {
  const link = event.target.closest?.('a[href^="#/"]');
  if (link && link.hash === location.hash) repeated.set((count) => count + 1);
});
