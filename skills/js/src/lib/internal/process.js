// The object `process`, and how a script ends.
(native, need) => ({ path, words, env, versions }) => {
  const { coded } = need("internal/errors");
  const Events = need("events");
  const process = new Events();
  const entries = [];
  for (let i = 0; i < env.length; i += 2) entries.push([env[i], env[i + 1]]);
  process.env = new Proxy(Object.fromEntries(entries), {
    set: (target, name, value) => {
      target[name] = String(value);
      return true;
    },
  });
  const [node, kiso] = versions;
  const execPath = "/usr/bin/node";
  const script = path === "" ? [] : [path === "-" ? "-" : need("path").resolve(native.cwd(), path)];
  let ending = false;
  const exit = (code) => {
    if (code !== undefined) process.exitCode = code;
    if (!ending) {
      ending = true;
      process.emit("exit", process.exitCode === undefined ? 0 : Number(process.exitCode));
    }
    native.exit(process.exitCode === undefined ? 0 : Number(process.exitCode));
  };
  const stream = (number) => {
    const { Writable } = need("stream");
    const made = new Writable({
      decodeStrings: false,
      write: (data, encoding, done) => {
        native.print(number, typeof data === "string" && encoding && !/^utf-?8$/i.test(encoding) ? Buffer.from(data, encoding) : data);
        done();
      },
    });
    // Output leaves at once, so nothing has to wait for it.
    made.write = (data, encoding, done) => {
      if (typeof data !== "string" && !ArrayBuffer.isView(data)) throw need("internal/errors").invalid("chunk", "of type string or an instance of Buffer", data);
      native.print(number, typeof data === "string" && typeof encoding === "string" ? Buffer.from(data, encoding) : data);
      const call = typeof encoding === "function" ? encoding : done;
      if (call) process.nextTick(call);
      return true;
    };
    return Object.assign(made, { fd: number, isTTY: false, columns: undefined, hasColors: () => false, getColorDepth: () => 1 });
  };
  const lazy = (name, make) => {
    let made;
    Object.defineProperty(process, name, {
      configurable: true,
      enumerable: true,
      get: () => {
        made = made || { value: make() };
        return made.value;
      },
      set: (value) => { made = { value }; },
    });
  };
  lazy("stdout", () => stream(1));
  lazy("stderr", () => stream(2));
  lazy("stdin", () => {
    const { Readable } = need("stream");
    let given = false;
    const made = new Readable({
      read() {
        if (given) return;
        given = true;
        const bytes = Buffer.from(native.stdin());
        if (bytes.length > 0) this.push(bytes);
        this.push(null);
      },
    });
    return Object.assign(made, { fd: 0, isTTY: false, setRawMode: () => made, ref: () => made, unref: () => made });
  });
  const hrtime = (since) => {
    const now = native.milliseconds();
    const [seconds, rest] = [Math.floor(now / 1000), Math.floor((now % 1000) * 1e6)];
    if (since === undefined) return [seconds, rest];
    const [whole, part] = [seconds - since[0], rest - since[1]];
    return part < 0 ? [whole - 1, part + 1e9] : [whole, part];
  };
  hrtime.bigint = () => BigInt(Math.floor(native.milliseconds() * 1e6));
  const memory = () => ({ rss: 67108864, heapTotal: 33554432, heapUsed: 16777216, external: 0, arrayBuffers: 0 });
  Object.assign(process, {
    title: "node", argv: [execPath, ...script, ...words], argv0: "node", execArgv: [], execPath, exit, exitCode: undefined,
    version: "v" + node, versions: { node, kiso, v8: "0.0.0", uv: "0.0.0", modules: "127" }, release: { name: "node", lts: "Jod" },
    platform: "linux", arch: "x64", pid: 2, ppid: 1, config: { variables: {} }, features: {},
    cwd: () => native.cwd(), chdir: (to) => native.chdir(String(to)), umask: () => 18, uptime: () => native.milliseconds() / 1000,
    hrtime, memoryUsage: Object.assign(memory, { rss: () => memory().rss }), cpuUsage: () => ({ user: Math.floor(native.milliseconds() * 1000), system: 0 }),
    getuid: () => 1000, geteuid: () => 1000, getgid: () => 1000, getegid: () => 1000,
    nextTick: (call, ...args) => { Promise.resolve().then(() => call(...args)); },
    abort: () => native.exit(134),
    kill: () => { throw coded(Error, "EPERM", "kill EPERM: a script can only end the commands that it started"); },
    emitWarning: (warning, options) => {
      const name = typeof options === "string" ? options : (options && options.type) || (warning && warning.name) || "Warning";
      native.print(2, `(node:2) ${name}: ${warning && warning.message ? warning.message : warning}\n`);
    },
    binding: () => { throw coded(Error, "ERR_INVALID_MODULE", "process.binding is not available"); },
  });
  Object.defineProperty(process, Symbol.toStringTag, { value: "process", configurable: true });
  return {
    process,
    uncaught: (error) => {
      if (process.listenerCount("uncaughtException") > 0) {
        process.emit("uncaughtException", error, "uncaughtException");
        return true;
      }
      // The listeners for the end run, and the error is printed below.
      return false;
    },
    rejected: (reason, promise) => {
      if (process.listenerCount("unhandledRejection") === 0) return false;
      process.emit("unhandledRejection", reason, promise);
      return true;
    },
    end: () => {
      process.emit("beforeExit", Number(process.exitCode || 0));
      if (!ending) {
        ending = true;
        process.emit("exit", Number(process.exitCode || 0));
      }
      return Number(process.exitCode || 0);
    },
  };
}
