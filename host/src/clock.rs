//! The time of day, and when something is due by it.

pub mod timing;

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970, as the store keeps them. A clock before 1970 counts as 1970.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// "2026-11-21 22:08" in local time.
pub fn minute(ms: i64) -> String {
    let at = jiff::Timestamp::from_millisecond(ms).unwrap_or_default();
    at.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string()
}
