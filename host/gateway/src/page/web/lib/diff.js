// What two lists have in common, in their order: the longest common subsequence, with a bound on the work.

/** Differences that are looked for; lists that differ more are shown as one replaced by the other. */
const MOST = 800;

/** Lines of a text that are compared. */
const LINES = 20_000;

/**
 * Pairs `[a, b]` of the entries of two lists, in order; `undefined` stands where the other list has no counterpart.
 * `key` gives what makes two entries the same.
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

/** Myers' algorithm: pairs of indices, `null` for none. */
function shortest(a, b) {
  const most = Math.min(a.length + b.length, MOST);
  // The furthest x on each diagonal, which may be negative; and how that was after each number of differences.
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

/** Back from the end along the way that was found. */
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
 * Two texts, line by line: `[{sign: ' ' | '-' | '+', text} | {skipped: N}]`. Of what is the same, `around` lines stay on
 * either side of a difference. An empty list: they are equal.
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
