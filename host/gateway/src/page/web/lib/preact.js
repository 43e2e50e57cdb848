// Preact with htm, and what the page adds to them: stores that many components watch.

import { useEffect, useState } from '../vendor/preact.js';

export {
  html, render, Component,
  useState, useReducer, useEffect, useLayoutEffect, useRef, useMemo, useCallback, useErrorBoundary,
} from '../vendor/preact.js';

/** A value that components watch. `set` takes the new value, or a function of the old one. */
export function store(value) {
  const watchers = new Set();
  return {
    get: () => value,
    set(next) {
      const now = typeof next === 'function' ? next(value) : next;
      if (Object.is(now, value)) return;
      value = now;
      for (const watcher of [...watchers]) watcher(value);
    },
    watch(watcher) {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
  };
}

/** The value of a store, or what `select` takes of it; the component is drawn again when that changes. */
export function useStore(source, select = (value) => value) {
  const [, draw] = useState(0);
  const chosen = select(source.get());
  useEffect(() => {
    let last = chosen;
    const look = () => {
      const now = select(source.get());
      if (!Object.is(now, last)) {
        last = now;
        draw((count) => count + 1);
      }
    };
    look();
    return source.watch(look);
  }, [source, chosen]);
  return chosen;
}

/**
 * What `load(signal)` gives: `{value, error, loading, again}`. It is asked anew when `watched` changes and by `again()`;
 * the value that is there stays until the next one comes.
 */
export function useLoaded(load, watched = []) {
  const [state, set] = useState({ value: undefined, error: null, loading: true });
  const [turn, again] = useState(0);
  useEffect(() => {
    const ended = new AbortController();
    set((old) => ({ ...old, loading: true }));
    load(ended.signal).then(
      (value) => ended.signal.aborted || set({ value, error: null, loading: false }),
      (error) => ended.signal.aborted || set((old) => ({ ...old, error, loading: false })),
    );
    return () => ended.abort();
  }, [...watched, turn]);
  return { ...state, again: () => again((count) => count + 1), set: (value) => set((old) => ({ ...old, value })) };
}
