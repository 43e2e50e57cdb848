// Wraps the project's `skill`: converts its exceptions and results to the form of the component's interface.

import { begin } from "./globals.js";
import { placed } from "./places.js";
import { shown } from "./shown.js";

export function guarded(project, file) {
  const skill = project.skill ?? project.default?.skill ?? project.default;
  if (typeof skill?.run !== "function") throw new Error(`${file} must export \`skill\`, an object with a function \`run\``);
  return {
    run(call) {
      begin();
      let reply;
      try {
        reply = skill.run(call);
      } catch (thrown) {
        throw failure(thrown) ?? crash(thrown);
      }
      if (typeof reply?.then === "function") {
        throw without("`run` returned a promise, but nothing can be waited for here: it must return its reply");
      }
      if (typeof reply?.text !== "string") {
        throw without(`\`run\` must return a reply, an object with a \`text\`; it returned ${shown(reply)}`);
      }
      return { ...reply, files: reply.files ?? [] };
    },
  };
}

// An exception `{ payload }` is a failure for the user.
function failure(thrown) {
  const payload = thrown?.payload;
  if (typeof payload !== "object" || payload === null) return undefined;
  const { code = "failed", message = "", retryable = false } = payload;
  return { payload: { code: String(code), message: String(message), retryable: Boolean(retryable) } };
}

// Any other exception ends the call. The engine reports only its message and its stack.
function crash(thrown) {
  if (!(thrown instanceof Error)) return without(`it threw ${shown(thrown)}`);
  // The error of an import: a word such as "no-entry".
  const said = typeof thrown.payload === "string" ? thrown.payload : thrown.message;
  const because = thrown.cause instanceof Error ? ` (${thrown.cause.name}: ${thrown.cause.message})` : "";
  const error = new Error(`${thrown.name}: ${said}${because}`);
  error.stack = placed(String(thrown.stack ?? ""));
  return error;
}

// Returns an error without a stack, which would only show this file.
function without(message) {
  const error = new Error(message);
  error.stack = "";
  return error;
}
