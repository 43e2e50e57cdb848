//! Puts functions of the crate `command`, which says why, in the place of some of wasi-libc.

include!("../command/wrapped.rs");

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../command/wrapped.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("wasi") {
        for function in WRAPPED {
            println!("cargo::rustc-link-arg-bins=--wrap={function}");
        }
    }
}
