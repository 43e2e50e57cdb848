//! Builds a workspace of guests for wasm32-wasip2 from a build script. Shared by `host/guests/build.rs` and `tests/build.rs`;
//! `fuzz/smith.rs` takes the command of it.

use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "wasm32-wasip2";

/// Runs cargo on the workspace at `manifest_dir`, with a profile of it, and returns the directory with its components.
///
/// Where that is a link, as in the copy of `tests/house/run`, the guests are those of the tree that it leads to: cargo
/// would build them all again for another path.
pub(crate) fn build(manifest_dir: &Path, target_dir: &Path, profile: &str) -> PathBuf {
    require_target();
    let manifest_dir =
        manifest_dir.canonicalize().unwrap_or_else(|e| fail(&format!("{}: {e}", manifest_dir.display())));
    let mut cargo = cargo(&manifest_dir.join("Cargo.toml"), target_dir, profile);
    cargo.args(["--target", TARGET]).env("CARGO_ENCODED_RUSTFLAGS", without_paths(&manifest_dir));
    let built = cargo.status();
    let status = built.unwrap_or_else(|e| fail(&format!("cargo could not be started: {e}")));
    if !status.success() {
        fail(&format!("the guests in {} could not be built ({status})", manifest_dir.display()));
    }
    target_dir.join(TARGET).join(profile)
}

/// Flags that keep this machine's directories out of the components, so that their digests are the same everywhere.
fn without_paths(manifest_dir: &Path) -> String {
    let mut flags = Vec::new();
    if let Some(root) = manifest_dir.ancestors().find(|dir| dir.join("wit").is_dir()) {
        flags.push(format!("--remap-path-prefix={}=/kiso", root.display()));
    }
    let home = |name: &str| std::env::var_os(name).map(PathBuf::from);
    if let Some(cargo) = home("CARGO_HOME").or_else(|| Some(home("HOME")?.join(".cargo"))) {
        flags.push(format!("--remap-path-prefix={}=/cargo", cargo.display()));
    }
    flags.join("\u{1f}")
}

/// The command that builds another workspace from within a run of cargo.
///
/// It has a target directory of its own, because the outer one is locked while a build script runs, and one that no profile
/// of the host and no `OUT_DIR` goes into, because otherwise each of these would build all guests again. A guest whose
/// sources did not change costs nothing.
pub(crate) fn cargo(manifest: &Path, target_dir: &Path, profile: &str) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--profile", profile, "--locked", "--quiet"]);
    cargo.arg("--manifest-path").arg(manifest).arg("--target-dir").arg(target_dir);
    // Variables of the outer cargo are for the host, not for the guests.
    for (name, _) in std::env::vars_os() {
        let name_text = name.to_string_lossy();
        let is_outer = name_text.starts_with("CARGO_")
            && !matches!(
                name_text.as_ref(),
                "CARGO_HOME" | "CARGO_NET_OFFLINE" | "CARGO_HTTP_CAINFO" | "CARGO_TERM_COLOR" | "CARGO_MAKEFLAGS"
            )
            && !name_text.starts_with("CARGO_REGISTR")
            && !name_text.starts_with("CARGO_SOURCE");
        if is_outer
            || [
                "RUSTFLAGS",
                "RUSTC_WRAPPER",
                "RUSTC_WORKSPACE_WRAPPER",
                "RUSTC",
                "TARGET",
                "HOST",
                "PROFILE",
                "OUT_DIR",
            ]
            .contains(&name_text.as_ref())
        {
            cargo.env_remove(&name);
        }
    }
    cargo
}

/// Tells cargo to run the build script again when a file below `dir` changes, or `dir` itself, if it is a file.
pub(crate) fn rerun_if_changed(dir: &Path) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name();
        if name == "target" || name.to_string_lossy().starts_with('.') {
            continue;
        }
        if path.is_dir() {
            rerun_if_changed(&path);
        } else {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    println!("cargo::rerun-if-changed={}", dir.display());
}

fn require_target() {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let libdir = Command::new(rustc).args(["--print", "target-libdir", "--target", TARGET]).output();
    let found = libdir.is_ok_and(|out| {
        let path = String::from_utf8_lossy(&out.stdout);
        out.status.success() && Path::new(path.trim()).is_dir()
    });
    if !found {
        fail(&format!("kiso's skills are built for {TARGET}, which is missing; run: rustup target add {TARGET}"));
    }
}

fn fail(message: &str) -> ! {
    println!("cargo::error={message}");
    std::process::exit(1)
}
