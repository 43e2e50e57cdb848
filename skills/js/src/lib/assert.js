(native, need) => {
  const { inspect } = need("internal/inspect");
  const { same, inspect: show } = need("util");
  const { invalid } = need("internal/errors");
  class AssertionError extends Error {
    constructor({ message, actual, expected, operator }) {
      super(message);
      this.name = "AssertionError";
      this.code = "ERR_ASSERTION";
      this.generatedMessage = false;
      Object.assign(this, { actual, expected, operator });
      Object.defineProperty(this, "name", { enumerable: false });
    }
    toString() { return `${this.name} [${this.code}]: ${this.message}`; }
  }
  const fail = (given, text, actual, expected, operator) => {
    if (given instanceof Error) throw given;
    const error = new AssertionError({ message: given === undefined ? text : given, actual, expected, operator });
    error.generatedMessage = given === undefined;
    throw error;
  };
  // Both values line by line, with the lines that differ marked.
  const difference = (head, actual, expected) => {
    const [a, b] = [inspect(actual, { depth: 1000, sorted: true }), inspect(expected, { depth: 1000, sorted: true })];
    if (!a.includes("\n") && !b.includes("\n") && a.length + b.length <= 60) return `${head}\n\n${a} !== ${b}\n`;
    const [left, right] = [a, b].map((text) => text.split("\n").slice(0, 200));
    let start = 0, end = 0;
    while (start < left.length && start < right.length && left[start] === right[start]) start += 1;
    while (end < left.length - start && end < right.length - start && left[left.length - 1 - end] === right[right.length - 1 - end]) end += 1;
    const marked = [...left.slice(0, start).map((line) => "  " + line), ...left.slice(start, left.length - end).map((line) => "+ " + line),
      ...right.slice(start, right.length - end).map((line) => "- " + line), ...left.slice(left.length - end).map((line) => "  " + line)];
    return `${head}\n+ actual - expected\n\n${marked.join("\n")}\n`;
  };
  const assert = (value, message) => {
    if (!value) fail(message, "The expression evaluated to a falsy value", value, true, "==");
  };
  const matches = (error, expected, message) => {
    if (expected === undefined) return;
    if (typeof expected === "function") {
      if (expected.prototype !== undefined && error instanceof expected) return;
      if (Error.isPrototypeOf(expected) || expected === Error) throw error;
      if (expected.call({}, error) === true) return;
      fail(message, `The validation function is expected to return "true". Caught error:\n\n${show(error)}`, error, expected, "throws");
    }
    if (expected instanceof RegExp) {
      if (expected.test(String(error))) return;
      fail(message, `The input did not match the regular expression ${expected}. Input:\n\n${inspect(String(error), {})}\n`, error, expected, "throws");
    }
    const keys = Object.keys(expected);
    if (expected instanceof Error) keys.push("name", "message");
    for (const key of keys) {
      if (expected[key] instanceof RegExp && typeof error[key] === "string" ? expected[key].test(error[key]) : same(error[key], expected[key], true)) continue;
      fail(message, difference("Expected values to be strictly deep-equal:", Object.fromEntries(keys.map((name) => [name, error[name]])), Object.fromEntries(keys.map((name) => [name, expected[name]]))), error, expected, "throws");
    }
  };
  const order = (expected, message) => (typeof expected === "string" ? [undefined, expected] : [expected, message]);
  const check = {
    ok: assert,
    equal: (a, b, message) => { if (!(a == b || (a !== a && b !== b))) fail(message, `${inspect(a)} == ${inspect(b)}`, a, b, "=="); },
    notEqual: (a, b, message) => { if (a == b) fail(message, `${inspect(a)} != ${inspect(b)}`, a, b, "!="); },
    strictEqual: (a, b, message) => { if (!Object.is(a, b)) fail(message, difference("Expected values to be strictly equal:", a, b), a, b, "strictEqual"); },
    notStrictEqual: (a, b, message) => { if (Object.is(a, b)) fail(message, `Expected "actual" to be strictly unequal to: ${inspect(b)}`, a, b, "notStrictEqual"); },
    deepEqual: (a, b, message) => { if (!same(a, b, false)) fail(message, difference("Expected values to be loosely deep-equal:", a, b), a, b, "deepEqual"); },
    notDeepEqual: (a, b, message) => { if (same(a, b, false)) fail(message, `Expected "actual" not to be loosely deep-equal to: ${inspect(b)}`, a, b, "notDeepEqual"); },
    deepStrictEqual: (a, b, message) => { if (!same(a, b, true)) fail(message, difference("Expected values to be strictly deep-equal:", a, b), a, b, "deepStrictEqual"); },
    notDeepStrictEqual: (a, b, message) => { if (same(a, b, true)) fail(message, `Expected "actual" not to be strictly deep-equal to: ${inspect(b)}`, a, b, "notDeepStrictEqual"); },
    match: (text, pattern, message) => { if (typeof text !== "string" || !pattern.test(text)) fail(message, `The input did not match the regular expression ${pattern}. Input:\n\n${inspect(text)}\n`, text, pattern, "match"); },
    doesNotMatch: (text, pattern, message) => { if (pattern.test(text)) fail(message, `The input was expected to not match the regular expression ${pattern}. Input:\n\n${inspect(text)}\n`, text, pattern, "doesNotMatch"); },
    fail: (message = "Failed") => fail(message, message, undefined, undefined, "fail"),
    ifError: (value) => { if (value !== null && value !== undefined) throw value instanceof Error ? value : new AssertionError({ message: `ifError got unwanted exception: ${inspect(value)}`, actual: value, expected: null, operator: "ifError" }); },
    throws: (call, expected, message) => {
      if (typeof call !== "function") throw invalid("fn", "of type function", call);
      [expected, message] = order(expected, message);
      let thrown;
      try {
        call();
      } catch (error) {
        thrown = { error };
      }
      if (thrown === undefined) fail(message, "Missing expected exception" + (expected && expected.name ? ` (${expected.name}).` : "."), undefined, expected, "throws");
      matches(thrown.error, expected, message);
    },
    doesNotThrow: (call, expected, message) => {
      [expected, message] = order(expected, message);
      try {
        call();
      } catch (error) {
        fail(message, `Got unwanted exception.\nActual message: "${error && error.message}"`, error, expected, "doesNotThrow");
      }
    },
    rejects: async (given, expected, message) => {
      [expected, message] = order(expected, message);
      let thrown;
      try {
        await (typeof given === "function" ? given() : given);
      } catch (error) {
        thrown = { error };
      }
      if (thrown === undefined) fail(message, "Missing expected rejection" + (expected && expected.name ? ` (${expected.name}).` : "."), undefined, expected, "rejects");
      matches(thrown.error, expected, message);
    },
    doesNotReject: async (given, message) => {
      try {
        await (typeof given === "function" ? given() : given);
      } catch (error) {
        fail(typeof message === "string" ? message : undefined, `Got unwanted rejection.\nActual message: "${error && error.message}"`, error, undefined, "doesNotReject");
      }
    },
  };
  const make = (strict) => {
    const made = (value, message) => assert(value, message);
    Object.assign(made, check, { AssertionError });
    if (strict) Object.assign(made, { equal: check.strictEqual, notEqual: check.notStrictEqual, deepEqual: check.deepStrictEqual, notDeepEqual: check.notDeepStrictEqual });
    return made;
  };
  const made = make(false);
  made.strict = make(true);
  made.strict.strict = made.strict;
  return made;
}
