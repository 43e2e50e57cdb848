// Formats a value for `console.log`.

const MOST_LEVELS = 4;
const MOST_ITEMS = 100;

export function shown(value, level = 0, around = []) {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "function") return `[function ${value.name || "without a name"}]`;
  if (typeof value !== "object" || value === null) return String(value);
  if (value instanceof Error) return `${value.name}: ${value.message}${value.stack ? `\n${value.stack.trimEnd()}` : ""}`;
  if (value instanceof Date || value instanceof RegExp) return String(value);
  if (around.includes(value)) return "[circular]";
  if (level >= MOST_LEVELS) return Array.isArray(value) ? "[…]" : "{…}";
  const inner = (item) => shown(item, level + 1, [...around, value]);
  if (value instanceof Map) return `Map ${braced([...value].map(([key, item]) => `${inner(key)} => ${inner(item)}`))}`;
  if (value instanceof Set) return `Set ${braced([...value].map(inner))}`;
  if (Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView))) {
    return `[${few(Array.from(value.slice(0, MOST_ITEMS + 1), inner)).join(", ")}]`;
  }
  return braced(Object.entries(value).map(([key, item]) => `${key}: ${inner(item)}`));
}

function braced(parts) {
  return parts.length === 0 ? "{}" : `{ ${few(parts).join(", ")} }`;
}

function few(parts) {
  return parts.length > MOST_ITEMS ? [...parts.slice(0, MOST_ITEMS), "…"] : parts;
}
