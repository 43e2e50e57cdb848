// A wasi:cli/command in JavaScript: reads {"args": {"text", "fail"}, …} and prints the text backwards.

import { getStdin } from "wasi:cli/stdin@0.2.12";
import { getStdout } from "wasi:cli/stdout@0.2.12";

export const run = {
  run() {
    const { args } = JSON.parse(readAll(getStdin()));
    const out = getStdout();
    out.blockingWriteAndFlush(bytes(`${[...args.text].reverse().join("")}\n`));
    if (args.fail) {
      throw { payload: undefined };
    }
  },
};

function readAll(stream) {
  let text = "";
  for (;;) {
    try {
      text += String.fromCharCode(...stream.blockingRead(4096));
    } catch {
      return decodeURIComponent(escape(text));
    }
  }
}

function bytes(text) {
  return Uint8Array.from(unescape(encodeURIComponent(text)), (c) => c.charCodeAt(0));
}
