//! Builds the bundled skills and writes the list of them that `skill/installed.rs` includes.

#[path = "../build/guests.rs"]
mod guests;

use std::fmt::Write;
use std::path::PathBuf;

/// In the order of a listing.
const BUNDLED: [&str; 0] = [];

fn main() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let root = root.canonicalize().expect("the host lies in the workspace");
    for sources in ["skills", "sdk/src", "wit", "build"] {
        guests::rerun_if_changed(&root.join(sources));
    }
    println!("cargo::rerun-if-changed=build.rs");
    let components = root.clone();

    let mut list = String::from("/// The skills inside the binary.\npub static BUNDLED: &[Bundled] = &[\n");
    for name in BUNDLED {
        let wasm = components.join(format!("{name}.wasm"));
        let manifest = root.join("skills").join(name).join("kiso.toml");
        writeln!(
            list,
            "    Bundled {{ name: {name:?}, manifest: include_str!({manifest:?}), wasm: include_bytes!({wasm:?}) }},"
        )
        .expect("a string takes any text");
    }
    list.push_str("];\n");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    std::fs::write(out.join("bundled.rs"), list).expect("OUT_DIR can be written");
}
