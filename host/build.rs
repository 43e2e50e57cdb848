//! Writes the list of the files that `kiso skill new` writes, builds the library that `kiso skill build` loads into a tool,
//! and sets the versions that the program reports.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a build script that panics has failed")]

use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let root = root.canonicalize().expect("the host lies in the workspace");
    for embedded in ["sdk", "wit/since_v0_1", "build/steady.rs", "Cargo.lock"] {
        println!("cargo::rerun-if-changed={}", root.join(embedded).display());
    }
    println!("cargo::rerun-if-changed=build.rs");

    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let mut templates = String::new();
    for (constant, dir) in [
        ("RUST", "sdk/templates/rust"),
        ("JS", "sdk/templates/js"),
        ("TS", "sdk/templates/ts"),
        ("WEB", "sdk/templates/web"),
        ("PYTHON", "sdk/templates/python"),
        ("WIT", "wit/since_v0_1"),
    ] {
        templates.push_str(&file_list(constant, &root.join(dir), &[""]));
    }
    templates.push_str(&file_list("SDK", &root.join("sdk"), &["Cargo.toml", "src"]));
    templates.push_str(&file_list("SDK_JS", &root.join("sdk/js"), &[""]));
    std::fs::write(out.join("templates.rs"), templates).expect("OUT_DIR can be written");
    steady(&root.join("build/steady.rs"), &out.join("steady.so"));

    println!("cargo::rustc-env=KISO_TARGET={}", target());
    println!("cargo::rustc-env=KISO_WASMTIME={}", locked_version(&root.join("Cargo.lock"), "wasmtime"));
    // Puts code into a segment of its own; otherwise data next to it is executable, too. Not every linker does so by
    // default.
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,separate-code");
    }
}

/// Returns the locked version of a package.
fn locked_version(lock: &Path, package: &str) -> String {
    let text = std::fs::read_to_string(lock).unwrap_or_else(|e| panic!("{}: {e}", lock.display()));
    let (_, rest) = text.split_once(&format!("\nname = {package:?}\nversion = \"")).expect("it is a dependency");
    rest.split('"').next().expect("there is a first part").to_owned()
}

/// Builds the library that `kiso skill build` loads into a tool. The file is empty if it cannot be built; then builds of the
/// same skill are not reproducible.
fn steady(source: &Path, file: &Path) {
    std::fs::write(file, []).expect("OUT_DIR can be written");
    let of_target = |what: &str| std::env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default();
    if of_target("OS") != "linux" || of_target("POINTER_WIDTH") != "64" {
        return;
    }
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args([
        "--edition",
        "2024",
        "--crate-type",
        "cdylib",
        "-C",
        "panic=abort",
        "-C",
        "opt-level=s",
        "-C",
        "strip=symbols",
    ]);
    rustc.args(["-C", "link-arg=-nostdlib", "-C", "link-arg=-nostartfiles", "--target", &target()]);
    if of_target("ENV") == "musl" {
        rustc.args(["-C", "target-feature=-crt-static"]);
    }
    if let Some(linker) = std::env::var_os("RUSTC_LINKER") {
        rustc.arg("-C").arg(["linker=".as_ref(), linker.as_os_str()].into_iter().collect::<OsString>());
    }
    let built = rustc.arg("-o").arg(file).arg(source).status();
    if !built.is_ok_and(|status| status.success()) {
        println!(
            "cargo::warning={} could not be built: skills in JavaScript will not be reproducible",
            source.display()
        );
        std::fs::write(file, []).expect("OUT_DIR can be written");
    }
}

fn target() -> String {
    std::env::var("TARGET").expect("cargo sets TARGET")
}

/// Returns a constant with path and text of each file below `dir`, limited to some entries.
fn file_list(constant: &str, dir: &Path, entries: &[&str]) -> String {
    let mut files = Vec::new();
    for entry in entries {
        collect(&dir.join(entry), &mut files);
    }
    files.sort();
    let mut list = format!("/// Path and text of each file.\nconst {constant}: &[(&str, &str)] = &[\n");
    for file in files {
        let path = file.strip_prefix(dir).expect("it was found there");
        // A template's manifest has another name in the repository, so that cargo does not treat it as a package.
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
