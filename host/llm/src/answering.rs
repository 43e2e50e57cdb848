//! Reads an answer to its end, for all wire formats; each format only interprets its events.

use super::draft::Draft;
use super::http::{CallError, ResponseStream, Wire};
use super::{Completion, LlmError};
use kiso_base::net::sse::SseEvent;

/// Interprets the events of an answer in a wire format.
pub(super) trait EventReader<'a> {
    /// Reads an event. Returns true if it had content.
    fn take(&mut self, event: &SseEvent) -> Result<bool, CallError>;

    /// Returns the partial answer.
    fn heard(&mut self) -> &mut PartialAnswer<'a>;

    /// Ends the answer and returns it.
    fn into_heard(self) -> PartialAnswer<'a>;
}

/// The part of an answer that was received so far.
pub(super) struct PartialAnswer<'a> {
    pub draft: Draft<'a>,
    /// Whether the answer is complete; only token counts may follow.
    pub complete: bool,
    /// Whether the end mark was received; nothing follows.
    pub done: bool,
}

impl<'a> PartialAnswer<'a> {
    pub(crate) fn new(draft: Draft<'a>) -> Self {
        Self { draft, complete: false, done: false }
    }

    /// Ends it with a refusal. Returns true if nothing was received before, so that the request can be sent again.
    fn refused(&mut self) -> bool {
        let silent = self.draft.is_empty();
        if silent {
            self.draft.refused();
        }
        silent
    }

    /// Returns the completion, after the end of the body or the end mark.
    fn finish(self, wire: &Wire) -> Result<Completion, LlmError> {
        let ended = self.draft.stop.is_some() || self.done && !self.draft.is_empty();
        if !ended {
            return Err(wire.broken("its answer ended before it was complete"));
        }
        self.draft.finish(&wire.name).map_err(|reason| wire.broken(reason))
    }
}

/// Reads a reply to its end. A refusal before any content is returned as a refusal.
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
                        // Closing the connection also stops the server.
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
            // Nothing important was lost.
            Err(_) if reader.heard().complete => break,
            Err(error) => return Err(error.into()),
        }
    }
    reply.finish();
    Ok(reader.into_heard().finish(wire)?)
}
