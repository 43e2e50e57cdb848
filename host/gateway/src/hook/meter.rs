//! How many events of each hook come: what it may take within a minute, and what became of them since the daemon began.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use schemars::JsonSchema;
use serde::Serialize;

/// Milliseconds of the time that a rate is about.
const MINUTE_MS: u64 = 60_000;

/// Whether an event became a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EventStatus {
    Queued,
    /// It came before, by its id or its signature.
    Known,
    /// The hook's conditions do not hold for it.
    Ignored,
}

/// What is known of hooks, by name. Names are those of the configuration, so there are few.
#[derive(Debug, Default)]
pub struct HookMeter(Mutex<HashMap<String, Gauge>>);

#[derive(Debug, Default)]
struct Gauge {
    bucket: Option<Bucket>,
    counts: HookCounts,
}

/// Events that may come at once: as many as in a minute, and each that came is given back after its share of one.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    /// In parts of an event, of which one has [`MINUTE_MS`]: a millisecond gives back as many parts as a minute has events.
    left: u64,
    at_ms: i64,
}

/// What became of the events of a hook.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookCounts {
    pub queued: u64,
    pub known: u64,
    pub ignored: u64,
    pub refused: u64,
    /// The code of the last refusal; none where the last event was taken.
    pub trouble: Option<&'static str>,
}

impl HookMeter {
    /// Whether another event may come now, which then has come.
    pub fn admits(&self, hook: &str, per_minute: u64, now_ms: i64) -> bool {
        self.with(hook, |gauge| {
            let full = per_minute.saturating_mul(MINUTE_MS);
            let bucket = gauge.bucket.get_or_insert(Bucket { left: full, at_ms: now_ms });
            // Nothing is given back where the clock was set back.
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

    /// An event was taken, or needed not to be.
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

    /// An event was refused, for the reason that this code names.
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
