// Another version of a turn: the same message answered again, or an edited one. Loaded on demand.

import { html } from './preact.js';
import { freshKey, get, post } from './api.js';
import { plural, visible } from './format.js';
import { Button, Dialog, showDialog, toast } from './ui.js';

/** Maximum number of paths in a question. */
const SHOWN = 30;

/**
 * Creates another version of a message's turn; `text` is the new text of the message. Asks first if a run is active, or if files
 * were changed. Returns false if the user cancels.
 */
export async function revise(id, text) {
  const turn = await get(`/messages/${id}/turn`);
  const answer = turn.at_work || turn.changes.length ? await ask(turn) : { undo: false };
  if (!answer) return false;
  try {
    await post(`/messages/${id}/replace`, { text, cancel: turn.at_work, undo: answer.undo, key: freshKey() });
  } catch (error) {
    if (error.code === 'at_work') toast('A run began meanwhile. Try again.', 'bad');
    else throw error;
    return false;
  }
  return true;
}

/** Returns a promise of `{undo}`, or of null. */
const ask = (turn) => new Promise((answer) => showDialog(Question, { turn, answer }));

function Question({ turn: { at_work, changes, conflicts }, answer, onClose }) {
  const list = changes.slice(0, SHOWN).map((one) => one.path);
  if (changes.length > SHOWN) list.push(`and ${changes.length - SHOWN} more`);
  const done = (what) => {
    answer(what);
    onClose();
  };
  // If files were changed since, Enter keeps them.
  const careful = conflicts.length > 0;
  const number = plural(changes.length, 'file change');
  return html`<${Dialog} title="Make a new version?" onClose=${() => done(null)}>
    <p>The earlier version and what followed it are kept. Switch between them with ‹ ›.</p>
    ${at_work && html`<p>The reply that is being written will be cancelled. Queued messages are answered after the new one.</p>`}
    ${changes.length > 0 && html`<p>The old answer and those after it changed ${plural(changes.length, 'file')}. You can undo that, or keep the files as they are now.</p>
      <ul class="dialog-list" tabindex="0" aria-label="Files">${list.map((path) => html`<li key=${path}><bdi>${visible(path)}</bdi></li>`)}</ul>`}
    ${careful && html`<p>${plural(conflicts.length, 'file')} changed since: <bdi>${visible(conflicts.slice(0, 5).join('; '))}</bdi>. Undoing overwrites that; redo brings it back.</p>`}
    <footer>
      <${Button} onClick=${() => done(null)}>Cancel<//>
      ${changes.length > 0 && html`<${Button} kind=${careful ? '' : 'primary'} onClick=${() => done({ undo: true })}>Undo ${number}<//>`}
      <${Button} kind=${changes.length > 0 && !careful ? '' : 'primary'} onClick=${() => done({ undo: false })}>${changes.length > 0 ? 'Keep the files' : 'Cancel the reply'}<//>
    </footer>
  <//>`;
}
