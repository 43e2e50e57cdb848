//! Limits of a run. They are in `Run` and never in a node, so that one place stops every kind of run.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// Limits of one run; the `[limits]` table of `config.toml` has the same keys.
///
/// - `max_parse_retries = 3`: how often an invalid answer of the planner, the reasoner or the reviewer is sent back
/// - `max_review_depth = 3`: rounds of injected tasks in one chain before the reviewer is no longer asked
/// - `max_replan_depth = 3`: new plans for the same message
/// - `max_tasks = 50`: tasks of one plan, injected ones included
/// - `max_tool_call_rounds = 10`: answers with tool calls in one action loop
/// - `tool_output_limit_tokens = 2000`: maximum tokens that are shown of a result
/// - `max_cycles = 5`: how often messages that arrive meanwhile may continue the turn
/// - `max_tokens_per_run = 500000`: tokens of all model calls of the run, in and out
/// - `max_cost_cents_per_run = 0`: maximum cost of all model calls in US cents; 0 means unlimited
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    pub max_parse_retries: u32,
    pub max_review_depth: u32,
    pub max_replan_depth: u32,
    pub max_tasks: usize,
    pub max_tool_call_rounds: u32,
    pub tool_output_limit_tokens: usize,
    pub max_cycles: u32,
    pub max_tokens_per_run: u64,
    pub max_cost_cents_per_run: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_parse_retries: 3,
            max_review_depth: 3,
            max_replan_depth: 3,
            max_tasks: 50,
            max_tool_call_rounds: 10,
            tool_output_limit_tokens: 2_000,
            max_cycles: 5,
            max_tokens_per_run: 500_000,
            max_cost_cents_per_run: 0,
        }
    }
}

/// Millionths of a dollar in a cent.
pub const MICROS_PER_CENT: u64 = 10_000;

impl Limits {
    /// Returns the limit that `usage` has reached, if any.
    pub fn reached(&self, usage: Usage) -> Option<LimitReached> {
        if usage.total() >= self.max_tokens_per_run {
            return Some(LimitReached::new("max_tokens_per_run", self.max_tokens_per_run));
        }
        let cents = self.max_cost_cents_per_run;
        let spent = cents > 0 && usage.cost_micros >= cents.saturating_mul(MICROS_PER_CENT);
        spent.then(|| LimitReached::new("max_cost_cents_per_run", cents))
    }
}

/// A limit that was reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitReached {
    /// Its name, such as `max_replan_depth`.
    pub limit: String,
    /// Its value.
    pub value: u64,
    /// The key in `config.toml` that raises it.
    pub setting: String,
    /// A sentence about what used most of it and how to change that, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

impl LimitReached {
    /// `limit` must be a field of [`Limits`].
    pub fn new(limit: &str, value: u64) -> Self {
        Self { limit: limit.to_owned(), value, setting: format!("limits.{limit}"), because: None }
    }
}

/// Usage of model calls, as counted by the provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// The part of `input_tokens` that the provider had in its cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cached_tokens: u64,
    /// Millionths of a US dollar, by the prices in `config.toml` or as reported by the provider; 0 if neither is known.
    #[serde(skip_serializing_if = "is_zero")]
    pub cost_micros: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Usage {
    pub fn total(self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(other.cached_tokens);
        self.cost_micros = self.cost_micros.saturating_add(other.cost_micros);
    }
}
