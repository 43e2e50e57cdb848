//! The file tests of `test`. WASI knows neither owners nor modes, so most answers are what the shell itself could do.

use std::fs::{self, File, OpenOptions};
use std::io::Read;

use brush_parser::ast::UnaryPredicate;

use crate::path;

/// Devices that the host offers under names that are in no directory.
const DEVICES: [&str; 3] = ["/dev/null", "/dev/zero", "/dev/urandom"];

pub fn is(cwd: &str, predicate: &UnaryPredicate, operand: &str) -> bool {
    use UnaryPredicate as Is;
    // An empty name is not a file; joined to the directory it would be the directory.
    if operand.is_empty() {
        return false;
    }
    if DEVICES.contains(&operand) {
        return matches!(
            predicate,
            Is::FileExists
                | Is::FileExistsAndIsCharSpecialFile
                | Is::FileExistsAndIsReadable
                | Is::FileExistsAndIsWritable
        );
    }
    let path = path::absolute(cwd, operand);
    if let Is::FileExistsAndIsSymlink = predicate {
        return fs::symlink_metadata(&path).is_ok_and(|data| data.is_symlink());
    }
    let Ok(data) = fs::metadata(&path) else { return false };
    match predicate {
        Is::FileExists
        | Is::FileExistsAndIsReadable
        | Is::FileExistsAndOwnedByEffectiveUserId
        | Is::FileExistsAndOwnedByEffectiveGroupId => true,
        Is::FileExistsAndIsDir => data.is_dir(),
        Is::FileExistsAndIsRegularFile => data.is_file(),
        Is::FileExistsAndIsNotZeroLength => data.len() > 0,
        // Nothing is ever made in `/` itself.
        Is::FileExistsAndIsWritable => {
            data.is_dir() && path != "/" || OpenOptions::new().write(true).open(&path).is_ok()
        }
        Is::FileExistsAndIsExecutable => data.is_dir() || is_program(&path) || is_executable(&path),
        Is::FileExistsAndModifiedSinceLastRead => match (data.modified(), data.accessed()) {
            (Ok(modified), Ok(accessed)) => modified > accessed,
            _ => false,
        },
        // Devices, sockets, pipes, and modes that no file has here.
        _ => false,
    }
}

/// Scripts and components can be started whatever their permissions are.
fn is_program(path: &str) -> bool {
    let mut start = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read(&mut start));
    read.is_ok_and(|count| start[..count].starts_with(b"#!") || start == *b"\0asm")
}

/// Whether anybody has the permission.
#[cfg(target_os = "wasi")]
fn is_executable(path: &str) -> bool {
    crate::bindings::kiso::exec::spawn::permissions(path, true).is_ok_and(|bits| bits & 0o111 != 0)
}

#[cfg(not(target_os = "wasi"))]
fn is_executable(path: &str) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|data| data.permissions().mode() & 0o111 != 0)
}

/// Also if only the first exists.
pub fn is_newer(cwd: &str, first: &str, second: &str) -> bool {
    let modified = |name: &str| fs::metadata(path::absolute(cwd, name)).and_then(|data| data.modified()).ok();
    match (modified(first), modified(second)) {
        (Some(first), Some(second)) => first > second,
        (Some(_), None) => true,
        _ => false,
    }
}

/// Whether two names lead to one file. Hard links are not seen: WASI does not tell.
pub fn is_same(cwd: &str, first: &str, second: &str) -> bool {
    let physical = |name: &str| path::physical(&path::absolute(cwd, name));
    match (physical(first), physical(second)) {
        (Some(first), Some(second)) => first == second,
        _ => false,
    }
}
