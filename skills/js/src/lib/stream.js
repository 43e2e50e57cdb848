(native, need) => {
  const Events = need("events");
  const { coded } = need("internal/errors");
  class Stream extends Events {
    constructor(options = {}) {
      super();
      this.destroyed = false;
      if (options.destroy) this._destroy = options.destroy;
    }
    pipe(to, options) {
      this.on("data", (chunk) => { to.write(chunk); });
      if (!(options && options.end === false) && to !== process.stdout && to !== process.stderr) this.on("end", () => to.end());
      to.emit("pipe", this);
      return to;
    }
    destroy(error) {
      if (this.destroyed) return this;
      this.destroyed = true;
      const done = (failure) => process.nextTick(() => {
        if (failure || error) this.emit("error", failure || error);
        this.emit("close");
      });
      if (this._destroy) this._destroy(error || null, done);
      else done();
      return this;
    }
  }
  const readable = (stream, options) => {
    Object.assign(stream, { readable: true, readableEnded: false, readableFlowing: null, readableObjectMode: options.objectMode === true || options.readableObjectMode === true });
    const state = { chunks: [], ended: false, asked: false, reading: false, encoding: options.encoding, scheduled: false, decoder: null };
    Object.defineProperty(stream, "readState", { value: state });
    if (options.read) stream._read = options.read;
  };
  const schedule = (stream) => {
    const state = stream.readState;
    if (state.scheduled) return;
    state.scheduled = true;
    need("timers").setImmediate(() => {
      state.scheduled = false;
      flow(stream);
    });
  };
  const flow = (stream) => {
    const state = stream.readState;
    while (stream.readableFlowing && !stream.destroyed) {
      if (state.chunks.length > 0) {
        stream.emit("data", state.chunks.shift());
        continue;
      }
      if (state.ended) {
        if (stream.readableEnded) return;
        stream.readableEnded = true;
        stream.readable = false;
        stream.emit("end");
        if (stream.writableFinished !== false) stream.destroy();
        return;
      }
      if (state.reading) return;
      state.reading = true;
      stream._read(65536);
      if (state.chunks.length === 0 && !state.ended) return;
    }
  };
  const readableMethods = {
    _read() { this.readState.reading = false; },
    push(chunk, encoding) {
      const state = this.readState;
      state.reading = false;
      if (chunk === null) {
        state.ended = true;
        const rest = state.decoder ? state.decoder.end() : "";
        if (rest !== "") state.chunks.push(rest);
      } else if (this.readableObjectMode) {
        state.chunks.push(chunk);
      } else {
        const bytes = typeof chunk === "string" ? Buffer.from(chunk, encoding) : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
        if (bytes.length > 0) {
          if (state.encoding && !state.decoder) state.decoder = new (need("string_decoder").StringDecoder)(state.encoding);
          const shown = state.decoder ? state.decoder.write(bytes) : bytes;
          if (shown.length > 0) state.chunks.push(shown);
        }
      }
      if (this.readableFlowing) schedule(this);
      else if (this.listenerCount("readable") > 0) process.nextTick(() => this.emit("readable"));
      return true;
    },
    read() {
      const state = this.readState;
      if (state.chunks.length === 0 && !state.ended && !state.reading) {
        state.reading = true;
        this._read(65536);
      }
      if (state.chunks.length > 0) {
        const all = state.chunks.splice(0);
        if (this.readableObjectMode) {
          state.chunks.push(...all.slice(1));
          return all[0];
        }
        return typeof all[0] === "string" ? all.join("") : Buffer.concat(all);
      }
      if (state.ended && !this.readableEnded) {
        this.readableEnded = true;
        process.nextTick(() => this.emit("end"));
      }
      return null;
    },
    setEncoding(encoding) {
      this.readState.encoding = encoding || "utf8";
      return this;
    },
    resume() {
      this.readableFlowing = true;
      schedule(this);
      return this;
    },
    pause() {
      this.readableFlowing = false;
      return this;
    },
    isPaused() { return this.readableFlowing === false; },
    unshift(chunk) { this.readState.chunks.unshift(chunk); },
    ref() { return this; },
    unref() { return this; },
    on(name, listener) {
      Events.prototype.on.call(this, name, listener);
      if (name === "data" && this.readableFlowing !== false) this.resume();
      if (name === "readable") {
        need("timers").setImmediate(() => {
          const state = this.readState;
          if (state.chunks.length === 0 && !state.ended && !state.reading) {
            state.reading = true;
            this._read(65536);
          }
          this.emit("readable");
        });
      }
      return this;
    },
    async *[Symbol.asyncIterator]() {
      const ready = [];
      let wake = () => {}, ended = this.readableEnded, failure;
      this.on("error", (error) => { failure = error; wake(); });
      this.on("end", () => { ended = true; wake(); });
      this.on("close", () => { ended = true; wake(); });
      this.on("data", (chunk) => { ready.push(chunk); wake(); });
      while (true) {
        if (ready.length > 0) {
          yield ready.shift();
          continue;
        }
        if (failure) throw failure;
        if (ended) return;
        await new Promise((resolve) => { wake = resolve; });
      }
    },
    async toArray() {
      const all = [];
      for await (const chunk of this) all.push(chunk);
      return all;
    },
  };
  readableMethods.addListener = readableMethods.on;
  const writable = (stream, options) => {
    Object.assign(stream, { writable: true, writableEnded: false, writableFinished: false, writableLength: 0, writableObjectMode: options.objectMode === true || options.writableObjectMode === true });
    const state = { queue: [], busy: false, decodes: options.decodeStrings !== false, ending: null, autoDestroy: options.autoDestroy !== false };
    Object.defineProperty(stream, "writeState", { value: state });
    for (const [given, name] of [["write", "_write"], ["final", "_final"]]) if (options[given]) stream[name] = options[given];
  };
  const work = (stream) => {
    const state = stream.writeState;
    if (state.busy || stream.destroyed) return;
    const next = state.queue.shift();
    if (next === undefined) {
      if (stream.writableEnded && !stream.writableFinished) finish(stream);
      return;
    }
    state.busy = true;
    let called = false;
    const done = (error) => {
      if (called) return;
      called = true;
      state.busy = false;
      if (next.done) next.done(error || null);
      if (error) {
        stream.destroy(error);
        return;
      }
      process.nextTick(() => {
        if (state.queue.length === 0 && !stream.writableEnded) stream.emit("drain");
        work(stream);
      });
    };
    stream._write(next.chunk, next.encoding, done);
  };
  const finish = (stream) => {
    const done = (error) => {
      if (error) return stream.destroy(error);
      stream.writableFinished = true;
      process.nextTick(() => {
        stream.emit("finish");
        if (stream.writeState.ending) stream.writeState.ending();
        if (stream.writeState.autoDestroy && (stream.readState === undefined || stream.readableEnded)) stream.destroy();
      });
    };
    if (stream.writeState.finishing) return;
    stream.writeState.finishing = true;
    if (stream._final) stream._final(done);
    else done();
  };
  const writableMethods = {
    _write(chunk, encoding, done) { done(); },
    write(chunk, encoding, done) {
      if (typeof encoding === "function") [encoding, done] = [undefined, encoding];
      if (this.writableEnded) {
        const error = coded(Error, "ERR_STREAM_WRITE_AFTER_END", "write after end");
        if (done) process.nextTick(done, error);
        this.destroy(error);
        return false;
      }
      const state = this.writeState;
      const bytes = typeof chunk === "string" && state.decodes && !this.writableObjectMode ? Buffer.from(chunk, encoding) : chunk;
      state.queue.push({ chunk: bytes, encoding: typeof bytes === "string" ? encoding || "utf8" : "buffer", done });
      work(this);
      return true;
    },
    end(chunk, encoding, done) {
      if (typeof chunk === "function") [chunk, encoding, done] = [undefined, undefined, chunk];
      else if (typeof encoding === "function") [encoding, done] = [undefined, encoding];
      if (chunk !== undefined && chunk !== null) this.write(chunk, encoding);
      if (done) this.writeState.ending = done;
      this.writableEnded = true;
      this.writable = false;
      work(this);
      return this;
    },
    cork() {},
    uncork() {},
    setDefaultEncoding() { return this; },
  };
  const mix = (Class, methods) => {
    for (const name of Reflect.ownKeys(methods)) Object.defineProperty(Class.prototype, name, { value: methods[name], writable: true, configurable: true });
  };
  class Readable extends Stream {
    constructor(options = {}) {
      super(options);
      readable(this, options);
    }
    static from(source, options) {
      const whole = typeof source === "string" || source instanceof Uint8Array ? [source] : source;
      const items = whole[Symbol.asyncIterator] ? whole[Symbol.asyncIterator]() : whole[Symbol.iterator]();
      return new Readable({
        objectMode: true, ...options,
        read() {
          Promise.resolve(items.next()).then(({ value, done }) => this.push(done ? null : value), (error) => this.destroy(error));
        },
      });
    }
  }
  mix(Readable, readableMethods);
  Readable.fromWeb = (source, options) => Readable.from(source, { objectMode: false, ...options });
  Readable.toWeb = (source) => need("internal/body").ReadableStream.from(source);
  class Writable extends Stream {
    constructor(options = {}) {
      super(options);
      writable(this, options);
    }
  }
  mix(Writable, writableMethods);
  class Duplex extends Readable {
    constructor(options = {}) {
      super(options);
      writable(this, options);
    }
  }
  mix(Duplex, writableMethods);
  class Transform extends Duplex {
    constructor(options = {}) {
      super(options);
      if (options.transform) this._transform = options.transform;
      if (options.flush) this._flush = options.flush;
    }
    _transform(chunk, encoding, done) { done(null, chunk); }
    _write(chunk, encoding, done) {
      this._transform(chunk, encoding, (error, made) => {
        if (made !== undefined && made !== null) this.push(made);
        done(error);
      });
    }
    _final(done) {
      const end = (error, made) => {
        if (made !== undefined && made !== null) this.push(made);
        if (!error) this.push(null);
        done(error);
      };
      if (this._flush) this._flush(end);
      else end();
    }
  }
  class PassThrough extends Transform {}
  const finished = (stream, options, done) => {
    const call = typeof options === "function" ? options : done;
    let called = false;
    const once = (error) => {
      if (called) return;
      called = true;
      call(error);
    };
    stream.on("error", once);
    stream.on("end", () => { if (stream.writeState === undefined || stream.writableFinished) once(); });
    stream.on("finish", () => { if (stream.readState === undefined || stream.readableEnded) once(); });
    stream.on("close", () => once());
  };
  const pipeline = (...given) => {
    const done = typeof given[given.length - 1] === "function" && given.length > 2 ? given.pop() : () => {};
    const list = given.length === 1 && Array.isArray(given[0]) ? given[0] : given;
    const streams = list.map((item, index) => (index === 0 && item.pipe === undefined && typeof item !== "function" ? Readable.from(item) : item));
    let at = streams[0], failed = false;
    const fail = (error) => {
      if (failed) return;
      failed = true;
      for (const stream of streams) if (stream.destroy) stream.destroy();
      done(error);
    };
    at.on("error", fail);
    for (const next of streams.slice(1)) {
      if (typeof next === "function") at = Readable.from(next(at));
      else at = at.pipe(next);
      at.on("error", fail);
    }
    if (at.writeState !== undefined) at.on("finish", () => { if (!failed) done(); });
    else at.on("end", () => { if (!failed) done(); });
    if (at.readState !== undefined && at.listenerCount("data") === 0) at.resume();
    return at;
  };
  const promises = {
    pipeline: (...given) => new Promise((resolve, reject) => { pipeline(...given, (error) => (error ? reject(error) : resolve())); }),
    finished: (stream) => new Promise((resolve, reject) => { finished(stream, (error) => (error ? reject(error) : resolve())); }),
  };
  const custom = Symbol.for("nodejs.util.promisify.custom");
  pipeline[custom] = promises.pipeline;
  finished[custom] = promises.finished;
  return Object.assign(Stream, { Stream, Readable, Writable, Duplex, Transform, PassThrough, pipeline, finished, promises });
}
