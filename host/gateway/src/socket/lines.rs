//! Lines on a socket: reading within a limit, and writing within a time limit.

use std::io;
use std::time::Duration;

use serde_json::Value;
use tokio::net::UnixStream;

/// Bytes per read.
const CHUNK: usize = 8 << 10;

/// One end of a connection, line by line.
#[derive(Debug)]
pub struct Lines {
    stream: UnixStream,
    max_line: usize,
    stalled: Duration,
    /// Received bytes that are not yet a complete line.
    buffer: Vec<u8>,
    /// Number of bytes at the beginning of the buffer without a line break.
    searched: usize,
}

/// Why there is no next line.
#[derive(Debug, thiserror::Error)]
pub enum NoLine {
    #[error("the line has more than {max} bytes")]
    TooLong { max: usize },
    #[error("the line is not UTF-8")]
    NotUtf8,
    /// The client is gone. An incomplete last line is ignored.
    #[error("the connection has ended")]
    Gone,
}

impl Lines {
    /// `max_line` is in bytes; a write fails if it makes no progress for `stalled`.
    pub fn new(stream: UnixStream, max_line: usize, stalled: Duration) -> Lines {
        Lines { stream, max_line, stalled, buffer: Vec::new(), searched: 0 }
    }

    /// Waits for a line and returns it without its line break. Cancel-safe: no data is lost.
    pub async fn next(&mut self) -> Result<String, NoLine> {
        loop {
            if let Some(at) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') {
                let rest = self.buffer.split_off(self.searched + at + 1);
                let mut line = std::mem::replace(&mut self.buffer, rest);
                self.searched = 0;
                line.pop();
                if line.len() > self.max_line {
                    return Err(NoLine::TooLong { max: self.max_line });
                }
                return String::from_utf8(line).map_err(|_| NoLine::NotUtf8);
            }
            self.searched = self.buffer.len();
            if self.searched > self.max_line {
                return Err(NoLine::TooLong { max: self.max_line });
            }
            self.stream.readable().await.map_err(|_| NoLine::Gone)?;
            self.buffer.resize(self.searched + CHUNK, 0);
            let read = self.stream.try_read(&mut self.buffer[self.searched..]);
            self.buffer.truncate(self.searched + read.as_ref().map_or(0, |read| *read));
            match read {
                Ok(0) => return Err(NoLine::Gone),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return Err(NoLine::Gone),
            }
        }
    }

    /// Writes one object as a line.
    pub async fn write(&self, object: &Value) -> io::Result<()> {
        let mut line = object.to_string();
        line.push('\n');
        let mut rest = line.as_bytes();
        while !rest.is_empty() {
            // A client that does not read must not occupy memory for an unlimited time.
            tokio::time::timeout(self.stalled, self.stream.writable())
                .await
                .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "the client does not read"))??;
            match self.stream.try_write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(max_line: usize) -> (Lines, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (Lines::new(ours, max_line, Duration::from_millis(1)), theirs)
    }

    fn send(theirs: &UnixStream, bytes: &[u8]) {
        assert_eq!(theirs.try_write(bytes).unwrap(), bytes.len());
    }

    #[tokio::test]
    async fn lines_come_whole_however_they_were_cut() {
        let (mut lines, theirs) = lines(8);
        theirs.writable().await.unwrap();
        send(&theirs, "one\n\ntwö\nthr".as_bytes());
        assert_eq!(lines.next().await.unwrap(), "one");
        assert_eq!(lines.next().await.unwrap(), "");
        assert_eq!(lines.next().await.unwrap(), "twö");
        // Cancelling the wait loses no data.
        assert!(futures_util::FutureExt::now_or_never(lines.next()).is_none());
        send(&theirs, b"ee567\n");
        assert_eq!(lines.next().await.unwrap(), "three567");
        send(&theirs, b"half");
        drop(theirs);
        assert!(matches!(lines.next().await, Err(NoLine::Gone)));
    }

    #[tokio::test]
    async fn a_line_without_end_and_a_line_of_other_bytes_are_refused() {
        let (mut endless, theirs) = lines(8);
        theirs.writable().await.unwrap();
        send(&theirs, b"123456789");
        assert!(matches!(endless.next().await, Err(NoLine::TooLong { max: 8 })));
        let (mut odd, theirs) = lines(8);
        theirs.writable().await.unwrap();
        send(&theirs, b"a\xff\n");
        assert!(matches!(odd.next().await, Err(NoLine::NotUtf8)));
    }

    #[tokio::test]
    async fn a_client_that_does_not_read_is_given_up() {
        let (lines, _theirs) = lines(8);
        let large = Value::String("x".repeat(16 << 20));
        assert_eq!(lines.write(&large).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
