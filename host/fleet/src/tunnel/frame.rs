//! What the two sides of a connection send each other once it is made.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;

use super::TunnelError;
use super::wire::{Arrival, TunnelWire};

/// Bytes of the client or the gateway in one frame: large enough that the rest weighs little, and small enough that other frames
/// need not wait long behind it.
pub(super) const MAX_DATA: usize = 32 << 10;

/// Bytes of a frame on the way: its number, the seal, its kind and the data. What is larger is looked at no further.
const MAX_SEALED: usize = 8 + 28 + 1 + MAX_DATA;

/// A frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Frame<'a> {
    /// 1 to [`MAX_DATA`] bytes of the client or the gateway.
    Data(&'a [u8]),
    /// No more data comes.
    End,
    /// So many bytes have been passed on since the beginning; more may be sent.
    Credit(u64),
    /// Data is not read any more.
    Stop,
    /// A sign of life.
    Beat,
    /// It failed here: what came is not all there was.
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

    /// `None` for what is no frame.
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

/// The two directions of a connection, as one side has them.
pub(super) struct FrameEnds {
    /// To the other side.
    pub sender: FrameSender,
    /// From the other side.
    pub receiver: FrameReceiver,
}

/// A direction of a connection: what its frames are sealed for, besides the number of each.
struct FrameSeal {
    wire: Arc<dyn TunnelWire>,
    subject: String,
    /// The owner's nonce, so that nothing of another connection opens, whatever that was called.
    nonce: String,
}

impl FrameSeal {
    fn place(&self, number: u64) -> String {
        format!("{} {} {number}", self.subject, self.nonce)
    }
}

/// Numbers, seals and sends.
pub(super) struct FrameSender {
    seal: FrameSeal,
    next: u64,
    patience: Duration,
}

/// Receives, opens and counts.
pub(super) struct FrameReceiver {
    seal: FrameSeal,
    next: u64,
    arrivals: BoxStream<'static, Arrival>,
}

impl FrameSender {
    /// `patience` is for NATS to take a frame.
    pub(super) fn new(wire: Arc<dyn TunnelWire>, subject: String, nonce: String, patience: Duration) -> FrameSender {
        FrameSender { seal: FrameSeal { wire, subject, nonce }, next: 0, patience }
    }

    /// Sends the next frame; waits while too much is on its way out of this machine.
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
    /// `arrivals` is what is published with that subject.
    pub(super) fn new(
        wire: Arc<dyn TunnelWire>,
        subject: String,
        nonce: String,
        arrivals: BoxStream<'static, Arrival>,
    ) -> FrameReceiver {
        FrameReceiver { seal: FrameSeal { wire, subject, nonce }, next: 0, arrivals }
    }

    /// The next frame, for [`Frame::decoded`]. Nothing is lost where the future is dropped.
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

    /// `None` for what is to be ignored: a frame that came before, and what was not sealed for this place.
    fn opened(&mut self, bytes: &[u8]) -> Result<Option<Vec<u8>>, TunnelError> {
        let Some((number, sealed)) = bytes.split_first_chunk().filter(|_| bytes.len() <= MAX_SEALED) else {
            return Ok(None);
        };
        let number = u64::from_be_bytes(*number);
        if number < self.next {
            return Ok(None);
        }
        // Before a gap is believed: anybody may write a number.
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
