// Files that a run created, as pictures and links.

import { html, useState } from './preact.js';
import { fileUrl } from './api.js';
import { bytes } from './format.js';
import { visible } from './inline.js';
import { Icon, report } from './ui.js';

/** Pictures that are shown inline. This includes SVG, which cannot run scripts or load files within an image element. */
const PICTURE = /^image\/(?:png|jpeg|gif|webp|avif|svg\+xml|bmp|x-icon)$/;

/** Opens `list[index]` in the lightbox, whose code is loaded with the first picture. See `openImage` in lightbox.js. */
export const openImage = (list, index) => import('./lightbox.js').then((box) => box.openImage(list, index)).catch(report);

/** Returns whether a file can be shown as a picture. */
export const isPicture = (file) => PICTURE.test(file.media_type ?? '');

/** Returns the address of a file of a run or a workspace. */
const source = (file, session) => file.link ?? fileUrl(session, file.path);

const named = (file) => file.path.split('/').pop();

/** A thumbnail that opens in the lightbox through `onOpen`. */
function Thumb({ src, name, onOpen }) {
  const [broken, set] = useState(false);
  return html`<button type="button" class="thumb" aria-label=${`Open picture: ${visible(name)}`} title=${visible(name)} onClick=${onOpen}>
    ${broken ? html`<${Icon} name="file" size=${28} />` : html`<img src=${src} alt="" loading="lazy" decoding="async" onError=${() => set(true)} />`}
  </button>`;
}

/** Files (`{path, media_type, bytes, link, title}`): pictures as thumbnails, all others as links. */
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
