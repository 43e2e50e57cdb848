//! Command lines: in a running process compared with the host's own `sh -c`; and the first line of a fresh home compared with the
//! second.

use super::{Times, row, skills, summary};
use kiso_base::config::Config;
use kiso_base::home::{Home, SessionName};
use kiso_plan::network::{NetworkAccess, NetworkRule, NetworkRules};
use kiso_plan::plan::CallerScope;
use kiso_sandbox::effect::network::Network;
use kiso_sandbox::effect::overlay::SharedHistory;
use kiso_sandbox::effect::undo::{Origin, Transaction, Undo, UndoLimits};
use kiso_sandbox::exec::{Channel, Exec, Line, Scratch};
use kiso_store::secret::Secrets;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The measurements: name, line, and number of repetitions.
const LINES: [(&str, &str, usize); 4] = [
    ("`true`", "true", 300),
    ("a pipeline of three", "seq 1 200 | grep 7 | wc -l", 200),
    ("a loop of fifty commands", "i=0; while [ $i -lt 50 ]; do expr $i + 1; i=$((i + 1)); done > /dev/null", 40),
    (
        "twenty files",
        "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do echo $i > f$i; done; sed -i s/1/2/ f*; rm f*",
        100,
    ),
];

/// Prints a pair of rows for each line, and one for the first and second start.
pub(crate) async fn rows() {
    let dir = TempDir::new().expect("there is room");
    let shell = Shell::new(&dir.path().join("home"));
    for (name, line, times) in LINES {
        let (mut of_sh, mut of_kiso, mut without) = (Vec::new(), Vec::new(), Vec::new());
        // The two alternate, so that other load on the machine affects both equally. The first turn is a warm-up.
        for turn in 0..=times {
            let sh = sh(dir.path(), line);
            // After another process, caches are cold, so each of the two goes first equally often.
            let (kiso, plain) = if turn % 2 == 0 {
                let kiso = shell.run(line).await;
                (kiso, shell.run_for_good(line).await)
            } else {
                let plain = shell.run_for_good(line).await;
                (shell.run(line).await, plain)
            };
            if turn > 0 {
                of_sh.push(sh);
                of_kiso.push(kiso);
                without.push(plain);
            }
        }
        let (sh, without) = (summary(of_sh), summary(without));
        row(&format!("`sh -c`: {name}"), sh, None);
        let kiso = summary(of_kiso);
        row(&format!("kiso, running: {name}"), kiso, Some((sh, "× `sh -c`")));
        row(&format!("the same, and nothing is kept for undo: {name}"), without, Some((kiso, "× with undo")));
    }
    let (first, second) = first_and_second();
    row("kiso: start, first command line of a fresh home, end", first, None);
    row("kiso: the same, second time", second, Some((first, "× the first")));
}

pub(crate) struct Shell {
    exec: Exec,
    session: SessionName,
    scratch: Scratch,
    secrets: Secrets,
    undo: Undo,
    network: Network,
}

impl Shell {
    pub(crate) fn new(path: &Path) -> Self {
        let skills = skills(path);
        let home = Home::open(path).expect("a home");
        let config = Config::load(&home).expect("a configuration");
        let session = SessionName::parse("bench").expect("a plain name");
        home.create_session(&session).expect("there is room");
        let undo = SharedHistory::undo(home.clone());
        let exec = Exec::new(home, config, skills);
        let scratch = exec.scratch(&session).expect("there is room");
        Self { exec, session, scratch, secrets: Secrets::default(), undo, network: Network::default() }
    }

    /// A shell whose lines may reach a host on this machine.
    pub(crate) fn reaching(path: &Path, host: &str) -> Self {
        let host = NetworkRule { private: true, ..NetworkRule::new(host, NetworkAccess::Allow) };
        let rules = NetworkRules { remembered: vec![host], ..NetworkRules::default() };
        Self { network: Network::new(rules, CallerScope::Admin, false), ..Self::new(path) }
    }

    /// Runs a line as in a run: its changes can be undone.
    pub(crate) async fn run(&self, source: &str) -> Duration {
        let started = Instant::now();
        let origin = Origin { run: "bench".to_owned(), task: 1, seq: 1, place: 0 };
        let transaction = self.undo.begin(&self.session, origin, UndoLimits { max_bytes: 256 << 20, refuse: false });
        self.done(source, transaction.clone()).await;
        transaction.expect("something is kept").commit();
        started.elapsed()
    }

    /// Runs a line as `kiso shell` does: without undo data.
    pub(crate) async fn run_for_good(&self, source: &str) -> Duration {
        let started = Instant::now();
        self.done(source, None).await;
        started.elapsed()
    }

    async fn done(&self, source: &str, transaction: Option<Arc<Transaction>>) {
        let line = Line {
            source,
            session: &self.session,
            role: CallerScope::Admin,
            shared: true,
            locale: "en",
            secrets: &self.secrets,
            stdin: Channel::Null,
            args: Vec::new(),
            state: Vec::new(),
            partial: false,
            outputs: None,
            watch: None,
            scratch: &self.scratch,
            transaction,
            accepted: None,
            permit: Default::default(),
            network: self.network.clone(),
        };
        let done = self.exec.run(line).await.expect("it runs");
        assert_eq!(done.code, 0, "{}", done.stderr);
    }
}

pub(crate) fn sh(dir: &Path, line: &str) -> Duration {
    let started = Instant::now();
    let output =
        Command::new("sh").args(["-c", line]).current_dir(dir).stdin(Stdio::null()).output().expect("sh starts");
    assert!(output.status.success());
    started.elapsed()
}

/// Starts of the binary, each pair with its own home.
fn first_and_second() -> (Times, Times) {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for _ in 0..15 {
        let dir = TempDir::new().expect("there is room");
        let start = || {
            let started = Instant::now();
            let status = Command::new(env!("CARGO_BIN_EXE_kiso"))
                .args(["shell", "-c", "echo hello | tr a-z A-Z | cat"])
                .env("KISO_HOME", dir.path().join("home"))
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            assert!(status.expect("kiso starts").success());
            started.elapsed()
        };
        first.push(start());
        second.push(start());
    }
    (summary(first), summary(second))
}
