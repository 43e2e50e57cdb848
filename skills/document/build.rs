//! Gives the component a stack for files that nest.

/// PDF files nest forms and patterns in one another, and their readers call themselves.
const STACK_BYTES: usize = 4 << 20;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("wasi") {
        println!("cargo::rustc-link-arg-bins=-zstack-size={STACK_BYTES}");
    }
}
