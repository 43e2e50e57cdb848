//! The retry policy for failed deliveries.

use std::time::Duration;

use ring::rand::{SecureRandom, SystemRandom};

use kiso_base::net::NetError;
use kiso_store::store::Delivery;

/// Attempts before age alone ends a delivery: the clock of a small computer may jump by months when it reaches a time
/// server.
const LEAST_ATTEMPTS: u32 = 5;

/// How often and how long a channel tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts before a delivery is given up.
    pub max_attempts: u32,
    /// Milliseconds after which it is given up, after a minimum number of attempts.
    pub max_age_ms: i64,
    /// Milliseconds to wait after the first failed attempt; doubled after each further one.
    pub base_ms: u64,
    /// Maximum milliseconds to wait, even if the receiver asks for more.
    pub max_ms: u64,
}

impl Default for RetryPolicy {
    /// Returns the policy of `[webhooks.NAME]`: fifteen attempts in three days, five seconds to an hour apart.
    fn default() -> RetryPolicy {
        RetryPolicy { max_attempts: 15, max_age_ms: 72 * 3_600_000, base_ms: 5_000, max_ms: 3_600_000 }
    }
}

/// A failed attempt: the receiver does not have the letter, or did not confirm it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotDelivered {
    /// The reason, for a log: contains nothing of the address except the receiver's name.
    pub why: String,
    /// The beginning of the receiver's response; empty if there was none.
    pub said: String,
    /// How long the receiver asks to wait.
    pub wait: Option<Duration>,
    /// The kind of the failure, which decides about retries.
    pub trouble: Trouble,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// A retry may succeed.
    Passing,
    /// The receiver is permanently gone: nothing more is sent.
    Gone,
    /// The address is private, and that is not allowed. The name may resolve to another address later.
    Private,
}

impl NotDelivered {
    pub fn passing(why: impl Into<String>) -> NotDelivered {
        NotDelivered { why: why.into(), said: String::new(), wait: None, trouble: Trouble::Passing }
    }

    /// Returns the text for a person.
    pub fn text(&self) -> String {
        if self.said.is_empty() { self.why.clone() } else { format!("{}: {}", self.why, self.said) }
    }
}

impl From<NetError> for NotDelivered {
    fn from(error: NetError) -> NotDelivered {
        let trouble = if matches!(error, NetError::Private) { Trouble::Private } else { Trouble::Passing };
        let hint = if trouble == Trouble::Private { "; allow_private = true allows it" } else { "" };
        NotDelivered { trouble, ..NotDelivered::passing(format!("{error}{hint}")) }
    }
}

/// Returns the time until an attempt is due; `None` if it is due now. No attempt is postponed for longer than `max_ms`, so a
/// longer wait means that the clock was set back.
pub(super) fn until_due(due_ms: i64, now_ms: i64, max_ms: u64) -> Option<Duration> {
    let wait = u64::try_from(due_ms.saturating_sub(now_ms)).unwrap_or(0);
    (1..=max_ms).contains(&wait).then(|| Duration::from_millis(wait))
}

/// Returns the time of the next attempt after a failed one; `None` if there is to be none. `dice` is a random number.
pub(super) fn after(
    policy: RetryPolicy,
    delivery: &Delivery,
    failed: &NotDelivered,
    now_ms: i64,
    dice: u32,
) -> Option<i64> {
    let attempts = delivery.attempts + 1;
    let too_old = now_ms.saturating_sub(delivery.since_ms) >= policy.max_age_ms && attempts >= LEAST_ATTEMPTS;
    if failed.trouble == Trouble::Gone || attempts >= policy.max_attempts || too_old {
        return None;
    }
    // The wait doubles each time; a random part between half and all of it is used, so that failed deliveries do not all
    // return at the same time.
    let doubled = policy.base_ms.saturating_mul(1_u64.checked_shl(attempts - 1).unwrap_or(u64::MAX));
    let most = doubled.min(policy.max_ms);
    let wait = most / 2 + (most / 2) * u64::from(dice) / u64::from(u32::MAX);
    let asked = failed.wait.map_or(0, |wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
    let wait = wait.max(asked.min(policy.max_ms));
    Some(now_ms.saturating_add_unsigned(wait))
}

pub(super) fn dice() -> u32 {
    let mut bytes = [0; 4];
    // Without random numbers the waits are the shortest: still valid, only less spread.
    let _ = SystemRandom::new().fill(&mut bytes);
    u32::from_ne_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiso_store::store::WebhookEvent;

    const POLICY: RetryPolicy = RetryPolicy { max_attempts: 10, max_age_ms: 3_600_000, base_ms: 1_000, max_ms: 60_000 };

    fn delivery(attempts: u32) -> Delivery {
        Delivery {
            id: 1,
            key: "k".to_owned(),
            channel: "a".to_owned(),
            event: WebhookEvent::Reply,
            message: Some(1),
            run: None,
            seq: None,
            at_ms: 0,
            since_ms: 0,
            attempts,
            due_ms: 0,
            ended_ms: None,
            error: None,
            label: None,
        }
    }

    #[test]
    fn waits_double_up_to_the_most_and_are_spread() {
        let failed = NotDelivered::passing("x");
        let wait = |attempts, dice| after(POLICY, &delivery(attempts), &failed, 0, dice);
        for (attempts, most) in [(0, 1_000), (1, 2_000), (2, 4_000), (5, 32_000), (6, 60_000), (8, 60_000)] {
            assert_eq!((wait(attempts, 0), wait(attempts, u32::MAX)), (Some(most / 2), Some(most)), "{attempts}");
            let between = wait(attempts, u32::MAX / 2).unwrap();
            assert!((most / 2..=most).contains(&between), "{between}");
        }
    }

    #[test]
    fn a_receiver_may_ask_for_more_time_but_not_for_any() {
        let asks = |wait| NotDelivered { wait: Some(Duration::from_secs(wait)), ..NotDelivered::passing("x") };
        let wait = |asked| after(POLICY, &delivery(0), &asks(asked), 0, u32::MAX);
        assert_eq!(
            [wait(0), wait(1), wait(7), wait(60), wait(86_400)],
            [1_000, 1_000, 7_000, 60_000, 60_000].map(Some)
        );
    }

    #[test]
    fn a_delivery_is_given_up_in_the_end() {
        let failed = NotDelivered::passing("x");
        let next = |attempts, now| after(POLICY, &delivery(attempts), &failed, now, 0);
        assert!(next(8, 0).is_some());
        assert_eq!(next(9, 0), None, "that was the tenth");
        let hour = 3_600_000;
        assert!(next(4, hour - 1).is_some());
        assert_eq!(next(4, hour), None, "too old");
        assert!(next(3, i64::MAX).is_some(), "or the clock was wrong");
        // A clock that was set back makes nothing too old.
        assert!(next(0, -hour).is_some());
        let gone = NotDelivered { trouble: Trouble::Gone, ..failed.clone() };
        assert_eq!(after(POLICY, &delivery(0), &gone, 0, 0), None);
    }

    #[test]
    fn a_clock_that_jumps_holds_nothing_up() {
        let wait = |due, now| until_due(due, now, 60_000).map(|wait| wait.as_millis());
        assert_eq!([wait(5, 5), wait(5, 9), wait(0, i64::MAX), wait(i64::MAX, i64::MIN)], [None; 4]);
        assert_eq!([wait(6, 5), wait(60_005, 5), wait(60_006, 5)], [Some(1), Some(60_000), None]);
    }
}
