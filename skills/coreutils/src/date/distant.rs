//! Times outside of the years that the crate `jiff` knows (-9999 to 9999). The calendar repeats every 400 years, so such a time is shown
//! as the same one of a year that `jiff` knows, with the real year in the format.

use std::ffi::OsString;

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use parse_datetime::{ParsedDateTime, parse_datetime_at_date};

/// Seconds of 400 years.
const CYCLE: i64 = 146_097 * 86_400;

const USUAL_FORMAT: &str = "%a %b %e %H:%M:%S %Z %Y";

/// The arguments of `date` with a time that `jiff` knows and the real year, where they name a time that it does not know.
pub(super) fn within_range(arguments: Vec<OsString>) -> Vec<OsString> {
    rewritten(&arguments).unwrap_or(arguments)
}

fn rewritten(arguments: &[OsString]) -> Option<Vec<OsString>> {
    let words: Vec<&str> = arguments.iter().map(|argument| argument.to_str()).collect::<Option<_>>()?;
    let (mut date, mut format, mut is_utc, mut kept) = (None, None, false, vec![arguments.first()?.clone()]);
    let mut rest = words.iter().skip(1);
    while let Some(&word) = rest.next() {
        let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
        if let Some(text) = word.strip_prefix("--date=") {
            date = Some(text);
        } else if word == "--date" {
            date = rest.next().copied();
        } else if let Some(text) = word.strip_prefix('+') {
            format = Some(text);
        } else if matches!(word, "-u" | "--utc" | "--universal") {
            is_utc = true;
            kept.push(word.into());
        } else if let Some((before, text)) = letters.and_then(|letters| letters.split_once('d'))
            && matches!(before, "" | "u")
        {
            if before == "u" {
                is_utc = true;
                kept.push("-u".into());
            }
            date = if text.is_empty() { rest.next().copied() } else { Some(text) };
        } else {
            // Other forms of output, and times that come from elsewhere.
            return None;
        }
    }
    let zone = if is_utc { TimeZone::UTC } else { TimeZone::system() };
    let seconds = seconds_of(date?, &zone)?;
    let cycles = seconds.div_euclid(CYCLE);
    let near = seconds - cycles * CYCLE;
    let shown = Timestamp::from_second(near).ok()?.to_zoned(zone);
    kept.push("-d".into());
    kept.push(format!("@{near}").into());
    kept.push(format!("+{}", with_years(format.unwrap_or(USUAL_FORMAT), &shown, cycles * 400, seconds)).into());
    Some(kept)
}

/// Returns the seconds since 1970 of a time that `jiff` does not know.
fn seconds_of(date: &str, zone: &TimeZone) -> Option<i64> {
    if let Some(number) = date.trim().strip_prefix('@') {
        let seconds: i64 = number.parse().ok()?;
        return Timestamp::from_second(seconds).is_err().then_some(seconds);
    }
    let now = Timestamp::now().to_zoned(zone.clone());
    match parse_datetime_at_date(now, date).ok()? {
        ParsedDateTime::Extended(date) => Some(date.unix_seconds()),
        ParsedDateTime::InRange(_) => None,
    }
}

/// The format with the real years in the place of those that `shown` has, and the real seconds.
fn with_years(format: &str, shown: &Zoned, years: i64, seconds: i64) -> String {
    let year = i64::from(shown.year()) + years;
    let iso = i64::from(shown.date().iso_week_date().year()) + years;
    let mut out = String::with_capacity(format.len());
    let mut rest = format;
    while let Some((before, behind)) = rest.split_once('%') {
        out.push_str(before);
        let flags = behind
            .find(|c: char| !matches!(c, '-' | '_' | '0'..='9' | '^' | '#' | '+' | 'E' | 'O'))
            .unwrap_or(behind.len());
        let letter = behind[flags..].chars().next();
        match letter {
            Some('Y') => out.push_str(&year.to_string()),
            Some('G') => out.push_str(&iso.to_string()),
            Some('C') => out.push_str(&year.div_euclid(100).to_string()),
            Some('F') => out.push_str(&format!("{}{year}-%m-%d", if year > 9_999 { "+" } else { "" })),
            Some('c') => out.push_str(&format!("%a %b %e %H:%M:%S {year}")),
            Some('s') => out.push_str(&seconds.to_string()),
            Some(other) => {
                out.push('%');
                out.push_str(&behind[..flags + other.len_utf8()]);
            }
            None => out.push_str("%%"),
        }
        rest = &behind[flags + letter.map_or(0, char::len_utf8)..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: &str) {
        let words = line.split('|').map(OsString::from).collect();
        let rewritten = within_range(words).join(std::ffi::OsStr::new("|"));
        assert_eq!(rewritten, expected, "{line}");
    }

    #[test]
    fn a_distant_time_is_shown_in_a_year_that_is_known() {
        check("date|-u|-d|@253402300739|+%F", "date|-u|-d|@946684739|+9999-%m-%d");
        check("date|-ud|9999-12-31|+%Y %s %H", "date|-u|-d|@946598400|+9999 253402214400 %H");
        check("date|-u|--date=@253402300800", "date|-u|-d|@946684800|+%a %b %e %H:%M:%S %Z 10000");
        check(
            "date|-u|-d@253402300800|+%F %G-W%V %C%y%% %-d",
            "date|-u|-d|@946684800|++10000-%m-%d 9999-W%V 100%y%% %-d",
        );
    }

    #[test]
    fn other_times_stay_as_they_are() {
        for line in [
            "date",
            "date|-d|2026-01-01|+%F",
            "date|-u|-d|@0",
            "date|-r|f",
            "date|-d|nonsense",
            "date|-R|-d|@253402300800",
        ] {
            check(line, line);
        }
    }
}
