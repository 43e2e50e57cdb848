// Values as Node writes them: util.inspect and util.format.
(native, need) => {
  const custom = Symbol.for("nodejs.util.inspect.custom");
  const escapes = { "\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f", "\v": "\\v", "\\": "\\\\" };
  const quote = (text) => {
    const mark = !text.includes("'") ? "'" : !text.includes('"') ? '"' : !text.includes("`") && !text.includes("${") ? "`" : "'";
    const body = text.replace(/[\u0000-\u001f\u007f-\u009f\\'"`]/g, (sign) => {
      if (sign === "'" || sign === '"' || sign === "`") return sign === mark ? "\\" + sign : sign;
      return escapes[sign] || "\\x" + sign.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0");
    });
    return mark + body + mark;
  };
  const keyText = (key) => {
    if (typeof key === "symbol") return "[" + String(key) + "]";
    return /^[A-Za-z_$][\w$]*$/.test(key) ? key : quote(key);
  };
  const number = (value) => (Object.is(value, -0) ? "-0" : String(value));
  const primitive = (value, context) => {
    switch (typeof value) {
      case "string": {
        const limit = context.maxStringLength;
        const more = value.length > limit ? value.length - limit : 0;
        return quote(more ? value.slice(0, limit) : value) + (more ? `... ${more} more character${more > 1 ? "s" : ""}` : "");
      }
      case "number": return number(value);
      case "bigint": return value + "n";
      default: return String(value);
    }
  };
  const constructorName = (value) => {
    for (let object = value; object !== null; object = Object.getPrototypeOf(object)) {
      const found = Object.getOwnPropertyDescriptor(object, "constructor");
      if (found && typeof found.value === "function" && found.value.name !== "") return found.value.name;
    }
    return null;
  };
  const tagOf = (value, name) => {
    const tag = value[Symbol.toStringTag];
    return typeof tag === "string" && tag !== "" && tag !== name ? ` [${tag}]` : "";
  };
  const prefix = (value, fallback, size) => {
    const name = constructorName(value);
    const sized = size === undefined ? "" : `(${size})`;
    if (name === null) return `[${fallback}${sized}: null prototype]${tagOf(value, "")} `;
    return `${name}${sized}${tagOf(value, name)} `;
  };
  const natives = new Set(Object.getOwnPropertyNames(globalThis).map((name) => globalThis[name]));
  // The engine has no source text of a class, but no function that is not one has a prototype that is fixed.
  const isClass = (value) => {
    const found = Object.getOwnPropertyDescriptor(value, "prototype");
    return found !== undefined && found.writable === false && !natives.has(value);
  };
  const functionBase = (value) => {
    if (isClass(value)) {
      const parent = Object.getPrototypeOf(value);
      return `[class ${value.name || "(anonymous)"}${parent && parent.name ? " extends " + parent.name : ""}]`;
    }
    const kind = constructorName(value) || "Function";
    return value.name ? `[${kind}: ${value.name}]` : `[${kind} (anonymous)]`;
  };
  const errorBase = (value, context) => {
    let stack = typeof value.stack === "string" && value.stack !== "" ? value.stack : "";
    if (stack === "") stack = Error.prototype.toString.call(value);
    if (!stack.includes("\n    at ") && !context.options.bare) stack = `[${stack}]`;
    return context.indentation === 0 ? stack : stack.replace(/\n/g, "\n" + " ".repeat(context.indentation));
  };
  // Entries of an array in columns, as Node groups more than six of them.
  const group = (output, context, value) => {
    let total = 0, longest = 0;
    const count = output.length - (context.more ? 1 : 0);
    const lengths = [];
    for (let i = 0; i < count; i += 1) {
      lengths.push(output[i].length);
      total += output[i].length + 2;
      longest = Math.max(longest, output[i].length);
    }
    const width = longest + 2;
    if (width * 3 + context.indentation >= context.breakLength || !(total / width > 5 || longest <= 6)) return output;
    const biased = Math.max(width - 3 - Math.sqrt(width - total / output.length), 1);
    const columns = Math.min(Math.round(Math.sqrt(2.5 * biased * count) / biased),
      Math.floor((context.breakLength - context.indentation) / width), context.compact * 4, 15);
    if (columns <= 1) return output;
    const widths = [];
    for (let column = 0; column < columns; column += 1) {
      let most = 0;
      for (let i = column; i < count; i += columns) most = Math.max(most, lengths[i]);
      widths.push(most + 2);
    }
    const numbers = value !== undefined && value.every((item) => typeof item === "number" || typeof item === "bigint");
    const lines = [];
    for (let row = 0; row < count; row += columns) {
      const end = Math.min(row + columns, count);
      let line = "";
      for (let i = row; i < end - 1; i += 1) {
        const cell = output[i] + ", ";
        line += numbers ? cell.padStart(widths[i - row]) : cell.padEnd(widths[i - row]);
      }
      line += numbers ? output[end - 1].padStart(widths[end - 1 - row] - 2) : output[end - 1];
      lines.push(line);
    }
    if (context.more) lines.push(output[count]);
    return lines;
  };
  const reduce = (output, base, open, close, isList, depth, context, value) => {
    const entries = output.length;
    if (isList && entries > 6 && context.compact >= 1) output = group(output, context, value);
    if (context.depthSeen - depth < context.compact && entries === output.length) {
      const start = output.length + context.indentation + open.length + base.length + 10;
      const total = output.reduce((sum, part) => sum + part.length, output.length + start);
      if (total <= context.breakLength && !output.some((part) => part.includes("\n")) && !base.includes("\n")) {
        return `${base ? base + " " : ""}${open} ${output.join(", ")} ${close}`;
      }
    }
    const indent = "\n" + " ".repeat(context.indentation);
    return `${base ? base + " " : ""}${open}${indent}  ${output.join("," + indent + "  ")}${indent}${close}`;
  };
  const property = (value, key, depth, context, isList) => {
    const found = Object.getOwnPropertyDescriptor(value, key) || { value: value[key], enumerable: true };
    let text;
    if (found.get || found.set) {
      text = found.get && found.set ? "[Getter/Setter]" : found.get ? "[Getter]" : "[Setter]";
    } else {
      context.indentation += 2;
      text = show(found.value, depth + 1, context);
      context.indentation -= 2;
    }
    if (isList) return text;
    const name = found.enumerable === false ? `[${typeof key === "symbol" ? String(key) : key}]` : keyText(key);
    return `${name}: ${text}`;
  };
  const show = (value, depth, context) => {
    if (value === null || (typeof value !== "object" && typeof value !== "function")) return primitive(value, context);
    if (context.customInspect && typeof value[custom] === "function" && value[custom] !== inspect) {
      const left = context.depth === null ? Infinity : context.depth - depth;
      const made = value[custom](left, { ...context.options, depth: left }, inspect);
      if (made !== value) {
        return typeof made === "string" ? made.replace(/\n/g, "\n" + " ".repeat(context.indentation)) : show(made, depth, context);
      }
    }
    if (context.seen.includes(value)) {
      if (!context.circular.has(value)) context.circular.set(value, context.circular.size + 1);
      return `[Circular *${context.circular.get(value)}]`;
    }
    return raw(value, depth, context);
  };
  const keysOf = (value, context) => {
    const names = context.showHidden ? Object.getOwnPropertyNames(value) : Object.keys(value);
    const symbols = Object.getOwnPropertySymbols(value);
    return [...names, ...symbols.filter((symbol) => context.showHidden || Object.prototype.propertyIsEnumerable.call(value, symbol))];
  };
  const raw = (value, depth, context) => {
    let keys = keysOf(value, context);
    let base = "", open = "{", close = "}", isList = false, values;
    let entries = () => [];
    const name = constructorName(value);
    const limited = (list, each) => {
      const shown = list.slice(0, context.maxArrayLength).map(each);
      const more = list.length - shown.length;
      context.more = more > 0;
      if (more > 0) shown.push(`... ${more} more item${more > 1 ? "s" : ""}`);
      return shown;
    };
    const nested = (item) => {
      context.indentation += 2;
      const text = show(item, depth + 1, context);
      context.indentation -= 2;
      return text;
    };
    if (Array.isArray(value)) {
      isList = true;
      const plain = name === "Array" && !tagOf(value, "Array");
      open = (plain ? "" : prefix(value, "Array", value.length)) + "[";
      close = "]";
      keys = keys.filter((key) => typeof key === "symbol" || !/^\d+$/.test(key));
      if (value.length === 0 && keys.length === 0) return open + close;
      values = value;
      entries = () => {
        const shown = [];
        let index = 0;
        for (; index < value.length && shown.length < context.maxArrayLength; index += 1) {
          if (index in value) {
            shown.push(property(value, String(index), depth, context, true));
          } else {
            const from = index;
            while (index + 1 < value.length && !(index + 1 in value)) index += 1;
            const count = index - from + 1;
            shown.push(`<${count} empty item${count > 1 ? "s" : ""}>`);
          }
        }
        const more = value.length - index;
        context.more = more > 0;
        if (more > 0) shown.push(`... ${more} more item${more > 1 ? "s" : ""}`);
        return shown;
      };
    } else if (value instanceof Set) {
      open = prefix(value, "Set", value.size) + "{";
      if (value.size === 0 && keys.length === 0) return open + "}";
      entries = () => [...value].map(nested);
    } else if (value instanceof Map) {
      open = prefix(value, "Map", value.size) + "{";
      if (value.size === 0 && keys.length === 0) return open + "}";
      entries = () => [...value].map(([key, item]) => `${nested(key)} => ${nested(item)}`);
    } else if (ArrayBuffer.isView(value) && !(value instanceof DataView)) {
      isList = true;
      open = prefix(value, "TypedArray", value.length) + "[";
      close = "]";
      keys = keys.filter((key) => typeof key === "symbol" || !/^\d+$/.test(key));
      if (value.length === 0 && keys.length === 0) return open + close;
      values = Array.from(value.subarray(0, context.maxArrayLength));
      entries = () => limited(Array.from(value), (item) => primitive(item, context));
    } else if (value instanceof ArrayBuffer) {
      open = prefix(value, "ArrayBuffer") + "{";
      entries = () => {
        const bytes = new Uint8Array(value);
        const hex = Array.from(bytes.subarray(0, 50), (byte) => byte.toString(16).padStart(2, "0")).join(" ");
        const more = bytes.length > 50 ? ` ... ${bytes.length - 50} more bytes` : "";
        return [`[Uint8Contents]: <${hex}${more}>`, `byteLength: ${value.byteLength}`];
      };
    } else if (typeof value === "function") {
      base = functionBase(value);
      if (keys.length === 0) return base;
    } else if (value instanceof RegExp) {
      base = RegExp.prototype.toString.call(value);
      if (keys.length === 0) return base;
    } else if (value instanceof Date) {
      base = isNaN(value) ? "Invalid Date" : value.toISOString();
      if (keys.length === 0) return base;
    } else if (value instanceof Error) {
      keys = keys.filter((key) => key !== "stack" && key !== "message" && !(key === "name" && value.name === value.constructor.name));
      for (const key of ["cause", "errors"]) {
        if (Object.prototype.hasOwnProperty.call(value, key) && !keys.includes(key)) keys.push(key);
      }
      base = errorBase(value, context);
      if (keys.length === 0) return base;
    } else if (value instanceof Promise) {
      open = prefix(value, "Promise") + "{";
      entries = () => ["<pending>"];
    } else if (value instanceof WeakSet || value instanceof WeakMap) {
      open = prefix(value, "Weak") + "{";
      entries = () => ["<items unknown>"];
    } else if (value instanceof Number || value instanceof String || value instanceof Boolean) {
      const inner = value.valueOf();
      base = `[${name}: ${primitive(inner, context)}]`;
      if (typeof inner === "string") keys = keys.filter((key) => typeof key === "symbol" || !/^\d+$/.test(key));
      if (keys.length === 0) return base;
    } else if (Object.prototype.toString.call(value) === "[object Arguments]") {
      isList = true;
      open = "[Arguments] [";
      close = "]";
      keys = keys.filter((key) => typeof key === "symbol" || !/^\d+$/.test(key));
      if (value.length === 0) return "[Arguments] []";
      entries = () => limited(Array.from(value), nested);
    } else {
      const head = name === "Object" && tagOf(value, "Object") === "" ? "" : prefix(value, "Object");
      open = head + "{";
      if (keys.length === 0) return open + "}";
    }
    if (context.depth !== null && depth > context.depth) {
      const shown = (isList ? open.slice(0, -1).trim() || "Array" : name || "Object: null prototype").replace(/\(\d+\)$/, "");
      return `[${shown}]`;
    }
    context.seen.push(value);
    context.depthSeen = depth;
    context.more = false;
    let output = entries();
    const more = context.more;
    for (const key of keys) output.push(property(value, key, depth, context, false));
    context.seen.pop();
    context.more = more;
    if (context.circular.has(value)) {
      const mark = `<ref *${context.circular.get(value)}>`;
      if (base === "") open = `${mark} ${open}`;
      else base = `${mark} ${base}`;
    }
    if (context.sorted) output = output.sort(typeof context.sorted === "function" ? context.sorted : undefined);
    return reduce(output, base, open, close, isList, depth, context, values);
  };
  const inspect = (value, options, depth) => {
    if (typeof options === "boolean") options = { showHidden: options, depth };
    options = options || {};
    const count = (given, usual) => (given === undefined ? usual : given === null ? Infinity : given);
    const context = {
      options, seen: [], circular: new Map(), indentation: 0, depthSeen: 0, more: false,
      depth: options.depth === undefined ? 2 : options.depth === Infinity ? null : options.depth,
      breakLength: count(options.breakLength, 80),
      compact: options.compact === undefined || options.compact === true ? 3 : options.compact === false ? 0 : options.compact,
      maxArrayLength: count(options.maxArrayLength, 100),
      maxStringLength: count(options.maxStringLength, 10000),
      showHidden: options.showHidden === true,
      customInspect: options.customInspect !== false,
      sorted: options.sorted,
    };
    return show(value, 0, context);
  };
  inspect.custom = custom;
  inspect.defaultOptions = {};
  const formatNumber = (value, parse) => {
    if (typeof value === "bigint") return value + "n";
    if (typeof value === "symbol") return "NaN";
    return number(parse(value));
  };
  const format = (...values) => formatWith({}, ...values);
  const formatWith = (options, ...values) => {
    let text = "", next = 0;
    if (typeof values[0] === "string") {
      next = 1;
      if (values.length === 1) return values[0];
      text = values[0].replace(/%[sdijfoOc%]/g, (mark) => {
        if (mark === "%%") return "%";
        if (next >= values.length) return mark;
        const value = values[next];
        next += 1;
        switch (mark) {
          case "%s":
            if (typeof value === "string") return value;
            if (typeof value === "number" || typeof value === "bigint") return primitive(value);
            if (typeof value === "object" && value !== null && !(value instanceof Error) && !(value instanceof Date)
              && value.toString === Object.prototype.toString) return inspect(value, { depth: 0, compact: 3 });
            return typeof value === "object" && value !== null && Array.isArray(value) ? inspect(value, { depth: 0 }) : String(value);
          case "%d": return typeof value === "object" ? "NaN" : formatNumber(value, Number);
          case "%i": return typeof value === "object" ? "NaN" : formatNumber(value, parseInt);
          case "%f": return formatNumber(value, parseFloat);
          case "%j":
            try {
              return JSON.stringify(value);
            } catch (error) {
              if (error instanceof TypeError) return "[Circular]";
              throw error;
            }
          case "%o": return inspect(value, { showHidden: true, depth: 4 });
          case "%O": return inspect(value, options);
          default: return "";
        }
      });
    }
    const rest = values.slice(next).map((value) => (typeof value === "string" ? value : inspect(value, options)));
    return [...(next > 0 ? [text] : []), ...rest].join(" ");
  };
  return { inspect, format, formatWith, quote };
}
