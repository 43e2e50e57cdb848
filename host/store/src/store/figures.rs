//! Totals for monitoring the daemon.

use super::usage::Totals;
use super::{StoreError, View};
use kiso_plan::limits::Usage;

/// Totals of the whole store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures {
    /// Number of the last message: the number of messages ever, unless some were deleted.
    pub messages: u64,
    /// The same for runs.
    pub runs: u64,
    pub sessions: u64,
    /// Usage of models on all days together.
    pub used: Totals,
}

impl View<'_> {
    /// Reads the ends of two tables, counts the sessions in an index, and adds up one row per day.
    pub fn figures(&self) -> Result<Figures, StoreError> {
        let number = |sql: &str| -> Result<u64, StoreError> {
            let number: i64 = self.conn.prepare_cached(sql)?.query_row((), |row| row.get(0))?;
            Ok(number.unsigned_abs())
        };
        let mut days = self.conn.prepare_cached(
            "SELECT coalesce(sum(calls), 0), coalesce(sum(input), 0), coalesce(sum(output), 0),
                 coalesce(sum(cost_micros), 0), coalesce(sum(cached), 0)
             FROM usage_totals WHERE scope = 'day'",
        )?;
        let used = days.query_row((), |row| {
            let count = |index| row.get::<_, i64>(index).map(i64::unsigned_abs);
            let (input_tokens, output_tokens) = (count(1)?, count(2)?);
            let usage = Usage { input_tokens, output_tokens, cached_tokens: count(4)?, cost_micros: count(3)? };
            Ok(Totals { calls: count(0)?, usage })
        })?;
        Ok(Figures {
            messages: number("SELECT coalesce(max(id), 0) FROM messages")?,
            runs: number("SELECT coalesce(max(num), 0) FROM runs")?,
            sessions: number("SELECT count(*) FROM sessions")?,
            used,
        })
    }
}
