//! Times as text, for `printf '%(…)T'`. Always UTC: there are no tables of zones here.

const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// A moment on the calendar.
struct Moment {
    seconds: i64,
    year: i64,
    /// From 0.
    month: usize,
    day: i64,
    /// From 0, on January 1st.
    day_of_year: i64,
    /// 0 is Sunday.
    weekday: i64,
    hour: i64,
    minute: i64,
    second: i64,
}

impl Moment {
    fn new(seconds: i64) -> Moment {
        let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        // Days from the civil calendar (Howard Hinnant), in years that begin in March.
        let shifted = days + 719_468;
        let era = shifted.div_euclid(146_097);
        let of_era = shifted.rem_euclid(146_097);
        let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let march_month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * march_month + 2) / 5 + 1;
        let month = (march_month + 2) % 12;
        let year = year_of_era + era * 400 + i64::from(month < 2);
        let leap = i64::from(year % 4 == 0 && (year % 100 != 0 || year % 400 == 0));
        let day_of_year = if month < 2 { of_year - 306 } else { of_year + 59 + leap };
        Moment {
            seconds,
            year,
            month: month as usize,
            day,
            day_of_year,
            weekday: (days + 4).rem_euclid(7),
            hour: rest / 3600,
            minute: rest / 60 % 60,
            second: rest % 60,
        }
    }

    /// The ISO 8601 week and the year that it belongs to.
    fn week(&self) -> (i64, i64) {
        let weekday = (self.weekday + 6) % 7;
        let thursday = Moment::new(self.seconds + (3 - weekday) * 86_400);
        (thursday.day_of_year / 7 + 1, thursday.year)
    }

    fn twelve(&self) -> i64 {
        if self.hour % 12 == 0 { 12 } else { self.hour % 12 }
    }
}

/// Seconds since 1970 by a format of `strftime`, in the C locale.
pub fn format(format: &str, seconds: i64) -> String {
    // Years of more digits than anybody means are cut off here.
    let moment = Moment::new(seconds.clamp(-62_167_219_200, 253_402_300_799));
    let mut text = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            text.push(c);
            continue;
        }
        let mut letter = chars.next();
        // The alternative forms are the same in this locale.
        if matches!(letter, Some('E' | 'O')) {
            letter = chars.next();
        }
        match letter {
            Some(letter) => text.push_str(&part(&moment, letter)),
            None => text.push('%'),
        }
    }
    text
}

fn part(moment: &Moment, letter: char) -> String {
    let Moment { year, month, day, day_of_year, weekday, hour, minute, second, .. } = *moment;
    let again = |letters: &str| format(letters, moment.seconds);
    match letter {
        '%' => "%".to_owned(),
        'n' => "\n".to_owned(),
        't' => "\t".to_owned(),
        'a' => DAYS[weekday as usize][..3].to_owned(),
        'A' => DAYS[weekday as usize].to_owned(),
        'b' | 'h' => MONTHS[month][..3].to_owned(),
        'B' => MONTHS[month].to_owned(),
        'c' => again("%a %b %e %H:%M:%S %Y"),
        'C' => format!("{:02}", year / 100),
        'd' => format!("{day:02}"),
        'D' | 'x' => again("%m/%d/%y"),
        'e' => format!("{day:>2}"),
        'F' => again("%Y-%m-%d"),
        'g' => format!("{:02}", moment.week().1 % 100),
        'G' => moment.week().1.to_string(),
        'H' => format!("{hour:02}"),
        'I' => format!("{:02}", moment.twelve()),
        'j' => format!("{:03}", day_of_year + 1),
        'k' => format!("{hour:>2}"),
        'l' => format!("{:>2}", moment.twelve()),
        'm' => format!("{:02}", month + 1),
        'M' => format!("{minute:02}"),
        'p' => if hour < 12 { "AM" } else { "PM" }.to_owned(),
        'P' => if hour < 12 { "am" } else { "pm" }.to_owned(),
        'r' => again("%I:%M:%S %p"),
        'R' => again("%H:%M"),
        's' => moment.seconds.to_string(),
        'S' => format!("{second:02}"),
        'T' | 'X' => again("%H:%M:%S"),
        'u' => if weekday == 0 { 7 } else { weekday }.to_string(),
        'U' => format!("{:02}", (day_of_year + 7 - weekday) / 7),
        'V' => format!("{:02}", moment.week().0),
        'w' => weekday.to_string(),
        'W' => format!("{:02}", (day_of_year + 7 - (weekday + 6) % 7) / 7),
        'y' => format!("{:02}", year % 100),
        'Y' => year.to_string(),
        'z' => "+0000".to_owned(),
        'Z' => "UTC".to_owned(),
        other => format!("%{other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_as_c_does() {
        assert_eq!(format("%Y-%m-%d %H:%M:%S %a %j %s", 0), "1970-01-01 00:00:00 Thu 001 0");
        assert_eq!(format("%F %T %A %B %e %I%p", 1_709_164_799), "2024-02-28 23:59:59 Wednesday February 28 11PM");
        assert_eq!(format("%F %j %U %W %V %G", 1_709_251_199), "2024-02-29 060 08 09 09 2024");
        assert_eq!(format("%F %V %G %g", 1_230_768_000), "2009-01-01 01 2009 09");
        assert_eq!(format("%F %V %G", 1_104_537_600), "2005-01-01 53 2004");
        assert_eq!(format("%F %a", -1), "1969-12-31 Wed");
        assert_eq!(format("%q%%%", 0), "%q%%");
    }
}
