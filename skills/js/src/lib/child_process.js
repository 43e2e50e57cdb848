(native, need) => {
  const { coded, invalid } = need("internal/errors");
  const { Buffer } = need("buffer");
  const Events = need("events");
  const most = 64 * 1024 * 1024;
  const ways = (stdio) => {
    const list = Array.isArray(stdio) ? stdio : [stdio, stdio, stdio];
    return [0, 1, 2].map((number) => {
      const way = list[number];
      if (way === undefined || way === null || way === "pipe" || way === "overlapped") return "pipe";
      if (way === "inherit" || way === number || way === [process.stdin, process.stdout, process.stderr][number]) return "inherit";
      if (way === "ignore") return "ignore";
      throw coded(TypeError, "ERR_INVALID_ARG_VALUE", "stdio must be 'pipe', 'inherit' or 'ignore'");
    });
  };
  const words = (file, args, options) => {
    if (typeof file !== "string" || file === "") throw invalid("file", "of type string", file);
    if (!options.shell) return [file, ...args.map(String)];
    return [typeof options.shell === "string" ? options.shell : "sh", "-c", [file, ...args].join(" ")];
  };
  const failure = (argv, reason, hint, call) => {
    const missing = reason === "ENOENT";
    const message = missing ? `${call} ${argv[0]} ENOENT${hint === "" ? "" : ` (${hint})`}` : `${call} ${argv[0]}: ${reason}`;
    return coded(Error, missing ? "ENOENT" : "EACCES", message, { errno: missing ? -2 : -13, syscall: `${call} ${argv[0]}`, path: argv[0], spawnargs: argv.slice(1) });
  };
  // Runs a command to its end; every function below does.
  const run = (file, args, options, call) => {
    const argv = words(file, args, options);
    const env = Object.entries(options.env || process.env).filter(([, value]) => value !== undefined).flatMap(([name, value]) => [name, String(value)]);
    const cwd = need("path").resolve(options.cwd === undefined || options.cwd === null ? native.cwd() : need("url").toPath(options.cwd));
    const streams = ways(options.stdio);
    let input = options.input;
    if (input !== undefined && input !== null && typeof input !== "string") input = Buffer.from(input.buffer || input, input.byteOffset, input.byteLength);
    // The command's input is empty unless it is given or is that of the script.
    if ((input === undefined || input === null) && streams[0] === "inherit") input = native.hasInput() ? Buffer.from(native.stdin()) : undefined;
    const limit = options.maxBuffer === undefined || options.maxBuffer === Infinity ? most : Math.min(options.maxBuffer, most);
    const [code, out, err, reason] = native.start(argv, env, cwd, input === null ? undefined : input, streams.slice(1), options.timeout || 0, limit);
    const stdout = Buffer.from(out), stderr = Buffer.from(err);
    if (code < 0) return { argv, status: null, signal: null, stdout: Buffer.alloc(0), stderr: Buffer.alloc(0), error: failure(argv, reason, stderr.toString(), call), streams };
    const killed = code === 137 || reason === "ETIMEDOUT";
    const ended = { argv, status: killed ? null : code, signal: killed ? (reason === "ETIMEDOUT" ? options.killSignal || "SIGTERM" : "SIGKILL") : null, stdout, stderr, streams };
    if (reason !== "") ended.error = coded(Error, reason, `${call} ${argv[0]} ${reason}`, { syscall: `${call} ${argv[0]}`, path: argv[0] });
    return ended;
  };
  const shown = (bytes, options) => (options.encoding && options.encoding !== "buffer" ? bytes.toString(options.encoding) : bytes);
  const given = (args, options) => (Array.isArray(args) ? [args, options || {}] : [[], args || {}]);
  const spawnSync = (file, args, options) => {
    const [list, set] = given(args, options);
    const ended = run(file, list, set, "spawnSync");
    const [, out, err] = ended.streams;
    const stdout = out === "pipe" ? shown(ended.stdout, set) : null, stderr = err === "pipe" ? shown(ended.stderr, set) : null;
    return { pid: 3, output: [null, stdout, stderr], stdout, stderr, status: ended.status, signal: ended.signal, ...(ended.error ? { error: ended.error } : {}) };
  };
  const checked = (ended, set, command, streams) => {
    if (streams[2] === "pipe" && set.stdio === undefined && ended.stderr.length > 0) native.print(2, ended.stderr);
    if (ended.error || ended.status !== 0) {
      const text = ended.stderr.toString();
      const error = ended.error || new Error(`Command failed: ${command}${text === "" ? "" : "\n" + text}`);
      const stdout = shown(ended.stdout, set), stderr = shown(ended.stderr, set);
      throw Object.assign(error, { status: ended.status, signal: ended.signal, output: [null, stdout, stderr], pid: 3, stdout, stderr });
    }
    return streams[1] === "pipe" ? shown(ended.stdout, set) : null;
  };
  const execFileSync = (file, args, options) => {
    const [list, set] = given(args, options);
    const ended = run(file, list, set, "spawnSync");
    return checked(ended, set, [file, ...list].join(" "), ended.streams);
  };
  const execSync = (command, options) => {
    const set = { ...options, shell: (options && options.shell) || true };
    const ended = run(command, [], set, "spawnSync");
    return checked(ended, set, command, ended.streams);
  };
  class ChildProcess extends Events {
    constructor(file, args, options) {
      super();
      const { Readable } = need("stream");
      const streams = ways(options.stdio);
      Object.assign(this, { pid: 3, exitCode: null, signalCode: null, killed: false, connected: false, spawnfile: file, spawnargs: [file, ...args] });
      const parts = [];
      this.stdin = streams[0] === "pipe" ? new (need("stream").Writable)({
        write: (chunk, encoding, done) => { parts.push(Buffer.from(chunk)); done(); },
      }) : null;
      this.stdout = streams[1] === "pipe" ? new Readable({ read() {} }) : null;
      this.stderr = streams[2] === "pipe" ? new Readable({ read() {} }) : null;
      this.stdio = [this.stdin, this.stdout, this.stderr];
      let started = false;
      const start = () => {
        if (started || this.killed) return;
        started = true;
        const input = options.input !== undefined ? options.input : parts.length > 0 ? Buffer.concat(parts) : undefined;
        const ended = run(file, args, { ...options, input }, "spawn");
        if (ended.error && ended.status === null && ended.signal === null) {
          this.emit("error", ended.error);
          this.finish(ended, -2);
          return;
        }
        this.emit("spawn");
        this.failure = ended.error;
        this.finish(ended, ended.status);
      };
      // A script that writes to the command's input ends it, and then the command can start.
      const soon = () => need("timers").setImmediate(() => {
        if (this.stdin === null || this.stdin.writableEnded || parts.length === 0) start();
      });
      if (this.stdin) this.stdin.on("finish", () => need("timers").setImmediate(start));
      need("timers").setImmediate(soon);
    }
    finish(ended, code) {
      for (const [stream, bytes] of [[this.stdout, ended.stdout], [this.stderr, ended.stderr]]) {
        if (stream === null) continue;
        if (bytes.length > 0) stream.push(bytes);
        stream.push(null);
      }
      this.exitCode = code;
      this.signalCode = ended.signal;
      need("timers").setImmediate(() => {
        this.emit("exit", code, ended.signal);
        // After all that was printed has been read.
        let tries = 0;
        const close = () => {
          const waits = [this.stdout, this.stderr].some((stream) => stream !== null && stream.readableFlowing && !stream.readableEnded);
          tries += 1;
          if (waits && tries < 1000) need("timers").setImmediate(close);
          else this.emit("close", code, ended.signal);
        };
        need("timers").setImmediate(close);
      });
    }
    kill() {
      if (this.exitCode !== null) return false;
      this.killed = true;
      need("timers").setImmediate(() => this.finish({ stdout: [], stderr: [], signal: "SIGTERM" }, null));
      return true;
    }
    ref() { return this; }
    unref() { return this; }
    disconnect() {}
  }
  const spawn = (file, args, options) => {
    const [list, set] = given(args, options);
    words(file, list, set);
    return new ChildProcess(file, list, set);
  };
  const collected = (child, set, command, done) => {
    const parts = { stdout: [], stderr: [] };
    for (const name of ["stdout", "stderr"]) child[name].on("data", (chunk) => parts[name].push(chunk));
    let failed = false;
    child.on("error", (error) => {
      failed = true;
      if (done) done(error, "", "");
    });
    child.on("close", (code, signal) => {
      if (failed || !done) return;
      const [stdout, stderr] = ["stdout", "stderr"].map((name) => shown(Buffer.concat(parts[name]), { encoding: set.encoding === undefined ? "utf8" : set.encoding }));
      if (code === 0 && !child.failure) return done(null, stdout, stderr);
      const error = child.failure || new Error(`Command failed: ${command}\n${stderr}`);
      done(Object.assign(error, { code: child.failure ? child.failure.code : code, killed: child.killed, signal, cmd: command, stdout, stderr }), stdout, stderr);
    });
    return child;
  };
  const exec = (command, options, done) => {
    const [set, call] = typeof options === "function" ? [{}, options] : [options || {}, done];
    return collected(spawn(command, [], { ...set, shell: set.shell || true }), set, command, call);
  };
  const execFile = (file, ...rest) => {
    const done = typeof rest[rest.length - 1] === "function" ? rest.pop() : undefined;
    const [list, set] = given(rest[0], rest[1]);
    return collected(spawn(file, list, set), set, [file, ...list].join(" "), done);
  };
  const custom = Symbol.for("nodejs.util.promisify.custom");
  for (const call of [exec, execFile]) {
    call[custom] = (...args) => new Promise((resolve, reject) => {
      call(...args, (error, stdout, stderr) => (error ? reject(error) : resolve({ stdout, stderr })));
    });
  }
  const fork = (file, args, options) => spawn(process.execPath, [file, ...(Array.isArray(args) ? args : [])], { stdio: "inherit", ...options });
  return { ChildProcess, spawn, spawnSync, exec, execSync, execFile, execFileSync, fork };
}
