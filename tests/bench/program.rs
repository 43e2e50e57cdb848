//! The program: its size, its start, and the memory of an idle daemon.

use super::{row, starts, summary};
use flate2::{Compression, write::DeflateEncoder};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Instant;
use tempfile::TempDir;

const KISO: &str = env!("CARGO_BIN_EXE_kiso");

pub(crate) fn rows() {
    let program = std::fs::read(KISO).expect("the program can be read");
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&program).expect("a vector takes all bytes");
    let packed = encoder.finish().expect("a vector takes all bytes").len();
    println!("| the program: on disk, packed | {:.1} MB | {:.1} MB | |", mega(program.len()), mega(packed));

    let quick = starts("/bin/true", &[], 200);
    let version = starts(KISO, &["--version"], 60).expect("kiso starts");
    row("kiso: `--version`", version, quick.map(|quick| (quick, "× `/bin/true`")));
    row("kiso: start, call a bundled skill, end", bundled(), Some((version, "× `--version`")));
    println!("| resident memory, a daemon that waits | {} MiB | | |", daemon_resident() >> 20);
}

fn mega(bytes: usize) -> f64 {
    bytes as f64 / 1e6
}

/// `kiso skill run data`, whose code is unpacked from the program.
fn bundled() -> super::Times {
    let dir = TempDir::new().expect("there is room");
    let table = dir.path().join("home/sessions/default/work/t.csv");
    let kiso = |args: &[&str]| {
        let mut kiso = Command::new(KISO);
        kiso.args(args).env("KISO_HOME", dir.path().join("home")).stdout(Stdio::null()).stderr(Stdio::null());
        assert!(kiso.status().expect("kiso starts").success(), "{args:?}");
    };
    kiso(&["shell", "-c", "echo a,b >t.csv; echo 1,2 >>t.csv"]);
    assert!(table.exists(), "the line wrote into the workspace");
    let call = |_| {
        let started = Instant::now();
        kiso(&["skill", "run", "data", "file=t.csv", "describe=true"]);
        started.elapsed()
    };
    summary((0..30).map(call).collect())
}

/// Starts a daemon on a free port, and reads its resident memory when it is ready.
fn daemon_resident() -> u64 {
    let dir = TempDir::new().expect("there is room");
    let mut kiso = Command::new(KISO);
    kiso.args(["--json", "serve", "--port", "0"]).env("KISO_HOME", dir.path().join("home"));
    let mut daemon = kiso.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("kiso starts");
    let mut line = String::new();
    BufReader::new(daemon.stdout.take().expect("it is piped")).read_line(&mut line).expect("it says where it listens");
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.id())).expect("this is Linux");
    let _ = daemon.kill();
    let _ = daemon.wait();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).expect("it is there");
    let kib: u64 = line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("it is a number");
    kib << 10
}
