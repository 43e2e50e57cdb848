//! Reading an answer to its end: the same for every wire format, which only says what its events mean.

use super::draft::Draft;
use super::http::{NoAnswer, Reply, Wire};
use super::sse::Event;
use super::{Completion, LlmError};

/// What a wire format makes of the events of an answer.
pub(super) trait Reader<'a> {
    /// Reads an event; true if it had content.
    fn take(&mut self, event: &Event) -> Result<bool, NoAnswer>;

    /// What was heard so far.
    fn heard(&mut self) -> &mut Heard<'a>;

    /// Ends it.
    fn into_heard(self) -> Heard<'a>;
}

/// An answer as far as it was heard.
pub(super) struct Heard<'a> {
    pub draft: Draft<'a>,
    /// The end of the answer came; at most counts follow.
    pub complete: bool,
    /// The end mark came: nothing follows.
    pub done: bool,
}

impl<'a> Heard<'a> {
    pub fn new(draft: Draft<'a>) -> Self {
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
    mut reply: Reply<'_>,
    mut reader: impl Reader<'a>,
) -> Result<Completion, NoAnswer> {
    while !reader.heard().done {
        match reply.next().await {
            Ok(Some(event)) => match reader.take(&event) {
                Ok(content) => {
                    if content {
                        reply.heard();
                    }
                    if reader.heard().complete {
                        reply.completed();
                    }
                }
                Err(NoAnswer::Refused(refusal)) if reader.heard().refused() => return Err(NoAnswer::Refused(refusal)),
                Err(NoAnswer::Refused(refusal)) => return Err(refusal.into_error(&wire.name).into()),
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
