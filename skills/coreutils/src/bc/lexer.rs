//! Words and signs of a program, read line by line: what follows may be input of the program itself.

use std::collections::VecDeque;
use std::io::{self, BufRead};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    Number(String),
    /// A name or a keyword.
    Name(String),
    Text(String),
    Sign(&'static str),
    Newline,
    End,
}

/// The longest first.
const SIGNS: &[&str] = &[
    "++", "--", "+=", "-=", "*=", "/=", "%=", "^=", "==", "<=", ">=", "!=", "&&", "||", "+", "-", "*", "/", "%", "^",
    "=", "<", ">", "!", "(", ")", "[", "]", "{", "}", ";", ",", "&",
];

/// A file of a program.
pub struct File {
    pub name: String,
    pub reader: Box<dyn BufRead>,
}

/// All files, one behind the other.
pub struct Lexer {
    files: VecDeque<File>,
    text: Vec<u8>,
    at: usize,
    line: usize,
}

/// Why there is no token.
#[derive(Debug)]
pub enum Unread {
    /// A character that means nothing here, or a comment or text without an end.
    Illegal(String),
    Broken(io::Error),
}

impl Lexer {
    pub fn new(files: Vec<File>) -> Self {
        Self { files: files.into(), text: Vec::new(), at: 0, line: 0 }
    }

    /// Where the last token was: `file 3`.
    pub fn place(&self) -> String {
        let name = self.files.front().map_or("(standard_in)", |file| file.name.as_str());
        format!("{name} {}", self.line)
    }

    /// The rest of the current line is not read.
    pub fn skip_line(&mut self) {
        self.at = self.text.len();
    }

    /// The next line, for the function `read`.
    pub fn read_line(&mut self) -> io::Result<String> {
        self.fill()?;
        self.at = self.text.len();
        Ok(String::from_utf8_lossy(&self.text).into_owned())
    }

    /// Goes to the next line. `false` at the end of everything.
    fn fill(&mut self) -> io::Result<bool> {
        self.at = 0;
        self.text.clear();
        while let Some(file) = self.files.front_mut() {
            if file.reader.read_until(b'\n', &mut self.text)? > 0 {
                self.line += 1;
                return Ok(true);
            }
            self.files.pop_front();
            self.line = 0;
        }
        Ok(false)
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or_default()
    }

    /// The next byte; lines are joined, for texts and comments.
    fn next_byte(&mut self) -> Result<Option<u8>, Unread> {
        if self.at >= self.text.len() && !self.fill().map_err(Unread::Broken)? {
            return Ok(None);
        }
        self.at += 1;
        Ok(Some(self.text[self.at - 1]))
    }

    pub fn token(&mut self) -> Result<Token, Unread> {
        loop {
            if self.at >= self.text.len() && !self.fill().map_err(Unread::Broken)? {
                return Ok(Token::End);
            }
            match (self.peek(0), self.peek(1)) {
                (b' ' | b'\t' | b'\r', _) => self.at += 1,
                (b'\\', b'\n') => self.at += 2,
                (b'\n', _) => {
                    self.at += 1;
                    return Ok(Token::Newline);
                }
                (b'#', _) => {
                    let rest = self.text[self.at..].iter().position(|byte| *byte == b'\n');
                    self.at = rest.map_or(self.text.len(), |rest| self.at + rest);
                }
                (b'/', b'*') => self.comment()?,
                (b'"', _) => return self.string(),
                (b'0'..=b'9' | b'A'..=b'Z', _) | (b'.', b'0'..=b'9' | b'A'..=b'Z') => return Ok(self.number()),
                (b'.', _) => {
                    self.at += 1;
                    return Ok(Token::Name("last".to_owned()));
                }
                (b'a'..=b'z', _) => {
                    let word = self.text[self.at..].iter();
                    let word: String = word
                        .take_while(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
                        .map(|byte| *byte as char)
                        .collect();
                    self.at += word.len();
                    return Ok(Token::Name(word));
                }
                (other, _) => {
                    let rest = &self.text[self.at..];
                    if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(sign.as_bytes())) {
                        self.at += sign.len();
                        return Ok(Token::Sign(sign));
                    }
                    self.at += 1;
                    return Err(Unread::Illegal(format!("illegal character: {}", (other as char).escape_default())));
                }
            }
        }
    }

    fn comment(&mut self) -> Result<(), Unread> {
        self.at += 2;
        let mut star = false;
        while let Some(byte) = self.next_byte()? {
            if star && byte == b'/' {
                return Ok(());
            }
            star = byte == b'*';
        }
        Err(Unread::Illegal("a comment has no end".to_owned()))
    }

    fn string(&mut self) -> Result<Token, Unread> {
        self.at += 1;
        let mut bytes = Vec::new();
        while let Some(byte) = self.next_byte()? {
            if byte == b'"' {
                return Ok(Token::Text(String::from_utf8_lossy(&bytes).into_owned()));
            }
            bytes.push(byte);
        }
        Err(Unread::Illegal("a string has no end".to_owned()))
    }

    /// Digits, also over lines that end with a backslash.
    fn number(&mut self) -> Token {
        let mut digits = String::new();
        loop {
            match (self.peek(0), self.peek(1)) {
                (byte @ (b'0'..=b'9' | b'A'..=b'Z'), _) => digits.push(byte as char),
                (b'.', _) if !digits.contains('.') => digits.push('.'),
                (b'\\', b'\n') => {
                    // The rest of the number stands on the next line.
                    if !matches!(self.fill(), Ok(true)) {
                        break;
                    }
                    continue;
                }
                _ => break,
            }
            self.at += 1;
        }
        Token::Number(digits)
    }
}
