//! Records out of a stream, and fields out of a record.

use std::io::{self, Read};

use crate::number;
use crate::regex::Regex;
use crate::value::{Text, Value, characters};

const CHUNK: usize = 64 << 10;

/// The end of a record: RS.
#[derive(Clone)]
pub enum Terminator {
    Byte(u8),
    /// Empty lines.
    Paragraph,
    Regex(Regex),
    /// Lines, but for those in the quotes of a CSV field.
    Csv,
}

pub struct Reader {
    source: Box<dyn Read>,
    buffer: Vec<u8>,
    at: usize,
    ended: bool,
}

impl Reader {
    pub fn new(source: Box<dyn Read>) -> Reader {
        Reader { source, buffer: Vec::new(), at: 0, ended: false }
    }

    /// Whether the next record needs more than was read already.
    pub fn is_drained(&self) -> bool {
        self.at >= self.buffer.len()
    }

    /// Reads more, behind what is there. `false` at the end.
    fn fill(&mut self) -> io::Result<bool> {
        if self.ended {
            return Ok(false);
        }
        // The byte before stays, so that `^` in RS is known not to be here.
        if self.at > 1 {
            self.buffer.drain(..self.at - 1);
            self.at = 1;
        }
        let length = self.buffer.len();
        // Longer records are read in longer pieces, so that looking at them again stays cheap.
        self.buffer.resize(length + CHUNK.max(length), 0);
        let read = loop {
            match self.source.read(&mut self.buffer[length..]) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        self.buffer.truncate(length + *read.as_ref().unwrap_or(&0));
        self.ended = !matches!(read, Ok(1..));
        read.map(|read| read > 0)
    }

    /// Reads the next record, and what ended it. `false` at the end.
    pub fn next(&mut self, terminator: &Terminator, record: &mut Vec<u8>, ended_by: &mut Vec<u8>) -> io::Result<bool> {
        record.clear();
        if let Terminator::Paragraph = terminator {
            self.skip_newlines()?;
        }
        let mut searched = 0;
        loop {
            let rest = &self.buffer[self.at..];
            if let Some((end, next)) = self.end(terminator, rest, searched) {
                record.extend_from_slice(&rest[..end]);
                if !matches!((terminator, ended_by.as_slice()), (Terminator::Byte(byte), [before]) if byte == before) {
                    ended_by.clear();
                    ended_by.extend_from_slice(&rest[end..next]);
                }
                self.at += next;
                return Ok(true);
            }
            // A newline at the end may go on with another one.
            searched = if matches!(terminator, Terminator::Byte(_)) { rest.len() } else { 0 };
            if !self.fill()? {
                break;
            }
        }
        ended_by.clear();
        let rest = &self.buffer[self.at..];
        if rest.is_empty() {
            return Ok(false);
        }
        let mut end = rest.len();
        if matches!(terminator, Terminator::Paragraph | Terminator::Csv) && rest.ends_with(b"\n") {
            end -= 1;
        }
        // At the end of the input, an expression that matched up to it ends the record as well.
        if let Terminator::Regex(regex) = terminator
            && let Some((start, stop)) = regex.find(&self.buffer, self.at)
            && stop > start
        {
            record.extend_from_slice(&self.buffer[self.at..start]);
            ended_by.extend_from_slice(&self.buffer[start..stop]);
            self.at = stop;
            return Ok(true);
        }
        record.extend_from_slice(&rest[..end]);
        ended_by.extend_from_slice(&rest[end..]);
        self.at = self.buffer.len();
        Ok(true)
    }

    /// Where the record ends and the next one begins, if both are certain.
    fn end(&self, terminator: &Terminator, rest: &[u8], searched: usize) -> Option<(usize, usize)> {
        match terminator {
            Terminator::Byte(byte) => {
                memchr::memchr(*byte, &rest[searched..]).map(|at| (searched + at, searched + at + 1))
            }
            Terminator::Paragraph => {
                let end = memchr::memmem::find(rest, b"\n\n")?;
                let newlines = rest[end..].iter().take_while(|c| **c == b'\n').count();
                (end + newlines < rest.len() || self.ended).then_some((end, end + newlines))
            }
            Terminator::Regex(regex) => {
                let (start, end) = regex.find(&self.buffer, self.at).filter(|(start, end)| end > start)?;
                (end < self.buffer.len()).then_some((start - self.at, end - self.at))
            }
            Terminator::Csv => {
                let mut quoted = false;
                let end = rest.iter().position(|c| {
                    quoted ^= *c == b'"';
                    *c == b'\n' && !quoted
                })?;
                let carriage = usize::from(end > 0 && rest[end - 1] == b'\r');
                Some((end - carriage, end + 1))
            }
        }
    }

    fn skip_newlines(&mut self) -> io::Result<()> {
        loop {
            while self.buffer.get(self.at) == Some(&b'\n') {
                self.at += 1;
            }
            if !self.is_drained() || !self.fill()? {
                return Ok(());
            }
        }
    }
}

/// The separator of fields: FS, or the variable that replaces it.
#[derive(Clone)]
pub enum Separator {
    /// A single space: runs of blanks, also around.
    Blanks,
    Byte(u8),
    Regex(Regex),
    /// Every character is a field.
    Nothing,
    /// FPAT: what a field looks like.
    Fields(Regex),
    /// FIELDWIDTHS.
    Widths(Vec<usize>),
    Csv,
}

/// Calls `found` with the ends of each field. With `paragraph`, newlines separate too.
pub fn split(text: &[u8], separator: &Separator, paragraph: bool, mut found: impl FnMut(usize, usize)) {
    match separator {
        Separator::Blanks => {
            let mut at = 0;
            let blank = |c: &u8| matches!(c, b' ' | b'\t' | b'\n');
            loop {
                at += text[at..].iter().take_while(|c| blank(c)).count();
                if at >= text.len() {
                    return;
                }
                let end = text[at..].iter().position(&blank).map_or(text.len(), |length| at + length);
                found(at, end);
                at = end;
            }
        }
        _ if text.is_empty() => {}
        Separator::Byte(byte) => {
            let mut at = 0;
            if paragraph {
                for end in memchr::memchr2_iter(*byte, b'\n', text) {
                    found(at, end);
                    at = end + 1;
                }
            } else {
                for end in memchr::memchr_iter(*byte, text) {
                    found(at, end);
                    at = end + 1;
                }
            }
            found(at, text.len());
        }
        Separator::Regex(regex) => {
            let (mut start, mut at) = (0, 0);
            while let Some((begin, mut end)) = regex.find(text, at).or(paragraph.then_some((text.len(), text.len()))) {
                let mut begin = begin;
                if paragraph
                    && let Some(newline) = memchr::memchr(b'\n', &text[at..]).map(|newline| at + newline)
                    && newline < begin
                {
                    (begin, end) = (newline, newline + 1);
                }
                if begin >= text.len() {
                    break;
                }
                if end == begin {
                    // A match of nothing separates nothing.
                    at = begin + 1;
                    continue;
                }
                found(start, begin);
                (start, at) = (end, end);
            }
            found(start, text.len());
        }
        Separator::Nothing => {
            let mut at = 0;
            for character in characters(text) {
                found(at, at + character.len());
                at += character.len();
            }
        }
        Separator::Fields(regex) => {
            let mut at = 0;
            let mut behind = None;
            while let Some((start, end)) = regex.find(text, at).filter(|(start, _)| *start <= text.len()) {
                if end > start || behind != Some(start) {
                    found(start, end);
                }
                behind = Some(end);
                at = if end > start { end } else { end + 1 };
                if at > text.len() {
                    break;
                }
            }
        }
        Separator::Widths(widths) => {
            let mut at = 0;
            for width in widths {
                if at >= text.len() {
                    break;
                }
                let end = at + crate::value::offset(&text[at..], *width);
                found(at, end);
                at = end;
            }
        }
        Separator::Csv => csv(text, found),
    }
}

fn csv(text: &[u8], mut found: impl FnMut(usize, usize)) {
    let (mut start, mut quoted) = (0, false);
    for (at, c) in text.iter().enumerate() {
        quoted ^= *c == b'"';
        if *c == b',' && !quoted {
            found(start, at);
            start = at + 1;
        }
    }
    found(start, text.len());
}

/// A field of CSV without its quotes.
pub fn unquoted(field: &[u8]) -> Vec<u8> {
    match field.strip_prefix(b"\"").and_then(|inner| inner.strip_suffix(b"\"")) {
        Some(inner) => {
            let mut out = Vec::with_capacity(inner.len());
            let mut bytes = inner.iter().peekable();
            while let Some(&byte) = bytes.next() {
                if byte == b'"' && bytes.peek() == Some(&&b'"') {
                    bytes.next();
                }
                out.push(byte);
            }
            out
        }
        None => field.to_vec(),
    }
}

/// `$0` and its fields, which are looked for when one is asked for.
#[derive(Default)]
pub struct Record {
    text: Vec<u8>,
    /// `text` is older than the fields.
    stale: bool,
    fields: Fields,
    /// Of the last split, for the next one.
    room: Vec<(usize, usize)>,
}

#[derive(Default)]
enum Fields {
    #[default]
    Unsplit,
    /// Where they are in the text.
    Ranges(Vec<(usize, usize)>),
    /// After a change.
    Values(Vec<Value>),
}

/// More fields than this are a mistake of the program.
pub const MOST_FIELDS: usize = 1 << 22;

impl Record {
    pub fn set(&mut self, text: &[u8]) {
        self.text.clear();
        self.text.extend_from_slice(text);
        self.reset();
    }

    /// Takes the text, and gives that of the record before for the room that it has.
    pub fn replace(&mut self, text: &mut Vec<u8>) {
        std::mem::swap(&mut self.text, text);
        self.reset();
    }

    fn reset(&mut self) {
        self.stale = false;
        if let Fields::Ranges(ranges) = std::mem::take(&mut self.fields) {
            self.room = ranges;
        }
    }

    pub fn is_split(&self) -> bool {
        !matches!(self.fields, Fields::Unsplit)
    }

    pub fn split(&mut self, separator: &Separator, paragraph: bool) {
        if let Separator::Csv = separator {
            let mut values = Vec::new();
            split(&self.text, separator, paragraph, |start, end| {
                values.push(Value::Input(unquoted(&self.text[start..end]).into()));
            });
            self.fields = Fields::Values(values);
            return;
        }
        let mut ranges = std::mem::take(&mut self.room);
        ranges.clear();
        split(&self.text, separator, paragraph, |start, end| ranges.push((start, end)));
        self.fields = Fields::Ranges(ranges);
    }

    pub fn count(&self) -> usize {
        match &self.fields {
            Fields::Unsplit => 0,
            Fields::Ranges(ranges) => ranges.len(),
            Fields::Values(values) => values.len(),
        }
    }

    /// `$0`, put together from its fields if they have changed.
    pub fn text(&mut self, separator: &[u8], conversion: &[u8]) -> &[u8] {
        if self.stale
            && let Fields::Values(values) = &self.fields
        {
            self.text.clear();
            for (at, value) in values.iter().enumerate() {
                if at > 0 {
                    self.text.extend_from_slice(separator);
                }
                value.write(conversion, &mut self.text);
            }
            self.stale = false;
        }
        &self.text
    }

    /// The bytes of a field, counted from 1, if it is still as it was read.
    pub fn slice(&self, field: usize) -> Option<&[u8]> {
        match &self.fields {
            Fields::Ranges(ranges) => {
                ranges.get(field - 1).map_or(Some(&[][..]), |(start, end)| Some(&self.text[*start..*end]))
            }
            _ => None,
        }
    }

    pub fn value(&self, field: usize) -> Value {
        match &self.fields {
            Fields::Unsplit => Value::Uninit,
            Fields::Ranges(ranges) => match ranges.get(field - 1) {
                Some((start, end)) => Value::Input(Text::from(&self.text[*start..*end])),
                None => Value::Input(Text::default()),
            },
            Fields::Values(values) => values.get(field - 1).cloned().unwrap_or(Value::Input(Text::default())),
        }
    }

    pub fn number(&self, field: usize) -> f64 {
        match self.slice(field) {
            Some(text) => number::from_text(text),
            None => self.value(field).number(),
        }
    }

    fn values(&mut self) -> &mut Vec<Value> {
        if !matches!(self.fields, Fields::Values(_)) {
            let values = (1..=self.count()).map(|field| self.value(field)).collect();
            self.fields = Fields::Values(values);
        }
        match &mut self.fields {
            Fields::Values(values) => values,
            _ => unreachable!("they were just made values"),
        }
    }

    pub fn assign(&mut self, field: usize, value: Value) {
        let values = self.values();
        if values.len() < field {
            values.resize(field, Value::Input(Text::default()));
        }
        values[field - 1] = value;
        self.stale = true;
    }

    /// Assigns NF.
    pub fn resize(&mut self, count: usize) {
        self.values().resize(count, Value::Input(Text::default()));
        self.stale = true;
    }
}
