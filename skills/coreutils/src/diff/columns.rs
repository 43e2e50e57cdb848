//! `diff -y`: both files beside each other.

use std::io::{self, Write};

use super::compare::{Change, Lines};

const TAB: usize = 8;

/// The smallest distance between the columns.
const GUTTER: usize = 3;

#[derive(Clone, Copy)]
pub struct Columns {
    pub width: usize,
    /// Without the lines that are in both.
    pub changes_only: bool,
}

pub fn print(form: Columns, old: &Lines, new: &Lines, changes: &[Change], out: &mut impl Write) -> io::Result<()> {
    // The second column begins at a tab stop near the middle, as GNU's does.
    let middle = form.width / 2 + (TAB + GUTTER) / 2 + (form.width & (TAB + GUTTER) & 1);
    let second = middle - middle % TAB;
    let half = second.saturating_sub(GUTTER).min(form.width.saturating_sub(second));
    let page = Page { second: if half == 0 { form.width } else { second }, half };
    let mut at = 0;
    for change in changes {
        page.unchanged(form, &old.lines[at..change.old.start], out)?;
        let (left, right) = (&old.lines[change.old.clone()], &new.lines[change.new.clone()]);
        for row in 0..left.len().max(right.len()) {
            let (left, right) = (left.get(row).copied(), right.get(row).copied());
            let mark = match (left, right) {
                (Some(_), Some(_)) => b'|',
                (Some(_), None) => b'<',
                _ => b'>',
            };
            page.row(left, Some(mark), right, out)?;
        }
        at = change.old.end;
    }
    page.unchanged(form, &old.lines[at..], out)
}

struct Page {
    second: usize,
    half: usize,
}

impl Page {
    fn unchanged(&self, form: Columns, lines: &[&[u8]], out: &mut impl Write) -> io::Result<()> {
        let shown = if form.changes_only { &[] } else { lines };
        shown.iter().try_for_each(|line| self.row(Some(line), None, Some(line), out))
    }

    fn row(&self, left: Option<&[u8]>, mark: Option<u8>, right: Option<&[u8]>, out: &mut impl Write) -> io::Result<()> {
        let mut column = 0;
        if let Some(line) = left {
            column = self.text(line, 0, out)?;
        }
        if let Some(mark) = mark {
            column = advance(column, (self.half + self.second - 1) / 2, out)? + 1;
            out.write_all(&[mark])?;
        }
        if let Some(line) = right.filter(|line| !line.trim_ascii_end().is_empty()) {
            advance(column, self.second, out)?;
            self.text(line, self.second, out)?;
        }
        out.write_all(b"\n")
    }

    /// Writes what fits of a line and returns the column behind it.
    fn text(&self, line: &[u8], start: usize, out: &mut impl Write) -> io::Result<usize> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let mut column = 0;
        for chunk in line.utf8_chunks() {
            let broken = chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER);
            for c in chunk.valid().chars().chain(broken) {
                let next = if c == '\t' { (column / TAB + 1) * TAB } else { column + 1 };
                if next > self.half {
                    return Ok(start + column);
                }
                write!(out, "{c}")?;
                column = next;
            }
        }
        Ok(start + column)
    }
}

/// Writes tabs and blanks up to a column.
fn advance(mut from: usize, to: usize, out: &mut impl Write) -> io::Result<usize> {
    while (from / TAB + 1) * TAB <= to {
        out.write_all(b"\t")?;
        from = (from / TAB + 1) * TAB;
    }
    write!(out, "{:1$}", "", to.saturating_sub(from))?;
    Ok(to.max(from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::compare::{Rules, changes};

    fn show(width: usize, changes_only: bool, old: &str, new: &str) -> String {
        let (old, new) = (Lines::new(old.as_bytes()), Lines::new(new.as_bytes()));
        let mut out = Vec::new();
        let form = Columns { width, changes_only };
        print(form, &old, &new, &changes(&old, &new, &Rules::default()), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn lines_stand_beside_each_other() {
        assert_eq!(show(20, false, "a=1\n", "a=1\n"), "a=1\ta=1\n");
        let old = "same\nold line that is long\ngone\nend\n";
        let new = "same\nnew\nend\nmore\n";
        assert_eq!(
            show(40, false, old, new),
            "same\t\t\tsame\nold line that is   |\tnew\ngone\t\t   <\nend\t\t\tend\n\t\t   >\tmore\n"
        );
        assert_eq!(show(40, true, "a\nb\n", "a\nc\n"), "b\t\t   |\tc\n");
    }
}
