//! Numbers and dates of cells as text.

use calamine::ExcelDateTime;

/// A number as Excel shows it without a format: 15 digits at most.
pub fn write(value: f64) -> String {
    if value == value.trunc() && value.abs() < 1e15 {
        return format!("{}", value as i64);
    }
    let shortest = format!("{value}");
    if shortest.bytes().filter(u8::is_ascii_digit).count() <= 15 {
        return shortest;
    }
    // A file stores 0.1 + 0.2 as 0.30000000000000004, and Excel shows 0.3.
    match format!("{value:.14e}").parse::<f64>() {
        Ok(rounded) if rounded != 0.0 && (rounded.abs() < 1e-5 || rounded.abs() >= 1e15) => {
            let text = format!("{rounded:E}");
            text.replacen("E-", "E-0", usize::from(text.len() - text.find('E').unwrap_or(0) == 3))
        }
        Ok(rounded) => format!("{rounded}"),
        Err(_) => shortest,
    }
}

/// A date, a time or both, as ISO 8601 with a space.
pub fn write_date(date: &ExcelDateTime) -> String {
    let value = date.as_f64();
    if date.is_duration() {
        return write_duration(value);
    }
    if !(0.0..2_958_466.0).contains(&value) {
        return write(value);
    }
    let (year, month, day, hour, minute, second, milli) = date.to_ymd_hms_milli();
    let clock = match milli {
        0 => format!("{hour:02}:{minute:02}:{second:02}"),
        _ => format!("{hour:02}:{minute:02}:{second:02}.{milli:03}"),
    };
    if value < 1.0 {
        return clock;
    }
    let day = format!("{year:04}-{month:02}-{day:02}");
    // Less than half a millisecond.
    if (hour, minute, second, milli) == (0, 0, 0, 0) { day } else { format!("{day} {clock}") }
}

/// Days as hours, minutes and seconds.
fn write_duration(days: f64) -> String {
    if !days.is_finite() || days.abs() > 1e9 {
        return write(days);
    }
    let seconds = (days.abs() * 86_400.0).round() as u64;
    let sign = if days < 0.0 { "-" } else { "" };
    format!("{sign}{}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use calamine::ExcelDateTimeType::{DateTime, TimeDelta};

    #[test]
    fn numbers_are_short() {
        assert_eq!(write(0.1 + 0.2), "0.3");
        assert_eq!(write(-3.0), "-3");
        assert_eq!(write(1234.5), "1234.5");
        assert_eq!(write(1e20), "1E20");
        assert_eq!(write(1.0 / 3.0), "0.333333333333333");
        assert_eq!(write(f64::NAN), "NaN");
    }

    #[test]
    fn dates_are_dates() {
        let date = |value, kind| write_date(&ExcelDateTime::new(value, kind, false));
        assert_eq!(date(45_413.0, DateTime), "2024-05-01");
        assert_eq!(date(45_413.75, DateTime), "2024-05-01 18:00:00");
        assert_eq!(date(0.5, DateTime), "12:00:00");
        assert_eq!(date(1.5, TimeDelta), "36:00:00");
        assert_eq!(date(-4.0, DateTime), "-4");
    }
}
