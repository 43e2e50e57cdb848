// `fetch` and its classes.
(native, need) => {
  const { coded } = need("internal/errors");
  const { Body, streamOf } = need("internal/body");
  const { Exchange } = need("internal/net");
  const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
  const checked = (name) => {
    const text = String(name);
    if (!token.test(text)) throw new TypeError(`Headers.append: ${text} is an invalid header name.`);
    return text.toLowerCase();
  };
  const plain = (value) => {
    const text = String(value).replace(/^[\t\n\r ]+|[\t\n\r ]+$/g, "");
    if (/[\0\r\n]|[^\u0000-\u00ff]/.test(text)) throw new TypeError(`Headers.append: ${JSON.stringify(text)} is an invalid header value.`);
    return text;
  };
  class Headers {
    #list = [];
    constructor(init) {
      if (init === undefined || init === null) return;
      if (typeof init !== "object") throw new TypeError("Headers constructor: init must be an object or an array of pairs");
      const pairs = typeof init[Symbol.iterator] === "function" ? init : Object.entries(init);
      for (const pair of pairs) {
        const [name, value, more] = [...pair];
        if (value === undefined || more !== undefined) throw new TypeError("Headers constructor: expected name/value pair to be length 2");
        this.append(name, value);
      }
    }
    append(name, value) { this.#list.push([checked(name), plain(value)]); }
    set(name, value) {
      const key = checked(name), text = plain(value);
      this.delete(key);
      this.#list.push([key, text]);
    }
    delete(name) {
      const key = checked(name);
      this.#list = this.#list.filter(([other]) => other !== key);
    }
    has(name) { return this.get(name) !== null; }
    get(name) {
      const key = checked(name);
      const values = this.#list.filter(([other]) => other === key).map(([, value]) => value);
      return values.length === 0 ? null : values.join(key === "cookie" ? "; " : ", ");
    }
    getSetCookie() { return this.#list.filter(([name]) => name === "set-cookie").map(([, value]) => value); }
    forEach(call, self) { for (const [name, value] of this) call.call(self, value, name, this); }
    *entries() {
      for (const name of [...new Set(this.#list.map(([name]) => name))].sort()) {
        if (name === "set-cookie") for (const value of this.getSetCookie()) yield [name, value];
        else yield [name, this.get(name)];
      }
    }
    *keys() { for (const [name] of this) yield name; }
    *values() { for (const [, value] of this) yield value; }
    [Symbol.iterator]() { return this.entries(); }
    get [Symbol.toStringTag]() { return "Headers"; }
    [Symbol.for("nodejs.util.inspect.custom")]() { return Object.assign(Object.create({ constructor: Headers }), Object.fromEntries(this)); }
  }
  const usual = ["DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT"];
  class Request extends Body {
    constructor(input, init = {}) {
      const from = input instanceof Request ? input : undefined;
      const given = init.body !== undefined ? init.body : from && from.body !== null ? from.copy() : null;
      super(given);
      let url;
      try {
        url = new URL(from ? from.url : input);
      } catch (cause) {
        throw Object.assign(new TypeError(`Failed to parse URL from ${String(input)}`), { cause });
      }
      if (url.username !== "" || url.password !== "") throw new TypeError(`Request cannot be constructed from a URL that includes credentials: ${url.href}`);
      const named = String(init.method === undefined ? (from ? from.method : "GET") : init.method);
      if (!token.test(named)) throw new TypeError(`'${named}' is not a valid HTTP method.`);
      const method = usual.includes(named.toUpperCase()) ? named.toUpperCase() : named;
      if (["CONNECT", "TRACE", "TRACK"].includes(method.toUpperCase())) throw new TypeError(`'${method}' HTTP method is unsupported.`);
      if (given !== null && (method === "GET" || method === "HEAD")) throw new TypeError("Request with GET/HEAD method cannot have body.");
      const redirect = init.redirect || (from ? from.redirect : "follow");
      if (!["follow", "error", "manual"].includes(redirect)) throw new TypeError(`Request constructor: ${redirect} is not an accepted type. Expected one of follow, error, manual.`);
      const signal = init.signal === undefined ? (from ? from.signal : null) : init.signal;
      const headers = new Headers(init.headers === undefined && from ? from.headers : init.headers);
      if (this.bodyType !== null && !headers.has("content-type")) headers.set("content-type", this.bodyType);
      Object.assign(this, { url: url.href, method, headers, redirect, signal });
    }
    clone() { return new Request(this); }
  }
  const empty = [101, 103, 204, 205, 304];
  class Response extends Body {
    constructor(body = null, init = {}) {
      const status = init.status === undefined ? 200 : Number(init.status);
      if (!(status >= 200 && status <= 599)) throw new RangeError("init[\"status\"] must be in the range of 200 to 599, inclusive.");
      if (body !== null && empty.includes(status)) throw new TypeError(`Response constructor: Invalid response status code ${status}`);
      super(body);
      const headers = new Headers(init.headers);
      if (this.bodyType !== null && !headers.has("content-type")) headers.set("content-type", this.bodyType);
      Object.assign(this, { status, statusText: init.statusText === undefined ? "" : String(init.statusText), headers, ok: status < 300, redirected: false, type: "default", url: "" });
    }
    clone() {
      const made = new Response(null, this);
      const copied = new Response(empty.includes(this.status) ? null : this.copy(), this);
      return Object.assign(copied, { redirected: this.redirected, type: this.type, url: this.url, headers: made.headers });
    }
    static json(data, init = {}) {
      const headers = new Headers(init.headers);
      if (!headers.has("content-type")) headers.set("content-type", "application/json");
      return new Response(JSON.stringify(data), { ...init, headers });
    }
    static error() { return Object.assign(new Response(), { status: 0, ok: false, type: "error" }); }
    static redirect(url, status = 302) { return new Response(null, { status, headers: { location: new URL(url).href } }); }
  }
  // The names that undici, which is the fetch of node, has for errors.
  const undici = { ETIMEDOUT: ["UND_ERR_CONNECT_TIMEOUT", "ConnectTimeoutError"], ESOCKETTIMEDOUT: ["UND_ERR_HEADERS_TIMEOUT", "HeadersTimeoutError"], ECONNRESET: ["UND_ERR_SOCKET", "SocketError"] };
  const failed = (error, what = "fetch failed") => {
    const [code, name] = undici[error.code] || [];
    if (code) Object.defineProperty(Object.assign(error, { code }), "name", { value: name, configurable: true });
    return Object.defineProperty(new TypeError(what), "cause", { value: error, configurable: true, writable: true });
  };
  const most = 20;
  const perform = async (request, state) => {
    let { method } = request;
    let url = new URL(request.url);
    const headers = new Headers(request.headers);
    let body = request.body === null ? undefined : await request.bytes();
    for (const [name, value] of [["accept", "*/*"], ["accept-language", "*"], ["user-agent", "node"]]) if (!headers.has(name)) headers.set(name, value);
    for (let turns = 0; ; turns += 1) {
      if (url.protocol !== "http:" && url.protocol !== "https:") throw failed(new Error(url.protocol === "file:" ? "not implemented... yet..." : "unknown scheme"));
      // Nothing is decompressed here.
      headers.set("accept-encoding", "identity");
      if (body === undefined && ["POST", "PUT", "PATCH"].includes(method)) headers.set("content-length", "0");
      else if (body === undefined) headers.delete("content-length");
      else headers.set("content-length", String(body.length));
      if (state.aborted) throw state.aborted.reason;
      const exchange = new Exchange(url, method, [...headers].flat(), body);
      state.exchange = exchange;
      const { status, headers: flat } = await exchange.head();
      const answered = new Headers();
      for (let i = 0; i < flat.length; i += 2) answered.append(flat[i], flat[i + 1]);
      const location = [301, 302, 303, 307, 308].includes(status) ? answered.get("location") : null;
      if (location === null || request.redirect === "manual") return finished({ exchange, request, url, status, answered, method, turns, state });
      exchange.close();
      if (request.redirect === "error") throw failed(new Error("unexpected redirect"));
      if (turns === most) throw failed(new Error("redirect count exceeded"));
      let next;
      try {
        next = new URL(location, url);
      } catch (cause) {
        throw failed(cause);
      }
      if (next.hash === "") next.hash = url.hash;
      // As in browsers: a form that was sent is not sent again, and the login of one site is not shown to another.
      if ((status === 303 && method !== "HEAD") || (status < 303 && method === "POST")) {
        if (method !== "GET") for (const name of ["content-encoding", "content-language", "content-location", "content-type", "content-length"]) headers.delete(name);
        method = "GET";
        body = undefined;
      }
      if (next.origin !== url.origin) for (const name of ["authorization", "proxy-authorization", "cookie", "host"]) headers.delete(name);
      url = next;
    }
  };
  const finished = ({ exchange, request, url, status, answered, method, turns, state }) => {
    const coding = answered.get("content-encoding");
    if (coding !== null && !/^(|identity)$/i.test(coding) && method !== "HEAD" && !empty.includes(status)) {
      exchange.close();
      throw failed(new Error(`${url.href} is sent compressed (${coding}), though that was not asked for`));
    }
    let stream = null;
    if (method === "HEAD" || empty.includes(status)) {
      exchange.close();
    } else {
      const pull = async () => {
        try {
          return await exchange.read();
        } catch (error) {
          throw state.aborted ? state.aborted.reason : failed(error, "terminated");
        }
      };
      stream = streamOf(pull, () => exchange.close());
    }
    const { STATUS_CODES } = need("http");
    const response = new Response(stream, { status: status < 200 ? 200 : status, statusText: STATUS_CODES[status] || "", headers: answered });
    url.hash = "";
    return Object.assign(response, { status, ok: status >= 200 && status < 300, redirected: turns > 0, type: request.redirect === "manual" && status >= 300 && status < 400 ? "opaqueredirect" : "basic", url: url.href });
  };
  const fetch = (input, init) => new Promise((resolve, reject) => {
    const request = new Request(input, init);
    const { signal } = request;
    const state = { exchange: null, aborted: null };
    if (signal && signal.aborted) throw signal.reason;
    const abort = () => {
      state.aborted = { reason: signal.reason };
      if (state.exchange) state.exchange.abort(signal.reason);
      reject(signal.reason);
    };
    if (signal) signal.addEventListener("abort", abort, { once: true });
    perform(request, state).then(resolve, (error) => reject(error instanceof TypeError || state.aborted ? error : failed(error)));
  });
  return { fetch, Headers, Request, Response };
}
