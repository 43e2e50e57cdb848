// Plain functions in JavaScript: no kiso, no WASI.

export const text = {
  words(text) {
    const counts = new Map();
    for (const word of text.split(/\s+/u).filter((w) => w !== "")) {
      counts.set(word, (counts.get(word) ?? 0) + 1);
    }
    return [...counts].map(([text, count]) => ({ text, count }));
  },
  turn(text, direction) {
    return direction === "backward" ? [...text].reverse().join("") : text;
  },
};

export function mean(values) {
  if (values.length === 0) {
    throw { payload: "there are no values" };
  }
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

export function clamp(value, low, high) {
  return Math.min(Math.max(value, low ?? value), high ?? value);
}
