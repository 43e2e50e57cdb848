// A file beside a screen; the code that shows it comes with the first one.

import { html, useEffect, useState } from './preact.js';
import { style } from './modules.js';
import { report } from './ui.js';

/** Where the panel covers what it stands beside, as in panel.css. */
const NARROW = matchMedia('(max-width: 46rem)');

/** Whether the window is that narrow; the component is drawn again when that changes. */
export function useNarrow() {
  const [narrow, set] = useState(NARROW.matches);
  useEffect(() => {
    const change = () => set(NARROW.matches);
    NARROW.addEventListener('change', change);
    return () => NARROW.removeEventListener('change', change);
  }, []);
  return narrow;
}

/** The panel with the given properties. `onFail` is called if its code cannot be fetched. */
export function Beside({ onFail, ...props }) {
  const [Panel, set] = useState(null);
  useEffect(() => {
    Promise.all([import('./panel.js'), style('screens/panel.css')]).then(([module]) => set(() => module.Panel), (error) => {
      report(error);
      onFail();
    });
  }, []);
  return Panel && html`<${Panel} ...${props} />`;
}
