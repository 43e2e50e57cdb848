// Undo and redo of a run's file changes, with a confirmation that lists the changes.

import { store } from './preact.js';
import { get, me, part, post } from './api.js';
import { plural } from './format.js';
import { confirm, toast } from './ui.js';

const WORDS = { delete: 'deleted', create: 'put back', restore: 'as before' };

/** Maximum number of paths in a question. */
const SHOWN = 30;

const WAYS = {
  undo: { title: 'Undo the file changes of this reply?', action: 'Undo', done: 'File changes undone', none: 'This reply has no file changes to undo' },
  redo: { title: 'Redo the file changes of this reply?', action: 'Redo', done: 'File changes redone', none: 'There is nothing to redo for this reply' },
};

/** Number of entries that are requested. */
const LISTED = 200;

/** Session -> `{turn, runs}`: run -> "undo", "redo" or both, as available. `turn` counts changes. */
export const reverts = store({});

me.watch((who) => who || reverts.set({}));

/** Loads what can be undone and redone in a session. */
export async function loadReverts(session) {
  const { items } = await get(`/sessions/${part(session)}/undo`, { limit: LISTED });
  const runs = new Map();
  for (const { run, kind, changes, lost } of items) {
    if (changes + lost > 0 && !runs.get(run)?.includes(kind)) runs.set(run, [...(runs.get(run) ?? []), kind]);
  }
  const newest = items.map(({ id, kind }) => `${id}${kind}`).join();
  reverts.set((all) => {
    const old = all[session];
    return old?.newest === newest ? all : { ...all, [session]: { newest, runs, turn: (old?.turn ?? 0) + 1 } };
  });
}

/** Returns the run whose undo removed or changed a file and can be redone; null if there is none. */
export async function undoneBy(session, path) {
  for (const [run, ways] of reverts.get()[session]?.runs ?? []) {
    if (!ways.includes('redo')) continue;
    const { changes } = await get(`/runs/${part(run)}/undo`, { kind: 'redo' });
    if (changes.some((one) => one.path.replace(/^\/work\//, '') === path)) return run;
  }
  return null;
}

/** `way`: "undo" or "redo". */
export async function revert(run, way, session) {
  const { title, action, done, none } = WAYS[way];
  const path = `/runs/${part(run)}/undo`;
  const plan = await get(path, { kind: way });
  const against = [...plan.conflicts, ...plan.missing];
  if (plan.changes.length === 0 && against.length === 0) {
    toast(none, 'info');
    return;
  }
  const list = plan.changes.map((one) => `${one.path}: ${WORDS[one.change]}`);
  if (list.length > SHOWN) list.splice(SHOWN, list.length, `and ${list.length - SHOWN} more`);
  const text = against.length
    ? `${plural(against.length, 'file')} changed since, or could not be kept: ${against.slice(0, 5).join('; ')}. What is overwritten can be brought back.`
    : `${plural(plan.changes.length, 'path')} will change. You can take this back.`;
  if (!await confirm({ title, text, list, action: against.length ? `${action} anyway` : action, danger: against.length > 0 })) return;
  const { changes } = await post(`/runs/${part(run)}/${way}`, { force: against.length > 0 });
  await loadReverts(session).catch(() => {});
  toast(`${done}: ${plural(changes.length, 'path')}`, 'good');
}
