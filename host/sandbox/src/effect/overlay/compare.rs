//! Compares the upper layer with the folder, entry by entry.

use super::Overlay;
use super::base::FileState;
use super::difference::{EntryKind, EntryLook, FolderChange, FolderChangeKind, FolderDifference, find_repositories};
use super::lower::{is_dir, is_missing, kind, missing};
use super::mark::{LayerMark, ORIGIN, UpperEntry};
use super::secret_file::is_secret;
use super::walk::{MergedDir, MergedEntry, SeenLabels, last, shared_name};
use crate::effect::files::FileLabels;
use crate::effect::label::LabelId;
use crate::effect::undo::is_of_layer;
use rustix::fs::{FileType, Stat, openat};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Entries of the folder that are counted below a directory that is deleted, and that are searched for further names of a file.
const MAX_COUNTED: u64 = 1_000_000;

/// Changes of one difference.
const MAX_CHANGES: usize = 1_000_000;

/// The entry of the folder that has the same name as one of the upper layer.
struct Natural {
    path: PathBuf,
    /// `None` also if it was moved away.
    before: Option<Stat>,
    collision: Option<&'static str>,
}

/// The findings of a walk of the upper layer.
struct Walk<'a> {
    overlay: &'a Overlay,
    labels: &'a FileLabels,
    changes: Vec<FolderChange>,
    unchanged: BTreeMap<u64, PathBuf>,
    /// Paths of the folder from which something was moved away. They are empty now.
    sources: BTreeSet<PathBuf>,
    /// Upper files that are copies of files with several names.
    shared: BTreeMap<OsString, BTreeSet<PathBuf>>,
}

impl Overlay {
    /// Compares both. The caller holds the session's lock.
    pub fn difference(&self, labels: &FileLabels) -> io::Result<FolderDifference> {
        let mut sources = BTreeSet::new();
        self.move_sources(&mut vec![self.root_dir()], &mut sources)?;
        let mut walk = Walk {
            overlay: self,
            labels,
            changes: Vec::new(),
            unchanged: BTreeMap::new(),
            sources,
            shared: BTreeMap::new(),
        };
        walk.below(&mut vec![self.root_dir()], false)?;
        walk.other_names()?;
        let mut changes = walk.changes;
        changes
            .sort_by(|one, other| one.path.cmp(&other.path).then_with(|| other.is_deletion().cmp(&one.is_deletion())));
        let repositories = find_repositories(self, &mut changes)?;
        Ok(FolderDifference { changes, repositories, unchanged: walk.unchanged })
    }

    /// The paths of the folder that marks in the upper layer name, elsewhere than at these paths.
    fn move_sources(&self, dirs: &mut Vec<MergedDir>, sources: &mut BTreeSet<PathBuf>) -> io::Result<()> {
        let dir = last(dirs)?.clone();
        let Some(upper) = &dir.upper else { return Ok(()) };
        for entry in rustix::fs::Dir::read_from(&**upper)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if matches!(name.as_bytes(), b"." | b"..") || is_of_layer(name) {
                continue;
            }
            let natural = dir.lower.as_ref().map(|lower| lower.join(name));
            match UpperEntry::find(&**upper, name)? {
                UpperEntry::Marked(LayerMark::From(path))
                    if natural.as_ref() != Some(&path) && self.is_unchanged(&path)? =>
                {
                    sources.insert(path);
                }
                UpperEntry::Plain(stat) if is_dir(&stat) => {
                    let Some(next) = self.enter(dirs, name)? else { continue };
                    if let Some(upper) = &next.upper
                        && let Some(LayerMark::From(path)) = LayerMark::read(&**upper, OsStr::new(ORIGIN))?
                        && natural.as_ref() != Some(&path)
                    {
                        sources.insert(path);
                    }
                    dirs.push(next);
                    let done = self.move_sources(dirs, sources);
                    dirs.pop();
                    done?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Opens an entry of the session's side of the difference for reading, if it is a file.
    pub fn open_after(&self, change: &FolderChange) -> io::Result<File> {
        self.open_merged(&change.path)
    }

    /// Opens a file in the session's version.
    pub(super) fn open_merged(&self, path: &Path) -> io::Result<File> {
        let spot = self.walk(Path::new(""), path.as_os_str(), false, &mut SeenLabels::new(None))?;
        self.open_found(&spot)
    }

    /// Opens the folder's side of a change, if it is a file.
    pub fn open_before(&self, change: &FolderChange) -> io::Result<File> {
        self.lower.open_file(change.lower.as_deref().ok_or_else(missing)?)
    }

    /// The state of an entry of the folder when its change began. `None` if it is not known, `Some(None)` if the entry did not
    /// exist.
    fn base(&self, path: &Path) -> Option<Option<FileState>> {
        self.bases.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get(path)
    }

    /// The reason why the folder's entry at a path differs from that at the beginning of its change.
    pub(super) fn collision(&self, path: &Path, found: Option<&Stat>) -> Option<&'static str> {
        match (self.base(path), found) {
            (None | Some(None), None) => None,
            // An entry of the folder that was not seen before must not be hidden.
            (None | Some(None), Some(_)) => Some("was made in the folder since"),
            (Some(Some(_)), None) => Some("was deleted in the folder since"),
            (Some(Some(base)), Some(found)) => {
                (!base.is_same(&FileState::from_stat(found))).then_some("was changed in the folder since")
            }
        }
    }
}

impl Walk<'_> {
    /// Compares each entry of the upper layer in the last of `dirs`. In a directory that replaced another one, missing names of
    /// the folder are deleted.
    fn below(&mut self, dirs: &mut Vec<MergedDir>, is_replacement: bool) -> io::Result<()> {
        let dir = last(dirs)?.clone();
        let Some(upper) = dir.upper.clone() else { return Ok(()) };
        let base: PathBuf = dirs.iter().map(|dir| &dir.name).collect();
        let mut names = BTreeSet::new();
        for entry in rustix::fs::Dir::read_from(&*upper)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if !matches!(name.as_bytes(), b"." | b"..") && !is_of_layer(name) {
                names.insert(name.to_owned());
            }
        }
        for name in &names {
            self.entry(dirs, &base, &dir, name)?;
        }
        if let Some(lower) = dir.lower.as_ref().filter(|_| is_replacement) {
            for entry in rustix::fs::Dir::read_from(self.overlay.lower.open_dir(lower)?)? {
                let entry = entry?;
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                if matches!(name.as_bytes(), b"." | b"..") || is_of_layer(name) || names.contains(name) {
                    continue;
                }
                let natural = lower.join(name);
                if let Some(stat) = self.overlay.lower.stat(&natural)?.filter(|_| !self.sources.contains(&natural)) {
                    self.deleted(base.join(name), &natural, &stat, LabelId::default())?;
                }
            }
        }
        Ok(())
    }

    fn entry(&mut self, dirs: &mut Vec<MergedDir>, base: &Path, dir: &MergedDir, name: &OsStr) -> io::Result<()> {
        let overlay = self.overlay;
        let Some(upper) = &dir.upper else { return Ok(()) };
        let path = base.join(name);
        let natural = match dir.lower.as_ref().map(|lower| lower.join(name)) {
            Some(path) => {
                let found = overlay.lower.stat(&path)?;
                let collision = overlay.collision(&path, found.as_ref());
                let before = found.filter(|_| !self.sources.contains(&path));
                Some(Natural { path, before, collision })
            }
            None => None,
        };
        let natural = natural.as_ref();
        let label = self.labels.of_slot(upper, name);
        match UpperEntry::find(upper, name)? {
            UpperEntry::Missing => Ok(()),
            // It was moved away and back.
            UpperEntry::Marked(LayerMark::From(from)) if natural.is_some_and(|natural| natural.path == from) => Ok(()),
            UpperEntry::Marked(LayerMark::From(from)) if !overlay.is_unchanged(&from)? => {
                let stat = overlay.lower.stat(&from)?.map(|stat| overlay.lower_entry(stat, from.clone(), true).stat);
                self.replaced(&path, natural, label)?;
                let (look, collision) = (stat.as_ref().map(EntryLook::from_stat), natural.and_then(|n| n.collision));
                self.push(path, FolderChangeKind::Added, (None, look), None, label, collision)
            }
            UpperEntry::Marked(LayerMark::From(from)) => {
                let stat = overlay.lower.stat(&from)?;
                self.replaced(&path, natural, label)?;
                let there = natural.filter(|natural| natural.before.is_some()).and_then(|natural| natural.collision);
                let collision = overlay.collision(&from, stat.as_ref()).or(there);
                let look = stat.as_ref().map(EntryLook::from_stat);
                let lower = from.clone();
                self.push(path, FolderChangeKind::Moved(from), (look, look), Some(&lower), label, collision)
            }
            UpperEntry::Marked(..) => self.replaced(&path, natural, label),
            UpperEntry::Plain(stat) if is_dir(&stat) => {
                let Some(next) = overlay.enter(dirs, name)? else { return Ok(()) };
                self.directory(dirs, next, (path, label, &stat), natural)
            }
            UpperEntry::Plain(stat) => {
                let label = label.join(self.labels.of_stat(&stat));
                self.file((path, upper, name), (&stat, label), natural)
            }
        }
    }

    fn directory(
        &mut self,
        dirs: &mut Vec<MergedDir>,
        mut next: MergedDir,
        (path, label, stat): (PathBuf, LabelId, &Stat),
        natural: Option<&Natural>,
    ) -> io::Result<()> {
        let after = Some(EntryLook::from_stat(stat));
        let has_dir = natural.is_some_and(|natural| natural.before.as_ref().is_some_and(is_dir));
        let mut is_replacement = false;
        let origin = match &next.upper {
            Some(upper) => LayerMark::read(upper, OsStr::new(ORIGIN))?,
            None => None,
        };
        match (origin, natural) {
            (Some(LayerMark::From(from)), natural) if natural.is_none_or(|natural| natural.path != from) => {
                self.replaced(&path, natural, label)?;
                let stat = self.overlay.lower.stat(&from)?;
                let there = natural.filter(|natural| natural.before.is_some()).and_then(|natural| natural.collision);
                let collision = self.overlay.collision(&from, stat.as_ref()).or(there);
                let (lower, looks) = (from.clone(), (stat.as_ref().map(EntryLook::from_stat), after));
                self.push(path, FolderChangeKind::Moved(from), looks, Some(&lower), label, collision)?;
            }
            // Both sides have made a directory.
            (Some(LayerMark::New), Some(natural)) if has_dir && natural.collision.is_some() => {
                self.push(path, FolderChangeKind::Added, (None, after), None, label, natural.collision)?;
            }
            // Compared name by name with the earlier directory.
            (Some(LayerMark::New), Some(natural)) if has_dir => {
                (next.lower, is_replacement) = (Some(natural.path.clone()), true);
            }
            (None | Some(LayerMark::From(_)), _) if has_dir => {}
            _ => {
                self.replaced(&path, natural, label)?;
                let collision =
                    natural.filter(|natural| natural.before.is_none()).and_then(|natural| natural.collision);
                self.push(path, FolderChangeKind::Added, (None, after), None, label, collision)?;
            }
        }
        dirs.push(next);
        let done = self.below(dirs, is_replacement);
        dirs.pop();
        done
    }

    fn file(
        &mut self,
        (path, upper, name): (PathBuf, &std::os::fd::OwnedFd, &OsStr),
        (stat, label): (&Stat, LabelId),
        natural: Option<&Natural>,
    ) -> io::Result<()> {
        let after = EntryLook::from_stat(stat);
        let collision = natural.and_then(|natural| natural.collision);
        let Some((natural, before)) = natural.and_then(|natural| Some((&natural.path, natural.before.as_ref()?)))
        else {
            return self.push(path, FolderChangeKind::Added, (None, Some(after)), None, label, collision);
        };
        if let Some(shared) = shared_name(before) {
            self.shared.entry(shared).or_default().insert(natural.clone());
        }
        if is_dir(before) {
            self.deleted(path.clone(), natural, before, label)?;
            return self.push(path, FolderChangeKind::Added, (None, Some(after)), None, label, collision);
        }
        let is_same = kind(before) == kind(stat)
            && has_mode(stat, before)
            && match kind(stat) {
                FileType::Symlink => {
                    rustix::fs::readlinkat(upper, name, Vec::new())?.into_bytes()
                        == self.overlay.lower.read_link(natural)?
                }
                _ => {
                    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::CLOEXEC;
                    let file = File::from(openat(upper, name, flags, rustix::fs::Mode::empty())?);
                    before.st_size == stat.st_size && is_same_content(&file, &self.overlay.lower.open_file(natural)?)?
                }
            };
        match is_same {
            true => {
                self.unchanged.insert(after.inode, natural.clone());
                Ok(())
            }
            false => {
                let looks = (Some(EntryLook::from_stat(before)), Some(after));
                self.push(path, FolderChangeKind::Changed, looks, Some(natural), label, collision)
            }
        }
    }

    /// The folder's entry of this name is removed.
    fn replaced(&mut self, path: &Path, natural: Option<&Natural>, label: LabelId) -> io::Result<()> {
        match natural.and_then(|natural| Some((&natural.path, natural.before.as_ref()?))) {
            Some((natural, before)) => self.deleted(path.to_owned(), natural, before, label),
            None => Ok(()),
        }
    }

    fn deleted(&mut self, path: PathBuf, natural: &Path, stat: &Stat, label: LabelId) -> io::Result<()> {
        let (files, changed) = if is_dir(stat) { self.count(natural)? } else { (1, None) };
        let collision = self.overlay.collision(natural, Some(stat)).or(changed);
        let looks = (Some(EntryLook::from_stat(stat)), None);
        self.push(path, FolderChangeKind::Deleted, looks, Some(natural), label, collision)?;
        if let Some(change) = self.changes.last_mut() {
            change.files = files;
        }
        Ok(())
    }

    fn push(
        &mut self,
        path: PathBuf,
        kind: FolderChangeKind,
        (before, after): (Option<EntryLook>, Option<EntryLook>),
        lower: Option<&Path>,
        label: LabelId,
        collision: Option<&'static str>,
    ) -> io::Result<()> {
        if self.changes.len() >= MAX_CHANGES {
            return Err(io::Error::other(format!("there are more than {MAX_CHANGES} changes")));
        }
        let label = (*label.label()).clone();
        let lower = lower.map(Path::to_owned).filter(|_| before.is_some());
        let is_file = before.is_some_and(|before| before.kind == EntryKind::File);
        let is_secret =
            lower.as_ref().is_some_and(|lower| is_file && is_secret(lower, || self.overlay.lower.open_file(lower)));
        self.changes.push(FolderChange {
            path,
            kind,
            before,
            after,
            files: 0,
            label,
            is_secret,
            lower,
            collision,
            repository: None,
            part: None,
        });
        Ok(())
    }

    /// Counts files and links below a deleted directory of the folder. Each was deleted separately before, so an unknown one was
    /// added since.
    fn count(&self, path: &Path) -> io::Result<(u64, Option<&'static str>)> {
        let (mut files, mut seen, mut pending) = (0, 0, vec![path.to_owned()]);
        let mut changed = None;
        while let Some(path) = pending.pop() {
            let dir = match self.overlay.lower.open_dir(&path) {
                Err(error) if is_missing(&error) => continue,
                dir => dir?,
            };
            for entry in rustix::fs::Dir::read_from(dir)? {
                let entry = entry?;
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                if matches!(name.as_bytes(), b"." | b"..") {
                    continue;
                }
                let at = path.join(name);
                if self.sources.contains(&at) {
                    continue;
                }
                seen += 1;
                let Some(stat) = self.overlay.lower.stat(&at)? else { continue };
                changed =
                    changed.or(self.overlay.collision(&at, Some(&stat)).map(|_| "has changed in the folder since"));
                match is_dir(&stat) {
                    true => pending.push(at),
                    false => files += 1,
                }
            }
            if seen > MAX_COUNTED {
                changed = changed.or(Some("has more entries than can be compared"));
                break;
            }
        }
        Ok((files, changed))
    }

    /// Adds the other names of files that were changed under one name.
    fn other_names(&mut self) -> io::Result<()> {
        let Some(dir) = self.overlay.shared_dir() else { return Ok(()) };
        let mut wanted = BTreeMap::new();
        for entry in rustix::fs::Dir::read_from(&dir)? {
            let name = entry?.file_name().to_bytes().to_vec();
            let name = OsStr::from_bytes(&name).to_owned();
            if !matches!(name.as_bytes(), b"." | b"..") {
                wanted.insert(name.clone(), self.shared.remove(&name).unwrap_or_default());
            }
        }
        let (mut seen, mut pending) = (0, vec![PathBuf::new()]);
        while let Some(path) = pending.pop().filter(|_| !wanted.is_empty()) {
            if seen > MAX_COUNTED {
                return Err(io::Error::other(
                    "the folder has too many entries to find all names of a file that was changed",
                ));
            }
            for entry in rustix::fs::Dir::read_from(self.overlay.lower.open_dir(&path)?)? {
                let entry = entry?;
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                if matches!(name.as_bytes(), b"." | b"..") || is_of_layer(name) {
                    continue;
                }
                seen += 1;
                let at = path.join(name);
                let Some(stat) = self.overlay.lower.stat(&at)? else { continue };
                if is_dir(&stat) {
                    pending.push(at);
                    continue;
                }
                let Some(shared) = shared_name(&stat) else { continue };
                if wanted.get(&shared).is_none_or(|known| known.contains(&at)) {
                    continue;
                }
                self.other_name(&at, &stat)?;
            }
        }
        Ok(())
    }

    /// A name that the upper layer lacks, of a file that it has a copy of.
    fn other_name(&mut self, at: &Path, before: &Stat) -> io::Result<()> {
        // The walk fails if the path is hidden by now.
        let Ok(spot) = self.overlay.walk(Path::new(""), at.as_os_str(), false, &mut SeenLabels::new(None)) else {
            return Ok(());
        };
        let Some((_, MergedEntry::Lower(entry))) = &spot.entry else { return Ok(()) };
        if entry.shared.is_none() || entry.path != at {
            return Ok(());
        }
        if entry.stat.st_size == before.st_size
            && is_same_content(&self.overlay.open_found(&spot)?, &self.overlay.lower.open_file(at)?)?
        {
            self.unchanged.insert(EntryLook::from_stat(&entry.stat).inode, at.to_owned());
            return Ok(());
        }
        let known = self.overlay.base(at).is_some();
        let collision = self.overlay.collision(at, Some(before)).filter(|_| known);
        let label = self.labels.of_stat(&entry.stat);
        let looks = (Some(EntryLook::from_stat(before)), Some(EntryLook::from_stat(&entry.stat)));
        self.push(at.to_owned(), FolderChangeKind::Changed, looks, Some(at), label, collision)
    }
}

/// Whether permissions are those of the original. The owner may always write to a copy.
// The types differ between systems.
#[allow(clippy::useless_conversion)]
pub(super) fn has_mode(copy: &Stat, original: &Stat) -> bool {
    let bits = u32::from(super::raise::owner_bits(original).bits());
    kind(copy) == FileType::Symlink || u32::from(copy.st_mode) & 0o7777 == (u32::from(original.st_mode) & 0o7777) | bits
}

fn is_same_content(one: &File, other: &File) -> io::Result<bool> {
    let (mut one, mut other) = (io::BufReader::with_capacity(BLOCK, one), io::BufReader::with_capacity(BLOCK, other));
    let (mut first, mut second) = (vec![0; BLOCK], vec![0; BLOCK]);
    loop {
        let read = one.read(&mut first)?;
        if read == 0 {
            return Ok(other.read(&mut second)? == 0);
        }
        match other.read_exact(&mut second[..read]) {
            Ok(()) if first[..read] == second[..read] => {}
            Ok(()) => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            Err(error) => return Err(error),
        }
    }
}

const BLOCK: usize = 64 << 10;
