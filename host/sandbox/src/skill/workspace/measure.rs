//! Measures a directory that guests write to at the same time.

use super::structure::enter;
use crate::engine::limits::{Budget, Limit, LimitHit, MAX_LEVELS};
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use rustix::io::Errno;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::rc::Rc;

/// The size of an entry besides its bytes: a block of most file systems.
pub(super) const ENTRY_BYTES: u64 = 4 << 10;

/// The size of a directory with everything below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    pub bytes: u64,
    pub entries: u64,
}

/// The reason why the size is not known. Then nothing can be written, but everything can be deleted.
#[derive(Debug)]
pub(super) enum MeasureError {
    /// Guests cannot make such a tree.
    TooDeep,
    Io(io::Error),
}

impl MeasureError {
    pub(super) fn hit(self, budget: &Budget) -> LimitHit {
        match self {
            MeasureError::TooDeep => budget.hit(Limit::Depth),
            MeasureError::Io(error) => {
                tracing::warn!(%error, "skill.workspace cannot be measured");
                LimitHit { value: error.to_string(), ..budget.hit(Limit::Unmeasured) }
            }
        }
    }
}

impl From<io::Error> for MeasureError {
    fn from(error: io::Error) -> Self {
        MeasureError::Io(error)
    }
}

/// Bytes and entries below a directory, without following links; zero if it does not exist. Stops early after more entries than
/// `most`.
pub(super) fn measure(dir: &Path, most: u64) -> Result<Extent, MeasureError> {
    let (mut bytes, mut entries) = (0u64, 0u64);
    let root = match Dir::open_ambient_dir(dir, ambient_authority()) {
        Ok(root) => Rc::new(root),
        Err(error) if is_gone(&error) => return Ok(Extent { bytes, entries }),
        Err(error) => return Err(error.into()),
    };
    // A directory stays open with its parent, so that a name is looked up where it was read. This takes one handle per level.
    let mut pending = vec![(root, None::<OsString>, 0usize)];
    while let Some((parent, name, depth)) = pending.pop() {
        // One level more than guests see: scratch directories are in a directory that guests do not see.
        if depth > MAX_LEVELS + 1 {
            return Err(MeasureError::TooDeep);
        }
        let dir = match name {
            Some(name) => match enter(&parent, name) {
                Ok(dir) => Rc::new(dir),
                Err(error) if is_gone(&error) => continue,
                Err(error) => return Err(error.into()),
            },
            None => parent,
        };
        for entry in dir.entries()? {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) if is_gone(&error) => break,
                Err(error) => return Err(error.into()),
            };
            entries += 1;
            bytes = bytes.saturating_add(ENTRY_BYTES);
            let kind = match entry.file_type() {
                Ok(kind) => kind,
                Err(error) if is_gone(&error) => continue,
                Err(error) => return Err(error.into()),
            };
            if kind.is_dir() {
                pending.push((dir.clone(), Some(entry.file_name()), depth + 1));
            } else if kind.is_file() {
                bytes = bytes.saturating_add(entry.metadata().map_or(0, |m| m.len()));
            }
        }
        if entries > most {
            break;
        }
    }
    Ok(Extent { bytes, entries })
}

/// Whether an entry was deleted or replaced since its name was read. Entries that a person has closed to kiso do not count for a
/// guest either.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::PermissionDenied)
        || error.raw_os_error() == Some(Errno::LOOP.raw_os_error())
}
