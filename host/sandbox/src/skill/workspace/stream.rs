//! Streams of files that guests read and write.

use super::labelled::LabelledWrites;
use super::quota::{Charge, Quota};
use bytes::Bytes;
use std::sync::Arc;
use wasmtime_wasi::p2::{
    DynInputStream, DynOutputStream, InputStream, OutputStream, Pollable, StreamError, StreamResult,
};

/// An input stream that stays open after a read of no bytes. wasmtime's takes the empty result of such a blocking read for the
/// end of the file.
pub(super) struct LastingStream(pub DynInputStream);

#[wasmtime_wasi::async_trait]
impl InputStream for LastingStream {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        match size {
            0 => Ok(Bytes::new()),
            size => self.0.read(size),
        }
    }

    async fn blocking_read(&mut self, size: usize) -> StreamResult<Bytes> {
        match size {
            0 => Ok(Bytes::new()),
            size => self.0.blocking_read(size).await,
        }
    }

    async fn cancel(&mut self) {
        self.0.cancel().await;
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for LastingStream {
    async fn ready(&mut self) {
        self.0.ready().await;
    }
}

/// An output stream that charges a quota before it writes.
pub(super) struct ChargedStream {
    inner: DynOutputStream,
    quota: Arc<Quota>,
    hole: u64,
    /// The charge for bytes that the inner stream may still be writing.
    pending: Option<Charge>,
    labelled: Option<LabelledWrites>,
}

impl ChargedStream {
    /// `hole` is the number of bytes that the first write skips.
    pub(super) fn new(inner: DynOutputStream, quota: Arc<Quota>, hole: u64, labelled: Option<LabelledWrites>) -> Self {
        Self { inner, quota, hole, pending: None, labelled }
    }

    fn charge(&mut self, bytes: usize) -> StreamResult<()> {
        if let Some(Err(error)) = self.labelled.as_mut().map(LabelledWrites::writing) {
            return Err(StreamError::LastOperationFailed(error.into()));
        }
        let hole = std::mem::take(&mut self.hole);
        let charge = self.quota.write(hole.saturating_add(bytes as u64));
        let charge = charge.map_err(|hit| StreamError::Trap(hit.into()))?;
        match &mut self.pending {
            Some(pending) => pending.join(charge),
            pending => *pending = Some(charge),
        }
        Ok(())
    }
}

#[wasmtime_wasi::async_trait]
impl OutputStream for ChargedStream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.charge(bytes.len())?;
        self.inner.write(bytes)
    }

    async fn blocking_write_and_flush(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.charge(bytes.len())?;
        let written = self.inner.blocking_write_and_flush(bytes).await;
        self.pending = None;
        written
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.inner.flush()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        let room = self.inner.check_write();
        // It takes more after it has written the pending bytes.
        if matches!(room, Ok(1..)) {
            self.pending = None;
        }
        room
    }

    async fn cancel(&mut self) {
        self.inner.cancel().await;
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for ChargedStream {
    async fn ready(&mut self) {
        self.inner.ready().await;
    }
}
