//! What a client sends with a request: read to its end, also where nobody wants the rest of it.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::HttpBody;
use axum::http::{Request, header};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Frame, Incoming, SizeHint};
use tokio::runtime::Handle;

/// Bytes that are still read, and dropped, of a body that nobody reads to its end. Where a connection ends with bytes on the way, the
/// client often loses the answer that says why.
const MAX_DROPPED: u64 = 32 << 20;

/// The body of a request. What is left of it when it is dropped is read beside the answer, as far as its limits go.
#[derive(Debug)]
pub(crate) struct RequestBody {
    /// `None` as soon as the rest of it is read elsewhere.
    incoming: Option<Incoming>,
    /// The client waits until somebody wants the body.
    awaits: bool,
    /// For the rest.
    patience: Duration,
}

impl RequestBody {
    /// A request whose rest has to come within `patience` if nobody wants it.
    pub(crate) fn of(request: Request<Incoming>, patience: Duration) -> Request<RequestBody> {
        let awaits = request.headers().contains_key(header::EXPECT);
        request.map(|incoming| RequestBody { incoming: Some(incoming), awaits, patience })
    }
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.awaits = false;
        self.incoming.as_mut().map_or(Poll::Ready(None), |incoming| Pin::new(incoming).poll_frame(cx))
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.as_ref().map(HttpBody::size_hint).unwrap_or_default()
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        let Some(mut incoming) = self.incoming.take() else { return };
        // What says itself that it is larger is not read, and who has not begun need not.
        if self.awaits || incoming.is_end_stream() || incoming.size_hint().lower() > MAX_DROPPED {
            return;
        }
        let Ok(runtime) = Handle::try_current() else { return };
        let rest = async move {
            let mut dropped = 0;
            while let Some(Ok(frame)) = incoming.frame().await {
                dropped += frame.data_ref().map_or(0, Bytes::len) as u64;
                if dropped > MAX_DROPPED {
                    break;
                }
            }
        };
        runtime.spawn(tokio::time::timeout(self.patience, rest));
    }
}
