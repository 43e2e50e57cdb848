// The globals that browsers have too, and the forms of numbers and dates.
(native, need) => {
  const { coded } = need("internal/errors");
  class TextEncoder {
    get encoding() { return "utf-8"; }
    encode(text = "") { return new Uint8Array(native.encode(String(text), "utf8")); }
    encodeInto(text, into) {
      const bytes = this.encode(text).subarray(0, into.length);
      into.set(bytes);
      return { read: text.length, written: bytes.length };
    }
  }
  class TextDecoder {
    constructor(label = "utf-8", options = {}) {
      const names = { "utf-8": "utf8", utf8: "utf8", "utf-16le": "utf16le", "utf-16": "utf16le", latin1: "latin1", "iso-8859-1": "latin1", ascii: "latin1", "us-ascii": "latin1", "windows-1252": "latin1" };
      const found = names[String(label).toLowerCase()];
      if (found === undefined) throw coded(RangeError, "ERR_ENCODING_NOT_SUPPORTED", `The "${label}" encoding is not supported`);
      Object.assign(this, { encoding: String(label).toLowerCase(), fatal: options.fatal === true, ignoreBOM: options.ignoreBOM === true });
      Object.defineProperty(this, "name", { value: found });
      Object.defineProperty(this, "rest", { value: null, writable: true });
    }
    decode(data, options) {
      const given = data === undefined ? new Uint8Array(0) : ArrayBuffer.isView(data) ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength) : new Uint8Array(data);
      if (this.fatal && !native.isUtf8(given)) throw coded(TypeError, "ERR_ENCODING_INVALID_ENCODED_DATA", "The encoded data was not valid for encoding utf-8");
      let text;
      if (options && options.stream) {
        this.rest = this.rest || new (need("string_decoder").StringDecoder)(this.name);
        text = this.rest.write(Buffer.from(given));
      } else {
        text = this.rest ? this.rest.end(Buffer.from(given)) : native.decode(given, this.name);
        this.rest = null;
      }
      return text[0] === "\ufeff" && !this.ignoreBOM ? text.slice(1) : text;
    }
  }
  class Event {
    constructor(type, options = {}) {
      Object.assign(this, { type, target: null, defaultPrevented: false, cancelable: options.cancelable === true, ...(options.detail === undefined ? {} : { detail: options.detail }) });
    }
    preventDefault() { this.defaultPrevented = this.cancelable; }
    stopPropagation() {}
  }
  class EventTarget {
    #all = new Map();
    addEventListener(type, call, options) {
      const list = this.#all.get(type) || [];
      if (!list.some((entry) => entry.call === call)) this.#all.set(type, [...list, { call, once: options && options.once === true }]);
    }
    removeEventListener(type, call) { this.#all.set(type, (this.#all.get(type) || []).filter((entry) => entry.call !== call)); }
    dispatchEvent(event) {
      event.target = this;
      if (typeof this["on" + event.type] === "function") this["on" + event.type](event);
      for (const entry of this.#all.get(event.type) || []) {
        if (entry.once) this.removeEventListener(event.type, entry.call);
        if (typeof entry.call === "function") entry.call.call(this, event);
        else entry.call.handleEvent(event);
      }
      return !event.defaultPrevented;
    }
  }
  class DOMException extends Error {
    constructor(message, name = "Error") {
      super(message);
      Object.defineProperty(this, "name", { value: name, configurable: true });
    }
  }
  class AbortSignal extends EventTarget {
    aborted = false;
    reason = undefined;
    onabort = null;
    throwIfAborted() { if (this.aborted) throw this.reason; }
    static abort(reason) {
      const made = new AbortSignal();
      end(made, reason);
      return made;
    }
    static timeout(milliseconds) {
      const made = new AbortSignal();
      setTimeout(() => end(made, new DOMException("The operation was aborted due to timeout", "TimeoutError")), milliseconds).unref();
      return made;
    }
    static any(signals) {
      const made = new AbortSignal();
      for (const signal of signals) {
        if (signal.aborted) end(made, signal.reason);
        else signal.addEventListener("abort", () => end(made, signal.reason));
      }
      return made;
    }
  }
  const end = (signal, reason) => {
    if (signal.aborted) return;
    signal.aborted = true;
    signal.reason = reason === undefined ? new DOMException("This operation was aborted", "AbortError") : reason;
    signal.dispatchEvent(new Event("abort"));
  };
  class AbortController {
    constructor() { this.signal = new AbortSignal(); }
    abort(reason) { end(this.signal, reason); }
  }
  const clone = (value, seen = new Map()) => {
    if (typeof value === "function" || typeof value === "symbol") throw new DOMException(`${String(value)} could not be cloned.`, "DataCloneError");
    if (value === null || typeof value !== "object") return value;
    if (seen.has(value)) return seen.get(value);
    const keep = (made) => {
      seen.set(value, made);
      return made;
    };
    if (value instanceof Date) return keep(new Date(value.getTime()));
    if (value instanceof RegExp) return keep(new RegExp(value.source, value.flags));
    if (value instanceof ArrayBuffer) return keep(value.slice(0));
    if (value instanceof DataView) return keep(new DataView(value.buffer.slice(0), value.byteOffset, value.byteLength));
    if (ArrayBuffer.isView(value)) return keep(value instanceof Uint8Array ? Uint8Array.from(value) : value.slice());
    if (value instanceof Map) {
      const made = keep(new Map());
      for (const [key, item] of value) made.set(clone(key, seen), clone(item, seen));
      return made;
    }
    if (value instanceof Set) {
      const made = keep(new Set());
      for (const item of value) made.add(clone(item, seen));
      return made;
    }
    if (value instanceof Error) {
      const made = keep(Object.create(Object.getPrototypeOf(value)));
      for (const key of ["message", "stack", "cause"]) if (value[key] !== undefined) Object.defineProperty(made, key, { value: value[key], writable: true, configurable: true });
      return made;
    }
    if (value instanceof Promise || value instanceof WeakMap) throw new DOMException(`${Object.prototype.toString.call(value)} could not be cloned.`, "DataCloneError");
    const made = keep(Array.isArray(value) ? new Array(value.length) : {});
    for (const key of Object.keys(value)) made[key] = clone(value[key], seen);
    return made;
  };
  const marks = new Map();
  const performance = {
    timeOrigin: Date.now() - native.milliseconds(), now: () => native.milliseconds(),
    mark: (name) => { marks.set(name, native.milliseconds()); return { name, startTime: marks.get(name) }; },
    measure: (name, from, to) => {
      const startTime = marks.get(from) || 0;
      return { name, startTime, duration: (marks.get(to) || native.milliseconds()) - startTime };
    },
    toJSON: () => ({}),
  };
  const days = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
  const months = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
  const groups = (text) => text.replace(/\B(?=(\d{3})+$)/g, ",");
  const decimal = (value, options = {}) => {
    if (typeof value === "bigint") return value < 0n ? "-" + groups(String(-value)) : groups(String(value));
    if (isNaN(value)) return "NaN";
    if (!isFinite(value)) return value < 0 ? "-∞" : "∞";
    const percent = options.style === "percent", money = options.style === "currency";
    const least = options.minimumFractionDigits === undefined ? (money ? 2 : 0) : options.minimumFractionDigits;
    const most = Math.max(least, options.maximumFractionDigits === undefined ? (money ? 2 : percent ? 0 : 3) : options.maximumFractionDigits);
    let [whole, part = ""] = Math.abs(percent ? value * 100 : value).toFixed(Math.min(most, 100)).split(".");
    while (part.length > least && part.endsWith("0")) part = part.slice(0, -1);
    const shown = (options.useGrouping === false ? whole : groups(whole)) + (part === "" ? "" : "." + part);
    const signs = { USD: "$", EUR: "€", GBP: "£", JPY: "¥" };
    const mark = money ? signs[options.currency] || options.currency + "\u00a0" : "";
    return (value < 0 || Object.is(value, -0) ? "-" : "") + mark + shown + (percent ? "%" : "");
  };
  const dateText = (date, options) => {
    const utc = options.timeZone === "UTC" || options.timeZone === "GMT";
    const get = (name) => date[(utc ? "getUTC" : "get") + name]();
    const two = (value) => String(value).padStart(2, "0");
    const { weekday, year, month, day } = options;
    const number = (value, form) => (form === "2-digit" ? two(value % 100) : String(value));
    const shownDay = day ? number(get("Date"), day) : "", shownYear = year ? number(get("FullYear"), year) : "";
    const name = weekday ? (weekday === "long" ? days[get("Day")] : days[get("Day")].slice(0, 3)) : "";
    if (month === "long" || month === "short") {
      const shown = month === "long" ? months[get("Month")] : months[get("Month")].slice(0, 3);
      return [name, [shown, shownDay].filter(Boolean).join(" "), shownYear].filter(Boolean).join(", ").replace(/^([A-Z][a-z]+), (\d{4})$/, "$1 $2");
    }
    const numeric = [month ? number(get("Month") + 1, month) : "", shownDay, shownYear].filter(Boolean).join("/");
    return [name, numeric].filter(Boolean).join(", ");
  };
  const timeText = (date, options) => {
    const utc = options.timeZone === "UTC" || options.timeZone === "GMT";
    const get = (name) => date[(utc ? "getUTC" : "get") + name]();
    const two = (value) => String(value).padStart(2, "0");
    const short = options.hour12 === false || options.hourCycle === "h23";
    const hour = short ? two(get("Hours")) : options.hour === "2-digit" ? two(get("Hours") % 12 || 12) : String(get("Hours") % 12 || 12);
    const plain = options.hour === undefined && options.minute === undefined && options.second === undefined;
    const parts = [hour, ...(plain || options.minute ? [two(get("Minutes"))] : []), ...(plain || options.second ? [two(get("Seconds"))] : [])];
    return parts.join(":") + (short ? "" : get("Hours") < 12 ? " AM" : " PM");
  };
  const inDate = ["weekday", "year", "month", "day"], inTime = ["hour", "minute", "second"];
  const localize = () => {
    const put = (prototype, name, value) => Object.defineProperty(prototype, name, { value, writable: true, configurable: true });
    put(Number.prototype, "toLocaleString", function (_, options) { return decimal(Number(this), options); });
    put(BigInt.prototype, "toLocaleString", function () { return decimal(BigInt(this)); });
    const numeric = { year: "numeric", month: "numeric", day: "numeric" };
    const has = (options, names) => names.some((name) => options[name] !== undefined);
    put(Date.prototype, "toLocaleDateString", function (_, options = {}) {
      return isNaN(this) ? "Invalid Date" : dateText(this, has(options, inDate) ? options : { ...numeric, ...options });
    });
    put(Date.prototype, "toLocaleTimeString", function (_, options = {}) { return isNaN(this) ? "Invalid Date" : timeText(this, options); });
    put(Date.prototype, "toLocaleString", function (_, options = {}) {
      if (isNaN(this)) return "Invalid Date";
      const [date, time] = [has(options, inDate), has(options, inTime)];
      if (!date && !time) return dateText(this, { ...numeric, ...options }) + ", " + timeText(this, options);
      return [date ? dateText(this, options) : "", time ? timeText(this, options) : ""].filter(Boolean).join(", ");
    });
  };
  return {
    TextEncoder, TextDecoder, Event, EventTarget, AbortController, AbortSignal, DOMException, structuredClone: (value) => clone(value), performance, localize,
    atob: (text) => need("buffer").atob(String(text)),
    btoa: (text) => {
      if (/[^\u0000-\u00ff]/.test(text)) throw new DOMException("Invalid character", "InvalidCharacterError");
      return need("buffer").btoa(String(text));
    },
  };
}
