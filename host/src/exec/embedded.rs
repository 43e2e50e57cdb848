//! The compiled components of the shell and its commands, as `build.rs` made them.

/// Bytes on a boundary of every page size that kiso runs on: 4, 16 and 64 KiB.
#[repr(C)]
pub struct Aligned<T: ?Sized> {
    _align: [Page; 0],
    pub code: T,
}

#[repr(align(65536))]
struct Page;

include!(concat!(env!("OUT_DIR"), "/commands.rs"));
pub static SHELL: &Aligned<[u8]> = COREUTILS;
pub static JS: &Aligned<[u8]> = COREUTILS;
