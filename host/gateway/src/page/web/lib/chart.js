// Charts that react to pointer and keyboard, with a table of the same data. chart-data.js describes the data.

import { html, render, useEffect, useLayoutEffect, useMemo, useRef, useState } from './preact.js';
import uPlot from '../vendor/uplot.js';
import { count, visible } from './format.js';
import { Button } from './ui.js';
import { check, csv, parse, value } from './chart-data.js';
import { draw } from './plot.js';

/** Number of series colours in the theme; further series are dashed. */
const COLOURS = 6;

/** Rows of the table that are added at a time. */
const ROWS = 200;

/** Draws the chart from `source` (JSON) in `element`; returns a function that removes it. Throws the errors of `parse`. */
export function place(element, source) {
  const chart = parse(source);
  element.replaceChildren();
  render(html`<${Figure} chart=${chart} />`, element);
  return () => render(null, element);
}

/** A chart of `data`, in the format of a `chart` block. */
export function Chart({ data }) {
  const chart = useMemo(() => {
    try {
      return check(data);
    } catch (error) {
      return error;
    }
  }, [data]);
  return chart instanceof Error ? html`<p class="md-wrong">This chart cannot be drawn. ${chart.message}</p>` : html`<${Figure} chart=${chart} />`;
}

function Figure({ chart }) {
  const [asTable, setTable] = useState(false);
  const [hidden, hide] = useState(() => new Set());
  const [point, setPoint] = useState(null);
  const title = visible(chart.title) || 'Chart';
  const toggle = (at) => hide((old) => {
    const next = new Set(old);
    if (!next.delete(at)) next.add(at);
    return next;
  });
  return html`<figure class="chart" aria-label=${title}>
    <figcaption><div><p class="strong"><bdi>${title}</bdi></p>
      <p class="muted"><bdi>${point === null ? visible([chart.yLabel, chart.unit && `in ${chart.unit}`].filter(Boolean).join(', ')) : visible(chart.labels[point])}</bdi></p></div>
      <${Button} kind="quiet small" icon="table" aria-pressed=${String(asTable)} onClick=${() => setTable(!asTable)}>Table<//>
      <${Button} kind="quiet small" icon="download" onClick=${() => save(chart, title)}>CSV<//>
    </figcaption>
    ${asTable ? html`<${Rows} chart=${chart} title=${title} />` : html`
      <${Plot} chart=${chart} title=${title} hidden=${hidden} point=${point} onPoint=${setPoint} />
      <div class="chart-keys" role="group" aria-label="Series">
        ${chart.series.map(({ name, values }, at) => html`<button key=${at} type="button" class="chart-key" aria-pressed=${String(!hidden.has(at))} onClick=${() => toggle(at)}>
          <span class=${`chart-swatch ${at >= COLOURS ? 'dashed' : ''}`} style=${{ '--key': `var(--series-${(at % COLOURS) + 1})` }} aria-hidden="true"></span>
          <bdi>${visible(name)}</bdi>${point !== null && !hidden.has(at) && html`<span class="chart-value">${value(values[point], chart.unit)}</span>`}</button>`)}
      </div>`}
  </figure>`;
}

/** Describes a point for screen readers. */
const spoken = (chart, hidden, at) => `${chart.labels[at]}: ${chart.series.map(({ name, values }, one) => (hidden.has(one) ? null : `${name} ${value(values[at], chart.unit)}`)).filter(Boolean).join(', ')}`;

/** The drawing. The arrow keys move between its points, as on a slider. */
function Plot({ chart, title, hidden, point, onPoint }) {
  const host = useRef(null);
  const plot = useRef(null);
  const latest = useRef(hidden);
  latest.current = hidden;
  useLayoutEffect(() => {
    const [drawn, end] = draw(uPlot, host.current, chart, onPoint);
    plot.current = drawn;
    latest.current.forEach((at) => drawn.setSeries(at + 1, { show: false }));
    return () => {
      end();
      plot.current = null;
      onPoint(null);
    };
  }, [chart]);
  useEffect(() => {
    chart.series.forEach((_, at) => {
      const one = plot.current?.series[at + 1];
      if (one && one.show === hidden.has(at)) plot.current.setSeries(at + 1, { show: !hidden.has(at) });
    });
  }, [hidden]);
  const last = chart.xs.length - 1;
  const keys = (event) => {
    const at = point ?? -1;
    const page = Math.max(1, Math.round(last / 10));
    const next = { ArrowRight: at + 1, ArrowUp: at + 1, ArrowLeft: at - 1, ArrowDown: at - 1, PageUp: at + page, PageDown: at - page, Home: 0, End: last }[event.key];
    if (next === undefined || !plot.current) return;
    event.preventDefault();
    look(Math.min(last, Math.max(0, next)));
  };
  const look = (at) => {
    const u = plot.current;
    u?.setCursor(at === null ? { left: -10, top: -10 } : { left: u.valToPos(u.data[0][at], 'x'), top: u.over.clientHeight / 2 });
  };
  return html`<div class="chart-plot" ref=${host} role="slider" tabindex="0" aria-label=${`Points of ${title}`} aria-valuemin="1" aria-valuemax=${last + 1}
    aria-valuenow=${(point ?? 0) + 1} aria-valuetext=${spoken(chart, hidden, point ?? 0)} onKeyDown=${keys} onBlur=${() => look(null)}></div>`;
}

function Rows({ chart, title }) {
  const [shown, show] = useState(ROWS);
  const rest = chart.xs.length - shown;
  return html`<div class="chart-rows" role="region" tabindex="0" aria-label=${`Table of ${title}`}><table class="table">
      <thead><tr><th scope="col"><bdi>${visible(chart.xLabel) || 'Point'}</bdi></th>${chart.series.map(({ name }, at) => html`<th key=${at} scope="col" class="number"><bdi>${visible(name)}</bdi></th>`)}</tr></thead>
      <tbody>${chart.labels.slice(0, shown).map((label, at) => html`<tr key=${at}><th scope="row"><bdi>${visible(label)}</bdi></th>
        ${chart.series.map(({ values }, one) => html`<td key=${one} class="number">${value(values[at], chart.unit)}</td>`)}</tr>`)}</tbody>
    </table></div>
    ${rest > 0 && html`<${Button} kind="quiet small" onClick=${() => show(shown + ROWS)}>Show more of ${count(chart.xs.length)} points<//>`}`;
}

function save(chart, title) {
  const url = URL.createObjectURL(new Blob([csv(chart)], { type: 'text/csv' }));
  const name = title.normalize('NFKD').replace(/[^\p{L}\p{N}]+/gu, '-').replace(/^-+|-+$/g, '').slice(0, 60).toLowerCase();
  Object.assign(document.createElement('a'), { href: url, download: `${name || 'chart'}.csv` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
