// Lists with pages.

import { html, useEffect, useRef, useState } from './preact.js';
import { Busy, Button, Trouble } from './ui.js';

const NOTHING = { items: [], next: null, loading: true, error: null, known: false, first: null };

/**
 * A list with pages from `load(before, signal)`, `{items, next}`. It restarts when `watched` changes and on `again()`; `more()`
 * loads the next page, `change` receives a function of the items. `first` is the unchanged first page.
 */
export function usePages(load, watched = []) {
  const [state, set] = useState(NOTHING);
  const asking = useRef(null);
  const ask = (before) => {
    asking.current?.abort();
    const ended = new AbortController();
    asking.current = ended;
    set((old) => ({ ...old, loading: true, error: null }));
    load(before, ended.signal).then(
      (page) => ended.signal.aborted || set((old) => ({
        items: before === null ? page.items : [...old.items, ...page.items],
        next: page.next ?? null, loading: false, error: null, known: true, first: before === null ? page : old.first,
      })),
      (error) => ended.signal.aborted || set((old) => ({ ...old, loading: false, error })),
    );
  };
  useEffect(() => {
    ask(null);
    return () => asking.current?.abort();
  }, watched);
  return {
    ...state,
    more: () => ask(state.next),
    again: () => ask(state.known && state.error ? state.next : null),
    reload: () => ask(null),
    change: (edit) => set((old) => ({ ...old, items: edit(old.items) })),
  };
}

/** A paged list: a busy sign, an error, `empty`, or `children(items)` and a control that loads more. */
export function Pages({ of, empty, children }) {
  if (!of.known) return of.error ? html`<${Trouble} error=${of.error} again=${of.again} />` : html`<${Busy} />`;
  return html`${of.items.length ? children(of.items) : !of.next && empty}
    ${of.error && html`<${Trouble} error=${of.error} again=${of.again} />`}
    ${of.next && !of.error && html`<p class="pages-more"><${Button} icon="down" busy=${of.loading} onClick=${of.more}>Show more<//></p>`}`;
}
