// Pictures in front of the page: one at a time, enlarged, with keyboard support.

import { html, render, useLayoutEffect, useRef, useState } from './preact.js';
import { me } from './api.js';
import { visible } from './format.js';
import { Button, Icon } from './ui.js';

const STEPS = [1, 1.5, 2, 3, 4, 6, 8];

/** Maximum pointer movement in pixels during a click. */
const STEADY = 5;

/**
 * Shows `list[index]`; the arrow keys move to the others. An entry is `{src, alt, name}`; `name` is the file name for a download.
 * The focus returns to where it was.
 */
export function openImage(list, index = 0) {
  if (!list.length) return;
  const before = document.activeElement;
  const host = document.body.appendChild(document.createElement('div'));
  const close = () => {
    unwatch();
    render(null, host);
    host.remove();
    before?.focus?.();
  };
  const unwatch = me.watch((who) => who || close());
  render(html`<${Lightbox} list=${list} first=${index} onClose=${close} />`, host);
}

function Lightbox({ list, first, onClose }) {
  const [{ at, step, state }, set] = useState({ at: Math.min(Math.max(0, first), list.length - 1), step: 0, state: 'loading' });
  const dialog = useRef(null);
  const stage = useRef(null);
  const grip = useRef(null);
  const one = list[at];
  const name = visible(one.alt || one.name || 'Picture');
  useLayoutEffect(() => dialog.current.showModal(), []);
  useLayoutEffect(() => {
    // A picture is enlarged from its middle.
    const box = stage.current;
    box.scrollTo((box.scrollWidth - box.clientWidth) / 2, (box.scrollHeight - box.clientHeight) / 2);
  }, [step, state]);
  const setState = (now) => set((old) => ({ ...old, state: now }));
  const zoom = (next) => set((old) => ({ ...old, step: Math.min(STEPS.length - 1, Math.max(0, next(old.step))) }));
  const move = (to) => to !== at && set({ at: to, step: 0, state: 'loading' });
  const go = (by) => move((at + by + list.length) % list.length);
  const larger = () => zoom((old) => old + 1);
  const smaller = () => zoom((old) => old - 1);
  const fit = () => zoom(() => 0);
  const keys = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const pan = step > 0 && event.target === stage.current;
    const acts = { '+': larger, '=': larger, '-': smaller, 0: fit, ...(list.length > 1 && !pan ? { ArrowRight: () => go(1), ArrowLeft: () => go(-1), Home: () => move(0), End: () => move(list.length - 1) } : {}) };
    if (!Object.hasOwn(acts, event.key)) return;
    event.preventDefault();
    acts[event.key]();
  };
  const press = (event) => {
    grip.current = { x: event.clientX, y: event.clientY, left: stage.current.scrollLeft, top: stage.current.scrollTop };
  };
  const drag = (event) => {
    if (!grip.current || !event.buttons || event.pointerType === 'touch') return;
    stage.current.scrollTo(grip.current.left + grip.current.x - event.clientX, grip.current.top + grip.current.y - event.clientY);
  };
  const release = (event) => {
    const from = grip.current;
    grip.current = null;
    if (!from || Math.hypot(event.clientX - from.x, event.clientY - from.y) > STEADY) return;
    if (event.target.tagName !== 'IMG') onClose();
    else zoom((old) => (old ? 0 : 2));
  };
  return html`<dialog class="lightbox" ref=${dialog} aria-label=${`Picture: ${name}`} onKeyDown=${keys} onCancel=${(event) => { event.preventDefault(); onClose(); }}>
    <header>
      <p><bdi>${name}</bdi>${list.length > 1 && html`<span class="muted" role="status">${at + 1} of ${list.length}</span>`}</p>
      <${Button} kind="quiet" aria-label="Zoom out" onClick=${smaller}>−<//>
      <${Button} kind="quiet" aria-label="Fit the window" onClick=${fit}>${step ? `${STEPS[step] * 100} %` : 'Fit'}<//>
      <${Button} kind="quiet" aria-label="Zoom in" onClick=${larger}>+<//>
      <a class="button quiet bare" href=${one.src} download=${one.name ?? ''} aria-label="Download" title="Download"><${Icon} name="download" /></a>
      <${Button} kind="quiet" icon="close" label="Close" onClick=${onClose} />
    </header>
    <div class=${`lightbox-stage ${step ? 'zoomed' : ''}`} ref=${stage} tabindex=${step ? 0 : -1} role="group" aria-label="Picture" onPointerDown=${press} onPointerMove=${drag} onPointerUp=${release}>
      ${state === 'broken' ? html`<p>This picture can’t be shown. It may have been deleted.</p>` : html`<img key=${at} src=${one.src} alt=${name} draggable=${false} hidden=${state === 'loading'}
        style=${step ? { width: `${STEPS[step] * 100}%`, maxWidth: 'none', maxHeight: 'none' } : {}} onLoad=${() => setState('shown')} onError=${() => setState('broken')} />`}
      ${state === 'loading' && html`<p role="status"><span class="spinner" aria-hidden="true"></span> Loading…</p>`}
    </div>
    ${list.length > 1 && html`
      <div class="lightbox-beside"><${Button} icon="chevron" label="Previous picture" onClick=${() => go(-1)} /><${Button} icon="chevron" label="Next picture" onClick=${() => go(1)} /></div>`}
  </dialog>`;
}
