// The object `console`.
(native, need) => {
  const { inspect, format, formatWith } = need("internal/inspect");
  const make = (out, err) => {
    let indent = "";
    const counts = new Map(), timers = new Map();
    const line = (write, text) => write((indent === "" ? text : indent + text.replace(/\n/g, "\n" + indent)) + "\n");
    const log = (...values) => line(out, format(...values));
    const complain = (...values) => line(err, format(...values));
    const seconds = (milliseconds) => (milliseconds < 1000 ? `${Number(milliseconds.toFixed(3))}ms` : `${(milliseconds / 1000).toFixed(3)}s`);
    const time = (label, ends, rest) => {
      const from = timers.get(label);
      if (from === undefined) return complain(`Warning: No such label '${label}' for console.timeEnd()`);
      if (ends) timers.delete(label);
      log(`${label}: ${seconds(native.milliseconds() - from)}`, ...rest);
    };
    const wide = (text) => [...text].reduce((sum, sign) => sum + (/[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60]|[\u{1f300}-\u{1faff}]/u.test(sign) ? 2 : 1), 0);
    const table = (data, only) => {
      if (data === null || typeof data !== "object") return log(data);
      const cell = (value) => inspect(value, { depth: typeof value === "object" ? 0 : 2, maxArrayLength: 3, breakLength: Infinity });
      const rows = data instanceof Map ? [...data] : data instanceof Set ? [...data].map((item, index) => [index, item]) : Object.entries(data);
      const columns = only ? [...only] : [];
      let hasValues = false;
      for (const [, row] of rows) {
        if (row === null || typeof row !== "object") hasValues = true;
        else if (!only) for (const key of Object.keys(row)) if (!columns.includes(key)) columns.push(key);
      }
      const head = ["(index)", ...columns, ...(hasValues ? ["Values"] : [])];
      const lines = rows.map(([index, row]) => {
        const isObject = row !== null && typeof row === "object";
        const cells = columns.map((key) => (isObject && key in row ? cell(row[key]) : ""));
        return [String(index), ...cells, ...(hasValues ? [isObject ? "" : cell(row)] : [])];
      });
      const widths = head.map((name, column) => Math.max(...[head, ...lines].map((cells) => wide(cells[column]))) + 2);
      const rule = (left, middle, right) => left + widths.map((width) => "─".repeat(width)).join(middle) + right;
      const row = (cells) => "│" + cells.map((text, column) => " " + text + " ".repeat(widths[column] - 1 - wide(text))).join("│") + "│";
      log([rule("┌", "┬", "┐"), row(head), rule("├", "┼", "┤"), ...lines.map(row), rule("└", "┴", "┘")].join("\n"));
    };
    const group = (...values) => {
      if (values.length > 0) log(...values);
      indent += "  ";
    };
    return {
      log, info: log, debug: log, error: complain, warn: complain, table, group, groupCollapsed: group,
      trace: (...values) => complain("Trace: " + format(...values)),
      dir: (value, options) => line(out, inspect(value, options)),
      dirxml: log,
      groupEnd: () => { indent = indent.slice(2); },
      assert: (value, ...values) => {
        if (value) return;
        if (typeof values[0] === "string") complain("Assertion failed: " + values[0], ...values.slice(1));
        else complain("Assertion failed" + (values.length > 0 ? ": " + formatWith({}, ...values) : ""));
      },
      count: (label = "default") => {
        counts.set(label, (counts.get(label) || 0) + 1);
        log(`${label}: ${counts.get(label)}`);
      },
      countReset: (label = "default") => counts.delete(label),
      time: (label = "default") => { timers.set(label, native.milliseconds()); },
      timeEnd: (label = "default") => time(label, true, []),
      timeLog: (label = "default", ...rest) => time(label, false, rest),
      clear: () => {},
    };
  };
  const write = (stream) => (text) => native.print(stream, text);
  const console = make(write(1), write(2));
  console.Console = class Console {
    constructor(out, err) {
      const given = out && out.stdout ? out : { stdout: out, stderr: err };
      const to = (stream) => (text) => stream.write(text);
      Object.assign(this, make(to(given.stdout), to(given.stderr || given.stdout)));
    }
  };
  return console;
}
