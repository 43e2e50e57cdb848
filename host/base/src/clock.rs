//! The current time of day, and schedules based on it.

pub mod timing;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::system::SINCE_BOOT;
use rustix::time::clock_gettime;

/// Milliseconds since 1970, as the store keeps them. A clock before 1970 counts as 1970.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Time since the machine was started, including time spent asleep: deadlines of other machines pass during that time, too. It
/// never goes back.
pub fn since_boot() -> Duration {
    let now = clock_gettime(SINCE_BOOT);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// "2026-11-21 22:08" in local time.
pub fn minute(ms: i64) -> String {
    let at = jiff::Timestamp::from_millisecond(ms).unwrap_or_default();
    at.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string()
}

/// "2026-11-21" in local time.
pub fn day(ms: i64) -> String {
    minute(ms)[..10].to_owned()
}
