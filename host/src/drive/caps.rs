//! Caps of a session and a day. They are looked at before each call of a model, whoever waits for it.

use super::{DriveError, RunExecutor};
use crate::clock::now_ms;
use crate::config::Limits;
use crate::graph::limits::{LimitReached, MICROS_PER_CENT, Usage};
use crate::home::SessionName;
use crate::store::Scope;

impl RunExecutor {
    /// The limit of the session, if there is one, or the day that is used up, with `unwritten` added to what the store knows.
    pub(super) async fn over_limit<'a>(
        &self,
        session: impl Into<Option<&'a SessionName>>,
        unwritten: Usage,
    ) -> Result<Option<LimitReached>, DriveError> {
        let Limits {
            max_tokens_per_session,
            max_cost_cents_per_session,
            max_tokens_per_day,
            max_cost_cents_per_day,
            ..
        } = self.config.limits;
        if [max_tokens_per_session, max_cost_cents_per_session, max_tokens_per_day, max_cost_cents_per_day] == [0; 4] {
            return Ok(None);
        }
        let session = session.into().cloned();
        let read = self.store.peek(move |view| {
            let of_session = session.as_ref().map(|session| view.usage_total(Scope::Session(session))).transpose()?;
            Ok((of_session.unwrap_or_default().usage, view.usage_total(Scope::Day(now_ms()))?.usage))
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
