//! Time, memory, stack, and resources that the host keeps for a guest.

use crate::refused;
use crate::wasi::clocks::monotonic_clock;
use crate::wasi::filesystem::{preopens, types as fs};
use crate::wasi::http::types::Fields;
use kiso_sdk::{Failure, Reply};
use std::hint::black_box;

pub fn spin() -> ! {
    let mut n = 0u64;
    loop {
        n = black_box(n).wrapping_add(1);
    }
}

pub fn sleep(millis: u64) -> Result<Reply, Failure> {
    std::thread::sleep(std::time::Duration::from_millis(millis));
    Ok(Reply::text(format!("slept {millis} ms")))
}

pub fn allocate() -> ! {
    let mut kept = Vec::new();
    loop {
        // Ones, as an allocation of zeroes may leave its pages untouched.
        kept.push(black_box(vec![1u8; 1 << 20]));
    }
}

pub fn grow() -> Result<Reply, Failure> {
    const PAGES: usize = 16;
    let mut pages = 0;
    while core::arch::wasm32::memory_grow(0, PAGES) != usize::MAX {
        pages += PAGES as u64;
    }
    Err(refused("pages of 64 KiB", pages, "memory.grow answered -1"))
}

/// The end of the recursion, hidden so that the compiler cannot know that it is never reached.
static BOTTOM: u64 = u64::MAX;

fn bottom() -> u64 {
    // SAFETY: a static can be read; volatile only hides its value.
    unsafe { std::ptr::read_volatile(&BOTTOM) }
}

/// Keeps everything in locals of wasm, which live on the engine's stack.
pub fn recurse() -> ! {
    #[inline(never)]
    fn down(n: u64) -> u64 {
        if n == bottom() { n } else { (down(n + 1) ^ n).rotate_left(7) }
    }
    panic!("came back with {}", down(0))
}

/// Keeps an array in every frame: the compiler's own stack, in linear memory, runs out before the engine's.
pub fn recurse_frames() -> ! {
    #[inline(never)]
    fn down(n: u64) -> u64 {
        let frame = black_box([n; 256]);
        if n == bottom() { n } else { down(n + 1) ^ frame[(n % 256) as usize] }
    }
    panic!("came back with {}", down(0))
}

pub fn clock() -> ! {
    loop {
        black_box(monotonic_clock::now());
    }
}

pub fn pollables() -> ! {
    loop {
        std::mem::forget(monotonic_clock::subscribe_duration(u64::MAX));
    }
}

pub fn fields() -> Result<Reply, Failure> {
    let value = vec![b'x'; 64 << 10];
    let mut tables = 0u64;
    loop {
        let table = Fields::new();
        let mut values = 0u64;
        while table.append("x-flood", &value).is_ok() {
            values += 1;
            if values > 100_000 {
                return Err(refused("tables of headers", tables, "one table took 6 GiB"));
            }
        }
        std::mem::forget(table);
        tables += 1;
    }
}

pub fn random(len: u64) -> Result<Reply, Failure> {
    let bytes = crate::wasi::random::random::get_random_bytes(len);
    Ok(Reply::text(format!("{} random bytes", bytes.len())))
}

pub fn huge_read() -> Result<Reply, Failure> {
    const SIZE: usize = 100_000;
    std::fs::write("/work/small.bin", vec![7u8; SIZE])?;
    let (work, _) = preopens::get_directories().pop().ok_or("no workspace")?;
    let file = work
        .open_at(fs::PathFlags::empty(), "small.bin", fs::OpenFlags::empty(), fs::DescriptorFlags::READ)
        .map_err(|e| refused("bytes", 0, e))?;
    let (bytes, _end) = file.read(1 << 40, 0).map_err(|e| refused("bytes", 0, e))?;
    assert!(!bytes.is_empty() && bytes.len() <= SIZE, "{} bytes of a file of {SIZE}", bytes.len());
    let stream = file.read_via_stream(0).map_err(|e| refused("bytes", 0, e))?;
    let chunk = stream.blocking_read(1 << 40).map_err(|e| refused("bytes", 0, e))?;
    assert!(!chunk.is_empty() && chunk.len() <= SIZE, "{} bytes of a file of {SIZE}", chunk.len());
    Ok(Reply::text(format!("{} and {} bytes", bytes.len(), chunk.len())))
}

pub fn trap() -> ! {
    core::arch::wasm32::unreachable()
}
