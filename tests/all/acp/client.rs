//! The official client of the Agent Client Protocol against the real program, with its own daemon and with one that already runs.

use super::home;
use crate::harness::{KISO, missing_tool, root};
use crate::served::Served;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Builds the client. Returns `None`, with a message, if its crates cannot be fetched.
fn built() -> Option<PathBuf> {
    let target = root().join("target/acp");
    let mut command = Command::new(env!("CARGO"));
    command.args(["build", "--locked", "--quiet", "--manifest-path"]).arg(root().join("tests/acp/Cargo.toml"));
    let output = command.arg("--target-dir").arg(&target).output().expect("cargo starts");
    if output.status.success() {
        return Some(target.join("debug/acp-client"));
    }
    missing_tool("the official client of the Agent Client Protocol", &String::from_utf8_lossy(&output.stderr));
    None
}

#[test]
#[ignore = "compiles the client for minutes"]
fn the_official_client_is_served() {
    let Some(client) = built() else { return };
    for has_daemon in [false, true] {
        let home = home();
        let mut served = has_daemon.then(|| Served::start(&home));
        let project = home.dir.path().join("project");
        std::fs::create_dir(&project).unwrap();
        let command = format!("{KISO} acp --project ask");
        let mut run = Command::new(&client);
        run.arg(command).arg(&project).env("KISO_HOME", home.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = run.spawn().expect("it starts");
        let (mut input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut said = String::new();
        for line in output.lines().map_while(Result::ok) {
            if line == "restart" {
                // The daemon that `kiso acp` started is its child, and keeps running.
                if let Some(running) = served.take() {
                    running.kill();
                    served = Some(Served::start(&home));
                }
                writeln!(input).expect("it reads");
            }
            said += &format!("{line}\n");
        }
        assert!(child.wait().expect("it ends").success(), "{said}");
        assert_eq!(said.lines().filter(|line| line.starts_with("ok ")).count(), 10, "{said}");
    }
}
