//! A shell is recursive, so its memory holds a stack of more than the usual mebibyte.

const STACK_BYTES: usize = 2 << 20;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|target| target == "wasm32") {
        println!("cargo::rustc-cdylib-link-arg=-zstack-size={STACK_BYTES}");
    }
}
