//! The body of a request while it is sent. Everything that the call has read since the request began counts as sent, and each
//! piece that is taken shows that the connection is alive.

use crate::effect::label::LabelId;
use crate::effect::sink::Permit;
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use wasmtime_wasi_http::{Error, WasiBody};

/// The request that a body belongs to, as its permit allowed it.
pub(super) struct SentTo {
    pub permit: Permit,
    pub host: String,
    pub changes: bool,
    pub by_name: bool,
}

pub(super) struct SentBody {
    body: WasiBody,
    to: SentTo,
    /// The label that was allowed last.
    allowed: LabelId,
    progress: BodyProgress,
}

/// The progress of a body. Clones share it.
#[derive(Clone)]
pub(super) struct BodyProgress(Arc<Mutex<State>>);

struct State {
    /// When the connection last took a piece.
    moved: Instant,
    /// Whether the connection waits for the call's next piece.
    waits_for_call: bool,
    /// The reason why the rest of the body may not be sent.
    refused: Option<String>,
}

impl SentBody {
    /// `allowed` is the label with which the permit allowed the request.
    pub(super) fn new(body: WasiBody, to: SentTo, allowed: LabelId) -> (Self, BodyProgress) {
        let state = State { moved: Instant::now(), waits_for_call: false, refused: None };
        let progress = BodyProgress(Arc::new(Mutex::new(state)));
        (Self { body, to, allowed, progress: progress.clone() }, progress)
    }

    /// Checks the data that the call has read by now.
    fn check(&mut self) -> Result<(), Error> {
        let label = self.to.permit.read().get();
        if label != self.allowed {
            let SentTo { permit, host, changes, by_name } = &self.to;
            if let Err(why) = permit.request_body(host, *changes, *by_name) {
                self.progress.lock().refused = Some(why);
                return Err(Error::HttpRequestDenied);
            }
            self.allowed = label;
        }
        Ok(())
    }
}

impl Body for SentBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        self.progress.moved(polled.is_pending());
        match polled {
            Poll::Pending => Poll::Pending,
            // The length of the body is information, too.
            Poll::Ready(frame) => match self.check() {
                Ok(()) => Poll::Ready(frame),
                Err(error) => Poll::Ready(Some(Err(error))),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl BodyProgress {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn moved(&self, waits_for_call: bool) {
        let mut state = self.lock();
        (state.moved, state.waits_for_call) = (Instant::now(), waits_for_call);
    }

    /// The reason why labels did not allow the rest of the body.
    pub(super) fn take_refusal(&self) -> Option<String> {
        self.lock().refused.take()
    }

    /// Waits for the response; `None` if nothing has happened for `limit`. The time in which the call makes its next piece does
    /// not count.
    pub(super) async fn answered<T>(&self, limit: Duration, answer: impl Future<Output = T>) -> Option<T> {
        let mut answer = pin!(answer);
        loop {
            let until = {
                let state = self.lock();
                if state.waits_for_call { Instant::now() + limit } else { state.moved + limit }
            };
            match timeout_at(until, &mut answer).await {
                Ok(answer) => return Some(answer),
                Err(_) => {
                    let state = self.lock();
                    if !state.waits_for_call && state.moved + limit <= Instant::now() {
                        return None;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effect::sink::PermitParts;
    use http_body_util::{BodyExt, Full};
    use kiso_plan::label::{Confidentiality, Integrity, Label};
    use std::future::poll_fn;

    fn body() -> WasiBody {
        Full::new(Bytes::from_static(b"piece")).map_err(|never| match never {}).boxed_unsync()
    }

    #[tokio::test]
    async fn what_is_read_while_a_body_is_sent_counts() {
        let vault = Label::new(Integrity::User, Confidentiality::Nobody, "mcp:vault");
        let page = Label::world("web:a.example");
        for (read, changes, passes) in [
            (None, true, true),
            (Some(&page), true, true),
            (Some(&Label::session()), false, true),
            (Some(&vault), true, false),
            (Some(&vault), false, false),
            (Some(&page.clone().joined(&Label::session())), false, false),
        ] {
            let permit = Permit::new(PermitParts { tool: "t".to_owned(), ..PermitParts::default() });
            let allowed = permit.read().get();
            permit.request("a.example", changes, false).unwrap();
            let to = SentTo { permit: permit.clone(), host: "a.example".to_owned(), changes, by_name: false };
            let (mut sent, progress) = SentBody::new(body(), to, allowed);
            read.into_iter().for_each(|read| permit.read().join(LabelId::from_label(read)));
            let first = sent.frame().await.unwrap();
            assert_eq!((first.is_ok(), progress.take_refusal().is_none()), (passes, passes), "{read:?} {changes}");
        }
    }

    #[tokio::test]
    async fn only_a_host_that_takes_nothing_is_late() {
        let permit = Permit::default();
        let allowed = permit.read().get();
        let to = SentTo { permit, host: "a.example".to_owned(), changes: true, by_name: false };
        let (_, progress) = SentBody::new(body(), to, allowed);
        let third_time = || {
            let mut polled = 0;
            poll_fn(move |_| {
                polled += 1;
                if polled == 3 { Poll::Ready(()) } else { Poll::Pending }
            })
        };
        // Each wait ends at once.
        assert!(progress.answered(Duration::ZERO, third_time()).await.is_none());
        progress.moved(true);
        assert!(progress.answered(Duration::ZERO, third_time()).await.is_some());
        progress.moved(false);
        assert!(progress.answered(Duration::from_secs(60), std::future::ready(())).await.is_some());
    }
}
