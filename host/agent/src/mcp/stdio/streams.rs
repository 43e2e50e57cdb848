//! The streams of a server: pipes of the sandbox, or of the system.

use std::io;

use bytes::Bytes;
use tokio::net::unix::pipe;

use kiso_sandbox::exec::Channel;

/// Standard input of a server.
#[derive(Debug)]
pub(crate) enum ServerInput {
    Component(Channel),
    Process(pipe::Sender),
}

/// Standard output of a server.
#[derive(Debug)]
pub(crate) enum ServerOutput {
    Component(Channel),
    Process(pipe::Receiver),
}

impl ServerInput {
    /// Writes all bytes.
    pub(crate) async fn write(&self, mut bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Component(channel) => {
                channel.write(bytes).await.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))
            }
            Self::Process(pipe) => {
                while !bytes.is_empty() {
                    pipe.writable().await?;
                    match pipe.try_write(bytes) {
                        Ok(count) => bytes = &bytes[count..],
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                        Err(error) => return Err(error),
                    }
                }
                Ok(())
            }
        }
    }

    /// Writes the bytes if that is possible at once, otherwise nothing. They are short enough for an atomic write to a pipe.
    pub(crate) fn try_write(&self, bytes: &[u8]) {
        match self {
            Self::Component(channel) if channel.room().is_ok_and(|room| room >= bytes.len()) => {
                let _ = channel.put(bytes);
            }
            Self::Component(_) => {}
            Self::Process(pipe) => drop(pipe.try_write(bytes)),
        }
    }
}

/// Output, line by line. Cancel-safe: an incomplete line is kept.
#[derive(Debug)]
pub(super) struct ServerLines {
    from: ServerOutput,
    bytes: Vec<u8>,
    /// Number of bytes that contain no line break.
    searched: usize,
}

/// Why there is no line.
#[derive(Debug)]
pub(super) enum LineError {
    TooLong,
    Io(String),
}

/// Bytes per read.
const READ_BYTES: usize = 64 << 10;

impl ServerLines {
    pub(super) fn new(from: ServerOutput) -> ServerLines {
        ServerLines { from, bytes: Vec::new(), searched: 0 }
    }

    /// Returns the next non-empty line, of at most `room` bytes; `None` at the end.
    pub(super) async fn next(&mut self, room: usize) -> Result<Option<Vec<u8>>, LineError> {
        loop {
            if let Some(at) = self.bytes[self.searched..].iter().position(|byte| *byte == b'\n') {
                let rest = self.bytes.split_off(self.searched + at + 1);
                let line = std::mem::replace(&mut self.bytes, rest);
                self.searched = 0;
                if line.len() > room {
                    return Err(LineError::TooLong);
                }
                if line.iter().all(u8::is_ascii_whitespace) {
                    continue;
                }
                return Ok(Some(line));
            }
            self.searched = self.bytes.len();
            if self.bytes.len() > room {
                return Err(LineError::TooLong);
            }
            let more = self.from.read().await?;
            if more.is_empty() {
                return Ok(None);
            }
            self.bytes.extend_from_slice(&more);
        }
    }
}

impl ServerOutput {
    /// Waits for data and returns it; empty at the end.
    async fn read(&self) -> Result<Bytes, LineError> {
        let failed = |error: &dyn std::fmt::Display| LineError::Io(error.to_string());
        match self {
            Self::Component(channel) => {
                channel.read(READ_BYTES).await.map_err(|_| failed(&"its output cannot be read"))
            }
            Self::Process(pipe) => loop {
                pipe.readable().await.map_err(|error| failed(&error))?;
                let mut bytes = vec![0; READ_BYTES];
                match pipe.try_read(&mut bytes) {
                    Ok(count) => {
                        bytes.truncate(count);
                        return Ok(bytes.into());
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Err(failed(&error)),
                }
            },
        }
    }
}
