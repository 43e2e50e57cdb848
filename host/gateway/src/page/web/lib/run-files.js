// Files listed at the end of a reply from an older version; newer replies contain them as data.

const HEAD = '\n\nFiles:\n';

/** `- pub/t.png: a title (image/png, 23.2 kB) /pub/ID` */
const LISTED = /^- (\S[^\n]*?)(?:: ([^\n]*))? \(([\w.+-]+\/[\w.+-]+), ([\d.]+) (bytes?|[kMG]?B)\)(?: (\/\S+|https?:\/\/\S+))?$/;

/** `- /work/pub/t.png (23.2 kB, a title, /pub/ID)`, as the built-in model lists them. */
const LISTED_BY_REFLEX = /^- \/work\/(\S[^\n]*?) \(([\d.]+) (bytes?|[kMG]?B)(?:, (?!\/pub\/)(.*?))?(?:, (\/pub\/\S+))?\)$/;

const PICTURES = { svg: 'image/svg+xml', png: 'image/png', jpg: 'image/jpeg', jpeg: 'image/jpeg', gif: 'image/gif', webp: 'image/webp' };

const UNITS = { byte: 1, bytes: 1, B: 1, kB: 1e3, MB: 1e6, GB: 1e9 };

/** Splits a reply into its text and this list of files: `{text, files: [{path, title, media_type, bytes, link}]}`. */
export function withFiles(text) {
  const at = text.lastIndexOf(`${HEAD}- `);
  const files = at < 0 ? [] : text.slice(at + HEAD.length).split('\n').map(listed);
  return files.length && files.every(Boolean) ? { text: text.slice(0, at), files } : { text, files: [] };
}

/** Maximum length of a line in the list. A model can write any text, and these patterns are slow for long lines. */
const LONGEST = 1_000;

/** The path of a published file; any other link could lead anywhere. */
const PUBLISHED = /^\/pub\/\w+$/;

function listed(line) {
  if (line.length > LONGEST) return null;
  let found = LISTED.exec(line);
  if (!found) {
    const [whole, path, size, unit, title, link] = LISTED_BY_REFLEX.exec(line) ?? [];
    if (!whole) return null;
    found = [whole, path, title, PICTURES[path.split('.').pop().toLowerCase()], size, unit, link];
  }
  const [, path, title, media_type, size, unit, link] = found;
  if (path.split('/').some((name) => name === '.' || name === '..')) return null;
  return { path, title, media_type, bytes: Math.round(size * UNITS[unit]), link: PUBLISHED.test(link ?? '') ? link : undefined };
}
