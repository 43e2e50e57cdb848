//! Opens the machine's browser.

use kiso_base::system::opener;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long the command that opens a browser is watched for a failure. One that runs for longer counts as a success.
const WATCH: Duration = Duration::from_secs(2);

/// Opens a link in the system's browser. Returns whether there is a visible browser and its start has not failed.
pub(super) fn show(url: &str) -> bool {
    let Some(opener) = opener() else { return false };
    let mut command = Command::new(opener);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // The browser may be its child, and must not end with a Ctrl-C in this terminal.
    let Ok(mut child) = command.process_group(0).spawn() else { return false };
    let began = Instant::now();
    while began.elapsed() < WATCH {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) => std::thread::sleep(Duration::from_millis(20)),
            Err(_) => return false,
        }
    }
    true
}
