// The data of a chart, and its validation.
//
//   {"type": "line" | "bar" | "area" | "scatter", "title": "…", "unit": "°C", "x_label": "…", "y_label": "…",
//    "x": ["Jan", "Feb"] or [1, 2.5] or ["2026-03-01", "2026-03-02"], "series": [{"name": "Lisbon", "values": [11, null]}]}
//
// Only `series` is required. Without `x`, points are numbered; the default of `type` is "line". null is a gap.

import { dates, numbers } from './format.js';

const TYPES = ['line', 'bar', 'area', 'scatter'];
const MOST_SERIES = 8;
const MOST_POINTS = 5_000;
const LONGEST_NAME = 200;
const ISO = /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?$/;

/** A problem in the chart's data, for its author. */
class Wrong extends Error {
  reader = true;
}

/** Parses a `chart` block; throws an error whose `reader` is true if it is not valid. */
export function parse(source) {
  let data;
  try {
    data = JSON.parse(source);
  } catch {
    throw new Wrong('It is not JSON.');
  }
  return check(data);
}

/**
 * Converts `data` for drawing: `{type, title, unit, xLabel, yLabel, kind, xs, labels, series: [{name, values}]}`. `kind` is
 * "labels", "numbers" or "dates" (`xs` in seconds).
 */
export function check(data) {
  if (data === null || typeof data !== 'object' || Array.isArray(data)) throw new Wrong('It is not an object with “series”.');
  const type = data.type ?? 'line';
  if (!TYPES.includes(type)) throw new Wrong(`Its type is none of ${TYPES.join(', ')}.`);
  const { series } = data;
  if (!Array.isArray(series) || !series.length) throw new Wrong('It has no “series”.');
  if (series.length > MOST_SERIES) throw new Wrong(`It has ${series.length} series; at most ${MOST_SERIES} can be told apart.`);
  series.forEach((one, at) => {
    if (one === null || typeof one !== 'object' || !Array.isArray(one.values)) throw new Wrong(`Series ${at + 1} has no “values”.`);
    if (!one.values.every((value) => value === null || Number.isFinite(value))) throw new Wrong(`The values of series ${at + 1} are not all numbers or null.`);
  });
  const points = series[0].values.length;
  if (!points) throw new Wrong('It has no points.');
  if (points > MOST_POINTS) throw new Wrong(`It has ${points} points; at most ${MOST_POINTS} are drawn.`);
  const x = data.x ?? Array.from({ length: points }, (_, at) => at + 1);
  if (!Array.isArray(x)) throw new Wrong('“x” is not a list.');
  for (const [at, one] of series.entries()) {
    if (one.values.length !== x.length) throw new Wrong(`Series ${at + 1} has ${one.values.length} values, and “x” has ${x.length}.`);
  }
  if (!x.every((one) => typeof one === 'string' || Number.isFinite(one))) throw new Wrong('“x” is not a list of texts or numbers.');
  return { ...along(x, type, series), type, title: text(data.title), unit: text(data.unit), xLabel: text(data.x_label), yLabel: text(data.y_label) };
}

const text = (given) => (typeof given === 'string' ? given.slice(0, LONGEST_NAME) : '');

/** Returns the points in the order of the axis. */
function along(x, type, given) {
  const times = x.map((one) => (typeof one === 'string' && ISO.test(one) ? Date.parse(one.replace(' ', 'T')) / 1_000 : NaN));
  const dates = times.every(Number.isFinite);
  const kind = dates ? 'dates' : x.every((one) => typeof one === 'number') ? 'numbers' : 'labels';
  const named = given.map((one, at) => ({ name: text(one.name) || `Series ${at + 1}`, values: one.values }));
  const days = dates && x.every((one) => one.length === 10);
  const labels = x.map((one, at) => (dates ? moment(times[at], days) : String(one).slice(0, LONGEST_NAME)));
  const raw = kind === 'labels' ? x.map((_, at) => at) : dates ? times : x;
  const order = raw.map((_, at) => at).sort((a, b) => raw[a] - raw[b]);
  const sorted = (list) => order.map((at) => list[at]);
  return {
    kind,
    days,
    xs: sorted(raw),
    labels: sorted(labels),
    given: sorted(x),
    // Bars are spaced evenly, whatever the values of their points.
    even: kind === 'labels' || type === 'bar',
    series: named.map(({ name, values }) => ({ name, values: sorted(values) })),
  };
}

const DAY = dates({ day: 'numeric', month: 'short', year: 'numeric', timeZone: 'UTC' });
const MOMENT = dates({ day: 'numeric', month: 'short', hour: 'numeric', minute: '2-digit' });
const moment = (seconds, days) => (days ? DAY : MOMENT).format(seconds * 1_000);

const NUMBER = numbers({ maximumFractionDigits: 4 });
const MONEY = numbers({ minimumFractionDigits: 2, maximumFractionDigits: 2 });
const SHORT = numbers({ notation: 'compact', maximumFractionDigits: 2 });

/** Formats a value with its unit; "$" precedes the number, all other units follow it. */
export function value(number, unit, short = false) {
  if (number == null) return '–';
  const size = Math.abs(number);
  const money = /^[$€£]$/.test(unit) && size >= 0.01;
  const format = short ? SHORT : money ? MONEY : NUMBER;
  const digits = size > 0 && size < 0.001 ? number.toPrecision(2) : format.format(number);
  if (!unit) return digits;
  return /^[$€£¥]$/.test(unit) ? `${unit}${digits}`.replace(/^(.)-/, '-$1') : `${digits}${unit === '%' || unit === '°' ? '' : '\u00a0'}${unit}`;
}

/** Returns the chart's points as CSV. Text that a spreadsheet would execute as a formula is escaped. */
export function csv(chart) {
  const cell = (given) => {
    if (given == null) return '';
    if (typeof given === 'number') return String(given);
    const safe = /^[=+\-@\t\r]/.test(given) ? `'${given}` : given;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  const rows = [[chart.xLabel || 'x', ...chart.series.map(({ name }) => name)], ...chart.given.map((x, at) => [x, ...chart.series.map(({ values }) => values[at])])];
  return `${rows.map((row) => row.map(cell).join(',')).join('\r\n')}\r\n`;
}
