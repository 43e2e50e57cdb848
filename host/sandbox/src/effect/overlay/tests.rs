//! Random programs over an overlay and over a plain copy of its folder give the same trees; accepting gives the folder that tree, and undoing that
//! gives it back.

use super::operation::{FileAccess, GuestPath, OpenSlot};
use super::raise::LayerWriter;
use super::{FolderSelection, Overlay};
use crate::effect::files::FileLabels;
use crate::effect::label::LabelId;
use crate::effect::undo::{Transaction, UndoRefusal};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use kiso_base::home::{Home, SessionFolder, SessionName};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, linkat, mkdirat, openat, renameat, symlinkat, unlinkat};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// Programs of the test. The long lane has 10,000.
fn programs() -> u64 {
    std::env::var("KISO_OVERLAY_PROGRAMS").ok().and_then(|text| text.parse().ok()).unwrap_or(400)
}

/// A writer without quota, undo and labels.
#[derive(Clone)]
pub(super) struct Unchecked;

#[derive(Debug)]
pub(super) struct Refusal(#[expect(dead_code, reason = "it is printed")] String);

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<rustix::io::Errno> for Refusal {
    fn from(error: rustix::io::Errno) -> Self {
        Self(error.to_string())
    }
}

impl From<UndoRefusal> for Refusal {
    fn from(refusal: UndoRefusal) -> Self {
        Self(refusal.to_string())
    }
}

impl LayerWriter for Unchecked {
    type Error = Refusal;
    type Charge = ();

    fn charge(&self, _: u64) -> Result<(), Refusal> {
        Ok(())
    }

    fn transaction(&self) -> Option<&Arc<Transaction>> {
        None
    }

    fn labels(&self) -> Option<&Arc<FileLabels>> {
        None
    }
}

#[derive(Debug, Clone)]
pub(super) enum Action {
    /// Adds text to a file. It may be emptied first, and is made if it is missing.
    Write {
        path: String,
        text: String,
        empties: bool,
        is_first: bool,
    },
    MakeDir(String),
    Unlink(String),
    RemoveDir(String),
    Rename(String, String),
    Symlink {
        target: String,
        path: String,
    },
    Link(String, String),
    /// Removes a directory with everything below it.
    RemoveTree(String),
}

/// Small numbers, the same for the same seed.
pub(super) struct Numbers(pub(super) u64);

impl Numbers {
    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    fn path(&mut self) -> String {
        // Some names differ only in case, or in their normal form.
        const NAMES: [&str; 7] = ["a", "b", "c", "A", "d", "\u{e9}", "e\u{301}"];
        let depth = 1 + self.below(3);
        (0..depth).map(|_| NAMES[self.below(NAMES.len())]).collect::<Vec<_>>().join("/")
    }

    pub(super) fn action(&mut self, number: usize) -> Action {
        let path = self.path();
        match self.below(16) {
            0..=3 => Action::Write {
                path,
                text: format!("{number};"),
                empties: self.below(2) == 0,
                is_first: self.below(5) == 0,
            },
            4 | 5 => Action::MakeDir(path),
            6 | 7 => Action::Unlink(path),
            8 => Action::RemoveDir(path),
            9..=12 => Action::Rename(path, self.path()),
            13 => Action::Symlink { target: ["a", "../b", "b/a", "nowhere"][self.below(4)].to_owned(), path },
            14 => Action::Link(path, self.path()),
            _ => Action::RemoveTree(path),
        }
    }
}

/// Makes the folder of a program.
pub(super) fn plant(root: &Path, numbers: &mut Numbers) {
    fs::create_dir(root).unwrap();
    for number in 0..10 {
        let path = root.join(numbers.path());
        let _ = fs::create_dir_all(path.parent().unwrap());
        match numbers.below(5) {
            0 => drop(fs::create_dir_all(&path)),
            1 => drop(symlink(["a", "../a", "b"][numbers.below(3)], &path)),
            2 => {
                let other = root.join(numbers.path());
                if fs::symlink_metadata(&other).is_ok_and(|found| found.is_file()) {
                    drop(fs::hard_link(other, &path));
                }
            }
            _ => {
                if fs::symlink_metadata(&path).is_err() && fs::write(&path, format!("first {number}")).is_ok() {
                    fs::set_permissions(&path, fs::Permissions::from_mode([0o644, 0o600, 0o755][numbers.below(3)]))
                        .unwrap();
                }
            }
        }
    }
}

/// Copies a tree with its links.
pub(super) fn copy(from: &Path, to: &Path, inodes: &mut BTreeMap<u64, PathBuf>) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (found, target) = (entry.metadata().unwrap(), to.join(entry.file_name()));
        if found.is_dir() {
            copy(&entry.path(), &target, inodes);
        } else if found.is_symlink() {
            symlink(fs::read_link(entry.path()).unwrap(), target).unwrap();
        } else if let Some(first) = inodes.get(&found.ino()) {
            fs::hard_link(first, target).unwrap();
        } else {
            fs::copy(entry.path(), &target).unwrap();
            inodes.insert(found.ino(), target);
        }
    }
}

/// A tree: kind, content or target, permissions of files, and the first path of the same file.
pub(super) type Shown = BTreeMap<PathBuf, (char, Vec<u8>, u32, PathBuf)>;

pub(super) fn shown(root: &Path) -> Shown {
    fn below(root: &Path, path: &Path, inodes: &mut BTreeMap<u64, PathBuf>, into: &mut Shown) {
        let mut names: Vec<_> =
            fs::read_dir(root.join(path)).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        for name in names {
            let at = path.join(name);
            let found = fs::symlink_metadata(root.join(&at)).unwrap();
            if found.is_dir() {
                into.insert(at.clone(), ('d', Vec::new(), 0, PathBuf::new()));
                below(root, &at, inodes, into);
            } else if found.is_symlink() {
                let target = fs::read_link(root.join(&at)).unwrap();
                into.insert(at, ('l', target.into_os_string().into_encoded_bytes(), 0, PathBuf::new()));
            } else {
                let first = inodes.entry(found.ino()).or_insert_with(|| at.clone()).clone();
                into.insert(at.clone(), ('f', fs::read(root.join(&at)).unwrap(), found.mode() & 0o777, first));
            }
        }
    }
    let mut into = Shown::new();
    below(root, Path::new(""), &mut BTreeMap::new(), &mut into);
    into
}

/// The same of what tasks see.
fn shown_merged(overlay: &Overlay) -> Shown {
    fn below(overlay: &Overlay, path: &Path, inodes: &mut BTreeMap<(u64, u64), PathBuf>, into: &mut Shown) {
        for (name, kind) in overlay.names(path).unwrap() {
            let at = path.join(&name);
            let look = GuestPath { base: Path::new(""), path: at.as_os_str(), follows: false };
            let slot = overlay.look(look, None, &mut LabelId::default()).unwrap();
            match kind {
                FileType::Directory => {
                    into.insert(at.clone(), ('d', Vec::new(), 0, PathBuf::new()));
                    below(overlay, &at, inodes, into);
                }
                FileType::Symlink => {
                    let target = rustix::fs::readlinkat(&slot.dir, &slot.name, Vec::new()).unwrap();
                    into.insert(at, ('l', target.into_bytes(), 0, PathBuf::new()));
                }
                _ => {
                    let file = openat(&slot.dir, &slot.name, OFlags::RDONLY, Mode::empty()).unwrap();
                    let mut file = File::from(file);
                    let found = file.metadata().unwrap();
                    let mut text = Vec::new();
                    file.read_to_end(&mut text).unwrap();
                    let first = inodes.entry((found.dev(), found.ino())).or_insert_with(|| at.clone()).clone();
                    into.insert(at.clone(), ('f', text, found.mode() & 0o777, first));
                }
            }
        }
    }
    let mut into = Shown::new();
    below(overlay, Path::new(""), &mut BTreeMap::new(), &mut into);
    into
}

/// Runs the action in a plain directory.
pub(super) fn plainly(dir: &Dir, action: &Action) -> io::Result<()> {
    match action {
        Action::Write { path, text, empties, is_first } => {
            let mut options = OpenOptions::new();
            options.write(true).create(!is_first).create_new(*is_first).truncate(*empties).append(!empties);
            dir.open_with(path, &options)?.write_all(text.as_bytes())
        }
        Action::MakeDir(path) => dir.create_dir(path),
        Action::Unlink(path) => match dir.symlink_metadata(path)?.is_dir() {
            true => Err(rustix::io::Errno::ISDIR.into()),
            false => dir.remove_file(path),
        },
        Action::RemoveDir(path) => dir.remove_dir(path),
        Action::Rename(from, to) => dir.rename(from, dir, to),
        Action::Symlink { target, path } => dir.symlink(target, path),
        Action::Link(from, to) => match dir.symlink_metadata(from)?.is_symlink() {
            true => Err(io::ErrorKind::Unsupported.into()),
            false => dir.hard_link(from, dir, to),
        },
        Action::RemoveTree(path) => match dir.symlink_metadata(path)?.is_dir() {
            true => dir.remove_dir_all(path),
            false => Err(rustix::io::Errno::NOTDIR.into()),
        },
    }
}

/// Runs the action in an overlay, as a guest's operation does.
pub(super) fn in_overlay(overlay: &Overlay, action: &Action) -> Result<(), Refusal> {
    let (writer, label) = (Unchecked, &mut LabelId::default());
    fn guest_path(path: &str, follows: bool) -> GuestPath<'_> {
        GuestPath { base: Path::new(""), path: OsStr::new(path), follows }
    }
    match action {
        Action::Write { path, text, empties, is_first } => {
            let access = FileAccess { writes: true, makes: true, is_first: *is_first, empties: *empties };
            // If the file must be new, a link at its path counts as an existing entry.
            let OpenSlot::Write(slot) = overlay.open_slot(guest_path(path, !is_first), access, &writer, label)? else {
                return Err(Refusal("a directory".to_owned()));
            };
            let mut flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW;
            flags |= if *empties { OFlags::TRUNC } else { OFlags::APPEND };
            if *is_first {
                flags |= OFlags::EXCL;
            }
            let opened = openat(&slot.dir, &slot.name, flags, Mode::from_raw_mode(0o644));
            if !slot.is_upper {
                overlay.made(&slot, opened.is_ok(), &writer)?;
            }
            Ok(File::from(opened?).write_all(text.as_bytes())?)
        }
        Action::MakeDir(path) => {
            let slot = overlay.make_slot(guest_path(path, false), &writer, label)?;
            let made = mkdirat(&slot.dir, &slot.name, Mode::from_raw_mode(0o755));
            if !slot.is_upper {
                overlay.made(&slot, made.is_ok(), &writer)?;
            }
            Ok(made?)
        }
        Action::Symlink { target, path } => {
            let slot = overlay.make_slot(guest_path(path, false), &writer, label)?;
            let made = symlinkat(target, &slot.dir, &slot.name);
            if !slot.is_upper {
                overlay.made(&slot, made.is_ok(), &writer)?;
            }
            Ok(made?)
        }
        Action::Unlink(path) => {
            let slot = overlay.unlink(guest_path(path, false), &writer, label)?;
            if slot.is_upper {
                unlinkat(&slot.dir, &slot.name, AtFlags::empty())?;
            }
            overlay.removed(&slot, &writer)
        }
        Action::RemoveDir(path) => {
            let slot = overlay.remove_dir(guest_path(path, false), &writer, label)?;
            if slot.is_upper {
                unlinkat(&slot.dir, &slot.name, AtFlags::REMOVEDIR)?;
            }
            overlay.removed(&slot, &writer)
        }
        Action::Rename(from, to) => {
            let Some(slots) = overlay.move_slots(guest_path(from, false), guest_path(to, false), &writer, label)?
            else {
                return Ok(());
            };
            let moved = renameat(&slots.from.dir, &slots.from.name, &slots.to.dir, &slots.to.name);
            overlay.moved(&slots, moved.is_ok(), &writer)?;
            Ok(moved?)
        }
        Action::Link(from, to) => {
            let is_link = overlay.look(guest_path(from, false), None, label)?;
            let found = rustix::fs::statat(&is_link.dir, &is_link.name, AtFlags::SYMLINK_NOFOLLOW)?;
            if FileType::from_raw_mode(found.st_mode) == FileType::Symlink {
                return Err(Refusal("a link".to_owned()));
            }
            let source = overlay.link_from(guest_path(from, false), &writer, label)?;
            let slot = overlay.make_slot(guest_path(to, false), &writer, label)?;
            let made = linkat(&source.dir, &source.name, &slot.dir, &slot.name, AtFlags::empty());
            if !slot.is_upper {
                overlay.made(&slot, made.is_ok(), &writer)?;
            }
            Ok(made?)
        }
        Action::RemoveTree(path) => {
            let slot = overlay.look(guest_path(path, false), None, label)?;
            let found = rustix::fs::statat(&slot.dir, &slot.name, AtFlags::SYMLINK_NOFOLLOW)?;
            if FileType::from_raw_mode(found.st_mode) != FileType::Directory {
                return Err(Refusal("not a directory".to_owned()));
            }
            let spot = overlay.walk(Path::new(""), OsStr::new(path), false, &mut super::walk::SeenLabels::new(None))?;
            for (name, kind) in overlay.names(&spot.path())? {
                let inner = format!("{path}/{}", name.to_str().unwrap());
                let action = match kind {
                    FileType::Directory => Action::RemoveTree(inner),
                    _ => Action::Unlink(inner),
                };
                in_overlay(overlay, &action)?;
            }
            in_overlay(overlay, &Action::RemoveDir(path.clone()))
        }
    }
}

pub(super) struct Stage {
    temp: TempDir,
    home: Home,
    session: SessionName,
}

impl Stage {
    pub(super) fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let home = Home::open(&temp.path().join("home")).unwrap();
        let session = SessionName::parse("s").unwrap();
        home.create_session(&session).unwrap();
        Self { temp, home, session }
    }

    pub(super) fn folder(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }

    pub(super) fn open(&self, name: &str) -> Overlay {
        let folder = SessionFolder::new(&self.home, &self.folder(name), &format!("/{name}"), false).unwrap();
        Overlay::open(&self.home, &self.session, &folder).unwrap()
    }

    pub(super) fn labels(&self) -> Arc<FileLabels> {
        FileLabels::of_session(&self.home, &self.session)
    }
}

#[test]
fn programs_give_the_same_trees_as_over_a_plain_copy() {
    let stage = Stage::new();
    let first = std::env::var("KISO_OVERLAY_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    for seed in first..first + programs() {
        let (mut numbers, name) = (Numbers(seed), format!("p{seed}"));
        let folder = stage.folder(&name);
        plant(&folder, &mut numbers);
        let plain = stage.folder(&format!("{name}-plain"));
        copy(&folder, &plain, &mut BTreeMap::new());
        let before = shown(&folder);
        let dir = Dir::open_ambient_dir(&plain, ambient_authority()).unwrap();
        let overlay = stage.open(&name);
        let mut program = Vec::new();
        for number in 0..4 + numbers.below(16) {
            let action = numbers.action(number);
            program.push(action.clone());
            let (expected, did) = (plainly(&dir, &action), in_overlay(&overlay, &action));
            assert_eq!(
                expected.is_ok(),
                did.is_ok(),
                "program {seed}: {expected:?}, {did:?}\n{before:#?}\n{program:#?}"
            );
            let (expected, merged) = (shown(&plain), shown_merged(&overlay));
            assert_eq!(merged, expected, "program {seed}\n{before:#?}\n{program:#?}");
        }
        assert_eq!(shown(&folder), before, "program {seed} changed the folder itself");
        let difference = overlay.difference(&stage.labels()).unwrap();
        let words = || format!("program {seed}\n{before:#?}\n{program:#?}\n{:#?}", difference.changes);
        if difference.changes.is_empty() {
            assert_eq!(shown(&plain), before, "{}", words());
        } else {
            let accepted = overlay.accept(&difference, &FolderSelection::All);
            let accepted = accepted.unwrap_or_else(|error| panic!("{error}: {}", words()));
            assert_eq!(shown(&folder), shown(&plain), "{}", words());
            assert!(overlay.difference(&stage.labels()).unwrap().changes.is_empty(), "{}", words());
            overlay.undo_acceptance(accepted.number, false).unwrap_or_else(|error| panic!("{error}: {}", words()));
            assert_eq!(shown(&folder), before, "undone: {}", words());
            overlay.redo_acceptance(accepted.number).unwrap_or_else(|error| panic!("{error}: {}", words()));
            assert_eq!(shown(&folder), shown(&plain), "redone: {}", words());
        }
        fs::remove_dir_all(&folder).unwrap();
        fs::remove_dir_all(&plain).unwrap();
    }
}
