// A run on a time axis: one row per node, one bar per step. Each step has a minimum width, so that even short ones can be seen
// and clicked, and the axis adapts to that.

import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from './preact.js';
import { now } from './api.js';
import { duration, visible } from './format.js';
import { LANES } from './trace.js';
import { headline } from './trace-words.js';

/**
 * Pixels: minimum width of a step, average width of a step, height of a row, width of the names, minimum distance of two axis
 * labels.
 */
const LEAST = 9;
const ROOMY = 15;
const ROW = 26;
const NAMES = 88;
const APART = 84;

/** Pixels beside the visible part that are drawn, too. */
const BESIDE = 600;

/** Intervals of the axis, in milliseconds. */
const NICE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5];

/** The row for the work of a thought. */
const THOUGHT_LANE = {
  analyzing: 'input', routing: 'router', planning: 'planner', briefing: 'reasoner', thinking: 'actor', working: 'tools',
  interrogating: 'tools',
  compressing: 'actor', reviewing: 'reviewer', synthesizing: 'worker',
};

/** Computes the position of each step: its minimum width, plus a share of the remaining width by time. */
function layout(steps, room, until) {
  const begin = steps[0].from;
  const total = Math.max(1, until - begin);
  const slots = steps.length + (until > steps.at(-1).end ? 1 : 0);
  const width = Math.max(room, slots * ROOMY);
  const scale = Math.max(0, width - slots * LEAST) / total;
  let x = 0;
  const edges = [[begin, 0]];
  const place = (end) => {
    x += LEAST + (end - edges.at(-1)[0]) * scale;
    edges.push([end, x]);
  };
  steps.forEach((step) => place(step.end));
  if (slots > steps.length) place(until);
  const bars = steps.map((step, at) => {
    const [left, right] = [edges[at][1], edges[at + 1][1]];
    const share = (step.begin - step.from) / Math.max(1, step.end - step.from);
    const start = Math.min(left + (right - left) * share, right - LEAST);
    return { step, left: start, width: right - start - 1 };
  });
  return { begin, total, width, scale, edges, bars };
}

/** Formats a time of the axis, in a short form. */
function mark(ms) {
  if (ms < 60_000) return ms ? duration(ms).replace('.0 s', ' s') : '0';
  return `${Math.floor(ms / 60_000)}:${String(Math.floor((ms % 60_000) / 1_000)).padStart(2, '0')} min`;
}

/** Returns the times of the axis and their positions. */
function axis({ begin, total, width, edges }) {
  const every = NICE.find((step) => (total / step) * APART <= width) ?? NICE.at(-1) * Math.ceil((total / NICE.at(-1)) * (APART / width));
  const ticks = [];
  let at = 1;
  for (let ms = 0; ms <= total; ms += every) {
    while (at < edges.length - 1 && edges[at][0] < begin + ms) at += 1;
    const [[from, left], [to, right]] = [edges[at - 1], edges[at] ?? edges[at - 1]];
    const x = left + (right - left) * Math.min(1, (begin + ms - from) / Math.max(1, to - from));
    if (!ticks.length || x - ticks.at(-1).x >= APART * 0.7) ticks.push({ ms, x });
  }
  return ticks;
}

/** `shown(step)` is false for steps that are not in the list; `thought` is the current activity. */
export function Timeline({ steps, shown, current, onChoose, running, thought }) {
  const box = useRef(null);
  const [view, setView] = useState({ left: 0, width: 900 });
  const [focused, setFocused] = useState(current || steps[0].seq);
  const [until, setUntil] = useState(now());
  useEffect(() => {
    if (!running) return undefined;
    const timer = setInterval(() => setUntil(now()), 1_000);
    return () => clearInterval(timer);
  }, [running]);
  useEffect(() => {
    const look = () => setView({ left: box.current.scrollLeft, width: box.current.clientWidth });
    const watch = new ResizeObserver(look);
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  const end = running ? Math.max(until, steps.at(-1).end) : steps.at(-1).end;
  const placed = useMemo(() => layout(steps, Math.max(200, view.width - NAMES - 12), end), [steps, view.width, end]);
  const ticks = useMemo(() => axis(placed), [placed]);
  const at = placed.bars.findIndex((bar) => bar.step.seq === focused);
  useLayoutEffect(() => {
    if (current) setFocused(current);
  }, [current]);
  // The selected step becomes visible, here and in the list.
  useEffect(() => {
    const bar = placed.bars.find((one) => one.step.seq === current);
    if (bar) bring(box.current, bar);
  }, [current, placed.width]);
  const thinking = running && thought ? THOUGHT_LANE[thought.kind] : null;
  const lanes = LANES.filter(([lane]) => lane === thinking || steps.some((step) => step.lane === lane));
  const top = (lane) => lanes.findIndex(([name]) => name === lane) * ROW;

  const move = (to) => {
    if (!to) return;
    bring(box.current, to);
    setFocused(to.step.seq);
    // The bar may have to be drawn first.
    requestAnimationFrame(() => box.current?.querySelector(`[data-seq="${to.step.seq}"]`)?.focus({ preventScroll: true }));
  };
  const keys = (event) => {
    const { bars } = placed;
    const same = (list) => list.find((bar) => bar.step.lane === bars[at].step.lane);
    const to = {
      ArrowRight: () => bars[at + 1], ArrowLeft: () => bars[at - 1], Home: () => bars[0], End: () => bars.at(-1),
      ArrowDown: () => same(bars.slice(at + 1)), ArrowUp: () => same(bars.slice(0, at).reverse()),
    }[event.key];
    // With a modifier key, the key belongs to the browser.
    if (!to || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    move(to());
  };
  const inView = ({ left, width, step }) => step.seq === focused || (left + width >= view.left - BESIDE && left <= view.left + view.width + BESIDE);
  const tail = placed.edges.length > steps.length + 1;

  return html`<section class="timeline" aria-label="Timeline">
    <p class="unseen" id="timeline-help">Left and right arrows move between steps, up and down within a node. Enter opens a step.</p>
    <div class="timeline-scroll" ref=${box} onScroll=${(event) => setView({ left: event.target.scrollLeft, width: event.target.clientWidth })}>
      <div class="timeline-canvas" style=${{ width: `${placed.width + NAMES}px` }}>
        <div class="timeline-axis" aria-hidden="true"><b></b>${ticks.map(({ ms, x }) => html`<span key=${ms} style=${{ left: `${x + NAMES}px` }}>
          ${mark(ms)}</span>`)}</div>
        <div class="timeline-lanes" style=${{ height: `${lanes.length * ROW}px` }} role="group" aria-label="Steps over time"
          aria-describedby="timeline-help" onKeyDown=${keys}>
          ${ticks.slice(1).map(({ ms, x }) => html`<span key=${`t${ms}`} class="timeline-grid" aria-hidden="true" style=${{ left: `${x + NAMES}px` }}>
            </span>`)}
          ${lanes.map(([lane, name]) => html`<div key=${lane} class="timeline-lane" aria-hidden="true"><span>${name}</span></div>`)}
          ${placed.bars.filter(inView).map(({ step, left, width }) => {
            const [what, of] = headline(step);
            const words = `${step.seq}. ${what}${of ? `: ${visible(of)}` : ''}, ${duration(step.ms)}`;
            return html`<button key=${step.seq} type="button" data-seq=${step.seq} title=${words} aria-label=${`Step ${words}`}
              class=${`timeline-bar lane-${step.lane} ${step.tone} ${shown(step) ? '' : 'faint'}`}
                aria-current=${step.seq === current ? 'step' : undefined}
              tabindex=${step.seq === focused ? 0 : -1} onFocus=${() => setFocused(step.seq)} onClick=${() => onChoose(step.seq)}
              style=${{ left: `${left + NAMES}px`, width: `${width}px`, top: `${top(step.lane)}px` }}><span></span></button>`;
          })}
          ${tail && thinking && html`<span class="timeline-now" aria-hidden="true" style=${{
            left: `${placed.edges.at(-2)[1] + NAMES}px`, width: `${placed.edges.at(-1)[1] - placed.edges.at(-2)[1]}px`, top: `${top(thinking)}px`,
          }}></span>`}
        </div>
      </div>
    </div>
  </section>`;
}

/** Scrolls sideways until a bar is visible. */
function bring(box, { left, width }) {
  const [from, to] = [box.scrollLeft, box.scrollLeft + box.clientWidth - NAMES];
  if (left < from + 24 || left + Math.min(width, 60) > to - 24) box.scrollLeft = Math.max(0, left - (box.clientWidth - NAMES) / 3);
}
