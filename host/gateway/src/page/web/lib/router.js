// The state of the page in the address: everything that can be linked to is after the `#`.
//
//   #/s/SESSION            a conversation        #/s/SESSION/m/MESSAGE   with this message in view
//   #/s/SESSION/f/PATH     with a file of its workspace beside it
//   #/run/RUN              a trace               #/run/RUN/step/SEQ      with this step open
//   #/run/RUN/diff/OTHER   two runs beside each other
//   #/skills  #/skills/NAME  #/pills  #/schedule  #/files/DIRECTORY  #/memory  #/usage  #/health

import { store } from './preact.js';

/** Decoded parts of the path. */
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

/** Counts clicks on links to the current address, which the browser does not report. */
export const repeated = store(0);

document.addEventListener('click', (event) => {
  const link = event.target.closest?.('a[href^="#/"]');
  if (link && link.hash === location.hash) repeated.set((count) => count + 1);
});
