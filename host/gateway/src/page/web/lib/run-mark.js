// The state of a run, a task or a call as a sign, and its duration.

import { html, useEffect, useState } from './preact.js';
import { now } from './api.js';
import { duration, elapsed } from './format.js';
import { Icon } from './ui.js';

/** Milliseconds between updates of a timer with tenths. */
const TICK = 100;

const ICONS = { done: 'check', partial: 'check', failed: 'close', blocked: 'close', interrupted: 'alert', cancelled: 'close' };

/** A state as a sign; the words are beside it. */
export function Mark({ status }) {
  if (status === 'running') return html`<span class="spinner" aria-hidden="true"></span>`;
  const icon = ICONS[status];
  return icon
    ? html`<span class=${`run-mark ${status}`}><${Icon} name=${icon} size=${15} /></span>`
    : html`<span class=${`run-mark ${status}`} aria-hidden="true"></span>`;
}

/** A duration, with tenths while it is running. Screen readers ignore the updates. */
export function Elapsed({ since, until }) {
  const [, tick] = useState(0);
  useEffect(() => {
    if (until) return undefined;
    const timer = setInterval(() => document.visibilityState === 'visible' && tick((count) => count + 1), TICK);
    return () => clearInterval(timer);
  }, [until]);
  return html`<span class="run-time" role=${until ? undefined : 'timer'}>${until ? duration(until - since) : elapsed(now() - since)}</span>`;
}
