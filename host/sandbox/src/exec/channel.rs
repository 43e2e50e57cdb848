//! Channels: what a process reads from and writes to. An open file, one end of a pipe, or a stream of the task.

use super::errno::Errno;
use crate::effect::files::TaintedFile;
use crate::effect::label::{LabelCell, LabelId, OpenToWrite};
use crate::effect::sink::MountSink;
use crate::effect::undo::UndoRefusal;
use crate::engine::limits::{HitCell, LimitHit};
use crate::engine::output::OutputBuffer;
use crate::skill::sandbox::{OverlayError, Quota};
use bytes::Bytes;
use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::Notify;

/// The bytes that a pipe holds before its writers wait: as many as a pipe of Linux.
const PIPE_BYTES: usize = 64 << 10;

/// Most bytes that one call of a guest reads.
const READ_BYTES: usize = 1 << 20;

/// A channel; clones are duplicates of the same open file.
#[derive(Debug, Clone)]
pub enum Channel {
    /// Empty to read, and takes everything.
    Null,
    /// Zeros without end.
    Zero,
    /// Random bytes without end.
    Random,
    Reader(PipeReader),
    Writer(PipeWriter),
    File(Arc<OpenFile>),
    Output(OutputBuffer),
}

/// The reason why an operation on a channel failed.
#[derive(Debug)]
pub enum IoError {
    /// The process may handle it.
    Errno(Errno),
    /// A limit, which ends the task.
    Limit(LimitHit),
    /// Another process of the task reached a limit.
    Ended,
}

impl IoError {
    /// The error of a process that tried to change something that could not be undone.
    pub fn of_undo(refusal: UndoRefusal, quota: &Quota) -> Self {
        match refusal {
            UndoRefusal::TooLarge(why) => Self::Limit(quota.not_undoable(&why)),
            UndoRefusal::Io(error) => error.into(),
            UndoRefusal::Across => Errno::Invalid.into(),
        }
    }

    /// The error of a process whose change of a folder failed.
    pub(crate) fn of_overlay(error: OverlayError, quota: &Quota) -> Self {
        match error {
            OverlayError::Io(error) => error.into(),
            OverlayError::Undo(refusal) => Self::of_undo(refusal, quota),
            OverlayError::Limit(hit) => Self::Limit(hit),
        }
    }
}

/// A process ends because another one of its task reached a limit.
#[derive(Debug, thiserror::Error)]
#[error("the task has reached a limit")]
pub(super) struct TaskEnded;

impl From<Errno> for IoError {
    fn from(errno: Errno) -> Self {
        Self::Errno(errno)
    }
}

impl From<std::io::Error> for IoError {
    fn from(error: std::io::Error) -> Self {
        Self::Errno(Errno::from(&error))
    }
}

impl Channel {
    /// Reads the available bytes, at most `max`. Returns `None` if the caller must wait, and no bytes at the end.
    pub fn try_read(&self, max: usize) -> Result<Option<Bytes>, IoError> {
        let max = max.min(READ_BYTES);
        match self {
            Self::Null => Ok(Some(Bytes::new())),
            Self::Zero => Ok(Some(Bytes::from(vec![0; max]))),
            Self::Random => {
                let mut bytes = vec![0; max];
                ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut bytes).map_err(|_| Errno::Io)?;
                Ok(Some(Bytes::from(bytes)))
            }
            Self::Reader(reader) => reader.0.pipe.take(max, false),
            Self::File(file) => Ok(Some(file.read(max)?)),
            Self::Writer(_) | Self::Output(_) => Err(Errno::BadChannel.into()),
        }
    }

    /// The label of the data that is read from it.
    pub fn label(&self) -> LabelId {
        match self {
            Self::Reader(reader) => reader.0.pipe.label.get(),
            Self::File(file) => file.label(),
            Self::Null | Self::Zero | Self::Random | Self::Writer(_) | Self::Output(_) => LabelId::default(),
        }
    }

    /// Records that somebody with this label is about to write to it.
    pub fn mark(&self, label: LabelId) -> Result<(), IoError> {
        if label == LabelId::default() {
            return Ok(());
        }
        match self {
            Self::Writer(writer) => writer.0.pipe.label.join(label),
            Self::Output(output) => output.label().join(label),
            Self::File(file) => file.mark(label)?,
            Self::Null | Self::Zero | Self::Random | Self::Reader(_) => {}
        }
        Ok(())
    }

    /// Records that a process has it open, perhaps to write to it.
    pub(super) fn held_by(&self, process: &LabelCell) {
        match self {
            Self::Writer(writer) => process.holds(OpenPipe(Arc::downgrade(&writer.0))),
            Self::Output(output) => process.holds(OpenOutput(output.clone())),
            Self::File(file) if file.writable => process.holds(OpenRedirection(Arc::downgrade(file))),
            Self::File(_) | Self::Null | Self::Zero | Self::Random | Self::Reader(_) => {}
        }
    }

    /// Waits until `try_read` returns something.
    pub async fn readable(&self) {
        if let Self::Reader(reader) = self {
            reader.0.pipe.readable().await;
        }
    }

    /// Waits for at most `max` bytes; empty at the end.
    pub async fn read(&self, max: usize) -> Result<Bytes, IoError> {
        loop {
            if let Some(bytes) = self.try_read(max)? {
                return Ok(bytes);
            }
            self.readable().await;
        }
    }

    /// Like [`Channel::read`], but stops after the first newline.
    pub async fn read_line(&self, max: usize) -> Result<Bytes, IoError> {
        let max = max.min(READ_BYTES);
        match self {
            Self::File(file) => Ok(file.read_line(max)?),
            Self::Reader(reader) => loop {
                if let Some(bytes) = reader.0.pipe.take(max, true)? {
                    return Ok(bytes);
                }
                reader.0.pipe.readable().await;
            },
            _ => self.read(max).await,
        }
    }

    /// The number of bytes that [`Channel::put`] takes now; 0 if the caller must wait.
    pub fn room(&self) -> Result<usize, IoError> {
        match self {
            Self::Writer(writer) => writer.0.pipe.room(),
            Self::Reader(_) => Err(Errno::BadChannel.into()),
            _ => Ok(PIPE_BYTES),
        }
    }

    /// Waits until `room` returns something.
    pub async fn writable(&self) {
        if let Self::Writer(writer) = self {
            writer.0.pipe.writable().await;
        }
    }

    /// Writes bytes without waiting, as many as [`Channel::room`] allowed.
    pub fn put(&self, bytes: &[u8]) -> Result<(), IoError> {
        match self {
            Self::Null | Self::Zero | Self::Random => Ok(()),
            Self::Writer(writer) => writer.0.pipe.put(bytes),
            Self::File(file) => file.write(bytes),
            Self::Output(output) => output.push(bytes).map_err(IoError::Limit),
            Self::Reader(_) => Err(Errno::BadChannel.into()),
        }
    }

    /// Writes all bytes, waiting where a pipe is full.
    pub async fn write(&self, mut bytes: &[u8]) -> Result<(), IoError> {
        while !bytes.is_empty() {
            match self.room()? {
                0 => self.writable().await,
                room => {
                    let (now, later) = bytes.split_at(room.min(bytes.len()));
                    self.put(now)?;
                    bytes = later;
                }
            }
        }
        Ok(())
    }
}

/// A new pipe.
pub fn pipe() -> (PipeReader, PipeWriter) {
    pipe_of(HitCell::default())
}

/// A new pipe in a task that ends with `hit`.
pub(super) fn pipe_of(hit: HitCell) -> (PipeReader, PipeWriter) {
    let pipe = Arc::new(Pipe { hit, ..Pipe::default() });
    (PipeReader(Arc::new(ReadEnd { pipe: pipe.clone() })), PipeWriter(Arc::new(WriteEnd { pipe })))
}

/// The end of a pipe to read from; it closes with its last clone.
#[derive(Debug, Clone)]
pub struct PipeReader(Arc<ReadEnd>);

/// The end of a pipe to write to; it closes with its last clone.
#[derive(Debug, Clone)]
pub struct PipeWriter(Arc<WriteEnd>);

#[derive(Debug)]
struct ReadEnd {
    pipe: Arc<Pipe>,
}

#[derive(Debug)]
struct WriteEnd {
    pipe: Arc<Pipe>,
}

impl Drop for ReadEnd {
    fn drop(&mut self) {
        let mut state = self.pipe.lock();
        state.unread = true;
        // Nobody will ever read these bytes.
        state.bytes = VecDeque::new();
        drop(state);
        self.pipe.taken.notify_waiters();
    }
}

impl Drop for WriteEnd {
    fn drop(&mut self) {
        self.pipe.lock().ended = true;
        self.pipe.came.notify_waiters();
    }
}

#[derive(Debug)]
struct OpenPipe(Weak<WriteEnd>);

impl OpenToWrite for OpenPipe {
    fn mark(&self, label: LabelId) -> bool {
        self.0.upgrade().is_some_and(|end| {
            end.pipe.label.join(label);
            true
        })
    }
}

/// The output of a task, which is closed with the task.
#[derive(Debug)]
struct OpenOutput(OutputBuffer);

impl OpenToWrite for OpenOutput {
    fn mark(&self, label: LabelId) -> bool {
        self.0.label().join(label);
        true
    }
}

#[derive(Debug)]
struct OpenRedirection(Weak<OpenFile>);

impl OpenToWrite for OpenRedirection {
    fn mark(&self, label: LabelId) -> bool {
        self.0
            .upgrade()
            .is_some_and(|open| open.quota.labels().is_none_or(|labels| labels.writing_at_all(&open.file, label)))
    }
}

#[derive(Debug, Default)]
struct Pipe {
    state: Mutex<State>,
    /// Bytes came, or the last writer went.
    came: Notify,
    /// Bytes were taken, or the last reader went.
    taken: Notify,
    /// The limit that ended the task. The other end of the pipe is not told that an end closed since then: it would take half a
    /// result for a whole one.
    hit: HitCell,
    /// The label of everything that was written to it.
    label: LabelCell,
}

#[derive(Debug, Default)]
struct State {
    bytes: VecDeque<u8>,
    /// All writers are gone.
    ended: bool,
    /// All readers are gone.
    unread: bool,
}

impl Pipe {
    fn take(&self, max: usize, line: bool) -> Result<Option<Bytes>, IoError> {
        let mut state = self.lock();
        if state.bytes.is_empty() && max > 0 {
            return match state.ended {
                true if self.hit.get().is_some() => Err(IoError::Ended),
                true => Ok(Some(Bytes::new())),
                false => Ok(None),
            };
        }
        let mut count = state.bytes.len().min(max);
        if line && let Some(newline) = state.bytes.iter().take(count).position(|b| *b == b'\n') {
            count = newline + 1;
        }
        let bytes: Vec<u8> = state.bytes.drain(..count).collect();
        drop(state);
        self.taken.notify_waiters();
        Ok(Some(Bytes::from(bytes)))
    }

    fn room(&self) -> Result<usize, IoError> {
        let state = self.lock();
        if state.unread {
            return Err(self.unread());
        }
        Ok(PIPE_BYTES.saturating_sub(state.bytes.len()))
    }

    fn put(&self, bytes: &[u8]) -> Result<(), IoError> {
        let mut state = self.lock();
        if state.unread {
            return Err(self.unread());
        }
        state.bytes.extend(bytes);
        drop(state);
        self.came.notify_waiters();
        Ok(())
    }

    /// The error when nobody can read from the pipe.
    fn unread(&self) -> IoError {
        self.hit.get().map_or(Errno::Closed.into(), |_| IoError::Ended)
    }

    async fn readable(&self) {
        wait(&self.came, || {
            let state = self.lock();
            !state.bytes.is_empty() || state.ended
        })
        .await;
    }

    async fn writable(&self) {
        wait(&self.taken, || {
            let state = self.lock();
            state.bytes.len() < PIPE_BYTES || state.unread
        })
        .await;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for a notification unless `is_so` returns true. Notifications in between are not missed.
async fn wait(notify: &Notify, is_so: impl Fn() -> bool) {
    let notified = notify.notified();
    tokio::pin!(notified);
    notified.as_mut().enable();
    if !is_so() {
        notified.await;
    }
}

/// A file of the workspace that was opened for a redirection. Its accesses are charged like a guest's own.
#[derive(Debug)]
pub struct OpenFile {
    pub file: File,
    /// The label that its publisher gave it, if it belongs to an Agent Skill.
    pub published: LabelId,
    pub append: bool,
    pub readable: bool,
    pub writable: bool,
    pub position: Mutex<u64>,
    pub quota: Arc<Quota>,
    /// Its mount, if it does not belong to the session.
    pub machine: Option<MountSink>,
    /// Records that somebody below the user writes to it.
    pub tainted: Mutex<Option<TaintedFile>>,
}

/// Bytes to read at once when searching for the end of a line.
const LINE_BYTES: usize = 512;

impl OpenFile {
    fn label(&self) -> LabelId {
        let label = self.quota.labels().map_or(LabelId::session(), |labels| labels.label_of(&self.file));
        label.join(self.published)
    }

    fn mark(&self, label: LabelId) -> Result<(), IoError> {
        if self.machine.as_ref().is_some_and(|machine| !machine.admits(label)) {
            return Err(Errno::Denied.into());
        }
        let Some(labels) = self.quota.labels().filter(|_| !label.is_ordinary()) else { return Ok(()) };
        // The undo copy gets the label that the file has now, so it is made before the label changes.
        if let Some(work) = self.quota.transaction() {
            work.writing(&self.file, self.append).map_err(|refusal| IoError::of_undo(refusal, &self.quota))?;
        }
        let mut tainted = self.tainted.lock().unwrap_or_else(PoisonError::into_inner);
        if tainted.is_none() {
            *tainted = Some(labels.tainted(&self.file)?);
        }
        Ok(labels.writing(&self.file, label)?)
    }

    fn read(&self, max: usize) -> Result<Bytes, IoError> {
        if !self.readable {
            return Err(Errno::BadChannel.into());
        }
        let mut position = self.position.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = vec![0; max];
        let count = self.file.read_at(&mut bytes, *position)?;
        *position += count as u64;
        bytes.truncate(count);
        Ok(Bytes::from(bytes))
    }

    fn read_line(&self, max: usize) -> Result<Bytes, IoError> {
        if !self.readable {
            return Err(Errno::BadChannel.into());
        }
        let mut position = self.position.lock().unwrap_or_else(PoisonError::into_inner);
        let mut line = Vec::new();
        while line.len() < max {
            let mut bytes = vec![0; LINE_BYTES.min(max - line.len())];
            let count = self.file.read_at(&mut bytes, *position + line.len() as u64)?;
            let newline = bytes[..count].iter().position(|b| *b == b'\n');
            line.extend_from_slice(&bytes[..newline.map_or(count, |at| at + 1)]);
            if count == 0 || newline.is_some() {
                break;
            }
        }
        *position += line.len() as u64;
        Ok(Bytes::from(line))
    }

    fn write(&self, bytes: &[u8]) -> Result<(), IoError> {
        if !self.writable {
            return Err(Errno::BadChannel.into());
        }
        if let Some(work) = self.quota.transaction() {
            work.writing(&self.file, self.append).map_err(|refusal| IoError::of_undo(refusal, &self.quota))?;
        }
        let _until_written = self.quota.write(bytes.len() as u64).map_err(IoError::Limit)?;
        let mut position = self.position.lock().unwrap_or_else(PoisonError::into_inner);
        if self.append {
            *position = self.file.metadata()?.len();
        }
        self.file.write_all_at(bytes, *position)?;
        *position += bytes.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::limits::{Budget, Limit};
    use kiso_base::config::Config;

    fn limit() -> LimitHit {
        let config = Config::default();
        Budget::exec(&config.exec, &config.engine).hit(Limit::Memory)
    }

    #[tokio::test]
    async fn a_pipe_holds_what_it_is_given_and_ends_with_its_last_writer() {
        let (reader, writer) = pipe();
        let (reader, writer) = (Channel::Reader(reader), Channel::Writer(writer));
        let other = writer.clone();
        writer.write(b"one\ntwo\n").await.unwrap();
        drop(writer);
        assert_eq!(reader.read_line(100).await.unwrap(), "one\n");
        assert_eq!(reader.read(2).await.unwrap(), "tw");
        assert!(reader.try_read(10).unwrap().is_some());
        assert!(reader.try_read(10).unwrap().is_none(), "a writer is left");
        drop(other);
        assert_eq!(reader.read(10).await.unwrap(), "");
    }

    #[tokio::test]
    async fn a_full_pipe_makes_its_writer_wait_and_a_closed_one_ends_it() {
        let (reader, writer) = pipe();
        let (reader, writer) = (Channel::Reader(reader), Channel::Writer(writer));
        let long = vec![b'x'; 3 * PIPE_BYTES];
        let writing = tokio::spawn({
            let writer = writer.clone();
            async move { writer.write(&long).await }
        });
        let mut count = 0;
        while count < 3 * PIPE_BYTES {
            let bytes = reader.read(READ_BYTES).await.unwrap();
            assert!(bytes.len() <= PIPE_BYTES);
            count += bytes.len();
        }
        writing.await.unwrap().unwrap();
        let writing = tokio::spawn(async move { writer.write(&vec![0; 2 * PIPE_BYTES]).await });
        tokio::task::yield_now().await;
        drop(reader);
        assert!(matches!(writing.await.unwrap(), Err(IoError::Errno(Errno::Closed))));
    }

    #[tokio::test]
    async fn what_a_limit_cut_off_does_not_look_like_an_end() {
        let hit = HitCell::default();
        let (reader, writer) = pipe_of(hit.clone());
        let (other_reader, other_writer) = pipe_of(hit.clone());
        let (reader, writer) = (Channel::Reader(reader), Channel::Writer(writer));
        writer.write(b"half").await.unwrap();
        hit.set(limit());
        drop((writer, other_reader));
        assert_eq!(reader.read(100).await.unwrap(), "half");
        assert!(matches!(reader.read(100).await, Err(IoError::Ended)));
        assert!(matches!(reader.read_line(100).await, Err(IoError::Ended)));
        assert!(matches!(Channel::Writer(other_writer).write(b"more").await, Err(IoError::Ended)));
    }
}
