//! Timings in plain words: "every weekday at 8", "each Monday at 9:30 am", "every 15 minutes".

const WEEK: [(&str, &str); 7] =
    [("sun", "SUN"), ("mon", "MON"), ("tue", "TUE"), ("wed", "WED"), ("thu", "THU"), ("fri", "FRI"), ("sat", "SAT")];

/// Words that can begin a timing in words.
const LEADS: [&str; 9] = ["every", "each", "daily", "weekly", "monthly", "hourly", "weekdays", "weekends", "on"];

/// Returns the cron expression that these words mean; `None` if they are not such a timing.
pub(super) fn expression(words: &[&str]) -> Option<String> {
    let words: Vec<String> =
        words.iter().flat_map(|word| word.split(',')).filter(|word| !word.is_empty()).map(str::to_lowercase).collect();
    let words: Vec<&str> =
        words.iter().map(String::as_str).filter(|word| !matches!(*word, "o'clock" | "the")).collect();
    let (first, rest) = words.split_first()?;
    if !LEADS.contains(first) {
        return None;
    }
    match (*first, rest) {
        ("every" | "each", [count, unit]) if count.parse::<u32>().is_ok() => interval(count, unit),
        ("every" | "each", ["minute"]) => Some("* * * * *".to_owned()),
        ("every" | "each", ["hour"]) | ("hourly", []) => Some("0 * * * *".to_owned()),
        ("every" | "each" | "on", rest) => dated(rest),
        ("daily" | "weekdays" | "weekends", _) => dated(&words),
        ("weekly", rest) => dated(&[&["week"], rest].concat()),
        ("monthly", rest) => dated(&[&["month"], rest].concat()),
        _ => None,
    }
}

/// "15 minutes".
fn interval(count: &str, unit: &str) -> Option<String> {
    let unit = match unit.trim_end_matches('s') {
        "second" | "sec" => "s",
        "minute" | "min" => "m",
        "hour" => "h",
        "day" => "d",
        _ => return None,
    };
    Some(format!("@every {count}{unit}"))
}

/// "weekday at 8", "monday and friday at 9:30", "month on 1st at 9".
fn dated(words: &[&str]) -> Option<String> {
    let at = words.iter().position(|word| *word == "at")?;
    let (days, times) = (&words[..at], &words[at + 1..]);
    let clock = clock(times)?;
    let (day, weekday) = match days {
        ["day" | "days" | "daily" | "morning" | "evening" | "afternoon" | "night"] => ("*".to_owned(), "*".to_owned()),
        ["weekday" | "weekdays" | "workday" | "workdays"] | ["working" | "work", "day" | "days"] => {
            ("*".to_owned(), "MON-FRI".to_owned())
        }
        ["weekend" | "weekends"] => ("*".to_owned(), "SAT,SUN".to_owned()),
        ["month", "on", "last", "day"] => ("L".to_owned(), "*".to_owned()),
        ["month", "on", day] | ["month", "on", "day", day] => (day_of_month(day)?.to_string(), "*".to_owned()),
        ["week", "on", names @ ..] | names => ("*".to_owned(), weekdays(names)?),
    };
    Some(format!("{clock} {day} * {weekday}"))
}

/// "1st", "15", "22nd".
fn day_of_month(word: &str) -> Option<u32> {
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let ending = &word[digits.len()..];
    let day = digits.parse().ok().filter(|day| (1..=31).contains(day))?;
    matches!(ending, "" | "st" | "nd" | "rd" | "th").then_some(day)
}

/// "monday", "mondays and fridays", "mon wed fri".
fn weekdays(words: &[&str]) -> Option<String> {
    let names = words.iter().filter(|word| **word != "and").map(|word| {
        let full = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];
        let single = word.strip_suffix('s').filter(|one| full.contains(one)).unwrap_or(word);
        let known = full.contains(&single) || WEEK.iter().any(|(short, _)| short == word);
        WEEK.iter().find(|(short, _)| known && single.starts_with(short)).map(|(_, name)| *name)
    });
    let names: Vec<&str> = names.collect::<Option<_>>()?;
    (!names.is_empty()).then(|| names.join(","))
}

/// The minute and the hours: "8", "8:30 pm", "8 and 17", "noon", "7 in morning".
fn clock(words: &[&str]) -> Option<String> {
    let mut minute = None;
    let mut hours: Vec<String> = Vec::new();
    for words in words.split(|word| *word == "and") {
        let (time, afternoon) = match words {
            ["noon"] => ("12:00", None),
            ["midnight"] => ("0:00", None),
            [time] => match time
                .strip_suffix("am")
                .map(|time| (time, false))
                .or_else(|| time.strip_suffix("pm").map(|time| (time, true)))
            {
                Some((time, afternoon)) => (time, Some(afternoon)),
                None => (*time, None),
            },
            [time, "am" | "a.m."] | [time, "in", "morning"] => (*time, Some(false)),
            [time, "pm" | "p.m."] | [time, "in", "afternoon" | "evening"] => (*time, Some(true)),
            _ => return None,
        };
        let (hour, minutes) = time.split_once(':').unwrap_or((time, "0"));
        let (hour, minutes): (u32, u32) = (hour.parse().ok()?, minutes.parse().ok()?);
        let hour = match afternoon {
            None => hour,
            Some(_) if !(1..=12).contains(&hour) => return None,
            Some(afternoon) => hour % 12 + if afternoon { 12 } else { 0 },
        };
        // One expression has only one value for its minutes.
        if hour > 23 || minutes > 59 || minute.is_some_and(|before| before != minutes) {
            return None;
        }
        minute = Some(minutes);
        hours.push(hour.to_string());
    }
    Some(format!("{} {}", minute?, hours.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_expressions() {
        for (words, expected) in [
            ("every weekday at 8", "0 8 * * MON-FRI"),
            ("Every day at 4 pm", "0 16 * * *"),
            ("every day at 4pm", "0 16 * * *"),
            ("each Monday at 9:30", "30 9 * * MON"),
            ("every 15 minutes", "@every 15m"),
            ("every 2 hours", "@every 2h"),
            ("every hour", "0 * * * *"),
            ("hourly", "0 * * * *"),
            ("daily at 12:05 am", "5 0 * * *"),
            ("every day at noon", "0 12 * * *"),
            ("every day at 12 pm", "0 12 * * *"),
            ("every morning at 7", "0 7 * * *"),
            ("every day at 7 in the evening", "0 19 * * *"),
            ("every day at 8 and 17", "0 8,17 * * *"),
            ("on Mondays and Fridays at 18:00", "0 18 * * MON,FRI"),
            ("each mon, wed, fri at 6", "0 6 * * MON,WED,FRI"),
            ("weekly on Sunday at 10", "0 10 * * SUN"),
            ("every month on the 1st at 9", "0 9 1 * *"),
            ("monthly on the last day at 9", "0 9 L * *"),
            ("every weekend at 10", "0 10 * * SAT,SUN"),
            ("weekdays at 08:00", "0 8 * * MON-FRI"),
        ] {
            let found = expression(&words.split_whitespace().collect::<Vec<_>>());
            assert_eq!(found.as_deref(), Some(expected), "{words}");
        }
    }

    #[test]
    fn what_says_no_time_or_two_is_refused() {
        for words in [
            "every day",
            "every weekday",
            "every other day at 8",
            "every day at 25",
            "every day at 13 pm",
            "every day at 8 and 17:30",
            "every montag at 8",
            "every month at 8",
            "every month on the 32nd at 8",
            "every fortnight at 8",
            "tomorrow at 8",
            "at 8",
            "every 5 moons",
            "every",
            "",
        ] {
            assert_eq!(expression(&words.split_whitespace().collect::<Vec<_>>()), None, "{words}");
        }
    }
}
