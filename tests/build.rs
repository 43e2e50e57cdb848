//! Builds the guests of `guests/` and lists them, so that a guest, a hostile mode or a `.wat` file without a test does not
//! compile: the tests in `all/` expand these lists to paths of test functions.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a build script that panics has failed")]

#[path = "../build/guests.rs"]
mod guests;

use std::fmt::Write;
use std::path::{Path, PathBuf};

fn main() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).canonicalize().expect("the crate lies somewhere");
    let root = tests.parent().expect("the crate lies in the workspace").to_owned();
    for sources in [tests.join("guests"), root.join("sdk/src"), root.join("wit"), root.join("build/guests.rs")] {
        guests::rerun_if_changed(&sources);
    }
    println!("cargo::rerun-if-changed=build.rs");
    let components = guests::build(&tests.join("guests"), &root.join("target/guests"), "release");
    println!("cargo::rustc-env=KISO_GUESTS={}", components.display());

    let mut crates = names(&tests.join("guests"), |path| path.join("Cargo.toml").exists());
    crates.sort();
    let mut wats = names(&tests.join("guests/wat"), |path| path.extension().is_some_and(|e| e == "wat"));
    wats.sort();
    let manifest =
        std::fs::read_to_string(tests.join("guests/hostile/kiso.toml")).expect("the hostile guest has a manifest");
    let lists =
        [("foreach_guest", "guest", crates), ("foreach_wat", "wat", wats), ("foreach_mode", "mode", modes(&manifest))];
    let mut out = String::new();
    for (list, prefix, names) in lists {
        writeln!(
            out,
            "/// Calls a macro with each test's name.\n#[macro_export]\nmacro_rules! {list} {{ ($mac:ident) => {{"
        )
        .expect("a string takes any text");
        for name in names {
            writeln!(out, "    $mac!({prefix}_{});", name.replace('-', "_")).expect("a string takes any text");
        }
        out.push_str("}; }\n");
    }
    let dir = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    std::fs::write(dir.join("lists.rs"), out).expect("OUT_DIR can be written");
}

fn names(dir: &Path, wanted: impl Fn(&Path) -> bool) -> Vec<String> {
    let entries = std::fs::read_dir(dir).expect("the guests are there").flatten();
    let paths = entries.map(|e| e.path()).filter(|p| wanted(p));
    paths.filter_map(|p| Some(p.file_stem()?.to_str()?.to_owned())).collect()
}

/// The modes in the hostile guest's manifest.
fn modes(manifest: &str) -> Vec<String> {
    let start = manifest.find("enum = [").expect("the manifest lists its modes");
    let list = &manifest[start..];
    let list = &list[..list.find(']').expect("the list ends")];
    list.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}
