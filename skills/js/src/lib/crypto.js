(native, need) => {
  const { coded, invalid } = need("internal/errors");
  const { Buffer } = need("buffer");
  const blocks = { md5: 64, sha1: 64, sha224: 64, sha256: 64, sha384: 128, sha512: 128 };
  const hashes = Object.keys(blocks);
  const nameOf = (algorithm) => {
    const name = String(algorithm).toLowerCase().replace(/^(rsa-)?sha-?(\d+)$/, "sha$2");
    if (blocks[name] === undefined) throw coded(Error, "ERR_OSSL_EVP_UNSUPPORTED", `Digest method not supported: ${algorithm} (there are ${hashes.join(", ")})`);
    return name;
  };
  const bytesOf = (data, encoding, name = "data") => {
    if (typeof data === "string") return Buffer.from(data, encoding);
    if (ArrayBuffer.isView(data)) return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
    if (data instanceof ArrayBuffer) return Buffer.from(data);
    throw invalid(name, "of type string or an instance of Buffer, TypedArray, or DataView", data);
  };
  const digest = (name, bytes) => Buffer.from(native.digest(name, bytes));
  const shown = (bytes, encoding) => (encoding === undefined || encoding === "buffer" ? bytes : bytes.toString(encoding));
  const { Transform } = need("stream");
  class Hash extends Transform {
    constructor(finish) {
      super();
      this.parts = [];
      this.finish = finish;
      this.finished = false;
    }
    update(data, encoding) {
      if (this.finished) throw coded(Error, "ERR_CRYPTO_HASH_FINALIZED", "Digest already called");
      this.parts.push(Buffer.from(bytesOf(data, encoding)));
      return this;
    }
    digest(encoding) {
      if (this.finished) throw coded(Error, "ERR_CRYPTO_HASH_FINALIZED", "Digest already called");
      this.finished = true;
      return shown(this.finish(Buffer.concat(this.parts)), encoding);
    }
    copy() {
      const made = new Hash(this.finish);
      made.parts = [...this.parts];
      return made;
    }
    _transform(chunk, encoding, done) {
      this.update(chunk, encoding);
      done();
    }
    _flush(done) {
      this.push(this.digest());
      done();
    }
  }
  const hmac = (name, key, bytes) => {
    const block = blocks[name];
    const padded = Buffer.alloc(block);
    padded.set(key.length > block ? digest(name, key) : key);
    const inner = digest(name, Buffer.concat([padded.map((byte) => byte ^ 0x36), bytes]));
    return digest(name, Buffer.concat([padded.map((byte) => byte ^ 0x5c), inner]));
  };
  const pbkdf2 = (password, salt, rounds, length, algorithm) => {
    const name = nameOf(algorithm), key = bytesOf(password, "utf8", "password");
    const blocksMade = [];
    for (let index = 1, made = 0; made < length; index += 1) {
      const count = Buffer.alloc(4);
      count.writeUInt32BE(index);
      let last = hmac(name, key, Buffer.concat([bytesOf(salt, "utf8", "salt"), count]));
      const sum = Buffer.from(last);
      for (let round = 1; round < rounds; round += 1) {
        last = hmac(name, key, last);
        for (let i = 0; i < sum.length; i += 1) sum[i] ^= last[i];
      }
      blocksMade.push(sum);
      made += sum.length;
    }
    return Buffer.concat(blocksMade, length);
  };
  const randomBytes = (count, call) => {
    const made = Buffer.from(native.random(count));
    if (typeof call !== "function") return made;
    process.nextTick(call, null, made);
  };
  const randomFill = (view) => {
    new Uint8Array(view.buffer, view.byteOffset, view.byteLength).set(new Uint8Array(native.random(view.byteLength)));
    return view;
  };
  const randomUUID = () => {
    const bytes = randomBytes(16);
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
  };
  const randomInt = (from, to, call) => {
    if (to === undefined || typeof to === "function") [from, to, call] = [0, from, to];
    if (!(Number.isSafeInteger(from) && Number.isSafeInteger(to) && to > from)) throw coded(RangeError, "ERR_OUT_OF_RANGE", `The value of "max" is out of range. It must be greater than the value of "min" (${from}). Received ${to}`);
    const range = to - from, limit = 2 ** 48 - (2 ** 48 % range);
    let value;
    do value = randomBytes(6).readUIntBE(0, 6); while (value >= limit);
    if (typeof call !== "function") return from + (value % range);
    process.nextTick(call, null, from + (value % range));
  };
  const missing = (name) => () => { throw coded(Error, "ERR_FEATURE_UNAVAILABLE_ON_PLATFORM", `crypto.${name} is not available: there are digests, HMAC, PBKDF2 and random values`); };
  const web = {
    getRandomValues: randomFill, randomUUID,
    subtle: { digest: async (algorithm, data) => {
      const bytes = digest(nameOf(algorithm.name || algorithm), bytesOf(data));
      return Uint8Array.from(bytes).buffer;
    } },
  };
  const crypto = {
    createHash: (algorithm) => {
      const name = nameOf(algorithm);
      return new Hash((bytes) => digest(name, bytes));
    },
    createHmac: (algorithm, key) => {
      const name = nameOf(algorithm), secret = Buffer.from(bytesOf(key, "utf8", "key"));
      return new Hash((bytes) => hmac(name, secret, bytes));
    },
    hash: (algorithm, data, encoding = "hex") => shown(digest(nameOf(algorithm), bytesOf(data)), encoding),
    getHashes: () => [...hashes], getCiphers: () => [], randomBytes, randomUUID, randomInt, randomFillSync: randomFill,
    getRandomValues: randomFill, webcrypto: web, subtle: web.subtle, pbkdf2Sync: pbkdf2,
    pbkdf2: (password, salt, rounds, length, algorithm, call) => process.nextTick(call, null, pbkdf2(password, salt, rounds, length, algorithm)),
    timingSafeEqual: (a, b) => {
      if (a.byteLength !== b.byteLength) throw coded(RangeError, "ERR_CRYPTO_TIMING_SAFE_EQUAL_LENGTH", "Input buffers must have the same byte length");
      let different = 0;
      for (let i = 0; i < a.length; i += 1) different |= a[i] ^ b[i];
      return different === 0;
    },
  };
  for (const name of ["createCipheriv", "createDecipheriv", "createSign", "createVerify", "generateKeyPairSync", "scryptSync"]) crypto[name] = missing(name);
  return crypto;
}
