(native, need) => {
  const { inspect, format, formatWith } = need("internal/inspect");
  const { coded, invalid } = need("internal/errors");
  const same = (a, b, strict, seen = []) => {
    if (Object.is(a, b)) return true;
    if (a === null || b === null || typeof a !== "object" || typeof b !== "object") {
      if (strict) return false;
      return (typeof a !== "object" && typeof b !== "object" && (a == b || (a !== a && b !== b))) || (a === null && b === undefined) || (a === undefined && b === null);
    }
    if (seen.some(([left, right]) => left === a && right === b)) return true;
    if (strict && Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false;
    if (Object.prototype.toString.call(a) !== Object.prototype.toString.call(b)) return false;
    const deeper = [...seen, [a, b]];
    const equal = (left, right) => same(left, right, strict, deeper);
    if (a instanceof Date && !Object.is(a.getTime(), b.getTime())) return false;
    if (a instanceof RegExp && (a.source !== b.source || a.flags !== b.flags || a.lastIndex !== b.lastIndex)) return false;
    if (a instanceof Error && (a.message !== b.message || a.name !== b.name || !equal(a.cause, b.cause))) return false;
    if ((a instanceof Number || a instanceof String || a instanceof Boolean) && !Object.is(a.valueOf(), b.valueOf())) return false;
    if (Array.isArray(a) !== Array.isArray(b) || (Array.isArray(a) && a.length !== b.length)) return false;
    if (ArrayBuffer.isView(a)) return a.byteLength === b.byteLength && Array.from(a).every((item, index) => Object.is(item, b[index]));
    if (a instanceof ArrayBuffer) return equal(new Uint8Array(a), new Uint8Array(b));
    if (a instanceof Set) {
      if (a.size !== b.size) return false;
      const rest = [...b];
      for (const item of a) {
        const at = rest.findIndex((other) => equal(item, other));
        if (at < 0) return false;
        rest.splice(at, 1);
      }
    }
    if (a instanceof Map) {
      if (a.size !== b.size) return false;
      const rest = [...b];
      for (const [key, value] of a) {
        const at = rest.findIndex(([other, found]) => equal(key, other) && equal(value, found));
        if (at < 0) return false;
        rest.splice(at, 1);
      }
    }
    const [left, right] = [Object.keys(a), Object.keys(b)];
    return left.length === right.length && left.every((key) => Object.prototype.hasOwnProperty.call(b, key) && equal(a[key], b[key]));
  };
  const custom = Symbol.for("nodejs.util.promisify.custom");
  const promisify = (call) => {
    if (typeof call !== "function") throw invalid("original", "of type function", call);
    if (call[custom]) return call[custom];
    return function (...args) {
      return new Promise((resolve, reject) => {
        call.call(this, ...args, (error, ...values) => (error ? reject(error) : resolve(values[0])));
      });
    };
  };
  promisify.custom = custom;
  const callbackify = (call) => function (...args) {
    const done = args.pop();
    call.apply(this, args).then((value) => process.nextTick(done, null, value), (error) => process.nextTick(done, error));
  };
  // util.parseArgs.
  const parseArgs = (config = {}) => {
    const options = config.options || {}, strict = config.strict !== false;
    const args = config.args || process.argv.slice(2), positional = config.allowPositionals === undefined ? !strict : config.allowPositionals;
    const values = Object.create(null), positionals = [], tokens = [];
    const wrong = (code, message) => coded(TypeError, code, message);
    const set = (name, value, raw) => {
      const option = options[name];
      if (strict) {
        if (option === undefined) {
          const more = positional ? `. To specify a positional argument starting with a '-', place it at the end of the command after '--', as in '-- "${raw}"` : "";
          throw wrong("ERR_PARSE_ARGS_UNKNOWN_OPTION", `Unknown option '${raw}'${more}`);
        }
        const shown = option.short ? `-${option.short}, --${name}` : `--${name}`;
        if (option.type === "string" && typeof value !== "string") throw wrong("ERR_PARSE_ARGS_INVALID_OPTION_VALUE", `Option '${shown} <value>' argument missing`);
        if (option.type === "boolean" && typeof value === "string") throw wrong("ERR_PARSE_ARGS_INVALID_OPTION_VALUE", `Option '${shown}' does not take an argument`);
      }
      if (name === "__proto__") return;
      const stored = value === undefined ? true : value;
      if (option && option.multiple) values[name] = [...(values[name] || []), stored];
      else values[name] = stored;
    };
    const byShort = (short) => Object.keys(options).find((name) => options[name].short === short);
    for (let i = 0; i < args.length; i += 1) {
      const word = args[i];
      const next = () => (i + 1 < args.length && (args[i + 1] === "-" || !/^-/.test(args[i + 1]) || !strict) ? args[(i += 1)] : undefined);
      if (word === "--") {
        positionals.push(...args.slice(i + 1));
        tokens.push({ kind: "option-terminator", index: i });
        break;
      } else if (word.startsWith("--")) {
        const at = word.indexOf("=");
        let name = word.slice(2, at < 0 ? undefined : at), value = at < 0 ? undefined : word.slice(at + 1);
        if (config.allowNegative && name.startsWith("no-") && options[name.slice(3)] && options[name.slice(3)].type === "boolean") [name, value] = [name.slice(3), false];
        else if (value === undefined && options[name] && options[name].type === "string") value = next();
        tokens.push({ kind: "option", name, rawName: word, index: i, value, inlineValue: at >= 0 });
        set(name, value, word.slice(0, at < 0 ? undefined : at));
      } else if (word.startsWith("-") && word !== "-") {
        for (let at = 1; at < word.length; at += 1) {
          const name = byShort(word[at]) || word[at];
          if (options[name] && options[name].type === "string") {
            const value = at + 1 < word.length ? word.slice(at + 1) : next();
            set(name, value, "-" + word[at]);
            tokens.push({ kind: "option", name, rawName: "-" + word[at], index: i, value, inlineValue: at + 1 < word.length });
            break;
          }
          set(name, undefined, "-" + word[at]);
          tokens.push({ kind: "option", name, rawName: "-" + word[at], index: i, value: undefined, inlineValue: undefined });
        }
      } else {
        if (!positional) throw wrong("ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL", `Unexpected argument '${word}'. This command does not take positional arguments`);
        positionals.push(word);
        tokens.push({ kind: "positional", index: i, value: word });
      }
    }
    for (const [name, option] of Object.entries(options)) if (option.default !== undefined && values[name] === undefined) values[name] = option.default;
    return config.tokens ? { values, positionals, tokens } : { values, positionals };
  };
  const tagged = (name) => (value) => Object.prototype.toString.call(value) === `[object ${name}]`;
  const types = { isDate: (value) => value instanceof Date, isRegExp: (value) => value instanceof RegExp, isMap: (value) => value instanceof Map,
    isSet: (value) => value instanceof Set, isPromise: (value) => value instanceof Promise, isNativeError: (value) => value instanceof Error,
    isTypedArray: (value) => ArrayBuffer.isView(value) && !(value instanceof DataView), isUint8Array: (value) => value instanceof Uint8Array,
    isArrayBuffer: (value) => value instanceof ArrayBuffer, isAnyArrayBuffer: (value) => value instanceof ArrayBuffer, isAsyncFunction: tagged("AsyncFunction"),
    isGeneratorFunction: tagged("GeneratorFunction"), isGeneratorObject: tagged("Generator"), isWeakMap: (value) => value instanceof WeakMap,
    isWeakSet: (value) => value instanceof WeakSet, isProxy: () => false };
  const colors = { reset: [0, 0], bold: [1, 22], dim: [2, 22], italic: [3, 23], underline: [4, 24], inverse: [7, 27], black: [30, 39], red: [31, 39], green: [32, 39],
    yellow: [33, 39], blue: [34, 39], magenta: [35, 39], cyan: [36, 39], white: [37, 39], gray: [90, 39], grey: [90, 39] };
  inspect.colors = colors;
  const stripVTControlCharacters = (text) => text.replace(/\u001b\[[0-9;?]*[A-Za-z]|\u001b\][^\u0007]*\u0007/g, "");
  const deprecate = (call, message) => {
    let warned = false;
    return function (...args) {
      if (!warned) process.emitWarning(message, "DeprecationWarning");
      warned = true;
      return call.apply(this, args);
    };
  };
  return {
    inspect, format, formatWithOptions: formatWith, promisify, callbackify, parseArgs, types, deprecate, stripVTControlCharacters,
    same, isDeepStrictEqual: (a, b) => same(a, b, true), isArray: Array.isArray,
    inherits: (child, parent) => {
      child.super_ = parent;
      Object.setPrototypeOf(child.prototype, parent.prototype);
    },
    styleText: (format, text) => [].concat(format).reduceRight((shown, name) => `\u001b[${colors[name][0]}m${shown}\u001b[${colors[name][1]}m`, text),
    toUSVString: (text) => String(text).toWellFormed(), debuglog: () => Object.assign(() => {}, { enabled: false }), debug: () => Object.assign(() => {}, { enabled: false }),
    get TextEncoder() { return TextEncoder; }, get TextDecoder() { return TextDecoder; },
    parseEnv: (text) => Object.fromEntries(text.split("\n").map((line) => /^\s*(?:export\s+)?([\w.]+)\s*=\s*("(?:[^"]*)"|'(?:[^']*)'|[^#]*)/.exec(line)).filter(Boolean)
      .map(([, name, value]) => [name, value.trim().replace(/^(["'])([^]*)\1$/, "$2")])),
  };
}
