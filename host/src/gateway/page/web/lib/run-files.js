// Files that a run made: pictures as thumbnails, everything else to open or to download.

import { html, useState } from './preact.js';
import { fileUrl } from './api.js';
import { bytes } from './format.js';
import { plain } from './run-text.js';
import { Icon } from './ui.js';

const PICTURE = /^image\/(png|jpeg|gif|webp|avif|svg\+xml)$/;

/** `files` are `{path, media_type, bytes, size, link, title}`; `size` is words in the place of `bytes`. */
export function Files({ files, session }) {
  const [broken, setBroken] = useState([]);
  const isPicture = (file) => PICTURE.test(file.media_type) && !broken.includes(file.path);
  const [pictures, others] = [files.filter(isPicture), files.filter((file) => !isPicture(file))];
  const src = (file) => file.link ?? fileUrl(session, file.path);
  const open = async (index) => {
    const { openImage } = await import('./lightbox.js');
    openImage(pictures.map((file) => ({ src: src(file), alt: plain(file.title ?? file.path), name: name(file.path) })), index);
  };
  return html`<ul class="run-files" aria-label="Files">
    ${pictures.map((file, index) => html`<li key=${file.path}><button type="button" class="run-picture" aria-label=${`Open the picture ${plain(file.title ?? file.path)}`} onClick=${() => open(index)}>
      <img src=${src(file)} alt="" loading="lazy" onError=${() => setBroken((all) => [...all, file.path])} /></button></li>`)}
    ${others.map((file) => html`<li key=${file.path}><a class="run-file" href=${src(file)} target="_blank" rel="noopener">
      <${Icon} name="file" /><bdi>${plain(file.title ?? name(file.path))}</bdi><span class="muted">${file.size ?? (file.bytes != null && bytes(file.bytes))}</span></a></li>`)}
  </ul>`;
}

const name = (path) => path.split('/').pop();

const LISTED = /^- (\S[^\n]*?)(?:: ([^\n]*))? \(([\w.+-]+\/[\w.+-]+), ([^()\n]+)\)(?: (\/\S+|https?:\/\/\S+))?$/;

/** A reply without the list of files that the daemon put at its end, and these files. */
export function withFiles(text) {
  const at = text.lastIndexOf('\n\nFiles:\n- ');
  if (at < 0) return { text, files: [] };
  const found = text.slice(at + '\n\nFiles:\n'.length).split('\n').map((line) => LISTED.exec(line));
  if (!found.every(Boolean)) return { text, files: [] };
  const files = found.map(([, path, title, media_type, size, link]) => ({ path, title, media_type, size, link: link?.startsWith('/') ? link : undefined }));
  return { text: text.slice(0, at), files };
}
