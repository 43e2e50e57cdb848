//! Puts functions of the crate `command`, which says why, in the place of some of wasi-libc.

/// Programs of `awk` are recursive, so the memory holds a stack of more than the usual mebibyte.
const STACK_BYTES: usize = 2 << 20;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("wasi") {
        println!("cargo::rustc-link-arg-bins=-zstack-size={STACK_BYTES}");
        let functions = [
            "__wasilibc_find_relpath_alloc",
            "close",
            "lstat",
            "open",
            "read",
            "realpath",
            "rename",
            "stat",
            "write",
            "writev",
        ];
        for function in functions {
            println!("cargo::rustc-link-arg-bins=--wrap={function}");
        }
    }
}
