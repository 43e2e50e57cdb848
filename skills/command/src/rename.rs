//! `rename` between directories that are not of one file system, such as `/tmp` and a person's folder: a copy takes the place of the move.

use crate::permissions;
use std::ffi::{CStr, CString, c_char, c_int};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Directories in one another, before the copy ends.
const LEVELS: usize = 128;

// SAFETY: they have these signatures in wasi-libc, and keep no string.
unsafe extern "C" {
    fn __real_rename(from: *const c_char, to: *const c_char) -> c_int;
    #[link_name = "symlink"]
    fn c_symlink(target: *const c_char, path: *const c_char) -> c_int;
}

/// # Safety
/// As C's `rename`: both are strings that end with NUL.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_rename(from: *const c_char, to: *const c_char) -> c_int {
    // SAFETY: the caller's own arguments.
    let moved = unsafe { __real_rename(from, to) };
    let error = io::Error::last_os_error();
    if moved == 0 || error.raw_os_error() != Some(libc::EXDEV) {
        return moved;
    }
    // SAFETY: the caller's promise.
    let path = |text| PathBuf::from(unsafe { CStr::from_ptr(text) }.to_string_lossy().as_ref());
    match across(&path(from), &path(to)) {
        Ok(()) => 0,
        Err(error) => {
            let code = error.raw_os_error().unwrap_or(libc::EXDEV);
            // SAFETY: the thread's own number.
            unsafe { *libc::__errno_location() = code };
            -1
        }
    }
}

/// Copies what is at one path to another, and removes it then.
fn across(from: &Path, to: &Path) -> io::Result<()> {
    let found = from.symlink_metadata()?;
    match (found.is_dir(), to.symlink_metadata()) {
        (true, Ok(there)) if there.is_dir() => fs::remove_dir(to)?,
        (true, Ok(_)) => return Err(io::Error::from_raw_os_error(libc::ENOTDIR)),
        (false, Ok(there)) if there.is_dir() => return Err(io::Error::from_raw_os_error(libc::EISDIR)),
        _ => {}
    }
    copy(from, to, 0)?;
    match found.is_dir() {
        true => fs::remove_dir_all(from),
        false => fs::remove_file(from),
    }
}

fn copy(from: &Path, to: &Path, level: usize) -> io::Result<()> {
    if level > LEVELS {
        return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
    }
    let found = from.symlink_metadata()?;
    if found.is_symlink() {
        if to.symlink_metadata().is_ok() {
            fs::remove_file(to)?;
        }
        return symlink(&fs::read_link(from)?, to);
    }
    if found.is_dir() {
        fs::create_dir(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()), level + 1)?;
        }
        return Ok(());
    }
    // Nobody sees half of it under its new name.
    let name = to.file_name().unwrap_or_default().to_string_lossy();
    let part = to.with_file_name(format!(".{name}.moving"));
    let copied = io::copy(&mut File::open(from)?, &mut File::create(&part)?).and_then(|_| {
        if let Ok(bits) = permissions::get(from, false) {
            permissions::set(&part, bits)?;
        }
        if let Ok(modified) = found.modified() {
            File::options().write(true).open(&part)?.set_modified(modified)?;
        }
        fs::rename(&part, to)
    });
    if copied.is_err() {
        let _ = fs::remove_file(&part);
    }
    copied
}

fn symlink(target: &Path, path: &Path) -> io::Result<()> {
    let text = |path: &Path| CString::new(path.as_os_str().as_encoded_bytes()).map_err(io::Error::other);
    let (target, path) = (text(target)?, text(path)?);
    // SAFETY: both are strings that end with NUL and live until the call returns.
    match unsafe { c_symlink(target.as_ptr(), path.as_ptr()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
