(native, need) => {
  const { coded, invalid } = need("internal/errors");
  const ports = { "http:": "80", "https:": "443", "ftp:": "21", "ws:": "80", "wss:": "443", "file:": "" };
  const percent = (text, kept) => text.replace(/[\ud800-\udbff][\udc00-\udfff]|[^]/g, (sign) => (kept.test(sign) ? sign : encode(sign)));
  const encode = (sign) => Array.from(new Uint8Array(native.encode(sign, "utf8")), (byte) => "%" + byte.toString(16).toUpperCase().padStart(2, "0")).join("");
  const inPath = /[A-Za-z0-9\-._~!$&'()*+,;=:@%/[\]|\\]/, inQuery = /[A-Za-z0-9\-._~!$&()*+,;=:@%/?[\]|\\^`{}]/, inHash = /[A-Za-z0-9\-._~!$&'()*+,;=:@%/?[\]|\\^{}#]/;
  const inUser = /[A-Za-z0-9\-._~!$&'()*+,%]/;
  const bad = (input) => coded(TypeError, "ERR_INVALID_URL", "Invalid URL", { input: String(input) });
  const dots = (path) => {
    const kept = [];
    const parts = path.split("/").slice(1);
    parts.forEach((part, index) => {
      const last = index === parts.length - 1;
      if (/^(\.|%2e)$/i.test(part)) {
        if (last) kept.push("");
      } else if (/^(\.|%2e)(\.|%2e)$/i.test(part)) {
        kept.pop();
        if (last) kept.push("");
      } else {
        kept.push(part);
      }
    });
    return "/" + kept.join("/");
  };
  const hostOf = (text, input) => {
    if (text.startsWith("[")) return text.toLowerCase();
    let host;
    try {
      host = decodeURIComponent(text).toLowerCase();
    } catch {
      throw bad(input);
    }
    if (host === "" || /[\s#%/:<>?@[\\\]^|]/.test(host)) throw bad(input);
    return host;
  };
  const parse = (input, base) => {
    const text = String(input).replace(/^[\u0000-\u0020]+|[\u0000-\u0020]+$/g, "").replace(/[\t\n\r]/g, "");
    const found = /^([A-Za-z][A-Za-z0-9+.-]*):([^]*)$/.exec(text);
    const parts = { protocol: "", username: "", password: "", hostname: "", port: "", pathname: "", search: "", hash: "", opaque: false };
    let rest = text;
    if (found !== null && !(base && base.protocol === found[1].toLowerCase() + ":" && base.protocol in ports && !/^[/\\]/.test(found[2]))) {
      parts.protocol = found[1].toLowerCase() + ":";
      rest = found[2];
    } else if (base === undefined || (base.opaque && text[0] !== "#")) {
      throw bad(input);
    } else {
      Object.assign(parts, base);
      if (found !== null) rest = found[2];
    }
    const special = parts.protocol in ports;
    const at = rest.indexOf("#");
    const hash = at < 0 ? undefined : rest.slice(at + 1);
    if (at >= 0) rest = rest.slice(0, at);
    const ask = rest.indexOf("?");
    const query = ask < 0 ? undefined : rest.slice(ask + 1);
    if (ask >= 0) rest = rest.slice(0, ask);
    if (special) rest = rest.replace(/\\/g, "/");
    const absolute = found !== null && parts.protocol === found[1].toLowerCase() + ":" && rest !== undefined && (base === undefined || parts !== base) && text.length > 0 && found[2] !== undefined;
    const isNew = absolute && (base === undefined || found[1].toLowerCase() + ":" !== base.protocol || /^[/\\]/.test(found[2]) || !special);
    if (rest.startsWith("//") || (isNew && special && parts.protocol !== "file:")) {
      const [, authority, path] = /^\/*([^/]*)([^]*)$/.exec(parts.protocol === "file:" ? rest.slice(2).replace(/^/, "") : rest);
      const split = authority.lastIndexOf("@");
      const user = split < 0 ? "" : authority.slice(0, split);
      const place = /^(\[[^\]]*\]|[^:]*)(?::(\d*))?$/.exec(authority.slice(split + 1));
      const isFile = parts.protocol === "file:";
      if (place === null) throw bad(input);
      const colon = user.indexOf(":");
      parts.username = percent(colon < 0 ? user : user.slice(0, colon), inUser);
      parts.password = colon < 0 ? "" : percent(user.slice(colon + 1), inUser);
      if (isFile) {
        const whole = /^([^/]*)([^]*)$/.exec(rest.slice(2));
        parts.hostname = whole[1] === "localhost" ? "" : whole[1].toLowerCase();
        parts.pathname = dots(percent(whole[2] || "/", inPath));
      } else {
        parts.hostname = special ? hostOf(place[1], input) : place[1];
        const port = place[2] || "";
        if (port !== "" && Number(port) > 65535) throw bad(input);
        parts.port = port === "" || port === ports[parts.protocol] ? "" : String(Number(port));
        parts.pathname = path === "" && !special ? "" : dots(percent(path || "/", inPath));
      }
      [parts.search, parts.hash, parts.opaque, parts.slashes] = ["", "", false, true];
    } else if (isNew) {
      Object.assign(parts, { username: "", password: "", hostname: "", port: "", search: "", hash: "", opaque: !rest.startsWith("/") && !special, slashes: special });
      parts.pathname = parts.opaque ? rest : dots(percent(rest.startsWith("/") ? rest : "/" + rest, inPath));
    } else if (rest !== "") {
      const from = rest.startsWith("/") ? rest : parts.pathname.replace(/[^/]*$/, "") + rest;
      parts.pathname = dots(percent(from.startsWith("/") ? from : "/" + from, inPath));
      [parts.search, parts.hash] = ["", ""];
    } else {
      parts.hash = "";
      if (query !== undefined) parts.search = "";
    }
    if (query !== undefined) parts.search = query === "" ? "" : "?" + percent(query, inQuery);
    if (hash !== undefined) parts.hash = hash === "" ? "" : "#" + percent(hash, inHash);
    return parts;
  };
  const form = (text) => encodeURIComponent(text).replace(/[!'()~]/g, (sign) => "%" + sign.charCodeAt(0).toString(16).toUpperCase()).replace(/%20/g, "+");
  const unform = (text) => {
    const bytes = [];
    const plain = new Uint8Array(native.encode(text.replace(/\+/g, " "), "utf8"));
    for (let i = 0; i < plain.length; i += 1) {
      const pair = plain[i] === 37 ? String.fromCharCode(plain[i + 1] || 0, plain[i + 2] || 0) : "";
      if (/^[0-9a-f]{2}$/i.test(pair)) {
        bytes.push(parseInt(pair, 16));
        i += 2;
      } else {
        bytes.push(plain[i]);
      }
    }
    return native.decode(Uint8Array.from(bytes), "utf8");
  };
  class URLSearchParams {
    #list = [];
    #changed = () => {};
    constructor(init = "") {
      if (init !== null && typeof init === "object" && typeof init[Symbol.iterator] === "function") {
        for (const [name, value] of init) this.#list.push([String(name), String(value)]);
      } else if (init !== null && typeof init === "object") {
        for (const name of Object.keys(init)) this.#list.push([name, String(init[name])]);
      } else {
        this.#read(String(init));
      }
    }
    #read(text) {
      this.#list = text.replace(/^\?/, "").split("&").filter((part) => part !== "").map((part) => {
        const at = part.indexOf("=");
        return [unform(at < 0 ? part : part.slice(0, at)), at < 0 ? "" : unform(part.slice(at + 1))];
      });
    }
    static of(text, changed) {
      const made = new URLSearchParams(text);
      made.#changed = changed;
      return made;
    }
    append(name, value) { this.#list.push([String(name), String(value)]); this.#changed(this); }
    delete(name, value) { this.#list = this.#list.filter(([other, found]) => other !== String(name) || (value !== undefined && found !== String(value))); this.#changed(this); }
    get(name) {
      const found = this.#list.find(([other]) => other === String(name));
      return found === undefined ? null : found[1];
    }
    getAll(name) { return this.#list.filter(([other]) => other === String(name)).map(([, value]) => value); }
    has(name, value) { return this.#list.some(([other, found]) => other === String(name) && (value === undefined || found === String(value))); }
    set(name, value) {
      const at = this.#list.findIndex(([other]) => other === String(name));
      if (at < 0) return this.append(name, value);
      this.#list = this.#list.filter(([other], index) => index <= at || other !== String(name));
      this.#list[at] = [String(name), String(value)];
      this.#changed(this);
    }
    sort() { this.#list.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)); this.#changed(this); }
    get size() { return this.#list.length; }
    forEach(call, self) { for (const [name, value] of this.#list) call.call(self, value, name, this); }
    keys() { return this.#list.map(([name]) => name)[Symbol.iterator](); }
    values() { return this.#list.map(([, value]) => value)[Symbol.iterator](); }
    entries() { return this.#list.map((pair) => [...pair])[Symbol.iterator](); }
    [Symbol.iterator]() { return this.entries(); }
    toString() { return this.#list.map(([name, value]) => form(name) + "=" + form(value)).join("&"); }
    [Symbol.for("nodejs.util.inspect.custom")](depth, options, inspect) {
      return this.#list.length === 0 ? "URLSearchParams {}" : `URLSearchParams { ${this.#list.map(([name, value]) => `${inspect(name)} => ${inspect(value)}`).join(", ")} }`;
    }
  }
  class URL {
    #parts;
    #query;
    constructor(input, base) {
      this.#parts = parse(input, base === undefined ? undefined : parse(base));
    }
    static canParse(input, base) {
      try {
        new URL(input, base);
        return true;
      } catch {
        return false;
      }
    }
    static parse(input, base) { return URL.canParse(input, base) ? new URL(input, base) : null; }
    get href() {
      const { protocol, username, password, pathname, search, hash, slashes } = this.#parts;
      const user = username === "" && password === "" ? "" : username + (password === "" ? "" : ":" + password) + "@";
      return protocol + (slashes ? "//" + user + this.host : "") + pathname + search + hash;
    }
    set href(value) { this.#parts = parse(value); this.#query = undefined; }
    get origin() { return this.#parts.protocol in ports && this.#parts.protocol !== "file:" ? this.#parts.protocol + "//" + this.host : "null"; }
    get protocol() { return this.#parts.protocol; }
    set protocol(value) { this.#parts.protocol = String(value).replace(/:.*$/, "").toLowerCase() + ":"; }
    get username() { return this.#parts.username; }
    set username(value) { this.#parts.username = percent(String(value), inUser); }
    get password() { return this.#parts.password; }
    set password(value) { this.#parts.password = percent(String(value), inUser); }
    get host() { return this.#parts.hostname + (this.#parts.port === "" ? "" : ":" + this.#parts.port); }
    set host(value) {
      const found = /^(\[[^\]]*\]|[^:/?#]+)(?::(\d+))?/.exec(String(value));
      if (found === null) return;
      this.#parts.hostname = found[1].toLowerCase();
      if (found[2] !== undefined) this.port = found[2];
    }
    get hostname() { return this.#parts.hostname; }
    set hostname(value) { this.#parts.hostname = hostOf(String(value), value); }
    get port() { return this.#parts.port; }
    set port(value) { this.#parts.port = String(value) === ports[this.#parts.protocol] ? "" : String(value).replace(/\D.*$/, ""); }
    get pathname() { return this.#parts.pathname; }
    set pathname(value) { this.#parts.pathname = dots(percent(String(value).replace(/^(?!\/)/, "/").replace(/[?#]/g, encode), inPath)); }
    get search() { return this.#parts.search; }
    set search(value) {
      const text = String(value).replace(/^\?/, "");
      this.#parts.search = text === "" ? "" : "?" + percent(text.replace(/#/g, "%23"), inQuery);
      this.#query = undefined;
    }
    get hash() { return this.#parts.hash; }
    set hash(value) {
      const text = String(value).replace(/^#/, "");
      this.#parts.hash = text === "" ? "" : "#" + percent(text, inHash);
    }
    get searchParams() {
      this.#query = this.#query || URLSearchParams.of(this.#parts.search, (query) => {
        const text = query.toString();
        this.#parts.search = text === "" ? "" : "?" + text;
      });
      return this.#query;
    }
    toString() { return this.href; }
    toJSON() { return this.href; }
    [Symbol.for("nodejs.util.inspect.custom")](depth, options, inspect) {
      const { href, origin, protocol, username, password, host, hostname, port, pathname, search, searchParams, hash } = this;
      return "URL " + inspect({ href, origin, protocol, username, password, host, hostname, port, pathname, search, searchParams, hash }, options);
    }
  }
  const fileURLToPath = (place) => {
    const url = place instanceof URL ? place : new URL(place);
    if (url.protocol !== "file:") throw coded(TypeError, "ERR_INVALID_URL_SCHEME", "The URL must be of scheme file");
    if (url.hostname !== "") throw coded(TypeError, "ERR_INVALID_FILE_URL_HOST", 'File URL host must be "localhost" or empty on linux');
    if (/%2f/i.test(url.pathname)) throw coded(TypeError, "ERR_INVALID_FILE_URL_PATH", "File URL path must not include encoded / characters");
    return decodeURIComponent(url.pathname);
  };
  const pathToFileURL = (path) => {
    if (typeof path !== "string") throw invalid("path", "of type string", path);
    const end = path.endsWith("/") && path.length > 1 ? "/" : "";
    const whole = need("path").resolve(path) + end;
    return new URL("file://" + whole.replace(/[%\\\n\r\t?#]/g, encode));
  };
  // The form from before there was the class URL.
  const legacy = (text, withQuery) => {
    const found = /^(?:([A-Za-z][A-Za-z0-9+.-]*:))?(\/\/)?(?:([^@/?#]*)@)?([^/?#]*)?([^?#]*)(\?[^#]*)?(#.*)?$/.exec(String(text));
    const [, protocol = null, slashes, auth = null, place, path, search = null, hash = null] = found || [];
    const host = slashes ? place : null;
    const port = host === null ? null : (/:(\d+)$/.exec(host) || [null, null])[1];
    const pathname = (slashes ? path : (auth === null ? "" : auth + "@") + (place || "") + path) || null;
    const query = search === null ? null : search.slice(1);
    return { protocol, slashes: slashes === "//" || null, auth: slashes ? auth : null, host, port, hostname: host === null ? null : host.replace(/:\d+$/, ""), hash, search,
      query: withQuery ? need("querystring").parse(query || "") : query, pathname, path: pathname === null && search === null ? null : (pathname || "") + (search || ""), href: String(text) };
  };
  return {
    URL, URLSearchParams, fileURLToPath, pathToFileURL, parse: legacy,
    toPath: (place) => (place instanceof URL ? fileURLToPath(place) : String(place)),
    resolve: (from, to) => {
      const url = new URL(to, new URL(from, "resolve://host/"));
      return url.protocol === "resolve:" ? url.pathname + url.search + url.hash : url.href;
    },
    format: (place) => {
      if (place instanceof URL || typeof place === "string") return String(place);
      const search = place.search || (place.query ? "?" + (typeof place.query === "string" ? place.query : need("querystring").stringify(place.query)) : "");
      const host = place.host || (place.hostname ? place.hostname + (place.port ? ":" + place.port : "") : "");
      const protocol = place.protocol ? place.protocol.replace(/:?$/, ":") : "";
      return protocol + (host !== "" ? "//" + (place.auth ? place.auth + "@" : "") + host : "") + (place.pathname || "") + search + (place.hash || "");
    },
    domainToASCII: (text) => text.toLowerCase(), domainToUnicode: (text) => text,
  };
}
