//! Files, through the sandbox's own file system.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::UNIX_EPOCH;

use boa_engine::object::builtins::JsArray;
use boa_engine::{Context, JsArgs, JsError, JsNativeError, JsResult, JsString, JsValue, js_string};

use super::{Function, buffer, content, string, text};

pub const FUNCTIONS: &[(&str, Function)] = &[
    ("read", read),
    ("write", write),
    ("list", list),
    ("stat", stat),
    ("change", change),
    ("realpath", realpath),
    ("readlink", readlink),
    ("chmod", chmod),
    ("truncate", truncate),
];

/// One file that a script reads at once.
const MAX_READ: u64 = 512 << 20;

fn read(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let path = text(arguments, 0, context)?;
    let found = fs::metadata(&path).map_err(|e| failed("open", &path, None, &e, context))?;
    if found.is_dir() {
        return Err(failed("read", &path, None, &io::ErrorKind::IsADirectory.into(), context));
    }
    if found.len() > MAX_READ {
        let message = format!("File size ({}) is greater than 512 MiB: {path}", found.len());
        return Err(super::error("ERR_FS_FILE_TOO_LARGE", &message, context));
    }
    let bytes = fs::read(&path).map_err(|e| failed("open", &path, None, &e, context))?;
    buffer(&bytes, context)
}

/// `write(path, content, how)`: `w` replaces, `a` appends, and `x` after either refuses a file that is there.
fn write(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let (path, bytes, how) =
        (text(arguments, 0, context)?, content(arguments, 1, context)?, text(arguments, 2, context)?);
    let mut options = fs::File::options();
    match how.contains('a') {
        true => options.append(true),
        false => options.write(true).truncate(!how.contains('x')),
    };
    match how.contains('x') {
        true => options.create_new(true),
        false => options.create(true),
    };
    let written = options.open(&path).and_then(|mut file| file.write_all(&bytes));
    written.map_err(|e| failed("open", &path, None, &e, context))?;
    Ok(JsValue::undefined())
}

/// Names, each behind a letter for its kind.
fn list(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let path = text(arguments, 0, context)?;
    let mut names = Vec::new();
    for entry in fs::read_dir(&path).map_err(|e| failed("scandir", &path, None, &e, context))? {
        let entry = entry.map_err(|e| failed("scandir", &path, None, &e, context))?;
        let kind = entry.file_type().map(kind_of).unwrap_or('?');
        names.push((entry.file_name().to_string_lossy().into_owned(), kind));
    }
    names.sort();
    let names = names.into_iter().map(|(name, kind)| string(&format!("{kind}{name}")));
    Ok(JsArray::from_iter(names.collect::<Vec<_>>(), context).into())
}

fn kind_of(kind: fs::FileType) -> char {
    if kind.is_dir() {
        'd'
    } else if kind.is_symlink() {
        'l'
    } else {
        'f'
    }
}

/// `stat(path, follows, call)`: kind, size, the time of the last change in milliseconds, permission bits.
fn stat(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let (path, follows) = (text(arguments, 0, context)?, arguments.get_or_undefined(1).to_boolean());
    let (found, call) = if follows { (fs::metadata(&path), "stat") } else { (fs::symlink_metadata(&path), "lstat") };
    let named = arguments.get_or_undefined(2);
    let call = if named.is_undefined() { call.to_owned() } else { text(arguments, 2, context)? };
    let found = found.map_err(|e| failed(&call, &path, None, &e, context))?;
    let changed = found.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    let bits = command::permissions::get(Path::new(&path), follows).unwrap_or(0o644);
    let values = [
        string(&kind_of(found.file_type()).to_string()),
        JsValue::from(found.len() as f64),
        JsValue::from(changed.as_secs_f64() * 1000.0),
        JsValue::from(bits),
    ];
    Ok(JsArray::from_iter(values, context).into())
}

/// `change(call, path, other)`.
fn change(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let (call, path, other) =
        (text(arguments, 0, context)?, text(arguments, 1, context)?, text(arguments, 2, context)?);
    let done = match call.as_str() {
        "mkdir" => fs::create_dir(&path),
        "mkdirs" => fs::create_dir_all(&path),
        "rmdir" => fs::remove_dir(&path),
        "tree" => fs::remove_dir_all(&path),
        "rename" => fs::rename(&path, &other),
        "link" => fs::hard_link(&path, &other),
        "symlink" => symlink(&path, &other),
        "copyfile" => fs::copy(&path, &other).map(drop),
        _ => fs::remove_file(&path),
    };
    let to = matches!(call.as_str(), "rename" | "link" | "symlink" | "copyfile").then_some(other.as_str());
    let call = match call.as_str() {
        "mkdirs" => "mkdir",
        "tree" => "rm",
        call => call,
    };
    done.map_err(|e| failed(call, &path, to, &e, context))?;
    Ok(JsValue::undefined())
}

#[cfg(target_os = "wasi")]
fn symlink(target: &str, path: &str) -> io::Result<()> {
    let [target, path] = [std::ffi::CString::new(target)?, std::ffi::CString::new(path)?];
    // SAFETY: both are strings that end with NUL.
    match unsafe { libc::symlink(target.as_ptr(), path.as_ptr()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(not(target_os = "wasi"))]
fn symlink(target: &str, path: &str) -> io::Result<()> {
    std::os::unix::fs::symlink(target, path)
}

fn realpath(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let path = text(arguments, 0, context)?;
    let found = fs::canonicalize(&path).map_err(|e| failed("realpath", &path, None, &e, context))?;
    Ok(string(&found.to_string_lossy()))
}

fn readlink(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let path = text(arguments, 0, context)?;
    let found = fs::read_link(&path).map_err(|e| failed("readlink", &path, None, &e, context))?;
    Ok(string(&found.to_string_lossy()))
}

fn chmod(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let (path, bits) = (text(arguments, 0, context)?, arguments.get_or_undefined(1).to_u32(context)?);
    let done = command::permissions::set(Path::new(&path), bits & 0o777);
    done.map_err(|e| failed("chmod", &path, None, &e, context))?;
    Ok(JsValue::undefined())
}

fn truncate(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let (path, length) = (text(arguments, 0, context)?, arguments.get_or_undefined(1).to_length(context)?);
    let done = fs::File::options().write(true).open(&path).and_then(|file| file.set_len(length));
    done.map_err(|e| failed("open", &path, None, &e, context))?;
    Ok(JsValue::undefined())
}

/// The standard library has no kinds for some numbers of WASI.
fn kind_of_error(error: &io::Error) -> io::ErrorKind {
    match error.raw_os_error() {
        Some(libc::EXDEV) => io::ErrorKind::CrossesDevices,
        Some(libc::EISDIR) => io::ErrorKind::IsADirectory,
        Some(libc::ENAMETOOLONG) => io::ErrorKind::InvalidFilename,
        Some(libc::ENOSPC | libc::EDQUOT) => io::ErrorKind::StorageFull,
        Some(libc::ENOTDIR) => io::ErrorKind::NotADirectory,
        Some(libc::ENOTEMPTY) => io::ErrorKind::DirectoryNotEmpty,
        Some(libc::EROFS) => io::ErrorKind::ReadOnlyFilesystem,
        _ => error.kind(),
    }
}

/// The error that Node throws, with its `code`, `syscall` and `path`.
pub fn failed(call: &str, path: &str, to: Option<&str>, error: &io::Error, context: &mut Context) -> JsError {
    let (code, number, words) = match kind_of_error(error) {
        io::ErrorKind::NotFound => ("ENOENT", -2, "no such file or directory"),
        io::ErrorKind::AlreadyExists => ("EEXIST", -17, "file already exists"),
        io::ErrorKind::IsADirectory => ("EISDIR", -21, "illegal operation on a directory"),
        io::ErrorKind::NotADirectory => ("ENOTDIR", -20, "not a directory"),
        io::ErrorKind::DirectoryNotEmpty => ("ENOTEMPTY", -39, "directory not empty"),
        io::ErrorKind::PermissionDenied => ("EACCES", -13, "permission denied"),
        io::ErrorKind::ReadOnlyFilesystem => ("EROFS", -30, "read-only file system"),
        io::ErrorKind::CrossesDevices => ("EXDEV", -18, "cross-device link not permitted"),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ("ENOSPC", -28, "no space left on device"),
        io::ErrorKind::InvalidFilename => ("ENAMETOOLONG", -36, "name too long"),
        io::ErrorKind::InvalidInput => ("EINVAL", -22, "invalid argument"),
        _ => ("EIO", -5, "i/o error"),
    };
    let place = match (call, to) {
        ("read", _) => String::new(),
        (_, Some(to)) => format!(" '{path}' -> '{to}'"),
        (_, None) => format!(" '{path}'"),
    };
    let words = if code == "EIO" { error.to_string() } else { words.to_owned() };
    let object = JsNativeError::error().with_message(format!("{code}: {words}, {call}{place}")).into_opaque(context);
    let path = (call != "read").then(|| ("path", string(path)));
    let properties = [("errno", JsValue::from(number)), ("code", string(code)), ("syscall", string(call))];
    for (name, value) in properties.into_iter().chain(path) {
        // A plain object takes every property.
        let _ = object.set(JsString::from(name), value, false, context);
    }
    if let Some(to) = to {
        let _ = object.set(js_string!("dest"), string(to), false, context);
    }
    JsError::from_opaque(object.into())
}
