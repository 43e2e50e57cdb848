//! Bytes and entries that a call may add to the workspace, counted while they are written.
//!
//! A file counts with its length, every file and directory with [`ENTRY_BYTES`] besides, so that a million empty
//! files are not free. What a call deletes or overwrites is credited when the next call measures the workspace again.

use crate::skill::limits::{Budget, HitCell, Limit, LimitHit};
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// What an entry costs beside its bytes: a block of most file systems.
const ENTRY_BYTES: u64 = 4 << 10;

/// Deeper trees are not measured: each level holds a file handle open.
const MAX_DEPTH: usize = 400;

/// What a workspace that cannot be measured counts as: more than any limit, and far from overflow.
const FULL: u64 = u64::MAX / 4;

/// What a session's workspace holds, shared by all calls of the session that are running. Measured when the first of
/// them writes: most only read.
#[derive(Debug)]
pub struct Usage {
    work: PathBuf,
    measured: OnceLock<()>,
    bytes: AtomicU64,
    entries: AtomicU64,
}

impl Usage {
    /// Of a workspace that is measured later.
    pub fn of(work: &Path) -> Self {
        Self { work: work.to_owned(), measured: OnceLock::new(), bytes: AtomicU64::new(0), entries: AtomicU64::new(0) }
    }

    fn measure(&self, most_files: u64) {
        self.measured.get_or_init(|| {
            let (bytes, entries) = walk(&self.work, most_files).unwrap_or_else(|error| {
                tracing::warn!(work = %self.work.display(), %error, "skill.workspace cannot be measured");
                (FULL, 0)
            });
            self.bytes.fetch_add(bytes, Relaxed);
            self.entries.fetch_add(entries, Relaxed);
        });
    }
}

/// Bytes and entries below a workspace, without following links. Stops early once there are more entries than any call
/// may have.
fn walk(work: &Path, most_files: u64) -> io::Result<(u64, u64)> {
    let (mut bytes, mut entries) = (0u64, 0u64);
    let root = Rc::new(Dir::open_ambient_dir(work, ambient_authority())?);
    let mut pending = vec![(root.clone(), None::<std::ffi::OsString>, 0usize)];
    while let Some((parent, name, depth)) = pending.pop() {
        if depth > MAX_DEPTH {
            // Not measured, so taken for full: nothing can be written, but everything can still be deleted.
            bytes = FULL;
            continue;
        }
        let dir = match name {
            Some(name) => Rc::new(parent.open_dir(name)?),
            None => parent,
        };
        for entry in dir.entries()? {
            let entry = entry?;
            entries += 1;
            bytes = bytes.saturating_add(ENTRY_BYTES);
            let kind = entry.file_type()?;
            if kind.is_dir() {
                pending.push((dir.clone(), Some(entry.file_name()), depth + 1));
            } else if kind.is_file() {
                bytes = bytes.saturating_add(entry.metadata().map_or(0, |m| m.len()));
            }
        }
        if entries > most_files {
            bytes = FULL;
            break;
        }
    }
    Ok((bytes, entries))
}

/// The quota of one call.
#[derive(Debug)]
pub struct Quota {
    budget: Budget,
    hit: HitCell,
    written: AtomicU64,
    usage: Arc<Usage>,
}

impl Quota {
    pub fn new(budget: Budget, hit: HitCell, usage: Arc<Usage>) -> Self {
        Self { budget, hit, written: AtomicU64::new(0), usage }
    }

    /// Bytes that this call has written.
    pub fn written(&self) -> u64 {
        self.written.load(Relaxed)
    }

    /// Charges bytes that are about to be written, or that a file is about to grow by.
    pub fn write(&self, bytes: u64) -> Result<(), LimitHit> {
        self.usage.measure(self.budget.files);
        // No file system holds more; and what is added must never wrap.
        let bytes = bytes.min(FULL);
        let written = self.written.fetch_add(bytes, Relaxed).saturating_add(bytes);
        let held = self.usage.bytes.fetch_add(bytes, Relaxed).saturating_add(bytes);
        if written > self.budget.write_mib << 20 {
            return Err(self.over(Limit::CallWrites, bytes));
        }
        if held > self.budget.workspace_mib << 20 {
            return Err(self.over(Limit::Workspace, bytes));
        }
        Ok(())
    }

    /// Charges a file, directory or link that is about to be made.
    pub fn entry(&self) -> Result<(), LimitHit> {
        self.usage.measure(self.budget.files);
        let entries = self.usage.entries.fetch_add(1, Relaxed).saturating_add(1);
        if entries > self.budget.files {
            self.usage.entries.fetch_sub(1, Relaxed);
            return Err(self.hit.set(self.budget.hit(Limit::Files)));
        }
        let charged = self.write(ENTRY_BYTES);
        if charged.is_err() {
            self.usage.entries.fetch_sub(1, Relaxed);
        }
        charged
    }

    /// Takes an entry back that was charged and not made.
    pub fn give_back_entry(&self) {
        self.usage.entries.fetch_sub(1, Relaxed);
        self.usage.bytes.fetch_sub(ENTRY_BYTES, Relaxed);
        self.written.fetch_sub(ENTRY_BYTES, Relaxed);
    }

    /// Gives the session back what a file took that is not there any more.
    pub fn credit_file(&self, bytes: u64) {
        let less = |count: &AtomicU64, by: u64| {
            let _ = count.fetch_update(Relaxed, Relaxed, |now| Some(now.saturating_sub(by)));
        };
        less(&self.usage.bytes, bytes + ENTRY_BYTES);
        less(&self.usage.entries, 1);
    }

    /// Takes back what will not be written after all, so that one refused write does not stop the session's other calls.
    fn over(&self, limit: Limit, bytes: u64) -> LimitHit {
        self.written.fetch_sub(bytes, Relaxed);
        self.usage.bytes.fetch_sub(bytes, Relaxed);
        self.hit.set(self.budget.hit(limit))
    }
}
