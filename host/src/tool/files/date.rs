//! What counts as a date, by the rules of `skills/data/table`.

/// How `03/04/2024` is read. With dots the day always comes first, with the year in front it is never in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    MonthFirst,
    DayFirst,
}

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// Whether `text` is a date. A bare year is a number.
///
/// Knows `2024-03-01`, `2024/3/1`, `2024-03`, `1.3.2024`, `3/1/2024` (by `order`), `1 Mar 2024`, `Mar 1, 2024`,
/// `Tue, 01 Mar 2024`, `March 2024`; all but the months with ` 12:30`, `T12:30:15.25Z`, `12:30 PM`, `+02:00`.
pub fn is_date(text: &str, order: Order) -> bool {
    let text = text.trim();
    if text.len() < 6 || text.len() > 40 || !text.is_ascii() {
        return false;
    }
    let (date, time) = split_time(text);
    let Some((year, month, day)) = parse_date(date, order) else { return false };
    if !(1..=12).contains(&month) || day.is_some_and(|d| d == 0 || d > month_length(year, month)) {
        return false;
    }
    time.is_none_or(|time| day.is_some() && is_time(time).is_some())
}

fn month_length(year: u32, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        _ => 31,
    }
}

fn split_time(text: &str) -> (&str, Option<&str>) {
    let Some(colon) = text.find(':') else { return (text, None) };
    match text[..colon].rfind(['T', ' ', 't']) {
        Some(i) => (text[..i].trim_end_matches([' ', ',']), Some(text[i + 1..].trim())),
        None => (text, None),
    }
}

/// Year, month, and the day if it is told.
fn parse_date(text: &str, order: Order) -> Option<(u32, u32, Option<u32>)> {
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
        return Some((number(a)?, number(b)?, c.map_or(Some(None), |c| number(c).map(Some))?));
    }
    let c = c?;
    if c.len() != 4 || a.len() > 2 || b.len() > 2 {
        return None;
    }
    let (first, second, year) = (number(a)?, number(b)?, number(c)?);
    let day_first = separator == b'.' || order == Order::DayFirst;
    Some(if day_first { (year, second, Some(first)) } else { (year, first, Some(second)) })
}

/// Dates with the month as an English word, in any order that has one word, one year and at most one day.
fn parse_named(text: &str) -> Option<(u32, u32, Option<u32>)> {
    let (mut year, mut month, mut day) = (None, None, None);
    for (i, word) in text.split([' ', ',', '-']).filter(|w| !w.is_empty()).enumerate() {
        if word.as_bytes()[0].is_ascii_digit() {
            let value = number(word.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '.'))?;
            match word.len() {
                4 if year.is_none() && word.bytes().all(|b| b.is_ascii_digit()) => year = Some(value),
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

fn is_time(text: &str) -> Option<()> {
    let lower = text.to_ascii_lowercase();
    let (clock, half) = match lower.strip_suffix("am").or_else(|| lower.strip_suffix("pm")) {
        Some(clock) => (clock.trim(), true),
        None => (lower.as_str(), false),
    };
    let end = clock.find(|c: char| !(c.is_ascii_digit() || matches!(c, ':' | '.' | ','))).unwrap_or(clock.len());
    let (clock, zone) = clock.split_at(end);
    let zone = zone.trim();
    let offset = zone.strip_prefix(['+', '-']).is_some_and(|z| z.bytes().all(|b| b.is_ascii_digit() || b == b':'));
    if !(offset || matches!(zone, "" | "z" | "utc" | "gmt")) {
        return None;
    }
    let mut parts = clock.split(':');
    let (hour, minute) = (number(parts.next()?)?, number(parts.next()?)?);
    let second = parts.next();
    if parts.next().is_some() || hour > 23 || minute > 59 || (half && (hour == 0 || hour > 12)) {
        return None;
    }
    match second {
        Some(second) => second.replace(',', ".").parse().is_ok_and(|s: f64| (0.0..61.0).contains(&s)).then_some(()),
        None => Some(()),
    }
}

fn number(text: &str) -> Option<u32> {
    (!text.is_empty() && text.len() <= 4 && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok())?
}
