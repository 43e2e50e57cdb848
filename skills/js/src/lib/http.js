(native, need) => {
  const { coded, invalid } = need("internal/errors");
  const { Exchange } = need("internal/net");
  const { Readable, Writable } = need("stream");
  const STATUS_CODES = {
    100: "Continue", 101: "Switching Protocols", 102: "Processing", 103: "Early Hints", 200: "OK", 201: "Created", 202: "Accepted",
    203: "Non-Authoritative Information", 204: "No Content", 205: "Reset Content", 206: "Partial Content", 207: "Multi-Status",
    208: "Already Reported", 226: "IM Used", 300: "Multiple Choices", 301: "Moved Permanently", 302: "Found", 303: "See Other",
    304: "Not Modified", 305: "Use Proxy", 307: "Temporary Redirect", 308: "Permanent Redirect", 400: "Bad Request",
    401: "Unauthorized", 402: "Payment Required", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 406: "Not Acceptable",
    407: "Proxy Authentication Required", 408: "Request Timeout", 409: "Conflict", 410: "Gone", 411: "Length Required",
    412: "Precondition Failed", 413: "Payload Too Large", 414: "URI Too Long", 415: "Unsupported Media Type",
    416: "Range Not Satisfiable", 417: "Expectation Failed", 418: "I'm a Teapot", 421: "Misdirected Request",
    422: "Unprocessable Entity", 423: "Locked", 424: "Failed Dependency", 425: "Too Early", 426: "Upgrade Required",
    428: "Precondition Required", 429: "Too Many Requests", 431: "Request Header Fields Too Large",
    451: "Unavailable For Legal Reasons", 500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway",
    503: "Service Unavailable", 504: "Gateway Timeout", 505: "HTTP Version Not Supported", 506: "Variant Also Negotiates",
    507: "Insufficient Storage", 508: "Loop Detected", 509: "Bandwidth Limit Exceeded", 510: "Not Extended",
    511: "Network Authentication Required",
  };
  const METHODS = ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"];
  // Of these, node keeps the first.
  const single = ["age", "authorization", "content-length", "content-type", "etag", "expires", "from", "host", "if-modified-since", "if-unmodified-since", "last-modified", "location", "max-forwards", "proxy-authorization", "referer", "retry-after", "server", "user-agent"];
  const joined = (flat) => {
    const headers = {};
    for (let i = 0; i < flat.length; i += 2) {
      const name = flat[i].toLowerCase(), value = flat[i + 1];
      if (name === "set-cookie") headers[name] = [...(headers[name] || []), value];
      else if (headers[name] === undefined) headers[name] = value;
      else if (!single.includes(name)) headers[name] += (name === "cookie" ? "; " : ", ") + value;
    }
    return headers;
  };
  class IncomingMessage extends Readable {
    constructor(exchange, { status, headers }, isEmpty) {
      super({
        read() {
          if (isEmpty) return this.push(null);
          exchange.read().then((bytes) => {
            if (bytes === null) this.complete = true;
            this.push(bytes);
          }, (error) => {
            this.aborted = true;
            this.emit("aborted");
            this.destroy(error.code === "ECONNRESET" ? coded(Error, "ECONNRESET", "aborted") : error);
          });
        },
        destroy(error, done) {
          exchange.close();
          done();
        },
      });
      Object.assign(this, {
        statusCode: status, statusMessage: STATUS_CODES[status] || "", headers: joined(headers), rawHeaders: headers, httpVersion: "1.1",
        httpVersionMajor: 1, httpVersionMinor: 1, complete: isEmpty, aborted: false, trailers: {}, rawTrailers: [], url: "", method: null,
      });
      if (isEmpty) exchange.close();
    }
    setTimeout() { return this; }
  }
  const optionsOf = (input, more, protocol) => {
    const isText = typeof input === "string" || input instanceof URL;
    const from = isText ? new URL(input) : null;
    const options = Object.assign(from ? { protocol: from.protocol, hostname: from.hostname, port: from.port, path: (from.pathname || "/") + from.search } : {}, isText ? more : input);
    if (from && from.username !== "" && options.auth === undefined) options.auth = decodeURIComponent(from.username) + ":" + decodeURIComponent(from.password);
    options.protocol = options.protocol || (options.agent && options.agent.protocol) || protocol;
    if (options.protocol !== protocol) throw coded(TypeError, "ERR_INVALID_PROTOCOL", `Protocol "${options.protocol}" not supported. Expected "${protocol}"`);
    return options;
  };
  class ClientRequest extends Writable {
    constructor(input, more, done, protocol) {
      const parts = [];
      super({
        // A request stays until its answer has ended, though all of it is sent.
        autoDestroy: false,
        write: (chunk, encoding, next) => { parts.push(Buffer.from(chunk)); next(); },
        final: (next) => { next(); this.send(parts); },
        destroy: (error, next) => {
          const { exchange, timer } = this.requestState;
          if (timer) clearTimeout(timer);
          if (exchange) exchange.close();
          if (this.res) this.res.destroy(error === null ? undefined : error);
          next(error === null && this.res === null ? coded(Error, "ECONNRESET", "socket hang up") : null);
        },
      });
      if (typeof more === "function") [more, done] = [undefined, more];
      const options = optionsOf(input, more || {}, protocol);
      if (options.path !== undefined && /[^\u0021-\u00ff]/.test(options.path)) throw coded(TypeError, "ERR_UNESCAPED_CHARACTERS", "Request path contains unescaped characters");
      const name = options.hostname || options.host || "localhost";
      const host = name.includes(":") && !name.startsWith("[") ? `[${name}]` : name;
      const port = options.port || options.defaultPort;
      const place = new URL(`${protocol}//${host}${port ? ":" + port : ""}/`);
      const method = String(options.method || "GET").toUpperCase();
      Object.assign(this, {
        method, path: options.path || "/", host: place.hostname, protocol, aborted: false, reusedSocket: false, finished: false, headersSent: false, res: null,
        maxHeadersCount: null, socket: null, agent: options.agent,
      });
      const state = { place, headers: new Map(), exchange: null, timer: null };
      Object.defineProperty(this, "requestState", { value: state });
      const given = options.headers || {};
      for (const [key, value] of Array.isArray(given) ? given : typeof given.entries === "function" ? given.entries() : Object.entries(given)) {
        if (value !== undefined) this.setHeader(key, value);
      }
      if (options.auth && !this.hasHeader("authorization")) this.setHeader("Authorization", "Basic " + Buffer.from(options.auth).toString("base64"));
      if (options.timeout) this.setTimeout(options.timeout);
      const { signal } = options;
      if (signal) {
        const abort = () => this.destroy(Object.assign(new Error("The operation was aborted"), { name: "AbortError", code: "ABORT_ERR", cause: signal.reason }));
        if (signal.aborted) process.nextTick(abort);
        else signal.addEventListener("abort", abort, { once: true });
      }
      if (done) this.once("response", done);
    }
    setHeader(name, value) {
      if (typeof name !== "string" || !/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(name)) throw coded(TypeError, "ERR_INVALID_HTTP_TOKEN", `Header name must be a valid HTTP token ["${name}"]`);
      if (value === undefined) throw coded(TypeError, "ERR_HTTP_INVALID_HEADER_VALUE", `Invalid value "undefined" for header "${name}"`);
      const values = Array.isArray(value) ? value.map(String) : [String(value)];
      if (values.some((text) => /[^\t\u0020-\u007e\u0080-\u00ff]/.test(text))) throw coded(TypeError, "ERR_INVALID_CHAR", `Invalid character in header content ["${name}"]`);
      this.requestState.headers.set(name.toLowerCase(), { name, value: Array.isArray(value) ? values : values[0] });
      return this;
    }
    getHeader(name) {
      const found = this.requestState.headers.get(String(name).toLowerCase());
      return found && found.value;
    }
    getHeaders() { return Object.fromEntries([...this.requestState.headers].map(([name, { value }]) => [name, value])); }
    getHeaderNames() { return [...this.requestState.headers.keys()]; }
    hasHeader(name) { return this.getHeader(name) !== undefined; }
    removeHeader(name) { this.requestState.headers.delete(String(name).toLowerCase()); }
    flushHeaders() {}
    setNoDelay() {}
    setSocketKeepAlive() {}
    setTimeout(milliseconds, call) {
      const state = this.requestState;
      if (call) this.once("timeout", call);
      if (state.timer) clearTimeout(state.timer);
      state.timer = milliseconds > 0 ? setTimeout(() => this.emit("timeout"), milliseconds).unref() : null;
      return this;
    }
    async send(parts) {
      const state = this.requestState;
      // As in node, an error comes after the script had the chance to listen for it.
      await null;
      if (this.destroyed) return;
      [this.headersSent, this.finished] = [true, true];
      const body = Buffer.concat(parts);
      const { protocol, hostname, host, port } = state.place;
      const sent = [...state.headers.values()].flatMap(({ name, value }) => (Array.isArray(value) ? value : [value]).flatMap((text) => [name, text]));
      const changes = ["POST", "PUT", "PATCH"].includes(this.method) || body.length > 0;
      if (changes && !this.hasHeader("content-length")) sent.push("Content-Length", String(body.length));
      try {
        const place = { protocol, hostname, host, port, pathname: this.path, search: "" };
        state.exchange = new Exchange(place, this.method, sent, body.length > 0 ? body : undefined);
        const head = await state.exchange.head();
        if (state.timer) clearTimeout(state.timer);
        const isEmpty = this.method === "HEAD" || head.status === 204 || head.status === 304;
        const message = new IncomingMessage(state.exchange, head, isEmpty);
        this.res = message;
        message.req = this;
        message.on("close", () => this.destroy());
        // Nobody reads an answer that nobody asked for.
        if (!this.emit("response", message)) message.resume();
      } catch (error) {
        if (!this.destroyed) this.destroy(error.code === "ESOCKETTIMEDOUT" ? coded(Error, "ETIMEDOUT", error.message) : error);
      }
    }
    abort() {
      if (this.aborted) return;
      this.aborted = true;
      process.nextTick(() => this.emit("abort"));
      this.destroy();
    }
  }
  class Agent {
    constructor(options = {}) { Object.assign(this, { options, maxSockets: Infinity, keepAlive: options.keepAlive === true, sockets: {}, requests: {} }); }
    destroy() {}
  }
  const serve = () => {
    throw coded(Error, "EACCES", "scripts cannot listen for connections", { syscall: "listen" });
  };
  const make = (protocol) => {
    const request = (input, more, done) => {
      if (typeof input !== "string" && (typeof input !== "object" || input === null)) throw invalid("url", "of type string or an instance of URL or Object", input);
      return new ClientRequest(input, more, done, protocol);
    };
    const get = (input, more, done) => request(input, more, done).end();
    class Own extends Agent {
      get protocol() { return protocol; }
    }
    return { request, get, Agent: Own, globalAgent: new Own(), createServer: serve, ClientRequest, IncomingMessage };
  };
  return { ...make("http:"), METHODS, STATUS_CODES, Server: serve, https: make("https:"), validateHeaderName: () => {}, validateHeaderValue: () => {} };
}
