//! One side of a connection: bytes of a stream go into frames, and those of frames into the stream.
//!
//! Each side has two halves, which end by themselves: it reads the stream until its end and says `End`, and it writes what comes until the
//! other side's `End`. Who cannot write any more says `Stop`, and still sends what there is to read: a server may answer and close before
//! it has read everything.

use std::collections::VecDeque;
use std::io;

use futures_util::FutureExt;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, WriteHalf};
use tokio::time::{Instant, MissedTickBehavior};

use super::frame::{Frame, FrameEnds, FrameSender, MAX_DATA};
use super::{TunnelError, TunnelLimits};

/// Bytes that one side may have sent and the other has not passed on yet. With 50 ms between them, that is 5 MB a second.
pub(super) const WINDOW: usize = 256 << 10;

/// The stream as it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Open,
    /// All was sent, or nobody wants more.
    Done,
}

/// The stream as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Open,
    /// Nothing more comes; what waits is still written.
    Ending,
    /// All was written, or nobody reads it.
    Done,
}

/// What one side knows.
struct Pump<'a> {
    sender: FrameSender,
    limits: &'a TunnelLimits,
    source: Source,
    target: Target,
    /// Bytes since the beginning: sent by this side, passed on by the other one, and passed on here.
    sent: u64,
    credited: u64,
    written: u64,
    /// What the other side was told of the last.
    told: u64,
    /// Received and not passed on; at most a window.
    waiting: VecDeque<u8>,
    /// When the last frame came.
    heard: Instant,
    /// When a reader last took something, or had nothing to take.
    taken: Instant,
}

/// Carries a connection to its end. `first` is a frame that came already. The stream must not keep written bytes back until it is
/// flushed. After an error, the other side has been told as far as that goes without waiting.
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

/// Writes a part of what waits, and says how much; where nothing waits, and 0, that nothing more comes.
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

    /// Whether the other side has anything left to say.
    fn expects_more(&self) -> bool {
        self.source == Source::Open || self.target == Target::Open
    }

    fn has_to_write(&self) -> bool {
        !self.waiting.is_empty() || self.target == Target::Ending
    }

    /// Bytes that may be read and sent now.
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
                // It was sent before the other side knew.
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
            // An idle connection holds no memory.
            self.waiting = VecDeque::new();
        }
        self.written += count(length);
        // Seldom enough to weigh little, and long before the other side has to wait for it.
        if self.target == Target::Open && self.written - self.told >= count(WINDOW / 4) {
            self.told = self.written;
            self.sender.send(Frame::Credit(self.written)).await?;
        }
        Ok(())
    }

    /// Nobody reads any more what comes.
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
        // Whoever has sent everything may also have gone; only writing tells.
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
