//! Rate limits and counters of hooks: the events of each hook per minute, and their outcomes since the daemon's start.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use schemars::JsonSchema;
use serde::Serialize;

/// Length in milliseconds of the rate's period.
const MINUTE_MS: u64 = 60_000;

/// Outcome of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EventStatus {
    Queued,
    /// A repeated event, recognized by its id or its signature.
    Known,
    /// The event does not match the hook's conditions.
    Ignored,
}

/// State of each hook, by name. Names come from the configuration, so there are few.
#[derive(Debug, Default)]
pub struct HookMeter(Mutex<HashMap<String, Gauge>>);

#[derive(Debug, Default)]
struct Gauge {
    bucket: Option<Bucket>,
    counts: HookCounts,
}

/// A token bucket: its capacity is the number of events per minute, and it refills evenly over a minute.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    /// Remaining capacity. One event is [`MINUTE_MS`] units, so each millisecond adds as many units as the rate allows events per
    /// minute.
    left: u64,
    at_ms: i64,
}

/// Counts of a hook's events by outcome.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookCounts {
    pub queued: u64,
    pub known: u64,
    pub ignored: u64,
    pub refused: u64,
    /// Error code of the last refusal; `None` if the last event was accepted.
    pub trouble: Option<&'static str>,
}

impl HookMeter {
    /// Returns whether another event may come now, and counts it.
    pub fn admits(&self, hook: &str, per_minute: u64, now_ms: i64) -> bool {
        self.with(hook, |gauge| {
            let full = per_minute.saturating_mul(MINUTE_MS);
            let bucket = gauge.bucket.get_or_insert(Bucket { left: full, at_ms: now_ms });
            // Adds nothing if the clock was set back.
            let passed = now_ms.saturating_sub(bucket.at_ms).max(0).unsigned_abs();
            bucket.left = bucket.left.saturating_add(passed.saturating_mul(per_minute)).min(full);
            bucket.at_ms = now_ms;
            match bucket.left.checked_sub(MINUTE_MS) {
                Some(left) => {
                    bucket.left = left;
                    true
                }
                None => false,
            }
        })
    }

    /// Counts an event that was not refused.
    pub fn count(&self, hook: &str, status: EventStatus) {
        self.with(hook, |Gauge { counts, .. }| {
            counts.trouble = None;
            match status {
                EventStatus::Queued => counts.queued += 1,
                EventStatus::Known => counts.known += 1,
                EventStatus::Ignored => counts.ignored += 1,
            }
        });
    }

    /// Counts a refused event, with its error code.
    pub fn count_refused(&self, hook: &str, code: &'static str) {
        self.with(hook, |Gauge { counts, .. }| {
            counts.trouble = Some(code);
            counts.refused += 1;
        });
    }

    pub fn counts(&self, hook: &str) -> HookCounts {
        self.with(hook, |gauge| gauge.counts.clone())
    }

    fn with<T>(&self, hook: &str, then: impl FnOnce(&mut Gauge) -> T) -> T {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match all.get_mut(hook) {
            Some(gauge) => then(gauge),
            None => then(all.entry(hook.to_owned()).or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_has_as_many_events_as_it_may_whenever_it_begins() {
        let meter = HookMeter::default();
        let admits = |now| meter.admits("a", 60, now);
        assert!((0..60).all(|_| admits(1_000)));
        assert!(!admits(1_000) && !admits(1_999));
        assert!(admits(2_000), "a second gives one back");
        assert!(!admits(2_500) && admits(3_000));
        assert!(!admits(-5_000), "the clock was set back");
        assert_eq!((0..100).filter(|_| admits(10_000_000)).count(), 60, "no more than a minute's are saved up");
        assert!(meter.admits("b", 1, 0), "each hook has its own");
        assert!(!meter.admits("b", 1, 59_999) && meter.admits("b", 1, 60_000));
    }
}
