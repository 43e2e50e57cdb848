//! Takes one change back. The change may have been made or not: for the last change before a crash, this is not known.

use super::bytes::SessionPath;
use super::keep;
use super::log::{EntryLabels, FileChange, LabelledChange, Look};
use super::tree::{DirSlot, Tree, is_nothing, make_dir};
use crate::effect::label::LabelId;
use rustix::fs::{AtFlags, OFlags, RenameFlags, renameat, renameat_with, unlinkat};
use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

/// Records the changes of an undo before they are made, so that it can be taken back in turn.
pub(super) trait Journal {
    /// A file or a link is about to be deleted. Returns whether it is kept, and gone already.
    fn removing(&self, slot: &DirSlot<'_>) -> io::Result<bool>;
    /// An empty directory is about to be deleted.
    fn removing_dir(&self, slot: &DirSlot<'_>) -> io::Result<()>;
    /// A file is about to get another content.
    fn writing(&self, file: &File) -> io::Result<()>;
    /// The place where it keeps a file.
    fn kept(&self, inode: u64) -> Option<SessionPath>;
    /// Any other change.
    fn changing(&self, change: FileChange) -> io::Result<()>;
}

/// The reason to revert a change.
#[derive(Clone, Copy)]
pub(super) enum Reverting<'a> {
    /// Interrupted work is rolled back if the state is as in the log.
    Work,
    /// A person requests it. `is_as_it_was` says that nothing has changed since, according to the plan.
    Undo { journal: &'a dyn Journal, is_as_it_was: bool },
}

impl<'a> Reverting<'a> {
    fn journal(self) -> Option<&'a dyn Journal> {
        match self {
            Self::Work => None,
            Self::Undo { journal, .. } => Some(journal),
        }
    }

    /// Whether nobody else has changed anything since.
    fn is_exact(self) -> bool {
        matches!(self, Self::Work | Self::Undo { is_as_it_was: true, .. })
    }
}

/// Takes a change back and restores the labels of its entries. Returns the reason if it could not be done.
pub(super) fn revert(tree: &Tree, labelled: &LabelledChange, how: Reverting<'_>) -> io::Result<Option<String>> {
    let LabelledChange { change, entries } = labelled;
    let done = take_back(tree, change, entries, how)?;
    if done.is_none() {
        for at in change.paths() {
            if let Some(slot) = slot(tree, at)? {
                tree.label_entry(&slot, at, entries, how.is_exact())?;
            }
        }
    }
    Ok(done)
}

fn take_back(
    tree: &Tree,
    change: &FileChange,
    entries: &[EntryLabels],
    how: Reverting<'_>,
) -> io::Result<Option<String>> {
    let journal = how.journal();
    let done = match change {
        FileChange::Made { at } => remove(tree, at, journal),
        FileChange::Removed { at, kept } => put_back(tree, at, kept, entries, journal),
        FileChange::RemovedDir { at, mode } => make(tree, at, *mode, entries, journal),
        FileChange::Moved { from, to } => move_back(tree, from, to, entries, journal),
        FileChange::Returned { at, from } => match journal {
            // An entry that an undo brought back is removed; the journal keeps it.
            Some(_) => remove(tree, at, journal),
            None => move_back(tree, from, at, entries, None),
        },
        FileChange::Wrote { at, inode, kept } => write_back(tree, at, (*inode, kept), entries, journal),
        FileChange::Grew { at, inode, length, modified, label } => {
            let label = label.as_ref().map(LabelId::from_label).unwrap_or_default();
            cut(tree, at, *inode, (*length, *modified, label), how)
        }
        FileChange::Permitted { at, inode, mode } => permit(tree, at, (*inode, *mode), journal),
        FileChange::Shared { number, accepted, paths } => {
            if let Some(journal) = journal {
                let paths = paths.clone();
                journal.changing(FileChange::Shared { number: *number, accepted: !accepted, paths })?;
            }
            return tree.shared.bring(*number, *accepted, !how.is_exact()).map(|()| None);
        }
    };
    match done {
        // Somebody else has changed this entry; the other changes can still be taken back.
        Err(error) if journal.is_some() && is_theirs(&error) => {
            let path = change.paths().next().map(ToString::to_string).unwrap_or_default();
            Ok(Some(format!("{path}: {error}")))
        }
        done => done,
    }
}

type Done = io::Result<Option<String>>;

/// Whether the cause of an error is the present entry and not the disk.
fn is_theirs(error: &io::Error) -> bool {
    use io::ErrorKind::{
        AlreadyExists, DirectoryNotEmpty, InvalidInput, IsADirectory, NotADirectory, NotFound, PermissionDenied,
    };
    let of_names =
        [AlreadyExists, DirectoryNotEmpty, InvalidInput, IsADirectory, NotADirectory, NotFound, PermissionDenied];
    of_names.contains(&error.kind()) || is_nothing(error)
}

/// The directory of a path; `None` if it does not exist any more.
fn slot<'a>(tree: &Tree, at: &'a SessionPath) -> io::Result<Option<DirSlot<'a>>> {
    match tree.slot(at) {
        Ok(slot) => Ok(Some(slot)),
        Err(error) if is_nothing(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn remove(tree: &Tree, at: &SessionPath, journal: Option<&dyn Journal>) -> Done {
    let Some(slot) = slot(tree, at)? else { return Ok(None) };
    take_away(&slot, at, journal)
}

/// Removes the entry.
fn take_away(slot: &DirSlot<'_>, at: &SessionPath, journal: Option<&dyn Journal>) -> Done {
    match slot.look()? {
        Look::Nothing => return Ok(None),
        Look::Dir { .. } => {
            if let Some(journal) = journal {
                journal.removing_dir(slot)?;
            }
            return match unlinkat(&slot.dir, slot.name, AtFlags::REMOVEDIR).map_err(io::Error::from) {
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                    Ok(Some(format!("{at} stays, because other files are in it")))
                }
                done => done.map(|()| None),
            };
        }
        Look::File { .. } | Look::Other { .. } => {}
    }
    if let Some(journal) = journal
        && journal.removing(slot)?
    {
        return Ok(None);
    }
    unlinkat(&slot.dir, slot.name, AtFlags::empty())?;
    Ok(None)
}

fn put_back(
    tree: &Tree,
    at: &SessionPath,
    kept: &SessionPath,
    entries: &[EntryLabels],
    journal: Option<&dyn Journal>,
) -> Done {
    let Some(from) = slot(tree, kept)? else { return Ok(None) };
    let (Look::File { inode, .. } | Look::Other { inode }) = from.look()? else { return Ok(None) };
    let to = match journal {
        Some(_) => tree.slot_or_make(at, entries)?,
        None => tree.slot(at)?,
    };
    match to.look()? {
        // The entry had just got its second name.
        Look::File { inode: same, .. } | Look::Other { inode: same } if same == inode => {
            unlinkat(&from.dir, from.name, AtFlags::empty())?;
            return Ok(None);
        }
        _ => {}
    }
    if let problem @ Some(_) = take_away(&to, at, journal)? {
        return Ok(problem);
    }
    if let Some(journal) = journal {
        journal.changing(FileChange::Returned { at: at.clone(), from: kept.clone() })?;
    }
    renameat(&from.dir, from.name, &to.dir, to.name)?;
    Ok(None)
}

fn make(tree: &Tree, at: &SessionPath, mode: u32, entries: &[EntryLabels], journal: Option<&dyn Journal>) -> Done {
    let slot = match journal {
        Some(_) => tree.slot_or_make(at, entries)?,
        None => tree.slot(at)?,
    };
    match slot.look()? {
        Look::Nothing => {}
        Look::Dir { .. } => return Ok(None),
        _ => drop(take_away(&slot, at, journal)?),
    }
    if let Some(journal) = journal {
        journal.changing(FileChange::Made { at: at.clone() })?;
    }
    // The labels come first, before the entry can be seen.
    tree.label_entry(&slot, at, entries, false)?;
    make_dir(&slot, mode)?;
    tree.labels.made_at(&slot.dir, slot.name, LabelId::default())?;
    Ok(None)
}

fn move_back(
    tree: &Tree,
    from: &SessionPath,
    to: &SessionPath,
    entries: &[EntryLabels],
    journal: Option<&dyn Journal>,
) -> Done {
    let Some(now) = slot(tree, to)? else { return Ok(None) };
    if now.look()? == Look::Nothing {
        return Ok(None);
    }
    let old = match journal {
        Some(_) => tree.slot_or_make(from, entries)?,
        None => tree.slot(from)?,
    };
    if old.look()? != Look::Nothing {
        return match journal {
            // The entry was not moved yet.
            None => Ok(None),
            Some(_) => Ok(Some(format!("{to} stays, because there is another {from}"))),
        };
    }
    if let Some(journal) = journal {
        journal.changing(FileChange::Moved { from: to.clone(), to: from.clone() })?;
    }
    match renameat_with(&now.dir, now.name, &old.dir, old.name, RenameFlags::NOREPLACE) {
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS | rustix::io::Errno::NOTSUP) => {
            renameat(&now.dir, now.name, &old.dir, old.name)?;
        }
        moved => moved?,
    }
    Ok(None)
}

/// Opens a file for writing, if it is still the same file. A rollback has nothing to do if it is another one.
fn reopen(tree: &Tree, at: &SessionPath, inode: u64, journal: Option<&dyn Journal>) -> io::Result<Option<File>> {
    let file = match tree.open_file(at, OFlags::RDWR) {
        Ok(file) => file,
        // The kept file has come back to its place since, and was perhaps removed again.
        Err(error) if at.is_kept() && is_nothing(&error) => {
            let Some(kept) = journal.and_then(|journal| journal.kept(inode)) else { return Ok(None) };
            tree.open_file(&kept, OFlags::RDWR)?
        }
        Err(error) if journal.is_none() && is_theirs(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let is_it = file.metadata()?.ino() == inode;
    Ok(Some(file).filter(|_| is_it || journal.is_some()))
}

fn write_back(
    tree: &Tree,
    at: &SessionPath,
    (inode, kept): (u64, &SessionPath),
    entries: &[EntryLabels],
    journal: Option<&dyn Journal>,
) -> Done {
    let before = match tree.open_file(kept, OFlags::RDONLY) {
        Ok(before) => before,
        Err(error) if is_nothing(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    if journal.is_some() && at.is_work() && tree.look(at)? == Look::Nothing {
        // Somebody has deleted it. It is made again: its content is worth more than its inode.
        let slot = tree.slot_or_make(at, entries)?;
        if let Some(journal) = journal {
            journal.changing(FileChange::Made { at: at.clone() })?;
        }
        let copy = keep::copy_to(&before, &slot.dir, slot.name)?;
        tree.labels.made(&copy, LabelId::default())?;
        tree.labels.copied(&before, &copy)?;
        return Ok(None);
    }
    let Some(file) = reopen(tree, at, inode, journal)? else { return Ok(None) };
    if let Some(journal) = journal {
        journal.writing(&file)?;
    }
    keep::copy(&before, &file)?;
    tree.labels.copied(&before, &file)?;
    Ok(None)
}

fn permit(tree: &Tree, at: &SessionPath, (inode, mode): (u64, u32), journal: Option<&dyn Journal>) -> Done {
    let Some(file) = reopen(tree, at, inode, journal)? else { return Ok(None) };
    let found = file.metadata()?;
    if let Some(journal) = journal {
        journal.changing(FileChange::Permitted { at: at.clone(), inode: found.ino(), mode: found.mode() & 0o7777 })?;
    }
    file.set_permissions(Permissions::from_mode(mode))?;
    Ok(None)
}

fn cut(
    tree: &Tree,
    at: &SessionPath,
    inode: u64,
    (length, modified, label): (u64, i64, LabelId),
    how: Reverting<'_>,
) -> Done {
    let journal = how.journal();
    let Some(file) = reopen(tree, at, inode, journal)? else { return Ok(None) };
    if file.metadata()?.len() <= length {
        return Ok(None);
    }
    if let Some(journal) = journal {
        journal.writing(&file)?;
    }
    file.set_len(length)?;
    keep::set_modified(&file, modified)?;
    // Others may have written to the rest of the file since.
    let label = if how.is_exact() { label } else { label.join(tree.labels.label_of(&file)) };
    tree.labels.put_back(&file, label)?;
    Ok(None)
}
