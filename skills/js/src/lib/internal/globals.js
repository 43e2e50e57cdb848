// The first of the library that runs: makes the globals, and returns the functions that the program calls.
(native, path, words, env, names, versions) => {
  const modules = new Map();
  const need = (name) => {
    if (!modules.has(name)) modules.set(name, native.builtin(name)(native, need));
    return modules.get(name);
  };
  // A text has at most as many units as in node, and asking for more is an error that can be caught.
  const bounded = (prototype, name, units) => {
    const original = prototype[name];
    const checked = { [name](...args) {
      if (units(this, ...args) > 536870888) throw new RangeError("Invalid string length");
      return original.apply(this, args);
    } };
    Object.defineProperty(prototype, name, { value: checked[name], writable: true, configurable: true });
  };
  const length = (text) => (typeof text === "string" || text instanceof String ? text.length : 0);
  bounded(String.prototype, "repeat", (text, count) => (typeof count === "number" ? length(text) * count : 0));
  bounded(String.prototype, "padStart", (_, count) => (typeof count === "number" ? count : 0));
  bounded(String.prototype, "padEnd", (_, count) => (typeof count === "number" ? count : 0));
  bounded(Array.prototype, "join", (list, between) =>
    list ? (list.length - 1) * (between === undefined ? 1 : length(between)) : 0);
  const hide = (name, value) => Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
  // Stays a getter: the engine remembers for a place in the code that a property is one.
  const lazy = (name, make) => {
    let made;
    Object.defineProperty(globalThis, name, {
      configurable: true,
      get: () => {
        made = made || { value: make() };
        return made.value;
      },
      set: (value) => { made = { value }; },
    });
  };
  modules.set("internal/names", names);
  const { wrapped } = need("internal/errors");
  const console = need("internal/console");
  const events = need("internal/process")({ path, words, env, versions });
  const tasks = need("timers");
  const shared = need("internal/modules");
  hide("global", globalThis);
  hide("console", console);
  hide("process", events.process);
  hide("setTimeout", tasks.setTimeout);
  hide("setInterval", tasks.setInterval);
  hide("setImmediate", tasks.setImmediate);
  hide("clearTimeout", tasks.clearTimeout);
  hide("clearInterval", tasks.clearInterval);
  hide("clearImmediate", tasks.clearImmediate);
  hide("queueMicrotask", (call) => { Promise.resolve().then(() => call()); });
  lazy("Buffer", () => need("buffer").Buffer);
  lazy("URL", () => need("url").URL);
  lazy("URLSearchParams", () => need("url").URLSearchParams);
  lazy("crypto", () => need("crypto").webcrypto);
  for (const name of ["TextEncoder", "TextDecoder", "AbortController", "AbortSignal", "Event", "EventTarget", "structuredClone",
    "atob", "btoa", "performance", "DOMException"]) lazy(name, () => need("internal/web")[name]);
  for (const name of ["fetch", "Headers", "Request", "Response"]) lazy(name, () => need("internal/fetch")[name]);
  for (const name of ["Blob", "File", "FormData", "ReadableStream"]) lazy(name, () => need("internal/body")[name]);
  // Numbers and dates in the form of American English: the engine knows no languages.
  need("internal/web").localize();
  // Short names from before there were modules.
  const fs = () => need("fs");
  const stdin = () => native.decode(new Uint8Array(native.stdin()), "utf8");
  const whole = (name) => fs().readFileSync(name, "utf8");
  hide("print", console.log);
  hide("scriptArgs", path === "" ? ["[eval]", ...words] : [path, ...words]);
  hide("readFile", (name) => whole(name));
  hide("writeFile", (name, data) => fs().writeFileSync(name, Array.isArray(data) ? data.join("\n") : data));
  hide("readStdin", stdin);
  hide("readLines", (name) => {
    const lines = (name === undefined ? stdin() : whole(name)).split("\n");
    if (lines[lines.length - 1] === "") lines.pop();
    return lines;
  });
  const { inspect } = need("internal/inspect");
  return {
    load: shared.load,
    runMain: shared.runMain,
    prepareEval: (name) => {
      const module = shared.evalModule(name);
      for (const [key, value] of Object.entries({ module, exports: module.exports, require: module.require, __filename: name, __dirname: "." })) {
        hide(key, value);
      }
    },
    describeModule: shared.describeModule,
    print: (value) => console.log(value),
    turn: tasks.turn,
    rejected: events.rejected,
    // True if the script handles it; otherwise the text to print.
    uncaught: (error) => events.uncaught(error) || inspect(error, { bare: true }),
    end: events.end,
    wrapped,
  };
}
