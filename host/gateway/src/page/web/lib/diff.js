// Compares two lists: computes their longest common subsequence, with limited work.

/** Maximum number of differences; lists that differ more are shown as completely replaced. */
const MOST = 800;

/** Maximum number of lines of a text that are compared. */
const LINES = 20_000;

/**
 * Returns pairs `[a, b]` of the entries of two lists, in order; `undefined` if there is no counterpart. `key` returns the value
 * by which entries are compared.
 */
export function align(a, b, key = (one) => one) {
  const [left, right] = [a.map(key), b.map(key)];
  let head = 0;
  while (head < left.length && head < right.length && left[head] === right[head]) head += 1;
  let tail = 0;
  while (tail < left.length - head && tail < right.length - head && left.at(-1 - tail) === right.at(-1 - tail)) tail += 1;
  const middle = shortest(left.slice(head, left.length - tail), right.slice(head, right.length - tail));
  const pairs = [];
  for (let at = 0; at < head; at += 1) pairs.push([a[at], b[at]]);
  for (const [x, y] of middle) pairs.push([x === null ? undefined : a[head + x], y === null ? undefined : b[head + y]]);
  for (let at = tail; at > 0; at -= 1) pairs.push([a[a.length - at], b[b.length - at]]);
  return pairs;
}

/** Myers' algorithm: returns pairs of indices, `null` if there is no counterpart. */
function shortest(a, b) {
  const most = Math.min(a.length + b.length, MOST);
  // The furthest x on each diagonal, which may be negative, and its history for each number of differences.
  const reached = new Int32Array(2 * most + 3);
  const zero = most + 1;
  const steps = [];
  for (let d = 0; d <= most; d += 1) {
    steps.push(reached.slice(zero - d - 1, zero + d + 2));
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && reached[zero + k - 1] < reached[zero + k + 1]);
      let x = down ? reached[zero + k + 1] : reached[zero + k - 1] + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x += 1;
      reached[zero + k] = x;
      if (x >= a.length && x - k >= b.length) return walk(steps, a.length, b.length);
    }
  }
  return [...a.map((_, at) => [at, null]), ...b.map((_, at) => [null, at])];
}

/** Reconstructs the path from its end. */
function walk(steps, x, y) {
  const pairs = [];
  for (let d = steps.length - 1; d >= 0; d -= 1) {
    const at = (k) => steps[d][k + d + 1];
    const k = x - y;
    const before = k === -d || (k !== d && at(k - 1) < at(k + 1)) ? k + 1 : k - 1;
    const [fromX, fromY] = [at(before), at(before) - before];
    while (x > fromX && y > fromY) pairs.push([(x -= 1), (y -= 1)]);
    if (d > 0) pairs.push(x === fromX ? [null, (y -= 1)] : [(x -= 1), null]);
  }
  return pairs.reverse();
}

/**
 * Compares two texts line by line: `[{sign: ' ' | '-' | '+', text} | {skipped: N}]`, with `around` equal lines on either side of
 * a difference. An empty list means that the texts are equal.
 */
export function lines(a, b, around = 3) {
  if (a === b) return [];
  const pairs = align(a.split('\n').slice(0, LINES), b.split('\n').slice(0, LINES));
  const all = pairs.map(([left, right]) => {
    if (left === undefined) return { sign: '+', text: right };
    return { sign: right === undefined ? '-' : ' ', text: left };
  });
  const kept = new Array(all.length).fill(false);
  all.forEach((line, at) => {
    if (line.sign !== ' ') kept.fill(true, Math.max(0, at - around), at + around + 1);
  });
  const shown = [];
  all.forEach((line, at) => {
    if (kept[at]) shown.push(line);
    else if (shown.at(-1)?.skipped) shown.at(-1).skipped += 1;
    else shown.push({ skipped: 1 });
  });
  return shown;
}
