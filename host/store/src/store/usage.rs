//! Usage of model calls: a row for each call, and sums that are updated in the same transaction.

use rusqlite::OptionalExtension;

use super::{RunId, StoreError, Tx, View};
use kiso_base::home::SessionName;
use kiso_plan::limits::Usage;

/// One call of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageLine {
    pub at_ms: i64,
    /// The role of the call, such as "planner".
    pub role: String,
    /// `provider:model`.
    pub model: String,
    pub usage: Usage,
}

/// The scope of a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope<'a> {
    Run(&'a RunId),
    Session(&'a SessionName),
    /// The day (UTC) of this time in milliseconds since 1970.
    Day(i64),
}

/// A sum of model calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    pub calls: u64,
    pub usage: Usage,
}

/// The model of a [`UsageLine`] for the built-in rules. Their calls count towards the limits, but are excluded where a person
/// reads the usage of models.
const RULES: &str = "reflex";

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

impl View<'_> {
    /// Returns the usage so far, including the built-in rules; zero if there is none. Reads one row.
    pub fn usage_total(&self, scope: Scope<'_>) -> Result<Totals, StoreError> {
        let query = "SELECT calls, input, output, cost_micros, cached FROM usage_totals WHERE scope = ?1 AND key = ?2";
        self.total(query, scope)
    }

    /// [`View::usage_total`] without the built-in rules.
    pub fn model_usage(&self, scope: Scope<'_>) -> Result<Totals, StoreError> {
        let query = "SELECT calls - rule_calls, input - rule_input, output - rule_output, cost_micros, cached
             FROM usage_totals WHERE scope = ?1 AND key = ?2";
        self.total(query, scope)
    }

    fn total(&self, query: &str, scope: Scope<'_>) -> Result<Totals, StoreError> {
        let (name, key) = match scope {
            Scope::Run(run) => ("run", Some(self.num(run)?)),
            Scope::Session(session) => ("session", self.session_id(session)?),
            Scope::Day(at_ms) => ("day", Some(at_ms.div_euclid(DAY_MS))),
        };
        let mut query = self.conn.prepare_cached(query)?;
        let totals = query.query_row((name, key), |row| {
            let count = |index| row.get::<_, i64>(index).map(i64::unsigned_abs);
            let (input_tokens, output_tokens) = (count(1)?, count(2)?);
            let usage = Usage { input_tokens, output_tokens, cached_tokens: count(4)?, cost_micros: count(3)? };
            Ok(Totals { calls: count(0)?, usage })
        });
        Ok(totals.optional()?.unwrap_or_default())
    }

    /// Returns the sums of days with model calls before this one (`None`: all), without the built-in rules, latest first, at most
    /// `limit`. Days are numbered from 1970 (UTC).
    pub fn usage_by_day(&self, before: Option<i64>, limit: u32) -> Result<Vec<(i64, Totals)>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT key, calls - rule_calls, input - rule_input, output - rule_output, cost_micros, cached FROM usage_totals
             WHERE scope = 'day' AND key < ?1 AND calls > rule_calls ORDER BY key DESC LIMIT ?2",
        )?;
        let rows = query.query_map((before.unwrap_or(i64::MAX), limit), |row| {
            let count = |index| row.get::<_, i64>(index).map(i64::unsigned_abs);
            let (input_tokens, output_tokens) = (count(2)?, count(3)?);
            let usage = Usage { input_tokens, output_tokens, cached_tokens: count(5)?, cost_micros: count(4)? };
            Ok((row.get(0)?, Totals { calls: count(1)?, usage }))
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns the calls of a run, in order.
    pub fn usage_of(&self, run: &RunId) -> Result<Vec<UsageLine>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT at_ms, role, model, input, output, cost_micros, cached FROM usage WHERE run = ?1 ORDER BY id",
        )?;
        let rows = query.query_map([self.num(run)?], |row| {
            let count = |index| row.get::<_, i64>(index).map(i64::unsigned_abs);
            let (input_tokens, output_tokens) = (count(3)?, count(4)?);
            let usage = Usage { input_tokens, output_tokens, cached_tokens: count(6)?, cost_micros: count(5)? };
            Ok(UsageLine { at_ms: row.get(0)?, role: row.get(1)?, model: row.get(2)?, usage })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

impl Tx<'_> {
    /// Records a call, and adds it to the sums of its run, session and day. `run` is `None` for work between runs.
    pub fn add_usage(&self, session: &SessionName, run: Option<&RunId>, line: &UsageLine) -> Result<(), StoreError> {
        self.add_usage_between(session, run, line, true)
    }

    /// [`Tx::add_usage`], with or without the sum of the day.
    pub(super) fn add_usage_between(
        &self,
        session: &SessionName,
        run: Option<&RunId>,
        line: &UsageLine,
        of_day: bool,
    ) -> Result<(), StoreError> {
        let session = self.ensure_session(session, line.at_ms)?;
        let run = run.map(|run| self.num(run)).transpose()?;
        let day = line.at_ms.div_euclid(DAY_MS);
        let [input, output, cost, cached] = columns(line.usage);
        let mut insert = self.conn.prepare_cached(
            "INSERT INTO usage (at_ms, day, session, run, role, model, input, output, cost_micros, cached)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )?;
        insert.execute((line.at_ms, day, session, run, &line.role, &line.model, input, output, cost, cached))?;
        for (scope, key) in [("run", run), ("session", Some(session)), ("day", of_day.then_some(day))] {
            if let Some(key) = key {
                self.add_to_total(scope, key, line.usage, line.model == RULES)?;
            }
        }
        Ok(())
    }

    /// Adds a call without a session, such as a test of a model's abilities, to the sum of its day.
    pub fn add_usage_of_day(&self, at_ms: i64, usage: Usage) -> Result<(), StoreError> {
        self.add_to_total("day", at_ms.div_euclid(DAY_MS), usage, false)
    }

    fn add_to_total(&self, scope: &str, key: i64, usage: Usage, by_rules: bool) -> Result<(), StoreError> {
        let [input, output, cost, cached] = columns(usage);
        let mut add = self.conn.prepare_cached(
            "INSERT INTO usage_totals (scope, key, calls, input, output, cost_micros, cached, rule_calls, rule_input, rule_output)
             VALUES (?1, ?2, 1, ?3, ?4, ?5, ?6, ?7, ?7 * ?3, ?7 * ?4)
             ON CONFLICT DO UPDATE SET calls = calls + 1, input = input + excluded.input,
                 output = output + excluded.output, cost_micros = cost_micros + excluded.cost_micros,
                 cached = cached + excluded.cached, rule_calls = rule_calls + excluded.rule_calls,
                 rule_input = rule_input + excluded.rule_input, rule_output = rule_output + excluded.rule_output",
        )?;
        add.execute((scope, key, input, output, cost, cached, by_rules))?;
        Ok(())
    }
}

fn columns(usage: Usage) -> [i64; 4] {
    [usage.input_tokens, usage.output_tokens, usage.cost_micros, usage.cached_tokens].map(bounded)
}

/// Limits a count, because a provider may report anything. A million such calls can still be added.
fn bounded(count: u64) -> i64 {
    const MAX: u64 = 1 << 42;
    count.min(MAX) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    #[test]
    fn the_built_in_rules_count_towards_limits_and_are_not_shown() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("store.db")).unwrap();
        let session = SessionName::parse("s").unwrap();
        let line = |model: &str, at_ms| UsageLine {
            at_ms,
            role: "planner".to_owned(),
            model: model.to_owned(),
            usage: Usage { input_tokens: 10, output_tokens: 3, ..Usage::default() },
        };
        let (of, lines) = (session.clone(), [line("a:b", 1), line("reflex", 2), line("reflex", DAY_MS)]);
        store.write_blocking(move |tx| lines.iter().try_for_each(|line| tx.add_usage(&of, None, line))).unwrap();
        let (all, shown, days) = store
            .read_blocking(|view| {
                let scope = Scope::Session(&session);
                Ok((view.usage_total(scope)?, view.model_usage(scope)?, view.usage_by_day(None, 10)?))
            })
            .unwrap();
        assert_eq!((all.calls, all.usage.total()), (3, 39));
        let once = Totals { calls: 1, usage: line("a:b", 1).usage };
        assert_eq!(shown, once);
        assert_eq!(days, [(0, once)], "a day on which no model was called is not listed");
    }
}
