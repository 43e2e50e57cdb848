// Compares kiso's TextEncoder and TextDecoder with those of Node.js, mostly on edge cases of the encodings.
//
//   node tests/foreign/encodings.mjs PATH-OF-text.js

import { pathToFileURL } from "node:url";

const own = await import(pathToFileURL(process.argv[2]));

let state = 1;
function below(count) {
  state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
  return (state >> 8) % count;
}

const EDGES = [0, 0x41, 0x80, 0xbf, 0xc2, 0xe0, 0xa0, 0xed, 0x9f, 0xef, 0xbb, 0xf0, 0x90, 0xf4, 0x8f, 0xd8, 0xdc, 0xff, 0xfe, 0xfd];
const UNITS = [0x41, 0xe9, 0x20ac, 0xd83d, 0xde00, 0xdc00];

function decoded(Decoder, bytes, cut, encoding, options) {
  const decoder = new Decoder(encoding, options);
  try {
    const parts = [decoder.decode(bytes.subarray(0, cut), { stream: true }), decoder.decode(bytes.subarray(cut)), decoder.decode(bytes)];
    return JSON.stringify(parts);
  } catch (error) {
    return error.name;
  }
}

function encoded(Encoder, text) {
  const into = new Uint8Array(7);
  return JSON.stringify([[...new Encoder().encode(text)], new Encoder().encodeInto(text, into), [...into]]);
}

function same(mine, theirs, what) {
  if (mine !== theirs) throw new Error(`${what}: ${mine}, but Node.js has ${theirs}`);
}

for (let i = 0; i < 50000; i++) {
  const edge = () => (below(3) ? EDGES[below(EDGES.length)] : below(256));
  const ascii = new Array(below(8) === 0 ? below(40) : 0).fill(0x41);
  const bytes = Uint8Array.from([...Array.from({ length: below(9) }, edge), ...ascii, ...Array.from({ length: below(9) }, edge)]);
  const cut = below(bytes.length + 1);
  for (const encoding of ["utf-8", "utf-16le", "latin1"]) {
    for (const options of [{}, { fatal: true }, { ignoreBOM: true }]) {
      const args = [bytes, cut, encoding, options];
      same(decoded(own.TextDecoder, ...args), decoded(TextDecoder, ...args), JSON.stringify([...args, [...bytes]]));
    }
  }
  const text = String.fromCharCode(...Array.from({ length: below(6) }, () => UNITS[below(UNITS.length)]));
  same(encoded(own.TextEncoder, text), encoded(TextEncoder, text), JSON.stringify(text));
}
console.log("the same");
