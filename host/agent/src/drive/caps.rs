//! The limits of a run, and those of a session and a day, which are checked before each call of a model, including background
//! work.

use super::{DriveError, RunExecutor};
use kiso_base::clock::now_ms;
use kiso_base::config::Limits;
use kiso_base::home::SessionName;
use kiso_base::role::Role;
use kiso_plan::limits::{LimitReached, Limits as RunLimits, MICROS_PER_CENT, Usage};
use kiso_store::store::Scope;

impl RunExecutor {
    /// Returns the limits of a new run: those of `config.toml`, and those that depend on the context of the actor's model.
    pub(super) fn limits(&self) -> RunLimits {
        let (config, limits) = (&self.config, &self.config.limits);
        let context = self.models.settings(Role::Actor).context;
        let small = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        let size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        RunLimits {
            max_parse_retries: small(limits.max_parse_retries),
            max_review_depth: small(limits.max_review_depth),
            max_replan_depth: small(limits.max_replan_depth),
            max_tasks: size(limits.max_tasks),
            max_tool_call_rounds: small(config.rounds_at(context)),
            tool_output_limit_tokens: size(config.result_tokens_at(context)),
            max_cycles: small(limits.max_cycles),
            max_tokens_per_run: limits.max_tokens_per_run,
            max_cost_cents_per_run: limits.max_cost_cents_per_run,
        }
    }

    /// Returns the exhausted limit of the session, if there is one, or of the day, with `unwritten` usage added to the stored
    /// one.
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
