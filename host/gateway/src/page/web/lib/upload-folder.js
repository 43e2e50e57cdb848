// Dropped or chosen folders: their files with relative paths. Hidden files are left out.

import { count } from './format.js';

/** Maximum number of files in a folder, and maximum depth. The daemon has its own limits on files and bytes. */
const MOST_FILES = 2_000;
const DEEPEST = 24;

/** The reason why a folder is not sent. */
class TooMany extends Error {
  constructor(name) {
    super(`“${name}” has more than ${count(MOST_FILES)} files`);
    Object.assign(this, { code: 'too_many', hint: 'Send a part of it, or a zip archive.' });
  }
}

const isHidden = (name) => name.startsWith('.') || name === 'Thumbs.db' || name === 'desktop.ini';

/** Returns the dropped entries that are folders. Must be called while the event is handled. */
export const foldersOf = (transfer) => [...transfer.items].filter((item) => item.kind === 'file').map((item) => item.webkitGetAsEntry?.()).filter((entry) => entry?.isDirectory);

/** Reads a dropped folder: `{name, files: [{file, path}]}`, each path relative to the folder. */
export async function readFolder(folder) {
  const files = [];
  const walk = async (entry, path, depth) => {
    if (entry.isFile) {
      if (files.length >= MOST_FILES) throw new TooMany(folder.name);
      files.push({ file: await new Promise((done, fail) => entry.file(done, fail)), path });
      return;
    }
    if (depth > DEEPEST) return;
    const reader = entry.createReader();
    // The browser returns a hundred entries at a time.
    for (;;) {
      const some = await new Promise((done, fail) => reader.readEntries(done, fail));
      if (!some.length) return;
      for (const one of some.filter(({ name }) => !isHidden(name))) await walk(one, [...path, one.name], depth + 1);
    }
  };
  await walk(folder, [], 0);
  return { name: folder.name, files };
}

/** Groups the files from a browser's folder dialog by folder. */
export function chosenFolders(list) {
  const folders = new Map();
  for (const file of list) {
    const [name, ...path] = file.webkitRelativePath.split('/');
    if (!path.length || path.some(isHidden) || path.length > DEEPEST) continue;
    if (!folders.has(name)) folders.set(name, { name, files: [] });
    folders.get(name).files.push({ file, path });
    if (folders.get(name).files.length > MOST_FILES) throw new TooMany(name);
  }
  return [...folders.values()];
}
