// The usage of models by day, and its cost.

import { html, useEffect, useLoaded, useMemo, useState } from '../lib/preact.js';
import { get, now } from '../lib/api.js';
import { cost, count, plural, short } from '../lib/format.js';
import { Badge, Busy, Button, Empty, Icon, Loaded, ScreenHead, Trouble } from '../lib/ui.js';

/** Days per page, and milliseconds per day. */
const PAGE = 90;
const DAY = 86_400_000;

const NOTHING = { calls: 0, input_tokens: 0, cached_tokens: 0, output_tokens: 0, cost_micros: 0 };

/** Days are in UTC. */
const dayOf = (ms) => new Date(ms).toISOString().slice(0, 10);

const MEASURES = {
  cost: { title: 'Cost', unit: '$', series: [['Cost', (day) => day.cost_micros === null ? null : day.cost_micros / 1e6]] },
  tokens: { title: 'Tokens', series: [['In', (day) => day.input_tokens], ['Out', (day) => day.output_tokens]] },
  calls: { title: 'Calls', series: [['Calls', (day) => day.calls]] },
};

export default function Usage() {
  const [days, set] = useState({ items: [], next: undefined, loading: true, error: null, came: false });
  const fetch = async (before) => {
    set((old) => ({ ...old, loading: true, error: null }));
    try {
      const page = await get('/usage', { before, limit: PAGE });
      set((old) => ({ items: before ? [...old.items, ...page.items] : page.items, next: page.next, loading: false, error: null, came: true }));
    } catch (error) {
      set((old) => ({ ...old, loading: false, error }));
    }
  };
  useEffect(() => {
    fetch();
  }, []);
  /** Exports all days, including those that are not shown yet. */
  const save = async () => {
    const items = [...days.items];
    for (let next = days.next; next;) {
      const page = await get('/usage', { before: next, limit: 500 });
      items.push(...page.items);
      next = page.next;
    }
    download('kiso-usage.csv', 'text/csv', csv(fill(items, dayOf(now()))));
  };
  const filled = useMemo(() => fill(days.items, dayOf(now())), [days.items]);
  return html`<div class="screen">
    <${ScreenHead} title="Usage" about="Model calls and their cost, by day (UTC).">
      <${Button} icon="retry" label="Refresh" busy=${days.loading} onClick=${() => fetch()} />
      <${Button} icon="download" disabled=${!filled.length} onClick=${save}>CSV of all days<//><//>
    ${days.error && html`<${Trouble} error=${days.error} again=${() => fetch()} />`}
    ${!days.came && !days.error && html`<${Busy} />`}
    ${days.came && html`<${Sums} days=${filled} />`}
    ${days.came && filled.length === 0 && html`<${Empty} icon="usage"
      title="No usage yet">Usage appears after the first model call.<//>`}
    ${filled.length > 0 && html`<${Graph} days=${filled} />`}
    ${filled.length > 0 && html`<${Table} days=${filled} more=${days.next} loading=${days.loading} onMore=${() => fetch(days.next)} />`}
    ${(days.came || days.error) && html`<${Models} />`}
  </div>`;
}

/** Describes the number of input tokens from the provider's cache, if there are any. */
const cached = ({ cached_tokens }) => (cached_tokens > 0 ? ` (${count(cached_tokens)} cached)` : '');

/** Returns every day from the first one to `today`, latest first; days without calls have zeros. */
function fill(items, today) {
  if (!items.length) return [];
  const known = new Map(items.map((item) => [item.day, item]));
  const all = [];
  const first = Date.parse(items.at(-1).day);
  const last = Math.max(Date.parse(today), Date.parse(items[0].day));
  for (let ms = last; ms >= first; ms -= DAY) all.push(known.get(dayOf(ms)) ?? { ...NOTHING, day: dayOf(ms) });
  return all;
}

const sum = (days) => days.reduce((all, day) => {
  for (const key of Object.keys(NOTHING)) if (key !== 'cost_micros') all[key] += day[key];
  // Known costs are added; if none is known, the sum is unknown, too.
  if (day.cost_micros !== null) all.cost_micros += day.cost_micros;
  else if (!all.cost_micros) all.unknown = true;
  return all;
}, { ...NOTHING });

const csv = (days) => ['day,calls,input_tokens,output_tokens,cost_dollars',
  ...days.map((day) => [day.day, day.calls, day.input_tokens, day.output_tokens, day.cost_micros === null ? '' : (day.cost_micros / 1e6).toFixed(6)].join(','))].join('\n');

/** Offers a text as a download. */
function download(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = Object.assign(document.createElement('a'), { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

function Sums({ days }) {
  return html`<div class="usage-sums">${[['Today', 1], ['7 days', 7], ['30 days', 30]].map(([name, number]) => {
    const all = sum(days.slice(0, number));
    return html`<section key=${name} class="card" aria-label=${name}><h2>${name}</h2><p class="usage-cost">${cost(all.unknown && !all.cost_micros ? null : all.cost_micros)}</p>
      <dl><div><dt>Calls</dt><dd>${count(all.calls)}</dd></div><div><dt>Tokens in</dt><dd title=${count(all.input_tokens)}>${short(all.input_tokens)}
        </dd></div>
        <div><dt>Tokens out</dt><dd title=${count(all.output_tokens)}>${short(all.output_tokens)}</dd></div></dl></section>`;
  })}</div>`;
}

/** The chart of the days; its module is loaded here, because only this screen and the chat need it. */
function Graph({ days }) {
  const priced = days.some((day) => day.cost_micros > 0);
  const [measure, setMeasure] = useState(priced ? 'cost' : 'tokens');
  const module = useLoaded(() => import('../lib/chart.js'));
  const data = useMemo(() => {
    const { title, unit, series } = MEASURES[measure];
    const past = days.slice(0, PAGE).reverse();
    return {
      type: 'bar', title: `${title} by day`, unit, x: past.map((day) => day.day),
      series: series.map(([name, of]) => ({ name, values: past.map(of) })),
    };
  }, [days, measure]);
  const Chart = module.value?.Chart;
  return html`<section aria-label="Usage over time"><div class="usage-course"><h2>By day</h2>
    <fieldset class="usage-measure"><legend class="unseen">Show</legend>
      ${Object.entries(MEASURES).map(([name, { title }]) => html`<label key=${name}>
        <input type="radio" name="measure" value=${name} checked=${measure === name} onChange=${() => setMeasure(name)} /><span>${title}</span>
        </label>`)}</fieldset></div>
    ${Chart ? html`<${Chart} data=${data} />` : module.loading ? html`<div class="usage-place">
      </div>` : html`<p class="muted">The chart could not be loaded. The table below has the same data.</p>`}
    ${measure === 'cost' && !priced && html`<p class="muted">No model has a price in config.toml, and no provider said one, so no cost is known.</p>`}
  </section>`;
}

function Table({ days, more, loading, onMore }) {
  return html`<details class="card usage-table" open=${days.length <= 14 || undefined}><summary><strong>All days</strong> <span class="muted">
    ${plural(days.length, 'day')}</span></summary>
    <div class="scrolling" tabindex="0" role="group" aria-label="Table of days"><table class="table"><caption class="unseen">Usage by day</caption>
      <thead><tr><th scope="col">Day</th><th scope="col" class="number">Calls</th><th scope="col" class="number">Tokens in</th>
        <th scope="col" class="number">Tokens out</th><th scope="col" class="number">Cost</th></tr></thead>
      <tbody>${days.map((day) => html`<tr key=${day.day} class=${day.calls ? '' : 'muted'}><th scope="row">${day.day}</th><td class="number">
        ${count(day.calls)}</td><td class="number">${count(day.input_tokens)}${cached(day)}</td>
        <td class="number">${count(day.output_tokens)}</td><td class="number">${cost(day.cost_micros)}</td></tr>`)}</tbody></table></div>
    ${more && html`<p class="usage-more"><${Button} busy=${loading} onClick=${onMore}>Show earlier days<//></p>`}</details>`;
}

/** Formats a price in millionths of a dollar per million tokens. */
const price = (micros) => (micros == null ? html`<span class="muted">unknown</span>` : cost(micros));

function Models() {
  const models = useLoaded((signal) => get('/models', undefined, signal));
  return html`<section class="card" aria-labelledby="usage-models"><h2 id="usage-models">Models</h2>
    <${Loaded} of=${models}>${(all) => html`<div class="scrolling" tabindex="0" role="group" aria-label="Table of models"><table class="table">
      <caption class="unseen">Models and prices</caption>
      <thead><tr><th scope="col">Model</th><th scope="col" class="number">Context</th><th scope="col" class="number">Input, per million tokens</th>
        <th scope="col" class="number">Output, per million tokens</th></tr></thead>
      <tbody>${all.items.map((one) => html`<tr key=${one.model}><th scope="row"><span class="mono"><bdi>${one.model}</bdi>
        </span> ${one.model === all.default && html`<${Badge}>default<//>`}</th>
        <td class="number">${count(one.context_budget)}</td><td class="number">${price(one.input_price_micros)}</td><td class="number">
          ${price(one.output_price_micros)}</td></tr>`)}</tbody></table></div>
      ${all.items.some((one) => one.input_price_micros == null) && html`<p class="muted">
        <${Icon} name="info" size=${14} /> Set prices in config.toml: <code>input_price</code> and <code>output_price</code> of the model.
        </p>`}`}<//></section>`;
}
