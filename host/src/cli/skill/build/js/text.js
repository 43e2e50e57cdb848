// TextEncoder and TextDecoder of the Encoding Standard, for the usual encodings of files: UTF-8, UTF-16LE and windows-1252
// (also called "latin1" and "ascii").

const LABELS = {
  "utf-8": "utf-8", utf8: "utf-8", "unicode-1-1-utf-8": "utf-8",
  "utf-16le": "utf-16le", "utf-16": "utf-16le", ucs2: "utf-16le", "ucs-2": "utf-16le",
  "windows-1252": "windows-1252", cp1252: "windows-1252", latin1: "windows-1252", "iso-8859-1": "windows-1252",
  "us-ascii": "windows-1252", ascii: "windows-1252",
};

// The characters 0x80 to 0x9f of windows-1252.
const WINDOWS_1252 = "€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ";

// Maximum arguments of one call of `String.fromCharCode`.
const CHUNK = 4096;

// Runs of ASCII shorter than this are decoded character by character.
const SHORT_RUN = 16;

export class TextEncoder {
  get encoding() {
    return "utf-8";
  }

  encode(text = "") {
    text = String(text);
    const out = new Uint8Array(text.length * 3);
    return out.slice(0, this.encodeInto(text, out).written);
  }

  encodeInto(text, out) {
    text = String(text);
    let read = 0;
    let written = 0;
    while (read < text.length) {
      let code = text.codePointAt(read);
      const units = code > 0xffff ? 2 : 1;
      if (code >= 0xd800 && code <= 0xdfff) code = 0xfffd;
      const length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
      if (written + length > out.length) break;
      if (length === 1) {
        out[written] = code;
      } else {
        for (let i = length - 1; i > 0; i--, code >>= 6) out[written + i] = 0x80 | (code & 0x3f);
        out[written] = ((0xf00 >> length) & 0xff) | code;
      }
      written += length;
      read += units;
    }
    return { read, written };
  }
}

export class TextDecoder {
  #encoding;
  #fatal;
  #ignoreBOM;
  // State between calls with `stream`: bytes of an incomplete character, and whether the text has begun.
  #rest = new Uint8Array(0);
  #begun = false;

  constructor(label = "utf-8", { fatal = false, ignoreBOM = false } = {}) {
    this.#encoding = LABELS[String(label).trim().toLowerCase()];
    if (this.#encoding === undefined) throw new RangeError(`${label} is not an encoding that TextDecoder knows here`);
    this.#fatal = Boolean(fatal);
    this.#ignoreBOM = Boolean(ignoreBOM);
  }

  get encoding() {
    return this.#encoding;
  }

  get fatal() {
    return this.#fatal;
  }

  get ignoreBOM() {
    return this.#ignoreBOM;
  }

  decode(input = new Uint8Array(0), { stream = false } = {}) {
    const fresh = ArrayBuffer.isView(input)
      ? new Uint8Array(input.buffer, input.byteOffset, input.byteLength)
      : new Uint8Array(input);
    const bytes = new Uint8Array(this.#rest.length + fresh.length);
    bytes.set(this.#rest);
    bytes.set(fresh, this.#rest.length);
    const units = new Units();
    const decoded = { "utf-8": utf8, "utf-16le": utf16, "windows-1252": windows1252 }[this.#encoding];
    const { used, wrong } = decoded(bytes, units, !stream, this.#fatal);
    if (wrong && this.#fatal) {
      this.#rest = new Uint8Array(0);
      this.#begun = false;
      throw new TypeError(`the bytes are not ${this.#encoding}`);
    }
    this.#rest = bytes.slice(used);
    let text = units.text();
    if (!this.#begun && text !== "") {
      this.#begun = true;
      if (!this.#ignoreBOM && this.#encoding !== "windows-1252" && text.startsWith("\ufeff")) text = text.slice(1);
    }
    if (!stream) this.#begun = false;
    return text;
  }
}

// Collects UTF-16 units.
class Units {
  #parts = [];
  #units = [];

  push(code) {
    if (code > 0xffff) {
      this.#units.push(0xd7c0 + (code >> 10), 0xdc00 | (code & 0x3ff));
    } else {
      this.#units.push(code);
    }
    if (this.#units.length >= CHUNK) this.#flush();
  }

  // Adds a run of ASCII in one step, because most text is ASCII.
  ascii(bytes) {
    this.#flush();
    for (let at = 0; at < bytes.length; at += CHUNK) {
      this.#parts.push(String.fromCharCode.apply(null, bytes.subarray(at, at + CHUNK)));
    }
  }

  #flush() {
    if (this.#units.length === 0) return;
    this.#parts.push(String.fromCharCode(...this.#units));
    this.#units = [];
  }

  text() {
    this.#flush();
    return this.#parts.join("");
  }
}

// Each decoder returns how many bytes it used (the rest begins an incomplete character), and whether any was invalid; a strict
// one stops there.

function utf8(bytes, out, last, strict) {
  let wrong = false;
  let at = 0;
  while (at < bytes.length && !(wrong && strict)) {
    const first = bytes[at];
    if (first < 0x80) {
      let end = at + 1;
      while (end < bytes.length && bytes[end] < 0x80) end++;
      if (end - at < SHORT_RUN) {
        for (; at < end; at++) out.push(bytes[at]);
      } else {
        out.ascii(bytes.subarray(at, end));
        at = end;
      }
      continue;
    }
    const more = first >= 0xc2 && first <= 0xdf ? 1 : first >= 0xe0 && first <= 0xef ? 2 : first >= 0xf0 && first <= 0xf4 ? 3 : 0;
    let code = first & (0x3f >> more);
    let seen = 0;
    while (seen < more && at + 1 + seen < bytes.length) {
      const byte = bytes[at + 1 + seen];
      // Limits of the second byte exclude overlong forms, surrogates, and values beyond Unicode.
      const low = seen > 0 ? 0x80 : first === 0xe0 ? 0xa0 : first === 0xf0 ? 0x90 : 0x80;
      const high = seen > 0 ? 0xbf : first === 0xed ? 0x9f : first === 0xf4 ? 0x8f : 0xbf;
      if (byte < low || byte > high) break;
      code = (code << 6) | (byte & 0x3f);
      seen++;
    }
    if (more > 0 && seen === more) {
      out.push(code);
    } else if (more > 0 && at + 1 + seen === bytes.length && !last) {
      break;
    } else {
      out.push(0xfffd);
      wrong = true;
    }
    at += 1 + seen;
  }
  return { used: at, wrong };
}

function utf16(bytes, out, last, strict) {
  let wrong = false;
  let at = 0;
  while (at < bytes.length && !(wrong && strict)) {
    const unit = at + 1 < bytes.length ? bytes[at] | (bytes[at + 1] << 8) : undefined;
    const leads = unit >= 0xd800 && unit <= 0xdbff;
    const next = leads && at + 3 < bytes.length ? bytes[at + 2] | (bytes[at + 3] << 8) : undefined;
    if (unit === undefined || (leads && next === undefined)) {
      if (!last) break;
      out.push(0xfffd);
      wrong = true;
      at = bytes.length;
    } else if (leads && next >= 0xdc00 && next <= 0xdfff) {
      out.push(unit);
      out.push(next);
      at += 4;
    } else if (unit >= 0xd800 && unit <= 0xdfff) {
      out.push(0xfffd);
      wrong = true;
      at += 2;
    } else {
      out.push(unit);
      at += 2;
    }
  }
  return { used: at, wrong };
}

function windows1252(bytes, out) {
  for (const byte of bytes) out.push(byte >= 0x80 && byte <= 0x9f ? WINDOWS_1252.charCodeAt(byte - 0x80) : byte);
  return { used: bytes.length, wrong: false };
}
