//! The store: everything that changes, in one SQLite file.
//!
//! ```text
//!  write(…).await ──┐                            ┌─ one transaction ──────────────┐
//!  write(…).await ──┼─▶ channel ─▶ writer thread ─▶ job, job, job … ─▶ COMMIT ─▶ answers
//!  write_blocking ──┘  (bounded)                 └─ fsync once for all of them ───┘
//!
//!  read(…).await ────▶ a reader's connection, its own snapshot; never waits for the writer
//! ```
//!
//! A write is answered when it is on disk: the log is synced at each commit (`synchronous = FULL`; with WAL's usual `NORMAL`, a
//! power cut could lose the last commits, and with them an event that a step relied on). Since a sync is slow, writes that arrive
//! during one share the next. Each still succeeds or fails alone.
//!
//! Several processes may use one store. Each opens it itself, and SQLite's locks coordinate them.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # use {kiso_base::home::SessionName, kiso_store::store::Store};
//! # let dir = std::env::temp_dir().join(format!("kiso-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir)?;
//! # let path = dir.join("store.db");
//! let store = Store::open(&path)?;
//! let session = SessionName::parse("demo")?;
//! let run = store.write_blocking(move |tx| {
//!     let run = tx.create_run(&session, "plot rain over date from weather.csv", 1_700_000_000_000)?;
//!     tx.append_event(&run, 0, 1_700_000_000_000, "started", "{}")?;
//!     Ok(run)
//! })?;
//! assert_eq!(store.read_blocking(|view| view.events(&run))?.len(), 1);
//! # store.close();
//! # std::fs::remove_dir_all(&dir)?;
//! # Ok(())
//! # }
//! ```

mod approvals;
mod background;
mod backup;
mod branches;
mod channel_offers;
mod channels;
mod chats;
mod column;
mod commit_log;
mod connected_models;
mod core_memory;
mod deletion;
mod doc_vectors;
mod error;
mod events;
mod facts;
mod feed;
mod figures;
mod file;
mod hooks;
mod id;
mod imports;
mod integrity;
mod jobs;
mod kv;
mod labels;
mod logins;
mod marks;
mod mcp;
mod mcp_logins;
mod memory;
mod migrations;
mod network_rules;
mod outbox;
mod owners;
mod pictures;
mod pills;
mod prompts;
mod published;
mod readers;
mod retention;
mod runs;
mod schedules;
mod scratchpad;
mod search;
mod secrets;
mod segments;
mod sessions;
mod skill_indexes;
mod skill_use;
mod space;
mod subagents;
mod summaries;
mod tasks;
mod tokens;
mod trees;
mod unfinished;
mod usage;
mod vectors;
mod waiting;
mod words;
mod writer;

pub use approvals::{
    ApprovalLine, ApprovalRule, ApprovalState, MAX_APPROVAL_RULES, MAX_PENDING_CARDS, NewApprovalRule,
};
pub use background::{Due, DueKind, MAX_ATTEMPTS};
pub use backup::{BackupError, StoreCopy, part_of, place, restore};
pub use branches::{
    BranchChange, KeptSummary, MAX_BRANCHES, MAX_VERSIONS, NewVersion, NotReplaced, OldBranch, ReplacedTurn,
    VersionAdmission,
};
pub use channel_offers::ChannelOffer;
pub use channels::{ChannelLine, ChannelNote, ChannelSender, PAIRING_MS, SenderStanding};
pub use chats::{Chat, ChatRequest, MAX_CHAT_REQUESTS};
pub use commit_log::{CommitLog, CommittedPages};
pub use connected_models::{ConnectedProviderRow, MAX_CONNECTED_MODELS, MAX_CONNECTED_PROVIDERS};
pub use deletion::Deletion;
pub use error::StoreError;
pub use events::{Event, is_whole_page};
pub use facts::{Fact, MAX_FACT_BYTES, MAX_FACTS, NewFact, USER};
pub use feed::{Notice, NoticeKind};
pub use figures::Figures;
pub use hooks::{HookAdmission, HookDelivery, HookLine};
pub use id::{BadRunId, RunId};
pub use imports::{OldMessage, OldRun, is_time};
pub use integrity::{AT_EACH_START, AT_ONCE, THOROUGH, check_unopened};
pub use jobs::{BegunRun, Job, JobAdmission, JobPriority, JobState, MAX_CLIENT_KEY, MAX_JOINED, NewJob};
pub use kv::{KvOwner, MAX_KEY_BYTES, MAX_KEYS, MAX_SPACE_BYTES, MAX_VALUE_BYTES};
pub use labels::LabelledRow;
pub use logins::{CODE_MS, LOGIN_MS, Login, LoginId};
pub use marks::Mark;
pub use mcp::McpToolRow;
pub use mcp_logins::McpLoginRow;
pub use memory::{Chunk, MAX_CHUNK_BYTES, MAX_CHUNKS};
pub use network_rules::{MAX_NETWORK_RULES, NetworkRuleLine, NewNetworkRule};
pub use outbox::{Delivery, MAX_PENDING, Subscription, WebhookEvent, WebhookLine};
pub use owners::SessionOwner;
pub use pictures::{KeptPicture, MAX_KEPT_PICTURES, MAX_PICTURE_BYTES};
pub use pills::{MAX_PILLS, PillRow};
pub use prompts::Prompt;
pub use published::{MAX_PUBLISHED, Publication, PublishedFile};
pub use runs::{Run, RunFilter, RunLine, RunStatus};
pub use schedules::{DueSchedule, NewSchedule, Receipt, ReceiptState, Schedule};
pub use scratchpad::{
    MAX_ENTRIES, MAX_ENTRY_BYTES, MAX_NAMED_BYTES, MAX_NAMED_ENTRIES, MAX_SCRATCHPAD_BYTES, ScratchpadEntry,
};
pub use search::{Candidate, Search};
pub use secrets::{MAX_SEALED_BYTES, MAX_SECRETS};
pub use sessions::{Message, MessageRole, ModelChoice, PAGE_BYTES, Placement, SessionLine, is_full};
pub use skill_indexes::IndexVersion;
pub use skill_use::{MAX_USED_THINGS, MORE, SkillUse, UsedThing};
pub use space::Space;
pub use subagents::{Spawn, SpawnLimits, SpawnRefused, Subagent};
pub use summaries::Summary;
pub use tasks::{TaskRow, TaskState};
pub use tokens::{MAX_TOKEN_NAME, Token, TokenScope};
pub use usage::{Scope, Totals, UsageLine};
pub use vectors::{MAX_DIMENSIONS, PendingPassage, Vector};
pub use waiting::MAX_TAGS;
pub use words::Words;
pub use words::{SEALED, shared_words};

use std::fs::OpenOptions;
use std::ops::Deref;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use tokio::sync::{mpsc, oneshot, watch};

use commit_log::{Gate, Shipper};
use file::connect_file;
use readers::Readers;
use writer::{Pending, Shipping, Work, WriterFile};

/// Maximum writes in the writer's queue. Further callers wait for a place, so that a slow disk slows down the work instead of
/// filling the memory.
const QUEUE: usize = 256;

/// How long to wait for another process that holds the write lock. Its transactions take milliseconds, so this is only reached if
/// a process hangs with the lock held.
const BUSY: Duration = Duration::from_secs(10);

/// Bytes of a page in a new store; older stores keep their pages of 4 KiB. A commit writes whole pages, and a typical step
/// changes a few bytes in each of a dozen tables and indexes.
const PAGE: i64 = 1_024;

/// Size of the log in bytes at which it is moved into the file. A page that changes with each message is then written to its
/// place once for hundreds of messages, which makes an SD card last longer. After a crash, this much is read again.
const LOG: i64 = 16 << 20;

/// A handle to the store. Cheap to clone; the file is closed when the last one is dropped, or by [`Store::close`].
#[derive(Debug, Clone)]
pub struct Store(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    readers: Arc<Readers>,
    writer: Mutex<Option<Writer>>,
    /// The last notice of the feed that this process knows.
    feed: watch::Sender<i64>,
    bell: watch::Sender<()>,
    max_sessions: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Writer {
    jobs: mpsc::Sender<Box<dyn Work>>,
    thread: JoinHandle<()>,
}

/// Read access to one snapshot. Its functions are in the files of their tables.
#[derive(Debug)]
pub struct View<'a> {
    conn: &'a Connection,
    /// Maximum sessions.
    max_sessions: u64,
}

/// A transaction: it is committed as a whole, or, if its closure returns an error, rolled back. It can read its own writes.
#[derive(Debug)]
pub struct Tx<'a>(View<'a>);

impl<'a> View<'a> {
    fn new(conn: &'a Connection) -> View<'a> {
        View { conn, max_sessions: u64::MAX }
    }
}

impl<'a> Deref for Tx<'a> {
    type Target = View<'a>;

    fn deref(&self) -> &View<'a> {
        &self.0
    }
}

impl Store {
    /// Opens the file. Creates it (0600) if it does not exist, and migrates its tables to the current version.
    ///
    /// Refuses a database of a newer kiso, one with other migrations, and files that are not databases.
    pub fn open(path: &Path) -> Result<Store, StoreError> {
        Store::open_file(path, None).map_err(|error| error.in_file(path))
    }

    /// Like [`Store::open`]; additionally passes each commit to `log` before it is answered or can be read. There must be no
    /// write-ahead log beside the file. Changes by migrations are the first commit.
    pub fn open_logged(path: &Path, log: Box<dyn CommitLog>) -> Result<Store, StoreError> {
        let shipper = Shipper::new(path, log);
        let store = Store::open_file(path, Some(shipper)).map_err(|error| error.in_file(path))?;
        // Ships the changes by migrations.
        store.write_blocking(|_| Ok(()))?;
        Ok(store)
    }

    fn open_file(path: &Path, shipper: Option<Shipper>) -> Result<Store, StoreError> {
        integrity::check_not_lost(path)?;
        // SQLite would make it readable for all; its other files (-wal, -shm) copy the permissions of this one.
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(StoreError::from_io(error)),
            _ => {}
        }
        let (mut conn, file) = connect_file(path)?;
        if let Err(error) = migrations::migrate(&mut conn, migrations::ALL) {
            leave_log(&conn, true)?;
            return Err(error);
        }
        let (jobs, queue) = mpsc::channel(QUEUE);
        let feed = watch::Sender::new(0);
        let max_sessions = Arc::new(AtomicU64::new(u64::MAX));
        let gate = shipper.is_some().then(Arc::<Gate>::default);
        let shipping = shipper.zip(gate.clone()).map(|(shipper, gate)| Shipping { shipper, gate });
        let thread = std::thread::Builder::new()
            .name("store".to_owned())
            .spawn({
                let (feed, max_sessions, path) = (feed.clone(), max_sessions.clone(), path.to_path_buf());
                move || writer::run(WriterFile::new(path, conn, file), queue, &feed, &max_sessions, shipping)
            })
            .map_err(StoreError::from_io)?;
        Ok(Store(Arc::new(Shared {
            path: path.to_path_buf(),
            readers: Arc::new(Readers::new(path, gate)),
            writer: Mutex::new(Some(Writer { jobs, thread })),
            feed,
            bell: watch::Sender::new(()),
            max_sessions,
        })))
    }

    /// Does the work in a transaction, and answers when it is on disk. Once it is in the queue, the work is done even if the
    /// caller stops waiting.
    pub async fn write<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        F: FnOnce(&Tx<'_>) -> Result<T, StoreError> + Send + 'static,
        T: Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        self.jobs()?.send(Box::new(Pending { work, answer })).await.map_err(|_| StoreError::Closed)?;
        answered.await.unwrap_or(Err(StoreError::Closed)).map_err(|error| self.0.readers.noted(error))
    }

    /// [`Store::write`] for callers that are not async. Panics inside a tokio runtime.
    pub fn write_blocking<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        F: FnOnce(&Tx<'_>) -> Result<T, StoreError> + Send + 'static,
        T: Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        self.jobs()?.blocking_send(Box::new(Pending { work, answer })).map_err(|_| StoreError::Closed)?;
        answered.blocking_recv().unwrap_or(Err(StoreError::Closed)).map_err(|error| self.0.readers.noted(error))
    }

    /// Queues work for the writer that nobody waits for. If the queue is full, the work is dropped.
    pub fn post<F>(&self, work: F)
    where
        F: FnOnce(&Tx<'_>) -> Result<(), StoreError> + Send + 'static,
    {
        let (answer, _) = oneshot::channel();
        if let Ok(jobs) = self.jobs() {
            let _ = jobs.try_send(Box::new(Pending { work, answer }));
        }
    }

    /// Sets the maximum number of sessions; a write that would create a further one fails with [`StoreError::Sessions`]. Existing
    /// sessions stay.
    pub fn limit_sessions(&self, max: u64) {
        self.0.max_sessions.store(max, Ordering::Relaxed);
    }

    /// Reads in one snapshot, on a thread where blocking is allowed.
    pub async fn read<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        F: FnOnce(&View<'_>) -> Result<T, StoreError> + Send + 'static,
        T: Send + 'static,
    {
        let readers = Arc::clone(&self.0.readers);
        let slot = readers.slot().await;
        let read = kiso_base::compute::blocking(move || {
            let _slot = slot;
            readers.read(work)
        });
        read.await.unwrap_or_else(|failed| match failed.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(StoreError::Closed),
        })
    }

    /// [`Store::read`] for a few rows that an index finds, on the calling thread: moving to another thread and back takes many
    /// times as long. If no connection is free, it behaves like a normal read.
    pub async fn peek<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        F: FnOnce(&View<'_>) -> Result<T, StoreError> + Send + 'static,
        T: Send + 'static,
    {
        match self.0.readers.free_place() {
            Some(_place) => self.0.readers.read(work),
            None => self.read(work).await,
        }
    }

    /// [`Store::read`] on the calling thread.
    pub fn read_blocking<T>(&self, work: impl FnOnce(&View<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.0.readers.read(work)
    }

    /// Changes when this process has committed something to the feed. Changes by other processes are seen with the next change.
    pub fn feed_changes(&self) -> watch::Receiver<i64> {
        self.0.feed.subscribe()
    }

    /// Tells the queue and the schedule of this process that there may be committed work for them. They find work of other
    /// processes by polling, a moment later.
    pub fn ring(&self) {
        self.0.bell.send_replace(());
    }

    /// Receives [`Store::ring`].
    pub fn bell(&self) -> watch::Receiver<()> {
        self.0.bell.subscribe()
    }

    /// Whether anything in this process receives it, that is, whether the process is a daemon.
    pub fn is_attended(&self) -> bool {
        self.0.bell.receiver_count() > 0
    }

    /// Returns the damage to the file that a read, a write or a check has found since it was opened, if any.
    pub fn damage(&self) -> Option<&str> {
        self.0.readers.damage()
    }

    /// Where the database is.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Finishes the queued writes, moves the log into the file and closes it. Later calls on any handle fail with
    /// [`StoreError::Closed`].
    pub fn close(&self) {
        self.0.close();
    }

    fn jobs(&self) -> Result<mpsc::Sender<Box<dyn Work>>, StoreError> {
        let writer = self.0.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.as_ref().map(|writer| writer.jobs.clone()).ok_or(StoreError::Closed)
    }
}

impl Shared {
    fn close(&self) {
        let Some(Writer { jobs, thread }) = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return;
        };
        // SQLite moves the log into the file when the last connection is closed, so the readers are closed first.
        self.readers.close();
        drop(jobs);
        // A job may have owned the last handle.
        if thread.thread().id() != std::thread::current().id() {
            let _ = thread.join();
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.close();
    }
}

fn connect(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(BUSY)?;
    leave_log(&conn, true)?;
    conn.pragma_update(None, "foreign_keys", true)?;
    // Replaced or deleted data may have contained a secret; none of it stays in free space.
    conn.pragma_update(None, "secure_delete", true)?;
    conn.pragma_update(None, "synchronous", "FULL")?;
    // On macOS, a plain fsync leaves the data in the drive's cache; on other systems, this has no effect.
    conn.pragma_update(None, "fullfsync", true)?;
    // A larger log is truncated.
    conn.pragma_update(None, "journal_size_limit", LOG)?;
    // Otherwise, SQLite prepares a statement again for each bound value, which takes longer than running it. A plan for a
    // particular value would need statistics, which this store does not have.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    conn.set_prepared_statement_cache_capacity(64);
    // Must come before the first write to the file (see `space`); later, it would be a write each time.
    if conn.pragma_query_value(None, "page_count", |row| row.get::<_, i64>(0))? == 0 {
        conn.pragma_update(None, "page_size", PAGE)?;
        conn.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    }
    use_wal(&conn)?;
    let page: i64 = conn.pragma_query_value(None, "page_size", |row| row.get(0))?;
    conn.pragma_update(None, "wal_autocheckpoint", LOG / page)?;
    leave_log(&conn, false)?;
    Ok(conn)
}

/// Whether the log stays when the connection is closed, instead of being moved into the file: nothing is written into a file that
/// turns out to be damaged.
fn leave_log(conn: &Connection, leave: bool) -> Result<(), StoreError> {
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, leave)?;
    Ok(())
}

/// If two processes switch a new file to WAL at once, one gets "busy" without the wait that other statements get.
fn use_wal(conn: &Connection) -> Result<(), StoreError> {
    let deadline = std::time::Instant::now() + BUSY;
    loop {
        match conn.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0)) {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => return Err(StoreError::NoWal { path: PathBuf::new(), mode }),
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && std::time::Instant::now() < deadline =>
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests;
