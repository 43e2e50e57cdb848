// Web interfaces that the engine lacks. This module is evaluated before the project's own modules.

import { write } from "kiso:skill/log@0.1.0";
import { getRandomBytes } from "wasi:random/random@0.2.12";
import { getStderr } from "wasi:cli/stderr@0.2.12";
import { shown } from "./shown.js";
import { TextDecoder, TextEncoder } from "./text.js";

let inCall = false;

// Starts a call. While the component is made, `kiso:` interfaces are not available, and random numbers from that time would
// be repeated in every call.
export function begin() {
  inCall = true;
  const seed = new DataView(random(16).buffer);
  state = [0, 4, 8, 12].map((at) => seed.getUint32(at));
}

function random(count) {
  return Uint8Array.from(getRandomBytes(count));
}

let state = [1, 2, 3, 4];

// sfc32, because a call to the host for each number would be slow.
function next() {
  const [a, b, c, d] = state;
  const sum = (a + b + d) | 0;
  state = [b ^ (b >>> 9), (c + (c << 3)) | 0, (((c << 21) | (c >>> 11)) + sum) | 0, (d + 1) | 0];
  return sum >>> 0;
}

Math.random = () => (next() * 2 ** 21 + (next() >>> 11)) / 2 ** 53;

const STDERR_BYTES = 4096;

function say(level, values) {
  const text = values.map((value) => (typeof value === "string" ? value : shown(value))).join(" ");
  if (inCall) return write(level, text);
  const bytes = new TextEncoder().encode(`${text}\n`);
  const stream = getStderr();
  for (let at = 0; at < bytes.length; at += STDERR_BYTES) stream.blockingWriteAndFlush(bytes.slice(at, at + STDERR_BYTES));
}

const console = {
  assert: (holds, ...values) => holds || say("error", ["Assertion failed:", ...values]),
  table: (value) => say("info", [value]),
  dir: (value) => say("info", [value]),
  trace: (...values) => say("debug", [...values, `\n${new Error().stack}`]),
};
for (const [name, level] of [["log", "info"], ["info", "info"], ["debug", "debug"], ["warn", "warn"], ["error", "error"]]) {
  console[name] = (...values) => say(level, values);
}
for (const name of ["group", "groupCollapsed", "groupEnd", "count", "countReset", "time", "timeEnd", "timeLog"]) {
  console[name] = () => {};
}

const MOST_RANDOM_BYTES = 65536;

const crypto = {
  getRandomValues(array) {
    if (!ArrayBuffer.isView(array)) throw new TypeError("getRandomValues needs a typed array");
    if (array.byteLength > MOST_RANDOM_BYTES) throw new RangeError(`getRandomValues gives ${MOST_RANDOM_BYTES} bytes at most`);
    new Uint8Array(array.buffer, array.byteOffset, array.byteLength).set(random(array.byteLength));
    return array;
  },
  randomUUID() {
    const bytes = random(16);
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
    return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
  },
};

for (const [name, value] of Object.entries({ console, crypto, TextDecoder, TextEncoder })) {
  Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
}
