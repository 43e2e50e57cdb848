// A file beside a screen; the code for it is loaded with the first file.

import { html, useEffect, useState } from './preact.js';
import { style } from './modules.js';
import { report } from './ui.js';

/** Width below which the panel covers the screen, as in panel.css. */
const NARROW = matchMedia('(max-width: 46rem)');

/** Returns whether the window is narrow, and updates the component when that changes. */
export function useNarrow() {
  const [narrow, set] = useState(NARROW.matches);
  useEffect(() => {
    const change = () => set(NARROW.matches);
    NARROW.addEventListener('change', change);
    return () => NARROW.removeEventListener('change', change);
  }, []);
  return narrow;
}

/** The panel with the given properties. `onFail` is called if its code cannot be loaded. */
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
