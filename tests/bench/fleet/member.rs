//! Machines of a fleet, and their data in JetStream.

use super::nats::Nats;
use super::wire::Wire;
use crate::harness::wait_until;
use crate::store::{Served, home};
use serde_json::json;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A machine with its own home, whose `config.toml` names a fleet.
pub(super) struct Machine {
    pub dir: TempDir,
    fleet: String,
}

impl Machine {
    /// A machine with this home.
    pub(super) fn new(dir: TempDir, nats: &Nats, fleet: &str, name: &str) -> Machine {
        let path = dir.path().join("config.toml");
        let config = std::fs::read_to_string(&path).expect("it has one");
        let (url, credentials) = (nats.url(), nats.credentials());
        let more = format!(
            "[fleet]\nurl = \"{url}\"\ncredentials = \"{}\"\nname = \"{fleet}\"\nmember = \"{name}\"\n",
            credentials.display()
        );
        std::fs::write(path, config + &more).expect("there is room");
        Machine { dir, fleet: fleet.to_owned() }
    }

    /// Another machine of the same fleet, with only the key in its home.
    pub(super) fn another(&self, nats: &Nats, name: &str) -> Machine {
        let dir = home();
        std::fs::copy(self.dir.path().join("key"), dir.path().join("key")).expect("there is room");
        Machine::new(dir, nats, &self.fleet, name)
    }

    /// Runs `kiso fleet begin` and returns its duration.
    pub(super) fn begin(&self) -> Duration {
        self.kiso("begin")
    }

    /// Runs `kiso fleet status`, which creates missing streams and the bucket.
    pub(super) fn status(&self) -> Duration {
        self.kiso("status")
    }

    fn kiso(&self, verb: &str) -> Duration {
        let (mut command, began) = (Command::new(env!("CARGO_BIN_EXE_kiso")), Instant::now());
        command.args(["fleet", verb]).env("KISO_HOME", self.dir.path()).stdout(Stdio::null());
        assert!(command.status().expect("kiso starts").success(), "kiso fleet {verb}");
        began.elapsed()
    }

    /// Starts its daemon, and waits until the home is served by it or by the owner.
    pub(super) fn start(&self) -> Served {
        let served = Served::start(self.dir.path());
        wait_until("the home is served", || served.answers());
        served
    }
}

/// Data that a fleet has published, according to its streams.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Appended {
    pub log_messages: u64,
    pub log_bytes: u64,
    pub pieces: u64,
    pub piece_bytes: u64,
}

impl Appended {
    /// The data so far.
    pub(super) fn read(wire: &mut Wire, fleet: &str) -> Appended {
        let mut state = |stream: &str| {
            let info = wire.ask(&format!("$JS.API.STREAM.INFO.KISO_{fleet}_{stream}"), &[], b"");
            let number = |name: &str| info["state"][name].as_u64().unwrap_or_else(|| panic!("{info}"));
            (number("last_seq"), number("bytes"))
        };
        let ((log_messages, log_bytes), (pieces, piece_bytes)) = (state("LOG"), state("CHUNKS"));
        Appended { log_messages, log_bytes, pieces, piece_bytes }
    }

    /// The data published since then, without bytes that were removed meanwhile.
    pub(super) fn since(self, before: Appended) -> Appended {
        Appended {
            log_messages: self.log_messages - before.log_messages,
            log_bytes: self.log_bytes.saturating_sub(before.log_bytes),
            pieces: self.pieces - before.pieces,
            piece_bytes: self.piece_bytes.saturating_sub(before.piece_bytes),
        }
    }

    pub(super) fn add(&mut self, more: Appended) {
        self.log_messages += more.log_messages;
        self.log_bytes += more.log_bytes;
        self.pieces += more.pieces;
        self.piece_bytes += more.piece_bytes;
    }
}

/// Creates a stream like a fleet's log.
pub(super) fn stream(wire: &mut Wire, name: &str, subject: &str) {
    let wanted = json!({ "name": name, "subjects": [subject], "storage": "file", "discard": "new" });
    let made = wire.ask(&format!("$JS.API.STREAM.CREATE.{name}"), &[], wanted.to_string().as_bytes());
    assert_eq!(made["config"]["storage"], "file", "{made}");
}

/// Appends at this position, and waits for the confirmation.
pub(super) fn publish(wire: &mut Wire, subject: &str, after: u64, payload: &[u8]) {
    let headers = [("Nats-Expected-Last-Sequence", after.to_string()), ("Nats-Msg-Id", format!("1-{after}-0"))];
    let confirmed = wire.ask(subject, &headers, payload);
    assert_eq!(confirmed["seq"], after + 1, "{confirmed}");
}
