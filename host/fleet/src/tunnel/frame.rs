//! Frames that the two sides of an open connection exchange.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;

use super::TunnelError;
use super::wire::{Arrival, TunnelWire};

/// Maximum number of data bytes in a frame: large enough that the overhead is small, and small enough that other frames need not
/// wait long.
pub(super) const MAX_DATA: usize = 32 << 10;

/// Maximum size in bytes of an encrypted frame: its number, the encryption's overhead, its kind and the data. Larger messages are
/// ignored.
const MAX_SEALED: usize = 8 + 28 + 1 + MAX_DATA;

/// A frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Frame<'a> {
    /// 1 to [`MAX_DATA`] bytes of the client or the gateway.
    Data(&'a [u8]),
    /// The end of the data.
    End,
    /// Number of bytes passed on since the beginning; more may be sent.
    Credit(u64),
    /// Data is no longer read.
    Stop,
    /// A sign of life.
    Beat,
    /// The connection failed, so the received data is incomplete.
    Reset,
}

impl Frame<'_> {
    fn encoded(&self) -> Vec<u8> {
        match self {
            Frame::Data(data) => [&[0], *data].concat(),
            Frame::End => vec![1],
            Frame::Credit(total) => [&[2][..], &total.to_be_bytes()].concat(),
            Frame::Stop => vec![3],
            Frame::Beat => vec![4],
            Frame::Reset => vec![5],
        }
    }

    /// Decodes a frame; `None` if the bytes are not a frame.
    pub(super) fn decoded(bytes: &[u8]) -> Option<Frame<'_>> {
        let (kind, rest) = bytes.split_first()?;
        match (kind, rest) {
            (0, data) if (1..=MAX_DATA).contains(&data.len()) => Some(Frame::Data(data)),
            (1, []) => Some(Frame::End),
            (2, total) => Some(Frame::Credit(u64::from_be_bytes(total.try_into().ok()?))),
            (3, []) => Some(Frame::Stop),
            (4, []) => Some(Frame::Beat),
            (5, []) => Some(Frame::Reset),
            _ => None,
        }
    }
}

/// Both directions of a connection, from one side.
pub(super) struct FrameEnds {
    /// To the other side.
    pub sender: FrameSender,
    /// From the other side.
    pub receiver: FrameReceiver,
}

/// A direction of a connection: the context for which its frames are encrypted, besides the number of each.
struct FrameSeal {
    wire: Arc<dyn TunnelWire>,
    subject: String,
    /// The owner's nonce, so that no frame of another connection can be decrypted, even one with the same name.
    nonce: String,
}

impl FrameSeal {
    fn place(&self, number: u64) -> String {
        format!("{} {} {number}", self.subject, self.nonce)
    }
}

/// Numbers, encrypts and sends frames.
pub(super) struct FrameSender {
    seal: FrameSeal,
    next: u64,
    patience: Duration,
}

/// Receives, decrypts and checks frames.
pub(super) struct FrameReceiver {
    seal: FrameSeal,
    next: u64,
    arrivals: BoxStream<'static, Arrival>,
}

impl FrameSender {
    /// `patience` is the time limit for NATS to accept a frame.
    pub(super) fn new(wire: Arc<dyn TunnelWire>, subject: String, nonce: String, patience: Duration) -> FrameSender {
        FrameSender { seal: FrameSeal { wire, subject, nonce }, next: 0, patience }
    }

    /// Sends the next frame; waits while too much is queued on this machine.
    pub(super) async fn send(&mut self, frame: Frame<'_>) -> Result<(), TunnelError> {
        let FrameSeal { wire, subject, .. } = &self.seal;
        let sealed = wire.seal().seal(&self.seal.place(self.next), &frame.encoded());
        let bytes = Bytes::from([&self.next.to_be_bytes()[..], &sealed].concat());
        self.next += 1;
        let sent = wire.publish(subject.clone(), None, bytes);
        tokio::time::timeout(self.patience, sent).await.map_err(|_| TunnelError::Silent)?
    }
}

impl FrameReceiver {
    /// `arrivals` contains the messages with this subject.
    pub(super) fn new(
        wire: Arc<dyn TunnelWire>,
        subject: String,
        nonce: String,
        arrivals: BoxStream<'static, Arrival>,
    ) -> FrameReceiver {
        FrameReceiver { seal: FrameSeal { wire, subject, nonce }, next: 0, arrivals }
    }

    /// Returns the next frame, for [`Frame::decoded`]. Cancel-safe: no frame is lost.
    pub(super) async fn next(&mut self) -> Result<Vec<u8>, TunnelError> {
        loop {
            match self.arrivals.next().await {
                Some(Arrival::Payload(bytes)) => {
                    if let Some(opened) = self.opened(&bytes)? {
                        return Ok(opened);
                    }
                }
                Some(Arrival::NobodyThere) => {}
                None => return Err(TunnelError::Nats("the connection to NATS was closed".to_owned())),
            }
        }
    }

    /// Decrypts a frame. Returns `None` for messages to ignore: repeated frames, and messages that were not encrypted for this
    /// place.
    fn opened(&mut self, bytes: &[u8]) -> Result<Option<Vec<u8>>, TunnelError> {
        let Some((number, sealed)) = bytes.split_first_chunk().filter(|_| bytes.len() <= MAX_SEALED) else {
            return Ok(None);
        };
        let number = u64::from_be_bytes(*number);
        if number < self.next {
            return Ok(None);
        }
        // Decrypted before a gap is reported, because anybody can write a number.
        let Some(plain) = self.seal.wire.seal().open(&self.seal.place(number), sealed) else { return Ok(None) };
        if number > self.next {
            return Err(TunnelError::Lost);
        }
        self.next += 1;
        Ok(Some(plain))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_as_they_were_written_and_nothing_else_is_one() {
        let data = vec![7; MAX_DATA];
        for frame in [
            Frame::Data(&data),
            Frame::Data(b"x"),
            Frame::End,
            Frame::Credit(u64::MAX),
            Frame::Stop,
            Frame::Beat,
            Frame::Reset,
        ] {
            assert_eq!(Frame::decoded(&frame.encoded()), Some(frame));
        }
        let long = [&[0][..], &data, b"x"].concat();
        for wrong in [&[][..], &[0], &long, &[1, 0], &[2], &[2, 0, 0], &[3, 3], &[6], &[255]] {
            assert_eq!(Frame::decoded(wrong), None, "{:?}", &wrong[..wrong.len().min(8)]);
        }
    }
}
