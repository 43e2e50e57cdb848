// The library for skills in JavaScript or TypeScript. `index.d.ts` documents it.

import { write } from "kiso:skill/log@0.1.0";
import * as store from "kiso:skill/kv@0.1.0";
import { report } from "kiso:skill/progress@0.1.0";
import { file } from "kiso:skill/publish@0.1.0";
import { get } from "kiso:skill/secrets@0.1.0";

export * as files from "./files.js";
export { Failure } from "./failure.js";

export function defineSkill(run) {
  return { run: (call) => run(JSON.parse(call.args), call) };
}

export function reply(text, { data, files = [] } = {}) {
  const named = files.map((file) => (typeof file === "string" ? { path: file } : file));
  return {
    text: String(text),
    data: data === undefined ? undefined : JSON.stringify(data),
    files: named.map(({ path, mediaType, title }) => ({ path, mediaType, title })),
  };
}

const logged = (level) => (message) => write(level, String(message));
export const log = { error: logged("error"), warn: logged("warn"), info: logged("info"), debug: logged("debug") };

export function progress(share, note = "") {
  report(share, note);
}

export function secret(name) {
  return get(name);
}

export function publish(path, title) {
  return file(path, title);
}

export const kv = {
  get(key) {
    const bytes = store.get(key);
    return bytes == null ? undefined : new TextDecoder().decode(Uint8Array.from(bytes));
  },
  set(key, text) {
    store.set(key, new TextEncoder().encode(text));
  },
  delete(key) {
    return store.delete(key);
  },
  keys(prefix = "") {
    return store.keys(prefix);
  },
};
