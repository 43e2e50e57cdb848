// Parses tables from texts: values separated by commas, semicolons, tabs or bars, and JSON lists of objects.

/** Maximum number of columns. */
const MOST_COLUMNS = 200;

const SEPARATORS = [',', ';', '\t', '|'];

/** Returns the rows of a text, up to a maximum: arrays of strings. An incomplete last line (`whole` is false) is left out. */
export function readCsv(text, most, whole = true) {
  const head = text.slice(0, 4_000).split(/\r?\n/, 5);
  const [separator] = SEPARATORS.map((sign) => [sign, Math.min(...head.filter((line) => line.trim()).slice(0, 3).map((line) => line.split(sign).length))])
    .reduce((best, one) => (one[1] > best[1] ? one : best));
  const rows = [];
  let [row, cell, quoted, at] = [[], '', false, text.charCodeAt(0) === 0xfeff ? 1 : 0];
  const endCell = () => {
    if (row.length < MOST_COLUMNS) row.push(cell);
    cell = '';
  };
  const endRow = () => {
    endCell();
    if (row.length > 1 || row[0] !== '') rows.push(row);
    row = [];
  };
  for (; at < text.length && rows.length < most; at += 1) {
    const sign = text[at];
    if (quoted) {
      if (sign !== '"') cell += sign;
      else if (text[at + 1] === '"') {
        cell += '"';
        at += 1;
      } else quoted = false;
    } else if (sign === '"' && cell === '') quoted = true;
    else if (sign === separator) endCell();
    else if (sign === '\n') endRow();
    else if (sign !== '\r' || text[at + 1] !== '\n') cell += sign;
  }
  if (whole && at >= text.length && (cell || row.length)) endRow();
  return rows;
}

/** Returns the rows of a list of objects, with the member names first; null for any other JSON. */
export function readObjects(text, most) {
  let list;
  try {
    list = JSON.parse(text);
  } catch {
    return null;
  }
  const objects = Array.isArray(list) && list.length > 0 && list.every((one) => one && typeof one === 'object' && !Array.isArray(one));
  if (!objects) return null;
  const names = [...new Set(list.slice(0, most).flatMap(Object.keys))].slice(0, MOST_COLUMNS);
  const shown = (value) => (value == null ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value));
  return [names, ...list.slice(0, most).map((one) => names.map((name) => shown(one[name])))];
}
