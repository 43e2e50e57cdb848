(native, need) => {
  let immediates = [], timers = [], last = 0;
  // Requests: whether there are any, and the wait for one of them.
  let isWaiting = () => false, wait;
  const longest = 2147483647;
  class Timeout {
    constructor(call, delay, args, repeats) {
      this.call = call;
      this.delay = delay >= 1 && delay <= longest ? Math.trunc(delay) : 1;
      this.args = args;
      this.repeats = repeats;
      this.id = last += 1;
      this.isRef = true;
      this.start();
    }
    start() {
      this.due = native.milliseconds() + this.delay;
      let at = timers.length;
      while (at > 0 && timers[at - 1].due > this.due) at -= 1;
      timers.splice(at, 0, this);
    }
    ref() { this.isRef = true; return this; }
    unref() { this.isRef = false; return this; }
    hasRef() { return this.isRef; }
    refresh() { clear(this); this.start(); return this; }
    close() { clear(this); return this; }
    [Symbol.toPrimitive]() { return this.id; }
  }
  const check = (call) => {
    if (typeof call !== "function") throw need("internal/errors").invalid("callback", "of type function", call);
    return call;
  };
  const clear = (timer) => {
    const id = typeof timer === "object" && timer !== null ? timer.id : Number(timer);
    timers = timers.filter((other) => other.id !== id);
    if (typeof timer === "object" && timer !== null) timer.repeats = false;
  };
  const setTimeout = (call, delay, ...args) => new Timeout(check(call), Number(delay), args, false);
  const setInterval = (call, delay, ...args) => new Timeout(check(call), Number(delay), args, true);
  const setImmediate = (call, ...args) => {
    const task = { call: check(call), args, id: last += 1, ref: () => task, unref: () => task, hasRef: () => true };
    immediates.push(task);
    return task;
  };
  const clearImmediate = (task) => { immediates = immediates.filter((other) => other !== task); };
  const aborted = (signal) => Object.assign(new Error("The operation was aborted"), { name: "AbortError", code: "ABORT_ERR", cause: signal.reason });
  const later = (start, stop) => (delay, value, options) => new Promise((resolve, reject) => {
    const signal = options && options.signal;
    if (signal && signal.aborted) return reject(aborted(signal));
    const timer = start(() => resolve(value), delay);
    if (signal) signal.addEventListener("abort", () => { stop(timer); reject(aborted(signal)); });
  });
  const promises = {
    setTimeout: later(setTimeout, clear),
    setImmediate: (value) => new Promise((resolve) => setImmediate(resolve, value)),
    setInterval: async function* (delay, value) {
      while (true) {
        await promises.setTimeout(delay);
        yield value;
      }
    },
  };
  promises.scheduler = { wait: (delay, options) => promises.setTimeout(delay, undefined, options), yield: () => promises.setImmediate() };
  const custom = Symbol.for("nodejs.util.promisify.custom");
  setTimeout[custom] = promises.setTimeout;
  setImmediate[custom] = promises.setImmediate;
  return {
    setTimeout, setInterval, setImmediate, clearTimeout: clear, clearInterval: clear, clearImmediate, promises,
    poll: (waits, call) => { [isWaiting, wait] = [waits, call]; },
    // Runs the next task, after a wait if need be; false if there is none.
    turn: () => {
      if (isWaiting()) {
        const left = timers.length > 0 ? timers[0].due - native.milliseconds() : -1;
        const isBusy = immediates.length > 0 || (timers.length > 0 && left <= 0);
        wait(isBusy ? 0 : left < 0 ? -1 : Math.max(1, Math.ceil(left)));
        if (!isBusy) return true;
      }
      if (timers.length > 0 && timers[0].due <= native.milliseconds()) {
        const timer = timers.shift();
        timer.call.apply(timer, timer.args);
        if (timer.repeats) timer.start();
        return true;
      }
      if (immediates.length > 0) {
        const task = immediates.shift();
        task.call(...task.args);
        return true;
      }
      if (!timers.some((timer) => timer.isRef)) return false;
      native.sleep(Math.max(1, Math.ceil(timers[0].due - native.milliseconds())));
      return true;
    },
  };
}
