//! The body of a request that a program sends piece by piece: a few pieces wait at a time, and not more bytes than the program
//! announced.

use super::errno::Errno;
use bytes::Bytes;
use hyper::body::{Body, Frame};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::sync::mpsc;
use wasmtime_wasi_http::Error;

/// Bytes of a piece, at most.
const MAX_PIECE: usize = 256 << 10;

/// Pieces that wait to be sent.
const PIECES: usize = 2;

/// Bytes of a body, at most.
const MAX_BODY: u64 = 1 << 30;

/// Bytes, and whether they are the last.
type Piece = (Bytes, bool);

/// The program's end.
#[derive(Debug)]
pub(super) struct RequestUpload {
    pieces: mpsc::Sender<Piece>,
    sent: u64,
    size: Option<u64>,
}

/// The connection's end.
#[derive(Debug)]
pub(super) struct UploadBody {
    pieces: mpsc::Receiver<Piece>,
    ended: bool,
}

impl RequestUpload {
    /// Makes both ends. `size` is the size of the body, if it is known. Returns `None` if that is too large.
    pub(super) fn new(size: Option<u64>) -> Option<(Self, UploadBody)> {
        let (sender, receiver) = mpsc::channel(PIECES);
        let upload = Self { pieces: sender, sent: 0, size };
        (size.unwrap_or(0) <= MAX_BODY).then_some((upload, UploadBody { pieces: receiver, ended: false }))
    }

    /// Sends a piece when there is room. Returns false if nobody reads any more. If it is cancelled, nothing was sent.
    pub(super) async fn send(&mut self, piece: Bytes, is_last: bool) -> Result<bool, Errno> {
        let sent = self.sent + piece.len() as u64;
        let fits = piece.len() <= MAX_PIECE && sent <= self.size.unwrap_or(MAX_BODY);
        if !fits || is_last && self.size.is_some_and(|size| size != sent) {
            return Err(Errno::Invalid);
        }
        let Ok(room) = self.pieces.reserve().await else { return Ok(false) };
        self.sent = sent;
        room.send((piece, is_last));
        Ok(true)
    }
}

impl Body for UploadBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        Poll::Ready(match ready!(self.pieces.poll_recv(cx)) {
            Some((bytes, is_last)) => {
                self.ended = is_last;
                (!is_last || !bytes.is_empty()).then(|| Ok(Frame::data(bytes)))
            }
            // The program has ended or closed it, so the host must not take the body for complete.
            None => Some(Err(Error::ConnectionTerminated)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;

    async fn take(mut body: UploadBody) -> Result<Vec<u8>, Error> {
        let mut all = Vec::new();
        while let Some(frame) = body.frame().await {
            all.extend_from_slice(&frame?.into_data().unwrap_or_default());
        }
        Ok(all)
    }

    #[tokio::test]
    async fn a_body_is_whole_only_where_its_last_piece_has_come() {
        for (pieces, ends, whole) in [(&["ab", "c"][..], true, true), (&["ab", "c"], false, false), (&[], true, true)] {
            let (mut upload, body) = RequestUpload::new(None).unwrap();
            let taken = tokio::spawn(take(body));
            for piece in pieces {
                assert!(upload.send(Bytes::from_static(piece.as_bytes()), false).await.unwrap());
            }
            if ends {
                assert!(upload.send(Bytes::new(), true).await.unwrap());
            }
            drop(upload);
            let expected = whole.then(|| pieces.concat().into_bytes());
            assert_eq!(taken.await.unwrap().ok(), expected, "{pieces:?} {ends}");
        }
    }

    #[tokio::test]
    async fn sizes_are_held() {
        let piece = |length: usize| Bytes::from(vec![b'x'; length]);
        assert!(RequestUpload::new(Some(MAX_BODY + 1)).is_none());
        let (mut upload, _body) = RequestUpload::new(Some(3)).unwrap();
        assert_eq!(upload.send(piece(2), true).await, Err(Errno::Invalid));
        assert_eq!(upload.send(piece(2), false).await, Ok(true));
        assert_eq!(upload.send(piece(2), false).await, Err(Errno::Invalid));
        let (mut upload, body) = RequestUpload::new(None).unwrap();
        assert_eq!(upload.send(piece(MAX_PIECE + 1), false).await, Err(Errno::Invalid));
        upload.sent = MAX_BODY;
        assert_eq!(upload.send(piece(1), false).await, Err(Errno::Invalid));
        upload.sent = 0;
        // The channel takes `PIECES` pieces, and more only after one was read.
        for _ in 0..PIECES {
            assert_eq!(upload.send(piece(1), false).await, Ok(true));
        }
        assert!(futures_util::FutureExt::now_or_never(upload.send(piece(1), false)).is_none());
        drop(body);
        assert_eq!(upload.send(piece(1), false).await, Ok(false));
    }
}
