//! Where the guests are, and lists of them: `foreach_guest!`, `foreach_wat!` and `foreach_mode!` call a macro with the
//! name of the test that each guest, `.wat` file and mode of the hostile guest must have.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that panics has failed")]

use std::io::Write;
use std::path::{Path, PathBuf};

include!(concat!(env!("OUT_DIR"), "/lists.rs"));

/// A guest that the build script built.
pub fn guest(name: &str) -> PathBuf {
    Path::new(env!("KISO_GUESTS")).join(format!("{name}.wasm"))
}

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the workspace").to_owned()
}

/// For a test whose tool this machine does not have: it is left out, loudly, but not where `CI=true` says that every tool
/// is there. There, what was not tested has failed.
#[track_caller]
pub fn missing_tool(what: &str, why: &str) {
    assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "{what} cannot be left out with CI=true: {why}");
    skipped(what, why);
}

/// Says loudly that something was not tested, because this machine does not let anybody do it, with whatever tool.
pub fn skipped(what: &str, why: &str) {
    // Past what a test prints, which nobody sees when it passes.
    let _ = writeln!(std::io::stderr(), "\n!!! SKIPPED {what}: {why}\n");
}
