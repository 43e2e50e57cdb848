//! Support for clients that poll the state of a message. A second request within a moment waits a little for a change, so that
//! polling costs little and the client still learns of changes at once.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Requests within this time count as polling.
const MOMENT: Duration = Duration::from_millis(500);

/// How long a response waits for a change.
pub(crate) const HELD: Duration = Duration::from_millis(200);

/// Maximum number of remembered messages; polls of further messages are answered at once.
const REMEMBERED: usize = 4_096;

/// The time of the last request for each message.
#[derive(Debug, Default)]
pub(crate) struct Polls(Mutex<HashMap<i64, Instant>>);

impl Polls {
    /// Returns whether the message was requested a moment ago, and records this request.
    pub(crate) fn is_asked_again(&self, message: i64) -> bool {
        let (now, mut asked) = (Instant::now(), self.0.lock().unwrap_or_else(PoisonError::into_inner));
        if asked.len() >= REMEMBERED && !asked.contains_key(&message) {
            asked.retain(|_, at| now - *at < MOMENT);
            if asked.len() >= REMEMBERED {
                asked.clear();
            }
        }
        asked.insert(message, now).is_some_and(|at| now - at < MOMENT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_twice_within_a_moment_polls() {
        let polls = Polls::default();
        assert!(!polls.is_asked_again(1));
        assert!(polls.is_asked_again(1) && !polls.is_asked_again(2));
        for message in 10..10_000 {
            assert!(!polls.is_asked_again(message));
            assert!(polls.0.lock().unwrap().len() <= REMEMBERED);
        }
    }
}
