//! One side of a connection: converts the bytes of a stream to frames, and frames to bytes.
//!
//! Each side has two halves, which end independently: one reads the stream until its end and sends `End`, the other writes
//! received bytes until the other side's `End`. A side that cannot write any more sends `Stop`, and still sends the bytes that it
//! reads: a server may respond and close before it has read everything.

use std::collections::VecDeque;
use std::io;

use futures_util::FutureExt;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, WriteHalf};
use tokio::time::{Instant, MissedTickBehavior};

use super::frame::{Frame, FrameEnds, FrameSender, MAX_DATA};
use super::{TunnelError, TunnelLimits};

/// Maximum number of bytes that one side has sent and the other has not passed on yet. With a latency of 50 ms, that allows 5 MB
/// per second.
pub(super) const WINDOW: usize = 256 << 10;

/// State of the reading half.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Open,
    /// Everything was sent, or the other side needs no more.
    Done,
}

/// State of the writing half.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Open,
    /// No more bytes arrive; waiting ones are still written.
    Ending,
    /// Everything was written, or nobody reads it.
    Done,
}

/// State of one side.
struct Pump<'a> {
    sender: FrameSender,
    limits: &'a TunnelLimits,
    source: Source,
    target: Target,
    /// Byte counts since the beginning: sent by this side, passed on by the other side, and passed on here.
    sent: u64,
    credited: u64,
    written: u64,
    /// The last value of `written` that was sent to the other side.
    told: u64,
    /// Received bytes that were not passed on yet; at most a window.
    waiting: VecDeque<u8>,
    /// Time of the last frame.
    heard: Instant,
    /// Last time when a reader took something, or had nothing to take.
    taken: Instant,
}

/// Serves a connection until its end. `first` is a frame that has already arrived. The stream must not buffer written bytes until
/// a flush. After an error, the other side is notified if that is possible without waiting.
pub(super) async fn carry<S: AsyncRead + AsyncWrite>(
    stream: S,
    ends: FrameEnds,
    first: Option<Vec<u8>>,
    limits: &TunnelLimits,
) -> Result<(), TunnelError> {
    let FrameEnds { sender, mut receiver } = ends;
    let (mut reader, mut writer) = tokio::io::split(stream);
    let now = Instant::now();
    let mut pump = Pump {
        sender,
        limits,
        source: Source::Open,
        target: Target::Open,
        sent: 0,
        credited: 0,
        written: 0,
        told: 0,
        waiting: VecDeque::new(),
        heard: now,
        taken: now,
    };
    let mut chunk = vec![0; MAX_DATA];
    let mut beat = tokio::time::interval(limits.beat);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let carried = async {
        if let Some(first) = first {
            pump.hear(&first)?;
        }
        while !pump.is_over() {
            let room = pump.room();
            tokio::select! {
                frame = receiver.next(), if pump.expects_more() => pump.hear(&frame?)?,
                read = reader.read(&mut chunk[..room]), if room > 0 => match read? {
                    0 => pump.source_ended().await?,
                    length => pump.send_data(&chunk[..length]).await?,
                },
                written = write_some(&mut writer, &pump.waiting), if pump.has_to_write() => match written {
                    Ok(0) => pump.target = Target::Done,
                    Ok(length) => pump.passed_on(length).await?,
                    Err(_) => pump.target_gone().await?,
                },
                _ = beat.tick() => pump.beat(&mut writer).await?,
            }
        }
        Ok(())
    };
    let carried = carried.await;
    if !matches!(carried, Ok(()) | Err(TunnelError::Reset)) {
        let _ = pump.sender.send(Frame::Reset).now_or_never();
    }
    carried
}

/// Writes a part of the waiting bytes, and returns its length. If there are none, closes the writing direction and returns 0.
async fn write_some<S: AsyncWrite>(writer: &mut WriteHalf<S>, waiting: &VecDeque<u8>) -> io::Result<usize> {
    let (part, _) = waiting.as_slices();
    if part.is_empty() {
        return writer.shutdown().await.map(|()| 0);
    }
    match writer.write(part).await? {
        0 => Err(io::ErrorKind::WriteZero.into()),
        length => Ok(length),
    }
}

impl Pump<'_> {
    fn is_over(&self) -> bool {
        self.source == Source::Done && self.target == Target::Done
    }

    /// Returns whether the other side may still send frames that matter.
    fn expects_more(&self) -> bool {
        self.source == Source::Open || self.target == Target::Open
    }

    fn has_to_write(&self) -> bool {
        !self.waiting.is_empty() || self.target == Target::Ending
    }

    /// Returns the number of bytes that may be read and sent now.
    fn room(&self) -> usize {
        let window = u64::try_from(WINDOW).unwrap_or(u64::MAX);
        let room = usize::try_from(window.saturating_sub(self.sent - self.credited)).unwrap_or(0);
        if self.source == Source::Open { room.min(MAX_DATA) } else { 0 }
    }

    fn hear(&mut self, frame: &[u8]) -> Result<(), TunnelError> {
        self.heard = Instant::now();
        match Frame::decoded(frame).ok_or(TunnelError::Protocol("a frame of another kind"))? {
            Frame::Data(data) => match self.target {
                Target::Open => self.keep(data)?,
                Target::Ending => return Err(TunnelError::Protocol("data behind the end")),
                // The frame was sent before the other side knew.
                Target::Done => {}
            },
            Frame::End if self.target == Target::Open => self.target = Target::Ending,
            Frame::Credit(total) if (self.credited..=self.sent).contains(&total) => self.credited = total,
            Frame::Credit(_) => return Err(TunnelError::Protocol("more was passed on than was sent")),
            Frame::Stop => self.source = Source::Done,
            Frame::Reset => return Err(TunnelError::Reset),
            Frame::End | Frame::Beat => {}
        }
        Ok(())
    }

    fn keep(&mut self, data: &[u8]) -> Result<(), TunnelError> {
        if self.waiting.len() + data.len() > WINDOW {
            return Err(TunnelError::Protocol("more data than the window"));
        }
        if self.waiting.is_empty() {
            self.taken = Instant::now();
        }
        self.waiting.extend(data);
        Ok(())
    }

    async fn send_data(&mut self, data: &[u8]) -> Result<(), TunnelError> {
        self.sent += count(data.len());
        self.sender.send(Frame::Data(data)).await
    }

    async fn source_ended(&mut self) -> Result<(), TunnelError> {
        self.source = Source::Done;
        self.sender.send(Frame::End).await
    }

    async fn passed_on(&mut self, length: usize) -> Result<(), TunnelError> {
        self.taken = Instant::now();
        self.waiting.drain(..length);
        if self.waiting.is_empty() {
            // An idle connection uses no memory.
            self.waiting = VecDeque::new();
        }
        self.written += count(length);
        // Rare enough to cost little, and long before the other side has to wait for it.
        if self.target == Target::Open && self.written - self.told >= count(WINDOW / 4) {
            self.told = self.written;
            self.sender.send(Frame::Credit(self.written)).await?;
        }
        Ok(())
    }

    /// Handles the end of the reader.
    async fn target_gone(&mut self) -> Result<(), TunnelError> {
        self.target = Target::Done;
        self.waiting = VecDeque::new();
        self.sender.send(Frame::Stop).await
    }

    async fn beat<S: AsyncWrite>(&mut self, writer: &mut WriteHalf<S>) -> Result<(), TunnelError> {
        if !self.waiting.is_empty() && self.taken.elapsed() >= self.limits.stalled {
            return Err(TunnelError::Stalled);
        }
        if !self.expects_more() {
            return Ok(());
        }
        if self.heard.elapsed() >= self.limits.silence {
            return Err(TunnelError::Silent);
        }
        // After everything was sent, the reader may be gone, too; only writing detects that.
        let is_gone = self.source == Source::Done && matches!(writer.write(&[]).now_or_never(), Some(Err(_)));
        if is_gone && self.target == Target::Open {
            return self.target_gone().await;
        }
        self.sender.send(Frame::Beat).await
    }
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
