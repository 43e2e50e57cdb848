//! A real NATS server with JetStream that can be killed and restarted.

use super::cable::Cable;
use super::wire::Wire;
use crate::harness::{missing_tool, own_port, root, wait_for};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use tempfile::TempDir;

/// The path of the server program. Returns `None`, with a message, if it is not available.
fn program() -> Option<&'static Path> {
    static FETCHED: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let fetched = FETCHED.get_or_init(|| {
        let script = root().join("tests/fleet/fetch.sh");
        let output = Command::new("sh").arg(script).arg(root().join("target/nats")).output();
        let output = output.map_err(|error| error.to_string())?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        said.trim().strip_prefix("READY ").map(PathBuf::from).ok_or(said)
    });
    match fetched {
        Ok(program) => Some(program),
        Err(why) => {
            missing_tool("a fleet with a NATS server", why);
            None
        }
    }
}

/// A server with its own file store, which is deleted after the test.
pub(super) struct Nats {
    dir: TempDir,
    process: Child,
    port: u16,
}

impl Nats {
    /// Starts a server on a free port. Returns `None`, with a message, if there is no program.
    #[track_caller]
    pub(super) fn start() -> Option<Nats> {
        // The server writes to disk before it confirms.
        Nats::with(
            "authorization { users: [ { user: kiso, password: \"a password\" } ] }\n\
             jetstream { store_dir: \"STORE\", sync_interval: always, max_memory_store: 64MB, max_file_store: 4GB }\n",
        )
    }

    /// The same with this text in its configuration, where STORE is its directory.
    #[track_caller]
    pub(super) fn with(rest: &str) -> Option<Nats> {
        let program = program()?;
        let dir = TempDir::new().expect("there is room for a server");
        let at = |name: &str| dir.path().join(name).display().to_string();
        // The port stays the same after a kill.
        let port = own_port();
        let config = format!("host: \"127.0.0.1\"\nport: {port}\n{}", rest.replace("STORE", &at("store")));
        std::fs::write(at("config"), config).expect("there is room");
        std::fs::write(at("credentials"), "kiso:a password\n").expect("there is room");
        let process = spawn(program, dir.path());
        let mut nats = Nats { dir, process, port };
        nats.is_ready();
        Some(nats)
    }

    pub(super) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Version of the program.
    pub(super) fn version(&self) -> &'static str {
        let name = program().and_then(Path::file_name).and_then(std::ffi::OsStr::to_str);
        name.and_then(|name| name.strip_prefix("nats-server-")).expect("its file is named by it")
    }

    /// A file with the USER:PASSWORD of a user with all permissions.
    pub(super) fn credentials(&self) -> PathBuf {
        self.dir().join("credentials")
    }

    /// Its directory.
    pub(super) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Kills it with SIGKILL.
    pub(super) fn kill(&mut self) {
        self.process.kill().expect("it runs");
        self.process.wait().expect("it ends");
    }

    /// Restarts it after a kill on the same port, with the same files.
    #[track_caller]
    pub(super) fn restart(&mut self) {
        self.process = spawn(program().expect("it was there before"), self.dir());
        self.is_ready();
    }

    /// A connection for a test.
    #[track_caller]
    pub(super) fn connect(&self) -> Wire {
        Wire::open(&self.url(), &self.credentials()).expect("it lets those with a password in")
    }

    /// A link to it that can be frozen.
    pub(super) fn cable(&self) -> Cable {
        Cable::new(self.port)
    }

    /// Waits until JetStream answers.
    #[track_caller]
    fn is_ready(&mut self) {
        wait_for("the server is ready", || {
            self.runs();
            let mut wire = Wire::open(&self.url(), &self.credentials()).ok()?;
            wire.ask("$JS.API.INFO", &[], b"").get("limits").map(drop)
        });
    }

    #[track_caller]
    fn runs(&mut self) {
        let ended = self.process.try_wait().expect("it can be asked");
        assert!(ended.is_none(), "the server has ended: {ended:?}\n{}", self.log());
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.dir().join("log")).unwrap_or_default()
    }
}

#[track_caller]
fn spawn(program: &Path, dir: &Path) -> Child {
    let log = std::fs::File::options().create(true).append(true).open(dir.join("log")).expect("there is room");
    let mut command = Command::new(program);
    command.arg("--config").arg(dir.join("config")).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    command.spawn().expect("a program that was fetched starts")
}

impl Drop for Nats {
    fn drop(&mut self) {
        let _ = (self.process.kill(), self.process.wait());
        if std::thread::panicking() {
            eprintln!("--- the server's log\n{}", self.log());
        }
    }
}
