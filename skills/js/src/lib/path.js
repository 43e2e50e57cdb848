(native) => {
  const check = (value, name) => {
    if (typeof value !== "string") {
      const error = new TypeError(`The "${name}" argument must be of type string. Received ${value === undefined ? "undefined" : value === null ? "null" : typeof value}`);
      error.code = "ERR_INVALID_ARG_TYPE";
      throw error;
    }
    return value;
  };
  const parts = (text, isAbsolute) => {
    const kept = [];
    for (const part of text.split("/")) {
      if (part === "" || part === ".") continue;
      if (part !== "..") kept.push(part);
      else if (kept.length > 0 && kept[kept.length - 1] !== "..") kept.pop();
      else if (!isAbsolute) kept.push("..");
    }
    return kept.join("/");
  };
  const path = {
    sep: "/",
    delimiter: ":",
    normalize: (text) => {
      if (check(text, "path") === "") return ".";
      const isAbsolute = text[0] === "/";
      const kept = parts(text, isAbsolute);
      if (kept === "") return isAbsolute ? "/" : text.endsWith("/") ? "./" : ".";
      return (isAbsolute ? "/" : "") + kept + (text.endsWith("/") ? "/" : "");
    },
    isAbsolute: (text) => check(text, "path")[0] === "/",
    join: (...given) => {
      const joined = given.filter((part) => check(part, "path") !== "").join("/");
      return joined === "" ? "." : path.normalize(joined);
    },
    resolve: (...given) => {
      let resolved = "";
      for (let i = given.length - 1; i >= 0 && resolved[0] !== "/"; i -= 1) {
        if (check(given[i], `paths[${i}]`) !== "") resolved = resolved === "" ? given[i] : given[i] + "/" + resolved;
      }
      if (resolved[0] !== "/") resolved = native.cwd() + "/" + resolved;
      return "/" + parts(resolved, true);
    },
    relative: (from, to) => {
      const [start, end] = [path.resolve(check(from, "from")), path.resolve(check(to, "to"))].map((text) => text.split("/").filter((part) => part !== ""));
      let same = 0;
      while (same < start.length && same < end.length && start[same] === end[same]) same += 1;
      return [...start.slice(same).map(() => ".."), ...end.slice(same)].join("/");
    },
    basename: (text, ending) => {
      const name = check(text, "path").replace(/\/+$/, "").split("/").pop();
      return ending !== undefined && name.endsWith(ending) && name !== ending ? name.slice(0, name.length - ending.length) : name;
    },
    dirname: (text) => {
      if (check(text, "path") === "") return ".";
      const trimmed = text.replace(/(.)\/+$/, "$1");
      const at = trimmed.lastIndexOf("/");
      if (at < 0) return ".";
      return trimmed.slice(0, at).replace(/\/+$/, "") || (trimmed[0] === "/" ? "/" : ".");
    },
    extname: (text) => {
      const name = check(text, "path").replace(/\/+$/, "").split("/").pop();
      const at = name.lastIndexOf(".");
      return at <= 0 || name === ".." ? "" : name.slice(at);
    },
    parse: (text) => {
      const base = path.basename(text), ext = path.extname(text), root = text[0] === "/" ? "/" : "";
      const dir = text.includes("/") ? path.dirname(text) : "";
      return { root, dir, base: base, ext, name: ext === "" ? base : base.slice(0, -ext.length) };
    },
    format: (given) => {
      const dir = given.dir || given.root || "";
      const ext = given.ext === undefined || given.ext === "" || given.ext[0] === "." ? given.ext || "" : "." + given.ext;
      const base = given.base || (given.name || "") + ext;
      return dir === "" ? base : dir === given.root ? dir + base : dir + "/" + base;
    },
    matchesGlob: (text, pattern) => {
      const source = pattern.replace(/[.+^$()|[\]\\]/g, "\\$&").replace(/\{([^}]*)\}/g, (_, list) => "(" + list.split(",").join("|") + ")")
        .replace(/\*\*\/|\*\*|\*|\?/g, (mark) => ({ "**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]" })[mark]);
      return new RegExp("^" + source + "$").test(text);
    },
    toNamespacedPath: (text) => text,
  };
  path.posix = path;
  return path;
}
