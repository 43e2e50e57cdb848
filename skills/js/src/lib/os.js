(native) => {
  const signals = { SIGHUP: 1, SIGINT: 2, SIGQUIT: 3, SIGABRT: 6, SIGKILL: 9, SIGPIPE: 13, SIGTERM: 15 };
  const memory = 1073741824;
  return {
    EOL: "\n", devNull: "/dev/null", constants: { signals, errno: { ENOENT: 2, EACCES: 13, EEXIST: 17 }, priority: {} },
    platform: () => "linux", type: () => "Linux", arch: () => "x64", machine: () => "x86_64", release: () => "6.0.0", version: () => "#1",
    hostname: () => "kiso", endianness: () => "LE", homedir: () => process.env.HOME || "/work", tmpdir: () => (process.env.TMPDIR || "/tmp").replace(/(.)\/$/, "$1"),
    uptime: () => native.milliseconds() / 1000, loadavg: () => [0, 0, 0], totalmem: () => memory, freemem: () => memory / 2,
    availableParallelism: () => 1, networkInterfaces: () => ({}), getPriority: () => 0, setPriority: () => {},
    cpus: () => [{ model: "kiso", speed: 1000, times: { user: 0, nice: 0, sys: 0, idle: 0, irq: 0 } }],
    userInfo: () => ({ uid: 1000, gid: 1000, username: process.env.USER || "user", homedir: process.env.HOME || "/work", shell: "/bin/sh" }),
  };
}
