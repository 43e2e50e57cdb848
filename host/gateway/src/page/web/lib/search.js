// Search in messages.

import { store, useEffect, useState } from './preact.js';
import { get } from './api.js';
import { plain } from './run-text.js';

/** Messages per page, maximum characters of a query, and milliseconds without a key press before the search starts. */
const PAGE = 30;
const LONGEST = 200;
const REST = 250;

/** Minimum number of letters for a search in messages: with fewer, almost all messages match. */
const SHORTEST = 2;

/** Maximum number of requests for one page: each searches only a part of the messages. */
const TURNS = 4;

/** Characters shown before and after the first match. */
const BEFORE = 40;
const BEHIND = 110;

/** The query in the sidebar. */
export const query = store('');

/** Starts a search, and moves the focus to it. */
export function lookFor(text) {
  query.set(text);
  // On a narrow screen, the sidebar becomes visible only now.
  setTimeout(() => document.getElementById('search')?.focus(), 0);
}

/** Returns the words of a query. */
export const wordsOf = (q) => q.trim().split(/\s+/).filter(Boolean);

const escaped = (word) => word.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');

/** Returns a pattern that matches any of these words. */
const pattern = (words) => new RegExp(words.map(escaped).sort((a, b) => b.length - a.length).join('|'), 'giu');

/** Splits a text at the matches: `[{text, marked}]`. */
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

/** Markdown syntax that is not readable text. */
const SIGNS = /```\S*|[|*`]+|\s[-:]{3,}(?=\s)/g;

/** Returns the part of a message around the words, on one line, in pieces as from `marked`. Adjacent words take precedence. */
export function snippet(text, words) {
  const at = (new RegExp(words.map(escaped).join('\\s+'), 'iu').exec(text) ?? pattern(words).exec(text))?.index ?? 0;
  let [from, to] = [Math.max(0, at - BEFORE), Math.min(text.length, at + BEHIND)];
  // Does not split a word or a surrogate pair.
  if (from) from += Math.max(0, text.slice(from, at).search(/\s/));
  if (/[\ud800-\udbff]/.test(text[to - 1] ?? '')) to -= 1;
  const looked = words.some((word) => word.search(SIGNS) >= 0) ? text.slice(from, to) : text.slice(from, to).replace(SIGNS, ' ');
  const part = plain(looked).replace(/\s+/g, ' ').trim();
  return marked(`${from ? '… ' : ''}${part}${to < text.length ? ' …' : ''}`, words);
}

/**
 * Returns the results for `q`, which is sent after a pause in typing: `{items, next, busy, error, more, again}`. `items` is null
 * before the first search; `more()` continues further back, `again()` repeats the search.
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
