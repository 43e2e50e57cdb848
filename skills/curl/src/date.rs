//! Dates as HTTP writes them.

/// Seconds since 1970.
pub type Seconds = i64;

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];

/// Reads the forms that servers and cookies use: `Sun, 06 Nov 1994 08:49:37 GMT`, `06-Nov-94`, `Nov 6 08:49:37 1994`, `1994-11-06`.
pub fn parse(text: &str) -> Option<Seconds> {
    let (mut day, mut month, mut year, mut time) = (None, None, None, 0);
    for word in text.split([' ', ',', '-', 'T']).filter(|word| !word.is_empty()) {
        let lower = word.to_ascii_lowercase();
        if word.contains(':') {
            let mut parts = word.trim_end_matches('Z').split(':');
            let mut next = |max: i64| {
                Some(parts.next()?.split('.').next()?.parse::<i64>().ok()?).filter(|n| (0..=max).contains(n))
            };
            time = next(23)? * 3600 + next(59)? * 60 + next(60).unwrap_or(0);
        } else if let Some(at) = lower.get(..3).and_then(|name| MONTHS.iter().position(|month| *month == name)) {
            month = Some(at as i64 + 1);
        } else if let Ok(number) = word.parse::<i64>() {
            match (day, month, year) {
                _ if word.len() == 4 => year = Some(number),
                (_, None, Some(_)) => month = Some(number),
                (None, ..) => day = Some(number),
                (_, _, None) if word.len() == 2 => year = Some(number + if number < 70 { 2000 } else { 1900 }),
                _ => return None,
            }
        }
    }
    let (day, month, year) = (day?, month?, year?);
    if !(1..=31).contains(&day) || !(1..=12).contains(&month) || !(1583..=9999).contains(&year) {
        return None;
    }
    Some(days(year, month, day) * 86_400 + time)
}

/// Writes `Sun, 06 Nov 1994 08:49:37 GMT`.
pub fn format(at: Seconds) -> String {
    let (year, month, day) = civil(at.div_euclid(86_400));
    let time = at.rem_euclid(86_400);
    let name = MONTHS[month as usize - 1];
    let month = format!("{}{}", name[..1].to_ascii_uppercase(), &name[1..]);
    let weekday = DAYS[at.div_euclid(86_400).rem_euclid(7) as usize];
    format!("{weekday}, {day:02} {month} {year} {:02}:{:02}:{:02} GMT", time / 3600, time / 60 % 60, time % 60)
}

/// Writes `1994-11-06 08:49:37`.
pub fn stamp(at: Seconds) -> String {
    let (year, month, day) = civil(at.div_euclid(86_400));
    let time = at.rem_euclid(86_400);
    format!("{year}-{month:02}-{day:02} {:02}:{:02}:{:02}", time / 3600, time / 60 % 60, time % 60)
}

pub fn now() -> Seconds {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs() as Seconds)
}

/// The time of a file's last change.
pub fn modified(path: &std::path::Path) -> Option<Seconds> {
    let modified = path.metadata().ok()?.modified().ok()?;
    Some(modified.duration_since(std::time::UNIX_EPOCH).ok()?.as_secs() as Seconds)
}

/// Days since 1970 of a date in the Gregorian calendar (Howard Hinnant's `days_from_civil`).
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year - era * 400;
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days - era * 146_097;
    let years = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * years + years / 4 - years / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (years + era * 400 + i64::from(month <= 2), month, of_year - (153 * shifted + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_and_written() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "1994-11-06T08:49:37Z",
            "Sun, 06-Nov-1994 08:49:37 GMT",
        ] {
            assert_eq!(parse(text), Some(784_111_777), "{text}");
        }
        assert_eq!(format(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(stamp(951_782_400), "2000-02-29 00:00:00");
        for text in ["", "tomorrow", "99 Nov 1994", "Nov 1994"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
