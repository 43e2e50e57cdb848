//! Bad input: each gets a clear error that tells a person what to do.

use crate::harness::{Home, guest, skipped};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

fn add(home: &Home, name: &str, bytes: &[u8]) -> crate::harness::Ran {
    let file = home.file(name, bytes);
    home.kiso(&["skill", "add", file.to_str().unwrap()])
}

/// Opening a named pipe in place of a file would block until somebody writes to it.
#[test]
fn a_named_pipe_in_the_home_hangs_nothing() {
    let home = Home::new();
    home.kiso(&["config", "check"]).ok();
    for (name, said) in [("config.toml", "failed to read"), ("key", "failed to open")] {
        let path = home.path().join(name);
        let aside = home.dir.path().join(name);
        std::fs::rename(&path, &aside).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        home.kiso(&["run", "$ true"]).says(&[said, "it is not a file"]);
        std::fs::remove_file(&path).unwrap();
        std::fs::rename(&aside, &path).unwrap();
    }
    home.kiso(&["run", "$ true"]).ok();
}

/// The advice about a damaged key can be followed.
#[test]
fn a_damaged_key_can_be_moved_away() {
    let home = Home::new();
    home.kiso(&["run", "$ echo kept > notes.txt"]).ok();
    let key = home.path().join("key");
    std::fs::write(&key, "short").unwrap();
    home.kiso(&["run", "$ true"]).says(&["is damaged: it has 5 bytes", "kiso backup --with-key", "or move it away"]);
    std::fs::rename(&key, home.path().join("key.damaged")).unwrap();
    home.kiso(&["run", "$ cat notes.txt"]).ok().prints(&["kept"]);
}

#[test]
fn what_is_not_wasm_is_named() {
    let home = Home::new();
    let cases: [(&[u8], &str); 8] = [
        (b"", "empty"),
        (b"\x7fELF\x02\x01\x01", "native program"),
        (b"#!/bin/sh\necho hi", "script"),
        (b"<!DOCTYPE html><html>404</html>", "web page"),
        (b"PK\x03\x04", "archive"),
        (b"\x1f\x8b\x08", "archive"),
        (b"(module)", "wasm-tools parse"),
        (b"hello", "\\0asm"),
    ];
    for (bytes, words) in cases {
        add(&home, "x.wasm", bytes).exit(2).says(&["x.wasm", "not WebAssembly", words]);
    }
}

#[test]
fn a_truncated_component_says_where() {
    let home = Home::new();
    let bytes = std::fs::read(guest("echo")).unwrap();
    for length in [9, bytes.len() / 3, bytes.len() - 3] {
        add(&home, "cut.wasm", &bytes[..length]).exit(2).says(&["cut.wasm", "damaged or cut off", "byte "]);
    }
}

#[test]
fn a_path_that_is_no_wasm_file_is_refused() {
    let home = Home::new();
    home.kiso(&["skill", "add", "/nonexistent/x.wasm"]).exit(2).says(&["/nonexistent/x.wasm", "No such file"]);
    home.kiso(&["skill", "add", "/"]).exit(2).says(&["not a file"]);
}

#[test]
fn arguments_of_wrong_type_missing_extra_and_out_of_range() {
    let home = Home::new();
    let ran = home.kiso(&["skill", "run", "data", "limit=0", "describe=maybe", "flie=x.csv"]);
    ran.exit(2).says(&[
        "file: is required",
        "limit: 0 is less than the minimum of 1",
        "describe: \"maybe\" is not of type \"boolean\"",
        "flie: is not an argument; did you mean `file`?",
    ]);
    home.kiso(&["skill", "run", "data", "--args", "{file"]).exit(2).says(&["--args is not JSON"]);
    home.kiso(&["skill", "run", "data", "file"]).exit(2).says(&["KEY=VALUE"]);
    home.kiso(&["skill", "run", "dta", "file=x.csv"]).exit(2).says(&["did you mean `data`?"]);
    home.kiso(&["skill", "run", "data", "file=../../store.db"]).exit(2).says(&["file:", "inside /work"]);
    home.kiso(&["skill", "run", "data", "file=none.csv"]).exit(1).says(&["none.csv"]);
}

#[test]
fn file_arguments_that_are_no_files() {
    let home = Home::new();
    home.kiso(&["run", "--file", "/", "describe x.csv"]).exit(2).says(&["/"]);
    home.kiso(&["run", "--file", "/nonexistent.csv", "describe x.csv"]).exit(2).says(&["/nonexistent.csv"]);
    let fifo = home.dir.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    home.kiso(&["run", "--file", fifo.to_str().unwrap(), "describe x.csv"]).exit(2).says(&["pipe"]);
}

#[test]
fn session_names_that_lead_elsewhere() {
    let home = Home::new();
    for name in ["../x", "a/b", "", "..", ".hidden", "-x", "a b", "last", &"x".repeat(65)] {
        let ran = home.kiso(&["run", &format!("--session={name}"), "hello"]);
        ran.exit(2).says(&["session"]);
    }
    assert!(!home.dir.path().join("x").exists());
}

#[test]
fn an_empty_message() {
    let home = Home::new();
    home.kiso(&["run", "  "]).exit(2).says(&["empty"]);
}

#[test]
fn a_configuration_with_mistakes_stops_with_3_and_places() {
    let home = Home::new();
    home.config("model = \"reflex\"\n[engine]\nmax_cals = 3\noutput_kib = 0\n");
    let ran = home.kiso(&["run", "hello"]);
    ran.exit(3).says(&["config.toml:3:1", "max_cals", "max_calls", "config.toml:4:14", "output_kib"]);
    home.config("model = \"openai:gpt\"\n");
    home.kiso(&["run", "hello"]).exit(3).says(&["config.toml:1:9", "openai:gpt", "kiso config preset"]);
    home.config("model = \"scripted:/nonexistent\"\n");
    home.kiso(&["run", "hello"]).exit(3).says(&["/nonexistent"]);
}

#[test]
fn a_home_that_cannot_be_one() {
    let home = Home::new();
    let file = home.file("file", "x");
    home.kiso(&["--home", file.to_str().unwrap(), "skill", "list"]).exit(3).says(&["file"]);
    let full = home.dir.path().join("documents");
    std::fs::create_dir(&full).unwrap();
    std::fs::write(full.join("letter.txt"), "dear").unwrap();
    home.kiso(&["--home", full.to_str().unwrap(), "skill", "list"]).exit(3).says(&["documents", "--home"]);
}

#[test]
fn a_key_that_others_can_read() {
    let home = Home::new();
    home.kiso(&["skill", "list"]).ok();
    let key = home.path().join("key");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    home.kiso(&["skill", "list"]).exit(3).says(&["key", "chmod 600"]);
}

/// Mounts a separate file system for one command. Returns `None` if this machine does not let tests mount.
fn mounted(home: &Home, options: &str, script: &str) -> Option<crate::harness::Ran> {
    let probe = Command::new("unshare").args(["-rm", "mount", "-t", "tmpfs", "none", "/mnt"]).output();
    if !probe.is_ok_and(|o| o.status.success()) {
        return None;
    }
    let mount = home.dir.path().join("mount");
    std::fs::create_dir_all(&mount).unwrap();
    let kiso = env!("CARGO_BIN_EXE_kiso");
    let script = format!(
        "mount -t tmpfs -o {options} none {m} && export KISO_HOME={m}/home && kiso() {{ {kiso} \"$@\"; }} && cd {r} && {script}",
        m = mount.display(),
        r = crate::harness::root().display()
    );
    let output = Command::new("unshare").args(["-rm", "sh", "-c", &script]).output().unwrap();
    Some(crate::harness::Ran::new(&["(mounted)"], output))
}

#[test]
fn a_home_on_a_read_only_file_system() {
    let home = Home::new();
    match mounted(&home, "size=1m,ro", "kiso skill list") {
        Some(ran) => drop(ran.exit(3).says(&["cannot be written", "--home"])),
        None => skipped("a read-only home", "this machine does not let tests mount a file system"),
    }
}

/// The home runs out of space, first during an upload and then permanently. No incomplete file stays, and once there is room
/// everything works again.
#[test]
fn a_home_on_a_full_disk() {
    let home = Home::new();
    let script = "kiso skill list >&2 || exit 90; dd if=/dev/zero of=$KISO_HOME/../fill bs=1k 2>/dev/null; \
        kiso run --file examples/weather.csv 'describe weather.csv'; code=$?; \
        test ! -e $KISO_HOME/sessions/default/work/weather.csv || exit 91; \
        rm $KISO_HOME/../fill; kiso run --file examples/weather.csv 'describe weather.csv' >/dev/null || exit 92; exit $code";
    match mounted(&home, "size=24m", script) {
        Some(ran) => {
            assert!(![0, 90, 91, 92].contains(&ran.code), "{ran:?}");
            assert!(ran.stderr.contains("full") || ran.stderr.contains("No space"), "{ran:?}");
        }
        None => skipped("a full disk", "this machine does not let tests mount a file system"),
    }
}

/// Two processes use one new home: both can create it and both work. A session belongs to one process at a time, and the waiting
/// one says which.
#[test]
fn two_processes_on_one_home() {
    let home = Home::new();
    let csv = crate::harness::root().join("examples/market.csv");
    let runs: Vec<_> = ["a", "b", "c"]
        .iter()
        .map(|session| {
            let mut command =
                home.command(&["run", "--session", session, "--file", csv.to_str().unwrap(), "describe market.csv"]);
            command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
            command.spawn().unwrap()
        })
        .collect();
    for run in runs {
        let output = run.wait_with_output().unwrap();
        let ran = crate::harness::Ran::new(&["run"], output);
        ran.ok().prints(&["close"]);
    }
    home.kiso(&["trace"]).ok();
}

#[test]
fn a_session_that_is_busy_names_the_process() {
    let home = Home::new();
    home.add("hostile");
    let mut slow = home.command(&["skill", "run", "hostile", "mode=slow", "amount=50000"]);
    slow.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut slow = slow.spawn().unwrap();
    let lock = home.path().join("sessions/default/lock");
    // The lock file holds the pid once the session is taken.
    while !std::fs::read_to_string(&lock).is_ok_and(|pid| pid.trim() == slow.id().to_string()) {
        assert!(slow.try_wait().unwrap().is_none(), "the first process works until it is killed");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let ran = home.kiso(&["skill", "run", "hostile", "mode=slow"]);
    ran.exit(1).says(&["in use", &slow.id().to_string()]);
    slow.kill().unwrap();
    slow.wait().unwrap();
    home.kiso(&["skill", "run", "hostile", "mode=slow", "amount=1"]).ok();
}

/// A reader that goes away (`kiso … | head -1`) is not a crash.
#[test]
fn a_closed_pipe_is_no_panic() {
    let home = Home::new();
    let mut command = Command::new("sh");
    command
        .arg0("sh")
        .args(["-c", &format!("{} skill info data | head -1", env!("CARGO_BIN_EXE_kiso"))])
        .env("KISO_HOME", home.path());
    let output = command.output().unwrap();
    assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"), "{output:?}");
}
