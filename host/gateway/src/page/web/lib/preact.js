// Preact with htm, and the page's addition to them: stores that components can watch.

import { useEffect, useState } from '../vendor/preact.js';

export {
  html, render, Component,
  useState, useReducer, useEffect, useLayoutEffect, useRef, useMemo, useCallback, useErrorBoundary,
} from '../vendor/preact.js';

/** A value that components can watch. `set` receives the new value, or a function of the old one. */
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

/** Returns the value of a store, or the part that `select` returns; updates the component when that changes. */
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
 * Returns the result of `load(signal)`: `{value, error, loading, again}`. Loads again when `watched` changes and on `again()`;
 * the current value stays until the next one arrives.
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
