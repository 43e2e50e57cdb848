// The board of a run: its tasks and how they stand, as the daemon tells it. Nothing of a run is worked out here.

import { useEffect, useRef, useState } from './preact.js';
import { get, part } from './api.js';
import { on, onOpen } from './events.js';

/** Milliseconds between two looks at a run that is under way. */
const PACE = 250;

/** A run whose answer takes long is asked for less often: so many times what the last one took. */
const SHARE = 4;

/**
 * What `GET /runs/{run}` says: `{board, error, again}`. It is asked when it is `wanted`, and again when something happened
 * to the run; a run that has ended stays as it is.
 */
export function useBoard(run, wanted) {
  const [state, set] = useState({ board: null, error: null });
  const look = useRef(null);
  useEffect(() => {
    if (!wanted) return undefined;
    let [timer, under, more, over, away, took] = [0, false, false, false, false, 0];
    const ask = async () => {
      timer = 0;
      if (under) {
        more = true;
        return;
      }
      under = true;
      const began = performance.now();
      try {
        const board = await get(`/runs/${part(run)}`);
        away = false;
        if (!over) set({ board, error: null });
      } catch (error) {
        // One that is away is asked again when it is back.
        away = !error.status;
        if (!over && !away) set((old) => ({ ...old, error }));
      }
      under = false;
      took = performance.now() - began;
      if (more) soon();
    };
    const soon = () => {
      more = false;
      if (!over) timer ||= setTimeout(ask, Math.max(PACE, SHARE * took));
    };
    look.current = ask;
    ask();
    const ends = [
      on('event', (event) => event.run === run && soon()),
      on('run', (event) => event.id === run && soon()),
      on('gap', soon),
      onOpen(soon, () => away),
    ];
    return () => {
      over = true;
      clearTimeout(timer);
      for (const end of ends) end();
    };
  }, [run, wanted]);
  return { ...state, again: () => look.current?.() };
}
