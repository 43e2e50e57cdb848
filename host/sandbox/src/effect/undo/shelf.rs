//! The logs of one session: `sessions/ID/undo/NUMBER/log`, and the kept files beside it.

use super::bytes::SessionPath;
use super::log::{Header, LabelledChange, Look, LostFile, Total, UndoRecord};
use super::revert::{Reverting, revert};
use super::shared::SessionAcceptances;
use super::tree::Tree;
use kiso_base::home::Home;
use kiso_base::system::boot_id;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Logs of one session. If there are more, the oldest run is dropped, however small it is.
const MAX_LOGS: usize = 1_000;

/// Bytes of a log's last line, at most.
const TAIL: u64 = 256;

/// A log, as a listing shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoEntry {
    pub id: u64,
    pub header: Header,
    pub changes: usize,
    pub lost: usize,
    /// Bytes that it keeps.
    pub bytes: u64,
    pub is_closed: bool,
}

impl UndoEntry {
    /// The run that it belongs to.
    pub fn run(&self) -> Option<&str> {
        self.header.of.first().map(|origin| origin.run.as_str())
    }
}

/// A log that was read completely.
#[derive(Debug)]
pub struct UndoLog {
    pub id: u64,
    pub header: Header,
    pub(super) changes: Vec<LabelledChange>,
    pub lost: Vec<LostFile>,
    /// The place outside of the sandbox that it was about to reach.
    pub left: Option<String>,
    pub after: Vec<(SessionPath, Look)>,
    /// The number of the change from which on everything is taken back already.
    pub reverted: usize,
}

/// All logs of a session.
#[derive(Debug)]
pub struct Shelf {
    home: Home,
    session: PathBuf,
    shared: SessionAcceptances,
    cache: Mutex<Option<Cache>>,
}

#[derive(Debug)]
struct Cache {
    /// The directory's inode and time of change. Adding or removing a log changes them.
    stamp: Stamp,
    entries: Vec<UndoEntry>,
}

type Stamp = (u64, i64, i64);

impl Shelf {
    pub fn new(shared: SessionAcceptances) -> Self {
        let home = shared.home.clone();
        let session = home.session_dir(&shared.session);
        Self { home, session, shared, cache: Mutex::default() }
    }

    /// Opens the session's directory. Each call opens it, because another session of the same name may have taken its place.
    pub fn tree(&self) -> io::Result<Tree> {
        Tree::open(&self.session, self.shared.clone())
    }

    fn dir(&self) -> PathBuf {
        self.session.join("undo")
    }

    fn log_dir(&self, id: u64) -> PathBuf {
        self.dir().join(id.to_string())
    }

    /// Whether the directory of the logs does not exist yet.
    pub fn is_missing(&self) -> bool {
        matches!(self.stamp(), Err(error) if error.kind() == io::ErrorKind::NotFound)
    }

    /// All logs, the oldest first.
    pub fn entries(&self) -> io::Result<Vec<UndoEntry>> {
        let mut cache = self.lock();
        Ok(self.cached(&mut cache)?.map(|cache| cache.entries.clone()).unwrap_or_default())
    }

    fn cached<'a>(&self, cache: &'a mut Option<Cache>) -> io::Result<Option<&'a mut Cache>> {
        let stamp = match self.stamp() {
            Ok(stamp) => stamp,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                *cache = None;
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        if let Some(known) = cache.as_mut().filter(|known| known.stamp == stamp) {
            // Another process may have ended open work.
            for entry in known.entries.iter_mut().filter(|entry| !entry.is_closed) {
                if let Some(now) = self.look(entry.id)? {
                    *entry = now;
                }
            }
        } else {
            let mut entries = Vec::new();
            for entry in fs::read_dir(self.dir())? {
                let name = entry?.file_name();
                let Some(id) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
                match self.look(id)? {
                    Some(entry) => entries.push(entry),
                    // The process was killed while it began or removed the log; nothing was changed under it.
                    None => self.home.remove_tree(&self.log_dir(id))?,
                }
            }
            entries.sort_by_key(|entry| entry.id);
            *cache = Some(Cache { stamp: self.stamp()?, entries });
        }
        Ok(cache.as_mut())
    }

    fn stamp(&self) -> io::Result<Stamp> {
        let found = fs::metadata(self.dir())?;
        Ok((found.ino(), found.mtime(), found.mtime_nsec()))
    }

    /// Reads the first line of a log and its last one.
    fn look(&self, id: u64) -> io::Result<Option<UndoEntry>> {
        let mut file = match File::open(self.log_dir(id).join("log")) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut line = String::new();
        BufReader::new(&file).read_line(&mut line)?;
        let Ok(UndoRecord::Begin(header)) = serde_json::from_str(&line) else { return Ok(None) };
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
        let mut tail = Vec::new();
        file.take(TAIL).read_to_end(&mut tail)?;
        let last = tail.strip_suffix(b"\n").and_then(|tail| tail.rsplit(|byte| *byte == b'\n').next());
        let total = match last.map(serde_json::from_slice) {
            Some(Ok(UndoRecord::End(total))) => Some(total),
            _ => None,
        };
        let Total { changes, lost, bytes, .. } = total.unwrap_or_default();
        Ok(Some(UndoEntry { id, header, changes, lost, bytes, is_closed: total.is_some() }))
    }

    /// Begins a log under the next number, and returns it open for more lines.
    pub fn begin(&self, header: &Header) -> io::Result<(u64, File)> {
        let mut cache = self.lock();
        let private = |path: &PathBuf| match fs::DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            made => made.map(|()| true),
        };
        private(&self.dir())?;
        let mut id = self.cached(&mut cache)?.and_then(|cache| cache.entries.last()).map_or(1, |last| last.id + 1);
        while !private(&self.log_dir(id))? {
            id += 1;
        }
        let path = self.log_dir(id).join("log");
        let mut file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(path)?;
        append(&mut file, &UndoRecord::Begin(header.clone()))?;
        let entry = UndoEntry { id, header: header.clone(), changes: 0, lost: 0, bytes: 0, is_closed: false };
        let stamp = self.stamp()?;
        if let Some(cache) = &mut *cache {
            cache.entries.push(entry);
            cache.stamp = stamp;
        }
        Ok((id, file))
    }

    /// Reads a log. An incomplete last line was never acted upon.
    pub fn read(&self, id: u64) -> io::Result<UndoLog> {
        let file = BufReader::new(File::open(self.log_dir(id).join("log"))?);
        let header = Header { kind: super::log::UndoKind::Undo, of: Vec::new(), at_ms: 0, targets: Vec::new() };
        let mut log = UndoLog {
            id,
            header,
            changes: Vec::new(),
            lost: Vec::new(),
            left: None,
            after: Vec::new(),
            reverted: usize::MAX,
        };
        let mut entries = Vec::new();
        for line in file.lines() {
            match serde_json::from_str(&line?) {
                Ok(UndoRecord::Begin(header)) => log.header = header,
                Ok(UndoRecord::Entries(found)) => entries = found,
                Ok(UndoRecord::FileChange(change)) => {
                    log.changes.push(LabelledChange { change, entries: std::mem::take(&mut entries) });
                }
                Ok(UndoRecord::Left(what)) => log.left = Some(what),
                Ok(UndoRecord::Lost(lost)) => log.lost.push(lost),
                Ok(UndoRecord::Reverted(from)) => log.reverted = from,
                Ok(UndoRecord::After(after)) => log.after = after,
                Ok(UndoRecord::End(_)) => {}
                Err(_) => break,
            }
        }
        Ok(log)
    }

    /// Takes back all changes of a log, from where this stopped before, and removes it. A note that it had reached something
    /// outside is kept.
    pub fn roll_back(&self, log: &UndoLog) -> io::Result<()> {
        let tree = self.tree()?;
        let mut file = OpenOptions::new().append(true).open(self.log_dir(log.id).join("log"))?;
        if !log.lost.is_empty() {
            // If some changes cannot be taken back, none are.
            return self.close(&tree, log, &mut file);
        }
        for (number, change) in log.changes.iter().enumerate().take(log.reverted).rev() {
            if let Some(problem) = revert(&tree, change, Reverting::Work)? {
                tracing::warn!("while work was rolled back: {problem}");
            }
            append(&mut file, &UndoRecord::Reverted(number))?;
        }
        match &log.left {
            None => self.remove(log.id),
            Some(left) => self.remember(log.id, &log.header, left),
        }
    }

    /// Reduces a log to the note that its work had reached something outside of the sandbox.
    pub fn remember(&self, id: u64, header: &Header, left: &str) -> io::Result<()> {
        let lines =
            [UndoRecord::Begin(header.clone()), UndoRecord::Left(left.to_owned()), UndoRecord::End(Total::default())];
        let text: String = lines.iter().map(line).collect();
        let dir = self.log_dir(id);
        let written = self.home.write_atomic(&dir.join("log"), text.as_bytes());
        written.map_err(|error| io::Error::other(error.to_string()))?;
        for kept in fs::read_dir(&dir)?.flatten().filter(|entry| entry.file_name() != "log") {
            fs::remove_file(kept.path())?;
        }
        self.forget();
        Ok(())
    }

    /// Ends a log that its process did not end.
    fn close(&self, tree: &Tree, log: &UndoLog, file: &mut File) -> io::Result<()> {
        let after = looks(tree, &log.changes)?;
        append(file, &UndoRecord::After(after))?;
        append(file, &UndoRecord::End(Total { changes: log.changes.len(), lost: log.lost.len(), ..Total::default() }))?;
        self.forget();
        Ok(())
    }

    /// Removes a log with its kept files.
    pub fn remove(&self, id: u64) -> io::Result<()> {
        let dir = self.log_dir(id);
        let mut cache = self.lock();
        // The log first: without it, the other files mean nothing.
        match fs::remove_file(dir.join("log")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        if dir.exists() {
            self.home.remove_tree(&dir)?;
        }
        if let Some(known) = &mut *cache {
            known.entries.retain(|entry| entry.id != id);
            known.stamp = self.stamp()?;
        }
        Ok(())
    }

    /// Drops the oldest runs, except `run`, until `bytes` more fit, if possible. Returns the number of bytes that are still kept.
    pub fn make_room(&self, bytes: u64, most: u64, run: Option<&str>) -> io::Result<u64> {
        loop {
            let entries = self.entries()?;
            let kept: u64 = entries.iter().map(|entry| entry.bytes).sum();
            if kept.saturating_add(bytes) <= most && entries.len() <= MAX_LOGS {
                return Ok(kept);
            }
            let oldest = entries.iter().find(|entry| entry.is_closed && (run.is_none() || entry.run() != run));
            let Some(oldest) = oldest else { return Ok(kept) };
            for entry in entries.iter().filter(|entry| entry.is_closed && entry.run() == oldest.run()) {
                self.remove(entry.id)?;
            }
        }
    }

    fn forget(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<Cache>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Appends a line in one write.
pub(super) fn append(file: &mut File, what: &UndoRecord) -> io::Result<()> {
    file.write_all(line(what).as_bytes())
}

fn line(what: &UndoRecord) -> String {
    let mut text = kiso_base::json::text(what);
    text.push('\n');
    text
}

/// The present states of the changed paths.
pub(super) fn looks(tree: &Tree, changes: &[LabelledChange]) -> io::Result<Vec<(SessionPath, Look)>> {
    let mut paths: Vec<&SessionPath> = changes.iter().flat_map(|change| change.change.paths()).collect();
    paths.sort_unstable();
    paths.dedup();
    paths.into_iter().map(|path| Ok((path.clone(), tree.look(path)?))).collect()
}

/// The identifier of this boot of the machine, if the machine has one. Data that was not on disk before a reboot is lost.
pub fn boot() -> Option<&'static str> {
    static BOOT: OnceLock<Option<String>> = OnceLock::new();
    BOOT.get_or_init(boot_id).as_deref()
}
