//! A source in which parts are marked to become spaces, or another sign.

/// A byte that stays.
const KEPT: u8 = 0;

/// A byte that becomes a space.
const BLANK: u8 = b' ';

pub struct Text<'s> {
    source: &'s str,
    /// For each byte, what becomes of it: [`KEPT`], [`BLANK`], or the sign in its place.
    marks: Vec<u8>,
}

impl<'s> Text<'s> {
    pub fn new(source: &'s str) -> Self {
        Self { source, marks: vec![KEPT; source.len()] }
    }

    /// Marks a part to become spaces. Signs that were put into it stay.
    pub fn blank(&mut self, from: usize, to: usize) {
        for mark in self.marks.iter_mut().take(to).skip(from).filter(|mark| **mark == KEPT) {
            *mark = BLANK;
        }
    }

    /// Puts a sign in the place of the character at a byte.
    pub fn put(&mut self, at: usize, sign: u8) {
        if let Some(mark) = self.marks.get_mut(at) {
            *mark = sign;
        }
    }

    /// Whether the byte becomes a space.
    pub fn is_blank(&self, at: usize) -> bool {
        self.marks.get(at) == Some(&BLANK)
    }

    /// Whether there is a line break in a part.
    pub fn has_break(&self, from: usize, to: usize) -> bool {
        self.source.get(from..to).is_some_and(|part| part.contains(['\n', '\r', '\u{2028}', '\u{2029}']))
    }

    pub fn starts_with(&self, at: usize, words: &str) -> bool {
        self.source.get(at..).is_some_and(|rest| rest.starts_with(words))
    }

    /// The beginning of the last character before a byte.
    pub fn last_before(&self, at: usize) -> usize {
        self.source.floor_char_boundary(at.saturating_sub(1))
    }

    /// The first byte from here on that is in no space and no comment.
    pub fn skip(&self, mut at: usize) -> usize {
        while let Some(rest) = self.source.get(at..).filter(|rest| !rest.is_empty()) {
            let spaces = rest.len() - rest.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}').len();
            let comment = if rest[spaces..].starts_with("//") {
                rest[spaces..].find(['\n', '\r', '\u{2028}', '\u{2029}'])
            } else if rest[spaces..].starts_with("/*") {
                rest[spaces..].find("*/").map(|end| end + 2)
            } else {
                return at + spaces;
            };
            at += spaces + comment.unwrap_or(rest.len() - spaces);
        }
        at
    }

    /// The end of a word that begins here.
    pub fn word_end(&self, at: usize) -> usize {
        let rest = self.source.get(at..).unwrap_or_default();
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
        at + rest.find(|c| !is_part(c)).unwrap_or(rest.len())
    }

    pub fn part(&self, from: usize, to: usize) -> &'s str {
        self.source.get(from..to).unwrap_or_default()
    }

    /// The text with its marks. Line breaks stay, and so does the number of UTF-16 units before each of them.
    pub fn finish(self) -> String {
        let mut made = String::with_capacity(self.source.len());
        for (at, c) in self.source.char_indices() {
            match self.marks[at] {
                KEPT => made.push(c),
                BLANK if matches!(c, '\n' | '\r' | '\u{2028}' | '\u{2029}') => made.push(c),
                sign => {
                    made.push(char::from(sign));
                    made.extend(std::iter::repeat_n(' ', c.len_utf16() - 1));
                }
            }
        }
        made
    }
}
