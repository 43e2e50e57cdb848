//! What calls of models cost.

use crate::graph::limits::Usage;
use crate::graph::step::Call;
use crate::llm::{Completing, Model, Request, Sink};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What the calls of one step cost so far: the run learns of it with the step's event and not before.
#[derive(Debug, Default)]
pub(super) struct Meter(Mutex<Spent>);

#[derive(Debug, Default)]
struct Spent {
    /// Of calls that were answered; the step's result has them, too.
    answered: Usage,
    /// Of calls that were not.
    lost: Option<Call>,
}

impl Meter {
    /// `model`, with all that it uses counted here.
    pub fn of<'a>(&'a self, model: &'a dyn Model) -> Metered<'a> {
        Metered { model, meter: self }
    }

    /// What was used since the last event.
    pub fn used(&self) -> Usage {
        let spent = self.spent();
        let mut used = spent.answered;
        if let Some(call) = &spent.lost {
            used += call.usage;
        }
        used
    }

    /// Begins anew; returns what was used and is in no result.
    pub fn take(&self) -> Option<Call> {
        std::mem::take(&mut *self.spent()).lost
    }

    fn spent(&self) -> MutexGuard<'_, Spent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A model whose calls are counted, whether they are answered, fail, or are given up.
pub(super) struct Metered<'a> {
    model: &'a dyn Model,
    meter: &'a Meter,
}

impl Model for Metered<'_> {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn complete<'a>(&'a self, request: &'a Request, sink: &'a mut dyn Sink) -> Completing<'a> {
        Box::pin(async move {
            let mut sink = Counted { of: self, sink };
            let answer = self.model.complete(request, &mut sink).await;
            if let Ok(completion) = &answer {
                self.meter.spent().answered += completion.usage;
            }
            answer
        })
    }
}

struct Counted<'a> {
    of: &'a Metered<'a>,
    sink: &'a mut dyn Sink,
}

impl Sink for Counted<'_> {
    fn text(&mut self, piece: &str) {
        self.sink.text(piece);
    }

    fn restart(&mut self) {
        self.sink.restart();
    }

    fn spent(&mut self, usage: Usage) {
        let mut spent = self.of.meter.spent();
        let lost = spent.lost.get_or_insert_default();
        lost.model = self.of.name().to_owned();
        lost.usage += usage;
    }
}
