// Requests to the host, side by side: `turn` in timers.js waits for all of them at once.
(native, need) => {
  const { coded } = need("internal/errors");
  // By the number of the request: what to do when it has something to read.
  const waiting = new Map();
  const wait = (milliseconds) => {
    for (const number of native.httpWait([...waiting.keys()], milliseconds)) {
      const call = waiting.get(number);
      waiting.delete(number);
      if (call) call();
    }
  };
  need("timers").poll(() => waiting.size > 0, wait);
  const words = {
    ENOTFOUND: (url) => [`getaddrinfo ENOTFOUND ${url.hostname}`, { errno: -3008, syscall: "getaddrinfo", hostname: url.hostname }],
    EACCES: (url) => [`connect EACCES ${url.host}`, { errno: -13, syscall: "connect", address: url.hostname }],
    ECONNREFUSED: (url, port) => [`connect ECONNREFUSED ${url.hostname}:${port}`, { errno: -111, syscall: "connect", address: url.hostname, port }],
    EHOSTUNREACH: (url, port) => [`connect EHOSTUNREACH ${url.hostname}:${port}`, { errno: -113, syscall: "connect", address: url.hostname, port }],
    ETIMEDOUT: (url, port) => [`connect ETIMEDOUT ${url.hostname}:${port}`, { errno: -110, syscall: "connect", address: url.hostname, port }],
    ESOCKETTIMEDOUT: () => ["the server did not answer in time", {}],
    ECONNRESET: () => ["socket hang up", { errno: -104, syscall: "read" }],
    UNABLE_TO_VERIFY_LEAF_SIGNATURE: (url) => [`the certificate is not valid for ${url.hostname}`, {}],
    EPROTO: () => ["the TLS handshake failed", { errno: -71 }],
    ERR_RESPONSE_TOO_LARGE: () => ["the answer is larger than the host allows", {}],
  };
  const told = (error, url) => {
    const make = words[error.code];
    if (make === undefined) return error;
    const [message, more] = make(url, Number(url.port) || (url.protocol === "https:" ? 443 : 80));
    return coded(Error, error.code, message, more);
  };
  // A request that was sent, and its answer.
  class Exchange {
    // `headers` is a flat list of names and values; `body` is undefined or bytes.
    constructor(url, method, headers, body) {
      this.url = url;
      this.isClosed = false;
      this.fail = null;
      this.failure = null;
      const path = (url.pathname || "/") + url.search;
      try {
        this.number = native.httpSend(method, url.protocol === "https:", url.host, path, headers, body);
      } catch (error) {
        this.isClosed = true;
        throw told(error, url);
      }
    }
    // Calls native function `look` when there is something to read, until it finds something.
    look(look) {
      return new Promise((resolve, reject) => {
        this.fail = reject;
        const again = () => {
          let found;
          try {
            found = native[look](this.number);
          } catch (error) {
            const reason = told(error, this.url);
            this.abort(reason);
            return;
          }
          if (found === undefined) waiting.set(this.number, again);
          else resolve(found);
        };
        again();
      });
    }
    // The status and a flat list of headers.
    async head() {
      const [status, headers] = await this.look("httpHead");
      return { status, headers };
    }
    // The next bytes of the body, or null.
    async read() {
      if (this.failure) throw this.failure.reason;
      if (this.isClosed) return null;
      const bytes = await this.look("httpRead");
      if (bytes !== null) return new Uint8Array(bytes);
      this.close();
      return null;
    }
    close() {
      if (this.isClosed) return;
      this.isClosed = true;
      this.fail = null;
      waiting.delete(this.number);
      native.httpClose(this.number);
    }
    // Ends it with an error for whoever waits or reads on.
    abort(reason) {
      const { fail } = this;
      this.close();
      this.failure = { reason };
      if (fail) fail(reason);
    }
  }
  return { Exchange };
}
