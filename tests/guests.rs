//! Where the guests are, and lists of them: `foreach_guest!`, `foreach_wat!` and `foreach_mode!` call a macro with the
//! name of the test that each guest, `.wat` file and mode of the hostile guest must have.

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
