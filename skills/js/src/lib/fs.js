(native, need) => {
  const { coded, invalid } = need("internal/errors");
  const { Buffer } = need("buffer");
  const paths = need("path");
  const pathOf = (path, name = "path") => {
    if (typeof path === "string") {
      if (path.includes("\0")) throw coded(TypeError, "ERR_INVALID_ARG_VALUE", `The argument '${name}' must be a string without null bytes`);
      return path;
    }
    if (path instanceof Uint8Array) return Buffer.from(path).toString();
    if (path !== null && typeof path === "object" && typeof path.href === "string") return need("url").fileURLToPath(path);
    throw invalid(name, "of type string or an instance of Buffer or URL", path);
  };
  const encodingOf = (options) => (typeof options === "string" ? options : options ? options.encoding : undefined);
  const encoded = (buffer, options) => {
    const encoding = encodingOf(options);
    return encoding && encoding !== "buffer" ? buffer.toString(encoding) : buffer;
  };
  const bytesOf = (data, options) => {
    const encoding = encodingOf(options);
    if (typeof data === "string") return encoding && !/^utf-?8$/i.test(encoding) ? Buffer.from(data, encoding) : data;
    if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    throw invalid("data", "of type string or an instance of Buffer, TypedArray, or DataView", data);
  };
  class Stats {
    constructor([kind, size, changed, bits]) {
      Object.assign(this, { dev: 1, mode: { d: 0o40000, l: 0o120000 }[kind] | bits || 0o100000 | bits, nlink: 1, uid: 1000, gid: 1000, rdev: 0,
        blksize: 4096, ino: 1, size, blocks: Math.ceil(size / 512), atimeMs: changed, mtimeMs: changed, ctimeMs: changed, birthtimeMs: changed });
      for (const name of ["atime", "mtime", "ctime", "birthtime"]) this[name] = new Date(changed);
      Object.defineProperty(this, "kind", { value: kind });
    }
    isDirectory() { return this.kind === "d"; }
    isFile() { return this.kind === "f"; }
    isSymbolicLink() { return this.kind === "l"; }
    isFIFO() { return false; }
    isSocket() { return false; }
    isBlockDevice() { return false; }
    isCharacterDevice() { return false; }
  }
  class Dirent {
    constructor(name, parentPath, kind) {
      Object.assign(this, { name, parentPath, path: parentPath });
      Object.defineProperty(this, "kind", { value: kind });
    }
  }
  for (const name of ["isDirectory", "isFile", "isSymbolicLink", "isFIFO", "isSocket", "isBlockDevice", "isCharacterDevice"]) {
    Dirent.prototype[name] = Stats.prototype[name];
  }
  // Open files: content in memory, written back when they close.
  const open = new Map();
  let nextFd = 3;
  const fileOf = (fd, call) => {
    const file = open.get(fd);
    if (file === undefined) throw coded(Error, "EBADF", `EBADF: bad file descriptor, ${call}`, { errno: -9, syscall: call });
    return file;
  };
  const standard = (path) => (path === "/dev/stdin" ? 0 : path === "/dev/stdout" ? 1 : path === "/dev/stderr" ? 2 : path);
  const store = (file) => {
    if (file.dirty) native.write(file.path, file.data.subarray(0, file.length), "w");
    file.dirty = false;
  };
  const reserve = (file, size) => {
    if (size <= file.data.length) return;
    const larger = Buffer.alloc(Math.max(size, file.data.length * 2, 4096));
    larger.set(file.data.subarray(0, file.length));
    file.data = larger;
  };
  const put = (fd, data) => {
    if (fd === 1 || fd === 2) return native.print(fd, data);
    const file = fileOf(fd, "write");
    const bytes = typeof data === "string" ? Buffer.from(data) : data;
    if (file.append) {
      native.write(file.path, bytes, "a");
      return;
    }
    reserve(file, file.at + bytes.length);
    file.data.set(bytes, file.at);
    file.at += bytes.length;
    file.length = Math.max(file.length, file.at);
    file.dirty = true;
  };
  const stat = (path, follows, options) => {
    try {
      return new Stats(native.stat(path, follows));
    } catch (error) {
      if (options && options.throwIfNoEntry === false && error.code === "ENOENT") return undefined;
      throw error;
    }
  };
  const kindOf = (path) => {
    try {
      return native.stat(path, false)[0];
    } catch {
      return "";
    }
  };
  const walk = (root, below, visit) => {
    for (const entry of native.list(below === "" ? root : root + "/" + below)) {
      const kind = entry[0], name = entry.slice(1);
      const path = below === "" ? name : below + "/" + name;
      visit(path, name, below, kind);
      if (kind === "d") walk(root, path, visit);
    }
  };
  const copyTree = (from, to, options) => {
    if (options.filter && !options.filter(from, to)) return;
    const found = native.stat(from, options.dereference === true);
    if (found[0] === "d") {
      if (!options.recursive) throw coded(Error, "ERR_FS_EISDIR", `Recursive option not enabled, cannot copy a directory: cp '${from}'`);
      if (to === from || to.startsWith(from + "/")) throw coded(Error, "ERR_FS_CP_EINVAL", `cannot copy ${from} to a subdirectory of self ${to}`);
      native.change("mkdirs", to, "");
      for (const entry of native.list(from)) copyTree(from + "/" + entry.slice(1), to + "/" + entry.slice(1), options);
    } else {
      native.change("mkdirs", paths.dirname(to), "");
      if (kindOf(to) !== "" && options.force === false) {
        if (options.errorOnExist) throw coded(Error, "ERR_FS_CP_EEXIST", `Target already exists: ${to}`);
        return;
      }
      native.change("copyfile", from, to);
    }
  };
  const sync = {
    readFile: (path, options) => {
      const from = typeof path === "number" ? path : standard(pathOf(path));
      if (from === 0) return encoded(Buffer.from(native.stdin()), options);
      if (typeof from === "number") {
        const file = fileOf(from, "read");
        const rest = Buffer.from(file.data.subarray(file.at, file.length));
        file.at = file.length;
        return encoded(rest, options);
      }
      return encoded(Buffer.from(native.read(from)), options);
    },
    writeFile: (path, data, options) => {
      const to = typeof path === "number" ? path : standard(pathOf(path)), bytes = bytesOf(data, options);
      if (typeof to === "number") return put(to, bytes);
      native.write(to, bytes, (options && options.flag) || "w");
      if (options && options.mode !== undefined) native.chmod(to, Number(options.mode));
    },
    appendFile: (path, data, options) => {
      const to = typeof path === "number" ? path : standard(pathOf(path)), bytes = bytesOf(data, options);
      if (typeof to === "number") put(to, bytes);
      else native.write(to, bytes, "a");
    },
    readdir: (path, options) => {
      const root = pathOf(path), typed = options && options.withFileTypes === true;
      const entries = [];
      if (options && options.recursive) {
        walk(root, "", (at, name, below, kind) => entries.push(typed ? new Dirent(name, below === "" ? root : paths.join(root, below), kind) : at));
      } else {
        for (const entry of native.list(root)) entries.push(typed ? new Dirent(entry.slice(1), root, entry[0]) : entry.slice(1));
      }
      return entries;
    },
    stat: (path, options) => stat(pathOf(path), true, options),
    lstat: (path, options) => stat(pathOf(path), false, options),
    access: (path, mode) => {
      const found = native.stat(pathOf(path), true, "access");
      if (mode === 1 && found[0] !== "d" && (found[3] & 0o111) === 0) throw coded(Error, "EACCES", `EACCES: permission denied, access '${path}'`, { errno: -13, syscall: "access", path });
    },
    mkdir: (path, options) => {
      const at = pathOf(path);
      if (!(options && options.recursive)) return native.change("mkdir", at, "");
      let first, top = paths.resolve(at);
      while (kindOf(top) === "") [first, top] = [top, paths.dirname(top)];
      native.change("mkdirs", at, "");
      return first;
    },
    mkdtemp: (prefix) => {
      const signs = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
      const path = pathOf(prefix, "prefix") + Array.from(new Uint8Array(native.random(6)), (byte) => signs[byte % signs.length]).join("");
      native.change("mkdir", path, "");
      return path;
    },
    unlink: (path) => native.change("unlink", pathOf(path), ""),
    rmdir: (path, options) => native.change(options && options.recursive ? "tree" : "rmdir", pathOf(path), ""),
    rm: (path, options) => {
      const at = pathOf(path), kind = kindOf(at);
      if (kind === "" && options && options.force) return;
      if (kind === "d" && !(options && options.recursive)) throw coded(Error, "ERR_FS_EISDIR", `Path is a directory: rm returned EISDIR (is a directory) ${at}`, { errno: 21, syscall: "rm", path: at });
      if (kind === "") native.stat(at, false);
      native.change(kind === "d" ? "tree" : "unlink", at, "");
    },
    rename: (from, to) => native.change("rename", pathOf(from, "oldPath"), pathOf(to, "newPath")),
    copyFile: (from, to, mode) => {
      const target = pathOf(to, "dest");
      if (mode & 1 && kindOf(target) !== "") throw coded(Error, "EEXIST", `EEXIST: file already exists, copyfile '${from}' -> '${to}'`, { errno: -17, syscall: "copyfile" });
      native.change("copyfile", pathOf(from, "src"), target);
    },
    cp: (from, to, options) => copyTree(paths.resolve(pathOf(from, "src")), paths.resolve(pathOf(to, "dest")), options || {}),
    link: (from, to) => native.change("link", pathOf(from), pathOf(to)),
    symlink: (target, path) => native.change("symlink", pathOf(target, "target"), pathOf(path)),
    readlink: (path) => native.readlink(pathOf(path)),
    realpath: (path) => native.realpath(pathOf(path)),
    chmod: (path, mode) => native.chmod(pathOf(path), typeof mode === "string" ? parseInt(mode, 8) : mode),
    truncate: (path, length) => native.truncate(pathOf(path), length || 0),
    utimes: (path) => { native.stat(pathOf(path), true); },
    open: (path, flags) => {
      const at = pathOf(path), mode = flags === undefined ? "r" : String(flags);
      const exists = kindOf(at) !== "";
      if (/x/.test(mode) && exists) native.write(at, "", "wx");
      if (/^w/.test(mode) || (/^a/.test(mode) && !exists)) native.write(at, "", /^w/.test(mode) ? "w" : "a");
      const data = /^a/.test(mode) ? Buffer.alloc(0) : Buffer.from(native.read(at));
      open.set(nextFd, { path: at, data, length: data.length, at: 0, append: /^a/.test(mode), dirty: false });
      nextFd += 1;
      return nextFd - 1;
    },
    close: (fd) => {
      store(fileOf(fd, "close"));
      open.delete(fd);
    },
    read: (fd, buffer, offset, length, position) => {
      if (offset !== null && typeof offset === "object") ({ offset, length, position } = offset);
      const view = new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength);
      if (fd === 0 && !open.has(0)) {
        const data = Buffer.from(native.stdin());
        open.set(0, { path: "/dev/stdin", data, length: data.length, at: 0, append: false, dirty: false });
      }
      const file = fileOf(fd, "read"), from = offset || 0;
      const at = position === null || position === undefined || position < 0 ? file.at : Number(position);
      const part = file.data.subarray(at, Math.min(file.length, at + (length === undefined ? view.length - from : length)));
      view.set(part, from);
      if (at === file.at) file.at += part.length;
      return part.length;
    },
    write: (fd, data, offset, length, position) => {
      let bytes = data;
      if (typeof data === "string") {
        position = offset;
        bytes = Buffer.from(data, typeof length === "string" ? length : "utf8");
      } else {
        const from = offset || 0;
        bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength).subarray(from, length === undefined ? undefined : from + length);
      }
      if (typeof position === "number" && open.has(fd)) open.get(fd).at = position;
      put(fd, bytes);
      return bytes.length;
    },
    fstat: (fd) => {
      const file = fileOf(fd, "fstat");
      store(file);
      return stat(file.path, true);
    },
    fsync: (fd) => store(fileOf(fd, "fsync")),
    ftruncate: (fd, length) => {
      const file = fileOf(fd, "ftruncate");
      reserve(file, length || 0);
      file.length = length || 0;
      file.dirty = true;
    },
  };
  const fs = { Stats, Dirent, constants: { F_OK: 0, X_OK: 1, W_OK: 2, R_OK: 4, COPYFILE_EXCL: 1, O_RDONLY: 0, O_WRONLY: 1, O_RDWR: 2 } };
  Object.assign(fs, { F_OK: 0, X_OK: 1, W_OK: 2, R_OK: 4 });
  const promises = { constants: fs.constants };
  for (const [name, call] of Object.entries(sync)) {
    fs[name + "Sync"] = call;
    const soon = (...args) => new Promise((resolve, reject) => {
      need("timers").setImmediate(() => {
        try {
          resolve(call(...args));
        } catch (error) {
          reject(error);
        }
      });
    });
    if (!/^(close|read|write|fstat|fsync|ftruncate)$/.test(name)) promises[name] = soon;
    fs[name] = (...args) => {
      const done = args.pop();
      if (typeof done !== "function") throw invalid("cb", "of type function", done);
      // Outside of the promise, so that what the callback throws is an exception and not a rejection.
      soon(...args).then((value) => need("timers").setImmediate(() => done(null, value)), (error) => need("timers").setImmediate(() => done(error)));
    };
  }
  promises.open = async (path, flags) => {
    const fd = sync.open(path, flags);
    return {
      fd, close: async () => sync.close(fd), stat: async () => sync.fstat(fd), sync: async () => sync.fsync(fd), truncate: async (length) => sync.ftruncate(fd, length),
      readFile: async (options) => sync.readFile(fd, options), writeFile: async (data, options) => put(fd, bytesOf(data, options)),
      appendFile: async (data, options) => put(fd, bytesOf(data, options)),
      write: async (data, ...rest) => ({ bytesWritten: sync.write(fd, data, ...rest), buffer: data }),
      read: async (buffer, ...rest) => ({ bytesRead: sync.read(fd, buffer, ...rest), buffer }),
      readLines: () => need("readline").createInterface({ input: fs.createReadStream(path) }),
    };
  };
  fs.promises = promises;
  fs.existsSync = (path) => {
    try {
      native.stat(pathOf(path), true);
      return true;
    } catch {
      return false;
    }
  };
  fs.exists = (path, done) => { need("timers").setImmediate(() => done(fs.existsSync(path))); };
  fs.realpathSync.native = fs.realpathSync;
  fs.opendirSync = (path) => {
    const entries = sync.readdir(path, { withFileTypes: true });
    return { path, readSync: () => entries.shift() || null, closeSync: () => {}, close: async () => {}, async *[Symbol.asyncIterator]() { yield* entries; } };
  };
  promises.opendir = async (path) => fs.opendirSync(path);
  fs.createReadStream = (path, options) => {
    const { Readable } = need("stream");
    const given = typeof options === "string" ? { encoding: options } : options || {};
    let at = given.start || 0, data;
    const made = new Readable({
      ...given,
      read() {
        try {
          data = data || sync.readFile(given.fd === undefined ? path : given.fd);
        } catch (error) {
          this.destroy(error);
          return;
        }
        const end = given.end === undefined ? data.length : Math.min(data.length, given.end + 1);
        if (at >= end) {
          this.push(null);
          return;
        }
        const to = Math.min(end, at + (given.highWaterMark || 65536));
        this.push(data.subarray(at, to));
        at = to;
      },
    });
    return Object.assign(made, { path });
  };
  fs.createWriteStream = (path, options) => {
    const { Writable } = need("stream");
    const given = typeof options === "string" ? { encoding: options } : options || {};
    let how = given.flags || "w";
    const made = new Writable({
      decodeStrings: true,
      write(data, encoding, done) {
        try {
          sync.appendFile(path, data);
          this.bytesWritten += data.length;
          done();
        } catch (error) {
          done(error);
        }
      },
    });
    Object.assign(made, { path, bytesWritten: 0 });
    try {
      if (how !== "a") native.write(pathOf(path), "", how);
      process.nextTick(() => made.emit("open", 3));
    } catch (error) {
      process.nextTick(() => made.destroy(error));
    }
    return made;
  };
  fs.watch = fs.watchFile = () => { throw coded(Error, "ERR_FEATURE_UNAVAILABLE_ON_PLATFORM", "fs.watch is not available"); };
  return fs;
}
