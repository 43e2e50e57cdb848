//! The three forms in which `diff` writes what it found.

use std::io::{self, Write};
use std::ops::Range;
use std::time::SystemTime;

use super::compare::{Change, Lines};
use crate::find::printf::civil_from_days;

#[derive(Clone, Copy)]
pub enum Form {
    Normal,
    /// With so many lines around each change.
    Unified(usize),
    Context(usize),
}

/// Name and time, as they stand in the first lines.
pub fn head(path: &str) -> String {
    let time = std::fs::metadata(path).and_then(|meta| meta.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let seconds = since.as_secs() as i64;
    let (year, month, day) = civil_from_days(seconds / 86400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let nanos = since.subsec_nanos();
    format!("{path}\t{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{nanos:09} +0000")
}

pub fn print(
    form: Form,
    old: &Lines,
    new: &Lines,
    changes: &[Change],
    heads: [String; 2],
    out: &mut impl Write,
) -> io::Result<()> {
    let around = match form {
        Form::Normal => return changes.iter().try_for_each(|change| normal(old, new, change, out)),
        Form::Unified(around) => {
            write!(out, "--- {}\n+++ {}\n", heads[0], heads[1])?;
            around
        }
        Form::Context(around) => {
            write!(out, "*** {}\n--- {}\n", heads[0], heads[1])?;
            around
        }
    };
    for group in groups(changes, around) {
        let (first, last) = (&group[0], &group[group.len() - 1]);
        let before = first.old.start.min(first.new.start).min(around);
        let after = (old.lines.len() - last.old.end).min(new.lines.len() - last.new.end).min(around);
        let a = first.old.start - before..last.old.end + after;
        let b = first.new.start - before..last.new.end + after;
        match form {
            Form::Unified(_) => unified(old, new, group, a, b, out)?,
            _ => context(old, new, group, a, b, out)?,
        }
    }
    Ok(())
}

/// Changes whose lines around would touch belong together.
fn groups(changes: &[Change], around: usize) -> Vec<&[Change]> {
    let mut groups = Vec::new();
    let mut start = 0;
    for at in 1..=changes.len() {
        if at == changes.len() || changes[at].old.start - changes[at - 1].old.end > 2 * around {
            groups.push(&changes[start..at]);
            start = at;
        }
    }
    groups
}

fn line(mark: &str, line: &[u8], out: &mut impl Write) -> io::Result<()> {
    out.write_all(mark.as_bytes())?;
    out.write_all(line)?;
    if line.ends_with(b"\n") { Ok(()) } else { out.write_all(b"\n\\ No newline at end of file\n") }
}

/// `3` or `3,5`; an empty range is named by the line before it.
fn numbers(range: &Range<usize>) -> String {
    match range.len() {
        0 => range.start.to_string(),
        1 => range.end.to_string(),
        _ => format!("{},{}", range.start + 1, range.end),
    }
}

fn normal(old: &Lines, new: &Lines, change: &Change, out: &mut impl Write) -> io::Result<()> {
    let letter = match (change.old.is_empty(), change.new.is_empty()) {
        (true, _) => 'a',
        (_, true) => 'd',
        _ => 'c',
    };
    writeln!(out, "{}{letter}{}", numbers(&change.old), numbers(&change.new))?;
    old.lines[change.old.clone()].iter().try_for_each(|text| line("< ", text, out))?;
    if letter == 'c' {
        writeln!(out, "---")?;
    }
    new.lines[change.new.clone()].iter().try_for_each(|text| line("> ", text, out))
}

fn unified(
    old: &Lines,
    new: &Lines,
    group: &[Change],
    a: Range<usize>,
    b: Range<usize>,
    out: &mut impl Write,
) -> io::Result<()> {
    let numbers = |range: &Range<usize>| match range.len() {
        0 => format!("{},0", range.start),
        1 => range.end.to_string(),
        length => format!("{},{length}", range.start + 1),
    };
    writeln!(out, "@@ -{} +{} @@", numbers(&a), numbers(&b))?;
    let mut at = a.start;
    for change in group {
        old.lines[at..change.old.start].iter().try_for_each(|text| line(" ", text, out))?;
        old.lines[change.old.clone()].iter().try_for_each(|text| line("-", text, out))?;
        new.lines[change.new.clone()].iter().try_for_each(|text| line("+", text, out))?;
        at = change.old.end;
    }
    old.lines[at..a.end].iter().try_for_each(|text| line(" ", text, out))
}

fn context(
    old: &Lines,
    new: &Lines,
    group: &[Change],
    a: Range<usize>,
    b: Range<usize>,
    out: &mut impl Write,
) -> io::Result<()> {
    writeln!(out, "***************\n*** {} ****", numbers(&a))?;
    side(old, group, a, |change| (&change.old, &change.new), "- ", out)?;
    writeln!(out, "--- {} ----", numbers(&b))?;
    side(new, group, b, |change| (&change.new, &change.old), "+ ", out)
}

/// One file's half of a context hunk, which is left out if nothing in it changes.
fn side(
    lines: &Lines,
    group: &[Change],
    shown: Range<usize>,
    ranges: impl Fn(&Change) -> (&Range<usize>, &Range<usize>),
    mark: &str,
    out: &mut impl Write,
) -> io::Result<()> {
    if group.iter().all(|change| ranges(change).0.is_empty()) {
        return Ok(());
    }
    let mut at = shown.start;
    for change in group {
        let (here, there) = ranges(change);
        lines.lines[at..here.start].iter().try_for_each(|text| line("  ", text, out))?;
        let mark = if there.is_empty() { mark } else { "! " };
        lines.lines[here.clone()].iter().try_for_each(|text| line(mark, text, out))?;
        at = here.end;
    }
    lines.lines[at..shown.end].iter().try_for_each(|text| line("  ", text, out))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::compare::{Rules, changes};

    fn show(form: Form, old: &str, new: &str) -> String {
        let (old, new) = (Lines::new(old.as_bytes()), Lines::new(new.as_bytes()));
        let mut out = Vec::new();
        let changes = changes(&old, &new, &Rules::default());
        print(form, &old, &new, &changes, ["a".into(), "b".into()], &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn normal_form() {
        assert_eq!(show(Form::Normal, "a\nb\nc\n", "a\nx\nc\nd\n"), "2c2\n< b\n---\n> x\n3a4\n> d\n");
        assert_eq!(show(Form::Normal, "a\nb\n", "b\n"), "1d0\n< a\n");
        assert_eq!(show(Form::Normal, "a\n", "a"), "1c1\n< a\n---\n> a\n\\ No newline at end of file\n");
    }

    #[test]
    fn unified_form() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";
        assert_eq!(
            show(Form::Unified(1), old, &old.replace("2\n", "x\n").replace("9\n", "")),
            "--- a\n+++ b\n@@ -1,3 +1,3 @@\n 1\n-2\n+x\n 3\n@@ -8,3 +8,2 @@\n 8\n-9\n 10\n"
        );
        assert_eq!(show(Form::Unified(3), "", "a\n"), "--- a\n+++ b\n@@ -0,0 +1 @@\n+a\n");
    }

    #[test]
    fn context_form() {
        assert_eq!(
            show(Form::Context(1), "1\n2\n3\n", "1\nx\n3\n"),
            "*** a\n--- b\n***************\n*** 1,3 ****\n  1\n! 2\n  3\n--- 1,3 ----\n  1\n! x\n  3\n"
        );
    }
}
