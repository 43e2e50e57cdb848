(native, need) => {
  const { Buffer } = need("buffer");
  // How many bytes at the end begin a sign that is not complete.
  const open = (bytes) => {
    for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
      const byte = bytes[bytes.length - back];
      if ((byte & 0xc0) === 0x80) continue;
      const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
      return needed > back ? back : 0;
    }
    return 0;
  };
  class StringDecoder {
    constructor(encoding = "utf8") {
      this.encoding = encoding.toLowerCase().replace("utf-8", "utf8");
      this.rest = Buffer.alloc(0);
    }
    write(chunk) {
      const bytes = Buffer.concat([this.rest, typeof chunk === "string" ? Buffer.from(chunk) : chunk]);
      const kept = this.encoding === "utf8" ? open(bytes) : this.encoding === "base64" ? bytes.length % 3 : this.encoding === "utf16le" ? bytes.length % 2 : 0;
      this.rest = Buffer.from(bytes.subarray(bytes.length - kept));
      return bytes.subarray(0, bytes.length - kept).toString(this.encoding);
    }
    end(chunk) {
      const text = (chunk === undefined ? "" : this.write(chunk)) + this.rest.toString(this.encoding);
      this.rest = Buffer.alloc(0);
      return text;
    }
  }
  return { StringDecoder };
}
