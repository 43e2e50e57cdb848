// What can be completed while a message is written: `!pill` and `/command` at its start, models after `/model`, `#tag` and
// `@skill` at the start of a word, and a skill's arguments behind it.

import { store } from './preact.js';
import { get, me } from './api.js';
import { on } from './events.js';

const NOTHING = { pills: [], tags: [], commands: [], models: [], skills: [] };

/** What `GET /input` says can be written. */
export const input = store(NOTHING);

/** Milliseconds after which it is asked again: skills are installed and removed. */
const FRESH = 30_000;

let asked = 0;

/** Without an answer, nothing is completed, and messages are written all the same. */
export async function loadInput() {
  if (Date.now() - asked < FRESH) return;
  asked = Date.now();
  try {
    input.set({ ...NOTHING, ...await get('/input') });
  } catch {
    asked = 0;
  }
}

/** Something of it has changed. */
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
 * Kinds of words: what marks one, what stands before the caret (its last part is what was typed of the word), and the words that there
 * are. Arguments are offered without one being chosen: what follows a skill may as well be a sentence.
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

/** Characters before the caret that are looked at; no word is longer. */
const LOOK = 200;

/**
 * What fits what stands before the caret, or null: `{label, from, to, open, options: [{text, more, about, at, length}]}`. `text` takes
 * the place of what is between `from` and `to`; `at` and `length` tell which part of `text` was typed. `open`: none is meant yet.
 */
export function complete(text, caret, known) {
  const start = Math.max(0, caret - LOOK);
  // Where the beginning is out of sight, a word at the start of what is left stands at no start.
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
    // A word is replaced as a whole, also what stands behind the caret.
    const rest = /^[\w.:/-]*/.exec(text.slice(caret, caret + LOOK))[0].length;
    return { label, from: caret - typed.length - sign.length, to: caret + rest, open: Boolean(open && !typed), options };
  }
  return null;
}

/** The word itself, what begins with it, what has it at the start of a part, what has it anywhere. */
function rank({ name, at }, typed) {
  if (name.toLowerCase() === typed) return 0;
  if (at === 0) return 1;
  return /[^a-z0-9]/i.test(name[at - 1]) ? 2 : 3;
}

/** The pill at the start of a message, or null. */
export const pillOf = (text) => /^!([\w-]+)(?=\s|$)/.exec(text)?.[1] ?? null;
