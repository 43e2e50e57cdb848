//! The browser of the machine.

use kiso_base::system::opener;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long what opens a browser is watched for a failure. One that goes on after that is at work.
const WATCH: Duration = Duration::from_secs(2);

/// Has the system open a link in its browser; whether there is one that the person sees, and that began well.
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
