// Loads a trace page by page, and adds new events while the run is active.

import { store } from './preact.js';
import { get, part } from './api.js';
import { connection, on } from './events.js';

/** Steps per page. */
const PAGE = 100;

/** Number of steps that are loaded without a request of the user: with fewer, the timeline of most runs would be incomplete. */
const BY_ITSELF = 600;

/** Milliseconds within which events are processed together. */
const TOGETHER = 200;

/**
 * The trace of a run. `state` is `{board, events, more, loading, error, thought}`: the run from `GET /runs/RUN`, its events in
 * order, whether there are more pages, and the current activity.
 */
export function openTrace(run) {
  const path = `/runs/${part(run)}`;
  const state = store({ board: null, events: [], more: true, loading: true, error: null, thought: null });
  const merge = (more) => state.set((old) => ({ ...old, ...more }));
  const last = () => state.get().events.at(-1)?.seq ?? 0;
  let ended = new AbortController();
  let turn = Promise.resolve();
  let timer = 0;

  /** Runs one request after the other, because each continues where the previous one ended. */
  function inTurn(work) {
    const { signal } = ended;
    turn = turn.then(async () => {
      if (signal.aborted) return;
      merge({ loading: true });
      try {
        await work(signal);
        if (!signal.aborted) merge({ loading: false, error: null });
      } catch (error) {
        if (!signal.aborted) merge({ loading: false, error });
      }
    });
    return turn;
  }

  async function page(signal) {
    const answer = await get(`${path}/trace`, { after: last(), limit: PAGE }, signal);
    if (signal.aborted) return;
    const known = last();
    const fresh = answer.items.filter((event) => event.seq > known);
    state.set((old) => ({ ...old, events: fresh.length ? [...old.events, ...fresh] : old.events, more: Boolean(answer.next) }));
  }

  async function board(signal) {
    const fresh = await get(path, undefined, signal);
    if (!signal.aborted) merge({ board: fresh, thought: fresh.run.status === 'running' ? fresh.thought ?? state.get().thought : null });
  }

  async function reach(seq, signal) {
    while (!signal.aborted && state.get().more && last() < seq) await page(signal);
  }

  function soon() {
    if (timer) return;
    timer = setTimeout(() => {
      timer = 0;
      inTurn(async (signal) => {
        // Events on pages that are not loaded yet are loaded with them.
        const whole = !state.get().more;
        await board(signal);
        if (whole) {
          await page(signal);
          await reach(Infinity, signal);
        }
      });
    }, TOGETHER);
  }

  const again = () => inTurn(async (signal) => {
    await board(signal);
    await page(signal);
  });

  return {
    state,
    again,
    /** Loads the first page, and follows the run; returns a function that ends it. */
    begin(upTo) {
      ended = new AbortController();
      inTurn(async (signal) => {
        await board(signal);
        await page(signal);
        await reach(Math.max(upTo, BY_ITSELF), signal);
      });
      const off = [
        on('event', (event) => event.run === run && soon()),
        on('run', (line) => (line.id ?? line.run) === run && soon()),
        on('gap', soon),
        // Requests that failed while the daemon was unreachable are repeated when it is back.
        connection.watch(() => connection.get().state === 'open' && state.get().error && again()),
        on('live', (live) => live.run === run && live.type === 'thought' && merge({ thought: live })),
      ];
      return () => {
        ended.abort();
        clearTimeout(timer);
        timer = 0;
        off.forEach((stop) => stop());
      };
    },
    more: () => inTurn((signal) => page(signal)),
    reach: (seq) => inTurn((signal) => reach(seq, signal)),
  };
}

/** Returns a run and its events, at most `most` of them: `{board, events, cut}`. */
export async function wholeTrace(run, most, signal) {
  const path = `/runs/${part(run)}`;
  const board = await get(path, undefined, signal);
  const events = [];
  let after = 0;
  do {
    const page = await get(`${path}/trace`, { after, limit: 500 }, signal);
    events.push(...page.items);
    after = page.next;
  } while (after && events.length < most);
  return { board, events: events.slice(0, most), cut: Boolean(after) };
}
