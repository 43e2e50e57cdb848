(native, need) => {
  const kept = new WeakMap();
  const table = (emitter) => {
    if (!kept.has(emitter)) kept.set(emitter, new Map());
    return kept.get(emitter);
  };
  const add = (emitter, name, listener, first, once) => {
    if (typeof listener !== "function") throw need("internal/errors").invalid("listener", "of type function", listener);
    const all = table(emitter);
    if (name !== "newListener" && all.has("newListener")) emitter.emit("newListener", name, listener);
    const list = all.get(name) || [];
    const entry = { listener, once };
    all.set(name, first ? [entry, ...list] : [...list, entry]);
    return emitter;
  };
  function EventEmitter() {}
  Object.assign(EventEmitter.prototype, {
    on(name, listener) { return add(this, name, listener, false, false); },
    once(name, listener) { return add(this, name, listener, false, true); },
    prependListener(name, listener) { return add(this, name, listener, true, false); },
    prependOnceListener(name, listener) { return add(this, name, listener, true, true); },
    removeListener(name, listener) {
      const all = table(this), list = all.get(name) || [];
      const at = list.findLastIndex((entry) => entry.listener === listener || entry.listener.listener === listener);
      if (at < 0) return this;
      const rest = list.filter((_, index) => index !== at);
      if (rest.length > 0) all.set(name, rest);
      else all.delete(name);
      if (all.has("removeListener")) this.emit("removeListener", name, listener);
      return this;
    },
    removeAllListeners(name) {
      if (name === undefined) table(this).clear();
      else table(this).delete(name);
      return this;
    },
    emit(name, ...args) {
      const all = table(this), list = all.get(name);
      if (list === undefined) {
        if (name !== "error") return false;
        if (args[0] instanceof Error) throw args[0];
        throw need("internal/errors").coded(Error, "ERR_UNHANDLED_ERROR", `Unhandled error. (${need("util").inspect(args[0])})`, { context: args[0] });
      }
      for (const entry of list) {
        if (entry.once) this.removeListener(name, entry.listener);
        entry.listener.apply(this, args);
      }
      return true;
    },
    listenerCount(name) { return (table(this).get(name) || []).length; },
    listeners(name) { return (table(this).get(name) || []).map((entry) => entry.listener); },
    rawListeners(name) { return this.listeners(name); },
    eventNames() { return [...table(this).keys()]; },
    setMaxListeners() { return this; },
    getMaxListeners() { return EventEmitter.defaultMaxListeners; },
  });
  EventEmitter.prototype.addListener = EventEmitter.prototype.on;
  EventEmitter.prototype.off = EventEmitter.prototype.removeListener;
  for (const name of Object.keys(EventEmitter.prototype)) Object.defineProperty(EventEmitter.prototype, name, { enumerable: false });
  EventEmitter.defaultMaxListeners = 10;
  EventEmitter.EventEmitter = EventEmitter;
  EventEmitter.listenerCount = (emitter, name) => emitter.listenerCount(name);
  EventEmitter.once = (emitter, name) => new Promise((resolve, reject) => {
    const failed = (error) => {
      emitter.removeListener(name, done);
      reject(error);
    };
    const done = (...args) => {
      emitter.removeListener("error", failed);
      resolve(args);
    };
    emitter.once(name, done);
    if (name !== "error") emitter.once("error", failed);
  });
  EventEmitter.on = (emitter, name) => {
    const ready = [], waiting = [];
    let failure;
    emitter.on(name, (...args) => (waiting.length > 0 ? waiting.shift().resolve({ value: args, done: false }) : ready.push(args)));
    emitter.on("error", (error) => (waiting.length > 0 ? waiting.shift().reject(error) : (failure = error)));
    return {
      next: () => {
        if (ready.length > 0) return Promise.resolve({ value: ready.shift(), done: false });
        if (failure !== undefined) return Promise.reject(failure);
        return new Promise((resolve, reject) => waiting.push({ resolve, reject }));
      },
      return: () => Promise.resolve({ value: undefined, done: true }),
      [Symbol.asyncIterator]() { return this; },
    };
  };
  return EventEmitter;
}
