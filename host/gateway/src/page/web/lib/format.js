// Formats numbers, times and sizes for people.

/** Numbers, dates and times use the browser's locale; sentences are in English. */
const LOCALE = undefined;

/** Returns a formatter of dates and times, with the options of `Intl.DateTimeFormat`. */
export const dates = (options) => new Intl.DateTimeFormat(LOCALE, options);

/** Returns a formatter of numbers, with the options of `Intl.NumberFormat`. */
export const numbers = (options) => new Intl.NumberFormat(LOCALE, options);

const RELATIVE = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });
const DAY = dates({ weekday: 'short', day: 'numeric', month: 'short' });
const FULL = dates({ dateStyle: 'medium', timeStyle: 'medium' });
const CLOCK = dates({ timeStyle: 'short' });
const COUNT = numbers();
const SHORT = numbers({ notation: 'compact', maximumFractionDigits: 1 });
const TENTHS = numbers({ minimumFractionDigits: 1, maximumFractionDigits: 1 });
const DOLLARS = numbers({ style: 'currency', currency: 'USD', currencyDisplay: 'narrowSymbol' });
const CENTS = numbers({ style: 'currency', currency: 'USD', currencyDisplay: 'narrowSymbol', minimumSignificantDigits: 2, maximumSignificantDigits: 2 });

export const count = (number) => COUNT.format(number);
export const short = (number) => SHORT.format(number);
export const fullTime = (ms) => FULL.format(ms).replace('\u202f', ' ');
/** Formats a time of day; replaces the narrow space before AM and PM by an ordinary one. */
export const clock = (ms) => CLOCK.format(ms).replace('\u202f', ' ');
export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

/** Formats a time as "just now", "5 minutes ago", "Tue, 3 Mar". */
export function ago(ms, now) {
  const seconds = Math.round((ms - now) / 1000);
  if (Math.abs(seconds) < 45) return 'just now';
  if (Math.abs(seconds) < 3_600) return RELATIVE.format(Math.round(seconds / 60), 'minute');
  if (Math.abs(seconds) < 86_400) return RELATIVE.format(Math.round(seconds / 3_600), 'hour');
  if (Math.abs(seconds) < 6 * 86_400) return RELATIVE.format(Math.round(seconds / 86_400), 'day');
  return DAY.format(ms);
}

/** Formats a duration as "0.3 s", "12.4 s", "2 min 05 s". */
export function duration(ms) {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 60_000) return `${TENTHS.format(ms / 1_000)} s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ${String(Math.floor((ms % 60_000) / 1_000)).padStart(2, '0')} s`;
  return `${Math.floor(ms / 3_600_000)} h ${String(Math.floor((ms % 3_600_000) / 60_000)).padStart(2, '0')} min`;
}

/** Formats a running timer: "0.0 s" to "59.9 s", then "1:00.0". */
export function elapsed(ms) {
  const tenths = Math.max(0, Math.floor(ms / 100));
  const minutes = Math.floor(tenths / 600);
  const seconds = ((tenths % 600) / 10).toFixed(1);
  return minutes ? `${minutes}:${seconds.padStart(4, '0')}` : `${seconds} s`;
}

const UNITS = ['bytes', 'kB', 'MB', 'GB', 'TB'];

export function bytes(number) {
  let unit = 0;
  while (number >= 1_000 && unit < UNITS.length - 1) {
    number /= 1_000;
    unit += 1;
  }
  return `${unit && number < 10 ? TENTHS.format(number) : Math.round(number)} ${UNITS[unit]}`;
}

/** Formats millionths of a dollar as "$0.012"; an unknown price as "unknown". */
export function cost(micros) {
  if (micros == null) return 'unknown';
  const dollars = micros / 1e6;
  if (!micros) return DOLLARS.format(0).replace(/[.,]00/, '');
  return (dollars < 0.01 ? CENTS : DOLLARS).format(dollars);
}

/** Characters that change the direction of surrounding text. */
const TURNING = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Makes these characters visible in a foreign text. */
export const visible = (text) => String(text ?? '').replace(TURNING, (sign) => `⟦U+${sign.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}⟧`);

/** Converts a text to a valid name in kiso: "Morning news" becomes "morning-news". */
export const slug = (text, most) => text.normalize('NFKD').replace(/[\u0300-\u036f]/g, '').toLowerCase()
  .replace(/[^a-z0-9_]+/g, '-').slice(0, most).replace(/^[-_]+|-+$/g, '');

/** Formats the current minute for a name: "2026-11-22-1503". */
export function stamp(at = new Date()) {
  const two = (number) => String(number).padStart(2, '0');
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}-${two(at.getHours())}${two(at.getMinutes())}`;
}
