//! Follows a path through both layers. Links are followed here, so that the system follows none.

use super::Overlay;
use super::base::FileState;
use super::lower::{DIRECTORY, is_dir, kind, missing, stat_at};
use super::mark::{LayerMark, ORIGIN, SHARED, UpperEntry};
use crate::effect::files::FileLabels;
use crate::effect::label::LabelId;
use crate::effect::undo::is_of_layer;
use rustix::fs::{FileType, Mode, Stat, openat, readlinkat};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Links that a path may lead through, as on Linux.
const MAX_LINKS: usize = 40;

/// A directory as its user sees it: in the upper layer, in the folder, or both.
#[derive(Debug, Clone)]
pub(super) struct MergedDir {
    /// Its name in the directory above it; empty for the root.
    pub(super) name: OsString,
    pub(super) upper: Option<Arc<OwnedFd>>,
    /// Its path in the folder. `None` if the folder lacks it.
    pub(super) lower: Option<PathBuf>,
    /// The folder's directory, if the walk has opened it.
    pub(super) lower_dir: Option<Arc<OwnedFd>>,
}

/// An entry of a merged directory.
#[derive(Debug, Clone)]
pub(super) enum MergedEntry {
    /// It does not exist; whether the folder's entry is deleted.
    Nothing { is_deleted: bool },
    /// In the upper layer.
    Upper(Stat),
    /// In the folder. The upper layer has no entry, or a mark.
    Lower(LowerEntry),
}

/// An entry whose content is in the folder.
#[derive(Debug, Clone)]
pub(super) struct LowerEntry {
    pub(super) stat: Stat,
    /// The state of the folder's own entry, if it is another one.
    pub(super) original: FileState,
    /// Below the folder.
    pub(super) path: PathBuf,
    /// Whether a mark in the upper layer names it.
    pub(super) is_marked: bool,
    /// Its name among the [`SHARED`] files, if the file was changed under another name.
    pub(super) shared: Option<OsString>,
    /// The directory that contains it, if the walk has opened that.
    pub(super) dir: Option<Arc<OwnedFd>>,
}

impl MergedEntry {
    pub(super) fn stat(&self) -> Option<&Stat> {
        match self {
            Self::Nothing { .. } => None,
            Self::Upper(stat) | Self::Lower(LowerEntry { stat, .. }) => Some(stat),
        }
    }

    pub(super) fn is_dir(&self) -> bool {
        self.stat().is_some_and(is_dir)
    }
}

/// The end of a path.
#[derive(Debug)]
pub(super) struct Spot {
    /// The directories on the way, from the root to the last one.
    pub(super) dirs: Vec<MergedDir>,
    /// The entry in the last of them. `None` if the path names a directory in another way, such as `.`.
    pub(super) entry: Option<(OsString, MergedEntry)>,
}

impl Spot {
    /// The path from the root, without links.
    pub(super) fn path(&self) -> PathBuf {
        let mut path: PathBuf = self.dirs.iter().map(|dir| &dir.name).collect();
        if let Some((name, _)) = &self.entry {
            path.push(name);
        }
        path
    }
}

/// The labels of the names and links on the way.
#[derive(Debug)]
pub(super) struct SeenLabels<'a> {
    labels: Option<&'a FileLabels>,
    pub(super) label: LabelId,
}

impl<'a> SeenLabels<'a> {
    pub(super) fn new(labels: Option<&'a FileLabels>) -> Self {
        Self { labels: labels.filter(|labels| !labels.is_empty()), label: LabelId::default() }
    }

    fn name(&mut self, overlay: &Overlay, dir: &MergedDir, name: &OsStr) {
        if let Some(labels) = self.labels {
            self.label = self.label.join(overlay.name_label(labels, dir, name));
        }
    }

    fn link(&mut self, found: &MergedEntry) {
        if let (Some(labels), Some(stat)) = (self.labels, found.stat()) {
            self.label = self.label.join(labels.of_stat(stat));
        }
    }
}

impl Overlay {
    pub(super) fn root_dir(&self) -> MergedDir {
        MergedDir {
            name: OsString::new(),
            upper: Some(self.upper.clone()),
            lower: Some(PathBuf::new()),
            lower_dir: None,
        }
    }

    /// Walks a path that begins in the directory at `base`, which contains no link. Guests cannot leave that directory. `seen`
    /// gets the labels of the names and links on the way, also if the way ends early; the last name is not among them.
    pub(super) fn walk(&self, base: &Path, path: &OsStr, follows: bool, seen: &mut SeenLabels<'_>) -> io::Result<Spot> {
        let mut dirs = vec![self.root_dir()];
        let names: Vec<&OsStr> = base.iter().collect();
        for (at, name) in names.iter().enumerate() {
            if self.open_below(&mut dirs, &names[at..]) {
                break;
            }
            let next = self.enter(&dirs, name)?.ok_or_else(missing)?;
            dirs.push(next);
        }
        let pinned = dirs.len();
        let (mut path, mut follows) = (path.as_bytes(), follows);
        if path.first() == Some(&b'/') {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let mut is_to_be_dir = false;
        while let Some(shorter) = path.strip_suffix(b"/").or_else(|| path.strip_suffix(b"/.")) {
            (path, follows, is_to_be_dir) = (shorter, true, true);
        }
        let mut rest = parts(path);
        let mut links = 0;
        loop {
            self.skip_below(&mut dirs, &mut rest, seen);
            let Some(part) = rest.pop() else { return Ok(Spot { dirs, entry: None }) };
            if part == ".." {
                if dirs.len() == pinned {
                    return Err(if links > 0 { missing() } else { io::ErrorKind::PermissionDenied.into() });
                }
                dirs.pop();
                continue;
            }
            let dir = last(&dirs)?;
            let found = self.find(dir, &part)?;
            let is_last = rest.is_empty();
            let is_link = found.stat().is_some_and(|stat| kind(stat) == FileType::Symlink);
            if is_link && (follows || !is_last) {
                seen.name(self, dir, &part);
                seen.link(&found);
                links += 1;
                let target = self.read_link(dir, &part, &found)?;
                if links > MAX_LINKS {
                    return Err(rustix::io::Errno::LOOP.into());
                }
                // A link out of the folder has no target, like a link whose target is missing.
                if target.first() == Some(&b'/') {
                    return Err(missing());
                }
                if is_last && target.ends_with(b"/") {
                    (follows, is_to_be_dir) = (true, true);
                }
                rest.extend(parts(&target));
                continue;
            }
            if is_last {
                if is_to_be_dir && found.stat().is_some() && !found.is_dir() {
                    return Err(io::ErrorKind::NotADirectory.into());
                }
                return Ok(Spot { dirs, entry: Some((part, found)) });
            }
            seen.name(self, dir, &part);
            match self.enter_found(&dirs, &part, &found)? {
                Some(next) => dirs.push(next),
                None if found.stat().is_some() => return Err(io::ErrorKind::NotADirectory.into()),
                None => return Err(io::ErrorKind::NotFound.into()),
            }
        }
    }

    /// Below a directory that only the folder has, all directories up to the last part are opened at once, if none of them is a
    /// link.
    fn skip_below(&self, dirs: &mut Vec<MergedDir>, rest: &mut Vec<OsString>, seen: &mut SeenLabels<'_>) {
        // Each name of shared files has a label.
        if self.is_shared() || rest.iter().any(|part| part == "..") {
            return;
        }
        let from = dirs.len() - 1;
        let names: Vec<&OsStr> = rest.iter().skip(1).rev().map(OsString::as_os_str).collect();
        if self.open_below(dirs, &names) {
            seen.name(self, &dirs[from], names[0]);
            rest.truncate(1);
        }
    }

    /// Opens nested directories at once, if only the folder has the first one and none is a link. Returns whether it did.
    fn open_below(&self, dirs: &mut Vec<MergedDir>, names: &[&OsStr]) -> bool {
        let Some(MergedDir { upper: Some(upper), lower: Some(lower), .. }) = dirs.last() else { return false };
        let Some(first) = names.first().filter(|_| !names.iter().any(|name| is_of_layer(name))) else { return false };
        if !matches!(stat_at(upper, first), Ok(None)) {
            return false;
        }
        let mut at = lower.clone();
        let below = names.iter().fold(at.clone(), |path, name| path.join(name));
        let Ok(opened) = self.lower.open_dir(&below) else { return false };
        for name in names {
            at.push(name);
            dirs.push(MergedDir { name: (*name).to_owned(), upper: None, lower: Some(at.clone()), lower_dir: None });
        }
        if let Some(last) = dirs.last_mut() {
            last.lower_dir = Some(Arc::new(opened));
        }
        true
    }

    /// The entry of this name in a directory.
    pub(super) fn find(&self, dir: &MergedDir, name: &OsStr) -> io::Result<MergedEntry> {
        if is_of_layer(name) {
            return Ok(MergedEntry::Nothing { is_deleted: false });
        }
        if let Some(upper) = &dir.upper {
            match UpperEntry::find(upper, name)? {
                UpperEntry::Missing => {}
                UpperEntry::Plain(stat) => return Ok(MergedEntry::Upper(stat)),
                UpperEntry::Marked(LayerMark::From(path)) => {
                    return Ok(match self.lower.stat(&path)? {
                        Some(stat) => MergedEntry::Lower(self.lower_entry(stat, path, true)),
                        // Somebody has deleted it in the folder since.
                        None => MergedEntry::Nothing { is_deleted: true },
                    });
                }
                UpperEntry::Marked(..) => return Ok(MergedEntry::Nothing { is_deleted: true }),
            }
        }
        let Some(lower) = &dir.lower else { return Ok(MergedEntry::Nothing { is_deleted: false }) };
        let path = lower.join(name);
        let found = match &dir.lower_dir {
            Some(opened) => stat_at(opened, name)?,
            None => self.lower.stat(&path)?,
        };
        Ok(match found {
            Some(stat) => {
                let entry = self.lower_entry(stat, path, false);
                MergedEntry::Lower(LowerEntry { dir: dir.lower_dir.clone(), ..entry })
            }
            None => MergedEntry::Nothing { is_deleted: false },
        })
    }

    /// Opens the directory of this name below the last of `dirs`. Returns `None` if it does not exist.
    pub(super) fn enter(&self, dirs: &[MergedDir], name: &OsStr) -> io::Result<Option<MergedDir>> {
        let found = self.find(last(dirs)?, name)?;
        self.enter_found(dirs, name, &found)
    }

    fn enter_found(&self, dirs: &[MergedDir], name: &OsStr, found: &MergedEntry) -> io::Result<Option<MergedDir>> {
        let dir = last(dirs)?;
        Ok(match found {
            MergedEntry::Upper(stat) if is_dir(stat) => {
                let Some(above) = &dir.upper else { return Ok(None) };
                let upper: OwnedFd = openat(above, name, DIRECTORY, Mode::empty())?;
                let lower = self.origin(&upper, dir.lower.as_deref(), name)?;
                Some(MergedDir { name: name.to_owned(), upper: Some(Arc::new(upper)), lower, lower_dir: None })
            }
            MergedEntry::Lower(entry) if is_dir(&entry.stat) => {
                Some(MergedDir { name: name.to_owned(), upper: None, lower: Some(entry.path.clone()), lower_dir: None })
            }
            _ => None,
        })
    }

    /// The directory of the folder that one of the upper layer extends.
    fn origin(&self, upper: &OwnedFd, above: Option<&Path>, name: &OsStr) -> io::Result<Option<PathBuf>> {
        let path = match LayerMark::read(upper, OsStr::new(ORIGIN))? {
            Some(LayerMark::From(path)) => path,
            Some(_) => return Ok(None),
            None => match above {
                Some(above) => above.join(name),
                None => return Ok(None),
            },
        };
        // The folder may have another entry there by now.
        Ok(self.lower.stat(&path)?.filter(is_dir).map(|_| path))
    }

    pub(super) fn read_link(&self, dir: &MergedDir, name: &OsStr, found: &MergedEntry) -> io::Result<Vec<u8>> {
        match (found, &dir.upper) {
            (MergedEntry::Lower(entry), _) => self.lower.read_link(&entry.path),
            (MergedEntry::Upper(_), Some(upper)) => Ok(readlinkat(upper, name, Vec::new())?.into_bytes()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Whether a mark refers to the folder's own file. If that was changed under another of its names, it does not.
    pub(super) fn is_unchanged(&self, path: &Path) -> io::Result<bool> {
        let stat = self.lower.stat(path)?;
        Ok(stat.is_none_or(|stat| self.lower_entry(stat, path.to_owned(), true).shared.is_none()))
    }

    pub(super) fn lower_entry(&self, stat: Stat, path: PathBuf, is_marked: bool) -> LowerEntry {
        let shared = shared_name(&stat).and_then(|name| {
            let found = stat_at(self.shared_dir()?, &name).ok().flatten()?;
            Some((name, found))
        });
        match shared {
            Some((name, found)) => LowerEntry {
                stat: found,
                original: FileState::from_stat(&stat),
                path,
                is_marked,
                shared: Some(name),
                dir: None,
            },
            None => {
                LowerEntry { stat, original: FileState::from_stat(&stat), path, is_marked, shared: None, dir: None }
            }
        }
    }

    /// The directory of [`SHARED`] files, if there is one.
    pub(super) fn shared_dir(&self) -> Option<OwnedFd> {
        openat(&self.upper, SHARED, DIRECTORY, Mode::empty()).ok()
    }
}

/// The name among the [`SHARED`] files of a file that has several names in the folder.
pub(super) fn shared_name(stat: &Stat) -> Option<OsString> {
    let is_shared = kind(stat) == FileType::RegularFile && stat.st_nlink > 1;
    is_shared.then(|| format!("{}-{}", stat.st_dev, stat.st_ino).into())
}

pub(super) fn last(dirs: &[MergedDir]) -> io::Result<&MergedDir> {
    dirs.last().ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// The names of a path, the last one first.
fn parts(path: &[u8]) -> Vec<OsString> {
    let parts = path.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b"."));
    parts.rev().map(|part| OsString::from_vec(part.to_vec())).collect()
}
