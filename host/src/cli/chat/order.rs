//! The order of a run's output: the text of a step is printed after the events of the steps before it. Those events may
//! arrive later than the text, because the events of built-in models are recorded together.

use crate::cli::client::wire::LiveLine;
use std::collections::VecDeque;

/// Maximum pieces of text that wait for earlier events. If there are more, all are printed.
const HELD: usize = 4_096;

/// Holds back the texts of a run until the events before them have arrived.
#[derive(Debug, Default)]
pub(super) struct EventOrder {
    /// The last event received without gaps. `None` if that is not known: then nothing waits.
    seen: Option<(String, u32)>,
    held: VecDeque<LiveLine>,
}

impl EventOrder {
    /// A run starts or continues. Its first event is recorded before any text of it arrives.
    pub(super) fn begin(&mut self, run: &str) {
        if self.seen.as_ref().is_none_or(|(known, _)| known != run) {
            self.seen = Some((run.to_owned(), 1));
        }
    }

    /// Records that an event of a run was received.
    pub(super) fn hear(&mut self, run: &str, seq: u32) {
        if let Some((known, last)) = &mut self.seen
            && known == run
        {
            *last = (*last).max(seq);
        }
    }

    /// Stops waiting: events may be missed, or the reply has arrived.
    pub(super) fn forget(&mut self) {
        self.seen = None;
    }

    /// Adds a piece of a run's text.
    pub(super) fn push(&mut self, live: LiveLine) {
        self.held.push_back(live);
        if self.held.len() > HELD {
            self.forget();
        }
    }

    /// Returns the next piece that does not have to wait.
    pub(super) fn next(&mut self) -> Option<LiveLine> {
        let next = self.held.front()?;
        let is_early = self.seen.as_ref().is_some_and(|(run, seq)| *run == next.run && next.seq > seq + 1);
        if is_early { None } else { self.held.pop_front() }
    }
}
