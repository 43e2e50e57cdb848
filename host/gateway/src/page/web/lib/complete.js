// Completion in a message: `!pill` and `/command` at its start, models after `/model`, `#tag` and `@skill` at the start of a
// word, and arguments after a skill.

import { store } from './preact.js';
import { get, me } from './api.js';
import { on } from './events.js';

const NOTHING = { pills: [], tags: [], commands: [], models: [], skills: [] };

/** The available input from `GET /input`. */
export const input = store(NOTHING);

/** Milliseconds after which it is loaded again, because skills can be installed and removed. */
const FRESH = 30_000;

let asked = 0;

/** Loads the available input. If that fails, nothing is completed, and messages can be written all the same. */
export async function loadInput() {
  if (Date.now() - asked < FRESH) return;
  asked = Date.now();
  try {
    input.set({ ...NOTHING, ...await get('/input') });
  } catch {
    asked = 0;
  }
}

/** Marks the available input as changed. */
export function renewInput() {
  asked = 0;
  return loadInput();
}

on('gap', () => { asked = 0; });
me.watch((who) => {
  if (who) return;
  asked = 0;
  input.set(NOTHING);
});

/**
 * Kinds of words: the sign that marks one, the expected text before the caret (its last group is the typed part of the word), and
 * the available words. Arguments are suggested without a selected entry, because an ordinary sentence may follow a skill.
 */
const KINDS = [
  { label: 'Pills', sign: '!', before: /^!([\w-]*)$/, of: ({ pills }) => pills.map((one) => ({ name: one.name, about: one.description })) },
  {
    label: 'Commands', sign: '/', before: /^\/([a-z]*)$/,
    of: ({ commands }) => commands.map((one) => ({ name: one.name, more: one.args, about: one.summary })),
  },
  { label: 'Models', sign: '', before: /^\/model +([^\s]*)$/, of: ({ models }) => ['default', ...models].map((name) => ({ name })) },
  {
    label: 'Tags', sign: '#', before: /(?:^|\s)#([\w-]*)$/,
    of: ({ tags }) => tags.map((one) => ({ name: one.name, about: one.skills.join(', ') })),
  },
  {
    label: 'Skills', sign: '@', before: /(?:^|\s)@([\w.-]*)$/,
    of: ({ skills }) => skills.map((one) => ({ name: one.name, about: one.summary })),
  },
  {
    label: 'Arguments', sign: '', open: true, before: /(?:^|\s)@([\w.-]+)((?: +[\w-]+=[^\s]*)*) +([\w-]*)$/,
    of: ({ skills }, [, skill, given]) => (skills.find((one) => one.name === skill)?.args ?? [])
      .filter((arg) => !given.includes(` ${arg}=`)).map((arg) => ({ name: `${arg}=` })),
  },
];

/** Number of characters before the caret that are examined; no word is longer. */
const LOOK = 200;

/**
 * Returns the suggestions for the text before the caret, or null:
 * `{label, from, to, open, options: [{text, more, about, at, length}]}`. `text` replaces the text between `from` and `to`; `at`
 * and `length` locate the typed part in `text`. `open`: no entry is selected yet.
 */
export function complete(text, caret, known) {
  const start = Math.max(0, caret - LOOK);
  // If the beginning was cut off, a word at the start is not at the start of the message.
  const before = (start ? '\u0000' : '') + text.slice(start, caret);
  for (const { label, sign, open, before: pattern, of } of KINDS) {
    const found = pattern.exec(before);
    if (!found) continue;
    const typed = found.at(-1).toLowerCase();
    const options = of(known, found).map((one) => ({ ...one, text: sign + one.name, at: one.name.toLowerCase().indexOf(typed) }))
      .filter((one) => one.at >= 0)
      .sort((a, b) => rank(a, typed) - rank(b, typed))
      .map((one) => ({ ...one, at: one.at + sign.length, length: typed.length }));
    if (!options.length) return null;
    // The whole word is replaced, including the part after the caret.
    const rest = /^[\w.:/-]*/.exec(text.slice(caret, caret + LOOK))[0].length;
    return { label, from: caret - typed.length - sign.length, to: caret + rest, open: Boolean(open && !typed), options };
  }
  return null;
}

/** Ranks matches: the exact word, a prefix, the start of a part, any position. */
function rank({ name, at }, typed) {
  if (name.toLowerCase() === typed) return 0;
  if (at === 0) return 1;
  return /[^a-z0-9]/i.test(name[at - 1]) ? 2 : 3;
}

/** Returns the pill at the start of a message, or null. */
export const pillOf = (text) => /^!([\w-]+)(?=\s|$)/.exec(text)?.[1] ?? null;
