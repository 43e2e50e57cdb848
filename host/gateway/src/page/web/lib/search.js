// Messages by their words.

import { store, useEffect, useState } from './preact.js';
import { get } from './api.js';
import { plain } from './run-text.js';

/** Messages of a page, characters of a question, and milliseconds without a key before it is asked. */
const PAGE = 30;
const LONGEST = 200;
const REST = 250;

/** Letters from which on messages are looked through: with fewer, almost all fit. */
const SHORTEST = 2;

/** Requests that are made for one page: the daemon looks through a part of the messages with each. */
const TURNS = 4;

/** Characters shown before and behind the first word that was found. */
const BEFORE = 40;
const BEHIND = 110;

/** What is looked for in the sidebar. */
export const query = store('');

/** Looks for something, and leads to where it is found. */
export function lookFor(text) {
  query.set(text);
  // On a narrow screen the sidebar comes into view only now.
  setTimeout(() => document.getElementById('search')?.focus(), 0);
}

/** The words of a question. */
export const wordsOf = (q) => q.trim().split(/\s+/).filter(Boolean);

const escaped = (word) => word.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');

/** What finds any of these words. */
const pattern = (words) => new RegExp(words.map(escaped).sort((a, b) => b.length - a.length).join('|'), 'giu');

/** Cuts a text into `[{text, marked}]` at the words that were looked for. */
export function marked(text, words) {
  if (!words.length) return [{ text }];
  const pieces = [];
  let from = 0;
  for (const found of text.matchAll(pattern(words))) {
    if (found.index > from) pieces.push({ text: text.slice(from, found.index) });
    pieces.push({ text: found[0], marked: true });
    from = found.index + found[0].length;
  }
  if (from < text.length) pieces.push({ text: text.slice(from) });
  return pieces;
}

/** What Markdown is made of, and nobody reads. */
const SIGNS = /```\S*|[|*`]+|\s[-:]{3,}(?=\s)/g;

/** The part of a message around the words, on one line, in pieces as of `marked`. Where they stand together comes first. */
export function snippet(text, words) {
  const at = (new RegExp(words.map(escaped).join('\\s+'), 'iu').exec(text) ?? pattern(words).exec(text))?.index ?? 0;
  let [from, to] = [Math.max(0, at - BEFORE), Math.min(text.length, at + BEHIND)];
  // Neither in the middle of a word nor of a character of two halves.
  if (from) from += Math.max(0, text.slice(from, at).search(/\s/));
  if (/[\ud800-\udbff]/.test(text[to - 1] ?? '')) to -= 1;
  const looked = words.some((word) => word.search(SIGNS) >= 0) ? text.slice(from, to) : text.slice(from, to).replace(SIGNS, ' ');
  const part = plain(looked).replace(/\s+/g, ' ').trim();
  return marked(`${from ? '… ' : ''}${part}${to < text.length ? ' …' : ''}`, words);
}

/**
 * What was found for `q`, asked when nobody writes for a moment: `{items, next, busy, error, more, again}`. `items` is null as
 * long as nothing was asked; `more()` looks further back, `again()` once more.
 */
export function useSearch(q) {
  const asked = q.trim().slice(0, LONGEST);
  const [state, set] = useState({ items: null, next: null, busy: false, error: null });
  const [turn, again] = useState({ before: null });
  useEffect(() => {
    again({ before: null });
    set({ items: null, next: null, busy: asked.length >= SHORTEST, error: null });
  }, [asked]);
  useEffect(() => {
    if (asked.length < SHORTEST) return undefined;
    const ended = new AbortController();
    const look = async () => {
      let [found, { before }] = [[], turn];
      set((old) => ({ ...old, busy: true, error: null }));
      try {
        for (let asks = 0; asks < TURNS && found.length < PAGE; asks += 1) {
          const page = await get('/search', { q: asked, before, limit: PAGE }, ended.signal);
          found = [...found, ...page.items];
          before = page.next ?? null;
          if (!before) break;
        }
        set((old) => ({ items: [...(turn.before ? old.items ?? [] : []), ...found], next: before, busy: false, error: null }));
      } catch (error) {
        if (!ended.signal.aborted) set((old) => ({ ...old, busy: false, error }));
      }
    };
    const timer = setTimeout(look, turn.before ? 0 : REST);
    return () => {
      clearTimeout(timer);
      ended.abort();
    };
  }, [asked, turn]);
  return { ...state, more: () => again({ before: state.next }), again: () => again({ ...turn }) };
}
