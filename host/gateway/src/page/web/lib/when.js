// Times of schedules: descriptions, and expressions for the available choices.

import { clock } from './format.js';

const DAYS = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT'];
const DAY_NAMES = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
const NICKNAMES = {
  '@hourly': 'every hour', '@daily': 'each day at midnight', '@weekly': 'each Sunday at midnight',
  '@monthly': 'on the first of each month at midnight', '@yearly': 'on 1 January at midnight',
};
const UNIT_NAMES = { s: 'second', m: 'minute', h: 'hour', d: 'day' };

/** Units of an interval, and days, for the choices. */
export const UNITS = [['m', 'minutes'], ['h', 'hours'], ['d', 'days']];
export const MONTH_DAYS = [...Array.from({ length: 31 }, (_, at) => [String(at + 1), String(at + 1)]), ['L', 'the last']];
export const WEEKDAYS = DAY_NAMES.map((name, at) => [DAYS[at], name]);

/** The choices: `[value, label, fields]`. */
export const PRESETS = [
  ['hourly', 'Every hour', ['minute']],
  ['daily', 'Each day', ['time']],
  ['workdays', 'Monday to Friday', ['time']],
  ['weekly', 'Each week', ['weekday', 'time']],
  ['monthly', 'Each month', ['day', 'time']],
  ['every', 'At an interval', ['every']],
  ['once', 'Once', ['at']],
  ['words', 'In your own words', ['words']],
  ['cron', 'As a cron expression', ['cron']],
];

/** Beginnings of a time in words. */
const IN_WORDS = /^(?:every|each|daily|weekly|monthly|hourly|weekdays|weekends|on)\b/i;

const two = (number) => String(number).padStart(2, '0');

/** Returns the expression of a choice; empty if something is missing. */
export function expression(preset, { minute, time, weekday, day, every, unit, at, words, cron }) {
  const [hours, minutes] = (time || ':').split(':');
  const fixed = `${Number(minutes)} ${Number(hours)}`;
  if (['daily', 'workdays', 'weekly', 'monthly'].includes(preset) && !time) return '';
  switch (preset) {
    case 'hourly': return minute === '' ? '' : `${Number(minute)} * * * *`;
    case 'daily': return `${fixed} * * *`;
    case 'workdays': return `${fixed} * * MON-FRI`;
    case 'weekly': return `${fixed} * * ${weekday}`;
    case 'monthly': return `${fixed} ${day} * *`;
    case 'every': return every === '' ? '' : `@every ${Number(every)}${unit}`;
    case 'once': return at ? `at ${at.replace('T', ' ')}` : '';
    case 'words': return words.trim();
    default: return cron.trim();
  }
}

/** Returns the choice and fields for an expression, for editing it. */
export function chosenBy(when) {
  const text = when.trim();
  const read = (pattern, make) => {
    const found = pattern.exec(text);
    return found && make(...found.slice(1));
  };
  const time = (minute, hour) => ({ time: `${two(hour)}:${two(minute)}` });
  return read(/^(\d+) \* \* \* \*$/, (minute) => ({ preset: 'hourly', minute }))
    ?? read(/^(\d+) (\d+) \* \* \*$/, (...at) => ({ preset: 'daily', ...time(...at) }))
    ?? read(/^(\d+) (\d+) \* \* MON-FRI$/, (...at) => ({ preset: 'workdays', ...time(...at) }))
    ?? read(/^(\d+) (\d+) \* \* (SUN|MON|TUE|WED|THU|FRI|SAT)$/, (minute, hour, weekday) => ({ preset: 'weekly', weekday, ...time(minute, hour) }))
    ?? read(/^(\d+) (\d+) (\d+|L) \* \*$/, (minute, hour, day) => ({ preset: 'monthly', day, ...time(minute, hour) }))
    ?? read(/^@every (\d+)([mhd])$/, (every, unit) => ({ preset: 'every', every, unit }))
    ?? read(/^at (\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2})$/, (day, at) => ({ preset: 'once', at: `${day}T${at}` }))
    ?? (IN_WORDS.test(text) ? { preset: 'words', words: text } : { preset: 'cron', cron: text });
}

/** Describes an expression in words; null if it has no description. */
export function inWords(when) {
  const text = when.trim();
  if (NICKNAMES[text.toLowerCase()]) return NICKNAMES[text.toLowerCase()];
  const interval = /^@every\s+(\d+)([smhd])$/.exec(text);
  if (interval) return `every ${interval[1] === '1' ? UNIT_NAMES[interval[2]] : `${interval[1]} ${UNIT_NAMES[interval[2]]}s`}`;
  const once = /^at\s+(.+)$/.exec(text);
  if (once) return `once, at ${once[1]}`;
  if (IN_WORDS.test(text)) return text;
  const fields = text.split(/\s+/);
  return fields.length === 5 ? cronInWords(fields) : null;
}

function cronInWords([minute, hour, day, month, weekday]) {
  const steps = /^\*\/(\d+)$/.exec(minute);
  const days = dayWords(day, month, weekday);
  if (!days) return null;
  const each = days === 'each day' ? '' : `, ${days}`;
  if (steps && hour === '*') return `every ${steps[1]} minutes${each}`;
  if (!/^\d+$/.test(minute)) return minute === '*' && hour === '*' ? `every minute${each}` : null;
  if (hour === '*') return `every hour${Number(minute) ? ` at minute ${Number(minute)}` : ''}${each}`;
  const eachHours = /^\*\/(\d+)$/.exec(hour);
  if (eachHours) return `every ${eachHours[1]} hours at minute ${Number(minute)}${each}`;
  if (!/^\d+(,\d+)*$/.test(hour)) return null;
  return `${days} at ${hour.split(',').map((one) => ofDay(one, minute)).join(', ')}`;
}

/** Formats a time of day in the browser's locale. */
const ofDay = (hour, minute) => clock(new Date(2024, 0, 1, hour, minute));

function dayWords(day, month, weekday) {
  if (month !== '*') return null;
  if (day === '*' && weekday === '*') return 'each day';
  if (day === '*') {
    const week = weekday.toUpperCase();
    if (week === 'MON-FRI' || week === '1-5') return 'Monday to Friday';
    const names = week.split(',').map((one) => (/^[0-7]$/.test(one) ? DAY_NAMES[Number(one) % 7] : DAY_NAMES[DAYS.indexOf(one)]));
    return names.every(Boolean) ? `each ${names.join(' and ')}` : null;
  }
  if (weekday !== '*') return null;
  if (day === 'L') return 'on the last day of each month';
  return /^\d+$/.test(day) ? `on day ${day} of each month` : null;
}
