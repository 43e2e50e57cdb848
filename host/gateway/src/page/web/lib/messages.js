// The messages of one session. A contiguous part is kept, in order; it grows at the end that is read, and distant messages are
// dropped and loaded again. New messages arrive through the event stream.

import { store } from './preact.js';
import { get, part, post } from './api.js';
import { on, onOpen } from './events.js';
import { archived, isOurs, meet, sessionOf, sessions } from './sessions.js';
import { unsent } from './unsent.js';

/** Number of messages of the first page, of further pages, which are drawn while scrolling, and the maximum that is kept. */
const PAGE = 50;
const STRETCH = 30;
const MOST = 300;

/** Number of messages of a page towards the end; the listing itself only goes backwards. */
const FORWARD = 60;

/** Milliseconds within which a sent message is usually acknowledged, and number of checks. */
const UNANSWERED = 500;
const LOOKS = 5;

/** Milliseconds within which the event of an accepted message should arrive. */
const UNHEARD = 3_000;

/**
 * `state` is a store of
 * - `phase`: "loading", "new" (no messages yet), "ready", or "failed" (with `error`)
 * - `items`: messages from the daemon; `older` and `newer`: whether there are more before and after them
 * - `newest`: the id of the session's last message
 * - `status`: title, model, beginning of the segment
 * - `runs`: runs that started or were active while the page was open, by id; `drafts`: ids of those without a reply yet;
 *   `further`: number of replies that a run had given when it continued with a new message
 * - `queued`: ids of messages that wait for a run
 * - `notes`: answers of commands, `{key, asked, text, after, at_ms}`
 * `unsent` contains the messages that the daemon does not have yet (lib/unsent.js). `onMessage(message)` is called for each
 * new message.
 */
export function conversation(session, { onMessage } = {}) {
  const state = store({
    phase: 'loading', error: null, items: [], older: false, newer: false, newest: 0, status: null, runs: {}, drafts: [], further: {}, queued: [], notes: [],
  });
  /** Message -> the key of its row before it had an id, so that the row stays the same. */
  const keys = new Map();
  const [listing, standing] = [`/sessions/${part(session)}/messages`, `/status/${part(session)}`];
  let load = 0;
  /** Messages that arrive while a part is being loaded, which may be older. */
  let arrived = null;
  let ended = false;

  const now = state.get;
  const listed = () => sessionOf(session) !== undefined;
  const update = (what) => ended || state.set((old) => ({ ...old, ...(typeof what === 'function' ? what(old) : what) }));

  const outbox = unsent(session);
  const sender = {
    onSent({ key, id }) {
      if (now().items.some((one) => one.id === id)) settle(id, key);
      else if (now().phase !== 'ready') toEnd();
      // A stream that died without an error delivers nothing; the listing does.
      setTimeout(() => outbox.list.get().some((one) => one.key === key) && lookAgain(), UNHEARD);
    },
    onAnswer({ key, text: asked }, text) {
      const after = now().newest;
      update(({ notes }) => ({ notes: [...notes, { key, asked, text, after, at_ms: Date.now() }] }));
      lookAtStatus();
    },
  };

  /** Replaces a sent message by the stored one. */
  function settle(id, key) {
    keys.set(id, key);
    outbox.remove(key);
  }

  /** Replaces the kept messages by the result of `fetch`: a page, the id of the last message, the status. The last call wins. */
  async function replace(fetch) {
    const mine = (load += 1);
    const knew = listed();
    arrived = [];
    try {
      const [{ items, next }, newest, status] = await fetch();
      if (mine !== load) return;
      const late = arrived;
      arrived = null;
      update({ phase: 'ready', error: null, items, older: Boolean(next), newer: (items.at(-1)?.id ?? 0) < newest, newest, ...stand(status, items) });
      for (const message of late) receive(message);
      prune();
    } catch (error) {
      if (mine !== load) return;
      arrived = null;
      // The first message may have arrived since the request, and a run may have started.
      if (error.status === 404 && !knew && listed()) return toEnd();
      if (error.status === 404) update({ phase: 'new', items: [], older: false, newer: false, queued: [] });
      else if (now().phase !== 'ready') update({ phase: 'failed', error });
      else throw error;
    }
  }

  /** Loads the end of the session. */
  const toEnd = () => replace(async () => {
    const [page, status] = await Promise.all([get(listing, { limit: PAGE }), looked()]);
    return [page, page.items.at(-1)?.id ?? 0, status];
  });

  /**
   * Loads the part of the session around a message; false if it does not exist. A message of another version switches to that
   * version.
   */
  async function show(id) {
    const isHere = () => now().items.some((one) => one.id === id);
    if (isHere()) return true;
    await around(id);
    if (isHere()) return true;
    try {
      if ((await post(`/messages/${Number(id)}/show`)).session !== session) return false;
    } catch (error) {
      if (error.status === 404) return false;
      throw error;
    }
    await around(id);
    return isHere();
  }

  async function around(id) {
    await replace(async () => {
      const [page, end, status] = await Promise.all([get(listing, { limit: PAGE, before: id + PAGE / 2 }), get(listing, { limit: 1 }), looked()]);
      return [page, end.items.at(-1)?.id ?? 0, status];
    });
  }

  const once = (work) => {
    let under = null;
    return () => (under ??= work().finally(() => { under = null; }));
  };

  const more = once(async () => {
    const [mine, { items, older }] = [load, now()];
    if (!older || !items.length) return;
    const page = await get(listing, { limit: STRETCH, before: items[0].id });
    if (mine !== load) return;
    update((old) => {
      const all = merge(old.items, page.items);
      const kept = all.slice(0, MOST);
      return { items: kept, older: Boolean(page.next), newer: old.newer || kept.length < all.length };
    });
  });

  const onward = once(async () => {
    const [mine, { items, newer }] = [load, now()];
    if (!newer || !items.length) return;
    const fresh = await behind(items.at(-1).id);
    if (mine !== load) return;
    update((old) => {
      const all = merge(old.items, fresh);
      const kept = all.slice(-MOST);
      return { items: kept, older: old.older || kept.length < all.length, newer: fresh.length > 0 && all.at(-1).id < old.newest };
    });
  });

  /** Loads the next messages after this one. Ids have gaps, so the distance is determined by trial. */
  async function behind(id) {
    let [none, tooFar, ahead] = [0, Infinity, FORWARD - 1];
    for (;;) {
      const { items, next } = await get(listing, { limit: FORWARD, before: id + 1 + ahead });
      const fresh = items.filter((one) => one.id > id);
      if (fresh.length === items.length && next) tooFar = ahead;
      else if (fresh.length || id + ahead >= now().newest) return fresh;
      else none = ahead;
      ahead = tooFar === Infinity ? none * 4 : Math.floor((none + tooFar) / 2);
    }
  }

  /** Reloads the visible messages after something may have been missed. */
  async function again() {
    const { phase, newer } = now();
    if (phase === 'loading' || (phase === 'new' && await isNew(session))) return undefined;
    if (phase !== 'ready') return toEnd();
    const [mine, [page, status]] = [load, await Promise.all([get(listing, { limit: PAGE }), looked()])];
    if (mine !== load) return undefined;
    if (isOther(status)) return toEnd();
    const newest = page.items.at(-1)?.id ?? 0;
    update((old) => {
      const whole = !page.next || page.items[0].id <= (old.items.at(-1)?.id ?? 0);
      // So many messages were missed that there would be a gap.
      if (!newer && !whole) return { items: page.items, older: Boolean(page.next), newest, ...stand(status, page.items) };
      const items = merge(old.items, newer ? page.items.filter((one) => one.id <= old.items.at(-1).id) : page.items);
      return { items, newest: Math.max(newest, old.newest), ...stand(status, items) };
    });
    return prune();
  }

  const quietly = (work) => () => work().catch(() => {});

  // Errors are ignored: the next event or reload has the same result.
  const lookAgain = quietly(async () => ended || again());
  const lookAtStatus = quietly(async () => {
    const found = await looked();
    if (isOther(found)) return toEnd();
    update(stand(found));
    // The run may have ended during the request.
    return prune();
  });

  /** Returns whether the session shows another version than the kept messages. */
  const isOther = ({ status }) => !switching && now().phase === 'ready' && now().status !== null && now().status.branch !== status.branch;

  /**
   * Returns the status of the session, and the runs that were active at the time of the request: a run that starts later is not
   * in the response.
   */
  async function looked() {
    const { drafts } = now();
    return { status: await get(standing), before: drafts };
  }

  function stand({ status, before }, items = now().items) {
    const { runs, drafts, queued } = now();
    meet(status);
    const running = status.running;
    const known = { status, drafts: drafts.filter((id) => id === running || !before.includes(id) || runs[id]?.status !== 'running') };
    if (running && !drafts.includes(running)) {
      known.drafts = [...known.drafts, running];
      known.runs = { ...runs, [running]: runs[running] ?? { id: running, session, status: 'running', started_ms: null, ended_ms: null } };
    }
    if (!status.queued) known.queued = [];
    else if (!queued.length) known.queued = items.filter((one) => one.role === 'user' && !one.run).slice(-status.queued).map((one) => one.id);
    return known;
  }

  // Events.

  function receive(message, looks = 0) {
    const { phase, newer, items, newest } = now();
    // The last message of a run whose turn was replaced.
    if (message.replaced) return update((old) => ({ drafts: old.drafts.filter((id) => id !== message.run) }));
    arrived?.push(message);
    if (phase !== 'ready') return arrived || toEnd();
    const known = items.some((one) => one.id === message.id);
    if (message.role === 'user' && !known) {
      const sent = outbox.list.get().find((one) => one.id === message.id);
      if (sent) settle(message.id, sent.key);
      else if (looks < LOOKS && outbox.list.get().some((one) => !one.id && one.text.trim() === message.text.trim())) {
        // Probably the message that is being sent, received before the daemon's response with its id. It must not appear twice.
        setTimeout(receive, UNANSWERED / LOOKS, message, looks + 1);
        return undefined;
      }
    }
    if (isReply(message) && now().drafts.includes(message.run) && !known) keys.set(message.id, draftKey(message.run, now().further));
    update((old) => {
      const all = newer ? old.items : merge(old.items, [message]);
      const kept = all.slice(-MOST);
      return {
        items: kept, older: old.older || kept.length < all.length, newest: Math.max(newest, message.id),
        queued: message.role === 'user' && !message.run && !known ? [...old.queued, message.id] : old.queued,
      };
    });
    return prune();
  }

  /** Removes drafts whose reply has arrived, and queued messages that have a run. */
  function prune() {
    const { items: held, drafts: open } = now();
    // A reply that the listing returned instead of an event keeps its row, too.
    for (const one of held) if (isReply(one) && open.includes(one.run) && !keys.has(one.id)) keys.set(one.id, draftKey(one.run, now().further));
    update(({ items, drafts, further, queued, newer }) => {
      const isAnswered = (run) => repliesOf(run, items) > (further[run] ?? 0);
      const begun = new Set(items.filter((one) => one.run).map((one) => one.id));
      return {
        drafts: newer ? drafts : drafts.filter((id) => !isAnswered(id)),
        queued: queued.filter((id) => !begun.has(id)),
      };
    });
    for (const { id, key } of outbox.list.get()) if (id && now().items.some((one) => one.id === id)) settle(id, key);
  }

  const listen = () => [
    outbox.watch(sender),
    on('message', (message) => {
      if (message.session !== session) return;
      const known = now().items.some((one) => one.id === message.id);
      receive(message);
      if (!known) onMessage?.(message);
    }),
    on('run', (run) => {
      if (run.session !== session) return;
      const begins = run.status === 'running' && !now().drafts.includes(run.id);
      update(({ runs, drafts }) => ({ runs: { ...runs, [run.id]: run }, drafts: begins ? [...drafts, run.id] : drafts }));
      // Only the listing tells which messages the run answers.
      if (begins) lookAgain();
    }),
    // A run that has replied continues with a new message; only the listing tells which one.
    on('event', ({ session: of, kind, run }) => {
      if (of !== session || kind !== 'admitted') return;
      const replies = repliesOf(run, now().items);
      if (!replies) return;
      update(({ further, drafts }) => ({ further: { ...further, [run]: replies }, drafts: drafts.includes(run) ? drafts : [...drafts, run] }));
      lookAgain();
    }),
    on('session', (data) => data.name === session && lookAtStatus()),
    // The listing may be older than the session's first message.
    sessions.watch(() => now().phase === 'new' && listed() && toEnd()),
    on('gap', lookAgain),
    onOpen(lookAgain),
  ];

  let ends = [];
  let switching = false;
  return {
    session, state, keys, toEnd, show, more, onward, unsent: outbox,
    /** Reloads the status. A session without messages may exist by now, because a model was chosen. */
    lookAgain: () => (now().phase === 'new' ? toEnd() : lookAtStatus()),
    /** Loads the end, or the part around a message. */
    async begin(id) {
      ends = ends.length ? ends : listen();
      update({ phase: 'loading', error: null });
      outbox.pump();
      if (await isNew(session)) update(({ phase }) => (phase === 'loading' ? { phase: 'new' } : {}));
      else await (id ? show(id) : toEnd());
    },
    dismiss: (key) => update(({ notes }) => ({ notes: notes.filter((one) => one.key !== key) })),
    /** Switches to the version of a turn that begins with this message. */
    async showVersion(id) {
      // The event of the switch arrives in between, and would scroll to the end of the session.
      switching = true;
      try {
        await post(`/messages/${Number(id)}/show`);
        await around(id);
      } finally {
        switching = false;
      }
      await lookAtStatus();
    },
    end() {
      ended = true;
      load += 1;
      for (const end of ends) end();
    },
  };
}

/** Returns whether a message is a run's reply, and not one of its questions. */
const isReply = ({ role, approval }) => role === 'assistant' && !approval;

/** Returns whether the daemon does not know the session; uses the listing to avoid a request. */
async function isNew(session) {
  if (!isOurs(session)) return false;
  const told = () => sessions.get().loaded || sessions.get().error;
  if (!told()) {
    await new Promise((done) => {
      const unwatch = sessions.watch(() => {
        if (!told()) return;
        unwatch();
        done();
      });
    });
  }
  const { loaded, next } = sessions.get();
  const whole = archived.get().loaded || !archived.get().any;
  return loaded && !next && whole && !sessionOf(session);
}

/** Returns the run of the newest version of a turn, which is created after its message. */
const lastRun = ({ version_runs: all }) => all?.at(-1)?.run;

/** Merges both lists by id. Unchanged messages stay the same object, so that they are not drawn again. */
export function merge(held, fetched) {
  const all = new Map(held.map((one) => [one.id, one]));
  for (const one of fetched) {
    const known = all.get(one.id);
    // An event can contain a message that has no run yet.
    if (!known || known.text !== one.text || known.run !== (one.run ?? known.run) || known.versions?.length !== one.versions?.length || lastRun(known) !== lastRun(one)) all.set(one.id, one);
  }
  return [...all.values()].sort((a, b) => a.id - b.id);
}

/**
 * Returns the command of each run that only answers a typed command, `$ …`: run -> command. Under "" is the command of a message
 * that still waits for a run, because a run may be known before its message.
 */
export function commandsOf(items) {
  const commands = new Map();
  for (const { role, run, text } of items) {
    if (role === 'assistant') continue;
    // If several messages were answered together, the command is not the only one.
    commands.set(run ?? '', commands.has(run ?? '') ? null : /^\s*\$\s+([^]*\S)\s*$/.exec(text)?.[1] ?? null);
  }
  return commands;
}

/** Digits of run ids; the first ten are the start time. */
const DIGITS = '0123456789abcdefghjkmnpqrstvwxyz';
const TIME = 10;

const repliesOf = (run, items) => items.filter((one) => isReply(one) && one.run === run).length;

/** Returns the key of a reply in progress. */
const draftKey = (run, further) => (further[run] ? `${run}+${further[run]}` : run);

/** Returns whether a message arrived while its run was active. */
const isJoined = ({ run, at_ms }) => Boolean(run) && at_ms > [...run.slice(0, TIME)].reduce((ms, digit) => ms * 32 + DIGITS.indexOf(digit), 0);

/**
 * Returns the rows of the screen, from top to bottom: `{type, key, …}` with the types "day", "segment", "message", "draft" (a run
 * without a reply yet), "soon" (a run that starts in a moment), "note" and "unsent". A reply follows the messages that it
 * answers, even if other messages arrived in between.
 */
export function rows({ items, newer, drafts, further = {}, queued, notes, status }, waiting, keys) {
  const asked = new Map();
  for (const one of items) if (one.role === 'user' && one.run && !isJoined(one)) asked.set(one.run, one.id);
  // A message that a run continued with comes after the reply that the run had given by then.
  const after = (one) => one.role === 'user' && isJoined(one)
    && items.find(({ id, role, run, approval }) => id > one.id && role === 'assistant' && run === one.run && !approval)?.id;
  const place = (one) => {
    const [first, reply] = [asked.get(one.run), after(one)];
    if (!(first < one.id) || (one.role === 'user' && !reply)) return [one.id, 1, one.id, 0];
    return reply ? [first, 1, reply, one.id] : [first, 1, one.id, 0];
  };
  const list = items.map((one) => ({
    type: 'message', key: keys.get(one.id) ?? `m${one.id}`, place: place(one), at_ms: one.at_ms, message: one,
  }));
  if (!newer) {
    for (const one of waiting) list.push({ type: 'unsent', key: one.key, place: [Infinity, 1, one.at_ms], at_ms: one.at_ms, one });
    // A run may be known before its message; then it answers the message that is being sent.
    for (const run of drafts) list.push({ type: 'draft', key: draftKey(run, further), place: [asked.get(run) ?? Infinity, 2, 0], run });
    // Messages in quick succession are answered together, so a run starts a moment later.
    const sent = waiting.some(({ state, text }) => ['sending', 'sent'].includes(state) && !/^\s*\//.test(text));
    if (!drafts.length && (queued.length || sent)) list.push({ type: 'soon', key: 'soon', place: [sent ? Infinity : queued.at(-1), 2, 0] });
    for (const note of notes) list.push({ type: 'note', key: note.key, place: [note.after, 3, note.at_ms], at_ms: note.at_ms, note });
  }
  const segment = status?.segment_start;
  if (segment && items.some((one) => one.id <= segment) && (items.at(-1).id > segment || !newer)) {
    list.push({ type: 'segment', key: 'segment', place: [segment, 4, 0] });
  }
  // Infinity minus Infinity is NaN.
  const by = (a, b, at) => (a[at] === b[at] ? 0 : (a[at] ?? 0) - (b[at] ?? 0));
  list.sort(({ place: a }, { place: b }) => by(a, b, 0) || by(a, b, 1) || by(a, b, 2) || by(a, b, 3));
  const shown = [];
  let day = null;
  for (const row of list) {
    const date = row.at_ms && new Date(row.at_ms).toDateString();
    if (date && date !== day) {
      day = date;
      shown.push({ type: 'day', key: `d${row.key}`, at_ms: row.at_ms });
    }
    shown.push(row);
  }
  return shown;
}
