//! A circuit breaker: after several failures in a row, an endpoint is not called for a while, so that runs use its fallback at
//! once instead of waiting for it each time.
//!
//! ```text
//!            failures in a row            pause is over: one call
//! closed ─────────────────────────► open ─────────────────────────► trying
//!   ▲                                ▲                                │ │
//!   │                                └───────── it failed ────────────┘ │
//!   └───────────────────────── it was answered ─────────────────────────┘
//! ```

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The breaker of one endpoint, shared by everything that calls it.
#[derive(Debug)]
pub struct Breaker {
    /// Failures in a row after which it opens.
    failures: u32,
    /// How long it stays open.
    pause: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Closed {
        failures: u32,
    },
    Open {
        until: Instant,
    },
    /// One call tests the endpoint. `since`: the time from which the next call may test it if this one is dropped.
    Trying {
        since: Instant,
    },
}

/// Why a call is not allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeftAlone {
    /// Failures in a row that opened it.
    pub failures: u32,
    /// How much longer it stays open; zero while another call tests the endpoint.
    pub left: Duration,
}

impl Breaker {
    /// Opens after `failures` in a row (at least one), for `pause`.
    pub fn new(failures: u32, pause: Duration) -> Self {
        Self { failures: failures.max(1), pause, state: Mutex::new(State::Closed { failures: 0 }) }
    }

    /// Whether a call is allowed now. Does not begin one.
    pub fn check(&self, now: Instant) -> Result<(), LeftAlone> {
        let left = match *self.lock() {
            State::Closed { .. } => return Ok(()),
            State::Open { until } if until <= now => return Ok(()),
            State::Open { until } => until - now,
            State::Trying { .. } => Duration::ZERO,
        };
        Err(LeftAlone { failures: self.failures, left })
    }

    /// Begins a call. Its result is reported to the [`Pass`]; a dropped pass says nothing about the endpoint.
    pub fn enter(&self, now: Instant) -> Result<Pass<'_>, LeftAlone> {
        self.check(now)?;
        let mut state = self.lock();
        let trying = match *state {
            State::Open { until } => {
                *state = State::Trying { since: until };
                true
            }
            // Another call was faster between the check and here.
            State::Trying { .. } => return Err(LeftAlone { failures: self.failures, left: Duration::ZERO }),
            State::Closed { .. } => false,
        };
        Ok(Pass { breaker: self, trying })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call in progress.
#[derive(Debug)]
pub struct Pass<'a> {
    breaker: &'a Breaker,
    trying: bool,
}

impl Pass<'_> {
    /// The endpoint answered, even if it refused the request.
    pub fn answered(mut self) {
        self.trying = false;
        *self.breaker.lock() = State::Closed { failures: 0 };
    }

    /// The endpoint did not answer.
    pub fn failed(mut self, now: Instant) {
        let trying = std::mem::take(&mut self.trying);
        let mut state = self.breaker.lock();
        let open = State::Open { until: now + self.breaker.pause };
        *state = match *state {
            State::Closed { failures } if failures + 1 < self.breaker.failures => {
                State::Closed { failures: failures + 1 }
            }
            State::Closed { .. } => open,
            _ if trying => open,
            // A call from before it opened adds no information.
            state => state,
        };
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        let mut state = self.breaker.lock();
        if let (true, State::Trying { since }) = (self.trying, *state) {
            *state = State::Open { until: since };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Duration = Duration::from_secs(30);

    fn opened(start: Instant) -> Breaker {
        let breaker = Breaker::new(3, PAUSE);
        for _ in 0..3 {
            breaker.enter(start).unwrap().failed(start);
        }
        breaker
    }

    #[test]
    fn it_opens_after_failures_in_a_row_only() {
        let start = Instant::now();
        let breaker = Breaker::new(3, PAUSE);
        for _ in 0..5 {
            breaker.enter(start).unwrap().failed(start);
            breaker.enter(start).unwrap().failed(start);
            breaker.enter(start).unwrap().answered();
        }
        let breaker = opened(start);
        let later = start + Duration::from_secs(10);
        let alone = breaker.enter(later).unwrap_err();
        assert_eq!(alone, LeftAlone { failures: 3, left: Duration::from_secs(20) });
        assert_eq!(breaker.check(later), Err(alone));
    }

    #[test]
    fn after_the_pause_one_call_finds_out() {
        let start = Instant::now();
        let breaker = opened(start);
        let later = start + PAUSE;
        let pass = breaker.enter(later).unwrap();
        assert_eq!(breaker.enter(later).unwrap_err().left, Duration::ZERO);
        pass.failed(later);
        assert_eq!(breaker.check(later).unwrap_err().left, PAUSE);
        let later = later + PAUSE;
        breaker.enter(later).unwrap().answered();
        let (one, two) = (breaker.enter(later).unwrap(), breaker.enter(later).unwrap());
        one.failed(later);
        two.failed(later);
        assert_eq!(breaker.check(later), Ok(()));
    }

    #[test]
    fn a_trial_that_is_dropped_leaves_it_to_the_next_call() {
        let start = Instant::now();
        let breaker = opened(start);
        drop(breaker.enter(start + PAUSE).unwrap());
        breaker.enter(start + PAUSE).unwrap().answered();
        assert_eq!(breaker.check(start), Ok(()));
    }

    #[test]
    fn calls_from_before_it_opened_do_not_prolong_the_pause() {
        let start = Instant::now();
        let breaker = Breaker::new(1, PAUSE);
        let (one, two, three) =
            (breaker.enter(start).unwrap(), breaker.enter(start).unwrap(), breaker.enter(start).unwrap());
        one.failed(start);
        two.failed(start + Duration::from_secs(20));
        assert_eq!(breaker.check(start + Duration::from_secs(20)).unwrap_err().left, Duration::from_secs(10));
        three.answered();
        assert_eq!(breaker.check(start), Ok(()));
    }
}
