//! Sends the standard streams through the crate `command`, which says why.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("wasi") {
        for function in ["read", "write", "writev"] {
            println!("cargo::rustc-link-arg-bins=--wrap={function}");
        }
    }
}
