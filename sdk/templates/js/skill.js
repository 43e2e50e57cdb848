// Greets by name.

import { write as log } from "kiso:skill/log@0.1.0";

export const skill = {
  // `call` has `tool`, `args` (JSON, as [kiso.skill.args] in kiso.toml declares them), `session` and `locale`.
  // Returns a reply. What is thrown as `{ payload }` is a failure that the user sees; any other exception ends the call.
  run(call) {
    const { name, loud } = JSON.parse(call.args);
    log("info", `greeting in session ${call.session}`);
    if (name.trim() === "") {
      throw failure("bad-args", "the name is blank; say whom to greet");
    }
    const greeting = `Hello, ${name.trim()}!`;
    const text = loud ? greeting.toUpperCase() : greeting;
    return reply(text, { greeting: text });
  },
};

// `files` are paths under /work that the call wrote: { path: "/work/out.csv", mediaType: undefined, title: "Result" }.
function reply(text, data, files = []) {
  return { text, data: data === undefined ? undefined : JSON.stringify(data), files };
}

// Codes are short words with dashes. `retryable` says that the same call may work later.
function failure(code, message, retryable = false) {
  return { payload: { code, message, retryable } };
}
