//! Where two files differ.

use std::collections::HashMap;
use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// Differences to ignore.
#[derive(Default)]
pub struct Rules {
    pub ignore_case: bool,
    /// `-w`
    pub no_blanks: bool,
    /// `-b`
    pub one_blank: bool,
    /// `-B`
    pub no_blank_lines: bool,
    pub no_carriage_return: bool,
}

impl Rules {
    fn key(&self, line: &[u8]) -> Vec<u8> {
        let mut line = line.to_vec();
        if self.no_carriage_return && line.ends_with(b"\r\n") {
            line.remove(line.len() - 2);
        }
        if self.ignore_case {
            line = String::from_utf8_lossy(&line).to_lowercase().into_bytes();
        }
        if self.no_blanks {
            line.retain(|byte| !byte.is_ascii_whitespace());
        } else if self.one_blank {
            let words: Vec<&[u8]> =
                line.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty()).collect();
            let indented = line.first().is_some_and(|byte| *byte == b' ' || *byte == b'\t') && !words.is_empty();
            let joined = words.join(&b' ');
            line = if indented { [b" ", &joined[..]].concat() } else { joined };
        }
        line
    }
}

/// A file cut into lines, each with its newline if it has one.
pub struct Lines<'a> {
    pub lines: Vec<&'a [u8]>,
}

impl<'a> Lines<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Lines { lines: bytes.split_inclusive(|byte| *byte == b'\n').collect() }
    }
}

/// Lines of one file in the place of lines of the other; one of the ranges may be empty.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub old: Range<usize>,
    pub new: Range<usize>,
}

pub fn changes(old: &Lines, new: &Lines, rules: &Rules) -> Vec<Change> {
    let mut numbers = HashMap::new();
    let mut number = |line: &&[u8]| {
        let next = numbers.len();
        *numbers.entry(rules.key(line)).or_insert(next)
    };
    let a: Vec<usize> = old.lines.iter().map(&mut number).collect();
    let b: Vec<usize> = new.lines.iter().map(&mut number).collect();
    let mut changes: Vec<Change> = Vec::new();
    for op in capture_diff_slices(Algorithm::Myers, &a, &b) {
        if matches!(op, DiffOp::Equal { .. }) {
            continue;
        }
        let (old, new) = (op.old_range(), op.new_range());
        match changes.last_mut() {
            Some(last) if last.old.end == old.start && last.new.end == new.start => {
                (last.old.end, last.new.end) = (old.end, new.end);
            }
            _ => changes.push(Change { old, new }),
        }
    }
    for change in &mut changes {
        slide(change, &a, &b);
    }
    if rules.no_blank_lines {
        let blank = |lines: &[&[u8]]| lines.iter().all(|line| line.iter().all(u8::is_ascii_whitespace));
        changes.retain(|c| !(blank(&old.lines[c.old.clone()]) && blank(&new.lines[c.new.clone()])));
    }
    changes
}

/// An insertion or deletion that could stand further down stands there, as in GNU's diff.
fn slide(change: &mut Change, a: &[usize], b: &[usize]) {
    let (range, lines) = match (change.old.is_empty(), change.new.is_empty()) {
        (true, false) => (&change.new, b),
        (false, true) => (&change.old, a),
        _ => return,
    };
    let mut by = 0;
    while range.end + by < lines.len() && lines[range.start + by] == lines[range.end + by] {
        // The other file has the same line there, because both are equal up to the next change.
        let other = if change.old.is_empty() { (change.old.end + by, a) } else { (change.new.end + by, b) };
        if other.1.get(other.0) != Some(&lines[range.end + by]) {
            break;
        }
        by += 1;
    }
    change.old = change.old.start + by..change.old.end + by;
    change.new = change.new.start + by..change.new.end + by;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(rules: Rules, old: &str, new: &str, expected: &[(Range<usize>, Range<usize>)]) {
        let found = changes(&Lines::new(old.as_bytes()), &Lines::new(new.as_bytes()), &rules);
        let found: Vec<_> = found.into_iter().map(|change| (change.old, change.new)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn changes_are_ranges() {
        check(Rules::default(), "a\nb\nc\n", "a\nx\nc\nd\n", &[(1..2, 1..2), (3..3, 3..4)]);
        check(Rules::default(), "a\n", "a", &[(0..1, 0..1)]);
        check(Rules::default(), "a\nb\n", "a\nb\nb\n", &[(2..2, 2..3)]);
    }

    #[test]
    fn rules_make_lines_equal() {
        check(Rules { ignore_case: true, ..Rules::default() }, "A\n", "a\n", &[]);
        check(Rules { no_blanks: true, ..Rules::default() }, "a b\n", "ab \n", &[]);
        check(Rules { one_blank: true, ..Rules::default() }, "a  b\n", "a b \n", &[]);
        check(Rules { one_blank: true, ..Rules::default() }, "ab\n", "a b\n", &[(0..1, 0..1)]);
        check(Rules { no_blank_lines: true, ..Rules::default() }, "a\n\nb\n", "a\nb\n", &[]);
    }
}
