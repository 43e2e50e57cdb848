(function (args, env, cwd) {
  const take = (name) => {
    const value = globalThis[name];
    delete globalThis[name];
    return value;
  };
  const out = take("__out"), error = take("__error"), raw = take("__raw"), exit = take("__exit");
  const stdin = take("__stdin"), read = take("__read"), write = take("__write"), append = take("__append");
  const list = take("__list"), kind = take("__kind"), change = take("__change");
  const hide = (name, value) => Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
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
  hide("console", { log: out, info: out, debug: out, error, warn: error });
  hide("print", out);
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
})
