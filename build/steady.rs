//! A library that is loaded into a tool before its own: in that process the clock stands still and random bytes are always the
//! same. `kiso skill build` needs it where a tool runs a program and keeps its memory, which would hold the time and the
//! seeds of hash tables: the same sources would never give the same component twice.
//!
//! It is built by `host/build.rs` and has no dependencies, so that it fits any libc.

#![no_std]

/// The first of January 1980, the earliest time that a zip archive can hold.
const NOW: i64 = 315_532_800;

#[repr(C)]
pub struct Time {
    seconds: i64,
    /// Nanoseconds or microseconds.
    fraction: i64,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn getrandom(out: *mut u8, length: usize, _flags: u32) -> isize {
    for at in 0..length {
        // SAFETY: the caller gives `length` bytes. Volatile, or the loop would become a call of libc's.
        unsafe { out.add(at).write_volatile((at as u8).wrapping_mul(0x9d).wrapping_add(0x3b)) };
    }
    length as isize
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(_clock: i32, out: *mut Time) -> i32 {
    // SAFETY: the caller gives room for one.
    unsafe { out.write(Time { seconds: NOW, fraction: 0 }) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn gettimeofday(out: *mut Time, _zone: *mut u8) -> i32 {
    // SAFETY: the caller gives room for one.
    unsafe { out.write(Time { seconds: NOW, fraction: 0 }) };
    0
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}
