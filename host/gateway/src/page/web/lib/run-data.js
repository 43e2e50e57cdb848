// The board of a run: its tasks and their states, as the daemon sends them. Nothing is computed here.

import { useEffect, useRef, useState } from './preact.js';
import { get, part } from './api.js';
import { on, onOpen } from './events.js';

/** Milliseconds between two requests for an active run. */
const PACE = 250;

/** A run with a slow response is requested less often: after this multiple of the last response time. */
const SHARE = 4;

/**
 * Returns the response of `GET /runs/{run}`: `{board, error, again}`. It is loaded when it is `wanted`, and again after events of
 * the run; an ended run stays unchanged.
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
        // If the daemon is unreachable, the request is repeated when it is back.
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
