//! Lets a command that knows only WASI, which has no processes, request other commands: through a file among those of its
//! package. The command writes a request to the file; `fsync` returns when it is answered; then the command reads the answer from
//! the file. None of this is written to the disk.

use super::structure::DirId;
use crate::package::CONTROL_FILE;
use bytes::Bytes;
use std::fmt::Debug;
use std::fs::File;
use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wasmtime_wasi::p2::{
    DynInputStream, DynOutputStream, InputStream, OutputStream, Pollable, StreamError, StreamResult,
};

/// Bytes of a request, at most: arguments and environment, or the data of a write to a pipe.
const MAX_REQUEST: usize = 4 << 20;

/// Answers requests.
pub trait CommandRequests: Debug + Send {
    /// An error ends the guest.
    fn answer(&mut self, request: Vec<u8>) -> Pin<Box<dyn Future<Output = wasmtime::Result<Vec<u8>>> + Send + '_>>;
}

/// The file of one guest.
#[derive(Debug)]
pub struct ControlFile {
    id: DirId,
    /// Kept open, so that its inode number is not reused.
    _file: File,
    exchange: Arc<Mutex<Exchange>>,
    requests: Box<dyn CommandRequests>,
}

#[derive(Debug, Default)]
struct Exchange {
    request: Vec<u8>,
    /// The bytes that were not read yet.
    answer: Bytes,
}

impl ControlFile {
    /// Opens the control file in this directory.
    pub fn new(dir: &Path, requests: Box<dyn CommandRequests>) -> io::Result<Self> {
        let file = File::open(dir.join(CONTROL_FILE))?;
        Ok(Self { id: DirId::from_fd(&file)?, _file: file, exchange: Arc::default(), requests })
    }

    pub(super) fn is(&self, file: &File) -> bool {
        DirId::from_fd(file).is_ok_and(|found| found == self.id)
    }

    /// The stream to which the guest writes a request.
    pub(super) fn writes(&self) -> DynOutputStream {
        Box::new(ControlStream(self.exchange.clone()))
    }

    /// The stream from which the guest reads the rest of the answer.
    pub(super) fn reads(&self) -> DynInputStream {
        Box::new(ControlStream(self.exchange.clone()))
    }

    /// Answers the request that was written.
    pub(super) async fn answer(&mut self) -> wasmtime::Result<()> {
        let request = std::mem::take(&mut lock(&self.exchange).request);
        let answer = self.requests.answer(request).await?;
        lock(&self.exchange).answer = answer.into();
        Ok(())
    }
}

fn lock(exchange: &Mutex<Exchange>) -> MutexGuard<'_, Exchange> {
    exchange.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes writes and returns reads, at any offset of the file.
struct ControlStream(Arc<Mutex<Exchange>>);

impl OutputStream for ControlStream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        let mut exchange = lock(&self.0);
        if exchange.request.len() + bytes.len() > MAX_REQUEST {
            // The next request starts empty.
            exchange.request.clear();
            return Err(StreamError::LastOperationFailed(wasmtime::format_err!("the request is too long")));
        }
        exchange.request.extend_from_slice(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        // Longer requests fail, so nobody waits for room that never comes.
        Ok(MAX_REQUEST)
    }
}

impl InputStream for ControlStream {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        let mut exchange = lock(&self.0);
        if exchange.answer.is_empty() {
            return Err(StreamError::Closed);
        }
        let count = size.min(exchange.answer.len());
        Ok(exchange.answer.split_to(count))
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for ControlStream {
    async fn ready(&mut self) {}
}
