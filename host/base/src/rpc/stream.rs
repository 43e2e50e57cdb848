//! JSON-RPC over standard streams: one message per line, with one thread for reading and one for writing.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::thread::JoinHandle;

use serde_json::Value;
use tokio::sync::mpsc;

use super::{INVALID_REQUEST, RequestId, RpcError, RpcMessage};

/// Maximum messages that wait until the peer reads.
const MAX_UNREAD: usize = 256;

/// A message, or the error of an invalid one, with the id of the request if that could be read.
pub type ReadMessage = Result<RpcMessage, (Option<RequestId>, RpcError)>;

/// The handle of the writing thread.
#[derive(Debug)]
pub struct Writer(JoinHandle<io::Result<()>>);

impl Writer {
    /// Waits until all messages are written and all senders are dropped, or until the peer is gone. A peer that no longer reads
    /// is not an error.
    pub async fn finish(self) -> io::Result<()> {
        match tokio::task::spawn_blocking(move || self.0.join()).await {
            Ok(Ok(Err(error))) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Ok(Ok(written)) => written,
            _ => Err(io::Error::other("the thread that writes has ended")),
        }
    }
}

/// Starts to write the messages that are sent. The channel closes when the peer no longer reads.
pub fn write(mut output: impl Write + Send + 'static) -> io::Result<(mpsc::Sender<Value>, Writer)> {
    let (out, mut unread) = mpsc::channel::<Value>(MAX_UNREAD);
    let writer = std::thread::Builder::new().name("kiso-rpc-out".into()).spawn(move || {
        while let Some(message) = unread.blocking_recv() {
            let mut line = message.to_string();
            line.push('\n');
            output.write_all(line.as_bytes()).and_then(|()| output.flush())?;
        }
        Ok(())
    })?;
    Ok((out, Writer(writer)))
}

/// Reads messages until the input ends or `each` returns false. Lines have at most `max_line` bytes; the error of a longer line
/// names `setting`.
pub fn read(input: impl Read, max_line: u64, setting: &str, mut each: impl FnMut(ReadMessage) -> bool) {
    let mut input = BufReader::new(input);
    loop {
        let mut line = Vec::new();
        match input.by_ref().take(max_line + 1).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        if line.len() as u64 > max_line && line.last() != Some(&b'\n') {
            let message = format!("a line has more than {max_line} bytes ({setting})");
            // Finds the next message without keeping the rest of this one.
            if !each(Err((None, RpcError::new(INVALID_REQUEST, message)))) || !skip_line(&mut input) {
                return;
            }
            continue;
        }
        if !line.iter().all(u8::is_ascii_whitespace) && !each(super::read(&line)) {
            return;
        }
    }
}

/// Skips the rest of a line; returns false at the end of the input.
fn skip_line(input: &mut impl BufRead) -> bool {
    loop {
        let (used, ended) = match input.fill_buf() {
            Ok([]) | Err(_) => return false,
            Ok(bytes) => match bytes.iter().position(|byte| *byte == b'\n') {
                Some(at) => (at + 1, true),
                None => (bytes.len(), false),
            },
        };
        input.consume(used);
        if ended {
            return true;
        }
    }
}
