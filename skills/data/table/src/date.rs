//! Dates and times as seconds since 1970-01-01 00:00 on the clock of whoever wrote them.
//!
//! A zone or offset in the text is read and set aside: a day's values belong to the day that the file says. Only where a column has
//! several offsets are its times those of UTC, since nothing else can be compared.

/// The finest part of a date that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Precision {
    /// 2024
    Year,
    /// 2024-03
    Month,
    /// 2024-03-01
    Day,
    /// 2024-03-01 12:30
    Minute,
    /// 2024-03-01 12:30:15
    Second,
    /// 2024-03-01 12:30:15.250
    Milli,
}

/// How `03/04/2024` is read. With dots the day always comes first, with the year in front it is never in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    MonthFirst,
    DayFirst,
}

/// A moment taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Civil {
    pub year: i64,
    /// 1 to 12
    pub month: u32,
    /// 1 to 31
    pub day: u32,
    pub hour: u32,
    pub minute: u32,
    pub second: u32,
}

pub const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
pub const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// Seconds in a day.
pub const DAY: f64 = 86_400.0;

/// Days since 1970-01-01 in the proleptic Gregorian calendar (Howard Hinnant, "chrono-compatible low-level date algorithms").
pub fn days(year: i64, month: u32, day: u32) -> i64 {
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let of_era = y.rem_euclid(400);
    let of_year = (153 * (i64::from(month) + if month > 2 { -3 } else { 9 }) + 2) / 5 + i64::from(day) - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

impl Civil {
    /// The parts of a moment; its fraction of a second is dropped.
    pub fn from_seconds(seconds: f64) -> Self {
        let whole = seconds.floor() as i64;
        let (day_number, rest) = (whole.div_euclid(86_400), whole.rem_euclid(86_400) as u32);
        let z = day_number + 719_468;
        let (era, of_era) = (z.div_euclid(146_097), z.rem_euclid(146_097));
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted = (5 * of_year + 2) / 153;
        let day = (of_year - (153 * shifted + 2) / 5 + 1) as u32;
        let month = if shifted < 10 { shifted + 3 } else { shifted - 9 } as u32;
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        Self { year, month, day, hour: rest / 3_600, minute: rest / 60 % 60, second: rest % 60 }
    }

    /// The start of this moment's year, month, day, …
    pub fn start(self, precision: Precision) -> f64 {
        let month = if precision >= Precision::Month { self.month } else { 1 };
        let day = if precision >= Precision::Day { self.day } else { 1 };
        let mut seconds = days(self.year, month, day) as f64 * DAY;
        if precision >= Precision::Minute {
            seconds += f64::from(self.hour * 3_600 + self.minute * 60);
        }
        if precision >= Precision::Second {
            seconds += f64::from(self.second);
        }
        seconds
    }

    /// 0 is Monday.
    pub fn weekday(self) -> usize {
        (days(self.year, self.month, self.day) + 3).rem_euclid(7) as usize
    }

    /// Year and number of the ISO 8601 week.
    pub fn week(self) -> (i64, i64) {
        let today = days(self.year, self.month, self.day);
        let thursday = today - self.weekday() as i64 + 3;
        let year = Self::from_seconds(thursday as f64 * DAY).year;
        (year, (thursday - days(year, 1, 1)) / 7 + 1)
    }
}

/// Days of a month.
pub fn month_length(year: i64, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// The moment in a cell and how finely it is known. A bare year is a number, not a date.
///
/// Reads `2024-03-01`, `2024/3/1`, `2024-03`, `1.3.2024`, `3/1/2024` (by `order`), `1 Mar 2024`, `Mar 1, 2024`,
/// `Tue, 01 Mar 2024`, `March 2024`; all but the months with ` 12:30`, `T12:30:15.25Z`, `12:30 PM`, `+02:00`.
pub fn parse(text: &str, order: Order) -> Option<(f64, Precision)> {
    let text = text.trim();
    if text.len() < 6 || text.len() > 40 || !text.is_ascii() {
        return None;
    }
    let (date, time) = split_time(text);
    let (year, month, day) = parse_date(date, order)?;
    if !(1..=12).contains(&month) || day.is_some_and(|d| d == 0 || d > month_length(year, month)) {
        return None;
    }
    let start = days(year, month, day.unwrap_or(1)) as f64 * DAY;
    match time {
        None => Some((start, if day.is_some() { Precision::Day } else { Precision::Month })),
        Some(time) => {
            day?;
            let (seconds, precision) = parse_time(time)?;
            Some((start + seconds, precision))
        }
    }
}

/// Seconds that a time in `text` is ahead of UTC, where it says so: `2024-03-01T12:30+02:00`, `… Z`.
pub fn offset(text: &str) -> Option<i32> {
    let (_, time) = split_time(text.trim());
    let zone = time?.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, ':' | '.' | ',' | ' '));
    let Some(digits) = zone.strip_prefix(['+', '-']) else {
        return matches!(zone.to_ascii_lowercase().as_str(), "z" | "utc" | "gmt").then_some(0);
    };
    let digits = digits.replace(':', "");
    let (hours, minutes) = digits.split_at_checked(2)?;
    let seconds =
        hours.parse::<i32>().ok()? * 3_600 + if minutes.is_empty() { 0 } else { minutes.parse::<i32>().ok()? * 60 };
    Some(if zone.starts_with('-') { -seconds } else { seconds })
}

/// The span that a user means by a date: `2024`, `2024-03`, `2024-03-01`, `2024-03-01 12:30`; start and end (exclusive).
pub fn parse_span(text: &str, order: Order) -> Option<(f64, f64)> {
    let text = text.trim();
    if text.len() == 4
        && let Ok(year) = text.parse::<i64>()
    {
        return Some((days(year, 1, 1) as f64 * DAY, days(year + 1, 1, 1) as f64 * DAY));
    }
    let (start, precision) = parse(text, order)?;
    let civil = Civil::from_seconds(start);
    let length = match precision {
        Precision::Year | Precision::Month => f64::from(month_length(civil.year, civil.month)) * DAY,
        Precision::Day => DAY,
        Precision::Minute => 60.0,
        Precision::Second => 1.0,
        Precision::Milli => 0.001,
    };
    Some((start, start + length))
}

fn split_time(text: &str) -> (&str, Option<&str>) {
    let Some(colon) = text.find(':') else { return (text, None) };
    match text[..colon].rfind(['T', ' ', 't']) {
        Some(i) => (text[..i].trim_end_matches([' ', ',']), Some(text[i + 1..].trim())),
        None => (text, None),
    }
}

fn parse_date(text: &str, order: Order) -> Option<(i64, u32, Option<u32>)> {
    let bytes = text.as_bytes();
    if bytes.iter().any(u8::is_ascii_alphabetic) {
        return parse_named(text);
    }
    let separator = *bytes.iter().find(|b| !b.is_ascii_digit())?;
    if !matches!(separator, b'-' | b'/' | b'.') {
        return None;
    }
    let mut parts = text.split(char::from(separator));
    let (a, b, c) = (parts.next()?, parts.next()?, parts.next());
    if parts.next().is_some() {
        return None;
    }
    if a.len() == 4 && separator != b'.' {
        return Some((number(a)?.into(), number(b)?, c.map_or(Some(None), |c| number(c).map(Some))?));
    }
    let c = c?;
    if c.len() != 4 || a.len() > 2 || b.len() > 2 {
        return None;
    }
    let (first, second, year) = (number(a)?, number(b)?, i64::from(number(c)?));
    let day_first = separator == b'.' || order == Order::DayFirst;
    Some(if day_first { (year, second, Some(first)) } else { (year, first, Some(second)) })
}

/// Dates with the month as an English word, in any order that has one word, one year and at most one day.
fn parse_named(text: &str) -> Option<(i64, u32, Option<u32>)> {
    let (mut year, mut month, mut day) = (None, None, None);
    for (i, word) in text.split([' ', ',', '-']).filter(|w| !w.is_empty()).enumerate() {
        if word.as_bytes()[0].is_ascii_digit() {
            let value = number(word.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '.'))?;
            match word.len() {
                4 if year.is_none() && word.bytes().all(|b| b.is_ascii_digit()) => year = Some(i64::from(value)),
                _ if day.is_none() => day = Some(value),
                _ => return None,
            }
        } else if let Some(found) = month_named(word) {
            if month.replace(found).is_some() {
                return None;
            }
        } else if i > 0 || !WEEKDAYS.iter().any(|d| word.len() >= 3 && d.eq_ignore_ascii_case(&word[..3])) {
            return None;
        }
    }
    Some((year?, month?, day))
}

fn month_named(word: &str) -> Option<u32> {
    const REST: [&str; 12] = ["uary", "ruary", "ch", "il", "", "e", "y", "ust", "tember", "ober", "ember", "ember"];
    let word = word.trim_end_matches('.');
    let (head, tail) = (word.get(..3)?, word.get(3..)?);
    let i = MONTHS.iter().position(|m| m.eq_ignore_ascii_case(head))?;
    (tail.is_empty() || tail.eq_ignore_ascii_case(REST[i]) || (i == 8 && tail == "t")).then_some(i as u32 + 1)
}

/// Seconds since midnight; the offset behind them is set aside.
fn parse_time(text: &str) -> Option<(f64, Precision)> {
    let lower = text.to_ascii_lowercase();
    let (clock, noon) = match (lower.strip_suffix("am"), lower.strip_suffix("pm")) {
        (Some(clock), _) => (clock.trim(), Some(false)),
        (_, Some(clock)) => (clock.trim(), Some(true)),
        _ => (lower.as_str(), None),
    };
    let end = clock.find(|c: char| !(c.is_ascii_digit() || matches!(c, ':' | '.' | ','))).unwrap_or(clock.len());
    let (clock, zone) = clock.split_at(end);
    let zone = zone.trim();
    let offset = zone.strip_prefix(['+', '-']).is_some_and(|z| z.bytes().all(|b| b.is_ascii_digit() || b == b':'));
    if !(offset || matches!(zone, "" | "z" | "utc" | "gmt")) {
        return None;
    }
    let mut parts = clock.split(':');
    let (mut hour, minute) = (number(parts.next()?)?, number(parts.next()?)?);
    let second = parts.next();
    if parts.next().is_some() || hour > 23 || minute > 59 || (noon.is_some() && (hour == 0 || hour > 12)) {
        return None;
    }
    match noon {
        Some(true) if hour < 12 => hour += 12,
        Some(false) if hour == 12 => hour = 0,
        _ => {}
    }
    let start = f64::from(hour * 3_600 + minute * 60);
    let Some(second) = second else { return Some((start, Precision::Minute)) };
    let value: f64 = second.replace(',', ".").parse().ok().filter(|s| (0.0..61.0).contains(s))?;
    let precision = if value.fract() == 0.0 { Precision::Second } else { Precision::Milli };
    Some((start + value, precision))
}

fn number(text: &str) -> Option<u32> {
    (!text.is_empty() && text.len() <= 4 && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok())?
}

/// A moment as ISO 8601 to `precision`, with `between` ('T' or ' ') in front of the time.
pub fn format(seconds: f64, precision: Precision, between: char) -> String {
    let millis = (seconds * 1_000.0).round();
    let Civil { year, month, day, hour, minute, second } = Civil::from_seconds(millis / 1_000.0);
    match precision {
        Precision::Year => format!("{year:04}"),
        Precision::Month => format!("{year:04}-{month:02}"),
        Precision::Day => format!("{year:04}-{month:02}-{day:02}"),
        Precision::Minute => format!("{year:04}-{month:02}-{day:02}{between}{hour:02}:{minute:02}"),
        Precision::Second => format!("{year:04}-{month:02}-{day:02}{between}{hour:02}:{minute:02}:{second:02}"),
        Precision::Milli => {
            let milli = millis.rem_euclid(1_000.0) as u32;
            format!("{year:04}-{month:02}-{day:02}{between}{hour:02}:{minute:02}:{second:02}.{milli:03}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_in_many_coats() {
        let day = days(2024, 3, 1) as f64 * DAY;
        for text in [
            "2024-03-01",
            "2024/3/1",
            "1.3.2024",
            "01.03.2024",
            "3/1/2024",
            "1 Mar 2024",
            "March 1, 2024",
            "Fri, 01 Mar 2024",
        ] {
            assert_eq!(parse(text, Order::MonthFirst), Some((day, Precision::Day)), "{text}");
        }
        assert_eq!(parse("1/3/2024", Order::DayFirst), Some((day, Precision::Day)));
        assert_eq!(parse("2024-03", Order::MonthFirst), Some((day, Precision::Month)));
        assert_eq!(parse("Mar 2024", Order::MonthFirst), Some((day, Precision::Month)));
        let noon = day + 45_000.0;
        for text in ["2024-03-01T12:30", "2024-03-01 12:30+02:00", "3/1/2024 12:30 PM", "2024-03-01 12:30Z"] {
            assert_eq!(parse(text, Order::MonthFirst), Some((noon, Precision::Minute)), "{text}");
        }
        assert_eq!(parse("Fri, 01 Mar 2024 12:30:15 GMT", Order::MonthFirst), Some((noon + 15.0, Precision::Second)));
        assert_eq!(parse("2024-03-01T12:30:15.25Z", Order::MonthFirst), Some((noon + 15.25, Precision::Milli)));
    }

    #[test]
    fn offsets() {
        for (text, seconds) in [
            ("2024-03-01T12:30Z", Some(0)),
            ("2024-03-01 12:30:15.25 UTC", Some(0)),
            ("2024-03-01T12:30:15+02:00", Some(7_200)),
            ("Fri, 01 Mar 2024 12:30:15 -0530", Some(-19_800)),
            ("2024-03-01 12:30+05", Some(18_000)),
            ("2024-03-01 12:30", None),
            ("3/1/2024 12:30 PM", None),
            ("2024-03-01", None),
        ] {
            assert_eq!(offset(text), seconds, "{text}");
        }
    }

    #[test]
    fn what_is_no_date() {
        for text in [
            "2024",
            "12.5",
            "1.2.3",
            "2023-02-29",
            "2024-13-01",
            "31/12/2024",
            "may",
            "maybe 2024",
            "10:30",
            "1-800-555",
        ] {
            assert_eq!(parse(text, Order::MonthFirst), None, "{text}");
        }
    }

    #[test]
    fn calendar_round_trip() {
        for day in (-800_000..800_000).step_by(97) {
            let civil = Civil::from_seconds(day as f64 * DAY + 3_661.0);
            assert_eq!(days(civil.year, civil.month, civil.day), day);
            assert_eq!((civil.hour, civil.minute, civil.second), (1, 1, 1));
        }
        let civil = |y, m, d| Civil::from_seconds(days(y, m, d) as f64 * DAY);
        assert_eq!(civil(2021, 1, 3).week(), (2020, 53));
        assert_eq!(civil(2024, 12, 30).week(), (2025, 1));
        assert_eq!(WEEKDAYS[civil(2024, 3, 1).weekday()], "Fri");
        assert_eq!(
            format(days(1969, 12, 31) as f64 * DAY + 86_399.5, Precision::Milli, 'T'),
            "1969-12-31T23:59:59.500"
        );
    }

    #[test]
    fn spans() {
        let at = |y, m, d| days(y, m, d) as f64 * DAY;
        assert_eq!(parse_span("2024", Order::MonthFirst), Some((at(2024, 1, 1), at(2025, 1, 1))));
        assert_eq!(parse_span("2024-02", Order::MonthFirst), Some((at(2024, 2, 1), at(2024, 3, 1))));
        assert_eq!(parse_span("2024-02-29", Order::MonthFirst), Some((at(2024, 2, 29), at(2024, 3, 1))));
    }
}
