//! Dates of feeds: RFC 3339 and its short forms, and RFC 822 as feeds write it.

use std::fmt;

/// Seconds since 1970 in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(i64);

impl Instant {
    /// Reads either form. A date alone is its midnight in UTC; so is a time without a zone taken to be in UTC.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if !text.is_ascii() {
            return None;
        }
        iso(text).or_else(|| rfc822(text))
    }

    /// The day in UTC, such as "2024-03-01".
    pub fn day(self) -> String {
        let (year, month, day) = civil(self.0.div_euclid(86_400));
        format!("{year:04}-{month:02}-{day:02}")
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.rem_euclid(86_400);
        write!(f, "{}T{:02}:{:02}:{:02}Z", self.day(), seconds / 3600, seconds / 60 % 60, seconds % 60)
    }
}

/// "2024-03-01", "2024-03-01T10:00Z", "2024-03-01 10:00:00.25+01:00".
fn iso(text: &str) -> Option<Instant> {
    let (date, rest) = text.split_at_checked(10)?;
    let mut parts = date.split('-');
    let (year, month, day) = (number(parts.next()?)?, number(parts.next()?)?, number(parts.next()?)?);
    if rest.is_empty() {
        return instant((year, month, day), (0, 0, 0), 0);
    }
    let rest = rest.strip_prefix(['T', 't', ' '])?;
    let end = rest.find(['Z', 'z', '+', '-', ' ']).unwrap_or(rest.len());
    let (time, zone) = rest.split_at(end);
    instant((year, month, day), clock(time)?, zone_seconds(zone.trim())?)
}

/// "Fri, 01 Mar 2024 10:00:00 +0100", with or without weekday and seconds; "GMT", "EST"; years of two digits.
fn rfc822(text: &str) -> Option<Instant> {
    const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let text = text.split_once(',').map_or(text, |(_, rest)| rest);
    let mut words = text.split_whitespace().peekable();
    words.next_if(|w| w.starts_with(|c: char| c.is_ascii_alphabetic()));
    let day = number(words.next()?)?;
    let month = words.next()?.get(..3)?.to_ascii_lowercase();
    let month = MONTHS.iter().position(|m| *m == month)? as i64 + 1;
    let year = match number(words.next()?)? {
        // RFC 2822, section 4.3.
        short @ 0..50 => short + 2000,
        short @ 50..1000 => short + 1900,
        year => year,
    };
    let time = words.next().map_or(Some((0, 0, 0)), clock)?;
    instant((year, month, day), time, zone_seconds(words.next().unwrap_or("Z"))?)
}

/// Hours, minutes, seconds; fractions are dropped.
fn clock(text: &str) -> Option<(i64, i64, i64)> {
    let mut parts = text.split(':');
    let (hour, minute) = (number(parts.next()?)?, number(parts.next()?)?);
    let second = parts.next().map_or(Some(0), |s| number(s.split('.').next()?))?;
    (hour < 24 && minute < 60 && second <= 60).then_some((hour, minute, second))
}

fn zone_seconds(text: &str) -> Option<i64> {
    let hours = match text.to_ascii_uppercase().as_str() {
        "" | "Z" | "UT" | "UTC" | "GMT" => 0,
        "EDT" => -4,
        "EST" | "CDT" => -5,
        "CST" | "MDT" => -6,
        "MST" | "PDT" => -7,
        "PST" => -8,
        "CET" => 1,
        "CEST" => 2,
        _ => return offset(text),
    };
    Some(hours * 3600)
}

/// "+0100", "-01:30".
fn offset(text: &str) -> Option<i64> {
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits: String = text[1..].chars().filter(|c| *c != ':').collect();
    let (hours, minutes) = digits.split_at_checked(2)?;
    let minutes = if minutes.is_empty() { 0 } else { number(minutes)? };
    Some(sign * (number(hours)? * 3600 + minutes * 60))
}

fn number(text: &str) -> Option<i64> {
    let digits = !text.is_empty() && text.len() <= 4 && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().ok())?
}

fn instant((year, month, day): (i64, i64, i64), (hour, minute, second): (i64, i64, i64), zone: i64) -> Option<Instant> {
    let days = days(year, month, day);
    let real = (1..=12).contains(&month) && civil(days) == (year, month, day);
    real.then(|| Instant(days * 86_400 + hour * 3600 + minute * 60 + second - zone))
}

/// Days since 1970-01-01 in the Gregorian calendar (Hinnant, "chrono-compatible low-level date algorithms").
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The reverse of [`days`].
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_feeds_are_read() {
        let cases = [
            ("2024-03-01", "2024-03-01T00:00:00Z"),
            ("2024-03-01T10:00:00Z", "2024-03-01T10:00:00Z"),
            ("2024-03-01T10:00:00.123+01:00", "2024-03-01T09:00:00Z"),
            ("2024-02-29T23:30-01:00", "2024-03-01T00:30:00Z"),
            ("2024-03-01 10:00:00", "2024-03-01T10:00:00Z"),
            ("Fri, 01 Mar 2024 10:00:00 +0100", "2024-03-01T09:00:00Z"),
            ("Fri, 1 Mar 24 10:00 EST", "2024-03-01T15:00:00Z"),
            ("01 March 2024 10:00:00 GMT", "2024-03-01T10:00:00Z"),
            ("Thu, 01 Jan 1970 00:00:00 GMT", "1970-01-01T00:00:00Z"),
            ("Wed, 31 Dec 69 23:59:59 GMT", "1969-12-31T23:59:59Z"),
            ("Fri 01 Mar 2024", "2024-03-01T00:00:00Z"),
        ];
        for (text, expected) in cases {
            assert_eq!(Instant::parse(text).map(|d| d.to_string()).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "yesterday",
            "2024-02-30",
            "2023-02-29",
            "2024-13-01",
            "2024-03-01T25:00:00Z",
            "2024-03-0é",
            "Fri, 01 Foo 2024",
        ] {
            assert_eq!(Instant::parse(text), None, "{text}");
        }
    }
}
