//! Standard output and standard error of a guest: kept in memory, up to a cap that ends the call.

use crate::skill::limits::{Budget, HitCell, Limit, LimitHit};
use bytes::Bytes;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError, StreamResult};

/// Collects what the guest writes. Clones share one buffer.
#[derive(Debug, Clone)]
pub(super) struct Capture {
    bytes: Arc<Mutex<Vec<u8>>>,
    budget: Budget,
    hit: HitCell,
}

impl Capture {
    pub(super) fn new(budget: Budget, hit: HitCell) -> Self {
        Self { bytes: Arc::default(), budget, hit }
    }

    /// What was written so far.
    pub(super) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.lock())
    }

    fn push(&self, more: &[u8]) -> Result<(), LimitHit> {
        let mut bytes = self.lock();
        let room = usize::try_from(self.budget.output_kib << 10).unwrap_or(usize::MAX).saturating_sub(bytes.len());
        bytes.extend_from_slice(&more[..more.len().min(room)]);
        if more.len() > room {
            return Err(self.hit.set(self.budget.hit(Limit::Output)));
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl IsTerminal for Capture {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Capture {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

impl AsyncWrite for Capture {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(self.push(buf).map(|()| buf.len()).map_err(io::Error::other))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl OutputStream for Capture {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.push(&bytes).map_err(|hit| StreamError::Trap(hit.into()))
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(64 << 10)
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Capture {
    async fn ready(&mut self) {}
}
