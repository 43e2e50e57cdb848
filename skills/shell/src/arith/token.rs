//! Tokens of arithmetic expressions.

use crate::expand::Stop;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Token<'s> {
    Number(i64),
    Name(&'s str),
    Operator(&'static str),
    End,
}

pub struct Tokens<'s> {
    source: &'s str,
    at: usize,
    /// Where the last token began, which messages quote.
    last: usize,
}

/// Longer ones before those that they start with.
const OPERATORS: [&str; 35] = [
    "<<=", ">>=", "**", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "*=", "/=", "%=", "+=", "-=", "&=",
    "^=", "|=", "+", "-", "*", "/", "%", "<", ">", "&", "^", "|", "!", "~", "?", "=",
];
const PUNCTUATION: [&str; 4] = [":", ",", "(", ")"];

impl<'s> Tokens<'s> {
    pub fn new(source: &'s str) -> Self {
        Self { source, at: 0, last: 0 }
    }

    pub fn next(&mut self) -> Result<Token<'s>, Stop> {
        let rest = &self.source[self.at..];
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        let Some(first) = trimmed.bytes().next() else { return Ok(Token::End) };
        self.last = self.at;
        if first.is_ascii_digit() {
            return self.number().map(Token::Number);
        }
        if first.is_ascii_alphabetic() || first == b'_' {
            let name = self.run(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            return Ok(Token::Name(name));
        }
        for operator in OPERATORS.iter().chain(&PUNCTUATION) {
            if trimmed.starts_with(operator) {
                self.at += operator.len();
                return Ok(Token::Operator(operator));
            }
        }
        Err(self.error("syntax error: operand expected"))
    }

    /// Gives back the last byte of an operator.
    pub fn back(&mut self) {
        self.at -= 1;
    }

    pub fn peek(&mut self) -> Result<Token<'s>, Stop> {
        let (at, last) = (self.at, self.last);
        let token = self.next();
        if token.is_ok() {
            (self.at, self.last) = (at, last);
        }
        token
    }

    /// The source of a subscript, if one follows immediately.
    pub fn subscript(&mut self) -> Result<Option<&'s str>, Stop> {
        let Some(rest) = self.source[self.at..].strip_prefix('[') else { return Ok(None) };
        let mut open = 0_usize;
        for (at, byte) in rest.bytes().enumerate() {
            match byte {
                b'[' => open += 1,
                b']' if open > 0 => open -= 1,
                b']' => {
                    self.at += at + 2;
                    return Ok(Some(&rest[..at]));
                }
                _ => {}
            }
        }
        Err(self.error("bad array subscript"))
    }

    /// An error at the last token, as bash words it.
    pub fn error(&self, what: &str) -> Stop {
        // A long expression is not worth more of anybody's screen.
        let start = |text: &'s str| text.char_indices().nth(200).map_or(text, |(end, _)| &text[..end]);
        let (all, rest) = (start(self.source), start(&self.source[self.last..]));
        Stop::failed(format!("{all}: {what} (error token is \"{rest}\")"))
    }

    fn run(&mut self, part: impl Fn(u8) -> bool) -> &'s str {
        let rest = &self.source[self.at..];
        let length = rest.bytes().take_while(|&byte| part(byte)).count();
        self.at += length;
        &rest[..length]
    }

    /// `12`, `017`, `0x1f`, `2#101`. It wraps like everything else.
    fn number(&mut self) -> Result<i64, Stop> {
        let digits = self.run(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'#' | b'@' | b'_'));
        let (base, digits) = match digits.split_once('#') {
            Some((base, digits)) => match base.parse::<u32>() {
                Ok(base @ 2..=64) if !digits.is_empty() => (base, digits),
                _ => return Err(self.error("invalid arithmetic base")),
            },
            None => match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
                Some(hex) => (16, hex),
                None if digits.starts_with('0') => (8, digits),
                None => (10, digits),
            },
        };
        let mut value = 0_i64;
        for c in digits.chars() {
            let digit = digit(c, base).ok_or_else(|| self.error("value too great for base"))?;
            value = value.wrapping_mul(i64::from(base)).wrapping_add(i64::from(digit));
        }
        Ok(value)
    }
}

/// Up to base 36 the case of letters does not matter.
fn digit(c: char, base: u32) -> Option<u32> {
    let value = match c {
        '0'..='9' => c as u32 - '0' as u32,
        'a'..='z' => c as u32 - 'a' as u32 + 10,
        'A'..='Z' if base <= 36 => c as u32 - 'A' as u32 + 10,
        'A'..='Z' => c as u32 - 'A' as u32 + 36,
        '@' => 62,
        '_' => 63,
        _ => return None,
    };
    (value < base).then_some(value)
}
