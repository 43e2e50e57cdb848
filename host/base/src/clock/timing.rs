//! Schedules: cron expressions, intervals and single times, each in a time zone. Pure; the time is given.
//!
//! ```
//! use kiso_base::clock::timing::Timing;
//! let timing = Timing::parse("30 8 * * MON-FRI", "Europe/Berlin").unwrap();
//! // Friday, 2026-11-20 at noon: the next time is Monday morning at 8:30, which is 7:30 UTC.
//! assert_eq!(timing.next_after(1_795_172_400_000), Some(1_795_419_000_000));
//! ```

mod words;

use croner::Cron;
use croner::errors::CronError;
use croner::parser::{CronParser, Seconds, Year};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp, Zoned, civil};

/// Maximum characters of a timing.
pub const MAX_TIMING: usize = 200;

/// Number of times that are compared to find the shortest interval: more than a day of a schedule that fires every ten minutes.
const LOOKED_AT: usize = 150;

/// The longest interval, in seconds: a year. A longer one must be written as a date.
const MAX_INTERVAL_S: i64 = 366 * 86_400;

/// Names of whole expressions.
const NICKNAMES: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// The fields of an expression with six fields, each with its values and its largest step. An expression with five has no
/// seconds.
const FIELDS: [(&str, &str, u32); 6] = [
    ("second", "0 to 59", 59),
    ("minute", "0 to 59", 59),
    ("hour", "0 to 23", 23),
    ("day of month", "1 to 31, L or 15W", 31),
    ("month", "1 to 12 or JAN to DEC", 12),
    ("day of week", "0 to 7 or SUN to SAT, MON#1 or 5L", 7),
];

/// Changes of a clock (such as daylight saving) that are searched for an interval: more than a century with two in each year.
const CLOCK_CHANGES: usize = 250;

/// A parsed schedule.
#[derive(Debug, Clone)]
pub struct Timing {
    zone: TimeZone,
    when: When,
}

#[derive(Debug, Clone)]
enum When {
    /// At times of the clock, each a list or range of values.
    Fixed(Box<Cron>),
    /// With `*` or a step in its seconds, minutes or hours.
    Interval(Box<Cron>),
    /// Milliseconds.
    Every(i64),
    At(i64),
}

/// Why a text is not a timing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimingError {
    #[error(
        "{text:?} says no time: write words such as \"every weekday at 8\" or \"every 15 minutes\", a cron expression of 5 fields \
         (minute, hour, day of month, month, day of week), 6 with seconds before them, @daily and the like, \"@every 10m\" \
         or \"at 2030-01-31 08:00\""
    )]
    Unknown { text: String },
    #[error(
        "the {field} field of the cron expression, {value:?}, is wrong: {why}; it takes {takes}, or *, lists, ranges and steps of them"
    )]
    Field { field: &'static str, value: String, why: String, takes: &'static str },
    #[error("{text:?} is not an interval: write a number and s, m, h or d, such as \"@every 10m\", up to 366d")]
    Interval { text: String },
    #[error("{text:?} is not a time: write \"at 2030-01-31 08:00\", a time in the time zone of the schedule")]
    Time { text: String },
    #[error("the cron expression {text:?} never comes: there is no such day")]
    Never { text: String },
    #[error("there is no time zone {name:?}: write one like \"Europe/Berlin\" or \"UTC\"")]
    Zone { name: String },
    #[error("a timing has at most {MAX_TIMING} characters")]
    TooLong,
}

impl Timing {
    /// Parses a timing in a time zone of the IANA database.
    pub fn parse(text: &str, zone: &str) -> Result<Timing, TimingError> {
        if text.len() > MAX_TIMING {
            return Err(TimingError::TooLong);
        }
        let zone = TimeZone::get(zone).map_err(|_| TimingError::Zone { name: zone.chars().take(80).collect() })?;
        let text = text.trim();
        let in_words = words::expression(&text.split_whitespace().collect::<Vec<_>>());
        let words: Vec<&str> = in_words.as_deref().unwrap_or(text).split_whitespace().collect();
        let when = match words.as_slice() {
            ["@every", interval] => When::Every(interval_ms(interval)?),
            ["at", ..] => When::At(time_ms(words[1..].join(" ").as_str(), &zone)?),
            [name] if name.starts_with('@') => {
                let known = NICKNAMES.iter().find(|(nickname, _)| nickname.eq_ignore_ascii_case(name));
                let (_, expression) = known.ok_or_else(|| TimingError::Unknown { text: text.to_owned() })?;
                cron(&expression.split(' ').collect::<Vec<_>>())?
            }
            fields if (5..=6).contains(&fields.len()) && text.is_ascii() => cron(fields)?,
            _ => return Err(TimingError::Unknown { text: text.to_owned() }),
        };
        let timing = Timing { zone, when };
        if matches!(timing.when, When::Fixed(_) | When::Interval(_)) && timing.next_after(0).is_none() {
            return Err(TimingError::Never { text: text.to_owned() });
        }
        Ok(timing)
    }

    /// Returns the first time after `after_ms`, in milliseconds since 1970; `None` if there is none. When the clock is put
    /// forward, a skipped fixed time fires at the end of the gap, and a skipped time of an interval does not fire. When the clock
    /// is put back, a fixed time fires once.
    pub fn next_after(&self, after_ms: i64) -> Option<i64> {
        match &self.when {
            When::Fixed(cron) => self.next_fixed(cron, Timestamp::from_millisecond(after_ms).ok()?),
            When::Interval(cron) => self.next_of_interval(cron, Timestamp::from_millisecond(after_ms).ok()?),
            When::Every(interval) => after_ms.checked_add(*interval),
            When::At(at) => (*at > after_ms).then_some(*at),
        }
    }

    /// Returns the first time after `after` that a clock shows, in milliseconds. Times are tried in the order of the clock; their
    /// moments never go back.
    fn next_fixed(&self, cron: &Cron, after: Timestamp) -> Option<i64> {
        let mut clock = self.zone.to_datetime(after);
        loop {
            clock = next_on_clock(cron, clock, false)?;
            let at = moment(clock, &self.zone)?;
            if at > after {
                return Some(at.as_millisecond());
            }
        }
    }

    /// Returns the first time after `after`, in milliseconds. Searches the periods between the changes of the clock one by one.
    fn next_of_interval(&self, cron: &Cron, after: Timestamp) -> Option<i64> {
        let (mut from, mut inclusive) = (after, false);
        for _ in 0..CLOCK_CHANGES {
            let offset = self.zone.to_offset(from);
            let clock = next_on_clock(cron, offset.to_datetime(from), inclusive)?;
            let at = offset.to_timestamp(clock).ok()?;
            match self.zone.following(from).next().map(|change| change.timestamp()) {
                Some(change) if change <= at => (from, inclusive) = (change, true),
                _ => return Some(at.as_millisecond()),
            }
        }
        None
    }

    /// Returns the next time of something that was due at `due_ms`: later than both `due_ms` and `now_ms`. Missed times are
    /// skipped, and an interval keeps its rhythm.
    pub fn next(&self, due_ms: i64, now_ms: i64) -> Option<i64> {
        match &self.when {
            When::Every(interval) => {
                let beats = (now_ms.saturating_sub(due_ms)).max(0) / interval + 1;
                due_ms.checked_add(interval.checked_mul(beats)?)
            }
            _ => self.next_after(now_ms.max(due_ms)),
        }
    }

    /// The shortest time between two of the next times, in milliseconds; `None` if it fires at most once.
    pub fn shortest_interval_ms(&self, after_ms: i64) -> Option<i64> {
        if let When::Every(interval) = self.when {
            return Some(interval);
        }
        let times = std::iter::successors(self.next_after(after_ms), |at| self.next_after(*at)).take(LOOKED_AT);
        let times: Vec<i64> = times.collect();
        times.windows(2).map(|pair| pair[1] - pair[0]).min()
    }

    /// Formats a time in the zone: "2026-11-23 08:30:00 +01:00".
    pub fn show(&self, at_ms: i64) -> String {
        zoned(at_ms, &self.zone).map_or_else(String::new, |at| at.strftime("%Y-%m-%d %H:%M:%S %:z").to_string())
    }
}

/// Formats a moment for models: "Saturday, 2026-11-28 22:10 +01:00, Europe/Berlin". An unknown zone becomes UTC.
pub fn say(at_ms: i64, zone: &str) -> String {
    let (tz, name) = TimeZone::get(zone).map_or((TimeZone::UTC, "UTC"), |tz| (tz, zone));
    zoned(at_ms, &tz).map_or_else(String::new, |at| format!("{}, {name}", at.strftime("%A, %Y-%m-%d %H:%M %:z")))
}

fn zoned(at_ms: i64, zone: &TimeZone) -> Option<Zoned> {
    Some(Timestamp::from_millisecond(at_ms).ok()?.to_zoned(zone.clone()))
}

fn interval_ms(text: &str) -> Result<i64, TimingError> {
    let wrong = || TimingError::Interval { text: text.to_owned() };
    let unit = text.chars().next_back().ok_or_else(wrong)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return Err(wrong()),
    };
    let number: i64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    let total = number.checked_mul(seconds).filter(|total| (1..=MAX_INTERVAL_S).contains(total)).ok_or_else(wrong)?;
    Ok(total * 1_000)
}

/// Returns the next time that an expression names, as a clock shows it.
fn next_on_clock(cron: &Cron, after: civil::DateTime, inclusive: bool) -> Option<civil::DateTime> {
    let after = after.to_zoned(TimeZone::UTC).ok()?;
    Some(cron.find_next_occurrence(&after, inclusive).ok()?.datetime())
}

/// Returns the moment at which a clock shows this time: the first of two, or the end of the gap if the time is skipped.
fn moment(clock: civil::DateTime, zone: &TimeZone) -> Option<Timestamp> {
    let shown = zone.to_ambiguous_timestamp(clock);
    match shown.offset() {
        AmbiguousOffset::Gap { before, .. } => {
            let as_before = before.to_timestamp(clock).ok()?;
            let change = zone.preceding(as_before.checked_add(SignedDuration::from_millis(1)).ok()?).next()?;
            Some(change.timestamp())
        }
        _ => shown.compatible().ok(),
    }
}

/// Parses a time with an offset, or a civil time of the zone.
fn time_ms(text: &str, zone: &TimeZone) -> Result<i64, TimingError> {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at.as_millisecond());
    }
    let wrong = || TimingError::Time { text: text.to_owned() };
    let civil: civil::DateTime = text.parse().map_err(|_| wrong())?;
    Ok(moment(civil, zone).ok_or_else(wrong)?.as_millisecond())
}

fn cron(fields: &[&str]) -> Result<When, TimingError> {
    let parser = CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed).build();
    let names = &FIELDS[FIELDS.len() - fields.len()..];
    // Each field is checked alone first, because the parser does not say which one it refuses.
    for (at, value) in fields.iter().enumerate() {
        let (field, takes, most) = names[at];
        let wrong = |why: String| TimingError::Field { field, value: (*value).to_owned(), why, takes };
        let mut alone = vec!["*"; fields.len()];
        alone[at] = value;
        if let Err(error) = parser.parse(&alone.join(" ")) {
            return Err(wrong(why(&error)));
        }
        let steps = value.split(',').filter_map(|part| part.split_once('/'));
        if let Some((_, step)) = steps.into_iter().find(|(_, step)| step.parse::<u32>().is_ok_and(|step| step > most)) {
            return Err(wrong(format!("a step of {step} is more than {most}, so it would only come once")));
        }
    }
    let text = fields.join(" ");
    let cron = Box::new(parser.parse(&text).map_err(|_| TimingError::Unknown { text })?);
    let is_interval = fields[..fields.len() - 3].iter().any(|field| field.contains(['*', '/', '?']));
    Ok(if is_interval { When::Interval(cron) } else { When::Fixed(cron) })
}

fn why(error: &CronError) -> String {
    let text = match error {
        CronError::ComponentError(text) | CronError::IllegalCharacters(text) | CronError::InvalidPattern(text) => {
            text.clone()
        }
        other => other.to_string(),
    };
    text.trim_start_matches("CronPattern ").trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses a time in UTC, such as "2026-03-29T00:30:00Z".
    fn ms(text: &str) -> i64 {
        text.parse::<Timestamp>().unwrap().as_millisecond()
    }

    fn times(timing: &str, zone: &str, after: &str, count: usize) -> Vec<String> {
        let timing = Timing::parse(timing, zone).unwrap();
        let next = |at: &i64| timing.next_after(*at);
        std::iter::successors(next(&ms(after)), next).take(count).map(|at| timing.show(at)).collect()
    }

    #[test]
    fn expressions_are_meant_in_their_zone() {
        assert_eq!(
            times("0 9 * * MON", "Asia/Tokyo", "2026-11-22T12:00:00Z", 2),
            ["2026-11-23 09:00:00 +09:00", "2026-11-30 09:00:00 +09:00"]
        );
        assert_eq!(times("@daily", "UTC", "2026-11-22T00:00:00Z", 1), ["2026-11-23 00:00:00 +00:00"]);
        assert_eq!(times("*/20 * * * * *", "UTC", "2026-11-22T00:00:05.5Z", 1), ["2026-11-22 00:00:20 +00:00"]);
        assert_eq!(
            times("at 2027-01-31 08:00", "Europe/Berlin", "2026-11-22T00:00:00Z", 5),
            ["2027-01-31 08:00:00 +01:00"]
        );
        assert_eq!(times("at 2027-01-31T08:00:00Z", "Asia/Tokyo", "2026-11-22T00:00:00Z", 5).len(), 1);
    }

    /// In Berlin, the clock skips 2:30 on 2026-03-29.
    #[test]
    fn where_the_clock_is_put_forward_a_fixed_time_comes_after_the_gap_and_an_interval_goes_on() {
        assert_eq!(
            times("30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z", 3),
            ["2026-03-28 02:30:00 +01:00", "2026-03-29 03:00:00 +02:00", "2026-03-30 02:30:00 +02:00"]
        );
        assert_eq!(
            times("*/30 * * * *", "Europe/Berlin", "2026-03-29T00:15:00Z", 3),
            ["2026-03-29 01:30:00 +01:00", "2026-03-29 03:00:00 +02:00", "2026-03-29 03:30:00 +02:00"]
        );
    }

    /// In Berlin 2:30 comes twice on 2026-10-25.
    #[test]
    fn where_the_clock_is_put_back_a_fixed_time_comes_once_and_an_interval_twice() {
        assert_eq!(
            times("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2),
            ["2026-10-25 02:30:00 +02:00", "2026-10-26 02:30:00 +01:00"]
        );
        assert_eq!(
            times("30 * * * *", "Europe/Berlin", "2026-10-25T00:00:00Z", 3),
            ["2026-10-25 02:30:00 +02:00", "2026-10-25 02:30:00 +01:00", "2026-10-25 03:30:00 +01:00"]
        );
    }

    #[test]
    fn lists_and_ranges_come_as_single_times_do_where_a_clock_changes() {
        for (timing, zone, after, expected) in [
            (
                "30 2,14 * 3,10 *",
                "Europe/Berlin",
                "2027-03-28T00:00:00Z",
                vec!["03-28 03:00 +02:00", "03-28 14:30 +02:00", "03-29 02:30 +02:00"],
            ),
            (
                "30 2,14 * 3,10 *",
                "Europe/Berlin",
                "2027-10-30T20:00:00Z",
                vec!["10-31 02:30 +02:00", "10-31 14:30 +01:00"],
            ),
            (
                "15 1,13 * 11 *",
                "America/New_York",
                "2027-11-06T20:00:00Z",
                vec!["11-07 01:15 -04:00", "11-07 13:15 -05:00"],
            ),
            ("0,30 2 * * *", "Europe/Berlin", "2027-03-27T12:00:00Z", vec!["03-28 03:00 +02:00", "03-29 02:00 +02:00"]),
            (
                "15,45 2,3 * * *",
                "Europe/Berlin",
                "2027-03-27T12:00:00Z",
                vec!["03-28 03:00 +02:00", "03-28 03:15 +02:00", "03-28 03:45 +02:00"],
            ),
            (
                "0,30 1-3 * * *",
                "Europe/Berlin",
                "2027-10-30T22:30:00Z",
                vec![
                    "10-31 01:00 +02:00",
                    "10-31 01:30 +02:00",
                    "10-31 02:00 +02:00",
                    "10-31 02:30 +02:00",
                    "10-31 03:00 +01:00",
                ],
            ),
            (
                "0,30 * * * *",
                "Europe/Berlin",
                "2027-10-31T00:00:00Z",
                vec!["10-31 02:30 +02:00", "10-31 02:00 +01:00", "10-31 02:30 +01:00", "10-31 03:00 +01:00"],
            ),
            (
                "0,30 * * * *",
                "Europe/Berlin",
                "2027-03-28T00:15:00Z",
                vec!["03-28 01:30 +01:00", "03-28 03:00 +02:00", "03-28 03:30 +02:00"],
            ),
            ("30 2 * * *", "Australia/Lord_Howe", "2027-10-02T00:00:00Z", vec!["10-03 02:30 +11:00"]),
            ("15 2 * * *", "Australia/Lord_Howe", "2027-10-02T00:00:00Z", vec!["10-03 02:30 +11:00"]),
            (
                "45 1 * * *",
                "Australia/Lord_Howe",
                "2027-04-02T20:00:00Z",
                vec!["04-04 01:45 +11:00", "04-05 01:45 +10:30"],
            ),
            (
                "0 0,12 * * *",
                "America/Santiago",
                "2027-09-04T12:00:00Z",
                vec!["09-04 12:00 -04:00", "09-05 01:00 -03:00", "09-05 12:00 -03:00"],
            ),
            ("at 2027-03-28 02:30", "Europe/Berlin", "2027-01-01T00:00:00Z", vec!["03-28 03:00 +02:00"]),
            ("at 2027-10-31 02:30", "Europe/Berlin", "2027-01-01T00:00:00Z", vec!["10-31 02:30 +02:00"]),
        ] {
            let found = times(timing, zone, after, expected.len());
            let found: Vec<String> = found.iter().map(|at| format!("{}{}", &at[5..16], &at[19..])).collect();
            assert_eq!(found, expected, "{timing} {zone}");
        }
    }

    #[test]
    fn a_step_beyond_its_field_is_refused() {
        for text in [
            "*/60 * * * *",
            "*/90 * * * *",
            "0 */24 * * *",
            "0 0 */32 * *",
            "0 0 1 */13 *",
            "0 0 * * */8",
            "*/90 * * * * *",
            "5,*/90 * * * *",
        ] {
            let error = Timing::parse(text, "UTC").unwrap_err().to_string();
            assert!(error.contains("field of the cron expression"), "{text}: {error}");
        }
        for text in ["*/59 * * * *", "0 */23 * * *", "0 0 */31 * *", "0 0 1 */12 *", "0 0 * * */7"] {
            Timing::parse(text, "UTC").unwrap();
        }
    }

    #[test]
    fn an_interval_keeps_its_beat_and_leaves_out_what_was_missed() {
        let timing = Timing::parse("@every 10m", "UTC").unwrap();
        let minute = 60_000;
        assert_eq!(timing.next(5, 5), Some(10 * minute + 5));
        assert_eq!(timing.next(0, 10 * minute), Some(20 * minute));
        assert_eq!(timing.next(0, 34 * minute), Some(40 * minute));
        assert_eq!(timing.next(0, -minute), Some(10 * minute), "the clock was put back");
        let cron = Timing::parse("0 * * * *", "UTC").unwrap();
        assert_eq!(cron.next(0, 150 * minute), Some(180 * minute), "two were missed, and come no more");
        assert_eq!(Timing::parse("at 1970-01-01 01:00", "UTC").unwrap().next(60 * minute, 61 * minute), None);
    }

    #[test]
    fn the_shortest_interval_is_known() {
        let shortest = |text: &str| Timing::parse(text, "UTC").unwrap().shortest_interval_ms(0);
        assert_eq!(shortest("* * * * *"), Some(60_000));
        assert_eq!(shortest("0,59 * * * *"), Some(60_000), "from the 59th minute to the next");
        assert_eq!(shortest("*/5 * * * * *"), Some(5_000));
        assert_eq!(shortest("@every 90s"), Some(90_000));
        assert_eq!(shortest("at 2030-01-01 00:00"), None);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_field() {
        let wrong = |text: &str| Timing::parse(text, "UTC").unwrap_err().to_string();
        assert!(wrong("61 * * * *").starts_with("the minute field of the cron expression, \"61\", is wrong: "));
        assert!(wrong("* 24 * * *").starts_with("the hour field"));
        assert!(wrong("* * 0 * *").starts_with("the day of month field"));
        assert!(wrong("* * * 13 *").starts_with("the month field"));
        assert!(wrong("* * * * MUN").starts_with("the day of week field"));
        assert!(wrong("60 * * * * *").starts_with("the second field"));
        assert!(wrong("*/0 * * * *").starts_with("the minute field"));
        for text in ["", "* * * *", "* * * * * * *", "@sometimes", "every day", "٣ * * * *"] {
            assert!(wrong(text).contains("says no time"), "{text}: {}", wrong(text));
        }
        for text in ["@every 0s", "@every 10", "@every -1m", "@every 400d", "@every 99999999999999999999d", "@every €"]
        {
            assert!(wrong(text).contains("is not an interval"), "{text}: {}", wrong(text));
        }
        assert!(wrong("at noon").contains("is not a time"));
        assert!(wrong("0 0 30 2 *").contains("never comes"));
        assert!(wrong(&"*".repeat(300)).contains("at most 200"));
        assert!(Timing::parse("@daily", "Mars/Base").unwrap_err().to_string().contains("no time zone \"Mars/Base\""));
    }

    proptest::proptest! {
        /// Each text is a timing or an error, and the times of a timing only go forward.
        #[test]
        fn times_go_forward(text in "[0-9*/,LW#@a-z -]{0,20}", after in 0_i64..4_000_000_000_000) {
            if let Ok(timing) = Timing::parse(&text, "America/New_York")
                && let Some(next) = timing.next_after(after)
            {
                proptest::prop_assert!(next > after);
            }
        }
    }
}
