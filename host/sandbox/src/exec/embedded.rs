//! The compiled components of the shell and its commands, as `build.rs` made them.

use crate::skill::deflated::DeflatedBytes;
use rustix::mm::MprotectFlags;
use wasmtime::CustomCodeMemory;

/// Bytes on a boundary of every page size that kiso runs on: 4, 16 and 64 KiB.
#[repr(C)]
pub(super) struct PageAligned<T: ?Sized> {
    _align: [Page; 0],
    pub code: T,
}

#[repr(align(65536))]
struct Page;

/// Makes code executable in place. wasmtime changes only memory that it has mapped itself.
#[derive(Debug)]
pub(super) struct InPlace;

impl CustomCodeMemory for InPlace {
    fn required_alignment(&self) -> usize {
        rustix::param::page_size()
    }

    fn publish_executable(&self, ptr: *const u8, len: usize) -> wasmtime::Result<()> {
        protect(ptr, len, MprotectFlags::READ | MprotectFlags::EXEC)
    }

    fn unpublish_executable(&self, ptr: *const u8, len: usize) -> wasmtime::Result<()> {
        protect(ptr, len, MprotectFlags::READ)
    }
}

fn protect(ptr: *const u8, len: usize, how: MprotectFlags) -> wasmtime::Result<()> {
    // SAFETY: wasmtime hands over whole pages of the text of one of the statics below. They are only ever read, so taking
    // or giving the right to execute them changes nothing for anybody else. The kernel keeps instruction caches coherent.
    let done = unsafe { rustix::mm::mprotect(ptr.cast_mut().cast(), len, how) };
    done.map_err(|e| wasmtime::format_err!("the bundled commands cannot be made executable: {e}"))
}

include!(concat!(env!("OUT_DIR"), "/commands.rs"));
