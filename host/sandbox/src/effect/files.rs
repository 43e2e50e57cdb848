//! The labels of a session's files: whose words stand in each, and in the names of each directory.
//!
//! A file is known by its inode, so a label goes with it through renames and links, into what is kept to undo its deletion and back; a copy
//! is written by a process that has read the original. Only what is worse than a session's own data has an entry. Each change of one is
//! appended to `sessions/ID/labels` before the change of the file, so a process may be killed at any time.
//!
//! On another disk, as after a restore, inodes are others: then everything in the workspace has the label of all that had one, until it
//! is written anew.

use super::label::LabelId;
use kiso_base::home::{Home, SessionName};
use kiso_plan::label::Label;
use rustix::fs::{AtFlags, Mode, OFlags, fstat, openat, statat};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

/// The labels of one session's files.
#[derive(Debug)]
pub struct FileLabels {
    path: PathBuf,
    work: PathBuf,
    /// Whether anything has one. Where nothing has, nobody need look.
    any: AtomicBool,
    state: Mutex<State>,
}

/// An inode: of a file's content, or of the names in a directory. In halves, so that an entry has 12 bytes.
type Key = [u32; 2];

#[derive(Debug, Default)]
struct State {
    labels: HashMap<Key, LabelId>,
    /// Of what is not among them.
    others: LabelId,
    /// What of the log was read or written.
    read: u64,
    lines: usize,
    log: Option<File>,
    /// The inode of the log, which another process may write anew.
    inode: u64,
    /// Files that somebody below the user has open to write to, with how many these are.
    tainted: HashMap<Key, usize>,
    /// Labels that the log has numbers for.
    known: HashMap<LabelId, usize>,
    numbered: Vec<LabelId>,
}

/// A file that somebody below the user may still write to. As long as it is held, nobody takes the label away that the file has.
#[derive(Debug)]
pub struct TaintedFile {
    labels: Arc<FileLabels>,
    key: Key,
}

impl Drop for TaintedFile {
    fn drop(&mut self) {
        let mut state = self.labels.lock();
        if let Some(count) = state.tainted.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                state.tainted.remove(&self.key);
            }
        }
    }
}

/// Sessions whose labels are remembered.
const MAX_SESSIONS: usize = 1_000;

/// Lines of a log that say nothing any more, before it is written anew.
const SPARE_LINES: usize = 4_096;

static SESSIONS: LazyLock<Mutex<HashMap<PathBuf, Arc<FileLabels>>>> = LazyLock::new(Mutex::default);

impl FileLabels {
    /// Those of a session. What another process has added is read first; the caller holds the session's lock, or only reads.
    pub fn of_session(home: &Home, session: &SessionName) -> Arc<Self> {
        Self::of_dir(&home.session_dir(session))
    }

    /// The same by the session's directory.
    pub fn of_dir(session: &Path) -> Arc<Self> {
        let path = session.join("labels");
        let found = {
            let mut sessions = SESSIONS.lock().unwrap_or_else(PoisonError::into_inner);
            if sessions.len() > MAX_SESSIONS {
                sessions.retain(|_, labels| Arc::strong_count(labels) > 1);
            }
            let make = || Arc::new(Self::new(path.clone(), session.join("work")));
            sessions.entry(path.clone()).or_insert_with(make).clone()
        };
        found.refresh();
        found
    }

    fn new(path: PathBuf, work: PathBuf) -> Self {
        Self { path, work, any: AtomicBool::new(false), state: Mutex::default() }
    }

    /// Whether nothing has a label.
    pub fn is_empty(&self) -> bool {
        !self.any.load(Relaxed)
    }

    /// The label of an open file, and of all that is in it.
    pub fn of(&self, file: impl AsFd) -> LabelId {
        if self.is_empty() {
            return LabelId::session();
        }
        fstat(file).map_or(LabelId::session(), |found| self.look(key(found.st_dev, found.st_ino, false)))
    }

    /// The label of the names in a directory: of all that have given one of them, or taken one away.
    pub fn of_names(&self, dir: impl AsFd) -> LabelId {
        if self.is_empty() {
            return LabelId::session();
        }
        let Ok(found) = fstat(&dir) else { return LabelId::session() };
        let mut label = self.look(key(found.st_dev, found.st_ino, true));
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let entries = openat(&dir, ".", flags, Mode::empty()).and_then(rustix::fs::Dir::new);
        for entry in entries.into_iter().flatten().flatten() {
            if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
                label = label.join(self.look(key(found.st_dev, entry.ino(), false)));
            }
        }
        label
    }

    /// The label of what stands at a name, which is not followed if it is a link.
    pub fn of_entry(&self, dir: impl AsFd, name: &OsStr) -> LabelId {
        if self.is_empty() {
            return LabelId::session();
        }
        let found = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
        found.map_or(LabelId::session(), |found| self.look(key(found.st_dev, found.st_ino, false)))
    }

    /// Something with this label is about to be written to an open file.
    pub fn writing(&self, file: impl AsFd, label: LabelId) -> io::Result<()> {
        if label.is_ordinary() {
            return Ok(());
        }
        let found = fstat(file)?;
        self.join(key(found.st_dev, found.st_ino, false), label)
    }

    /// Somebody below the user has the file open, and is about to write to it.
    pub fn tainted(self: &Arc<Self>, file: impl AsFd) -> io::Result<TaintedFile> {
        let found = fstat(file)?;
        let key = key(found.st_dev, found.st_ino, false);
        *self.lock().tainted.entry(key).or_default() += 1;
        Ok(TaintedFile { labels: self.clone(), key })
    }

    /// A file, directory or link was just made by somebody with this label: whoever had its inode before is gone.
    pub fn made(&self, file: impl AsFd, label: LabelId) -> io::Result<()> {
        if label.is_ordinary() && self.is_empty() {
            return Ok(());
        }
        let found = fstat(file)?;
        self.set(key(found.st_dev, found.st_ino, false), label)?;
        self.set(key(found.st_dev, found.st_ino, true), LabelId::default())
    }

    /// A file that was there was just emptied by somebody with this label. What others have written to it since keeps theirs.
    pub fn emptied(&self, file: impl AsFd, label: LabelId) -> io::Result<()> {
        if label.is_ordinary() && self.is_empty() {
            return Ok(());
        }
        let found = fstat(&file)?;
        let mut state = self.lock();
        let is_empty = fstat(&file)?.st_size == 0;
        self.put(&mut state, key(found.st_dev, found.st_ino, false), label, is_empty)
    }

    /// The same for what stands at a name.
    pub fn made_at(&self, dir: impl AsFd, name: &OsStr, label: LabelId) -> io::Result<()> {
        if label.is_ordinary() && self.is_empty() {
            return Ok(());
        }
        let found = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
        self.set(key(found.st_dev, found.st_ino, false), label)?;
        self.set(key(found.st_dev, found.st_ino, true), LabelId::default())
    }

    /// What stands at a name got that name from somebody with this label.
    pub fn named(&self, dir: impl AsFd, name: &OsStr, label: LabelId) -> io::Result<()> {
        if label.is_ordinary() {
            return Ok(());
        }
        let found = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
        self.join(key(found.st_dev, found.st_ino, false), label)
    }

    /// A name in a directory is taken away by somebody with this label.
    pub fn unnaming(&self, dir: impl AsFd, label: LabelId) -> io::Result<()> {
        if label.is_ordinary() {
            return Ok(());
        }
        let found = fstat(dir)?;
        self.join(key(found.st_dev, found.st_ino, true), label)
    }

    /// A file has the content of another one now: its label too, and no other.
    pub fn copied(&self, from: impl AsFd, to: impl AsFd) -> io::Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let (from, to) = (fstat(from)?, fstat(to)?);
        let label = self.look(key(from.st_dev, from.st_ino, false));
        self.set(key(to.st_dev, to.st_ino, false), label)
    }

    /// A file has its old content again, which had this label.
    pub fn put_back(&self, file: impl AsFd, label: LabelId) -> io::Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let found = fstat(file)?;
        self.set(key(found.st_dev, found.st_ino, false), label)
    }

    /// The host has written a file anew for somebody with this label.
    pub fn wrote(&self, path: &Path, label: LabelId) -> io::Result<()> {
        if label.is_ordinary() && self.is_empty() {
            return Ok(());
        }
        let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or(0);
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        self.made(&file, label)
    }

    fn look(&self, key: Key) -> LabelId {
        let state = self.lock();
        match state.labels.get(&key) {
            Some(label) => label.join(LabelId::session()),
            None => LabelId::session().join(state.others),
        }
    }

    fn join(&self, key: Key, label: LabelId) -> io::Result<()> {
        let mut state = self.lock();
        let before = state.labels.get(&key).copied().unwrap_or(state.others);
        let joined = before.join(label);
        if joined == before {
            return Ok(());
        }
        self.write(&mut state, key, joined)
    }

    fn set(&self, key: Key, label: LabelId) -> io::Result<()> {
        self.put(&mut self.lock(), key, label, true)
    }

    /// The label takes the place of the one that was there, if that is of nothing any more.
    fn put(&self, state: &mut State, key: Key, label: LabelId, is_empty: bool) -> io::Result<()> {
        let label = if label.is_ordinary() { LabelId::default() } else { label };
        let before = state.labels.get(&key).copied().unwrap_or(state.others);
        // It may be written to in this moment.
        let replaces = is_empty && !state.tainted.contains_key(&key);
        let label = if replaces { label } else { before.join(label) };
        if before == label {
            return Ok(());
        }
        self.write(state, key, label)
    }

    /// On disk first: what is killed now has done nothing yet.
    fn write(&self, state: &mut State, key: Key, label: LabelId) -> io::Result<()> {
        let mut text = String::new();
        if state.log.is_none() {
            let log = OpenOptions::new().create(true).append(true).mode(0o600).open(&self.path)?;
            // What a crash or a full disk cut off was not done.
            if log.metadata()?.len() > state.read {
                log.set_len(state.read)?;
            }
            if state.read == 0 {
                text.push_str(&format!("of {}\n", inode(&self.work)?));
            }
            state.inode = log.metadata()?.ino();
            state.log = Some(log);
        }
        let numbered = state.numbered.len();
        let number = number(state, label, &mut text);
        text.push_str(&line(key, number));
        let log = state.log.as_mut().ok_or_else(|| io::Error::other("it was opened"))?;
        if let Err(error) = log.write_all(text.as_bytes()) {
            state.log = None;
            for label in state.numbered.drain(numbered..) {
                state.known.remove(&label);
            }
            return Err(error);
        }
        state.read = log.metadata()?.len();
        state.lines += 1;
        take(state, key, label);
        self.any.store(true, Relaxed);
        if state.lines > 2 * state.labels.len() + SPARE_LINES {
            self.rewrite(state)?;
        }
        Ok(())
    }

    /// The log without what says nothing any more.
    fn rewrite(&self, state: &mut State) -> io::Result<()> {
        let mut text = format!("of {}\n", inode(&self.work)?);
        (state.known, state.numbered) = Default::default();
        if state.others != LabelId::default() {
            let number = number(state, state.others, &mut text);
            text.push_str(&format!("others {number}\n"));
        }
        let labels: Vec<_> = state.labels.iter().map(|(key, label)| (*key, *label)).collect();
        for (key, label) in labels {
            let number = number(state, label, &mut text);
            text.push_str(&line(key, number));
        }
        let new = self.path.with_extension("new");
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(text.as_bytes())?;
        // An empty one in its place would say that nothing has a label.
        file.sync_all()?;
        std::fs::rename(&new, &self.path)?;
        let log = OpenOptions::new().append(true).open(&self.path)?;
        state.inode = log.metadata()?.ino();
        state.log = Some(log);
        (state.read, state.lines) = (text.len() as u64, state.labels.len());
        Ok(())
    }

    /// Reads what was not read yet.
    fn refresh(&self) {
        let (length, inode) = std::fs::metadata(&self.path).map_or((0, 0), |found| (found.len(), found.ino()));
        let mut state = self.lock();
        let is_new = length < state.read || (state.inode != 0 && inode != state.inode);
        if length == state.read && !is_new {
            return;
        }
        // Another session of the same name, or another process has written it anew.
        if is_new {
            let tainted = std::mem::take(&mut state.tainted);
            *state = State { tainted, ..State::default() };
        }
        state.inode = inode;
        if length == 0 {
            self.any.store(false, Relaxed);
            return;
        }
        if let Err(error) = self.load(&mut state) {
            // Nobody knows whose words stand in these files.
            tracing::error!("the labels of files in {} cannot be read: {error}", self.path.display());
            state.others = state.others.join(LabelId::of(&Label::of(
                kiso_plan::label::Integrity::World,
                kiso_plan::label::Confidentiality::Session,
                kiso_plan::label::SourceSet::ANY,
            )));
            // Kept so, and readable from now on; a log that cannot even be written stays as it is.
            if self.rewrite(&mut state).is_err() {
                state.read = length;
            }
        }
        let any = !state.labels.is_empty() || state.others != LabelId::default();
        self.any.store(any, Relaxed);
    }

    fn load(&self, state: &mut State) -> io::Result<()> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(state.read))?;
        let here = inode(&self.work)?;
        let mut is_here = true;
        let mut text = String::new();
        let mut reader = BufReader::new(file);
        loop {
            text.clear();
            let bytes = reader.read_line(&mut text)?;
            // What a crash cut off was not done.
            if bytes == 0 || !text.ends_with('\n') {
                break;
            }
            state.read += bytes as u64;
            let line = text.trim_end();
            let broken = || io::Error::other(format!("the line {line:?} is broken"));
            if let Some(inode) = line.strip_prefix("of ") {
                is_here = inode.parse() == Ok(here);
            } else if let Some(json) = line.strip_prefix("label ") {
                let label = LabelId::of(&serde_json::from_str::<Label>(json)?);
                state.known.insert(label, state.numbered.len());
                state.numbered.push(label);
            } else if let Some(number) = line.strip_prefix("others ") {
                let number: usize = number.parse().map_err(|_| broken())?;
                state.others = *state.numbered.get(number).ok_or_else(broken)?;
            } else {
                let (key, number) = line.split_once(' ').ok_or_else(broken)?;
                let key = u64::from_str_radix(key, 16).map_err(|_| broken())?;
                let number: usize = number.parse().map_err(|_| broken())?;
                let label = *state.numbered.get(number).ok_or_else(broken)?;
                state.lines += 1;
                take(state, halves(key), label);
            }
        }
        if !is_here {
            let all = state.labels.values().fold(state.others, |all, label| all.join(*label));
            state.labels.clear();
            state.others = all;
            self.rewrite(state)?;
        }
        Ok(())
    }

    /// Entries, and bytes of memory that they take.
    pub fn size(&self) -> (usize, usize) {
        let state = self.lock();
        // A slot of the table holds an entry and one byte beside it; at most seven of eight are in use.
        let slots = (state.labels.capacity() * 8).div_ceil(7).next_power_of_two();
        (state.labels.len(), slots * (size_of::<(Key, LabelId)>() + 1))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn take(state: &mut State, key: Key, label: LabelId) {
    match label == LabelId::default() && state.others == LabelId::default() {
        true => drop(state.labels.remove(&key)),
        false => drop(state.labels.insert(key, label)),
    }
}

/// The number of a label in the log; a line is added where it has none.
fn number(state: &mut State, label: LabelId, text: &mut String) -> usize {
    if let Some(number) = state.known.get(&label) {
        return *number;
    }
    let json = kiso_base::json::text(&*label.label());
    text.push_str(&format!("label {json}\n"));
    let number = state.numbered.len();
    state.known.insert(label, number);
    state.numbered.push(label);
    number
}

fn line(key: Key, number: usize) -> String {
    format!("{:08x}{:08x} {number}\n", key[0], key[1])
}

fn inode(path: &Path) -> io::Result<u64> {
    Ok(std::fs::metadata(path)?.ino())
}

/// Of an inode on a device, for its content or for the names in it.
// Of other widths on other systems.
#[allow(clippy::useless_conversion, clippy::unnecessary_cast)]
fn key(device: impl TryInto<u64>, inode: impl TryInto<u64>, names: bool) -> Key {
    // An odd number, so that no two inodes of one device become one.
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let (device, inode) = (device.try_into().unwrap_or(0), inode.try_into().unwrap_or(0));
    halves(inode.wrapping_mul(2).wrapping_add(u64::from(names)).wrapping_add(device.wrapping_mul(SPREAD)))
}

fn halves(key: u64) -> Key {
    [(key >> 32) as u32, key as u32]
}

#[cfg(test)]
mod tests {
    use super::*;

    struct House {
        dir: tempfile::TempDir,
    }

    impl House {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            std::fs::create_dir(dir.path().join("work")).unwrap();
            Self { dir }
        }

        fn open(&self) -> FileLabels {
            let labels = FileLabels::new(self.dir.path().join("labels"), self.dir.path().join("work"));
            labels.refresh();
            labels
        }

        fn file(&self, name: &str) -> File {
            let path = self.dir.path().join("work").join(name);
            OpenOptions::new().create(true).read(true).append(true).open(path).unwrap()
        }
    }

    fn world(n: usize) -> LabelId {
        LabelId::of(&Label::world(&format!("web:{n}.example")))
    }

    #[test]
    fn a_label_goes_with_its_file_and_outlives_the_process() {
        let house = House::new();
        let labels = house.open();
        let a = house.file("a");
        assert!(labels.is_empty() && labels.of(&a) == LabelId::session());
        labels.writing(&a, LabelId::session()).unwrap();
        assert!(labels.is_empty() && !house.dir.path().join("labels").exists(), "clean files cost nothing");
        labels.writing(&a, world(1)).unwrap();
        labels.writing(&a, world(2)).unwrap();
        std::fs::rename(house.dir.path().join("work/a"), house.dir.path().join("work/b")).unwrap();
        let wanted = world(1).join(world(2)).join(LabelId::session());
        for labels in [&labels, &house.open()] {
            assert_eq!(labels.of(house.file("b")), wanted);
            assert_eq!(labels.of(house.file("c")), LabelId::session());
        }
        labels.made(house.file("b"), LabelId::default()).unwrap();
        assert_eq!(house.open().of(house.file("b")), LabelId::session(), "another file in its place");
    }

    #[test]
    fn another_process_is_heard_and_a_line_that_was_cut_off_is_not() {
        let house = House::new();
        let (labels, other) = (house.open(), house.open());
        other.writing(house.file("a"), world(1)).unwrap();
        labels.refresh();
        assert!(!labels.of(house.file("a")).is_ordinary());
        let mut log = OpenOptions::new().append(true).open(house.dir.path().join("labels")).unwrap();
        log.write_all(b"00000000000000").unwrap();
        assert!(!house.open().of(house.file("a")).is_ordinary());
    }

    #[test]
    fn on_another_disk_all_files_have_the_label_of_all() {
        let house = House::new();
        house.open().writing(house.file("a"), world(1)).unwrap();
        let (work, moved) = (house.dir.path().join("work"), house.dir.path().join("moved"));
        std::fs::rename(&work, &moved).unwrap();
        std::fs::create_dir(&work).unwrap();
        for _ in 0..2 {
            let labels = house.open();
            assert_eq!(labels.of(house.file("b")), world(1).join(LabelId::session()));
        }
        let labels = house.open();
        labels.made(house.file("c"), LabelId::default()).unwrap();
        assert_eq!(house.open().of(house.file("c")), LabelId::session());
        assert_eq!(house.open().of(house.file("b")), world(1).join(LabelId::session()));
    }

    #[test]
    fn a_hundred_thousand_files_take_less_than_two_mebibytes() {
        let house = House::new();
        let labels = house.open();
        for n in 0..100_000_u64 {
            labels.set(key(1_u64, n, false), world(n as usize % 7)).unwrap();
        }
        let (files, bytes) = labels.size();
        assert!(files == 100_000 && bytes <= 2 << 20, "{files} files, {bytes} bytes");
        for n in 0..100_000_u64 {
            labels.set(key(1_u64, n, false), LabelId::default()).unwrap();
        }
        assert_eq!(labels.size().0, 0);
        assert!(
            std::fs::metadata(house.dir.path().join("labels")).unwrap().len() < 1 << 20,
            "what is gone is forgotten"
        );
    }
}
