// Files that a reply names at its end, as the daemon lists them.

const HEAD = '\n\nFiles:\n';

/** `- pub/t.png: a title (image/png, 23.2 kB) /pub/ID` */
const LISTED = /^- (\S[^\n]*?)(?:: ([^\n]*))? \(([\w.+-]+\/[\w.+-]+), ([\d.]+) (bytes?|[kMG]B)\)(?: (\/\S+|https?:\/\/\S+))?$/;

const UNITS = { byte: 1, bytes: 1, kB: 1e3, MB: 1e6, GB: 1e9 };

/** A reply without this list, and the files of it: `{text, files: [{path, title, media_type, bytes, link}]}`. */
export function withFiles(text) {
  const at = text.lastIndexOf(`${HEAD}- `);
  const found = at < 0 ? [] : text.slice(at + HEAD.length).split('\n').map((line) => LISTED.exec(line));
  if (!found.length || !found.every(Boolean)) return { text, files: [] };
  const files = found.map(([, path, title, media_type, size, unit, link]) => ({
    path, title, media_type, bytes: Math.round(size * UNITS[unit]), link: link?.startsWith('/') ? link : undefined,
  }));
  return { text: text.slice(0, at), files };
}
