//! Clients that ask again and again what became of a message. Who asks a second time within a moment hears of it when there is
//! something new, or a little later, so that a poll costs next to nothing and its client still learns at once.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How soon a client asks again that polls.
const MOMENT: Duration = Duration::from_millis(500);

/// How long an answer waits for something new.
pub(crate) const HELD: Duration = Duration::from_millis(200);

/// Messages that are asked for within a moment; of more, some are answered at once.
const REMEMBERED: usize = 4_096;

/// When each message was asked for last.
#[derive(Debug, Default)]
pub(crate) struct Polls(Mutex<HashMap<i64, Instant>>);

impl Polls {
    /// Whether this message was asked for a moment ago. It is asked for now.
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
