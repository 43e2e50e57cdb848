//! Paths that WASI does not know: those that lead from one of the directories that there are to another, and the devices
//! that command lines name.
//!
//! A component was given its directories one by one, and `..` leads out of none of them, so `/work/../tmp` has to be
//! resolved before it is looked up; wasi-libc's `realpath` needs one directory that holds all others. There is no `/dev`.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::path::{Component, Path, PathBuf};

/// What `/dev/null` is read from and written to: a file that is empty after each opening.
const NULL: &CStr = c"/tmp/.null";

/// Files without end. Each is `NULL` opened once more, and `read` knows its number.
#[derive(Clone, Copy, PartialEq)]
enum Endless {
    Zeros,
    Random,
}

thread_local! {
    static ENDLESS: RefCell<Vec<(c_int, Endless)>> = const { RefCell::new(Vec::new()) };
}

/// As in most systems.
const MOST_LINKS: usize = 40;

unsafe extern "C" {
    fn __real_open(path: *const c_char, flags: c_int, mode: c_int) -> c_int;
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

#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_open(path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    let null = || unsafe { __real_open(NULL.as_ptr(), libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC, mode) };
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
        None => unsafe { __real_open(path, flags, mode) },
    }
}

/// The standard streams stay open, because `open` above gives them away like files.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_close(fd: c_int) -> c_int {
    if (0..=2).contains(&fd) {
        return 0;
    }
    ENDLESS.with_borrow_mut(|open| open.retain(|(number, _)| *number != fd));
    unsafe { __real_close(fd) }
}

/// Fills the bytes if this is the number of a file without end.
pub fn fill(fd: c_int, bytes: &mut [u8]) -> bool {
    let endless =
        ENDLESS.with_borrow(|open| open.iter().find(|(number, _)| *number == fd).map(|(_, endless)| *endless));
    match endless {
        None => return false,
        Some(Endless::Zeros) => bytes.fill(0),
        // So much it gives at a time.
        Some(Endless::Random) => bytes.chunks_mut(256).for_each(|part| unsafe {
            libc::getentropy(part.as_mut_ptr().cast(), part.len());
        }),
    }
    true
}

type Stat = unsafe extern "C" fn(*const c_char, *mut libc::stat) -> c_int;

unsafe fn look(real: Stat, path: *const c_char, into: *mut libc::stat) -> c_int {
    if device(unsafe { CStr::from_ptr(path) }).is_none() {
        return unsafe { real(path, into) };
    }
    let code = unsafe { real(c"/".as_ptr(), into) };
    if code == 0 {
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
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap___wasilibc_find_relpath_alloc(
    path: *const c_char,
    directory: *mut *const c_char,
    relative: *mut *mut c_char,
    length: *mut usize,
    can_realloc: c_int,
) -> c_int {
    let resolved = climbing(unsafe { CStr::from_ptr(path) });
    let path = resolved.as_ref().map_or(path, |path| path.as_ptr());
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

#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_stat(path: *const c_char, into: *mut libc::stat) -> c_int {
    unsafe { look(__real_stat, path, into) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_lstat(path: *const c_char, into: *mut libc::stat) -> c_int {
    unsafe { look(__real_lstat, path, into) }
}

/// Returns a string that the caller frees, as with a second argument of null, which is all that Rust uses.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_realpath(path: *const c_char, _: *mut c_char) -> *mut c_char {
    let text = unsafe { CStr::from_ptr(path) }.to_string_lossy().into_owned();
    let resolved = resolve(Path::new(&text)).map(|path| CString::new(path.into_os_string().into_encoded_bytes()));
    match resolved {
        Ok(Ok(path)) => unsafe { libc::strdup(path.as_ptr()) },
        Ok(Err(_)) => std::ptr::null_mut(),
        Err(e) => {
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
