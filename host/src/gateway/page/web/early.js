// Runs before the page itself is there: what the screen needs that the address names is asked for together with all else.

import { prefetch } from './lib/modules.js';

/** Screens whose module has another name. */
const NAMES = { '': 'chat', s: 'chat', run: 'trace' };

const [, place] = /^#?\/?([a-z]*)/.exec(location.hash);
prefetch(`screens/${NAMES[place] ?? place}.js`);
