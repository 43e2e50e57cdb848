// World kiso:skill/sandbox in JavaScript. `mode` says what to do; the modes use each kind of import once.

import { write as log } from "kiso:skill/log@0.1.0";
import { report } from "kiso:skill/progress@0.1.0";
import * as kv from "kiso:skill/kv@0.1.0";
import { get as secret } from "kiso:skill/secrets@0.1.0";
import { file as publish } from "kiso:skill/publish@0.1.0";
import { getDirectories } from "wasi:filesystem/preopens@0.2.12";

export const skill = {
  run(call) {
    const { mode = "echo", text = "" } = JSON.parse(call.args);
    log("info", `mode ${mode}`);
    report(0.5, "half way");
    switch (mode) {
      case "echo":
        return reply(text, { text, session: call.session, locale: call.locale });
      case "count": {
        const bytes = kv.get("count");
        // An absent option is null here.
        const count = bytes == null ? 1 : Number(String.fromCharCode(...bytes)) + 1;
        kv.set("count", Uint8Array.from(String(count), (c) => c.charCodeAt(0)));
        return reply(`called ${count} times`, { count });
      }
      case "write": {
        const [[work]] = getDirectories();
        const flags = { create: true, truncate: true };
        const file = work.openAt({ symlinkFollow: true }, "js.txt", flags, { write: true });
        file.write(Uint8Array.from(text, (c) => c.charCodeAt(0)), 0);
        const link = publish("js.txt", "From JavaScript");
        return { ...reply(link, { link }), files: [{ path: "js.txt", mediaType: "text/plain", title: "From JavaScript" }] };
      }
      case "secret":
        return reply(secret("other"), {});
      case "failure":
        throw { payload: { code: "not-today", message: "the moon is in the wrong house", retryable: true } };
      case "throw":
        throw new Error("an exception that is no failure");
      case "loop":
        for (;;);
      case "allocate":
        for (const kept = []; ; ) kept.push(new Uint8Array(1 << 20).fill(1));
      case "recurse":
        return (function down(n) { return down(n + 1) + n; })(0);
      default:
        throw { payload: { code: "bad-args", message: `no mode ${mode}`, retryable: false } };
    }
  },
};

function reply(text, data) {
  return { text, data: JSON.stringify(data), files: [] };
}
