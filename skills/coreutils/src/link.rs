//! Symbolic links, which the standard library makes only on other systems.

use std::ffi::{CString, c_char, c_int};
use std::io;
use std::path::Path;

// SAFETY: it has this signature in POSIX and in wasi-libc, and keeps neither string.
unsafe extern "C" {
    #[link_name = "symlink"]
    fn c_symlink(target: *const c_char, path: *const c_char) -> c_int;
}

pub fn symlink(target: &Path, path: &Path) -> io::Result<()> {
    let text = |path: &Path| CString::new(path.as_os_str().as_encoded_bytes()).map_err(io::Error::other);
    let (target, path) = (text(target)?, text(path)?);
    // SAFETY: both are strings that end with NUL and live until the call returns.
    match unsafe { c_symlink(target.as_ptr(), path.as_ptr()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
