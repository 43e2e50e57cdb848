//! Paths that WASI does not know: those that lead from one of the directories that there are to another, and the devices
//! that command lines name.
//!
//! A component was given its directories one by one, and `..` leads out of none of them, so `/work/../tmp` has to be
//! resolved before the lookup; wasi-libc's `realpath` needs one directory that holds all others. There is no `/dev`.

use crate::permissions;
use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Component, Path, PathBuf};

/// The file behind `/dev/null`, which is empty after each opening.
const NULL: &CStr = c"/tmp/.null";

/// Files without end. Each is `NULL` opened once more, and `read` knows its number.
#[derive(Clone, Copy, PartialEq)]
pub enum Endless {
    Zeros,
    Random,
}

thread_local! {
    static ENDLESS: RefCell<Vec<(c_int, Endless)>> = const { RefCell::new(Vec::new()) };
    static COPIES: Cell<Option<bool>> = const { Cell::new(None) };
    static SOURCE: RefCell<Option<PathBuf>> = const { RefCell::new(None) };
}

/// As in most systems.
const MOST_LINKS: usize = 40;

// SAFETY: they have these signatures in wasi-libc.
unsafe extern "C" {
    /// Called by `open` of wasi-libc; files have no mode.
    fn __wasilibc_open_nomode(path: *const c_char, flags: c_int) -> c_int;
    fn __real_close(fd: c_int) -> c_int;
    fn __real_stat(path: *const c_char, into: *mut libc::stat) -> c_int;
    fn __real_lstat(path: *const c_char, into: *mut libc::stat) -> c_int;
    fn __real___wasilibc_find_relpath_alloc(
        path: *const c_char,
        directory: *mut *const c_char,
        relative: *mut *mut c_char,
        length: *mut usize,
        can_realloc: c_int,
    ) -> c_int;
}

enum Device {
    /// A standard stream, by its number.
    Stream(c_int),
    Null,
    Endless(Endless),
}

fn device(path: &CStr) -> Option<Device> {
    match path.to_bytes().strip_prefix(b"/dev/")? {
        b"null" => Some(Device::Null),
        b"zero" => Some(Device::Endless(Endless::Zeros)),
        b"random" | b"urandom" => Some(Device::Endless(Endless::Random)),
        b"stdin" | b"fd/0" => Some(Device::Stream(0)),
        b"stdout" | b"fd/1" => Some(Device::Stream(1)),
        b"stderr" | b"fd/2" => Some(Device::Stream(2)),
        _ => None,
    }
}

/// C's `open` takes a mode only with some flags. On wasm32 such arguments lie in memory, and the third parameter is the address
/// of them; it is not looked at.
///
/// # Safety
/// As C's `open`: `path` is a string that ends with NUL.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_open(path: *const c_char, flags: c_int, _: *const c_void) -> c_int {
    // SAFETY: a constant string.
    let null = || unsafe { __wasilibc_open_nomode(NULL.as_ptr(), libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC) };
    // SAFETY: the caller's promise.
    match device(unsafe { CStr::from_ptr(path) }) {
        Some(Device::Null) => null(),
        Some(Device::Stream(stream)) => stream,
        Some(Device::Endless(endless)) => {
            let fd = null();
            if fd >= 0 {
                ENDLESS.with_borrow_mut(|open| open.push((fd, endless)));
            }
            fd
        }
        None if COPIES.get().is_some() => {
            // SAFETY: the caller's promise.
            let name = PathBuf::from(unsafe { CStr::from_ptr(path) }.to_string_lossy().as_ref());
            // SAFETY: the caller's own arguments.
            copying(name, flags, || unsafe { __wasilibc_open_nomode(path, flags) })
        }
        // SAFETY: the caller's own arguments.
        None => unsafe { __wasilibc_open_nomode(path, flags) },
    }
}

/// From now on each file that is made has the permissions of the file that was opened before it, as `cp` opens them, and so has one that
/// was there `also`; a copy in the standard library knows of none under WASI.
pub fn copies_keep_permissions(also: bool) {
    COPIES.set(Some(also));
}

fn copying(path: PathBuf, flags: c_int, open: impl FnOnce() -> c_int) -> c_int {
    let keeps = flags & libc::O_CREAT != 0 && (COPIES.get() == Some(true) || !path.exists());
    let fd = open();
    if flags & libc::O_CREAT == 0 {
        SOURCE.set(Some(path));
    } else if let Some(source) = SOURCE.take().filter(|_| keeps && fd >= 0)
        && let Ok(bits) = permissions::get(&source, true)
    {
        // A file whose permissions cannot be set is a copy all the same.
        let _ = permissions::set(&path, bits);
    }
    fd
}

/// The standard streams stay open, because `open` above gives them away like files.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_close(fd: c_int) -> c_int {
    if (0..=2).contains(&fd) {
        return 0;
    }
    ENDLESS.with_borrow_mut(|open| open.retain(|(number, _)| *number != fd));
    // SAFETY: a number, which wasi-libc checks.
    unsafe { __real_close(fd) }
}

/// The file without end that has this number.
pub fn endless(fd: c_int) -> Option<Endless> {
    ENDLESS.with_borrow(|open| open.iter().find(|(number, _)| *number == fd).map(|(_, endless)| *endless))
}

impl Endless {
    /// Fills the bytes. `false`: there are none, and `errno` says why.
    pub fn fill(self, bytes: &mut [u8]) -> bool {
        match self {
            Self::Zeros => bytes.fill(0),
            // So much it gives at a time.
            Self::Random => {
                for part in bytes.chunks_mut(256) {
                    // SAFETY: pointer and length are those of a slice.
                    if unsafe { libc::getentropy(part.as_mut_ptr().cast(), part.len()) } != 0 {
                        return false;
                    }
                }
            }
        }
        true
    }
}

type Stat = unsafe extern "C" fn(*const c_char, *mut libc::stat) -> c_int;

/// # Safety
/// As C's `stat`: `path` is a string that ends with NUL, and `into` points to room for an answer. `real` is one of its kind.
unsafe fn look(real: Stat, path: *const c_char, into: *mut libc::stat) -> c_int {
    // SAFETY: the caller's promise.
    if device(unsafe { CStr::from_ptr(path) }).is_none() {
        // SAFETY: the caller's own arguments.
        return unsafe { real(path, into) };
    }
    // SAFETY: a constant string, and the caller's own room.
    let code = unsafe { real(c"/".as_ptr(), into) };
    if code == 0 {
        // SAFETY: `real` has filled it, because it went well.
        unsafe {
            // Utilities ask for the kinds that they know before they open.
            (*into).st_mode = libc::S_IFREG | 0o666;
            (*into).st_size = 0;
        }
    }
    code
}

/// Where every function of wasi-libc that takes a path begins: the directory that it lies in (its number, and its name in
/// `directory`), and in `relative` the rest of the path.
///
/// # Safety
/// As the function of wasi-libc: `path` is a string that ends with NUL, and the other pointers lead to room for the answers.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap___wasilibc_find_relpath_alloc(
    path: *const c_char,
    directory: *mut *const c_char,
    relative: *mut *mut c_char,
    length: *mut usize,
    can_realloc: c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    let resolved = climbing(unsafe { CStr::from_ptr(path) });
    let path = resolved.as_ref().map_or(path, |path| path.as_ptr());
    // SAFETY: the caller's own arguments, and a path that lives until the call returns; the answers are copies of its parts.
    unsafe { __real___wasilibc_find_relpath_alloc(path, directory, relative, length, can_realloc) }
}

/// A path that leaves the directory it begins in, by its letters; nothing for all others, whose `..` behind a link mean
/// what the link leads to.
fn climbing(path: &CStr) -> Option<CString> {
    let text = path.to_str().ok().filter(|text| text.contains(".."))?;
    let absolute = if text.starts_with('/') { PathBuf::from(text) } else { std::env::current_dir().ok()?.join(text) };
    let mut resolved: Vec<PathBuf> = Vec::new();
    let mut climbs = false;
    for part in parts(&absolute).into_iter().rev() {
        if part.as_os_str() != ".." {
            resolved.push(part);
            continue;
        }
        // The first name is that of one of the directories.
        climbs |= resolved.len() < 2;
        resolved.pop();
    }
    let resolved = PathBuf::from("/").join(resolved.iter().collect::<PathBuf>());
    climbs.then(|| CString::new(resolved.into_os_string().into_encoded_bytes()).ok()).flatten()
}

/// # Safety
/// As C's `stat`.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_stat(path: *const c_char, into: *mut libc::stat) -> c_int {
    // SAFETY: the caller's own arguments.
    unsafe { look(__real_stat, path, into) }
}

/// # Safety
/// As C's `lstat`.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_lstat(path: *const c_char, into: *mut libc::stat) -> c_int {
    // SAFETY: the caller's own arguments.
    unsafe { look(__real_lstat, path, into) }
}

/// Returns a string that the caller frees, as with a second argument of null, which is all that Rust uses.
///
/// # Safety
/// As C's `realpath`: `path` is a string that ends with NUL.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_realpath(path: *const c_char, _: *mut c_char) -> *mut c_char {
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(path) }.to_string_lossy().into_owned();
    let resolved = resolve(Path::new(&text)).map(|path| CString::new(path.into_os_string().into_encoded_bytes()));
    match resolved {
        // SAFETY: a string that ends with NUL; the copy is the caller's.
        Ok(Ok(path)) => unsafe { libc::strdup(path.as_ptr()) },
        Ok(Err(_)) => std::ptr::null_mut(),
        Err(e) => {
            // SAFETY: wasi-libc's own variable, of the only thread.
            unsafe { *libc::__errno_location() = e.raw_os_error().unwrap_or(libc::ENOENT) };
            std::ptr::null_mut()
        }
    }
}

fn resolve(path: &Path) -> std::io::Result<PathBuf> {
    let absolute = if path.is_absolute() { path.to_owned() } else { std::env::current_dir()?.join(path) };
    let mut rest: Vec<PathBuf> = parts(&absolute);
    let mut found = PathBuf::from("/");
    let mut links = 0;
    while let Some(part) = rest.pop() {
        if part.as_os_str() == ".." {
            found.pop();
            continue;
        }
        let next = found.join(part);
        if std::fs::symlink_metadata(&next)?.file_type().is_symlink() {
            links += 1;
            if links > MOST_LINKS {
                return Err(std::io::Error::from_raw_os_error(libc::ELOOP));
            }
            let target = std::fs::read_link(&next)?;
            if target.is_absolute() {
                found = PathBuf::from("/");
            }
            rest.extend(parts(&target));
        } else {
            found = next;
        }
    }
    Ok(found)
}

/// The components that matter, the last one first.
fn parts(path: &Path) -> Vec<PathBuf> {
    let matters = |component: &Component| matches!(component, Component::Normal(_) | Component::ParentDir);
    path.components().filter(matters).map(|component| PathBuf::from(component.as_os_str())).rev().collect()
}
