//! Where the hunks of a patch belong in a file that may have changed meanwhile, and what the file is afterwards.

use std::io::Write;

use super::parse::{Change, Hunk};

/// The result of one hunk.
#[derive(Debug, PartialEq, Eq)]
pub enum Placed {
    /// Line in the new file, lines that were left out of account at its ends, and how far from where it was to be.
    At {
        line: i64,
        fuzz: usize,
        offset: i64,
    },
    Failed {
        line: i64,
    },
}

/// A file while hunks are applied to it.
pub struct Applied<'a> {
    lines: Vec<&'a [u8]>,
    output: Vec<u8>,
    /// Lines of the file that are in the output already.
    done: usize,
    /// How far the last hunk was from where it was to be.
    offset: i64,
    /// How many more lines the output has.
    grown: i64,
}

impl<'a> Applied<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        let lines = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        Self { lines, output: Vec::with_capacity(bytes.len()), done: 0, offset: 0, grown: 0 }
    }

    /// Applies a hunk if there is a place for it, leaving out at most so many lines of context at either end.
    pub fn hunk(&mut self, hunk: &Hunk, most_fuzz: usize) -> Placed {
        let (before, after) = hunk.context();
        for fuzz in 0..=most_fuzz.min(before.max(after)) {
            if let Some(at) = self.find(hunk, fuzz) {
                let line = at as i64 + 1 + self.grown;
                self.replace(hunk, at);
                return Placed::At { line, fuzz, offset: self.offset };
            }
        }
        Placed::Failed { line: first(hunk) + 1 + self.grown }
    }

    /// Whether the hunk can be applied without fuzz.
    pub fn fits(&mut self, hunk: &Hunk) -> bool {
        let offset = self.offset;
        let found = self.find(hunk, 0).is_some();
        self.offset = offset;
        found
    }

    /// The line, from 0, at which the hunk begins; the nearest to where it was to be.
    fn find(&mut self, hunk: &Hunk, fuzz: usize) -> Option<usize> {
        let pattern = hunk.pattern();
        let guess = first(hunk) + self.offset;
        if pattern.is_empty() {
            let at = usize::try_from(guess).ok()?;
            return (self.done <= at && at <= self.lines.len()).then_some(at);
        }
        let (before, after) = hunk.context();
        let context = before.max(after);
        // Where one end has less context than the other, the hunk lies at that end of the file.
        let skip = |own: usize| (fuzz + own) as i64 - context as i64;
        let (skip_first, skip_last) = (skip(before), skip(after));
        let last = self.lines.len() as i64 - pattern.len() as i64;
        let fits = |at: i64| self.fits_at(&pattern, at, skip_first.max(0) as usize, skip_last.max(0) as usize);
        let found = if skip_first < 0 && first(hunk) <= 0 {
            (fits(0) && (skip_last >= 0 || last == 0)).then_some(0)
        } else if skip_last < 0 {
            fits(last).then_some(last)
        } else {
            let (earliest, latest) = (self.done as i64, last + skip_last);
            let nearest = (guess - latest).max(earliest - guess).max(0);
            let furthest = (guess - earliest).max(latest - guess);
            (nearest..=furthest).flat_map(|distance| [guess + distance, guess - distance]).find(|at| fits(*at))
        }?;
        self.offset = found - first(hunk);
        usize::try_from(found).ok()
    }

    fn fits_at(&self, pattern: &[&[u8]], at: i64, skip_first: usize, skip_last: usize) -> bool {
        if at < self.done as i64 || skip_first + skip_last > pattern.len() {
            return false;
        }
        let middle = &pattern[skip_first..pattern.len() - skip_last];
        let there = self.lines.get(at as usize + skip_first..).and_then(|lines| lines.get(..middle.len()));
        there.is_some_and(|there| there == middle)
    }

    fn replace(&mut self, hunk: &Hunk, at: usize) {
        self.copy_until(at);
        for change in &hunk.changes {
            match change {
                // The file's own line: it may be another one where context was left out of account.
                Change::Keep(_) => self.copy_until(self.done + 1),
                Change::Remove(_) => {
                    self.done += 1;
                    self.grown -= 1;
                }
                Change::Add(text) => {
                    self.output.extend_from_slice(text);
                    self.grown += 1;
                }
            }
        }
    }

    fn copy_until(&mut self, line: usize) {
        let end = line.min(self.lines.len());
        for line in &self.lines[self.done.min(end)..end] {
            self.output.extend_from_slice(line);
        }
        self.done = line;
    }

    /// The file with the rest of its lines.
    pub fn finish(mut self) -> Vec<u8> {
        self.copy_until(self.lines.len().max(self.done));
        self.output
    }

    /// A hunk that has no place, as a unified diff.
    pub fn write_rejected(&self, hunk: &Hunk, into: &mut Vec<u8>) {
        let range = |(first, count): (u64, u64)| {
            let first = first as i64 + self.grown;
            if count == 1 { first.to_string() } else { format!("{first},{count}") }
        };
        let _ = writeln!(into, "@@ -{} +{} @@", range(hunk.old), range(hunk.new));
        for change in &hunk.changes {
            let (sign, text) = match change {
                Change::Keep(text) => (b' ', text),
                Change::Remove(text) => (b'-', text),
                Change::Add(text) => (b'+', text),
            };
            into.push(sign);
            into.extend_from_slice(text);
            if !text.ends_with(b"\n") {
                into.extend_from_slice(b"\n\\ No newline at end of file\n");
            }
        }
    }
}

/// The line, from 0, at which a hunk was to begin. An empty range names the line before it.
fn first(hunk: &Hunk) -> i64 {
    let (first, count) = hunk.old;
    first as i64 - i64::from(count > 0)
}
