//! Bytes and entries that a call may add to the workspace, counted while they are written.
//!
//! A file counts with its length, every file and directory with [`ENTRY_BYTES`] besides, so that a million empty files are not
//! free. All work in a session shares one count: the processes of a line, calls beside it, uploads. The count is never too low.
//! It may be too high, because overwritten or truncated bytes are not subtracted at once. So before anything is refused, the
//! directories are measured again.

use super::home_space::SessionSpace;
use super::measure::{ENTRY_BYTES, Extent, MeasureError, measure};
use crate::effect::files::FileLabels;
use crate::effect::overlay::FolderDirs;
use crate::effect::undo::Transaction;
use crate::engine::limits::{Budget, HitCell, Limit, LimitHit};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How often the directories are measured, at most, before something is refused.
const MEASURINGS: u32 = 3;

/// Entries of a directory that are measured without another thread: starting one takes as long.
const FEW: u64 = 64;

/// Bytes and entries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Amount {
    bytes: u64,
    entries: u64,
}

impl Amount {
    fn plus(self, other: Amount) -> Amount {
        let bytes = self.bytes.saturating_add(other.bytes);
        Amount { bytes, entries: self.entries.saturating_add(other.entries) }
    }

    fn max(self, other: Amount) -> Amount {
        Amount { bytes: self.bytes.max(other.bytes), entries: self.entries.max(other.entries) }
    }

    fn minus(self, other: Amount) -> Amount {
        let bytes = self.bytes.saturating_sub(other.bytes);
        Amount { bytes, entries: self.entries.saturating_sub(other.entries) }
    }
}

/// The size of a session's workspace and the scratch directories of its tasks, shared by all calls of the session that are
/// running. Measured when the first of them writes: most only read.
#[derive(Debug)]
pub struct SpaceUsage {
    /// Directories that guests write to. A missing one counts as empty.
    dirs: Vec<PathBuf>,
    /// The directory of the changes to the session's folders.
    folders: Option<PathBuf>,
    counts: Mutex<Counts>,
    /// Held while measuring.
    measuring: Mutex<()>,
    /// Held while directories and links are moved, made or removed, so that places stay valid until the end.
    structure: Arc<tokio::sync::Mutex<()>>,
    /// The size of all sessions together.
    home: Option<SessionSpace>,
}

#[derive(Debug, Default)]
struct Counts {
    /// At least the present size, with charges that are not written yet.
    held: Amount,
    /// The part of `held` that may not be on disk yet. Measuring does not find it.
    pending: Amount,
    /// Charges since the present measuring began.
    since: Amount,
    /// Bytes that were given back since then.
    back: Amount,
    /// Bytes that count only for the home.
    of_home: u64,
    /// The number of measurings.
    times: u64,
    /// Beginnings and ends of moves. A measuring may miss what is moved meanwhile.
    moves: u64,
    /// Moves that are under way.
    moving: u64,
}

impl SpaceUsage {
    /// Makes it for these directories, which are measured later.
    pub fn new(dirs: Vec<PathBuf>, home: Option<SessionSpace>) -> Self {
        let (counts, measuring, structure) = Default::default();
        Self { dirs, folders: None, counts, measuring, structure, home }
    }

    /// Also counts the changes to folders, which are in this directory. A person's files that were replaced or deleted count only
    /// for the home.
    pub fn with_folders(mut self, folders: PathBuf) -> Self {
        self.folders = Some(folders);
        self
    }

    /// Measures the directories, unless another call has measured them since the count of measurements was `times`.
    ///
    /// Charges that are not on disk yet are added, and so are those that are allowed meanwhile. Some of them may have been found
    /// on disk, too; they count twice until the next measuring.
    fn measure(&self, times: u64, most: u64) -> Result<(), MeasureError> {
        let _alone = self.measuring.lock().unwrap_or_else(PoisonError::into_inner);
        let (pending, moves, moving) = {
            let mut counts = self.lock();
            if counts.times != times {
                return Ok(());
            }
            (counts.since, counts.back) = Default::default();
            (counts.pending, counts.moves, counts.moving)
        };
        let folders = self.folders.as_deref().map(FolderDirs::all).unwrap_or_default();
        let (mut found, mut of_home) = (Amount::default(), 0_u64);
        for dir in self.dirs.iter().chain(folders.iter().map(|folder| &folder.upper)) {
            let Extent { bytes, entries } = measure(dir, most)?;
            found = found.plus(Amount { bytes, entries });
        }
        for folder in folders.iter().filter(|_| self.home.is_some()) {
            // A person may have deeper directories than guests can make.
            of_home = of_home.saturating_add(measure(&folder.accepted, most).map_or(0, |extent| extent.bytes));
        }
        let mut counts = self.lock();
        let held = found.plus(pending).plus(counts.since).minus(counts.back);
        counts.held = if moving == 0 && counts.moves == moves { held } else { held.max(counts.held) };
        counts.of_home = of_home;
        counts.times += 1;
        if let Some(home) = &self.home {
            home.measured(counts.held.bytes.saturating_add(of_home));
        }
        Ok(())
    }

    /// Charges an amount that is about to be written, if there is room for it.
    fn take(&self, more: Amount, budget: &Budget) -> Result<(), LimitHit> {
        // Bytes that are written during a measuring may count twice, so one measuring alone is not exact.
        let mut left = MEASURINGS;
        loop {
            let (hit, times) = {
                let mut counts = self.lock();
                let after = counts.held.plus(more);
                let hit = if counts.times == 0 {
                    None
                } else if after.entries > budget.files {
                    Some(budget.hit(Limit::Files))
                } else if after.bytes > budget.workspace_mib << 20 {
                    Some(budget.hit(Limit::Workspace))
                } else if let Some(home) = self.home.as_ref().filter(|home| !home.take(more.bytes)) {
                    Some(home.hit())
                } else {
                    counts.held = after;
                    counts.pending = counts.pending.plus(more);
                    counts.since = counts.since.plus(more);
                    return Ok(());
                };
                // Nothing was charged meanwhile, so the measuring is exact.
                if left < MEASURINGS && counts.since == Amount::default() {
                    left = 0;
                }
                (hit, counts.times)
            };
            match hit {
                Some(hit) if left == 0 => return Err(hit),
                _ => self.measure(times, budget.files).map_err(|error| error.hit(budget))?,
            }
            left = left.saturating_sub(1);
        }
    }

    /// The allowed bytes are on disk.
    fn done(&self, what: Amount) {
        let mut counts = self.lock();
        counts.pending = counts.pending.minus(what);
    }

    /// Bytes that were allowed, or were on disk, are gone.
    fn give_back(&self, what: Amount) {
        let mut counts = self.lock();
        let held = counts.held.minus(what);
        let before = std::mem::replace(&mut counts.held, held);
        counts.back = counts.back.plus(what);
        if let Some(home) = &self.home {
            home.shrunk(before.bytes - held.bytes);
        }
    }

    /// Measures after changes by others, and updates the sum of all sessions. If measuring fails, the next charge measures again.
    pub fn measure_again(&self) {
        let times = self.lock().times;
        if self.measure(times, u64::MAX).is_err() {
            self.lock().times = 0;
        }
    }

    /// Whether there is so little that measuring takes no time.
    pub fn is_small(&self) -> bool {
        let few = |dir: &PathBuf| measure(dir, FEW).is_ok_and(|found| found.entries <= FEW);
        // A measuring that is under way may take long.
        self.measuring.try_lock().is_ok() && self.dirs.iter().chain(&self.folders).all(few)
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SpaceUsage {
    fn drop(&mut self) {
        let counts = self.counts.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(home) = &self.home
            && counts.times > 0
        {
            home.rests(counts.held.bytes.saturating_add(counts.of_home));
        }
    }
}

/// The quota of one call.
#[derive(Debug)]
pub struct Quota {
    budget: Budget,
    hit: HitCell,
    written: AtomicU64,
    usage: Arc<SpaceUsage>,
    /// The work, if it can be undone.
    transaction: Option<Arc<Transaction>>,
    /// The labels of the session's files.
    labels: Option<Arc<FileLabels>>,
}

/// An amount that a quota has allowed. While this exists, the bytes may not be on disk yet; when it is dropped, they are.
#[derive(Debug)]
#[must_use = "what is allowed is about to be written, and counts as written when this is dropped"]
pub struct Charge {
    quota: Arc<Quota>,
    amount: Amount,
}

impl Charge {
    /// Adds another charge of the same quota.
    pub fn join(&mut self, mut other: Charge) {
        self.amount = self.amount.plus(std::mem::take(&mut other.amount));
    }

    /// The entry was not made after all, or was removed.
    pub fn give_back(mut self) {
        let amount = std::mem::take(&mut self.amount);
        self.quota.usage.done(amount);
        self.quota.usage.give_back(amount);
        let less = |now: u64| Some(now.saturating_sub(amount.bytes));
        let _ = self.quota.written.fetch_update(Relaxed, Relaxed, less);
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.quota.usage.done(self.amount);
    }
}

/// The use of a quota's directories, and the room that is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    pub bytes: u64,
    pub free_bytes: u64,
    pub files: u64,
    pub free_files: u64,
}

/// Exists while an entry is moved.
#[derive(Debug)]
#[must_use = "the move is over when this is dropped"]
pub struct MoveGuard(Arc<SpaceUsage>);

impl MoveGuard {
    fn new(usage: Arc<SpaceUsage>) -> MoveGuard {
        {
            let mut counts = usage.lock();
            counts.moves += 1;
            counts.moving += 1;
        }
        MoveGuard(usage)
    }
}

impl Drop for MoveGuard {
    fn drop(&mut self) {
        let mut counts = self.0.lock();
        counts.moves += 1;
        counts.moving -= 1;
    }
}

impl Quota {
    pub fn new(budget: Budget, hit: HitCell, usage: Arc<SpaceUsage>) -> Self {
        Self { budget, hit, written: AtomicU64::new(0), usage, transaction: None, labels: None }
    }

    /// Makes the changes under this quota a part of `transaction`.
    pub fn within(self, transaction: Option<Arc<Transaction>>) -> Self {
        Self { transaction, ..self }
    }

    /// The transaction of the changes, if they can be undone.
    pub fn transaction(&self) -> Option<&Arc<Transaction>> {
        self.transaction.as_ref()
    }

    /// The same for files that have labels.
    pub fn labelled(self, labels: Arc<FileLabels>) -> Self {
        Self { labels: Some(labels), ..self }
    }

    /// The labels of the session's files.
    pub fn labels(&self) -> Option<&Arc<FileLabels>> {
        self.labels.as_ref()
    }

    /// Ends the call: a change could not be undone, and the configuration refuses such changes.
    pub fn not_undoable(&self, why: &str) -> LimitHit {
        self.hit.set(LimitHit { value: why.to_owned(), ..self.budget.hit(Limit::Undo) })
    }

    /// Bytes that this call has written.
    pub fn written(&self) -> u64 {
        self.written.load(Relaxed)
    }

    /// Charges bytes that are about to be written, or that a file is about to grow by.
    pub fn write(self: &Arc<Self>, bytes: u64) -> Result<Charge, LimitHit> {
        self.charge(Amount { bytes, entries: 0 })
    }

    /// Charges a file, directory or link that is about to be made.
    pub fn entry(self: &Arc<Self>) -> Result<Charge, LimitHit> {
        self.charge(Amount { bytes: ENTRY_BYTES, entries: 1 })
    }

    fn charge(self: &Arc<Self>, amount: Amount) -> Result<Charge, LimitHit> {
        let refuse = |hit| self.hit.set(hit);
        let room = |now: u64| now.checked_add(amount.bytes).filter(|after| *after <= self.budget.write_mib << 20);
        self.written.fetch_update(Relaxed, Relaxed, room).map_err(|_| refuse(self.budget.hit(Limit::CallWrites)))?;
        if let Err(hit) = self.usage.take(amount, &self.budget) {
            self.written.fetch_sub(amount.bytes, Relaxed);
            return Err(refuse(hit));
        }
        Ok(Charge { quota: self.clone(), amount })
    }

    /// Gives the session back the size of a removed entry, with the bytes that only it had. Call it after [`Quota::settle`], or
    /// it has no effect.
    pub fn credit_entry(&self, bytes: u64) {
        self.usage.give_back(Amount { bytes: bytes.saturating_add(ENTRY_BYTES), entries: 1 });
    }

    /// An entry is about to be moved. Measures before the first move: a later measuring might miss the entry.
    pub fn moving(&self) -> MoveGuard {
        self.settle();
        MoveGuard::new(self.usage.clone())
    }

    /// Measures, unless that was done. If it fails, the next write reports the error.
    pub fn settle(&self) {
        let times = self.usage.lock().times;
        if times == 0 {
            let _ = self.usage.measure(0, self.budget.files);
        }
    }

    /// Measures, and returns the use and the room that is left. If measuring fails, uses the count.
    pub fn room(&self) -> Room {
        let times = self.usage.lock().times;
        let _ = self.usage.measure(times, self.budget.files);
        let Amount { bytes, entries } = self.usage.lock().held;
        let own = (self.budget.workspace_mib << 20).saturating_sub(bytes);
        // All sessions together may have less room.
        let free_bytes = self.usage.home.as_ref().map_or(own, |home| own.min(home.left()));
        Room { bytes, free_bytes, files: entries, free_files: self.budget.files.saturating_sub(entries) }
    }

    /// Ends the call: directories would be nested too deep.
    pub fn too_deep(&self) -> LimitHit {
        self.hit.set(self.budget.hit(Limit::Depth))
    }

    /// See [`SpaceUsage`].
    pub fn structure(&self) -> Arc<tokio::sync::Mutex<()>> {
        self.usage.structure.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiso_base::config::Config;
    use std::sync::atomic::AtomicBool;

    struct Workspace {
        dir: tempfile::TempDir,
        usage: Arc<SpaceUsage>,
        budget: Budget,
    }

    impl Workspace {
        fn new(workspace_mib: u64, files: u64) -> Workspace {
            let dir = tempfile::tempdir().unwrap();
            let usage = Arc::new(SpaceUsage::new(vec![dir.path().to_owned()], None));
            let config = Config::default();
            let budget = Budget { workspace_mib, files, write_mib: 1 << 20, ..Budget::new(&config.engine, 64, 30) };
            Workspace { dir, usage, budget }
        }

        fn quota(&self) -> Arc<Quota> {
            Arc::new(Quota::new(self.budget.clone(), HitCell::default(), self.usage.clone()))
        }
    }

    /// A regression: a directory that was deleted while it was measured made the workspace count as full.
    #[test]
    fn what_is_deleted_while_it_is_measured_is_no_reason_to_refuse() {
        let room = Workspace::new(64, 10_000);
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let churn = scope.spawn(|| {
                let mut n = 0_u64;
                while !over.load(Relaxed) {
                    let dir = room.dir.path().join(format!("d{}", n % 7));
                    n += 1;
                    let _ = std::fs::create_dir_all(dir.join("a/b"));
                    let _ = std::fs::write(dir.join("a/b/f"), "x");
                    let _ = std::fs::remove_dir_all(dir);
                }
            });
            for _ in 0..2_000 {
                let usage = Arc::new(SpaceUsage::new(vec![room.dir.path().to_owned()], None));
                let quota = Arc::new(Quota::new(room.budget.clone(), HitCell::default(), usage));
                let charged = quota.write(10).map(drop);
                if charged.is_err() {
                    over.store(true, Relaxed);
                }
                charged.unwrap();
            }
            over.store(true, Relaxed);
            churn.join().unwrap();
        });
    }

    #[test]
    fn what_there_is_room_for_is_measured_when_it_is_asked_for() {
        let room = Workspace::new(1, 10);
        let quota = room.quota();
        assert_eq!(quota.room(), Room { bytes: 0, free_bytes: 1 << 20, files: 0, free_files: 10 });
        std::fs::write(room.dir.path().join("f"), vec![0; 100 << 10]).unwrap();
        let bytes = (100 << 10) + ENTRY_BYTES;
        assert_eq!(quota.room(), Room { bytes, free_bytes: (1 << 20) - bytes, files: 1, free_files: 9 });
        std::fs::remove_file(room.dir.path().join("f")).unwrap();
        assert_eq!(quota.room().bytes, 0);
        std::fs::write(room.dir.path().join("g"), vec![0; 2 << 20]).unwrap();
        assert_eq!(quota.room().free_bytes, 0);
    }

    #[test]
    fn files_of_a_person_that_were_deleted_from_a_folder_do_not_fill_the_session() {
        let room = Workspace::new(1, 10);
        let kept = room.dir.path().join("folders/key");
        for part in ["upper", "accepted/1"] {
            std::fs::create_dir_all(kept.join(part)).unwrap();
        }
        std::fs::write(kept.join("accepted/1/2"), vec![0; 5 << 20]).unwrap();
        std::fs::write(kept.join("upper/f"), vec![0; 100 << 10]).unwrap();
        let usage = SpaceUsage::new(vec![room.dir.path().join("work")], None);
        let usage = Arc::new(usage.with_folders(room.dir.path().join("folders")));
        let quota = Quota::new(room.budget.clone(), HitCell::default(), usage);
        let bytes = (100 << 10) + ENTRY_BYTES;
        assert_eq!(quota.room(), Room { bytes, free_bytes: (1 << 20) - bytes, files: 1, free_files: 9 });
    }

    #[test]
    fn what_was_deleted_is_seen_before_anything_is_refused() {
        let room = Workspace::new(1, 10_000);
        let quota = room.quota();
        let file = room.dir.path().join("f");
        for _ in 0..10 {
            let charge = quota.write(900 << 10).unwrap();
            std::fs::write(&file, vec![0; 900 << 10]).unwrap();
            drop(charge);
            std::fs::remove_file(&file).unwrap();
        }
        std::fs::write(&file, vec![0; 900 << 10]).unwrap();
        assert_eq!(quota.write(900 << 10).unwrap_err().limit, Limit::Workspace);
    }

    /// An attack: measuring again while many charges are allowed and few of them are on disk yet.
    #[test]
    fn what_is_allowed_and_not_on_disk_yet_counts() {
        let room = Workspace::new(1, 10_000);
        let one = room.quota().write(600 << 10).unwrap();
        assert_eq!(room.quota().write(600 << 10).unwrap_err().limit, Limit::Workspace);
        std::fs::write(room.dir.path().join("f"), vec![0; 600 << 10]).unwrap();
        drop(one);
        assert_eq!(room.quota().write(600 << 10).unwrap_err().limit, Limit::Workspace);
        std::fs::remove_file(room.dir.path().join("f")).unwrap();
        room.quota().write(600 << 10).unwrap().give_back();
        drop(room.quota().write(900 << 10).unwrap());
    }

    #[test]
    fn many_at_once_never_get_more_than_there_is() {
        let room = Workspace::new(4, 100);
        for round in 0..10 {
            std::thread::scope(|scope| {
                for n in 0..8 {
                    let room = &room;
                    scope.spawn(move || {
                        for i in 0..30 {
                            let quota = room.quota();
                            let path = room.dir.path().join(format!("{n}-{}", i % 20));
                            if let Ok(mut charge) = quota.entry() {
                                match quota.write(100 << 10) {
                                    Ok(bytes) => {
                                        charge.join(bytes);
                                        std::fs::write(&path, vec![0; 100 << 10]).unwrap();
                                        drop(charge);
                                    }
                                    Err(_) => charge.give_back(),
                                }
                            }
                            if (i + round) % 3 == 0 {
                                let _ = std::fs::remove_file(&path);
                            }
                        }
                    });
                }
            });
            // During the work, a measuring could not have seen everything at the same time.
            let Extent { bytes, entries } = measure(room.dir.path(), 1_000).unwrap();
            assert!((1 << 20..=4 << 20).contains(&bytes) && entries <= 100, "{bytes} in {entries} files");
        }
    }

    /// An attack: a measuring misses a file that is moved meanwhile.
    #[test]
    fn what_is_moved_while_it_is_measured_still_counts() {
        let room = Workspace::new(1, 100);
        for dir in ["a", "b"] {
            std::fs::create_dir(room.dir.path().join(dir)).unwrap();
        }
        let quota = room.quota();
        drop(quota.write(800 << 10).unwrap());
        std::fs::write(room.dir.path().join("a/f"), vec![0; 800 << 10]).unwrap();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let moving = scope.spawn(|| {
                let (a, b) = (room.dir.path().join("a/f"), room.dir.path().join("b/f"));
                while !over.load(Relaxed) {
                    for (from, to) in [(&a, &b), (&b, &a)] {
                        let moving = quota.moving();
                        std::fs::rename(from, to).unwrap();
                        drop(moving);
                    }
                }
            });
            let taken = (0..300).filter(|_| room.quota().write(800 << 10).map(Charge::give_back).is_ok()).count();
            over.store(true, Relaxed);
            moving.join().unwrap();
            assert_eq!(taken, 0);
        });
    }

    #[test]
    fn a_tree_that_is_too_deep_is_told_as_that() {
        let room = Workspace::new(4, 1_000);
        let mut deep = room.dir.path().to_owned();
        (0..100).for_each(|_| deep.push("d"));
        std::fs::create_dir_all(&deep).unwrap();
        let hit = room.quota().write(1).unwrap_err();
        assert_eq!(hit.limit, Limit::Depth);
        assert!(hit.to_string().contains("64 levels"), "{hit}");
    }

    #[test]
    fn credit_for_one_call_is_room_for_the_others() {
        let room = Workspace::new(4, 10);
        for n in 0..10 {
            std::fs::write(room.dir.path().join(n.to_string()), "x").unwrap();
        }
        assert_eq!(room.quota().entry().unwrap_err().limit, Limit::Files);
        std::fs::remove_file(room.dir.path().join("3")).unwrap();
        room.quota().credit_entry(1);
        drop(room.quota().entry().unwrap());
        assert_eq!(measure(room.dir.path(), 100).unwrap().entries, 9);
    }
}
