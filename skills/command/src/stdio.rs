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

/// What a pipe of the host holds.
const SIZE: usize = 64 << 10;

/// wasi-libc's number for a stream whose reader is gone.
const EPIPE: c_int = 64;

#[repr(C)]
struct Slice {
    start: *const u8,
    length: usize,
}

unsafe extern "C" {
    fn __real_write(fd: c_int, start: *const u8, length: usize) -> isize;
    fn __real_writev(fd: c_int, slices: *const Slice, count: c_int) -> isize;
    fn __real_read(fd: c_int, start: *mut u8, length: usize) -> isize;
}

thread_local! {
    static PENDING: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_write(fd: c_int, start: *const u8, length: usize) -> isize {
    match fd {
        STDOUT if length > 0 => unsafe { write_out(std::slice::from_raw_parts(start, length)) },
        STDERR => {
            flush();
            unsafe { __real_write(fd, start, length) }
        }
        _ => unsafe { __real_write(fd, start, length) },
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_writev(fd: c_int, slices: *const Slice, count: c_int) -> isize {
    if fd != STDOUT {
        return unsafe { __real_writev(fd, slices, count) };
    }
    let slices = unsafe { std::slice::from_raw_parts(slices, count.max(0) as usize) };
    let mut total = 0;
    for slice in slices.iter().filter(|slice| slice.length > 0) {
        let written = unsafe { write_out(std::slice::from_raw_parts(slice.start, slice.length)) };
        if written < 0 {
            return written;
        }
        total += written;
    }
    total
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_read(fd: c_int, start: *mut u8, length: usize) -> isize {
    if fd == STDIN {
        flush();
    } else if length > 0 && crate::paths::fill(fd, unsafe { std::slice::from_raw_parts_mut(start, length) }) {
        return length as isize;
    }
    unsafe { __real_read(fd, start, length) }
}

/// Takes the bytes into the buffer, or returns -1 with `errno` set by what could not be written before.
unsafe fn write_out(bytes: &[u8]) -> isize {
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
