//! Request bodies, which are read to the end even if nobody needs the rest.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::HttpBody;
use axum::http::{Request, header};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Frame, Incoming, SizeHint};
use tokio::runtime::Handle;

/// Maximum size in bytes of the rest of an unused body that is read and discarded. If a connection is closed while data is in
/// transit, the client often loses the error response.
const MAX_DROPPED: u64 = 32 << 20;

/// The body of a request. When it is dropped, the rest is read in the background, within limits.
#[derive(Debug)]
pub(crate) struct RequestBody {
    /// `None` once the rest is read in the background.
    incoming: Option<Incoming>,
    /// Whether the client waits for "100 Continue" before it sends the body.
    awaits: bool,
    /// Time limit for the rest.
    patience: Duration,
}

impl RequestBody {
    /// Wraps a request; if nobody reads its body, the rest must arrive within `patience`.
    pub(crate) fn wrap(request: Request<Incoming>, patience: Duration) -> Request<RequestBody> {
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
        // A body that announces a larger size is not read, and a client that has not started to send need not start.
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
