//! A channel as a standard stream of a component.

use super::channel::{Channel, IoError, TaskEnded};
use super::errno::Errno;
use crate::effect::label::LabelCell;
use crate::engine::output::LaterStream;
use crate::skill::BrokenPipe;
use bytes::Bytes;
use std::io;
use tokio::io::{AsyncRead, AsyncWrite};
use wasmtime_wasi::cli::{IsTerminal, StdinStream, StdoutStream};
use wasmtime_wasi::p2::{InputStream, OutputStream, Pollable, StreamError, StreamResult};

/// Ends a process whose output cannot be written. Many programs would ignore the error and exit as if they had succeeded.
#[derive(Debug, thiserror::Error)]
#[error("its output cannot be written: {}", .0.in_words())]
pub(super) struct WriteError(pub Errno);

/// Standard input, output or error of one process.
#[derive(Debug, Clone)]
pub struct Stdio {
    channel: Channel,
    /// The label of its process.
    label: LabelCell,
    /// Bytes that `write` may still take, as `check_write` last allowed.
    permit: usize,
}

impl Stdio {
    pub fn new(channel: Channel, label: LabelCell) -> Self {
        Self { channel, label, permit: 0 }
    }
}

/// Most bytes that one write may hand over.
const WRITE_BYTES: usize = 64 << 10;

fn write_error(refused: IoError) -> StreamError {
    match refused {
        IoError::Limit(hit) => StreamError::Trap(hit.into()),
        IoError::Ended => StreamError::Trap(TaskEnded.into()),
        // As with SIGPIPE: a command without a reader ends without a message.
        IoError::Errno(Errno::Closed) => StreamError::Trap(BrokenPipe.into()),
        IoError::Errno(errno) => StreamError::Trap(WriteError(errno).into()),
    }
}

fn read_error(refused: IoError) -> StreamError {
    match refused {
        IoError::Limit(hit) => StreamError::Trap(hit.into()),
        IoError::Ended => StreamError::Trap(TaskEnded.into()),
        IoError::Errno(errno) => StreamError::LastOperationFailed(io::Error::other(errno.in_words()).into()),
    }
}

impl IsTerminal for Stdio {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdinStream for Stdio {
    fn async_stream(&self) -> Box<dyn AsyncRead + Send + Sync> {
        Box::new(LaterStream)
    }

    fn p2_stream(&self) -> Box<dyn InputStream> {
        Box::new(self.clone())
    }
}

impl StdoutStream for Stdio {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(LaterStream)
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[wasmtime_wasi::async_trait]
impl InputStream for Stdio {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        let read = self.channel.try_read(size).map_err(read_error)?;
        // The end of the input is information, too.
        if read.is_some() {
            self.label.join(self.channel.label());
        }
        match read {
            Some(bytes) if bytes.is_empty() && size > 0 => Err(StreamError::Closed),
            Some(bytes) => Ok(bytes),
            None => Ok(Bytes::new()),
        }
    }

    async fn blocking_read(&mut self, size: usize) -> StreamResult<Bytes> {
        if size == 0 {
            return Ok(Bytes::new());
        }
        self.ready().await;
        self.read(size)
    }
}

#[wasmtime_wasi::async_trait]
impl OutputStream for Stdio {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        // The guest may ignore its permit, and bytes beyond it would pile up in the host.
        self.permit = self
            .permit
            .checked_sub(bytes.len())
            .ok_or_else(|| StreamError::trap("it wrote more than it was allowed to at once"))?;
        self.channel.mark(self.label.get()).map_err(write_error)?;
        self.channel.put(&bytes).map_err(write_error)
    }

    async fn blocking_write_and_flush(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.channel.mark(self.label.get()).map_err(write_error)?;
        self.channel.write(&bytes).await.map_err(write_error)
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.permit = self.channel.room().map_err(write_error)?.min(WRITE_BYTES);
        Ok(self.permit)
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Stdio {
    async fn ready(&mut self) {
        match self.channel {
            Channel::Writer(_) => self.channel.writable().await,
            _ => self.channel.readable().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::channel::pipe;

    #[test]
    fn a_guest_that_does_not_ask_how_much_it_may_write_is_ended() {
        let (_reader, writer) = pipe();
        let mut stdout = Stdio::new(Channel::Writer(writer), LabelCell::default());
        assert!(stdout.write(Bytes::from_static(b"x")).is_err(), "nothing was allowed yet");
        let allowed = stdout.check_write().unwrap();
        stdout.write(Bytes::from(vec![0; allowed])).unwrap();
        assert!(stdout.write(Bytes::from_static(b"x")).is_err());
        assert_eq!(stdout.check_write().unwrap(), 0, "the pipe is full");
    }
}
