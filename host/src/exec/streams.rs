//! A channel as the standard stream of a component.

use super::channel::{Channel, Refused};
use super::wit::kiso::exec::spawn::Errno;
use crate::skill::BrokenPipe;
use bytes::Bytes;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use wasmtime_wasi::cli::{IsTerminal, StdinStream, StdoutStream};
use wasmtime_wasi::p2::{InputStream, OutputStream, Pollable, StreamError, StreamResult};

/// Standard input, output or error of one process.
#[derive(Debug, Clone)]
pub struct Stdio(pub Channel);

fn stream_error(refused: Refused) -> StreamError {
    match refused {
        Refused::Limit(hit) => StreamError::Trap(hit.into()),
        // As SIGPIPE does: a command that nobody listens to any more has nothing to say about it.
        Refused::Errno(Errno::Closed) => StreamError::Trap(BrokenPipe.into()),
        Refused::Errno(errno) => StreamError::LastOperationFailed(io::Error::other(errno.name()).into()),
    }
}

impl IsTerminal for Stdio {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdinStream for Stdio {
    fn async_stream(&self) -> Box<dyn AsyncRead + Send + Sync> {
        Box::new(Unused)
    }

    fn p2_stream(&self) -> Box<dyn InputStream> {
        Box::new(self.clone())
    }
}

impl StdoutStream for Stdio {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(Unused)
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[wasmtime_wasi::async_trait]
impl InputStream for Stdio {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        match self.0.try_read(size).map_err(stream_error)? {
            Some(bytes) if bytes.is_empty() && size > 0 => Err(StreamError::Closed),
            Some(bytes) => Ok(bytes),
            None => Ok(Bytes::new()),
        }
    }
}

#[wasmtime_wasi::async_trait]
impl OutputStream for Stdio {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.0.put(&bytes).map_err(stream_error)
    }

    async fn blocking_write_and_flush(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.0.write(&bytes).await.map_err(stream_error)
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.0.room().map_err(stream_error)
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Stdio {
    async fn ready(&mut self) {
        match self.0 {
            Channel::Writer(_) => self.0.writable().await,
            _ => self.0.readable().await,
        }
    }
}

/// The streams of `wasi:cli` 0.2 are made by `p2_stream`; this is for those of later versions, which are not offered.
struct Unused;

impl AsyncRead for Unused {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Err(io::ErrorKind::Unsupported.into()))
    }
}

impl AsyncWrite for Unused {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Err(io::ErrorKind::Unsupported.into()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
