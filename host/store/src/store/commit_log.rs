//! Ships each commit to a log outside of the store, if there is one: the pages that it changed.
//!
//! ```text
//! BEGIN … COMMIT ─▶ store.db-wal ─▶ WalTail: pages since the last commit ─▶ CommitLog::append ─▶ answers, readers
//! ```
//!
//! They are read from SQLite's write-ahead log, whose format is documented (sqlite.org/fileformat2.html, section 4): a header of
//! 32 bytes, and frames with a header of 24 bytes and a page each. A frame is valid if its salts are those of the header and its
//! checksum, which continues from frame to frame, is correct. The last frame of a transaction contains the size of the database.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

use rusqlite::backup::Progress;
use rusqlite::{Connection, MAIN_DB};

use super::StoreError;

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;

/// Maximum bytes of a page, according to SQLite.
const MAX_PAGE: u32 = 64 << 10;

/// Stores commits elsewhere. It runs on the store's own thread, which waits for it.
pub trait CommitLog: Send + fmt::Debug {
    /// Stores a commit. The commit is neither answered nor readable before this returns. After an error, the store writes nothing
    /// more, and reports this error. Returns true if a whole copy is needed, so that the log does not grow forever.
    fn append(&mut self, commit: &CommittedPages) -> Result<bool, String>;

    /// Stores a whole copy, which is at `copy` and equals the current store. Also called after another process has written,
    /// because the write-ahead log may no longer contain its changes.
    fn replace(&mut self, copy: &Path) -> Result<(), String>;
}

/// The changes of one or several commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommittedPages {
    /// Bytes of a page.
    pub page_bytes: u32,
    /// Number of pages in the database; pages after these are gone.
    pub pages: u32,
    /// By number, from 1.
    pub changed: BTreeMap<u32, Vec<u8>>,
}

/// Prevents readers from seeing a commit that is not stored elsewhere yet.
#[derive(Debug, Default)]
pub(super) struct Gate(RwLock<()>);

impl Gate {
    /// Called by the writer before a commit; held until the commit is stored.
    pub(super) fn close(&self) -> RwLockWriteGuard<'_, ()> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Called by a reader; held until its snapshot has begun.
    pub(super) fn pass(&self) -> RwLockReadGuard<'_, ()> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a reader would not have to wait.
    pub(super) fn is_open(&self) -> bool {
        !matches!(self.0.try_read(), Err(TryLockError::WouldBlock))
    }
}

/// Passes each commit of the writer's connection to a log.
pub(super) struct Shipper {
    log: Box<dyn CommitLog>,
    tail: WalTail,
    /// SQLite's number that changes when another connection has written.
    version: Option<i64>,
    copy: PathBuf,
    /// Why nothing is written any more.
    fenced: Option<String>,
}

impl Shipper {
    /// Creates one for a store at `path` without a write-ahead log.
    pub(super) fn new(path: &Path, log: Box<dyn CommitLog>) -> Shipper {
        let beside = |ending: &str| {
            let mut name = path.as_os_str().to_owned();
            name.push(ending);
            PathBuf::from(name)
        };
        Shipper { log, tail: WalTail::new(beside("-wal")), version: None, copy: beside("-copy"), fenced: None }
    }

    /// Returns why nothing is written any more, if so.
    pub(super) fn fenced(&self) -> Option<StoreError> {
        self.fenced.clone().map(|why| StoreError::Fenced { why })
    }

    /// Ships everything that was committed since the last call.
    pub(super) fn ship(&mut self, conn: &Connection) -> Result<(), StoreError> {
        self.try_ship(conn).map_err(|why| {
            self.fenced = Some(why.clone());
            StoreError::Fenced { why }
        })
    }

    fn try_ship(&mut self, conn: &Connection) -> Result<(), String> {
        let version = conn.pragma_query_value(None, "data_version", |row| row.get::<_, i64>(0)).map_err(in_words)?;
        let others = self.version.replace(version).is_some_and(|before| before != version);
        let generation = self.tail.generation;
        let committed = self.tail.take().map_err(in_words)?;
        // The log was restarted, so another process's earlier changes are unknown.
        if others && generation.is_some() && self.tail.generation != generation {
            return self.replace(conn);
        }
        match committed {
            Some(commit) if self.log.append(&commit)? => self.replace(conn),
            _ => Ok(()),
        }
    }

    fn replace(&mut self, conn: &Connection) -> Result<(), String> {
        let _ = std::fs::remove_file(&self.copy);
        conn.backup(MAIN_DB, &self.copy, None::<fn(Progress)>).map_err(in_words)?;
        let kept = self.log.replace(&self.copy);
        let _ = std::fs::remove_file(&self.copy);
        kept
    }
}

fn in_words(error: impl fmt::Display) -> String {
    error.to_string()
}

/// The part of a write-ahead log that was not read yet.
struct WalTail {
    path: PathBuf,
    /// The salts of the log. They change when the log is restarted.
    generation: Option<[u8; 8]>,
    /// The position of the next frame.
    at: u64,
    sums: Checksum,
    page_bytes: u32,
}

impl WalTail {
    fn new(path: PathBuf) -> WalTail {
        WalTail { path, generation: None, at: 0, sums: Checksum::default(), page_bytes: 0 }
    }

    /// Returns the changes committed since the last call; `None` if there are none.
    #[expect(clippy::expect_used, reason = "it has eight bytes")]
    fn take(&mut self) -> io::Result<Option<CommittedPages>> {
        let file = match File::open(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let mut header = [0; HEADER];
        if !read_whole(&file, &mut header, 0)? {
            return Ok(None);
        }
        let salts: [u8; 8] = header[16..24].try_into().expect("it has eight bytes");
        if self.generation != Some(salts) {
            self.begin(&header)?;
            self.generation = Some(salts);
        }
        let mut committed = None;
        let (mut at, mut sums, mut changed) = (self.at, self.sums, BTreeMap::new());
        let page_bytes = self.page_bytes as usize;
        let mut frame = vec![0; FRAME_HEADER + page_bytes];
        while read_whole(&file, &mut frame, at)? && frame[8..16] == salts {
            sums.add(&frame[..8]);
            sums.add(&frame[FRAME_HEADER..]);
            if sums.values() != (word(&frame, 16), word(&frame, 20)) {
                break;
            }
            at += frame.len() as u64;
            changed.insert(word(&frame, 0), frame[FRAME_HEADER..].to_vec());
            let pages = word(&frame, 4);
            if pages != 0 {
                let commit = committed.get_or_insert_with(|| CommittedPages {
                    page_bytes: self.page_bytes,
                    pages,
                    changed: BTreeMap::new(),
                });
                commit.pages = pages;
                commit.changed.append(&mut changed);
                (self.at, self.sums) = (at, sums);
            }
        }
        if let Some(commit) = &mut committed {
            commit.changed.retain(|number, _| *number <= commit.pages);
        }
        Ok(committed)
    }

    fn begin(&mut self, header: &[u8; HEADER]) -> io::Result<()> {
        let wrong = |what: &str| io::Error::new(ErrorKind::InvalidData, format!("{}: {what}", self.path.display()));
        let big_endian = match word(header, 0) {
            0x377f_0682 => false,
            0x377f_0683 => true,
            _ => return Err(wrong("it is no write-ahead log")),
        };
        let page_bytes = word(header, 8);
        if !page_bytes.is_power_of_two() || !(512..=MAX_PAGE).contains(&page_bytes) {
            return Err(wrong("its pages have an impossible size"));
        }
        let mut sums = Checksum { big_endian, ..Checksum::default() };
        sums.add(&header[..24]);
        if sums.values() != (word(header, 24), word(header, 28)) {
            return Err(wrong("its header is damaged"));
        }
        (self.at, self.sums, self.page_bytes) = (HEADER as u64, sums, page_bytes);
        Ok(())
    }
}

/// SQLite's checksum, which continues over a whole log.
#[derive(Debug, Clone, Copy, Default)]
struct Checksum {
    big_endian: bool,
    sums: (u32, u32),
}

impl Checksum {
    #[expect(clippy::expect_used, reason = "chunks of eight bytes have two of four")]
    fn add(&mut self, bytes: &[u8]) {
        let read = |four: &[u8]| {
            let four = four.try_into().expect("chunks of eight bytes have two of four");
            if self.big_endian { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) }
        };
        let (mut first, mut second) = self.sums;
        for eight in bytes.chunks_exact(8) {
            first = first.wrapping_add(read(&eight[..4])).wrapping_add(second);
            second = second.wrapping_add(read(&eight[4..])).wrapping_add(first);
        }
        self.sums = (first, second);
    }

    fn values(&self) -> (u32, u32) {
        self.sums
    }
}

#[expect(clippy::expect_used, reason = "it has four bytes")]
fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("it has four bytes"))
}

/// Reads into the buffer. Returns whether the file had that many bytes there.
fn read_whole(file: &File, buffer: &mut [u8], at: u64) -> io::Result<bool> {
    match file.read_exact_at(buffer, at) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| true),
    }
}
