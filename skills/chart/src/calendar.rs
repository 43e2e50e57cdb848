//! Ticks on dates: at the start of years, months, weeks, days, hours, with a second line where the greater unit changes.

use table::date::{self, Civil, DAY, MONTHS, Precision};

/// A tick at a moment. `under` is the second line of its label.
#[derive(Debug, Clone, PartialEq)]
pub struct Tick {
    /// Seconds since 1970.
    pub at: f64,
    pub label: String,
    pub under: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Second,
    Minute,
    Hour,
    Day,
    Month,
    Year,
}

/// Distances between ticks: how many of which unit, and the pixels that their labels need.
const STEPS: [(i64, Unit, f64); 21] = [
    (1, Unit::Second, 72.0),
    (5, Unit::Second, 72.0),
    (15, Unit::Second, 72.0),
    (30, Unit::Second, 72.0),
    (1, Unit::Minute, 56.0),
    (5, Unit::Minute, 56.0),
    (15, Unit::Minute, 56.0),
    (30, Unit::Minute, 56.0),
    (1, Unit::Hour, 56.0),
    (3, Unit::Hour, 56.0),
    (6, Unit::Hour, 56.0),
    (12, Unit::Hour, 56.0),
    (1, Unit::Day, 34.0),
    (2, Unit::Day, 34.0),
    (7, Unit::Day, 40.0),
    (14, Unit::Day, 40.0),
    (1, Unit::Month, 40.0),
    (3, Unit::Month, 60.0),
    (6, Unit::Month, 110.0),
    (1, Unit::Year, 50.0),
    (2, Unit::Year, 50.0),
];

/// The ticks from `low` to `high` on an axis of `room` pixels. None is finer than `precision`.
pub fn ticks(low: f64, high: f64, room: f64, precision: Precision) -> Vec<Tick> {
    let per_second = room / (high - low).max(1e-9);
    let finest = match precision {
        Precision::Year => Unit::Year,
        Precision::Month => Unit::Month,
        Precision::Day => Unit::Day,
        _ => Unit::Second,
    };
    let order = |unit: Unit| unit as u8;
    let fits = |&(n, unit, needs): &(i64, Unit, f64)| {
        order(unit) >= order(finest) && n as f64 * length(unit) * per_second >= needs
    };
    let (n, unit) = match STEPS.iter().find(|s| fits(s)) {
        Some((n, unit, _)) => (*n, *unit),
        None => {
            let years = (high - low) / length(Unit::Year);
            (crate::scale::step(0.0, years, (room / 60.0) as usize).max(5.0) as i64, Unit::Year)
        }
    };
    let moments = starts(low, high, n, unit);
    let mut ticks: Vec<Tick> = Vec::new();
    let mut last: Option<Civil> = None;
    for at in moments {
        let civil = Civil::from_seconds(at);
        let (label, under) = label(unit, civil, last);
        ticks.push(Tick { at, label, under });
        last = Some(civil);
    }
    // The first one's second line gives way to the next.
    if let Some(next) = ticks.iter().skip(1).position(|t| t.under.is_some())
        && let Some(under) = ticks.first().and_then(|t| t.under.clone())
        && (ticks[next + 1].at - ticks[0].at) * per_second < 20.0 + 7.0 * under.len() as f64
    {
        ticks[0].under = None;
    }
    ticks
}

/// About how long a unit is, in seconds.
fn length(unit: Unit) -> f64 {
    match unit {
        Unit::Second => 1.0,
        Unit::Minute => 60.0,
        Unit::Hour => 3_600.0,
        Unit::Day => DAY,
        Unit::Month => 30.4 * DAY,
        Unit::Year => 365.25 * DAY,
    }
}

fn starts(low: f64, high: f64, n: i64, unit: Unit) -> Vec<f64> {
    const MOST: usize = 200;
    let mut starts = Vec::new();
    let civil = Civil::from_seconds(low);
    match unit {
        Unit::Year | Unit::Month => {
            let months = if unit == Unit::Year { n * 12 } else { n };
            let mut month = (civil.year * 12 + i64::from(civil.month) - 1).div_euclid(months) * months;
            loop {
                let at = date::days(month.div_euclid(12), month.rem_euclid(12) as u32 + 1, 1) as f64 * DAY;
                if at > high || starts.len() >= MOST {
                    return starts;
                }
                if at >= low {
                    starts.push(at);
                }
                month += months;
            }
        }
        _ => {
            let step = n as f64 * length(unit);
            // Weeks start on Mondays; 1970 began on a Thursday.
            let shift = if unit == Unit::Day && n % 7 == 0 { 4.0 * DAY } else { 0.0 };
            let mut at = ((low - shift) / step).ceil() * step + shift;
            while at <= high && starts.len() < MOST {
                starts.push(at);
                at += step;
            }
            starts
        }
    }
}

fn label(unit: Unit, c: Civil, last: Option<Civil>) -> (String, Option<String>) {
    let month = MONTHS[c.month as usize - 1];
    let new_year = last.is_none_or(|l| l.year != c.year);
    let day = || {
        let new_day = last.is_none_or(|l| (l.year, l.month, l.day) != (c.year, c.month, c.day));
        new_day.then(|| if new_year { format!("{month} {}, {}", c.day, c.year) } else { format!("{month} {}", c.day) })
    };
    match unit {
        Unit::Year => (c.year.to_string(), None),
        Unit::Month => (month.to_owned(), new_year.then(|| c.year.to_string())),
        Unit::Day => {
            let new_month = new_year || last.is_none_or(|l| l.month != c.month);
            let under = new_month.then(|| if new_year { format!("{month} {}", c.year) } else { month.to_owned() });
            (c.day.to_string(), under)
        }
        Unit::Hour | Unit::Minute => (format!("{:02}:{:02}", c.hour, c.minute), day()),
        Unit::Second => (format!("{:02}:{:02}:{:02}", c.hour, c.minute, c.second), day()),
    }
}

/// The time that a chart covers, for its title: "2024", "2019–2024", "Mar 2024", "Mar–May 2024", "Mar 5, 2024".
pub fn covered(low: f64, high: f64) -> String {
    let (a, b) = (Civil::from_seconds(low), Civil::from_seconds(high));
    let month = |c: Civil| MONTHS[c.month as usize - 1];
    if a.year != b.year {
        return format!("{}–{}", a.year, b.year);
    }
    if a.month == b.month {
        return if a.day == b.day {
            format!("{} {}, {}", month(a), a.day, a.year)
        } else {
            format!("{} {}", month(a), a.year)
        };
    }
    if b.month - a.month >= 8 { a.year.to_string() } else { format!("{}–{} {}", month(a), month(b), a.year) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use table::date::{Order, parse};

    #[track_caller]
    fn shows(low: &str, high: &str, room: f64, expected: &str) {
        let at = |text| parse(text, Order::MonthFirst).unwrap();
        let precision = at(low).1.max(at(high).1);
        let ticks = ticks(at(low).0, at(high).0, room, precision);
        let labels: Vec<String> =
            ticks.into_iter().map(|t| t.under.map_or(t.label.clone(), |u| format!("{}/{u}", t.label))).collect();
        assert_eq!(labels.join(" "), expected);
    }

    #[test]
    fn ticks_fall_on_the_calendar() {
        shows("2024-01-01", "2024-12-31", 900.0, "Jan/2024 Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec");
        shows("2023-11-15", "2024-06-20", 300.0, "Dec Jan/2024 Feb Mar Apr May Jun");
        shows("2020-01-01", "2024-12-31", 500.0, "2020 2021 2022 2023 2024");
        shows("2024-02-26", "2024-03-06", 400.0, "26/Feb 2024 27 28 29 1/Mar 2 3 4 5 6");
        shows("2024-03-01 22:00", "2024-03-02 02:00", 300.0, "22:00/Mar 1, 2024 23:00 00:00/Mar 2 01:00 02:00");
        shows("1900-01", "2020-01", 600.0, "1900 1910 1920 1930 1940 1950 1960 1970 1980 1990 2000 2010 2020");
        shows("2024-01", "2024-03", 900.0, "Jan/2024 Feb Mar");
    }

    #[test]
    fn what_a_title_says() {
        let at = |text| parse(text, Order::MonthFirst).unwrap().0;
        for (low, high, text) in [
            ("2024-01-01", "2024-12-31", "2024"),
            ("2019-05-01", "2024-01-31", "2019–2024"),
            ("2024-03-02", "2024-03-30", "Mar 2024"),
            ("2024-03-02", "2024-05-30", "Mar–May 2024"),
            ("2024-03-02", "2024-03-02", "Mar 2, 2024"),
        ] {
            assert_eq!(covered(at(low), at(high)), text);
        }
    }
}
