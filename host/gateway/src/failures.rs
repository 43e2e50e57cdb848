//! Counts invalid tokens by address.
//!
//! A token has 192 random bits and cannot be guessed. An address that tries is still told to wait, so that attempts cost little
//! and appear in the log. Valid tokens are accepted from such an address, too.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use super::connection_slots::network;

/// Number of invalid tokens within a minute after which an address must wait.
const FREE: u32 = 20;

/// Milliseconds after which the count of an address restarts.
const WINDOW_MS: i64 = 60_000;

/// Maximum number of remembered addresses. If there are more, the oldest are forgotten.
const MAX_ADDRESSES: usize = 1_024;

/// Addresses with the start of their window and their number of attempts.
#[derive(Debug, Default)]
pub(crate) struct Failures(Mutex<HashMap<IpAddr, (i64, u32)>>);

impl Failures {
    /// Counts an invalid token; returns true if the address has sent too many.
    pub(crate) fn count(&self, address: IpAddr, now_ms: i64) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let address = network(address);
        if known.len() >= MAX_ADDRESSES && !known.contains_key(&address) {
            known.retain(|_, (began, _)| (0..WINDOW_MS).contains(&(now_ms - *began)));
            if known.len() >= MAX_ADDRESSES
                && let Some(first) = known.iter().min_by_key(|(_, (began, _))| *began).map(|(address, _)| *address)
            {
                known.remove(&first);
            }
        }
        let (began, count) = known.entry(address).or_insert((now_ms, 0));
        // Also restarts if the clock was set back.
        if !(0..WINDOW_MS).contains(&(now_ms - *began)) {
            (*began, *count) = (now_ms, 0);
        }
        *count = count.saturating_add(1);
        if *count == FREE + 1 {
            tracing::warn!(%address, "more than {FREE} wrong tokens within a minute");
        }
        *count > FREE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(n: u32) -> IpAddr {
        std::net::Ipv4Addr::from_bits(0x0a00_0000 + n).into()
    }

    #[test]
    fn an_address_that_tries_too_often_waits_for_the_next_minute() {
        let failures = Failures::default();
        let told = |at| failures.count(address(1), at);
        assert!(!(0..20).any(told));
        assert!(told(20) && told(59_999));
        assert!(!failures.count(address(2), 59_999), "others do not wait with it");
        assert!(!told(60_000));
        assert!(!told(-1), "the clock was set back");
    }

    #[test]
    fn many_addresses_are_not_all_remembered() {
        let failures = Failures::default();
        for n in 0..5_000 {
            failures.count(address(n), i64::from(n));
        }
        assert_eq!(failures.0.lock().unwrap().len(), MAX_ADDRESSES);
    }
}
