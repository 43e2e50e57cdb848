//! What calls of models cost, and the limits of session and day that they may reach.

use super::{Drive, DriveError};
use crate::clock::now_ms;
use crate::config;
use crate::graph::limits::{LimitReached, MICROS_PER_CENT, Usage};
use crate::graph::step::Call;
use crate::home::SessionName;
use crate::llm::{Completing, Model, Request, Sink};
use crate::store::Scope;
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

impl Drive {
    /// The limit of the session or the day that is used up, with `unwritten` added to what the store knows.
    pub(super) async fn over_limit(
        &self,
        session: &SessionName,
        unwritten: Usage,
    ) -> Result<Option<LimitReached>, DriveError> {
        let config::Limits {
            max_tokens_per_session,
            max_cost_cents_per_session,
            max_tokens_per_day,
            max_cost_cents_per_day,
            ..
        } = self.config.limits;
        if [max_tokens_per_session, max_cost_cents_per_session, max_tokens_per_day, max_cost_cents_per_day] == [0; 4] {
            return Ok(None);
        }
        let session = session.clone();
        let read = self.store.read(move |view| {
            Ok((view.usage_total(Scope::Session(&session))?.usage, view.usage_total(Scope::Day(now_ms()))?.usage))
        });
        let (mut of_session, mut of_day) = read.await?;
        of_session += unwritten;
        of_day += unwritten;
        let reached = [
            ("max_tokens_per_session", max_tokens_per_session, of_session.total()),
            ("max_cost_cents_per_session", max_cost_cents_per_session, of_session.cost_micros / MICROS_PER_CENT),
            ("max_tokens_per_day", max_tokens_per_day, of_day.total()),
            ("max_cost_cents_per_day", max_cost_cents_per_day, of_day.cost_micros / MICROS_PER_CENT),
        ];
        let over = reached.into_iter().find(|(_, max, used)| *max > 0 && used >= max);
        Ok(over.map(|(name, max, _)| LimitReached::new(name, max)))
    }
}
