//! From a word's source to its pieces.

use super::Stop;
use super::parameter::{self, Parameter};
use super::quote;
use super::scan::{self, MAX_DEPTH};

#[derive(Clone, Debug)]
pub enum Piece {
    Text(String),
    /// Behind a backslash or between single quotes.
    Quoted(String),
    /// Between double quotes.
    Double(Vec<Piece>),
    Parameter(Box<Parameter>),
    Command(String),
    Arithmetic(Vec<Piece>),
}

/// The meaning of quotes and backslashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Outside of quotes.
    Word,
    /// Between double quotes.
    Double,
    /// In the operand of a `${…}` between double quotes: single quotes stand for themselves, and `\}` is a brace.
    Operand,
    /// In a here-document: a double quote stands for itself.
    Document,
    /// In an arithmetic expression: a double quote is ignored.
    Arithmetic,
}

pub fn word(source: &str) -> Result<Vec<Piece>, Stop> {
    Lexer::new(source, MAX_DEPTH).all(Mode::Word)
}

pub fn document(source: &str) -> Result<Vec<Piece>, Stop> {
    Lexer::new(source, MAX_DEPTH).all(Mode::Document)
}

pub fn arithmetic(source: &str) -> Result<Vec<Piece>, Stop> {
    Lexer::new(source, MAX_DEPTH).all(Mode::Arithmetic)
}

pub struct Lexer<'a> {
    pub source: &'a str,
    pub at: usize,
    /// How many levels may still be opened.
    pub depth: usize,
}

impl<'a> Lexer<'a> {
    pub fn new(source: &'a str, depth: usize) -> Self {
        Self { source, at: 0, depth }
    }

    fn all(mut self, mode: Mode) -> Result<Vec<Piece>, Stop> {
        self.until(mode, b"")
    }

    pub fn peek(&self) -> Option<u8> {
        self.ahead(0)
    }

    pub fn ahead(&self, count: usize) -> Option<u8> {
        self.source.as_bytes().get(self.at + count).copied()
    }

    pub fn eat(&mut self, text: &str) -> bool {
        let found = self.source.as_bytes()[self.at..].starts_with(text.as_bytes());
        self.at += if found { text.len() } else { 0 };
        found
    }

    /// Pieces up to one of the bytes in `close`, which is not consumed, or to the end.
    pub fn until(&mut self, mode: Mode, close: &[u8]) -> Result<Vec<Piece>, Stop> {
        self.depth = self.depth.checked_sub(1).ok_or_else(|| Stop::failed("expansions are nested too deeply"))?;
        let mut pieces = Pieces::default();
        while let Some(byte) = self.peek() {
            if close.contains(&byte) {
                break;
            }
            match byte {
                b'\\' => self.backslash(mode, &mut pieces),
                b'\'' if mode == Mode::Word => {
                    let end = self.closed(scan::single(self.source.as_bytes(), self.at + 1), "'")?;
                    pieces.quoted(&self.source[self.at + 1..end]);
                    self.at = end + 1;
                }
                b'\'' if mode == Mode::Operand && scan::apostrophes(self.source.as_bytes(), self.at + 1).is_some() => {
                    pieces.text("'");
                    self.at += 1;
                    self.until(mode, b"'")?.into_iter().for_each(|piece| pieces.push(piece));
                    pieces.text(if self.eat("'") { "'" } else { "" });
                }
                b'"' if matches!(mode, Mode::Word | Mode::Operand) => self.double(1, &mut pieces)?,
                b'"' if mode == Mode::Arithmetic => self.at += 1,
                b'`' => {
                    let end = self.closed(scan::backquote(self.source.as_bytes(), self.at + 1), "`")?;
                    let inner = &self.source[self.at + 1..end];
                    let command = quote::unescape_backquoted(inner, matches!(mode, Mode::Double | Mode::Operand));
                    pieces.push(Piece::Command(command));
                    self.at = end + 1;
                }
                b'$' => self.dollar(mode, &mut pieces)?,
                _ => {
                    let rest = &self.source[self.at..];
                    let special = |c: char| {
                        matches!(c, '\\' | '\'' | '"' | '`' | '$') || c.is_ascii() && close.contains(&(c as u8))
                    };
                    let first = rest.chars().next().map_or(1, char::len_utf8);
                    let end = rest[first..].find(special).map_or(rest.len(), |found| first + found);
                    pieces.text(&rest[..end]);
                    self.at += end;
                }
            }
        }
        self.depth += 1;
        Ok(pieces.finish())
    }

    fn closed(&self, end: Option<usize>, delimiter: &str) -> Result<usize, Stop> {
        end.filter(|&end| end < self.source.len())
            .ok_or_else(|| Stop::failed(format!("no closing {delimiter} found, or nested too deeply")))
    }

    fn backslash(&mut self, mode: Mode, pieces: &mut Pieces) {
        let rest = &self.source[self.at + 1..];
        let Some(next) = rest.chars().next() else {
            self.at += 1;
            return pieces.quoted("\\");
        };
        let quotes = match mode {
            Mode::Word => true,
            Mode::Double => matches!(next, '$' | '`' | '"' | '\\' | '\n'),
            Mode::Operand => matches!(next, '$' | '`' | '"' | '\\' | '\n' | '}'),
            Mode::Document | Mode::Arithmetic => matches!(next, '$' | '`' | '\\' | '\n'),
        };
        if !quotes {
            self.at += 1;
            return pieces.quoted("\\");
        }
        self.at += 1 + next.len_utf8();
        if next != '\n' {
            pieces.quoted(&rest[..next.len_utf8()]);
        }
    }

    /// `opening` is the length of `"` or `$"`.
    fn double(&mut self, opening: usize, pieces: &mut Pieces) -> Result<(), Stop> {
        self.at += opening;
        let inner = self.until(Mode::Double, b"\"")?;
        if !self.eat("\"") {
            return Err(Stop::failed("no closing \" found"));
        }
        pieces.push(Piece::Double(inner));
        Ok(())
    }

    fn dollar(&mut self, mode: Mode, pieces: &mut Pieces) -> Result<(), Stop> {
        let bytes = self.source.as_bytes();
        match self.ahead(1) {
            Some(b'(') if self.ahead(2) == Some(b'(') => {
                let start = self.at + 3;
                if let Some(end) = scan::arithmetic(bytes, start, self.depth) {
                    let inner = Lexer::new(&self.source[start..end], self.depth).all(Mode::Arithmetic)?;
                    pieces.push(Piece::Arithmetic(inner));
                    self.at = end + 2;
                    return Ok(());
                }
                self.command(pieces)
            }
            Some(b'(') => self.command(pieces),
            Some(b'[') => {
                let start = self.at + 2;
                let end = self.closed(scan::bracketed(bytes, start, self.depth), "]")?;
                pieces.push(Piece::Arithmetic(Lexer::new(&self.source[start..end], self.depth).all(Mode::Arithmetic)?));
                self.at = end + 1;
                Ok(())
            }
            Some(b'{') => {
                pieces.push(Piece::Parameter(Box::new(parameter::braced(self, mode)?)));
                Ok(())
            }
            Some(b'\'') if matches!(mode, Mode::Word | Mode::Operand) => {
                let end = self.closed(scan::ansi(bytes, self.at + 2), "'")?;
                pieces.quoted(&quote::ansi(&self.source[self.at + 2..end]));
                self.at = end + 1;
                Ok(())
            }
            Some(b'"') if mode == Mode::Word => self.double(2, pieces),
            _ => {
                self.at += 1;
                match parameter::unbraced(self) {
                    Some(parameter) => pieces.push(Piece::Parameter(Box::new(parameter))),
                    None => pieces.text("$"),
                }
                Ok(())
            }
        }
    }

    fn command(&mut self, pieces: &mut Pieces) -> Result<(), Stop> {
        let start = self.at + 2;
        let end = self.closed(scan::command(self.source.as_bytes(), start, self.depth), ")")?;
        pieces.push(Piece::Command(self.source[start..end].to_owned()));
        self.at = end + 1;
        Ok(())
    }
}

/// Joins neighbours of one kind.
#[derive(Default)]
struct Pieces(Vec<Piece>);

impl Pieces {
    fn text(&mut self, text: &str) {
        match self.0.last_mut() {
            Some(Piece::Text(last)) => last.push_str(text),
            _ => self.0.push(Piece::Text(text.to_owned())),
        }
    }

    fn quoted(&mut self, text: &str) {
        match self.0.last_mut() {
            Some(Piece::Quoted(last)) => last.push_str(text),
            _ => self.0.push(Piece::Quoted(text.to_owned())),
        }
    }

    fn push(&mut self, piece: Piece) {
        self.0.push(piece);
    }

    fn finish(self) -> Vec<Piece> {
        self.0
    }
}
