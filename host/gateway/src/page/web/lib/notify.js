// System notifications while the page is not visible: a long run has ended, or a run waits for an answer.

import { store } from './preact.js';
import { me } from './api.js';
import { on, stayWhile } from './events.js';
import { duration, visible } from './format.js';
import { go } from './router.js';
import { titleOf } from './sessions.js';
import { toast } from './ui.js';

/** Minimum duration in milliseconds of a run whose end is notified. */
const LONG = 15_000;

/** Storage key for the user's choice; deleted by a logout. */
const WANTED = 'kiso.notify';

const granted = () => globalThis.Notification?.permission === 'granted';
const standing = () => (!globalThis.Notification ? 'none' : granted() && localStorage.getItem(WANTED) ? 'on' : Notification.permission === 'denied' ? 'denied' : 'off');

/** "on", "off", "denied" by the browser, or "none" if the browser does not support notifications. */
export const notifications = store(standing());

/** Turns notifications on or off. The browser asks for permission only here, after a click. */
export async function toggleNotifications() {
  if (notifications.get() === 'on') {
    localStorage.removeItem(WANTED);
    toast('Notifications are off');
  } else if (await Notification.requestPermission() === 'granted') {
    localStorage.setItem(WANTED, '1');
    toast('Notifications are on', 'good', 'While this page is in the background, they say when a long run ends or needs you.');
  } else {
    toast('The browser blocks notifications of this page', 'bad', 'Allow them in the browser’s settings for this address.');
  }
  notifications.set(standing());
}

/** Active runs, as known from events. */
const under = new Set();

me.watch((who) => {
  if (!who) under.clear();
  notifications.set(standing());
});

// A hidden tab keeps its event stream as long as there may be something to notify.
stayWhile(() => notifications.get() === 'on' && under.size > 0);

const WORDS = { waiting: 'Needs your approval', held: 'Needs you: it was cut off again and again', failed: 'Failed', done: 'Done' };

// The end of a run may have been missed.
on('gap', () => under.clear());

on('run', ({ id, session, status, started_ms, ended_ms }) => {
  if (status === 'running') under.add(id);
  else under.delete(id);
  if (!document.hidden || notifications.get() !== 'on' || !WORDS[status]) return;
  const took = ended_ms - started_ms;
  if (status === 'waiting' || status === 'held') show(id, session, WORDS[status]);
  else if (took >= LONG) show(id, session, `${WORDS[status]} after ${duration(took)}`);
});

/** Several tabs with the same run show one notification. */
function show(run, session, body) {
  const icon = document.querySelector('link[rel=apple-touch-icon]')?.href;
  try {
    const shown = new Notification(visible(titleOf(session)), { body, tag: run, icon });
    shown.onclick = () => {
      window.focus();
      go('s', session);
      shown.close();
    };
  } catch {
    // Phones require a service worker for notifications. The page has none, because it would store data that nobody should keep.
  }
}
