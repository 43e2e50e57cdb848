// Which files the page can show, and how, by their extensions.

import { isShared } from './api.js';

/** File extensions by view. */
const VIEWS = {
  picture: 'png jpg jpeg gif webp avif bmp ico svg',
  page: 'pdf',
  drawn: 'heic heif tif tiff',
  table: 'csv tsv',
  markdown: 'md markdown mdown',
  document: 'xlsx xlsm xls ods docx doc odt pptx ppt odp epub rtf eml mbox msg vcf ics',
  sound: 'mp3 ogg oga wav m4a opus flac',
  video: 'mp4 webm ogv',
  text: `txt log text json jsonl ndjson yaml yml toml ini conf cfg env xml html htm css scss less js mjs cjs jsx ts tsx py pyi rb rs go c h cc cpp hpp cs java kt
    swift php pl lua r jl sh bash zsh fish ps1 sql graphql proto diff patch tex bib rst adoc org lock gradle cmake make mk dockerfile nix wit wat vue svelte dart ex exs erl hs ml clj scala`,
};

const BY_END = new Map(Object.entries(VIEWS).flatMap(([view, ends]) => ends.split(/\s+/).map((end) => [end, view])));

/** Names without an extension that are texts. */
const TEXTS = /^(?:readme|license|licence|copying|makefile|dockerfile|justfile|changelog|authors|notice|\.gitignore|\.editorconfig)$/i;

/** Returns a path's extension in lower case; '' if there is none. */
export const endOf = (path) => /[^/]\.(\w+)$/.exec(path)?.[1].toLowerCase() ?? '';

/** Views that the sandbox renders or reads; available only for files of a session. */
const DRAWN = ['page', 'drawn', 'document'];

/** Returns the view of a file: a name in `VIEWS`, or null for a file that can only be downloaded. */
export function viewOf(path) {
  const name = path.split('/').pop();
  const view = BY_END.get(endOf(path)) ?? (TEXTS.test(name) ? 'text' : null);
  return isShared(path) && DRAWN.includes(view) ? null : view;
}

/** Returns the icon of a file without a thumbnail. */
export const iconOf = (path) => ({ table: 'table', picture: 'picture', drawn: 'picture', text: 'code', page: 'page', document: ['xlsx', 'xls', 'ods', 'xlsm'].includes(endOf(path)) ? 'table' : 'page' })[viewOf(path)] ?? 'file';
