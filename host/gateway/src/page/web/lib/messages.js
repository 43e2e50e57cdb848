// The messages of one session. A part of them is held, in order and without a hole; it grows at the end that is read, and
// what is far from there is forgotten and fetched again. What happens meanwhile comes by the event stream.

import { store } from './preact.js';
import { get, part, post } from './api.js';
import { on, onOpen } from './events.js';
import { archived, isOurs, meet, sessionOf, sessions } from './sessions.js';
import { unsent } from './unsent.js';

/** Messages of the first page, of the others, which are drawn while somebody scrolls, and those that are held at most. */
const PAGE = 50;
const STRETCH = 30;
const MOST = 300;

/** Of a page that leads towards the end: the listing only leads back. */
const FORWARD = 60;

/** Milliseconds in which the answer to a message that is sent comes, most of the time, and how often it is looked for. */
const UNANSWERED = 500;
const LOOKS = 5;

/** Milliseconds in which the event of a message that was taken should have come. */
const UNHEARD = 3_000;

/**
 * `state` is a store of
 * - `phase`: "loading", "new" (nobody wrote here yet), "ready", or "failed" (with `error`)
 * - `items`: messages as the daemon tells of them; `older` and `newer`: whether there are some before and behind them
 * - `newest`: the id of the session's last message
 * - `status`: title, model, beginning of the segment
 * - `runs`: those that began or were under way while the page looked, by id; `drafts`: ids of those without a reply yet; `further`: how
 *   many replies a run had given when it went on with a message that had come meanwhile
 * - `queued`: ids of messages that wait for a run
 * - `notes`: answers of commands, `{key, asked, text, after, at_ms}`
 * `unsent` is what the daemon does not have yet (lib/unsent.js). `onMessage(message)` hears of each that arrives.
 */
export function conversation(session, { onMessage } = {}) {
  const state = store({
    phase: 'loading', error: null, items: [], older: false, newer: false, newest: 0, status: null, runs: {}, drafts: [], further: {}, queued: [], notes: [],
  });
  /** Message -> the key under which it was in view before it had an id, so that it stays what it is on the screen. */
  const keys = new Map();
  const [listing, standing] = [`/sessions/${part(session)}/messages`, `/status/${part(session)}`];
  let load = 0;
  /** What arrives while a part is being loaded, which may be older than that. */
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
      // A stream that is dead without a word tells nothing; the listing does.
      setTimeout(() => outbox.list.get().some((one) => one.key === key) && lookAgain(), UNHEARD);
    },
    onAnswer({ key, text: asked }, text) {
      const after = now().newest;
      update(({ notes }) => ({ notes: [...notes, { key, asked, text, after, at_ms: Date.now() }] }));
      lookAtStatus();
    },
  };

  /** The message stands in the place of what was sent. */
  function settle(id, key) {
    keys.set(id, key);
    outbox.remove(key);
  }

  // Loading.

  /** Replaces what is held by what `fetch` gives: a page, the id of the last message, the status. The last one to begin wins. */
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
      // Its first message may have come since that was asked, and perhaps a run has begun.
      if (error.status === 404 && !knew && listed()) return toEnd();
      if (error.status === 404) update({ phase: 'new', items: [], older: false, newer: false, queued: [] });
      else if (now().phase !== 'ready') update({ phase: 'failed', error });
      else throw error;
    }
  }

  /** The end of the session. */
  const toEnd = () => replace(async () => {
    const [page, status] = await Promise.all([get(listing, { limit: PAGE }), looked()]);
    return [page, page.items.at(-1)?.id ?? 0, status];
  });

  /** The part of the session around a message; false if it is not there. One of another version brings that into view. */
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

  /** The next messages after this one. Ids have gaps, so how far to look ahead is found by trying. */
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

  /** Looks again at what is in view, after something may have been missed. */
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
      // So much was missed that there would be a hole.
      if (!newer && !whole) return { items: page.items, older: Boolean(page.next), newest, ...stand(status, page.items) };
      const items = merge(old.items, newer ? page.items.filter((one) => one.id <= old.items.at(-1).id) : page.items);
      return { items, newest: Math.max(newest, old.newest), ...stand(status, items) };
    });
    return prune();
  }

  const quietly = (work) => () => work().catch(() => {});

  // What is told by the way: without it, the next event or look brings the same.
  const lookAgain = quietly(async () => ended || again());
  const lookAtStatus = quietly(async () => {
    const found = await looked();
    if (isOther(found)) return toEnd();
    update(stand(found));
    // The run may have ended while that was on its way.
    return prune();
  });

  /** Whether the session shows another version than the messages that are held. */
  const isOther = ({ status }) => !switching && now().phase === 'ready' && now().status !== null && now().status.branch !== status.branch;

  /** How the session stands, and which runs were under way when that was asked: one that begins meanwhile is not in the answer. */
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

  // What happens.

  function receive(message, looks = 0) {
    const { phase, newer, items, newest } = now();
    // The last word of a run whose turn was replaced.
    if (message.replaced) return update((old) => ({ drafts: old.drafts.filter((id) => id !== message.run) }));
    arrived?.push(message);
    if (phase !== 'ready') return arrived || toEnd();
    const known = items.some((one) => one.id === message.id);
    if (message.role === 'user' && !known) {
      const sent = outbox.list.get().find((one) => one.id === message.id);
      if (sent) settle(message.id, sent.key);
      else if (looks < LOOKS && outbox.list.get().some((one) => !one.id && one.text.trim() === message.text.trim())) {
        // Most likely what is being sent, heard of before the daemon has said which id it gave: it must not stand there twice.
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

  /** A draft goes when its reply is there, and who has a run waits no longer. */
  function prune() {
    const { items: held, drafts: open } = now();
    // A reply that the listing brought instead of its event is the same as well.
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
      // Only the listing says which messages it answers.
      if (begins) lookAgain();
    }),
    // A run that has replied goes on with a message that came meanwhile: only the listing says with which.
    on('event', ({ session: of, kind, run }) => {
      if (of !== session || kind !== 'admitted') return;
      const replies = repliesOf(run, now().items);
      if (!replies) return;
      update(({ further, drafts }) => ({ further: { ...further, [run]: replies }, drafts: drafts.includes(run) ? drafts : [...drafts, run] }));
      lookAgain();
    }),
    on('session', (data) => data.name === session && lookAtStatus()),
    // The listing that said that it is new may have been older than its first message.
    sessions.watch(() => now().phase === 'new' && listed() && toEnd()),
    on('gap', lookAgain),
    onOpen(lookAgain),
  ];

  let ends = [];
  let switching = false;
  return {
    session, state, keys, toEnd, show, more, onward, unsent: outbox,
    /** Asks how the session stands. One without a message may be there since: a model was chosen. */
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
    /** Brings the version of a turn into view that begins with this message. */
    async showVersion(id) {
      // The event of the switch comes meanwhile, and would lead to the end of the session.
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

/** Whether a message is what a run answers, and not what it asks on the way. */
const isReply = ({ role, approval }) => role === 'assistant' && !approval;

/** Whether the daemon does not know the session: what the listing says already is not asked for. */
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

/** The run of the newest version of a turn, which comes after its message. */
const lastRun = ({ version_runs: all }) => all?.at(-1)?.run;

/** Both lists by id, each message once. One that did not change stays the same object, so that it is not drawn again. */
export function merge(held, fetched) {
  const all = new Map(held.map((one) => [one.id, one]));
  for (const one of fetched) {
    const known = all.get(one.id);
    // An event tells a message before it has a run.
    if (!known || known.text !== one.text || known.run !== (one.run ?? known.run) || known.versions?.length !== one.versions?.length || lastRun(known) !== lastRun(one)) all.set(one.id, one);
  }
  return [...all.values()].sort((a, b) => a.id - b.id);
}

/**
 * The command of each run that answers nothing but a command that was typed, `$ …`: run -> command. A run may be heard of
 * before it is known what it answers: under "" stands that of the message that waits for one.
 */
export function commandsOf(items) {
  const commands = new Map();
  for (const { role, run, text } of items) {
    if (role === 'assistant') continue;
    // Of messages that were answered together, none is the only one.
    commands.set(run ?? '', commands.has(run ?? '') ? null : /^\s*\$\s+([^]*\S)\s*$/.exec(text)?.[1] ?? null);
  }
  return commands;
}

/** Digits of ids of runs, of which the first ten are the time at which it began. */
const DIGITS = '0123456789abcdefghjkmnpqrstvwxyz';
const TIME = 10;

const repliesOf = (run, items) => items.filter((one) => isReply(one) && one.run === run).length;

/** The key of a reply that is under way. */
const draftKey = (run, further) => (further[run] ? `${run}+${further[run]}` : run);

/** Whether a message came when its run was under way. */
const isJoined = ({ run, at_ms }) => Boolean(run) && at_ms > [...run.slice(0, TIME)].reduce((ms, digit) => ms * 32 + DIGITS.indexOf(digit), 0);

/**
 * What stands on the screen, from top to bottom: `{type, key, …}` with the types "day", "segment", "message", "draft" (a run
 * without a reply yet), "soon" (a run that begins in a moment), "note" and "unsent". A reply stands behind the messages that it answers, also when others came meanwhile.
 */
export function rows({ items, newer, drafts, further = {}, queued, notes, status }, waiting, keys) {
  const asked = new Map();
  for (const one of items) if (one.role === 'user' && one.run && !isJoined(one)) asked.set(one.run, one.id);
  // A message that a run went on with stands behind the reply that it had given by then.
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
    // A run may be heard of before its message is; then it answers what is just being sent.
    for (const run of drafts) list.push({ type: 'draft', key: draftKey(run, further), place: [asked.get(run) ?? Infinity, 2, 0], run });
    // Messages that come together are answered together, so a run begins a moment later.
    const sent = waiting.some(({ state, text }) => ['sending', 'sent'].includes(state) && !/^\s*\//.test(text));
    if (!drafts.length && (queued.length || sent)) list.push({ type: 'soon', key: 'soon', place: [sent ? Infinity : queued.at(-1), 2, 0] });
    for (const note of notes) list.push({ type: 'note', key: note.key, place: [note.after, 3, note.at_ms], at_ms: note.at_ms, note });
  }
  const segment = status?.segment_start;
  if (segment && items.some((one) => one.id <= segment) && (items.at(-1).id > segment || !newer)) {
    list.push({ type: 'segment', key: 'segment', place: [segment, 4, 0] });
  }
  // Infinity less Infinity is not a number.
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
