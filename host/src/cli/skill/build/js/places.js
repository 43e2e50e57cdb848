// Converts positions in the bundle to positions in the project's files, by the source map that `kiso skill build` embeds.

const MAP = Symbol.for("kiso.sourceMap");
const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

export function placed(stack) {
  const map = globalThis[MAP];
  if (map === undefined) return stack;
  const segments = decoded(map.mappings);
  return stack.replace(/\/?[^\s():]+:(\d+):(\d+)/g, (place, line, column) => {
    const of = segments[line - 1]?.findLast((segment) => segment.column < column) ?? segments[line - 1]?.[0];
    return of === undefined ? place : `${map.sources[of.source]}:${of.line + 1}:${of.original + 1}`;
  });
}

// Returns the segments of each line of the bundle. They are base 64 numbers, each the difference to the one before.
function decoded(mappings) {
  let [source, line, original] = [0, 0, 0];
  return mappings.split(";").map((text) => {
    let column = 0;
    const segments = [];
    for (const segment of text.split(",")) {
      const [columns, sources = 0, lines, originals] = numbers(segment);
      if (lines === undefined) continue;
      column += columns;
      source += sources;
      line += lines;
      original += originals;
      segments.push({ column, source, line, original });
    }
    return segments;
  });
}

function numbers(text) {
  const out = [];
  let [value, shift] = [0, 0];
  for (const digit of text) {
    const bits = DIGITS.indexOf(digit);
    value |= (bits & 31) << shift;
    shift += 5;
    if (bits & 32) continue;
    out.push(value & 1 ? -(value >> 1) : value >> 1);
    [value, shift] = [0, 0];
  }
  return out;
}
