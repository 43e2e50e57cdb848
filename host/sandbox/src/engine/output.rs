//! The standard output and standard error of guests. Above a cap, only the start and the end are kept.

use super::limits::{Budget, HitCell, Limit, LimitHit};
use crate::effect::label::LabelCell;
use bytes::Bytes;
use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError, StreamResult};

/// Collects what one guest, or all processes of a task, write to one of their two streams. Clones share one buffer.
#[derive(Clone)]
pub struct OutputBuffer(Arc<Inner>);

struct Inner {
    kept: Mutex<Kept>,
    /// Most bytes that are kept.
    cap: usize,
    budget: Budget,
    hit: HitCell,
    /// Notified of each write, if somebody watches.
    came: Option<Arc<Notify>>,
    /// The label of everything that was written.
    label: LabelCell,
}

#[derive(Debug, Default)]
struct Kept {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

impl std::fmt::Debug for OutputBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OutputBuffer").field("cap", &self.0.cap).finish_non_exhaustive()
    }
}

impl OutputBuffer {
    /// Keeps all bytes that may be written.
    pub fn whole(budget: Budget, hit: HitCell) -> Self {
        Self::new(usize::MAX, budget, hit, None)
    }

    /// Keeps `cap` bytes, and notifies `came` of each write.
    pub fn new(cap: usize, budget: Budget, hit: HitCell, came: Option<Arc<Notify>>) -> Self {
        Self(Arc::new(Inner { kept: Mutex::default(), cap, budget, hit, came, label: LabelCell::default() }))
    }

    /// Takes bytes. Fails if there were more than may be written.
    pub fn push(&self, bytes: &[u8]) -> Result<(), LimitHit> {
        let Inner { cap, budget, .. } = &*self.0;
        let mut kept = self.lock();
        let room = usize::try_from(budget.output_bytes().saturating_sub(kept.total)).unwrap_or(usize::MAX);
        let taken = &bytes[..bytes.len().min(room)];
        kept.total += taken.len() as u64;
        let for_head = (cap / 2).saturating_sub(kept.head.len()).min(taken.len());
        let (head, tail) = taken.split_at(for_head);
        kept.head.extend_from_slice(head);
        let for_tail = cap - cap / 2;
        kept.tail.extend(&tail[tail.len().saturating_sub(for_tail)..]);
        let over = kept.tail.len().saturating_sub(for_tail);
        kept.tail.drain(..over);
        drop(kept);
        if let Some(came) = &self.0.came {
            came.notify_one();
        }
        match taken.len() < bytes.len() {
            true => Err(self.0.hit.set(budget.hit(Limit::Output))),
            false => Ok(()),
        }
    }

    /// Removes and returns what was kept.
    pub fn take(&self) -> Vec<u8> {
        let Kept { mut head, tail, .. } = std::mem::take(&mut *self.lock());
        head.extend(tail);
        head
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The label of everything that was written.
    pub fn label(&self) -> &LabelCell {
        &self.0.label
    }

    /// Returns the kept text, with a line in the middle that says how many bytes are missing.
    pub fn text(&self) -> String {
        let kept = self.lock();
        let missing = kept.total - (kept.head.len() + kept.tail.len()) as u64;
        let (front, back) = kept.tail.as_slices();
        let tail = [front, back].concat();
        if missing == 0 {
            return String::from_utf8_lossy(&[&kept.head[..], &tail].concat()).into_owned();
        }
        let (head, tail) = (String::from_utf8_lossy(&kept.head), String::from_utf8_lossy(&tail));
        let newline = if head.ends_with('\n') { "" } else { "\n" };
        format!("{head}{newline}[… {missing} bytes left out …]\n{tail}")
    }

    /// Returns the kept bytes behind the first `from`, and the number of all bytes written so far. A line takes the place of
    /// bytes that were left out.
    pub fn since(&self, from: u64) -> (Vec<u8>, u64) {
        let kept = self.lock();
        let (head, tail) = (kept.head.len() as u64, kept.tail.len() as u64);
        let tail_at = kept.total - tail;
        let skip = |from: u64| usize::try_from(from).unwrap_or(usize::MAX);
        let mut bytes: Vec<u8> = kept.head.iter().skip(skip(from)).copied().collect();
        let at = from.max(head);
        if at < tail_at {
            bytes.extend_from_slice(format!("\n[… {} bytes left out …]\n", tail_at - at).as_bytes());
        }
        bytes.extend(kept.tail.iter().skip(skip(at.saturating_sub(tail_at))));
        (bytes, kept.total)
    }

    /// Bytes that were written.
    pub fn total(&self) -> u64 {
        self.lock().total
    }
}

impl IsTerminal for OutputBuffer {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for OutputBuffer {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(LaterStream)
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

impl OutputStream for OutputBuffer {
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
impl Pollable for OutputBuffer {
    async fn ready(&mut self) {}
}

/// `p2_stream` makes the streams of `wasi:cli`, also those of 0.3 ([`stdio`](super::stdio)). So wasmtime asks nobody for this one.
pub(crate) struct LaterStream;

impl AsyncRead for LaterStream {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Err(io::ErrorKind::Unsupported.into()))
    }
}

impl AsyncWrite for LaterStream {
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

#[cfg(test)]
mod tests {
    use super::*;
    use kiso_base::config::Config;

    fn output(cap: usize) -> OutputBuffer {
        let config = Config::default();
        OutputBuffer::new(cap, Budget::exec(&config.exec, &config.engine), HitCell::default(), None)
    }

    #[test]
    fn the_middle_of_too_much_is_left_out() {
        let all = output(10);
        all.push(b"0123456789").unwrap();
        assert_eq!((all.text().as_str(), all.total()), ("0123456789", 10));
        all.push(b"abc").unwrap();
        assert_eq!(all.text(), "01234\n[… 3 bytes left out …]\n89abc");
        all.push(&[b'x'; 1000]).unwrap();
        assert_eq!(all.text(), "01234\n[… 1003 bytes left out …]\nxxxxx");
    }

    #[test]
    fn who_watches_gets_each_byte_once_and_hears_of_what_was_left_out() {
        let all = output(10);
        all.push(b"01234567").unwrap();
        assert_eq!(all.since(0), (b"01234567".to_vec(), 8));
        assert_eq!(all.since(8), (Vec::new(), 8));
        all.push(b"89").unwrap();
        assert_eq!(all.since(6), (b"6789".to_vec(), 10));
        all.push(&[b'x'; 100]).unwrap();
        let (bytes, at) = all.since(10);
        assert_eq!((String::from_utf8(bytes).unwrap().as_str(), at), ("\n[… 95 bytes left out …]\nxxxxx", 110));
        let (bytes, _) = all.since(0);
        assert_eq!(String::from_utf8(bytes).unwrap(), "01234\n[… 100 bytes left out …]\nxxxxx");
    }

    #[test]
    fn a_cut_through_a_character_is_no_error() {
        let all = output(4);
        all.push("äöüäöü".as_bytes()).unwrap();
        assert_eq!(all.text(), "ä\n[… 8 bytes left out …]\nü");
    }

    #[test]
    fn more_than_may_be_written_at_all_is_a_limit() {
        let config = Config::parse(b"[exec]\nmax_output_mib = 1\n").unwrap();
        let hit = HitCell::default();
        let output = OutputBuffer::new(10, Budget::exec(&config.exec, &config.engine), hit.clone(), None);
        output.push(&vec![0; 1 << 20]).unwrap();
        assert_eq!(output.push(b"x").unwrap_err().limit, Limit::Output);
        assert!(hit.get().unwrap().setting.contains("[exec] max_output_mib"));
        assert_eq!(output.total(), 1 << 20);
    }

    #[test]
    fn a_skill_has_all_of_it_up_to_the_limit() {
        let config = Config::parse(b"[engine]\noutput_kib = 1\n").unwrap();
        let hit = HitCell::default();
        let output = OutputBuffer::whole(Budget::new(&config.engine, 1, 1), hit.clone());
        output.push(&[b'a'; 1_000]).unwrap();
        assert_eq!(output.push(&[b'b'; 1_000]).unwrap_err().limit, Limit::Output);
        assert!(hit.get().unwrap().setting.contains("[engine] output_kib"));
        assert_eq!(output.take(), [vec![b'a'; 1_000], vec![b'b'; 24]].concat());
        assert!(output.take().is_empty());
    }
}
