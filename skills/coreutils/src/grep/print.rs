//! The output of `grep` for one file.

use std::io::{self, StdoutLock, Write};

use grep_matcher::Matcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkMatch};

use super::matcher::AnyMatcher;
use super::options::Options;

const MATCH: &str = "01;31";
const NAME: &str = "35";
const NUMBER: &str = "32";
const SEPARATOR: &str = "36";

pub struct Printer<'a> {
    options: &'a Options,
    matcher: &'a AnyMatcher,
    name: &'a str,
    with_name: bool,
    binary: bool,
    count: u64,
    out: StdoutLock<'static>,
}

impl<'a> Printer<'a> {
    pub fn new(options: &'a Options, matcher: &'a AnyMatcher, name: &'a str, with_name: bool, binary: bool) -> Self {
        Printer { options, matcher, name, with_name, binary, count: 0, out: io::stdout().lock() }
    }

    /// Writes what is known only at the end of the file. Returns whether there was such a line.
    pub fn finish(mut self) -> io::Result<bool> {
        let found = self.count > 0;
        if self.binary && self.options.skip_binary {
            return Ok(false);
        }
        if self.options.quiet {
            return Ok(found);
        }
        if let Some(wanted) = self.options.names {
            if found == wanted {
                self.colored(NAME, self.name)?;
                self.out.write_all(if self.options.zero_after_name { b"\0" } else { b"\n" })?;
            }
            return Ok(found == wanted);
        }
        if self.options.count {
            if self.with_name {
                self.file_name(":")?;
            }
            writeln!(self.out, "{}", self.count)?;
        } else if self.binary && found {
            writeln!(io::stderr(), "grep: {}: binary file matches", self.name)?;
        }
        Ok(found)
    }

    fn colored(&mut self, color: &str, text: &str) -> io::Result<()> {
        self.colored_bytes(color, text.as_bytes())
    }

    fn colored_bytes(&mut self, color: &str, text: &[u8]) -> io::Result<()> {
        if !self.options.color {
            return self.out.write_all(text);
        }
        write!(self.out, "\x1b[{color}m\x1b[K")?;
        self.out.write_all(text)?;
        self.out.write_all(b"\x1b[m\x1b[K")
    }

    fn file_name(&mut self, separator: &str) -> io::Result<()> {
        self.colored(NAME, self.name)?;
        if self.options.zero_after_name { self.out.write_all(b"\0") } else { self.colored(SEPARATOR, separator) }
    }

    fn prefix(&mut self, separator: &str, line: Option<u64>, offset: u64) -> io::Result<()> {
        if self.with_name {
            self.file_name(separator)?;
        }
        if let Some(line) = line {
            self.colored(NUMBER, &line.to_string())?;
            self.colored(SEPARATOR, separator)?;
        }
        if self.options.byte_offset {
            self.colored(NUMBER, &offset.to_string())?;
            self.colored(SEPARATOR, separator)?;
        }
        Ok(())
    }

    fn terminator(&self) -> u8 {
        if self.options.zero { 0 } else { b'\n' }
    }

    fn line(&mut self, bytes: &[u8], mark: bool) -> io::Result<()> {
        let terminator = self.terminator();
        let bytes = bytes.strip_suffix(&[terminator]).unwrap_or(bytes);
        if mark && self.options.color {
            let mut from = 0;
            for (start, end) in self.matches(bytes)? {
                self.out.write_all(&bytes[from..start])?;
                self.colored_bytes(MATCH, &bytes[start..end])?;
                from = end;
            }
            self.out.write_all(&bytes[from..])?;
        } else {
            self.out.write_all(bytes)?;
        }
        self.out.write_all(&[terminator])
    }

    /// The parts of a line that match, without the empty ones.
    fn matches(&self, line: &[u8]) -> io::Result<Vec<(usize, usize)>> {
        let mut found = Vec::new();
        self.matcher.find_iter(line, |part| {
            if !part.is_empty() {
                found.push((part.start(), part.end()));
            }
            true
        })?;
        Ok(found)
    }
}

impl Sink for &mut Printer<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.count += 1;
        if self.options.quiet || self.options.names.is_some() {
            return Ok(false);
        }
        if self.options.count {
            return Ok(true);
        }
        if self.binary {
            return Ok(false);
        }
        let (number, offset) = (found.line_number(), found.absolute_byte_offset());
        if !self.options.only_matching {
            self.prefix(":", number, offset)?;
            self.line(found.bytes(), !self.options.invert)?;
            return Ok(true);
        }
        if self.options.invert {
            return Ok(true);
        }
        let terminator = self.terminator();
        let line = found.bytes().strip_suffix(&[terminator]).unwrap_or(found.bytes());
        for (start, end) in self.matches(line)? {
            self.prefix(":", number, offset + start as u64)?;
            self.colored_bytes(MATCH, &line[start..end])?;
            self.out.write_all(&[terminator])?;
        }
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        if !self.binary {
            self.prefix("-", context.line_number(), context.absolute_byte_offset())?;
            self.line(context.bytes(), self.options.invert)?;
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        if !self.binary {
            self.colored(SEPARATOR, "--")?;
            self.out.write_all(b"\n")?;
        }
        Ok(true)
    }
}
