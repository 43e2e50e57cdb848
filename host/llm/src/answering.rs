//! Reading an answer to its end: the same for every wire format, which only says what its events mean.

use super::draft::Draft;
use super::http::{CallError, ResponseStream, Wire};
use super::{Completion, LlmError};
use kiso_base::net::sse::SseEvent;

/// What a wire format makes of the events of an answer.
pub(super) trait EventReader<'a> {
    /// Reads an event; true if it had content.
    fn take(&mut self, event: &SseEvent) -> Result<bool, CallError>;

    /// What was heard so far.
    fn heard(&mut self) -> &mut PartialAnswer<'a>;

    /// Ends it.
    fn into_heard(self) -> PartialAnswer<'a>;
}

/// An answer as far as it was heard.
pub(super) struct PartialAnswer<'a> {
    pub draft: Draft<'a>,
    /// The end of the answer came; at most counts follow.
    pub complete: bool,
    /// The end mark came: nothing follows.
    pub done: bool,
}

impl<'a> PartialAnswer<'a> {
    pub(crate) fn new(draft: Draft<'a>) -> Self {
        Self { draft, complete: false, done: false }
    }

    /// Ends it with a refusal. True if nothing was heard before, so that the request can be sent again as if it had not
    /// been.
    fn refused(&mut self) -> bool {
        let silent = self.draft.is_empty();
        if silent {
            self.draft.refused();
        }
        silent
    }

    /// The completion, after the end of the body or the end mark.
    fn finish(self, wire: &Wire) -> Result<Completion, LlmError> {
        let ended = self.draft.stop.is_some() || self.done && !self.draft.is_empty();
        if !ended {
            return Err(wire.broken("its answer ended before it was complete"));
        }
        self.draft.finish(&wire.name).map_err(|reason| wire.broken(reason))
    }
}

/// Reads a reply to its end. A refusal before anything was heard is given back as one.
pub(super) async fn read<'a>(
    wire: &Wire,
    mut reply: ResponseStream<'_>,
    mut reader: impl EventReader<'a>,
) -> Result<Completion, CallError> {
    while !reader.heard().done {
        match reply.next().await {
            Ok(Some(event)) => match reader.take(&event) {
                Ok(content) => {
                    if content {
                        reply.heard();
                    }
                    if reader.heard().draft.is_repetition() {
                        // Without its connection the server stops, too.
                        drop(reply);
                        return Ok(reader.into_heard().finish(wire)?);
                    }
                    if reader.heard().complete {
                        reply.completed();
                    }
                }
                Err(CallError::Refused(refusal)) if reader.heard().refused() => {
                    return Err(CallError::Refused(refusal));
                }
                Err(CallError::Refused(refusal)) => return Err(refusal.into_error(&wire.name).into()),
                Err(failed) => return Err(failed),
            },
            Ok(None) => break,
            // Nothing that matters was lost.
            Err(_) if reader.heard().complete => break,
            Err(error) => return Err(error.into()),
        }
    }
    reply.finish();
    Ok(reader.into_heard().finish(wire)?)
}
