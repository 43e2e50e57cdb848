//! The browser of the machine.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long what opens a browser is watched for a failure. One that goes on after that is at work.
const WATCH: Duration = Duration::from_secs(2);

/// Whether a browser that is opened here is one that the person sees.
fn has_display() -> bool {
    let is_set = |variable: &str| std::env::var_os(variable).is_some_and(|value| !value.is_empty());
    let remote = is_set("SSH_CONNECTION") || is_set("SSH_TTY");
    !remote && (cfg!(target_os = "macos") || is_set("DISPLAY") || is_set("WAYLAND_DISPLAY"))
}

/// Has the system open a link in its browser; whether there is one that the person sees, and that began well.
pub fn show(url: &str) -> bool {
    if !has_display() {
        return false;
    }
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(program);
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
