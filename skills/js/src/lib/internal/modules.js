// `require` and the class Module.
(native, need) => {
  const { coded, wrapped } = need("internal/errors");
  const builtins = need("internal/names");
  const parents = new Map();
  const directory = (path) => path.slice(0, Math.max(1, path.lastIndexOf("/")));
  class Module {
    constructor(id, parent) {
      this.id = id;
      this.path = directory(id);
      this.exports = {};
      this.filename = id;
      this.loaded = false;
      this.children = [];
      this.paths = [];
      this.parent = parent;
    }
    require(words) {
      return this.requireFrom(words);
    }
  }
  const cache = Object.create(null);
  let main;
  const resolve = (words, from, id) => {
    if (typeof words !== "string") throw need("internal/errors").invalid("id", "of type string", words);
    try {
      return native.resolve(words, from);
    } catch (error) {
      if (error.code === "MODULE_NOT_FOUND" && id !== undefined) {
        const stack = [];
        for (let at = id; at !== undefined && !stack.includes(at); at = parents.get(at)) stack.push(at);
        error.message += "\nRequire stack:\n- " + stack.join("\n- ");
        error.requireStack = stack;
      }
      throw error;
    }
  };
  const load = (path, parent) => {
    if (path.startsWith("node:")) return need(path.slice(5));
    const found = cache[path];
    if (found !== undefined) {
      if (parent && !parent.children.includes(found)) parent.children.push(found);
      return found.exports;
    }
    const module = new Module(path, parent);
    if (parent) {
      parent.children.push(module);
      parents.set(path, parent.id);
    } else if (main === undefined) {
      main = module;
      module.id = ".";
      process.mainModule = module;
    }
    cache[path] = module;
    try {
      run(module, path);
    } catch (error) {
      delete cache[path];
      throw error;
    }
    module.loaded = true;
    return module.exports;
  };
  const run = (module, path) => {
    const format = native.format(path);
    if (format === "json") {
      const text = native.source(path);
      try {
        module.exports = JSON.parse(text);
      } catch (error) {
        throw new SyntaxError(`${path}: ${error.message}`);
      }
      return;
    }
    const compiled = format === "module" ? undefined : compile(path);
    if (compiled === undefined) {
      throw coded(Error, "ERR_REQUIRE_ESM", `require() of ES Module ${path} is not supported; use import() instead`);
    }
    const require = makeRequire(module, path);
    module.requireFrom = require;
    compiled.call(module.exports, module.exports, require, module, path, directory(path));
  };
  const compile = (path) => {
    wrapped.add(path);
    return native.compile(path);
  };
  const makeRequire = (module, path) => {
    const from = path.startsWith("/") ? directory(path) : native.cwd();
    const require = (words) => load(resolve(words, from, path), module);
    require.resolve = (words, options) => {
      const places = options && options.paths ? options.paths : [from];
      let failure;
      for (const place of places) {
        try {
          return resolve(words, need("path").resolve(place), path);
        } catch (error) {
          failure = error;
        }
      }
      throw failure;
    };
    require.resolve.paths = () => [];
    require.cache = cache;
    require.main = main;
    require.extensions = Object.create(null);
    return require;
  };
  Module.builtinModules = builtins;
  Module.isBuiltin = (name) => builtins.includes(String(name).replace(/^node:/, ""));
  Module.createRequire = (place) => {
    const text = String(place);
    const path = text.startsWith("file:") ? need("url").fileURLToPath(text) : text;
    return makeRequire(new Module(path), path.endsWith("/") ? path + "noop.js" : path);
  };
  Module.Module = Module;
  Module._cache = cache;
  return {
    Module,
    // For `import`, which has resolved the path already.
    load: (path) => {
      if (main === undefined) main = null;
      return load(path, null);
    },
    runMain: (path) => { load(path, undefined); },
    evalModule: (name) => {
      const module = new Module(name);
      module.filename = native.cwd() + "/" + name;
      if (main === undefined) main = module;
      module.requireFrom = makeRequire(module, name);
      module.require = module.requireFrom;
      return module;
    },
    describeModule: (meta, path) => {
      if (main === undefined) main = null;
      const isFile = path.startsWith("/");
      meta.dirname = isFile ? directory(path) : undefined;
      meta.filename = isFile ? path : undefined;
      meta.url = isFile ? need("url").pathToFileURL(path).href : `file://${native.cwd()}/${path}`;
      meta.main = isFile && path === process.argv[1];
      meta.resolve = (words) => {
        const found = native.resolve(words, isFile ? directory(path) : native.cwd());
        return found.startsWith("node:") ? found : need("url").pathToFileURL(found).href;
      };
    },
  };
}
