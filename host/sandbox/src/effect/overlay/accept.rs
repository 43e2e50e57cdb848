//! Brings a difference into the folder: all of it or nothing, whatever comes between.
//!
//! ```text
//! stage: new files are copied beside the folder ──▶ journal, on disk ──▶ steps: renames only ──▶ done ──▶ the upper layer is cleared
//!                                                        └── a crash or an error: the steps are taken back
//! ```
//!
//! The staging directory keeps what was replaced and deleted, so an acceptance can be undone, and done again.

mod journal;

use self::journal::{
    AcceptHeader, AcceptLog, AcceptRecord, AcceptState, AcceptStep, Stage, append, number, staged_name,
};
use super::Overlay;
use super::base::FileState;
use super::difference::{EntryKind, FolderChange, FolderChangeKind, FolderDifference, FolderSelection, has_mode};
use super::lower::{DIRECTORY, kind};
use super::mark::{Mark, ORIGIN};
use super::raise::fill;
use super::walk::{Found, SeenLabels, last};
use crate::effect::undo::SessionPath;
use kiso_base::clock::now_ms;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fchmod, fchown, fstat, openat, symlinkat, unlinkat};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Why a difference was not accepted. The folder is as it was.
#[derive(Debug, thiserror::Error)]
pub enum AcceptError {
    #[error("there is nothing to accept")]
    Nothing,
    /// A line for each path.
    #[error("the folder has changed since: {}", .0.join("; "))]
    Collision(Vec<String>),
    #[error("{0}")]
    Dependent(String),
    #[error("there is no such acceptance, or it cannot be {0}")]
    Missing(&'static str),
    #[error("the folder cannot be changed: {0}; it is as it was")]
    Io(#[from] io::Error),
}

/// A difference that was accepted, and can be undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acceptance {
    pub number: u64,
    /// When it was accepted, undone or redone, in milliseconds since 1970.
    pub changed_ms: i64,
    pub changes: usize,
    pub is_undone: bool,
}

/// An acceptance whose steps are to be done.
struct PendingAcceptance {
    id: u64,
    header: AcceptHeader,
    steps: Vec<AcceptStep>,
}

/// The directory of acceptances, in the session's directory of the folder.
const ACCEPTED: &str = "accepted";

/// Begins the name of the staging directory, where that has to be in the folder itself.
const STAGE: &str = ".kiso~accepted";

impl Overlay {
    /// Brings the chosen changes of a difference into the folder. The caller holds the session's lock since the difference was made.
    pub fn accept(
        &self,
        difference: &FolderDifference,
        selection: &FolderSelection,
    ) -> Result<Acceptance, AcceptError> {
        let PendingAcceptance { id, header, steps } = self.begin(difference, selection)?;
        let log = self.accept_log(id);
        let mut stage = self.stage(&header)?;
        if let Err(error) = self.run(&mut stage, &steps) {
            self.take_back(&mut stage, &steps)?;
            self.forget(id, &header)?;
            return Err(error.into());
        }
        let after = self.states_after(&steps)?;
        append(&log, &[AcceptRecord::After(after), AcceptRecord::State(AcceptState::Done)])?;
        self.clear(&steps, header.is_all)?;
        append(&log, &[AcceptRecord::State(AcceptState::Cleared)])?;
        Ok(Acceptance { number: id, changed_ms: now_ms(), changes: header.changes, is_undone: false })
    }

    /// Puts the new files and the journal on disk. Nothing in the folder has changed yet.
    fn begin(
        &self,
        difference: &FolderDifference,
        selection: &FolderSelection,
    ) -> Result<PendingAcceptance, AcceptError> {
        let chosen = choose(difference, selection)?;
        let id = self.accept_logs()?.last().map_or(1, |id| id + 1);
        let stage_path = self.make_stage(id)?;
        let prepared = self.prepare(&chosen, difference, &stage_path);
        let steps = match prepared {
            Ok(steps) => steps,
            Err(error) => {
                let _ = std::fs::remove_dir_all(&stage_path);
                return Err(error.into());
            }
        };
        let is_all = chosen.len() == difference.changes.len();
        let header =
            AcceptHeader { at_ms: now_ms(), stage: SessionPath::new(&stage_path), changes: chosen.len(), is_all };
        let mut records = vec![AcceptRecord::Begin(header.clone())];
        records.extend(steps.iter().cloned().map(AcceptRecord::Step));
        records.push(AcceptRecord::State(AcceptState::Ready));
        append(&self.accept_log(id), &records)?;
        Ok(PendingAcceptance { id, header, steps })
    }

    /// Drops the chosen changes. They are kept as long as what was accepted.
    pub fn discard(&self, difference: &FolderDifference, selection: &FolderSelection) -> Result<usize, AcceptError> {
        let chosen = choose_any(difference, selection)?;
        if chosen.len() == difference.changes.len() {
            self.empty_upper()?;
            return Ok(chosen.len());
        }
        let mut paths: Vec<_> = chosen.iter().map(|change| change.path.clone()).collect();
        paths.sort_by_key(|path| std::cmp::Reverse(path.iter().count()));
        for path in paths {
            self.drop_upper(&path)?;
        }
        for change in &chosen {
            if let FolderChangeKind::Moved(from) = &change.kind {
                self.drop_upper(from)?;
            }
        }
        Ok(chosen.len())
    }

    /// The acceptances that can be undone or done again, the oldest first.
    pub fn acceptances(&self) -> io::Result<Vec<Acceptance>> {
        let mut all = Vec::new();
        for number in self.accept_logs()? {
            let path = self.accept_log(number);
            if let Some(AcceptLog { header, state: Some(state), .. }) = AcceptLog::read(&path)? {
                let modified = path.metadata()?.modified()?.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
                let changed_ms = i64::try_from(modified.as_millis()).unwrap_or(i64::MAX);
                let is_undone = state == AcceptState::Undone;
                all.push(Acceptance { number, changed_ms, changes: header.changes, is_undone });
            }
        }
        Ok(all)
    }

    /// Puts the folder back as it was before an acceptance. With `force` also where its files have changed since.
    pub fn undo_acceptance(&self, id: u64, force: bool) -> Result<Acceptance, AcceptError> {
        let log = self.read_log(id, "undone", |state| matches!(state, AcceptState::Done | AcceptState::Cleared))?;
        let changed: Vec<String> = if force { Vec::new() } else { self.changed_since(&log)? };
        if !changed.is_empty() {
            return Err(AcceptError::Collision(changed));
        }
        let path = self.accept_log(id);
        append(&path, &[AcceptRecord::State(AcceptState::Undoing)])?;
        let mut stage = self.stage(&log.header)?;
        if let Err(error) = self.take_back(&mut stage, &log.steps) {
            self.run_all(&mut stage, &log.steps);
            append(&path, &[AcceptRecord::State(AcceptState::Cleared)])?;
            return Err(error.into());
        }
        append(&path, &[AcceptRecord::State(AcceptState::Undone)])?;
        Ok(acceptance(id, &log, true))
    }

    /// Accepts again what was undone.
    pub fn redo_acceptance(&self, id: u64) -> Result<Acceptance, AcceptError> {
        let log = self.read_log(id, "redone", |state| state == AcceptState::Undone)?;
        let path = self.accept_log(id);
        append(&path, &[AcceptRecord::State(AcceptState::Redoing)])?;
        let mut stage = self.stage(&log.header)?;
        if let Err(error) = self.run(&mut stage, &log.steps) {
            self.take_back(&mut stage, &log.steps)?;
            append(&path, &[AcceptRecord::State(AcceptState::Undone)])?;
            return Err(error.into());
        }
        let after = self.states_after(&log.steps)?;
        append(&path, &[AcceptRecord::After(after), AcceptRecord::State(AcceptState::Cleared)])?;
        Ok(acceptance(id, &log, false))
    }

    /// Deletes what is kept of acceptances before a time (milliseconds since 1970).
    pub fn sweep_acceptances(&self, before_ms: i64) -> io::Result<()> {
        for id in self.accept_logs()? {
            if let Some(log) = AcceptLog::read(&self.accept_log(id))?
                && log.header.at_ms < before_ms
            {
                self.forget(id, &log.header)?;
            }
        }
        Ok(())
    }

    /// Brings to an end what a process that was killed has left: an acceptance is taken back, unless it was complete.
    pub(super) fn recover(&self) -> io::Result<()> {
        for id in self.accept_logs()? {
            let path = self.accept_log(id);
            let Some(log) = AcceptLog::read(&path)? else {
                std::fs::remove_file(&path)?;
                continue;
            };
            match log.state {
                Some(AcceptState::Cleared | AcceptState::Undone) => {}
                Some(AcceptState::Done) => {
                    self.clear(&log.steps, log.header.is_all)?;
                    append(&path, &[AcceptRecord::State(AcceptState::Cleared)])?;
                }
                Some(AcceptState::Undoing | AcceptState::Redoing) => {
                    let mut stage = self.stage(&log.header)?;
                    self.take_back(&mut stage, &log.steps)?;
                    append(&path, &[AcceptRecord::State(AcceptState::Undone)])?;
                }
                Some(AcceptState::Ready) | None => {
                    if let (Ok(mut stage), Some(_)) = (self.stage(&log.header), log.state) {
                        self.take_back(&mut stage, &log.steps)?;
                    }
                    self.forget(id, &log.header)?;
                }
            }
        }
        Ok(())
    }

    fn read_log(
        &self,
        id: u64,
        verb: &'static str,
        is_usable: impl Fn(AcceptState) -> bool,
    ) -> Result<AcceptLog, AcceptError> {
        let path = self.accept_log(id);
        let log = if path.exists() { AcceptLog::read(&path)? } else { None };
        log.filter(|log| log.state.is_some_and(is_usable)).ok_or(AcceptError::Missing(verb))
    }

    fn accept_log(&self, id: u64) -> PathBuf {
        self.kept.join(ACCEPTED).join(format!("{id}.log"))
    }

    /// The numbers of the journals, in their order.
    fn accept_logs(&self) -> io::Result<Vec<u64>> {
        let entries = match std::fs::read_dir(self.kept.join(ACCEPTED)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut all = Vec::new();
        for entry in entries {
            let name = entry?.file_name();
            all.extend(name.to_str().and_then(|name| name.strip_suffix(".log")?.parse::<u64>().ok()));
        }
        all.sort_unstable();
        Ok(all)
    }

    /// Makes the staging directory: beside the journal, or in the folder where that is on another file system.
    fn make_stage(&self, id: u64) -> io::Result<PathBuf> {
        let accepted = self.kept.join(ACCEPTED);
        std::fs::create_dir_all(&accepted)?;
        let is_near = fstat(File::open(&accepted)?)?.st_dev == fstat(self.lower.root())?.st_dev;
        let session = self.kept.ancestors().nth(2).and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        let path = match is_near {
            true => accepted.join(id.to_string()),
            false => self.lower.path().join(format!("{STAGE}-{session}-{id}")),
        };
        // A crash may have left one without a journal.
        match std::fs::remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        std::fs::create_dir(&path)?;
        Ok(path)
    }

    fn stage(&self, header: &AcceptHeader) -> io::Result<Stage<'_>> {
        let stage = rustix::fs::open(header.stage.as_path(), DIRECTORY, Mode::empty())?;
        Ok(Stage { folder: self.lower.root(), stage, touched: BTreeSet::new() })
    }

    fn forget(&self, id: u64, header: &AcceptHeader) -> io::Result<()> {
        let stage = header.stage.as_path();
        let removed = match stage.starts_with(self.home.path()) {
            true => self.home.remove_tree(stage),
            false => std::fs::remove_dir_all(stage),
        };
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        std::fs::remove_file(self.accept_log(id))
    }

    /// The steps of the changes, with the new files in the staging directory.
    fn prepare(
        &self,
        chosen: &[&FolderChange],
        difference: &FolderDifference,
        stage: &Path,
    ) -> io::Result<Vec<AcceptStep>> {
        let stage_dir = rustix::fs::open(stage, DIRECTORY, Mode::empty())?;
        let mut next = 0;
        let mut number = || {
            next += 1;
            next
        };
        let mut steps = Vec::new();
        let mut moves: Vec<(&Path, &Path)> =
            chosen.iter().filter_map(|change| Some((change.moved_from()?, change.path.as_path()))).collect();
        // What is below something that moves goes first.
        moves.sort_by_key(|(from, _)| std::cmp::Reverse(from.iter().count()));
        let mut staged = BTreeMap::new();
        for (from, to) in moves {
            let before = self.lower.stat(from)?.ok_or(io::ErrorKind::NotFound)?;
            let number = number();
            staged.insert(to, (number, self::number(before.st_ino)));
            let before = FileState::from_stat(&before);
            steps.push(AcceptStep::TakeOut { from: SessionPath::new(from), staged: number, before });
        }
        // Copies of one file of the upper layer are one file in the folder.
        let mut copies: BTreeMap<u64, u64> = BTreeMap::new();
        for change in chosen {
            let path = SessionPath::new(&change.path);
            match (&change.kind, &change.after) {
                (FolderChangeKind::Deleted, _) => {
                    let before = self.state_of(change)?;
                    steps.push(AcceptStep::Remove { path, kept: number(), before });
                }
                (FolderChangeKind::Moved(_), _) => {
                    if let Some((staged, inode)) = staged.get(change.path.as_path()) {
                        steps.push(AcceptStep::Place { staged: *staged, path, inode: *inode });
                    }
                }
                (_, Some(after)) if after.is_dir() => steps.push(AcceptStep::MakeDir { path, mode: after.mode }),
                (_, Some(after)) => {
                    let new = number();
                    let first = copies.get(&after.inode).copied().filter(|_| after.kind == EntryKind::File);
                    let linked = match (first, difference.unchanged.get(&after.inode)) {
                        (Some(first), _) => Some(link(&stage_dir, first, new)?),
                        // Where the file system has no links, a copy has to do.
                        (None, Some(path)) => self.link_existing(path, &stage_dir, new).ok(),
                        (None, None) => None,
                    };
                    let inode = match linked {
                        Some(inode) => inode,
                        None => self.stage_file(change, &stage_dir, new)?,
                    };
                    copies.entry(after.inode).or_insert(new);
                    let before = match change.before {
                        Some(_) => Some(self.state_of(change)?),
                        None => None,
                    };
                    steps.push(AcceptStep::Put { path, new, inode, kept: number(), before });
                }
                (_, None) => {}
            }
        }
        File::from(stage_dir).sync_all()?;
        Ok(steps)
    }

    /// Gives a file of the folder a further name in the staging directory; its inode.
    fn link_existing(&self, path: &Path, stage: &OwnedFd, new: u64) -> io::Result<u64> {
        let dir = self.lower.open_dir(path.parent().unwrap_or(Path::new("")))?;
        let name = path.file_name().unwrap_or_default();
        rustix::fs::linkat(&dir, name, stage, staged_name(new), AtFlags::empty())?;
        Ok(number(rustix::fs::statat(stage, staged_name(new), AtFlags::SYMLINK_NOFOLLOW)?.st_ino))
    }

    /// The folder's entry before a change. That of an entry in a directory that moves is where the directory was.
    fn state_of(&self, change: &FolderChange) -> io::Result<FileState> {
        let stat = self.lower_of(&change.path)?.ok_or(io::ErrorKind::NotFound)?;
        Ok(FileState::from_stat(&stat))
    }

    /// The entry of the folder that a path stands for, whether the upper layer hides it or not.
    fn lower_of(&self, path: &Path) -> io::Result<Option<Stat>> {
        let (parent, name) = (path.parent().unwrap_or(Path::new("")), path.file_name().unwrap_or_default());
        let spot = self.walk(parent, OsStr::new("."), false, &mut SeenLabels::new(None))?;
        let dir = last(&spot.dirs)?;
        // In a directory that took the place of another one, by its own path.
        let lower = dir.lower.as_ref().map_or_else(|| path.to_owned(), |lower| lower.join(name));
        self.lower.stat(&lower)
    }

    /// Copies a file or link of the upper layer into the staging directory; its inode there.
    fn stage_file(&self, change: &FolderChange, stage: &OwnedFd, new: u64) -> io::Result<u64> {
        let spot = self.walk(Path::new(""), change.path.as_os_str(), false, &mut SeenLabels::new(None))?;
        let name = staged_name(new);
        let Some((entry, found)) = &spot.entry else { return Err(io::ErrorKind::NotFound.into()) };
        if found.stat().is_some_and(|stat| kind(stat) == FileType::Symlink) {
            let target = self.read_link(last(&spot.dirs)?, entry, found)?;
            symlinkat(OsStr::from_bytes(&target), stage, &name)?;
            let made = rustix::fs::statat(stage, &name, AtFlags::SYMLINK_NOFOLLOW)?;
            return Ok(number(made.st_ino));
        }
        let from = self.open_found(&spot)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let to = File::from(openat(stage, &name, flags, Mode::RUSR | Mode::WUSR)?);
        fill(&from, &to)?;
        let copy = fstat(&from)?;
        let before = if change.before.is_some() { self.lower_of(&change.path)? } else { None };
        self.take_over(&to, &copy, before.as_ref(), &change.path)?;
        to.sync_all()?;
        Ok(number(fstat(&to)?.st_ino))
    }

    /// Gives a new file the owner, the permissions and the extended attributes of the one that it replaces, and its own time.
    fn take_over(&self, to: &File, copy: &Stat, before: Option<&Stat>, path: &Path) -> io::Result<()> {
        let mut mode = copy.st_mode;
        if let Some(before) = before {
            let made = fstat(to)?;
            if (made.st_uid, made.st_gid) != (before.st_uid, before.st_gid) {
                let (user, group) =
                    (rustix::fs::Uid::from_raw(before.st_uid), rustix::fs::Gid::from_raw(before.st_gid));
                // Only an administrator gives files away; the group may still be possible.
                if fchown(to, Some(user), Some(group)).is_err() {
                    let _ = fchown(to, None, Some(group));
                }
            }
            if has_mode(copy, before) {
                mode = before.st_mode;
            }
            if let Ok(old) = self.lower.open_file(path) {
                copy_attributes(&old, to);
            }
        }
        fchmod(to, Mode::from_raw_mode(mode & 0o7777))?;
        let modified = std::time::UNIX_EPOCH
            + std::time::Duration::new(
                u64::try_from(copy.st_mtime).unwrap_or(0),
                u32::try_from(copy.st_mtime_nsec).unwrap_or(0),
            );
        to.set_modified(modified)
    }

    fn run(&self, stage: &mut Stage<'_>, steps: &[AcceptStep]) -> io::Result<()> {
        steps.iter().try_for_each(|step| stage.apply(step))?;
        stage.sync()
    }

    /// Does what can be done of the steps: after an undo that failed half-way.
    fn run_all(&self, stage: &mut Stage<'_>, steps: &[AcceptStep]) {
        for step in steps {
            let _ = stage.apply(step);
        }
    }

    fn take_back(&self, stage: &mut Stage<'_>, steps: &[AcceptStep]) -> io::Result<()> {
        steps.iter().rev().try_for_each(|step| stage.revert(step))?;
        stage.sync()
    }

    fn states_after(&self, steps: &[AcceptStep]) -> io::Result<Vec<(SessionPath, Option<FileState>)>> {
        let paths: BTreeSet<&SessionPath> = steps
            .iter()
            .map(|step| match step {
                AcceptStep::TakeOut { from: path, .. }
                | AcceptStep::Place { path, .. }
                | AcceptStep::Remove { path, .. }
                | AcceptStep::MakeDir { path, .. }
                | AcceptStep::Put { path, .. } => path,
            })
            .collect();
        let state = |path: &SessionPath| -> io::Result<_> {
            Ok(self.lower.stat(path.as_path())?.map(|stat| FileState::from_stat(&stat)))
        };
        paths.into_iter().map(|path| Ok((path.clone(), state(path)?))).collect()
    }

    /// Paths that somebody has changed since an acceptance, a line each.
    fn changed_since(&self, log: &AcceptLog) -> io::Result<Vec<String>> {
        let mut changed = Vec::new();
        for (path, after) in &log.after {
            let now = self.lower.stat(path.as_path())?.map(|stat| FileState::from_stat(&stat));
            let is_same = match (&now, after) {
                (None, None) => true,
                (Some(now), Some(after)) => now.is_same(after),
                _ => false,
            };
            if !is_same {
                changed.push(format!("{path} was changed since"));
            }
        }
        Ok(changed)
    }

    /// Removes from the upper layer what the folder has now.
    fn clear(&self, steps: &[AcceptStep], is_all: bool) -> io::Result<()> {
        if is_all {
            return self.empty_upper();
        }
        let dirs: Vec<&SessionPath> = steps
            .iter()
            .filter_map(|step| match step {
                AcceptStep::MakeDir { path, .. } | AcceptStep::Place { path, .. } => Some(path),
                _ => None,
            })
            .collect();
        for step in steps {
            match step {
                AcceptStep::Put { path, .. }
                | AcceptStep::Remove { path, .. }
                | AcceptStep::TakeOut { from: path, .. } => {
                    self.drop_upper(path.as_path())?;
                }
                AcceptStep::MakeDir { .. } | AcceptStep::Place { .. } => {}
            }
        }
        dirs.iter().try_for_each(|path| self.drop_upper(path.as_path()))
    }

    /// Empties the upper layer.
    fn empty_upper(&self) -> io::Result<()> {
        for entry in std::fs::read_dir(&self.upper_path)? {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => self.home.remove_tree(&entry.path())?,
                false => std::fs::remove_file(entry.path())?,
            }
        }
        self.changed();
        self.bases.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clear()
    }

    /// Removes a single entry from the upper layer: a file, a mark, or that a directory extends none, or another one, of the folder.
    fn drop_upper(&self, path: &Path) -> io::Result<()> {
        let Ok(spot) = self.walk(Path::new(""), path.as_os_str(), false, &mut SeenLabels::new(None)) else {
            return Ok(());
        };
        let (dir, Some((name, found))) = (last(&spot.dirs)?, &spot.entry) else { return Ok(()) };
        let Some(upper) = &dir.upper else { return Ok(()) };
        self.changed();
        if !matches!(found, Found::Upper(_)) || !found.is_dir() {
            return match unlinkat(&**upper, name, AtFlags::empty()) {
                Err(rustix::io::Errno::NOENT) => Ok(()),
                done => Ok(done?),
            };
        }
        let inner: OwnedFd = openat(&**upper, name, DIRECTORY, Mode::empty())?;
        if Mark::read(&inner, OsStr::new(ORIGIN))?.is_some() {
            unlinkat(&inner, ORIGIN, AtFlags::empty())?;
        }
        // Where nothing else is in it, the folder's alone is left.
        let _ = unlinkat(&**upper, name, AtFlags::REMOVEDIR);
        Ok(())
    }
}

fn acceptance(number: u64, log: &AcceptLog, is_undone: bool) -> Acceptance {
    Acceptance { number, changed_ms: now_ms(), changes: log.header.changes, is_undone }
}

fn choose_any<'a>(
    difference: &'a FolderDifference,
    selection: &FolderSelection,
) -> Result<Vec<&'a FolderChange>, AcceptError> {
    let chosen: Vec<&FolderChange> = difference.changes.iter().filter(|change| selection.contains(change)).collect();
    if chosen.is_empty() { Err(AcceptError::Nothing) } else { Ok(chosen) }
}

/// The chosen changes, with the new directories that they are in. An error if one of them cannot be accepted, or not without another.
fn choose<'a>(
    difference: &'a FolderDifference,
    selection: &FolderSelection,
) -> Result<Vec<&'a FolderChange>, AcceptError> {
    let chosen = choose_any(difference, selection)?;
    let is_above = |change: &FolderChange| {
        let is_dir = change.after.is_some_and(|after| after.is_dir());
        is_dir && chosen.iter().any(|other| other.path.starts_with(&change.path))
    };
    let is_chosen = |change: &FolderChange| selection.contains(change) || is_above(change);
    let all: Vec<&FolderChange> = difference.changes.iter().filter(|change| is_chosen(change)).collect();
    for change in difference.changes.iter().filter(|change| !is_chosen(change)) {
        let takes = |other: &&&FolderChange| match (&other.kind, change.moved_from()) {
            (FolderChangeKind::Deleted, Some(from)) => from.starts_with(&other.path),
            (FolderChangeKind::Moved(source), Some(from)) => from.starts_with(source),
            _ => false,
        };
        if let Some(other) = all.iter().find(takes) {
            let (moved, of) = (change.path.display(), other.path.display());
            return Err(AcceptError::Dependent(format!("{moved} was moved out of {of}; accept both, or all changes")));
        }
    }
    let collisions: Vec<String> =
        all.iter().filter_map(|change| Some(format!("{} {}", change.path.display(), change.collision?))).collect();
    if collisions.is_empty() { Ok(all) } else { Err(AcceptError::Collision(collisions)) }
}

/// Gives a staged file a second name; its inode.
fn link(stage: &OwnedFd, first: u64, new: u64) -> io::Result<u64> {
    rustix::fs::linkat(stage, staged_name(first), stage, staged_name(new), AtFlags::empty())?;
    Ok(number(rustix::fs::statat(stage, staged_name(new), AtFlags::SYMLINK_NOFOLLOW)?.st_ino))
}

/// Copies extended attributes, as far as the file system takes them.
fn copy_attributes(from: &File, to: &File) {
    use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fsetxattr};
    const MOST: usize = 64 << 10;
    let mut names = vec![0; MOST];
    let Ok(length) = flistxattr(from, &mut names[..]) else { return };
    for name in names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let name = OsStr::from_bytes(name);
        let mut value = vec![0; MOST];
        if let Ok(length) = fgetxattr(from, name, &mut value[..]) {
            let _ = fsetxattr(to, name, &value[..length], XattrFlags::empty());
        }
    }
}

#[cfg(test)]
mod tests;
