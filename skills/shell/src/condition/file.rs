//! What `test` asks about files. WASI knows neither owners nor modes, so the answers are what the shell itself could do.

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use brush_parser::ast::UnaryPredicate;

/// How many links in a row are followed, as on Linux.
const MAX_LINKS: usize = 40;

/// Devices that the host offers under names that are in no directory.
const DEVICES: [&str; 3] = ["/dev/null", "/dev/zero", "/dev/urandom"];

pub fn is(cwd: &str, predicate: &UnaryPredicate, operand: &str) -> bool {
    use UnaryPredicate as Is;
    // An empty name is no file; joined to the directory it would be the directory.
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
    let path = Path::new(cwd).join(operand);
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
        Is::FileExistsAndIsWritable => data.is_dir() || OpenOptions::new().write(true).open(&path).is_ok(),
        Is::FileExistsAndIsExecutable => data.is_dir() || is_program(&path),
        Is::FileExistsAndModifiedSinceLastRead => match (data.modified(), data.accessed()) {
            (Ok(modified), Ok(accessed)) => modified > accessed,
            _ => false,
        },
        // Devices, sockets, pipes, and modes that no file has here.
        _ => false,
    }
}

/// What could be started: without modes only the content tells.
fn is_program(path: &Path) -> bool {
    let mut start = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read(&mut start));
    read.is_ok_and(|count| start[..count].starts_with(b"#!") || start == *b"\0asm")
}

/// Also if only the first exists.
pub fn is_newer(cwd: &str, first: &str, second: &str) -> bool {
    let modified = |name: &str| fs::metadata(Path::new(cwd).join(name)).and_then(|data| data.modified()).ok();
    match (modified(first), modified(second)) {
        (Some(first), Some(second)) => first > second,
        (Some(_), None) => true,
        _ => false,
    }
}

/// Whether two names lead to one file. Hard links are not seen: WASI does not tell.
pub fn is_same(cwd: &str, first: &str, second: &str) -> bool {
    match (resolved(cwd, first), resolved(cwd, second)) {
        (Some(first), Some(second)) => first == second,
        _ => false,
    }
}

/// The path without links, `.` and `..`; nothing if there is no file.
fn resolved(cwd: &str, name: &str) -> Option<PathBuf> {
    let mut links = 0;
    let mut open: Vec<PathBuf> = parts(&Path::new(cwd).join(name));
    let mut path = PathBuf::from("/");
    while let Some(part) = open.pop() {
        if part.as_os_str() == ".." {
            path.pop();
            continue;
        }
        path.push(&part);
        if let Ok(target) = fs::read_link(&path) {
            links += 1;
            if links > MAX_LINKS {
                return None;
            }
            path.pop();
            if target.is_absolute() {
                path = PathBuf::from("/");
            }
            open.append(&mut parts(&target));
        }
    }
    fs::metadata(&path).ok().map(|_| path)
}

/// The names in a path, the last first.
fn parts(path: &Path) -> Vec<PathBuf> {
    let part = |component: Component| match component {
        Component::Normal(name) => Some(PathBuf::from(name)),
        Component::ParentDir => Some(PathBuf::from("..")),
        _ => None,
    };
    path.components().rev().filter_map(part).collect()
}
