//! Builds the workspace in `skills/`, and passes the directory of the components to `host/sandbox/build.rs`.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a build script that panics has failed")]

#[path = "../../build/guests.rs"]
mod guests;

use std::path::Path;

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = root.canonicalize().expect("the package lies in the workspace");
    for sources in ["skills", "sdk", "wit"] {
        guests::rerun_if_changed(&root.join(sources));
    }
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../../build/guests.rs");
    for replaced in ["bon", "insta"] {
        println!("cargo::rerun-if-changed=../../build/{replaced}");
    }
    // `packaged` makes components faster; `release` builds them in two thirds of the time.
    let is_for_development = std::env::var("PROFILE").is_ok_and(|profile| profile == "debug");
    let profile = if is_for_development { "release" } else { "packaged" };
    let components = guests::build(&root.join("skills"), &root.join("target/guests"), profile);
    println!("cargo::metadata=components={}", components.display());
}
