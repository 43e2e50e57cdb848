//! Builds the workspace in `skills/`, and tells `host/build.rs` where the components are.

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
    // Set where packages are built: the same sources, in whose profile the compiler takes longer for a smaller program.
    println!("cargo::rerun-if-env-changed=KISO_GUESTS_PROFILE");
    let profile = std::env::var("KISO_GUESTS_PROFILE").unwrap_or_else(|_| "release".to_owned());
    let components = guests::build(&root.join("skills"), &root.join("target/guests"), &profile);
    println!("cargo::metadata=components={}", components.display());
}
