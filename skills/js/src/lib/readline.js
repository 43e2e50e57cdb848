(native, need) => {
  const Events = need("events");
  class Interface extends Events {
    constructor(input, output) {
      super();
      const given = input && input.input !== undefined ? input : { input, output };
      this.input = given.input || process.stdin;
      this.output = given.output;
      this.given = given;
      this.closed = false;
      this.terminal = false;
      this.lines = [];
      this.questions = [];
      this.promptText = given.prompt === undefined ? "> " : given.prompt;
      this.iterated = false;
      this.paused = false;
      this.rest = "";
      this.ended = false;
      const decoder = new (need("string_decoder").StringDecoder)("utf8");
      this.input.on("data", (chunk) => {
        const parts = (this.rest + (typeof chunk === "string" ? chunk : decoder.write(chunk))).split(/\r\n|\n/);
        this.rest = parts.pop();
        this.lines.push(...parts);
        this.deliver();
      });
      this.input.on("end", () => {
        const last = this.rest + decoder.end();
        this.rest = "";
        if (last !== "") this.lines.push(last);
        this.ended = true;
        this.deliver();
      });
      this.input.on("error", (error) => this.emit("error", error));
    }
    // Gives lines to whoever waits for them; before somebody does, they are kept.
    deliver() {
      while (this.lines.length > 0 && !this.paused && !this.closed) {
        if (this.questions.length > 0) this.questions.shift()(this.lines.shift());
        else if (this.listenerCount("line") > 0) this.emit("line", this.lines.shift());
        else break;
      }
      if (this.ended && !this.closed && !this.paused && (this.lines.length === 0 || !this.iterated)) {
        need("timers").setImmediate(() => { if (this.lines.length === 0 || this.listenerCount("line") + this.questions.length === 0) this.close(); });
      }
    }
    question(text, options, done) {
      const call = typeof options === "function" ? options : done;
      if (this.output) this.output.write(text);
      this.questions.push(call);
      need("timers").setImmediate(() => this.deliver());
    }
    on(name, listener) {
      Events.prototype.on.call(this, name, listener);
      if (name === "line") need("timers").setImmediate(() => this.deliver());
      return this;
    }
    setPrompt(text) { this.promptText = text; }
    getPrompt() { return this.promptText; }
    prompt() { if (this.output) this.output.write(this.promptText); }
    write() {}
    pause() {
      this.paused = true;
      return this;
    }
    resume() {
      this.paused = false;
      this.deliver();
      return this;
    }
    close() {
      if (this.closed) return;
      this.closed = true;
      this.input.pause();
      this.emit("close");
    }
    async *[Symbol.asyncIterator]() {
      this.iterated = true;
      while (true) {
        if (this.lines.length > 0) {
          yield this.lines.shift();
          continue;
        }
        if (this.ended || this.closed) break;
        await new Promise((resolve) => need("timers").setImmediate(resolve));
      }
      this.close();
    }
  }
  const createInterface = (input, output) => new Interface(input, output);
  class Asked extends Interface {
    question(text) {
      return new Promise((resolve) => { Interface.prototype.question.call(this, text, resolve); });
    }
  }
  const clear = (stream, ...rest) => {
    const done = rest.find((part) => typeof part === "function");
    if (done) process.nextTick(done);
    return true;
  };
  Interface.prototype.question[Symbol.for("nodejs.util.promisify.custom")] = function (text) {
    return new Promise((resolve) => { this.question(text, resolve); });
  };
  return {
    Interface, createInterface, clearLine: clear, clearScreenDown: clear, cursorTo: clear, moveCursor: clear, emitKeypressEvents: () => {},
    promises: { Interface: Asked, createInterface: (input, output) => new Asked(input, output) },
  };
}
