//! Builds the bundled skills and writes two lists: the skills that `skill/installed.rs` includes, and the files that
//! `kiso skill new` writes.

#[path = "../build/guests.rs"]
mod guests;

use std::fmt::Write;
use std::path::{Path, PathBuf};

/// In the order of a listing.
const BUNDLED: [&str; 4] = ["chart", "data", "feed", "fetch"];

fn main() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let root = root.canonicalize().expect("the host lies in the workspace");
    for sources in ["skills", "sdk", "wit", "build"] {
        guests::rerun_if_changed(&root.join(sources));
    }
    println!("cargo::rerun-if-changed=build.rs");
    let components = guests::build(&root.join("skills"), &root.join("target/guests"));

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

    let mut templates = String::new();
    for (constant, dir) in [
        ("RUST", "sdk/templates/rust"),
        ("JS", "sdk/templates/js"),
        ("PYTHON", "sdk/templates/python"),
        ("WIT", "wit/since_v0_1"),
    ] {
        templates.push_str(&file_list(constant, &root.join(dir), &[""]));
    }
    templates.push_str(&file_list("SDK", &root.join("sdk"), &["Cargo.toml", "src"]));
    std::fs::write(out.join("templates.rs"), templates).expect("OUT_DIR can be written");
}

/// A constant with path and text of each file below `dir`, restricted to some of its entries.
fn file_list(constant: &str, dir: &Path, entries: &[&str]) -> String {
    let mut files = Vec::new();
    for entry in entries {
        collect(&dir.join(entry), &mut files);
    }
    files.sort();
    let mut list = format!("/// Path and text of each file.\nconst {constant}: &[(&str, &str)] = &[\n");
    for file in files {
        let path = file.strip_prefix(dir).expect("it was found there");
        // A template's manifest has another name in the repository, so that cargo does not take it for a package.
        let path = path.to_str().expect("the repository has plain names").replace("Cargo.toml.in", "Cargo.toml");
        writeln!(list, "    ({path:?}, include_str!({file:?})),").expect("a string takes any text");
    }
    list.push_str("];\n");
    list
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    if path.is_file() {
        return files.push(path.to_owned());
    }
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        collect(&entry.path(), files);
    }
}
