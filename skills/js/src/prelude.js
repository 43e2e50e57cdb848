(function (args, env, cwd) {
  const take = (name) => {
    const value = globalThis[name];
    delete globalThis[name];
    return value;
  };
  const error = take("__error"), raw = take("__raw"), exit = take("__exit");
  const stdin = take("__stdin"), read = take("__read"), write = take("__write"), append = take("__append");
  const list = take("__list"), kind = take("__kind"), change = take("__change");
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
  const quote = (text) => (text.includes("'") ? JSON.stringify(text) : "'" + text.replace(/\\/g, "\\\\").replace(/\n/g, "\\n") + "'");
  const key = (name) => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : quote(name));
  // A value as node writes it, on one line if that is short.
  const inspect = (value, nested, above) => {
    if (typeof value === "string") return nested ? quote(value) : value;
    if (typeof value === "bigint") return value + "n";
    if (typeof value === "symbol" || value === null || typeof value !== "object") {
      if (typeof value !== "function") return Object.is(value, -0) ? "-0" : String(value);
      return value.name === "" ? "[Function (anonymous)]" : "[Function: " + value.name + "]";
    }
    if (value instanceof Error) return value.stack ? String(value) + "\n" + value.stack : String(value);
    if (value instanceof RegExp) return String(value);
    if (value instanceof Date) return isNaN(value) ? "Invalid Date" : value.toISOString();
    const seen = above || [];
    if (seen.includes(value)) return "[Circular *1]";
    const deeper = [...seen, value];
    const many = Array.isArray(value) || ArrayBuffer.isView(value);
    const name = value.constructor && value.constructor !== Object && value.constructor !== Array ? value.constructor.name + " " : "";
    if (deeper.length > 3) return many ? "[Array]" : "[" + (name.trim() || "Object") + "]";
    let parts;
    let head = name;
    if (value instanceof Map) {
      head = "Map(" + value.size + ") ";
      parts = [...value].map(([k, v]) => inspect(k, true, deeper) + " => " + inspect(v, true, deeper));
    } else if (value instanceof Set) {
      head = "Set(" + value.size + ") ";
      parts = [...value].map((item) => inspect(item, true, deeper));
    } else if (many) {
      parts = Array.from(value).slice(0, 100).map((item) => inspect(item, true, deeper));
      if (value.length > 100) parts.push("... " + (value.length - 100) + " more items");
    } else {
      parts = Object.keys(value).map((name) => key(name) + ": " + inspect(value[name], true, deeper));
    }
    const [open, close] = many ? ["[", "]"] : ["{", "}"];
    if (parts.length === 0) return head + open + close;
    const line = head + open + " " + parts.join(", ") + " " + close;
    if (line.length <= 76 && !line.includes("\n")) return line;
    const indent = "  ".repeat(deeper.length);
    return head + open + "\n" + indent + parts.join(",\n" + indent) + "\n" + indent.slice(2) + close;
  };
  const line = (write) => (...values) => write(values.map((value) => inspect(value)).join(" ") + "\n");
  const join = (data) => (Array.isArray(data) ? data.join("\n") : data);
  const fs = {
    readFileSync: (path) => (path === 0 || path === "/dev/stdin" ? stdin() : read(path)),
    writeFileSync: (path, data) => (path === 1 || path === "/dev/stdout" ? raw(data) : write(path, data)),
    appendFileSync: append,
    existsSync: (path) => kind(path) !== "",
    readdirSync: (path) => list(path).split("\0").filter((name) => name !== ""),
    statSync: (path) => {
      const found = kind(path);
      if (found === "") read(path);
      return { size: Number(found.slice(1)), isDirectory: () => found[0] === "d", isFile: () => found[0] === "f" };
    },
    mkdirSync: (path) => change("mkdir", path),
    unlinkSync: (path) => change("unlink", path),
    rmdirSync: (path) => change("rmdir", path),
    rmSync: (path, options) =>
      change(kind(path)[0] === "d" ? (options && options.recursive ? "tree" : "rmdir") : "unlink", path),
    renameSync: (from, to) => change("rename", from, to),
  };
  const path = {
    sep: "/",
    normalize: (text) => {
      const parts = [];
      for (const part of text.split("/")) {
        if (part === ".." && parts.length > 0 && parts[parts.length - 1] !== "..") parts.pop();
        else if (part !== "" && part !== "." && !(part === ".." && text[0] === "/")) parts.push(part);
      }
      return (text[0] === "/" ? "/" : "") + parts.join("/") || ".";
    },
    join: (...parts) => path.normalize(parts.filter((part) => part !== "").join("/")),
    resolve: (...parts) => parts.reduce((at, part) => (part[0] === "/" ? path.normalize(part) : path.join(at, part)), cwd),
    basename: (text, end) => {
      const name = text.replace(/\/+$/, "").split("/").pop();
      return end && name.endsWith(end) && name !== end ? name.slice(0, -end.length) : name;
    },
    dirname: (text) => {
      const at = text.replace(/\/+$/, "").lastIndexOf("/");
      return at < 0 ? "." : at === 0 ? "/" : text.slice(0, at);
    },
    extname: (text) => (/.(\.[^./]*)$/.exec(text.split("/").pop()) || ["", ""])[1],
  };
  const log = line(raw);
  const complain = line(error);
  hide("console", { log, info: log, debug: log, error: complain, warn: complain });
  hide("print", log);
  hide("scriptArgs", args);
  hide("process", {
    argv: ["js", ...args],
    env,
    exit: (code) => exit(code === undefined ? 0 : code),
    cwd: () => cwd,
    stdout: { write: (data) => (raw(data), true) },
    platform: "wasi",
  });
  hide("readFile", fs.readFileSync);
  hide("writeFile", (name, data) => fs.writeFileSync(name, join(data)));
  hide("readStdin", stdin);
  hide("readLines", (name) => {
    const lines = (name === undefined ? stdin() : read(name)).split("\n");
    if (lines[lines.length - 1] === "") lines.pop();
    return lines;
  });
  hide("require", (name) => {
    const modules = { fs, path };
    const found = modules[name.replace(/^node:/, "")];
    if (found === undefined) throw new Error("Cannot find module '" + name + "': only fs and path are there");
    return found;
  });
  return inspect;
})
