(native, need) => {
  const { coded, invalid } = need("internal/errors");
  const names = { utf8: "utf8", "utf-8": "utf8", hex: "hex", base64: "base64", base64url: "base64url", latin1: "latin1", binary: "latin1",
    ascii: "ascii", ucs2: "utf16le", "ucs-2": "utf16le", utf16le: "utf16le", "utf-16le": "utf16le" };
  const encodingOf = (name) => {
    if (name === undefined || name === null || name === "") return "utf8";
    const found = names[String(name).toLowerCase()];
    if (found === undefined) throw coded(TypeError, "ERR_UNKNOWN_ENCODING", `Unknown encoding: ${name}`);
    return found;
  };
  const encode = (text, encoding) => {
    const name = encodingOf(encoding);
    return native.encode(text, name === "base64url" ? "base64" : name === "ascii" ? "latin1" : name);
  };
  const longest = 4294967296;
  class Buffer extends Uint8Array {
    static from(value, encoding, length) {
      if (typeof value === "string") return new Buffer(encode(value, encoding));
      if (value instanceof ArrayBuffer) return new Buffer(value, encoding, length);
      if (ArrayBuffer.isView(value) || Array.isArray(value)) return copied(value);
      if (value !== null && typeof value === "object") {
        if (value.type === "Buffer" && Array.isArray(value.data)) return copied(value.data);
        const inner = typeof value.valueOf === "function" ? value.valueOf() : value;
        if (inner !== value) return Buffer.from(inner, encoding, length);
        if (typeof value.length === "number") return copied(Array.from(value));
      }
      throw invalid("first argument", "of type string or an instance of Buffer, ArrayBuffer, or Array or an Array-like Object", value);
    }
    static of(...bytes) { return copied(bytes); }
    static alloc(size, fill, encoding) {
      if (typeof size !== "number") throw invalid("size", "of type number", size);
      if (!(size >= 0 && size <= longest)) throw coded(RangeError, "ERR_OUT_OF_RANGE", `The value of "size" is out of range. It must be >= 0 && <= ${longest}. Received ${size}`);
      const made = new Buffer(size);
      return fill === undefined || fill === 0 ? made : made.fill(fill, encoding);
    }
    static allocUnsafe(size) { return Buffer.alloc(size); }
    static allocUnsafeSlow(size) { return Buffer.alloc(size); }
    static isBuffer(value) { return value instanceof Buffer; }
    static isEncoding(name) { return typeof name === "string" && names[name.toLowerCase()] !== undefined; }
    static byteLength(value, encoding) { return typeof value === "string" ? encode(value, encoding).byteLength : value.byteLength; }
    static compare(a, b) {
      const count = Math.min(a.length, b.length);
      for (let i = 0; i < count; i += 1) if (a[i] !== b[i]) return a[i] < b[i] ? -1 : 1;
      return Math.sign(a.length - b.length);
    }
    static concat(list, total) {
      if (!Array.isArray(list)) throw invalid("list", "an instance of Array", list);
      const length = total === undefined ? list.reduce((sum, part) => sum + part.length, 0) : total;
      const made = Buffer.alloc(length);
      let at = 0;
      for (const part of list) {
        if (at >= length) break;
        made.set(part.length > length - at ? part.subarray(0, length - at) : part, at);
        at += part.length;
      }
      return made;
    }
    get parent() { return this.buffer; }
    toString(encoding, start, end) {
      const from = Math.max(0, start || 0), to = end === undefined ? this.length : Math.min(end, this.length);
      if (from >= to) return "";
      return native.decode(from === 0 && to === this.length ? this : this.subarray(from, to), encodingOf(encoding));
    }
    toJSON() { return { type: "Buffer", data: Array.from(this) }; }
    toLocaleString(encoding, start, end) { return this.toString(encoding, start, end); }
    equals(other) { return Buffer.compare(this, other) === 0; }
    compare(other, from = 0, to = other.length, start = 0, end = this.length) {
      return Buffer.compare(this.subarray(start, end), other.subarray(from, to));
    }
    slice(start, end) { return this.subarray(start, end); }
    subarray(start, end) {
      const part = Uint8Array.prototype.subarray.call(new Uint8Array(this.buffer, this.byteOffset, this.length), start, end);
      return new Buffer(part.buffer, part.byteOffset, part.length);
    }
    write(text, offset, length, encoding) {
      if (typeof offset === "string") [offset, length, encoding] = [0, this.length, offset];
      else if (typeof length === "string") [length, encoding] = [undefined, length];
      const at = offset || 0;
      const bytes = new Uint8Array(encode(text, encoding));
      const count = Math.min(bytes.length, length === undefined ? this.length - at : length, this.length - at);
      this.set(bytes.subarray(0, count), at);
      return count;
    }
    copy(target, at = 0, start = 0, end = this.length) {
      const part = this.subarray(start, Math.min(end, start + Math.max(0, target.length - at)));
      target.set(part, at);
      return part.length;
    }
    fill(value, start, end, encoding) {
      if (typeof start === "string") [encoding, start] = [start, undefined];
      const from = start || 0, to = end === undefined ? this.length : end;
      const bytes = typeof value === "number" ? [value & 255] : typeof value === "string" ? new Uint8Array(encode(value, encoding)) : value;
      if (bytes.length === 0) return Uint8Array.prototype.fill.call(this, 0, from, to);
      for (let i = from; i < to; i += 1) this[i] = bytes[(i - from) % bytes.length];
      return this;
    }
    indexOf(value, from, encoding) { return search(this, value, from, encoding, false); }
    lastIndexOf(value, from, encoding) { return search(this, value, from, encoding, true); }
    includes(value, from, encoding) { return this.indexOf(value, from, encoding) >= 0; }
    swap16() {
      for (let i = 0; i + 1 < this.length; i += 2) [this[i], this[i + 1]] = [this[i + 1], this[i]];
      return this;
    }
    readUIntBE(at, count) {
      let value = 0;
      for (let i = 0; i < count; i += 1) value = value * 256 + this[at + i];
      return value;
    }
    readUIntLE(at, count) {
      let value = 0;
      for (let i = count - 1; i >= 0; i -= 1) value = value * 256 + this[at + i];
      return value;
    }
    readIntBE(at, count) { return signed(this.readUIntBE(at, count), count); }
    readIntLE(at, count) { return signed(this.readUIntLE(at, count), count); }
    writeUIntBE(value, at, count) {
      for (let i = count - 1; i >= 0; i -= 1, value = Math.floor(value / 256)) this[at + i] = value % 256;
      return at + count;
    }
    writeUIntLE(value, at, count) {
      for (let i = 0; i < count; i += 1, value = Math.floor(value / 256)) this[at + i] = value % 256;
      return at + count;
    }
    [Symbol.for("nodejs.util.inspect.custom")]() {
      const hex = native.decode(this.subarray(0, 50), "hex").replace(/..(?=.)/g, "$& ");
      const more = this.length - 50;
      return `<Buffer${hex === "" ? "" : " " + hex}${more > 0 ? ` ... ${more} more byte${more > 1 ? "s" : ""}` : ""}>`;
    }
  }
  const signed = (value, count) => (value >= 2 ** (8 * count - 1) ? value - 2 ** (8 * count) : value);
  const copied = (list) => {
    const made = new Buffer(list.length);
    made.set(list);
    return made;
  };
  const search = (buffer, value, from, encoding, backwards) => {
    if (typeof from === "string") [encoding, from] = [from, undefined];
    const wanted = typeof value === "number" ? [value & 255] : typeof value === "string" ? new Uint8Array(encode(value, encoding)) : value;
    const most = buffer.length - wanted.length;
    const matches = (at) => {
      for (let i = 0; i < wanted.length; i += 1) if (buffer[at + i] !== wanted[i]) return false;
      return true;
    };
    let start = from === undefined ? (backwards ? most : 0) : from < 0 ? Math.max(0, buffer.length + from) : from;
    if (backwards) {
      for (let at = Math.min(start, most); at >= 0; at -= 1) if (matches(at)) return at;
    } else {
      for (let at = start; at <= most; at += 1) if (matches(at)) return at;
    }
    return -1;
  };
  // The numbers of fixed width, as DataView has them.
  const kinds = [["Int8", 1, ""], ["UInt8", 1, "Uint8"], ["Int16", 2, ""], ["UInt16", 2, "Uint16"], ["Int32", 4, ""], ["UInt32", 4, "Uint32"],
    ["Float", 4, "Float32"], ["Double", 8, "Float64"], ["BigInt64", 8, ""], ["BigUInt64", 8, "BigUint64"]];
  const outside = (at, most) => coded(RangeError, "ERR_OUT_OF_RANGE", `The value of "offset" is out of range. It must be >= 0 and <= ${most}. Received ${at}`);
  for (const [name, size, view] of kinds) {
    for (const end of size === 1 ? [""] : ["LE", "BE"]) {
      const of = (buffer) => new DataView(buffer.buffer, buffer.byteOffset, buffer.byteLength);
      const read = function (at = 0) {
        if (!(at >= 0 && at + size <= this.length)) throw outside(at, this.length - size);
        return of(this)["get" + (view || name)](at, end === "LE");
      };
      const write = function (value, at = 0) {
        if (!(at >= 0 && at + size <= this.length)) throw outside(at, this.length - size);
        of(this)["set" + (view || name)](at, value, end === "LE");
        return at + size;
      };
      for (const alias of [name, name.replace("UInt", "Uint")]) {
        Object.defineProperty(Buffer.prototype, "read" + alias + end, { value: read, writable: true, configurable: true });
        Object.defineProperty(Buffer.prototype, "write" + alias + end, { value: write, writable: true, configurable: true });
      }
    }
  }
  Buffer.poolSize = 8192;
  // `Buffer(…)` without `new` is from before there were classes, and has `from`, which is the same.
  class Blob {
    constructor(parts = [], options = {}) {
      this.bytes = Buffer.concat(parts.map((part) => (part instanceof Blob ? part.bytes : typeof part === "string" ? Buffer.from(part) : Buffer.from(part.buffer || part))));
      this.type = options.type || "";
    }
    get size() { return this.bytes.length; }
    text() { return Promise.resolve(this.bytes.toString()); }
    arrayBuffer() { return Promise.resolve(Uint8Array.from(this.bytes).buffer); }
  }
  return {
    Buffer, Blob, kMaxLength: longest, constants: { MAX_LENGTH: longest, MAX_STRING_LENGTH: 536870888 },
    isUtf8: (bytes) => native.isUtf8(bytes),
    atob: (text) => native.decode(new Uint8Array(encode(text, "base64")), "latin1"),
    btoa: (text) => native.decode(new Uint8Array(encode(text, "latin1")), "base64"),
  };
}
