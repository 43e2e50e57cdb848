// Bodies of requests and responses, and the classes that they can be made of.
(native, need) => {
  const bytesOf = (value) => (ArrayBuffer.isView(value) ? new Uint8Array(value.buffer, value.byteOffset, value.byteLength) : new Uint8Array(value));
  const joined = (parts) => {
    const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
    let at = 0;
    for (const part of parts) {
      whole.set(part, at);
      at += part.length;
    }
    return whole;
  };
  const encode = (text) => new Uint8Array(native.encode(String(text), "utf8"));
  class Blob {
    #bytes;
    constructor(parts = [], options = {}) {
      this.#bytes = joined(Array.from(parts, (part) => (part instanceof Blob ? part.#bytes : part instanceof ArrayBuffer || ArrayBuffer.isView(part) ? bytesOf(part) : encode(part))));
      Object.defineProperty(this, "type", { value: String(options.type || "").toLowerCase(), enumerable: true });
    }
    get size() { return this.#bytes.length; }
    slice(from, to, type) { return new Blob([this.#bytes.slice(from, to)], { type }); }
    async arrayBuffer() { return this.#bytes.slice().buffer; }
    async bytes() { return this.#bytes.slice(); }
    async text() { return native.decode(this.#bytes, "utf8"); }
    stream() { return streamOf(one(this.#bytes)); }
    static bytes(blob) { return blob.#bytes; }
  }
  const fileBytes = Blob.bytes;
  delete Blob.bytes;
  class File extends Blob {
    constructor(parts, name, options = {}) {
      super(parts, options);
      Object.assign(this, { name: String(name), lastModified: options.lastModified === undefined ? Date.now() : Number(options.lastModified) });
    }
  }
  class FormData {
    #list = [];
    #entry(name, value, file) {
      if (!(value instanceof Blob)) return [String(name), String(value)];
      const named = value instanceof File && file === undefined ? value : new File([value], file === undefined ? "blob" : file, { type: value.type });
      return [String(name), named];
    }
    append(name, value, file) { this.#list.push(this.#entry(name, value, file)); }
    set(name, value, file) {
      const at = this.#list.findIndex(([other]) => other === String(name));
      const entry = this.#entry(name, value, file);
      this.#list = this.#list.filter(([other], index) => other !== String(name) || index === at);
      if (at < 0) this.#list.push(entry);
      else this.#list[at] = entry;
    }
    delete(name) { this.#list = this.#list.filter(([other]) => other !== String(name)); }
    get(name) {
      const found = this.#list.find(([other]) => other === String(name));
      return found === undefined ? null : found[1];
    }
    getAll(name) { return this.#list.filter(([other]) => other === String(name)).map(([, value]) => value); }
    has(name) { return this.#list.some(([other]) => other === String(name)); }
    forEach(call, self) { for (const [name, value] of this) call.call(self, value, name, this); }
    *entries() { yield* this.#list; }
    *keys() { for (const [name] of this.#list) yield name; }
    *values() { for (const [, value] of this.#list) yield value; }
    [Symbol.iterator]() { return this.entries(); }
  }
  const multipart = (form) => {
    const boundary = "----formdata-kiso-" + need("crypto").randomBytes(8).toString("hex");
    const escaped = (text) => text.replace(/\n/g, "%0A").replace(/\r/g, "%0D").replace(/"/g, "%22");
    const parts = [];
    for (const [name, value] of form) {
      const file = value instanceof File ? `; filename="${escaped(value.name)}"\r\ncontent-type: ${value.type || "application/octet-stream"}` : "";
      parts.push(encode(`--${boundary}\r\ncontent-disposition: form-data; name="${escaped(name)}"${file}\r\n\r\n`));
      parts.push(value instanceof File ? fileBytes(value) : encode(value), encode("\r\n"));
    }
    parts.push(encode(`--${boundary}--\r\n`));
    return [joined(parts), `multipart/form-data; boundary=${boundary}`];
  };
  // Gives these bytes once, and then the end.
  const one = (bytes) => {
    let rest = bytes.length > 0 ? bytes : null;
    return async () => {
      const chunk = rest;
      rest = null;
      return chunk;
    };
  };
  const next = Symbol("next");
  // A stream over a function that resolves to the next chunk, or to null.
  const streamOf = (pull, cancel) => new ReadableStream({ [next]: pull, cancel });
  // Streams of the web, as far as scripts use them.
  class ReadableStream {
    #pull; #cancel; #ended = false; #queue = []; #wake = null; #failure;
    locked = false;
    constructor(source = {}) {
      if (source[next]) {
        this.#pull = source[next];
      } else {
        const controller = {
          desiredSize: 1,
          enqueue: (chunk) => { this.#queue.push({ chunk }); this.#awake(); },
          close: () => { this.#queue.push({ chunk: null }); this.#awake(); },
          error: (failure) => { this.#queue.push({ failure }); this.#awake(); },
        };
        if (source.start) source.start(controller);
        this.#pull = async () => {
          while (this.#queue.length === 0) {
            if (source.pull) await source.pull(controller);
            if (this.#queue.length > 0) break;
            await new Promise((resolve) => { this.#wake = resolve; });
          }
          const { chunk, failure } = this.#queue.shift();
          if (failure !== undefined) throw failure;
          return chunk;
        };
      }
      this.#cancel = source.cancel || (() => {});
    }
    #awake() {
      if (this.#wake) this.#wake();
      this.#wake = null;
    }
    async #next() {
      if (this.#failure !== undefined) throw this.#failure.reason;
      if (this.#ended) return { value: undefined, done: true };
      try {
        const chunk = await this.#pull();
        if (chunk !== null) return { value: chunk, done: false };
        this.#ended = true;
        return { value: undefined, done: true };
      } catch (reason) {
        this.#failure = { reason };
        throw reason;
      }
    }
    getReader() {
      if (this.locked) throw need("internal/errors").coded(TypeError, "ERR_INVALID_STATE", "Invalid state: ReadableStream is locked");
      this.locked = true;
      return { read: () => this.#next(), cancel: (reason) => this.#stop(reason), releaseLock: () => { this.locked = false; } };
    }
    async #stop(reason) {
      this.#ended = true;
      await this.#cancel(reason);
    }
    cancel(reason) { return this.#stop(reason); }
    values() { return this[Symbol.asyncIterator](); }
    [Symbol.asyncIterator]() {
      const reader = this.getReader();
      return {
        next: () => reader.read(),
        return: async (value) => { await reader.cancel(); return { value, done: true }; },
        [Symbol.asyncIterator]() { return this; },
      };
    }
    static from(list) {
      const items = list[Symbol.asyncIterator] ? list[Symbol.asyncIterator]() : list[Symbol.iterator]();
      return streamOf(async () => {
        const { value, done } = await items.next();
        return done ? null : value;
      });
    }
  }
  // The stream of a body, its bytes where they are known, and the type that goes with them.
  const read = (init) => {
    if (init === null || init === undefined) return { bytes: null, stream: null, type: null };
    if (init instanceof ReadableStream) return { bytes: null, stream: init, type: null };
    if (init instanceof Blob) return { bytes: fileBytes(init), type: init.type || null };
    if (init instanceof need("url").URLSearchParams) return { bytes: encode(init), type: "application/x-www-form-urlencoded;charset=UTF-8" };
    if (init instanceof ArrayBuffer || ArrayBuffer.isView(init)) return { bytes: bytesOf(init).slice(), type: null };
    if (init instanceof FormData) {
      const [bytes, type] = multipart(init);
      return { bytes, type };
    }
    if (typeof init === "object" && init[Symbol.asyncIterator]) return { bytes: null, stream: ReadableStream.from(init), type: null };
    return { bytes: encode(init), type: "text/plain;charset=UTF-8" };
  };
  // The base of Request and Response.
  class Body {
    #bytes; #stream; #used = false;
    constructor(init) {
      const { bytes, stream, type } = read(init);
      this.#bytes = bytes;
      this.#stream = stream;
      Object.defineProperty(this, "bodyType", { value: type, enumerable: false });
    }
    get body() {
      if (!this.#stream && this.#bytes !== null) this.#stream = streamOf(one(this.#bytes));
      return this.#stream || null;
    }
    get bodyUsed() { return this.#used || (this.#stream ? this.#stream.locked : false); }
    async bytes() {
      if (this.bodyUsed) throw new TypeError("Body is unusable: Body has already been read");
      if (this.#bytes === null && !this.#stream) return new Uint8Array(0);
      this.#used = true;
      if (this.#bytes !== null) return this.#bytes;
      const parts = [];
      for await (const chunk of this.#stream) parts.push(typeof chunk === "string" ? encode(chunk) : bytesOf(chunk));
      return joined(parts);
    }
    async arrayBuffer() { return (await this.bytes()).slice().buffer; }
    async text() { return native.decode(await this.bytes(), "utf8").replace(/^\ufeff/, ""); }
    async json() { return JSON.parse(await this.text()); }
    async blob() { return new Blob([await this.bytes()], { type: (this.headers && this.headers.get("content-type")) || "" }); }
    async formData() {
      const type = (this.headers && this.headers.get("content-type")) || "";
      if (!type.startsWith("application/x-www-form-urlencoded")) throw new TypeError("Could not parse content as FormData.");
      const form = new FormData();
      for (const [name, value] of new URLSearchParams(await this.text())) form.append(name, value);
      return form;
    }
    // Two bodies of one.
    copy() {
      if (this.bodyUsed) throw new TypeError("Body is unusable: Body has already been read");
      if (this.#bytes !== null || !this.#stream) return this.#bytes;
      const [from, queues] = [this.#stream, [[], []]];
      const source = from.getReader();
      const branch = (own, other) => streamOf(async () => {
        if (own.length === 0) {
          const turn = source.read();
          own.push(turn);
          other.push(turn);
        }
        const { value, done } = await own.shift();
        return done ? null : value;
      });
      this.#stream = branch(queues[0], queues[1]);
      return branch(queues[1], queues[0]);
    }
  }
  return { Blob, File, FormData, ReadableStream, Body, streamOf };
}
