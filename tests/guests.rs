//! Paths and lists of the guests: `foreach_guest!`, `foreach_wat!` and `foreach_mode!` call a macro with the test's name for each
//! guest, `.wat` file and mode of the hostile guest.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that panics has failed")]

use std::io::Write;
use std::path::{Path, PathBuf};

include!(concat!(env!("OUT_DIR"), "/lists.rs"));

/// The path of a guest that the build script built.
pub fn guest(name: &str) -> PathBuf {
    Path::new(env!("KISO_GUESTS")).join(format!("{name}.wasm"))
}

/// The path of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the workspace").to_owned()
}

/// Reports a missing tool: the test is skipped with a message, but fails with `CI=true`, which promises that every tool is
/// available.
#[track_caller]
pub fn missing_tool(what: &str, why: &str) {
    assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "{what} cannot be left out with CI=true: {why}");
    skipped(what, why);
}

/// Prints that a test was skipped because this machine does not permit it, with any tool.
pub fn skipped(what: &str, why: &str) {
    // Directly to standard error, because the output of a passed test is hidden.
    let _ = writeln!(std::io::stderr(), "\n!!! SKIPPED {what}: {why}\n");
}
