// Pictures in front of the page: one at a time, larger, with the keyboard too. And what a run produced, as pictures and links.

import { html, render, useLayoutEffect, useRef, useState } from './preact.js';
import { fileUrl, me } from './api.js';
import { bytes } from './format.js';
import { visible } from './inline.js';
import { Button, Icon } from './ui.js';

const STEPS = [1, 1.5, 2, 3, 4, 6, 8];

/** Pictures that are shown beside other content. SVG too: within an image it runs nothing and asks for nothing. */
const PICTURE = /^image\/(?:png|jpeg|gif|webp|avif|svg\+xml|bmp|x-icon)$/;

/** Pixels that the pointer may move in a click. */
const STEADY = 5;

/**
 * Shows `list[index]`; the arrow keys lead to the others. An entry is `{src, alt, name}`; `name` is what a download is called.
 * The focus goes back to where it was.
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
    // A picture grows from its middle.
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

/** Is this a file that can be looked at as a picture? */
export const isPicture = (file) => PICTURE.test(file.media_type ?? '');

/** Where a file of a run or of a workspace is fetched. */
const source = (file, session) => file.link ?? fileUrl(session, file.path);

const named = (file) => file.path.split('/').pop();

/** A small picture that opens in the lightbox; `onOpen` shows it. */
export function Thumb({ src, name, onOpen }) {
  const [broken, set] = useState(false);
  return html`<button type="button" class="thumb" aria-label=${`Open picture: ${visible(name)}`} title=${visible(name)} onClick=${onOpen}>
    ${broken ? html`<${Icon} name="file" size=${28} />` : html`<img src=${src} alt="" loading="lazy" decoding="async" onError=${() => set(true)} />`}
  </button>`;
}

/** Files (`{path, media_type, bytes, link, title}`): pictures as thumbnails, everything else as links. */
export function Gallery({ files, session }) {
  const pictures = files.filter(isPicture);
  const others = files.filter((file) => !isPicture(file));
  const list = pictures.map((file) => ({ src: source(file, session), alt: file.title || named(file), name: named(file) }));
  return html`<div class="gallery">
    ${pictures.length > 0 && html`<ul class="gallery-pictures" aria-label="Pictures">${list.map((one, at) => html`<li key=${pictures[at].path}>
      <${Thumb} src=${one.src} name=${one.alt} onOpen=${() => openImage(list, at)} /></li>`)}</ul>`}
    ${others.length > 0 && html`<ul class="gallery-files" aria-label="Files">${others.map((file) => html`<li key=${file.path}>
      <a class="file-link" href=${source(file, session)} target="_blank" rel="noopener"><${Icon} name="file" /><bdi>${visible(file.path)}</bdi>
        ${file.bytes != null && html`<span class="muted">${bytes(file.bytes)}</span>`}</a></li>`)}</ul>`}
  </div>`;
}
