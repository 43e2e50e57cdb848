//! Keys: which part of a line is compared, and how.

use std::ops::Range;

use crate::cli::Error;

/// How a key is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Kind {
    #[default]
    Text,
    Number,
    Float,
    Human,
    Month,
    Version,
    Random,
}

/// A position in a line, counted from 0.
#[derive(Clone, Copy, Debug, Default)]
struct Position {
    field: usize,
    character: usize,
    skip_blanks: bool,
}

/// One `-k`, or the options of the whole line.
#[derive(Clone, Debug, Default)]
pub struct Key {
    from: Position,
    /// Nothing: the end of the line. With character 0 the whole field belongs to the key.
    to: Option<Position>,
    pub kind: Kind,
    /// More than one kind was asked for.
    pub mixed: bool,
    pub reverse: bool,
    pub fold: bool,
    pub dictionary: bool,
    pub printable: bool,
    /// It has options of its own, so those of the whole line do not hold for it.
    own: bool,
}

impl Key {
    /// Takes one of the letters that both `sort` and `-k` know. `false`: it is none.
    pub fn option(&mut self, letter: char) -> bool {
        let kind = match letter {
            'n' => Kind::Number,
            'g' => Kind::Float,
            'h' => Kind::Human,
            'M' => Kind::Month,
            'V' => Kind::Version,
            'R' => Kind::Random,
            'b' => {
                self.from.skip_blanks = true;
                return true;
            }
            'd' => {
                self.dictionary = true;
                return true;
            }
            'f' => {
                self.fold = true;
                return true;
            }
            'i' => {
                self.printable = true;
                return true;
            }
            'r' => {
                self.reverse = true;
                return true;
            }
            _ => return false,
        };
        self.mixed |= self.kind != Kind::Text && self.kind != kind;
        self.kind = kind;
        true
    }

    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut key = Self::default();
        let (from, to) = text.split_once(',').map_or((text, None), |(from, to)| (from, Some(to)));
        let (field, character, letters) = place(from, text)?;
        key.from = Position { field: field - 1, character: character.unwrap_or(1), skip_blanks: false };
        key.from.character =
            key.from.character.checked_sub(1).ok_or_else(|| wrong("character offset is zero", text))?;
        key.letters(letters, text)?;
        if let Some(to) = to {
            let skips = std::mem::take(&mut key.from.skip_blanks);
            let (field, character, letters) = place(to, text)?;
            key.letters(letters, text)?;
            let character = character.unwrap_or(0);
            let field = field - 1;
            key.to = Some(Position { field, character, skip_blanks: key.from.skip_blanks });
            key.from.skip_blanks = skips;
        }
        Ok(key)
    }

    fn letters(&mut self, letters: &str, text: &str) -> Result<(), Error> {
        self.own |= !letters.is_empty();
        match letters.chars().find(|letter| !self.option(*letter)) {
            Some(_) => Err(wrong("stray character in field spec", text)),
            None => Ok(()),
        }
    }

    /// The key as it is compared, given the options of the whole line.
    pub fn with(mut self, global: &Self) -> Self {
        if !self.own {
            let skip_blanks = global.from.skip_blanks;
            self.from.skip_blanks = skip_blanks;
            self.to = self.to.map(|to| Position { skip_blanks, ..to });
            self.kind = global.kind;
            (self.reverse, self.fold) = (global.reverse, global.fold);
            (self.dictionary, self.printable) = (global.dictionary, global.printable);
        }
        self
    }

    /// Whether the key is all of every line.
    pub fn is_whole(&self) -> bool {
        self.to.is_none() && self.from.field == 0 && self.from.character == 0 && !self.from.skip_blanks
    }

    /// Where the key stands in the line.
    pub fn find(&self, line: &[u8], separator: Option<u8>) -> Range<usize> {
        let start = begin(line, self.from, self.from.character, separator);
        let end = match self.to {
            None => line.len(),
            Some(to) if to.character == 0 => end_of_field(line, to.field, separator),
            Some(to) => begin(line, to, to.character, separator),
        };
        start..end.max(start)
    }
}

/// A field from 1, a character and the letters behind them.
fn place<'a>(text: &'a str, whole: &str) -> Result<(usize, Option<usize>, &'a str), Error> {
    let (field, rest) = number(text).ok_or_else(|| wrong("invalid number at field start", whole))?;
    if field == 0 {
        return Err(wrong("field number is zero", whole));
    }
    match rest.strip_prefix('.') {
        None => Ok((field, None, rest)),
        Some(rest) => {
            let (character, rest) = number(rest).ok_or_else(|| wrong("invalid number after '.'", whole))?;
            Ok((field, Some(character), rest))
        }
    }
}

fn number(text: &str) -> Option<(usize, &str)> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    // One that is too large is behind the end of every line.
    (digits > 0).then(|| (text[..digits].parse().unwrap_or(usize::MAX), &text[digits..]))
}

fn wrong(what: &str, text: &str) -> Error {
    format!("{what}: invalid field specification '{text}'").into()
}

pub fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n')
}

fn skip(line: &[u8], from: usize, fits: impl Fn(u8) -> bool) -> usize {
    from + line[from..].iter().position(|byte| !fits(*byte)).unwrap_or(line.len() - from)
}

/// Where a field begins. Without a separator, blanks before a field belong to it.
fn field(line: &[u8], count: usize, separator: Option<u8>) -> usize {
    let mut at = 0;
    for _ in 0..count {
        if at >= line.len() {
            break;
        }
        at = match separator {
            Some(separator) => memchr::memchr(separator, &line[at..]).map_or(line.len(), |next| at + next + 1),
            None => skip(line, skip(line, at, is_blank), |byte| !is_blank(byte)),
        };
    }
    at
}

fn begin(line: &[u8], place: Position, character: usize, separator: Option<u8>) -> usize {
    let mut at = field(line, place.field, separator);
    if place.skip_blanks {
        at = skip(line, at, is_blank);
    }
    at.saturating_add(character).min(line.len())
}

fn end_of_field(line: &[u8], count: usize, separator: Option<u8>) -> usize {
    let at = field(line, count, separator);
    match separator {
        Some(separator) => memchr::memchr(separator, &line[at..]).map_or(line.len(), |next| at + next),
        None => skip(line, skip(line, at, is_blank), |byte| !is_blank(byte)),
    }
}
