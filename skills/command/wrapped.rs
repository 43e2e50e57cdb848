/// Functions of wasi-libc that this crate puts its own in the place of. The build scripts of the programs tell the linker.
const WRAPPED: [&str; 10] = [
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
