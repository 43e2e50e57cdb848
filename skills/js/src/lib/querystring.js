(native, need) => {
  const escape = (text) => encodeURIComponent(text);
  const unescape = (text) => {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  };
  const plain = (value) => (["string", "number", "bigint", "boolean"].includes(typeof value) ? String(value) : "");
  const stringify = (object, between = "&", equals = "=") => Object.entries(object || {})
    .flatMap(([name, value]) => (Array.isArray(value) ? value : [value]).map((item) => escape(name) + equals + escape(plain(item)))).join(between);
  const parse = (text, between = "&", equals = "=") => {
    const found = Object.create(null);
    for (const part of String(text).split(between)) {
      if (part === "") continue;
      const at = part.indexOf(equals);
      const [name, value] = [at < 0 ? part : part.slice(0, at), at < 0 ? "" : part.slice(at + equals.length)].map((item) => unescape(item.replace(/\+/g, " ")));
      if (name in found) found[name] = [].concat(found[name], value);
      else found[name] = value;
    }
    return found;
  };
  return { escape, unescape, stringify, encode: stringify, parse, decode: parse };
}
