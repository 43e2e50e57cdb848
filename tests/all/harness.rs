//! A home, the binary, and calls that read like the shell session they describe.

#[path = "everywhere.rs"]
pub(crate) mod everywhere;

use serde_json::Value;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub(crate) use kiso_tests::{guest, missing_tool, root, skipped};

/// Path of the binary, built with the tests.
pub(crate) const KISO: &str = env!("CARGO_BIN_EXE_kiso");

/// A guard against tests that never end; no test waits for it to pass.
const PATIENCE: Duration = Duration::from_secs(120);

/// Polls until `look` returns something.
#[track_caller]
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "{what}: waited for in vain");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Polls until a condition holds.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut so: impl FnMut() -> bool) {
    wait_for(what, || so().then_some(()));
}

/// A port on which nobody listens, now or later, except the caller. It is below the range that Linux assigns: a port of that
/// range could be given to the next connection as soon as it is free.
pub(crate) fn own_port() -> u16 {
    const PORTS: std::ops::Range<u16> = 16_384..32_768;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let mut ports = (0..PORTS.len()).map(|_| {
        // Tests of two checkouts may run at the same time.
        let nth = NEXT.fetch_add(1, Ordering::Relaxed).wrapping_add((std::process::id() as u16).wrapping_mul(97));
        PORTS.start + nth % PORTS.len() as u16
    });
    ports.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).expect("a port is free")
}

/// A separate home, deleted after the test.
pub(crate) struct Home {
    pub dir: TempDir,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self { dir: TempDir::new().expect("there is room for a home") }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    pub(crate) fn work(&self, session: &str) -> PathBuf {
        self.path().join("sessions").join(session).join("work")
    }

    /// Writes `config.toml`.
    pub(crate) fn config(&self, text: &str) -> &Self {
        if !self.path().exists() {
            self.kiso(&["skill", "list"]).ok();
        }
        let text = everywhere::with_fleet(self, text);
        std::fs::write(self.path().join("config.toml"), text).expect("the home can be written");
        self
    }

    /// A file outside the home, for `--file` and `skill add`.
    pub(crate) fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("there is room");
        std::fs::write(&path, bytes).expect("there is room for a file");
        path
    }

    /// Runs the binary on this home.
    #[track_caller]
    pub(crate) fn kiso(&self, args: &[&str]) -> Ran {
        self.kiso_with(args, |_| {})
    }

    /// The same; `adjust` changes the command, such as its environment.
    #[track_caller]
    pub(crate) fn kiso_with(&self, args: &[&str], adjust: impl FnOnce(&mut Command)) -> Ran {
        let mut command = self.command(args);
        adjust(&mut command);
        Ran::new(args, command.output().expect("kiso starts"))
    }

    /// The command itself, for tests that start several.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        everywhere::leave(self, args);
        let mut command = Command::new(KISO);
        command.args(args).env("KISO_HOME", self.path()).env_remove("KISO_LOG").env("TZ", "UTC");
        command.current_dir(self.dir.path()).stdin(std::process::Stdio::null());
        command
    }

    /// Installs a guest with all requested permissions.
    #[track_caller]
    pub(crate) fn add(&self, guest_name: &str) -> &Self {
        let (file, manifest) = (guest(guest_name), root().join("tests/guests").join(guest_name).join("kiso.toml"));
        let (file, manifest) = (file.to_str().expect("plain path"), manifest.to_str().expect("plain path"));
        let ran = self.kiso(&["skill", "add", file, "--manifest", manifest, "--grant", "all"]);
        assert!(ran.ok().stdout.contains("loaded"), "{ran:?}");
        self
    }

    /// Runs `kiso skill run NAME --args ARGS --json` and returns the one printed object.
    #[track_caller]
    pub(crate) fn call(&self, tool: &str, args: &Value) -> Value {
        let ran = self.kiso(&["--json", "skill", "run", tool, "--args", &args.to_string()]);
        ran.json()
    }
}

/// Exit code and output of a command.
#[derive(Debug)]
pub(crate) struct Ran {
    args: String,
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub(crate) fn new(args: &[&str], output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("kiso prints UTF-8");
        Self {
            args: args.join(" "),
            code: output.status.code().unwrap_or(-1),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    #[track_caller]
    pub(crate) fn ok(&self) -> &Self {
        self.exit(0)
    }

    #[track_caller]
    pub(crate) fn exit(&self, code: i32) -> &Self {
        assert_eq!(self.code, code, "kiso {}\nstdout: {}\nstderr: {}", self.args, self.stdout, self.stderr);
        self
    }

    /// Asserts that standard error contains each of these.
    #[track_caller]
    pub(crate) fn says(&self, parts: &[&str]) -> &Self {
        for part in parts {
            assert!(self.stderr.contains(part), "kiso {} does not say {part:?}:\n{}", self.args, self.stderr);
        }
        self
    }

    /// Asserts that standard output contains each of these.
    #[track_caller]
    pub(crate) fn prints(&self, parts: &[&str]) -> &Self {
        for part in parts {
            assert!(self.stdout.contains(part), "kiso {} does not print {part:?}:\n{}", self.args, self.stdout);
        }
        self
    }

    /// The only JSON object on standard output.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let lines = self.json_lines();
        assert_eq!(lines.len(), 1, "kiso {}\nstdout: {}\nstderr: {}", self.args, self.stdout, self.stderr);
        lines.into_iter().next().expect("there is one")
    }

    /// The JSON objects on standard output.
    #[track_caller]
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{line:?} is not JSON: {e}"));
        self.stdout.lines().map(parse).collect()
    }
}
