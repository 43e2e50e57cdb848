//! The time of day, and when something is due by it.

pub mod timing;

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970, as the store keeps them. A clock before 1970 counts as 1970.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
