//! `date`, on that of uutils, with the words of `-d` that its parser reads otherwise than GNU's.

mod distant;

use std::ffi::OsString;

use crate::table::Arguments;

const DAYS: [&str; 7] = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// A day behind one of these is another day than the date.
const RELATIVE: [&str; 5] = ["next", "last", "this", "first", "third"];

pub fn main(arguments: Arguments) -> i32 {
    let mut all: Vec<OsString> = Vec::new();
    let mut is_date = false;
    for argument in arguments {
        let text = argument.to_string_lossy();
        all.push(if std::mem::take(&mut is_date) {
            plain(&text).into()
        } else if let Some(date) = text.strip_prefix("--date=") {
            format!("--date={}", plain(date)).into()
        } else if let Some(date) = text.strip_prefix("-d").filter(|date| !date.is_empty()) {
            format!("-d{}", plain(date)).into()
        } else if let Some(format) = text.strip_prefix('+') {
            format!("+{}", known(format)).into()
        } else {
            is_date = text == "--date" || text.strip_prefix('-').is_some_and(is_last_of_letters);
            argument
        });
    }
    uu_date::uumain(distant::within_range(all).into_iter())
}

/// Whether short options end with the one whose value follows: `-d`, `-ud`.
fn is_last_of_letters(letters: &str) -> bool {
    letters.strip_suffix('d').is_some_and(|before| before.chars().all(|c| "uR".contains(c)))
}

/// A date without its day of the week, where that says nothing (uutils' parser goes on to the next such day), and without "hence".
fn plain(date: &str) -> String {
    let words: Vec<&str> = date.split_whitespace().collect();
    let bare = |word: &str| word.trim_matches([',', '.']).to_lowercase();
    let is_day = |word: &str| {
        let word = bare(word);
        word.len() >= 3 && DAYS.iter().any(|day| *day == word || (word.len() <= 5 && day.starts_with(&word)))
    };
    let is_month = |word: &str| bare(word).get(..3).is_some_and(|start| MONTHS.contains(&start)) && !is_day(word);
    let is_numbers = |word: &str| {
        let parts: Vec<&str> = word.split(['-', '/', 'T']).collect();
        parts.len() >= 2 && parts.iter().all(|part| part.starts_with(|c: char| c.is_ascii_digit()))
    };
    let has_date = words.iter().any(|word| is_month(word) || is_numbers(word));
    let is_relative =
        |at: usize| at.checked_sub(1).is_some_and(|before| RELATIVE.contains(&bare(words[before]).as_str()));
    let kept = words.iter().enumerate().filter(|(at, word)| {
        let says_nothing = has_date && is_day(word) && !is_relative(*at);
        !says_nothing && bare(word) != "hence"
    });
    kept.map(|(_, word)| *word).collect::<Vec<_>>().join(" ")
}

/// A format in which what GNU's does not know stands for itself: `%f`.
fn known(format: &str) -> String {
    let mut out = String::with_capacity(format.len());
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        out.push(c);
        if c != '%' {
            continue;
        }
        match chars.next() {
            Some('f') => out.push_str("%f"),
            Some(next) => out.push(next),
            None => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_of_the_week_beside_a_date_says_nothing() {
        for (given, kept) in [
            ("Sat, 15 Mar 2024 10:00:00 +0000", "15 Mar 2024 10:00:00 +0000"),
            ("WEDNESDAY August 17 2026", "August 17 2026"),
            ("2024-03-15 Friday", "2024-03-15"),
            ("next monday", "next monday"),
            ("2026-01-01 next monday", "2026-01-01 next monday"),
            ("Monday", "Monday"),
            ("sat 10:00", "sat 10:00"),
            ("2026-01-01 2 months hence", "2026-01-01 2 months"),
            ("5 days hence", "5 days"),
            ("@1700000000", "@1700000000"),
            ("", ""),
        ] {
            assert_eq!(plain(given), kept, "{given}");
        }
    }

    #[test]
    fn an_unknown_letter_stands_for_itself() {
        assert_eq!((known("%f %%f %Y"), known("%")), ("%%f %%f %Y".to_owned(), "%".to_owned()));
        assert!(
            is_last_of_letters("d")
                && is_last_of_letters("ud")
                && !is_last_of_letters("u")
                && !is_last_of_letters("Id")
        );
    }
}
