// Draws a chart with uPlot, in the colours of the theme.

import { value } from './chart-data.js';
import { dates } from './format.js';

const COLOURS = 6;
const DOTTED = 40;
const LOW = 190;
const HIGH = 260;
const NARROW = 480;

/** Formats a value of the axis: with as many decimals as needed to distinguish neighbours. */
function tick(number, step) {
  const decimals = String(step).split('.')[1]?.length ?? 0;
  return decimals > 1 && step >= 1e-6 ? number.toFixed(decimals) : value(number, '', true);
}

/** Approximate width in pixels of a letter on an axis. */
const LETTER = 7;
const LONGEST_LABEL = 14;

/** Share of the space between two points that their bars occupy. */
const BARS = 0.72;

/** Draws `chart` into `host`; `onPoint` receives the point at the cursor. Returns the plot, and a function that removes it. */
export function draw(Plot, host, chart, onPoint) {
  // A canvas needs the computed colour, because variables have one value per theme.
  const colour = (name, percent = 100) => {
    host.style.color = `color-mix(in srgb, var(${name}) ${percent}%, transparent)`;
    const { color } = getComputedStyle(host);
    host.style.color = '';
    return color;
  };
  const size = () => ({ width: host.clientWidth, height: host.clientWidth < NARROW ? LOW : HIGH });
  const font = `12px ${getComputedStyle(host).fontFamily}`;
  const lined = { stroke: () => colour('--muted'), font, grid: { stroke: () => colour('--line'), width: 1 }, ticks: { stroke: () => colour('--line'), width: 1, size: 5 } };
  const xs = chart.even ? chart.xs.map((_, at) => at) : chart.xs;
  const zero = chart.type === 'bar' || chart.type === 'area';
  const options = {
    ...size(),
    legend: { show: false },
    padding: [12, 12, 0, 0],
    cursor: { drag: { x: false, y: false }, y: false, points: { size: 8, width: 2 } },
    scales: {
      x: { time: chart.kind === 'dates' && !chart.even, range: (_, low, high) => margins(chart, low, high) },
      y: { range: (_, low, high) => room(low, high, zero) },
    },
    axes: [
      { ...lined, label: chart.xLabel || undefined, labelFont: font, labelSize: 20, size: 32, grid: { show: false }, ...along(chart) },
      {
        ...lined,
        size: (_, values) => Math.max(34, ...(values ?? []).map((text) => text.length * LETTER + 14)),
        values: (_, all, axis, space, step) => all.map((one) => (one == null ? '' : tick(one, step))),
      },
    ],
    series: [{}, ...chart.series.map(({ name }, at) => ({
      label: name,
      stroke: () => colour(`--series-${(at % COLOURS) + 1}`),
      width: 2,
      dash: at >= COLOURS ? [6, 4] : undefined,
      ...look(chart, at, colour),
    }))],
    hooks: { setCursor: [(plot) => onPoint(plot.cursor.left >= 0 && plot.cursor.idx != null ? plot.cursor.idx : null)] },
  };
  if (chart.days) options.tzDate = (seconds) => Plot.tzDate(new Date(seconds * 1_000), 'Etc/UTC');
  const plot = new Plot(options, [xs, ...chart.series.map(({ values }) => values)], host);
  const resized = new ResizeObserver(() => {
    const now = size();
    if (now.width && now.width !== plot.width) plot.setSize(now);
  });
  resized.observe(host);
  const theme = matchMedia('(prefers-color-scheme: dark)');
  const repaint = () => plot.redraw();
  theme.addEventListener('change', repaint);
  const chosen = new MutationObserver(repaint);
  chosen.observe(document.documentElement, { attributeFilter: ['data-theme'] });
  return [plot, () => {
    resized.disconnect();
    chosen.disconnect();
    theme.removeEventListener('change', repaint);
    plot.destroy();
  }];
}

const DAY = { day: 'numeric', month: 'short' };
const CLOCK = { timeStyle: 'short' };
const SECONDS_OF_DAY = 86_400;

/** Returns the labels below the points. */
function along(chart) {
  if (chart.even) return even(chart);
  if (chart.kind === 'numbers') return { values: (_, all) => all.map((one) => (one == null ? '' : String(one))) };
  const zone = chart.days ? { timeZone: 'UTC' } : {};
  const years = chart.xs.at(-1) - chart.xs[0] > 300 * SECONDS_OF_DAY;
  const day = dates({ ...(years ? { month: 'short', year: 'numeric' } : DAY), ...zone });
  const hour = dates({ ...CLOCK, ...zone });
  return { space: 70, values: (_, all, axis, space, step) => all.map((one) => (step < SECONDS_OF_DAY ? hour : day).format(one * 1_000)) };
}

function margins(chart, low, high) {
  if (chart.even) return [-0.5, chart.xs.length - 0.5];
  const [from, to] = [chart.xs[0], chart.xs.at(-1)];
  if (from === to) return [from - 1, to + 1];
  const beside = chart.type === 'scatter' ? (to - from) * 0.03 : 0;
  return [(low ?? from) - beside, (high ?? to) + beside];
}

/** Returns the range: from slightly below the lowest value to slightly above the highest; bars and areas start at zero. */
function room(low, high, zero) {
  if (low == null || high == null) return [0, 1];
  const [from, to] = zero ? [Math.min(0, low), Math.max(0, high)] : [low, high];
  const beside = (to - from || Math.abs(to) || 1) * 0.08;
  return [zero && from === 0 ? 0 : from - beside, zero && to === 0 ? 0 : to + beside];
}

/** Labels at as many points as there is space for. */
function even(chart) {
  const text = (at) => {
    const label = chart.days ? chart.labels[at].replace(/, \d{4}$/, '') : chart.labels[at];
    return label.length > LONGEST_LABEL ? `${label.slice(0, LONGEST_LABEL - 1)}…` : label;
  };
  const widest = Math.max(...chart.labels.slice(0, 500).map((_, at) => text(at).length)) * LETTER + 16;
  return {
    splits: (plot) => {
      const fit = Math.max(1, Math.floor(plot.bbox.width / devicePixelRatio / widest));
      const step = Math.ceil(chart.xs.length / fit);
      return chart.xs.map((_, at) => at).filter((at) => at % step === 0);
    },
    values: (_, all) => all.map((at) => (chart.labels[at] === undefined ? '' : text(at))),
    ticks: { show: false },
  };
}

function look(chart, at, colour) {
  const own = (percent) => colour(`--series-${(at % COLOURS) + 1}`, percent);
  const dots = { show: chart.type === 'scatter' || chart.xs.length <= DOTTED, size: chart.type === 'scatter' ? 8 : 5, fill: () => own() };
  if (chart.type === 'scatter') return { paths: () => null, points: { ...dots, fill: () => own(70), width: 1 } };
  if (chart.type === 'area') return { fill: () => own(20), points: dots };
  if (chart.type === 'bar') return { fill: () => own(), width: 0, points: { show: false }, paths: (plot, series, from, to) => bars(plot, series, from, to) };
  return { points: dots };
}

/** Bars of all visible series, side by side. */
function bars(plot, series, from, to) {
  const shown = plot.series.map((one, at) => at).filter((at) => at > 0 && plot.series[at].show);
  const place = shown.indexOf(series);
  const path = new Path2D();
  const between = Math.abs(plot.valToPos(1, 'x', true) - plot.valToPos(0, 'x', true));
  const wide = (between * BARS) / shown.length;
  const gap = wide > 8 ? Math.min(2 * devicePixelRatio, wide * 0.12) : 0;
  const ground = plot.valToPos(Math.max(plot.scales.y.min, 0), 'y', true);
  for (let at = from; at <= to; at += 1) {
    const one = plot.data[series][at];
    if (!one) continue;
    const middle = plot.valToPos(plot.data[0][at], 'x', true);
    const top = plot.valToPos(one, 'y', true);
    path.rect(middle - (between * BARS) / 2 + place * wide + gap / 2, Math.min(top, ground), Math.max(1, wide - gap), Math.max(1, Math.abs(ground - top)));
  }
  return { stroke: null, fill: path, clip: null, flags: 3 };
}
