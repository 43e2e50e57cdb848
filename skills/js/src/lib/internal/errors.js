// Errors with their code, and stacks in the form of Node.
(native) => {
  const coded = (Type, code, message, properties) => {
    const error = new Type(message);
    return Object.assign(error, { code }, properties);
  };
  const invalid = (name, expected, value) => {
    const shown = value === null || value === undefined ? String(value) : typeof value === "object" || typeof value === "function"
      ? `an instance of ${(value.constructor && value.constructor.name) || "Object"}` : `type ${typeof value} (${String(value)})`;
    return coded(TypeError, "ERR_INVALID_ARG_TYPE", `The "${name}" argument must be ${expected}. Received ${shown}`);
  };
  // The text before a module on its first line; see native/scripts.rs.
  const wrapper = "(function (exports, require, module, __filename, __dirname) {".length;
  const wrapped = new Set();
  const frames = (stack) => {
    const shown = [];
    for (const line of stack.split("\n")) {
      if (line.includes("(native") || line.includes("(node:")) continue;
      const parts = /^\s*at (.*) \((.*):(\d+):(\d+)\)$/.exec(line);
      if (parts === null) continue;
      const [, name, path, row, column] = parts;
      const place = row === "1" && wrapped.has(path) ? Math.max(1, Number(column) - wrapper) : column;
      shown.push(`    at ${name === "<main>" ? "<anonymous>" : name} (${path}:${row}:${place})`);
    }
    return shown;
  };
  const original = Object.getOwnPropertyDescriptor(Error.prototype, "stack");
  const head = (error) => {
    try {
      return Error.prototype.toString.call(error);
    } catch {
      return "Error";
    }
  };
  Object.defineProperty(Error.prototype, "stack", {
    configurable: true,
    get() {
      const stack = original.get.call(this);
      return stack === undefined ? undefined : [head(this), ...frames(stack)].join("\n");
    },
    set(value) {
      Object.defineProperty(this, "stack", { value, writable: true, configurable: true });
    },
  });
  Error.stackTraceLimit = 10;
  Error.captureStackTrace = (object) => {
    const stack = [head(object), ...frames(original.get.call(new Error()) || "")].join("\n");
    Object.defineProperty(object, "stack", { value: stack, writable: true, configurable: true });
  };
  return { coded, invalid, wrapped };
}
