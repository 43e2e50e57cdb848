//! `systime`, `strftime` and `mktime`.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};

/// The default format of `strftime()`, as in `date`.
const FORMAT: &str = "%a %b %e %H:%M:%S %Z %Y";

pub fn now() -> f64 {
    Timestamp::now().as_second() as f64
}

fn zone(utc: bool) -> TimeZone {
    if utc { TimeZone::UTC } else { TimeZone::try_system().unwrap_or(TimeZone::UTC) }
}

/// A time by a format of C's `strftime`.
pub fn strftime(format: Option<&str>, seconds: f64, utc: bool) -> Result<String, String> {
    let time =
        Timestamp::from_second(seconds as i64).map_err(|_| format!("strftime: {seconds} is no time that there is"))?;
    let zoned: Zoned = time.to_zoned(zone(utc));
    let format = format.unwrap_or(FORMAT);
    jiff::fmt::strtime::format(format, &zoned)
        .map_err(|e| format!("strftime: the format \"{format}\" cannot be used: {e}"))
}

/// Seconds since 1970 of "YYYY MM DD HH MM SS"; -1 if the text has another form. Parts may lie outside of their range.
pub fn mktime(text: &str, utc: bool) -> f64 {
    let parts: Option<Vec<i64>> = text.split_whitespace().take(7).map(|part| part.parse().ok()).collect();
    let Some([year, month, day, hour, minute, second]) = parts.as_deref().and_then(|parts| parts.get(..6)) else {
        return -1.0;
    };
    let seconds = || -> Option<f64> {
        let months = year.checked_mul(12)?.checked_add(month - 1)?;
        let year = i16::try_from(months.div_euclid(12)).ok()?;
        let first = DateTime::new(year, months.rem_euclid(12) as i8 + 1, 1, 0, 0, 0, 0).ok()?;
        let behind =
            (day - 1).checked_mul(86400)?.checked_add(hour.checked_mul(3600)?)?.checked_add(minute.checked_mul(60)?)?;
        let time = first.checked_add(SignedDuration::from_secs(behind.checked_add(*second)?)).ok()?;
        Some(time.to_zoned(zone(utc)).ok()?.timestamp().as_second() as f64)
    };
    seconds().unwrap_or(-1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        assert_eq!(strftime(Some("%Y-%m-%d %H:%M:%S"), 86399.0, true).unwrap(), "1970-01-01 23:59:59");
        assert_eq!(mktime("2024 02 30 25 00 00", true), 1_709_341_200.0);
        assert_eq!(mktime("2024 02", true), -1.0);
        assert_eq!(mktime("99999999999999 1 1 0 0 0", true), -1.0);
        assert!(strftime(Some("%Y"), 1e300, true).is_err());
    }
}
