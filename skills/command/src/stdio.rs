//! Standard output through one buffer.
//!
//! Rust's standard output writes each line on its own, because on WASI it cannot know what is at the other end, and every
//! write is a call into the host. GNU's tools fill a buffer unless a person looks on, and so does this: it is emptied when
//! it is full, before the process waits for input, before it writes an error, before it starts another process and at
//! the end. `--wrap` of the linker sends all calls of the C functions here, whoever makes them.

use std::cell::RefCell;
use std::ffi::c_int;

const STDIN: c_int = 0;
const STDOUT: c_int = 1;
const STDERR: c_int = 2;

/// Bytes that a pipe of the host holds.
const SIZE: usize = 64 << 10;

/// wasi-libc's number for a stream whose reader is gone.
const EPIPE: c_int = 64;

#[repr(C)]
struct Slice {
    start: *const u8,
    length: usize,
}

// SAFETY: they have these signatures in wasi-libc.
unsafe extern "C" {
    fn __real_write(fd: c_int, start: *const u8, length: usize) -> isize;
    fn __real_writev(fd: c_int, slices: *const Slice, count: c_int) -> isize;
    fn __real_read(fd: c_int, start: *mut u8, length: usize) -> isize;
}

thread_local! {
    static PENDING: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static LINES: RefCell<Option<Lines>> = const { RefCell::new(None) };
}

/// Rewrites each line, without its newline, before it enters the buffer.
type Rewrite = fn(&[u8]) -> Vec<u8>;

struct Lines {
    rewrite: Rewrite,
    /// The bytes of a line that has not ended yet.
    begun: Vec<u8>,
}

/// Passes each line of standard output through `rewrite` from now on: for commands of others that print a form of their own.
pub fn rewrite_lines(rewrite: Rewrite) {
    LINES.set(Some(Lines { rewrite, begun: Vec::new() }));
}

/// # Safety
/// As C's `write`: `start` points to `length` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_write(fd: c_int, start: *const u8, length: usize) -> isize {
    match fd {
        // SAFETY: the caller's promise; where there is a byte, the pointer is not null.
        STDOUT if length > 0 => return write_out(unsafe { std::slice::from_raw_parts(start, length) }),
        STDERR => drop(flush()),
        _ => {}
    }
    // SAFETY: the caller's own arguments.
    unsafe { __real_write(fd, start, length) }
}

/// # Safety
/// As C's `writev`: `slices` points to `count` slices, each of which points to its bytes. Where there is none, it may be null.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_writev(fd: c_int, slices: *const Slice, count: c_int) -> isize {
    if fd == STDERR {
        flush();
    }
    let number = usize::try_from(count).unwrap_or(0);
    if fd != STDOUT || number == 0 {
        // SAFETY: the caller's own arguments.
        return unsafe { __real_writev(fd, slices, count) };
    }
    // SAFETY: the caller's promise; where there is a slice, the pointer is not null.
    let slices = unsafe { std::slice::from_raw_parts(slices, number) };
    let mut total = 0;
    for slice in slices.iter().filter(|slice| slice.length > 0) {
        // SAFETY: as above, for the bytes of one slice.
        let written = write_out(unsafe { std::slice::from_raw_parts(slice.start, slice.length) });
        if written < 0 {
            return written;
        }
        total += written;
    }
    total
}

/// # Safety
/// As C's `read`: `start` points to room for `length` bytes, which need not hold anything yet.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_read(fd: c_int, start: *mut u8, length: usize) -> isize {
    if fd == STDIN {
        flush();
    } else if length > 0
        && let Some(endless) = crate::paths::endless(fd)
    {
        // SAFETY: the caller's promise. Zeros are written first, so that the slice holds nothing that was never written.
        let bytes = unsafe {
            start.write_bytes(0, length);
            std::slice::from_raw_parts_mut(start, length)
        };
        return if endless.fill(bytes) { length as isize } else { -1 };
    }
    // SAFETY: the caller's own arguments.
    unsafe { __real_read(fd, start, length) }
}

/// Takes the bytes into the buffer, rewritten if lines are, or returns -1 with `errno` set by what could not be written before.
fn write_out(bytes: &[u8]) -> isize {
    let rewritten = LINES.with_borrow_mut(|lines| lines.as_mut().map(|lines| lines.take(bytes)));
    match rewritten {
        None => hold(bytes),
        Some(whole) if whole.is_empty() || hold(&whole) >= 0 => bytes.len() as isize,
        Some(_) => -1,
    }
}

impl Lines {
    /// Returns the lines that end in `bytes`, rewritten, and keeps the rest.
    fn take(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut whole = Vec::new();
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.begun.extend_from_slice(part);
            if self.begun.pop_if(|byte| *byte == b'\n').is_some() {
                whole.extend((self.rewrite)(&std::mem::take(&mut self.begun)));
                whole.push(b'\n');
            }
        }
        whole
    }
}

fn hold(bytes: &[u8]) -> isize {
    PENDING.with_borrow_mut(|pending| {
        if pending.capacity() == 0 {
            pending.reserve_exact(SIZE);
        }
        if pending.len() + bytes.len() > SIZE && !empty(pending) {
            return -1;
        }
        if bytes.len() < SIZE {
            pending.extend_from_slice(bytes);
        } else if !write_all(bytes) {
            return -1;
        }
        bytes.len() as isize
    })
}

/// Writes what is in the buffer. `false`: it could not be written, and is lost.
pub fn flush() -> bool {
    PENDING.with_borrow_mut(empty)
}

fn empty(pending: &mut Vec<u8>) -> bool {
    let done = write_all(pending);
    pending.clear();
    done
}

fn write_all(mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        // SAFETY: pointer and length are those of a slice.
        let written = unsafe { __real_write(STDOUT, bytes.as_ptr(), bytes.len()) };
        if written < 0 {
            if std::io::Error::last_os_error().raw_os_error() == Some(EPIPE) {
                crate::exit::now(crate::NOBODY_READS);
            }
            return false;
        }
        if written == 0 {
            crate::exit::now(crate::NOBODY_READS);
        }
        bytes = &bytes[written as usize..];
    }
    true
}
