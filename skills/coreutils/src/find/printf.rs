//! The formats of `find -printf`.

use std::io::{self, Write};
use std::time::SystemTime;

use walkdir::DirEntry;

use crate::cli::Error;

pub enum Part {
    Text(String),
    /// A directive with its width (negative: left-aligned) and, for a time, its second letter.
    Field {
        letter: char,
        second: char,
        width: i32,
    },
    /// `\c`: nothing more.
    Stop,
}

pub fn parse(format: &str) -> Result<Vec<Part>, Error> {
    let mut parts = Vec::new();
    let mut text = String::new();
    let mut chars = format.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => text.push('\n'),
                Some('t') => text.push('\t'),
                Some('r') => text.push('\r'),
                Some('0') => text.push('\0'),
                Some('a') => text.push('\x07'),
                Some('c') => {
                    parts.push(Part::Text(std::mem::take(&mut text)));
                    parts.push(Part::Stop);
                }
                Some('\\') | None => text.push('\\'),
                Some(other) => text.extend(['\\', other]),
            },
            '%' => {
                if chars.next_if_eq(&'%').is_some() {
                    text.push('%');
                    continue;
                }
                let mut width = String::new();
                while let Some(c) = chars.next_if(|c| *c == '-' || c.is_ascii_digit()) {
                    width.push(c);
                }
                let letter = chars.next().ok_or("the format ends with %")?;
                let second = match letter {
                    'T' | 'A' | 'C' => chars.next().ok_or("a time needs a second letter, as in %TY")?,
                    _ => ' ',
                };
                if !"pfhPHsdmMyltTACugUGniDkbcF".contains(letter) {
                    return Err(format!("unrecognized format directive `%{letter}'").into());
                }
                parts.push(Part::Text(std::mem::take(&mut text)));
                parts.push(Part::Field { letter, second, width: width.parse().unwrap_or(0) });
            }
            c => text.push(c),
        }
    }
    parts.push(Part::Text(text));
    Ok(parts)
}

pub fn print(parts: &[Part], entry: &DirEntry, root: &str, out: &mut impl Write) -> io::Result<()> {
    for part in parts {
        match part {
            Part::Text(text) => out.write_all(text.as_bytes())?,
            Part::Stop => return Ok(()),
            Part::Field { letter, second, width } => {
                let text = field(*letter, *second, entry, root);
                let size = width.unsigned_abs() as usize;
                if *width < 0 {
                    write!(out, "{text:<size$}")?;
                } else {
                    write!(out, "{text:>size$}")?;
                }
            }
        }
    }
    Ok(())
}

fn field(letter: char, second: char, entry: &DirEntry, root: &str) -> String {
    let path = entry.path().to_string_lossy();
    let meta = entry.metadata().ok();
    let kind = entry.file_type();
    match letter {
        'p' => path.into_owned(),
        'f' => match entry.file_name().to_string_lossy() {
            name if name.is_empty() => path.into_owned(),
            name => name.into_owned(),
        },
        'h' => match path.rfind('/') {
            Some(at) => path[..at].to_owned(),
            None => ".".into(),
        },
        'P' => path.strip_prefix(root).unwrap_or(&path).trim_start_matches('/').to_owned(),
        'H' => root.to_owned(),
        's' => meta.map_or(0, |meta| meta.len()).to_string(),
        'b' => meta.map_or(0, |meta| meta.len().div_ceil(512)).to_string(),
        'k' => meta.map_or(0, |meta| meta.len().div_ceil(1024)).to_string(),
        'd' => entry.depth().to_string(),
        'm' => format!("{:o}", mode(entry.path(), kind)),
        'M' => crate::stat::mode_text(kind, mode(entry.path(), kind)),
        'y' => crate::stat::kind_letter(kind).to_string(),
        'l' => std::fs::read_link(entry.path()).map(|target| target.to_string_lossy().into_owned()).unwrap_or_default(),
        't' | 'T' | 'A' | 'C' | 'c' => {
            let modified = meta.and_then(|meta| meta.modified().ok()).unwrap_or(SystemTime::UNIX_EPOCH);
            time(modified, if matches!(letter, 't' | 'c') { 'c' } else { second })
        }
        'u' | 'g' => "kiso".into(),
        'U' | 'G' => "1000".into(),
        'n' => "1".into(),
        _ => "0".into(),
    }
}

/// The permissions of what has this kind; none where it has gone meanwhile.
pub fn mode(path: &std::path::Path, kind: std::fs::FileType) -> u32 {
    command::permissions::get(path, !kind.is_symlink()).unwrap_or_default()
}

/// A time in UTC by one letter of `strftime`, as `%T` of find takes it.
fn time(time: SystemTime, letter: char) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let seconds = since.as_secs() as i64;
    let (year, month, day) = civil_from_days(seconds.div_euclid(86400));
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let fraction = format!("{:09}0", since.subsec_nanos());
    match letter {
        '@' => format!("{seconds}.{fraction}"),
        's' => seconds.to_string(),
        'Y' => year.to_string(),
        'y' => format!("{:02}", year % 100),
        'm' => format!("{month:02}"),
        'd' => format!("{day:02}"),
        'H' => format!("{hour:02}"),
        'M' => format!("{minute:02}"),
        'S' => format!("{second:02}.{fraction}"),
        'T' | 'X' => format!("{hour:02}:{minute:02}:{second:02}.{fraction}"),
        'R' => format!("{hour:02}:{minute:02}"),
        'F' => format!("{year}-{month:02}-{day:02}"),
        'D' | 'x' => format!("{month:02}/{day:02}/{:02}", year % 100),
        '+' => format!("{year}-{month:02}-{day:02}+{hour:02}:{minute:02}:{second:02}.{fraction}"),
        'Z' => "UTC".into(),
        'z' => "+0000".into(),
        'j' => format!("{:03}", days_from_civil(year, month, day) - days_from_civil(year, 1, 1) + 1),
        'b' | 'h' => MONTHS[(month - 1) as usize].into(),
        'a' => DAYS[seconds.div_euclid(86400).rem_euclid(7) as usize].into(),
        _ => {
            let weekday = DAYS[seconds.div_euclid(86400).rem_euclid(7) as usize];
            let month = MONTHS[(month - 1) as usize];
            format!("{weekday} {month} {day:2} {hour:02}:{minute:02}:{second:02}.{fraction} {year}")
        }
    }
}

pub const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
/// From the weekday of 1970-01-01.
const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];

/// Year, month and day of a day since 1970-01-01, after Howard Hinnant's "chrono-Compatible Low-Level Date Algorithms".
pub fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, of_year - (153 * shifted + 2) / 5 + 1)
}

/// The inverse of [`civil_from_days`].
pub fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    era * 146_097 + of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_go_there_and_back() {
        for days in [-1, 0, 58, 59, 60, 19_782, 20_000] {
            let (year, month, day) = civil_from_days(days);
            assert_eq!(days_from_civil(year, month, day), days);
        }
        assert_eq!(civil_from_days(19_782), (2024, 2, 29));
    }

    #[test]
    fn times_have_letters() {
        let at = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_709_212_345);
        assert_eq!(time(at, 'F'), "2024-02-29");
        assert_eq!(time(at, 'T'), "13:12:25.0000000000");
        assert_eq!(time(at, 'c'), "Thu Feb 29 13:12:25.0000000000 2024");
        assert_eq!(time(at, 'j'), "060");
    }

    #[test]
    fn unknown_directives_are_refused() {
        assert!(parse("%q").is_err());
        assert!(parse("%").is_err());
        assert!(parse("%-10f %TY\\n").is_ok());
    }
}
