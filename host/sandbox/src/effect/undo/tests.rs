//! Random work with the calls that a sandbox makes before each change: undone, redone, and cut off anywhere.

use super::revert::revert;
use super::shelf::UndoEntry;
use super::*;
use crate::effect::overlay::SharedHistory;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

const LIMITS: UndoLimits = UndoLimits { max_bytes: 64 << 20, refuse: false };

/// A home with one session and a filled workspace.
struct Stage {
    _dir: tempfile::TempDir,
    home: Home,
    session: SessionName,
    undo: Undo,
}

impl Stage {
    fn new() -> Stage {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(&dir.path().join("home")).unwrap();
        let session = SessionName::parse("s").unwrap();
        home.create_session(&session).unwrap();
        fs::create_dir(home.session_dir(&session).join("tmp")).unwrap();
        let undo = SharedHistory::undo(home.clone());
        Stage { _dir: dir, home, session, undo }
    }

    fn begin(&self, run: &str, task: usize, seq: u32) -> Guest {
        let origin = Origin { run: run.to_owned(), task, seq, place: 0 };
        let work = self.undo.begin(&self.session, origin, LIMITS).unwrap();
        Guest { root: self.home.session_dir(&self.session), work }
    }

    /// Reads everything again, as a new process does.
    fn reborn(&mut self) {
        self.undo = SharedHistory::undo(self.home.clone());
        self.undo.recover(&self.session).unwrap();
    }

    fn apply(&self, kind: UndoKind) -> Result<UndoResult, UndoError> {
        self.undo.apply(&self.session, kind, &UndoChoice::default(), false, LIMITS)
    }

    fn tree(&self) -> BTreeMap<PathBuf, String> {
        let (mut found, mut inodes) = (BTreeMap::new(), BTreeMap::new());
        walk(&self.home.work_dir(&self.session), Path::new(""), &mut found, &mut inodes);
        found
    }

    fn entries(&self) -> Vec<UndoEntry> {
        self.undo.entries(&self.session).unwrap()
    }
}

fn walk(root: &Path, at: &Path, found: &mut BTreeMap<PathBuf, String>, inodes: &mut BTreeMap<u64, PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(root.join(at)).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    entries.sort();
    for name in entries {
        let path = at.join(name);
        let meta = fs::symlink_metadata(root.join(&path)).unwrap();
        let text = if meta.is_dir() {
            walk(root, &path, found, inodes);
            format!("dir {:o}", meta.mode())
        } else if meta.is_symlink() {
            format!("link to {}", fs::read_link(root.join(&path)).unwrap().display())
        } else {
            let same = inodes.entry(meta.ino()).or_insert_with(|| path.clone()).display().to_string();
            let digest = ring::digest::digest(&ring::digest::SHA256, &fs::read(root.join(&path)).unwrap());
            format!("file {:o} {} as {same}", meta.mode(), data_encoding::HEXLOWER.encode(&digest.as_ref()[..6]))
        };
        found.insert(path, text);
    }
}

/// A guest, with the steps that the sandbox takes before each of its changes.
struct Guest {
    root: PathBuf,
    work: Arc<Transaction>,
}

fn split(path: &Path) -> (File, &OsStr) {
    (File::open(path.parent().unwrap()).unwrap(), path.file_name().unwrap())
}

impl Guest {
    fn path(&self, at: &str) -> PathBuf {
        self.root.join(at)
    }

    /// Whether its directory exists.
    fn is_reachable(&self, at: &str) -> bool {
        self.path(at).parent().unwrap().is_dir()
    }

    fn write(&self, at: &str, text: &str, empties: bool, appends: bool) {
        let path = self.path(at);
        if !self.is_reachable(at) || path.is_dir() || path.is_symlink() {
            return;
        }
        let (dir, name) = split(&path);
        let opening = self.work.opening(&dir, name, empties).unwrap();
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(empties).append(appends).open(&path).unwrap();
        if let Opening::Fresh = opening {
            self.work.opened(&file);
        }
        self.work.writing(&file, appends).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    fn remove(&self, at: &str) {
        let path = self.path(at);
        let Ok(meta) = fs::symlink_metadata(&path) else { return };
        let (dir, name) = split(&path);
        if meta.is_dir() {
            let mut names: Vec<_> = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names.iter().for_each(|name| self.remove(&format!("{at}/{}", name.to_str().unwrap())));
            self.work.removing_dir(&dir, name).unwrap();
            fs::remove_dir(&path).unwrap();
        } else if self.work.removing(&dir, name).unwrap() == RemovedEntry::Delete {
            fs::remove_file(&path).unwrap();
        }
    }

    fn make(&self, at: &str, make: impl FnOnce(&Path) -> std::io::Result<()>) {
        if self.is_reachable(at) {
            let path = self.path(at);
            let (dir, name) = split(&path);
            self.work.making(&dir, name).unwrap();
            let _ = make(&path);
        }
    }

    fn link(&self, from: &str, to: &str) {
        if self.path(from).is_file() && !self.path(from).is_symlink() && self.is_reachable(to) {
            let (from, to) = (self.path(from), self.path(to));
            let ((old, _), (new, name)) = (split(&from), split(&to));
            if self.work.linking(&old, (&new, name)).is_ok() {
                let _ = fs::hard_link(&from, &to);
            }
        }
    }

    fn rename(&self, from: &str, to: &str) {
        if self.is_reachable(from) && self.is_reachable(to) {
            let (from, to) = (self.path(from), self.path(to));
            let ((old, old_name), (new, new_name)) = (split(&from), split(&to));
            self.work.moving((&old, old_name), (&new, new_name)).unwrap();
            let _ = fs::rename(&from, &to);
        }
    }

    fn act(&self, random: &mut Random) {
        let (a, b, x, y, n) = (random.file(), random.file(), random.dir(), random.dir(), random.below(500));
        match random.below(16) {
            0..3 => self.write(&a, &format!("{n}\n").repeat(n as usize % 50), true, false),
            3 | 4 => self.write(&a, &format!("more {n}\n"), false, true),
            5 => self.write(&a, &format!("{n}"), false, false),
            6 => self.remove(&a),
            7 => self.remove(&x),
            8 => self.make(&x, |path| fs::create_dir(path)),
            9 => self.make(&a, |path| symlink(format!("f{n}"), path)),
            10 => self.link(&a, &b),
            11 | 12 => self.rename(&a, &b),
            13 => self.rename(&x, &y),
            14 => {
                self.rename(&x, "tmp/out");
                self.write("tmp/out/f1", "changed outside", false, true);
                self.rename("tmp/out", &y);
            }
            _ => {
                self.rename(&a, "tmp/f");
                self.write("tmp/f", "changed outside", false, false);
                self.rename("tmp/f", &b);
            }
        }
    }
}

/// Numbers that look random and are the same for the same seed (xorshift64*).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 9) % end
    }

    fn dir(&mut self) -> String {
        match self.below(3) {
            0 => format!("work/d{}/e{}", self.below(3), self.below(2)),
            _ => format!("work/d{}", self.below(3)),
        }
    }

    fn file(&mut self) -> String {
        match self.below(2) {
            0 => format!("work/f{}", self.below(4)),
            _ => format!("{}/f{}", self.dir(), self.below(3)),
        }
    }
}

fn seeds() -> impl Iterator<Item = u64> {
    (1..=12).map(|n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
}

#[test]
fn random_work_is_undone_and_redone_run_by_run() {
    for seed in seeds() {
        let (stage, mut random) = (Stage::new(), Random(seed));
        let mut trees = vec![stage.tree()];
        for run in 0..4 {
            for task in 1..=2 {
                let guest = stage.begin(&format!("run{run}"), task, task as u32);
                (0..25).for_each(|_| guest.act(&mut random));
                guest.work.commit();
            }
            trees.push(stage.tree());
            let _ = fs::remove_dir_all(stage.home.session_dir(&stage.session).join("tmp"));
            fs::create_dir(stage.home.session_dir(&stage.session).join("tmp")).unwrap();
        }
        for round in 0..2 {
            for run in (0..4).rev() {
                stage.apply(UndoKind::Undo).unwrap_or_else(|error| panic!("seed {seed}, round {round}: {error}"));
                assert_eq!(stage.tree(), trees[run], "seed {seed}: run {run} is undone, round {round}");
            }
            for run in 0..4 {
                stage.apply(UndoKind::Redo).unwrap_or_else(|error| panic!("seed {seed}, round {round}: {error}"));
                assert_eq!(stage.tree(), trees[run + 1], "seed {seed}: run {run} is redone, round {round}");
            }
        }
    }
}

/// The work is dropped, or its process is killed: after a change, or after the record of a change.
#[test]
fn work_that_is_cut_off_anywhere_leaves_nothing() {
    for seed in seeds() {
        let (mut stage, mut random) = (Stage::new(), Random(seed));
        let guest = stage.begin("before", 1, 1);
        (0..30).for_each(|_| guest.act(&mut random));
        guest.work.commit();
        let before = stage.tree();
        let guest = stage.begin("cut", 1, 1);
        (0..random.below(40)).for_each(|_| guest.act(&mut random));
        match seed % 3 {
            0 => drop(guest),
            1 => {
                std::mem::forget(guest);
                stage.reborn();
            }
            _ => {
                let (at, _) = (random.file(), random.dir());
                if guest.is_reachable(&at) {
                    let path = guest.path(&at);
                    let (dir, name) = split(&path);
                    let _ = guest.work.moving((&dir, name), (&dir, OsStr::new("other")));
                }
                std::mem::forget(guest);
                stage.reborn();
            }
        }
        assert_eq!(stage.tree(), before, "seed {seed}");
        assert_eq!(stage.entries().len(), 1, "seed {seed}: nothing is left of it");
    }
}

/// Work that is not on record is rolled back by its step.
#[test]
fn a_step_without_a_result_is_rolled_back_unless_it_left_the_sandbox() {
    let mut stage = Stage::new();
    let before = stage.tree();
    let guest = stage.begin("r", 1, 5);
    guest.write("work/a", "new", true, false);
    guest.work.commit();
    std::mem::forget(guest);
    stage.reborn();
    assert_eq!(stage.undo.roll_back_step(&stage.session, "r", 6).unwrap(), CutOff::Nothing);
    assert_ne!(stage.tree(), before, "an earlier step stays");
    assert_eq!(stage.undo.roll_back_step(&stage.session, "r", 5).unwrap(), CutOff::Nothing);
    assert_eq!(stage.tree(), before);
    let guest = stage.begin("r", 1, 5);
    guest.work.leaving("example.org").unwrap();
    guest.write("work/a", "new", true, false);
    std::mem::forget(guest);
    stage.reborn();
    for _ in 0..2 {
        assert_eq!(stage.undo.roll_back_step(&stage.session, "r", 5).unwrap(), CutOff::Outside, "however often");
        assert_eq!(stage.tree(), before);
    }
    stage.undo.tidy(&stage.session, "r").unwrap();
    assert_eq!(stage.undo.roll_back_step(&stage.session, "r", 5).unwrap(), CutOff::Nothing);
}

/// The gate may refuse. Then nothing outside is reached, and the step may be repeated.
#[test]
fn nothing_outside_is_reached_that_is_refused() {
    let mut stage = Stage::new();
    let guest = stage.begin("r", 1, 5);
    guest.work.ask_before_leaving(|| Err(io::Error::other("not now")));
    assert_eq!(guest.work.leaving("example.org").unwrap_err().to_string(), "not now");
    std::mem::forget(guest);
    stage.reborn();
    assert_eq!(stage.undo.roll_back_step(&stage.session, "r", 5).unwrap(), CutOff::Nothing);
}

/// An undo or a redo that is interrupted after any of its changes is rolled back.
#[test]
fn an_undo_that_is_cut_off_anywhere_is_taken_back() {
    for seed in seeds().take(5) {
        let (mut stage, mut random) = (Stage::new(), Random(seed));
        for run in ["one", "two"] {
            let guest = stage.begin(run, 1, 1);
            (0..30).for_each(|_| guest.act(&mut random));
            guest.work.commit();
        }
        let before = stage.tree();
        let entry = stage.entries().pop().unwrap();
        for changes in 0..=entry.changes {
            let shelf = stage.undo.shelf(&stage.session);
            let log = shelf.read(entry.id).unwrap();
            let header = Header::of_undo(UndoKind::Redo, log.header.of.clone(), vec![log.id]);
            let unlimited = UndoLimits { max_bytes: u64::MAX, refuse: false };
            let work = Transaction::new(shelf.clone(), header, unlimited, || ());
            for change in log.changes.iter().rev().take(changes) {
                revert(&shelf.tree().unwrap(), change, Reverting::Undo { journal: &*work, is_as_it_was: true })
                    .unwrap();
            }
            std::mem::forget(work);
            stage.reborn();
            assert_eq!(stage.tree(), before, "seed {seed}: after {changes} of {} changes", entry.changes);
        }
        stage.apply(UndoKind::Undo).unwrap();
    }
}

#[test]
fn what_does_not_fit_is_lost_or_refused() {
    let stage = Stage::new();
    fs::write(stage.home.work_dir(&stage.session).join("big"), vec![1; 2 << 20]).unwrap();
    let origin = || Origin { run: "r".to_owned(), task: 1, seq: 1, place: 0 };
    let small = UndoLimits { max_bytes: 1 << 20, refuse: true };
    let root = stage.home.session_dir(&stage.session);
    let work = stage.undo.begin(&stage.session, origin(), small).unwrap();
    let (dir, name) = (File::open(root.join("work")).unwrap(), OsStr::new("big"));
    assert!(matches!(work.removing(&dir, name), Err(UndoRefusal::TooLarge(_))));
    drop(work);
    let work = stage.undo.begin(&stage.session, origin(), UndoLimits { refuse: false, ..small }).unwrap();
    let told = Arc::new(Mutex::new(String::new()));
    let hears = told.clone();
    work.tell(move |note| hears.lock().unwrap().push_str(note));
    assert_eq!(work.removing(&dir, name).unwrap(), RemovedEntry::Delete);
    assert!(told.lock().unwrap().contains("big cannot be undone: 2 MiB do not fit"));
    fs::remove_file(root.join("work/big")).unwrap();
    assert_eq!(work.roll_back(), RollBack::Impossible);
    assert!(stage.undo.begin(&stage.session, origin(), UndoLimits { max_bytes: 0, refuse: false }).is_none());
}
