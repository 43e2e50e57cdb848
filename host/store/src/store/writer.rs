//! The only thread that writes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot, watch};

use super::commit_log::{Gate, Shipper};
use super::file::{FileId, connect_file};
use super::{StoreError, Tx, View};

/// Maximum writes in a commit. This limits how much a failing commit affects, and how long the first write waits.
const GROUP: usize = 64;

/// A write that a caller waits for.
pub(super) trait Work: Send {
    /// Does the work, and returns its answer for after the commit. An error means that there is nothing to commit.
    fn run(self: Box<Self>, tx: &Tx<'_>) -> (Result<(), StoreError>, Answer);

    /// Returns an error without doing the work.
    fn refuse(self: Box<Self>, error: StoreError);
}

/// Passes the result of the work, or the error of the commit, to the caller.
type Answer = Box<dyn FnOnce(Result<(), StoreError>)>;

pub(super) struct Pending<F, T> {
    pub work: F,
    pub answer: oneshot::Sender<Result<T, StoreError>>,
}

impl<F, T> Work for Pending<F, T>
where
    F: FnOnce(&Tx<'_>) -> Result<T, StoreError> + Send,
    T: Send + 'static,
{
    fn run(self: Box<Self>, tx: &Tx<'_>) -> (Result<(), StoreError>, Answer) {
        let Pending { work, answer } = *self;
        // A panic in one write must not end all others. It is rolled back like any failed write.
        let result = catch_unwind(AssertUnwindSafe(|| work(tx))).unwrap_or_else(|panic| {
            let message = panic.downcast_ref::<String>().cloned();
            let message = message.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Err(StoreError::Panicked { message: message.unwrap_or_default() })
        });
        // The caller may have gone.
        let done = result.as_ref().map(drop).map_err(StoreError::clone);
        (done, Box::new(move |committed| drop(answer.send(committed.and(result)))))
    }

    fn refuse(self: Box<Self>, error: StoreError) {
        let Pending { work, answer } = *self;
        // The caller may want back what it holds.
        drop(work);
        let _ = answer.send(Err(error));
    }
}

/// The log for commits, and the gate that blocks readers until a commit is stored there.
pub(super) struct Shipping {
    pub shipper: Shipper,
    pub gate: Arc<Gate>,
}

/// The file that is written to.
pub(super) struct WriterFile {
    path: PathBuf,
    conn: Connection,
    file: FileId,
}

impl WriterFile {
    pub(super) fn new(path: PathBuf, conn: Connection, file: FileId) -> WriterFile {
        // A run uses about eighty different statements of the writer, and parsing one takes longer than running it.
        conn.set_prepared_statement_cache_capacity(192);
        WriterFile { path, conn, file }
    }

    /// Opens the file again if another process has replaced it.
    fn follow(&mut self) -> Result<(), StoreError> {
        if FileId::from_path(&self.path) != Some(self.file) {
            let (conn, file) = connect_file(&self.path)?;
            *self = WriterFile::new(self.path.clone(), conn, file);
        }
        Ok(())
    }
}

/// Works until every sender is dropped.
pub(super) fn run(
    mut file: WriterFile,
    mut jobs: mpsc::Receiver<Box<dyn Work>>,
    feed: &watch::Sender<i64>,
    max_sessions: &AtomicU64,
    mut shipping: Option<Shipping>,
) {
    while let Some(first) = jobs.blocking_recv() {
        let mut group = vec![first];
        while group.len() < GROUP
            && let Ok(next) = jobs.try_recv()
        {
            group.push(next);
        }
        // The file of a fleet's owner is never replaced.
        if shipping.is_none()
            && let Err(error) = file.follow()
        {
            group.drain(..).for_each(|job| job.refuse(error.clone()));
        }
        commit(&file.conn, max_sessions.load(Ordering::Relaxed), group, shipping.as_mut());
        tell(&file.conn, feed);
    }
    // Closing the last connection moves the log into the file.
    let _ = file.conn.close();
}

/// Sends the last number of the feed to its followers.
fn tell(conn: &Connection, feed: &watch::Sender<i64>) {
    if feed.receiver_count() == 0 {
        return;
    }
    // Reads the end of an index. If it fails, the next commit sends it.
    let Ok(mut query) = conn.prepare_cached("SELECT coalesce(max(id), 0) FROM feed") else { return };
    if let Ok(end) = query.query_row((), |row| row.get::<_, i64>(0)) {
        feed.send_if_modified(|known| std::mem::replace(known, end) != end);
    }
}

/// Runs a statement that is parsed once.
fn execute(conn: &Connection, sql: &str) -> rusqlite::Result<()> {
    conn.prepare_cached(sql)?.execute(()).map(drop)
}

fn commit(conn: &Connection, max_sessions: u64, group: Vec<Box<dyn Work>>, mut shipping: Option<&mut Shipping>) {
    if let Some(error) = shipping.as_ref().and_then(|shipping| shipping.shipper.fenced()) {
        return group.into_iter().for_each(|job| job.refuse(error.clone()));
    }
    let mut group = group.into_iter().peekable();
    // Repeats only if SQLite gives up the transaction, for example because of a full disk.
    while group.peek().is_some() {
        if let Err(error) = execute(conn, "BEGIN IMMEDIATE") {
            let error = StoreError::from(error);
            group.by_ref().for_each(|job| job.refuse(error.clone()));
            return;
        }
        let mut answers = Vec::new();
        let mut ended = Ok(());
        for job in group.by_ref() {
            match step(conn, max_sessions, job) {
                Ok(answer) => answers.extend(answer),
                Err(error) => {
                    ended = Err(error);
                    break;
                }
            }
        }
        if ended.is_ok() {
            ended = match shipping.as_deref_mut() {
                Some(Shipping { shipper, gate }) => {
                    let closed = gate.close();
                    let shipped = execute(conn, "COMMIT").map_err(StoreError::from).and_then(|()| shipper.ship(conn));
                    drop(closed);
                    shipped
                }
                None => execute(conn, "COMMIT").map_err(StoreError::from),
            };
        }
        if ended.is_err() && !conn.is_autocommit() {
            let _ = conn.execute_batch("ROLLBACK");
        }
        answers.into_iter().for_each(|answer: Answer| answer(ended.clone()));
    }
}

/// Runs one job. If it fails, its changes are rolled back and its caller is answered at once. An error means that the whole
/// transaction is lost.
fn step(conn: &Connection, max_sessions: u64, job: Box<dyn Work>) -> Result<Option<Answer>, StoreError> {
    if let Err(error) = execute(conn, "SAVEPOINT job") {
        let error = StoreError::from(error);
        job.refuse(error.clone());
        return Err(error);
    }
    let (done, answer) = job.run(&Tx(View { conn, max_sessions }));
    if let Err(error) = done {
        answer(Ok(()));
        // SQLite may have given up the whole transaction, because of a disk error.
        if conn.is_autocommit() {
            return Err(error);
        }
        conn.execute_batch("ROLLBACK TO job; RELEASE job")?;
        return Ok(None);
    }
    match execute(conn, "RELEASE job") {
        Ok(()) => Ok(Some(answer)),
        Err(error) => {
            let error = StoreError::from(error);
            answer(Err(error.clone()));
            Err(error)
        }
    }
}
