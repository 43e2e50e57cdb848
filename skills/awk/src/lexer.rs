//! From text to tokens, one at a time: only the parser knows whether a `/` divides or begins a regular expression.

use crate::Error;
use crate::number;

#[derive(Clone, Debug, PartialEq)]
pub enum Token {
    Number(f64),
    Text(Vec<u8>),
    Name(String),
    /// A name with `(` right behind it.
    FunctionName(String),
    Keyword(&'static str),
    Sign(&'static str),
    Newline,
    End,
}

const KEYWORDS: &[&str] = &[
    "BEGIN",
    "BEGINFILE",
    "END",
    "ENDFILE",
    "break",
    "case",
    "continue",
    "default",
    "delete",
    "do",
    "else",
    "exit",
    "for",
    "func",
    "function",
    "getline",
    "if",
    "in",
    "next",
    "nextfile",
    "print",
    "printf",
    "return",
    "switch",
    "while",
];

/// Longer ones first.
const SIGNS: &[&str] = &[
    "**=", "&&", "||", "++", "--", "+=", "-=", "*=", "/=", "%=", "^=", "==", "<=", ">=", "!=", "!~", ">>", "**", "|&",
    "{", "}", "(", ")", "[", "]", ";", ",", "+", "-", "*", "/", "%", "^", "!", ">", "<", "|", "?", ":", "~", "$", "=",
    "@",
];

impl Token {
    /// As a person would name it.
    pub fn shown(&self) -> String {
        match self {
            Token::Number(number) => format!("`{number}`"),
            Token::Text(text) => format!("the string \"{}\"", String::from_utf8_lossy(text)),
            Token::Name(name) | Token::FunctionName(name) => format!("`{name}`"),
            Token::Keyword(word) | Token::Sign(word) => format!("`{word}`"),
            Token::Newline => "the end of the line".into(),
            Token::End => "the end of the program".into(),
        }
    }
}

#[derive(Clone)]
pub struct Lexer<'s> {
    source: &'s [u8],
    at: usize,
    pub line: usize,
}

impl<'s> Lexer<'s> {
    pub fn new(source: &'s [u8]) -> Self {
        Lexer { source, at: 0, line: 1 }
    }

    /// Goes on behind a byte that begins no token. `false` at the end.
    pub fn skip(&mut self) -> bool {
        self.at += 1;
        self.at < self.source.len()
    }

    fn peek(&self) -> Option<u8> {
        self.source.get(self.at).copied()
    }

    pub fn next(&mut self) -> Result<Token, Error> {
        self.blanks();
        let Some(c) = self.peek() else { return Ok(Token::End) };
        match c {
            b'\n' => {
                self.at += 1;
                self.line += 1;
                Ok(Token::Newline)
            }
            b'"' => self.string(),
            b'0'..=b'9' => Ok(self.number()),
            b'.' if self.source.get(self.at + 1).is_some_and(u8::is_ascii_digit) => Ok(self.number()),
            c if c.is_ascii_alphabetic() || c == b'_' => Ok(self.word()),
            _ => {
                let rest = &self.source[self.at..];
                let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(sign.as_bytes())) else {
                    let shown = crate::value::characters(rest).next().unwrap_or_default();
                    return Err(
                        self.error(format!("syntax error: unexpected character `{}`", String::from_utf8_lossy(shown)))
                    );
                };
                self.at += sign.len();
                Ok(Token::Sign(match *sign {
                    "**" => "^",
                    "**=" => "^=",
                    sign => sign,
                }))
            }
        }
    }

    fn blanks(&mut self) {
        while let Some(c) = self.peek() {
            match c {
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'\\' if self.source[self.at + 1..].starts_with(b"\n") => {
                    self.at += 2;
                    self.line += 1;
                }
                b'\\' if self.source[self.at + 1..].starts_with(b"\r\n") => {
                    self.at += 3;
                    self.line += 1;
                }
                b'#' => {
                    let rest = &self.source[self.at..];
                    self.at += rest.iter().position(|c| *c == b'\n').unwrap_or(rest.len());
                }
                _ => break,
            }
        }
    }

    fn word(&mut self) -> Token {
        let start = self.at;
        while self.peek().is_some_and(|c| c.is_ascii_alphanumeric() || c == b'_') {
            self.at += 1;
        }
        let word = String::from_utf8_lossy(&self.source[start..self.at]).into_owned();
        if let Ok(at) = KEYWORDS.binary_search(&word.as_str()) {
            return Token::Keyword(if KEYWORDS[at] == "func" { "function" } else { KEYWORDS[at] });
        }
        if self.peek() == Some(b'(') { Token::FunctionName(word) } else { Token::Name(word) }
    }

    fn number(&mut self) -> Token {
        let rest = &self.source[self.at..];
        if let [b'0', b'x' | b'X', digit, ..] = rest
            && digit.is_ascii_hexdigit()
        {
            let digits = rest[2..].iter().take_while(|c| c.is_ascii_hexdigit()).count();
            self.at += 2 + digits;
            let value = |c: &u8| f64::from(char::from(*c).to_digit(16).unwrap_or(0));
            return Token::Number(rest[2..2 + digits].iter().fold(0.0, |sum, c| sum * 16.0 + value(c)));
        }
        let mut end = rest.iter().take_while(|c| c.is_ascii_digit()).count();
        // As in GNU's awk; 08 is 8, and 017.5 is what it looks like.
        let is_octal = end > 1 && rest[0] == b'0' && rest[..end].iter().all(|c| (b'0'..=b'7').contains(c));
        if is_octal && !matches!(rest.get(end), Some(b'.' | b'e' | b'E')) {
            self.at += end;
            return Token::Number(rest[..end].iter().fold(0.0, |sum, c| sum * 8.0 + f64::from(c - b'0')));
        }
        if rest.get(end) == Some(&b'.') {
            end += 1;
            end += rest[end..].iter().take_while(|c| c.is_ascii_digit()).count();
        }
        if matches!(rest.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(rest.get(end + 1), Some(b'+' | b'-')));
            let digits = rest[end + 1 + sign..].iter().take_while(|c| c.is_ascii_digit()).count();
            end += if digits > 0 { 1 + sign + digits } else { 0 };
        }
        self.at += end;
        Token::Number(number::from_text(&rest[..end]))
    }

    fn string(&mut self) -> Result<Token, Error> {
        let start = self.at + 1;
        let mut end = start;
        loop {
            match self.source.get(end) {
                None | Some(b'\n') => return Err(self.error("a string without its closing quote".into())),
                Some(b'"') => break,
                Some(b'\\') => {
                    self.line += usize::from(self.source.get(end + 1) == Some(&b'\n'));
                    end += 2;
                }
                Some(_) => end += 1,
            }
        }
        self.at = end + 1;
        Ok(Token::Text(unescaped(&self.source[start..end])))
    }

    /// The expression behind a `/` or `/=` that was just read.
    pub fn regex(&mut self, began: &Token) -> Result<Vec<u8>, Error> {
        let start = if *began == Token::Sign("/=") { self.at - 1 } else { self.at };
        let mut end = start;
        let mut bracket = None;
        loop {
            match self.source.get(end) {
                None | Some(b'\n') => return Err(self.error("a regular expression without its closing `/`".into())),
                Some(b'\\') => end += 1,
                Some(b'[') if bracket.is_none() => {
                    let negated = usize::from(self.source.get(end + 1) == Some(&b'^'));
                    end += negated;
                    // A ] right behind the [ is a member.
                    end += usize::from(self.source.get(end + 1) == Some(&b']'));
                    bracket = Some(end);
                }
                Some(b'[') if matches!(self.source.get(end + 1), Some(b':')) => {
                    let close = self.source[end..].windows(2).position(|two| two == b":]");
                    end += close.map_or(0, |close| close + 1);
                }
                Some(b']') => bracket = None,
                Some(b'/') if bracket.is_none() => break,
                Some(_) => {}
            }
            end += 1;
        }
        self.at = end + 1;
        let mut source = Vec::new();
        let mut bytes = self.source[start..end].iter().peekable();
        while let Some(&byte) = bytes.next() {
            if byte == b'\\' && bytes.peek() == Some(&&b'/') {
                continue;
            }
            source.push(byte);
            if byte == b'\\' {
                source.extend(bytes.next());
            }
        }
        Ok(source)
    }

    pub fn error(&self, message: String) -> Error {
        Error::at_line(self.line, message)
    }
}

/// A string with its escapes replaced. One that is not known stays as it is, for the regular expression that it may be.
pub fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        if text[at] != b'\\' {
            out.push(text[at]);
            at += 1;
            continue;
        }
        let Some(&next) = text.get(at + 1) else {
            out.push(b'\\');
            break;
        };
        at += 2;
        match next {
            b'n' => out.push(b'\n'),
            b't' => out.push(b'\t'),
            b'r' => out.push(b'\r'),
            b'a' => out.push(0x07),
            b'b' => out.push(0x08),
            b'f' => out.push(0x0c),
            b'v' => out.push(0x0b),
            b'\\' | b'"' | b'/' | b'&' => out.push(next),
            b'\n' => {}
            b'0'..=b'7' => {
                let digits = text[at - 1..].iter().take(3).take_while(|c| (b'0'..=b'7').contains(c)).count();
                out.push(text[at - 1..at - 1 + digits].iter().fold(0_u32, |sum, c| sum * 8 + u32::from(c - b'0')) as u8);
                at += digits - 1;
            }
            b'x' if text.get(at).is_some_and(u8::is_ascii_hexdigit) => {
                let digits = text[at..].iter().take(2).take_while(|c| c.is_ascii_hexdigit()).count();
                let value = |c: &u8| char::from(*c).to_digit(16).unwrap_or(0);
                out.push(text[at..at + digits].iter().fold(0, |sum, c| sum * 16 + value(c)) as u8);
                at += digits;
            }
            _ => out.extend([b'\\', next]),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes() {
        assert_eq!(unescaped(br#"a\tb\"\\n\/\.\101\x41g"#), b"a\tb\"\\n/\\.AAg");
    }

    #[test]
    fn a_slash_in_brackets_does_not_end() {
        let mut lexer = Lexer::new(b"/[/]a\\/[]/]/ x");
        let began = lexer.next().unwrap();
        assert_eq!(lexer.regex(&began).unwrap(), b"[/]a/[]/]");
        assert_eq!(lexer.next().unwrap(), Token::Name("x".into()));
        assert!(KEYWORDS.is_sorted());
    }
}
