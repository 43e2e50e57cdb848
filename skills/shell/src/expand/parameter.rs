//! `$x` and `${…}`: from source to what it asks for.

use super::Stop;
use super::lex::{Lexer, Mode, Piece};
use super::scan;

#[derive(Clone, Debug)]
pub struct Parameter {
    pub target: Target,
    /// `${!name…}`: the value is the name of the target.
    pub indirect: bool,
    pub operation: Operation,
    /// As it was written, for messages.
    pub source: String,
}

#[derive(Clone, Debug)]

pub enum Target {
    Name(String),
    Element {
        name: String,
        index: String,
    },
    /// `name[@]`, or with `star` `name[*]`.
    Elements {
        name: String,
        star: bool,
    },
    Position(usize),
    /// `$@`, or with `star` `$*`.
    Positions {
        star: bool,
    },
    Special(char),
}

#[derive(Clone, Debug)]
pub enum Operation {
    Value,
    Length,
    /// `${!name[@]}`
    Keys {
        star: bool,
    },
    /// `${!prefix*}`
    Names {
        star: bool,
    },
    /// `-`, `=`, `?` or `+`; with `empty` (a colon) an empty value counts as unset.
    Unless {
        what: Unless,
        empty: bool,
        word: Vec<Piece>,
    },
    /// `#` or `%`; with `longest` doubled.
    Strip {
        suffix: bool,
        longest: bool,
        pattern: Vec<Piece>,
    },
    Slice {
        offset: Vec<Piece>,
        length: Option<Vec<Piece>>,
    },
    Replace {
        r#where: Where,
        pattern: Vec<Piece>,
        with: Vec<Piece>,
    },
    /// `^` or `,`; with `all` doubled.
    Case {
        upper: bool,
        all: bool,
        pattern: Vec<Piece>,
    },
    /// `@Q`
    Transform(char),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unless {
    Default,
    Assign,
    Fail,
    /// The other way round: if it is set.
    Instead,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    First,
    All,
    Start,
    End,
}

/// Behind a `$` without brace: the parameter if one follows, which is consumed.
pub fn unbraced(lexer: &mut Lexer) -> Option<Parameter> {
    let start = lexer.at;
    let target = match lexer.peek()? {
        // Only one digit: `$10` is `${1}0`.
        digit @ b'1'..=b'9' => {
            lexer.at += 1;
            Target::Position(usize::from(digit - b'0'))
        }
        _ => special(lexer).or_else(|| name(lexer).map(Target::Name))?,
    };
    let source = lexer.source[start..lexer.at].to_owned();
    Some(Parameter { target, indirect: false, operation: Operation::Value, source })
}

/// At `${`.
pub fn braced(lexer: &mut Lexer, mode: Mode) -> Result<Parameter, Stop> {
    let start = lexer.at;
    lexer.at += 2;
    let parsed = inside(lexer, mode)?;
    let closed = lexer.eat("}");
    match parsed {
        Some((target, indirect, operation)) if closed => {
            let source = lexer.source[start + 2..lexer.at - 1].to_owned();
            Ok(Parameter { target, indirect, operation, source })
        }
        _ => {
            let end = scan::braced(lexer.source.as_bytes(), start + 2, mode != Mode::Word, lexer.depth);
            let end = end.map_or(lexer.source.len(), |end| (end + 1).min(lexer.source.len()));
            Err(Stop::failed(format!("{}: bad substitution", lexer.source.get(start..end).unwrap_or_default())))
        }
    }
}

type Inside = Option<(Target, bool, Operation)>;

fn inside(lexer: &mut Lexer, mode: Mode) -> Result<Inside, Stop> {
    let start = lexer.at;
    if lexer.eat("#") {
        if let Some(target) = target(lexer)
            && lexer.peek() == Some(b'}')
        {
            return Ok(Some((target, false, Operation::Length)));
        }
        lexer.at = start;
    }
    let indirect = lexer.peek() == Some(b'!') && starts_target(lexer.ahead(1)) && {
        lexer.at += 1;
        true
    };
    if indirect && let Some(listed) = listing(lexer) {
        return Ok(Some(listed));
    }
    let Some(target) = target(lexer) else { return Ok(None) };
    Ok(operation(lexer, mode)?.map(|operation| (target, indirect, operation)))
}

/// Whether `!` in front of it means indirection. (`${!-x}` asks for `$!`.)
fn starts_target(byte: Option<u8>) -> bool {
    byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'#' | b'@' | b'*'))
}

/// Behind `${!`: `name[@]}` or `prefix*}`.
fn listing(lexer: &mut Lexer) -> Inside {
    let start = lexer.at;
    if let Some(name) = name(lexer) {
        for (text, star) in [("[@]", false), ("[*]", true)] {
            if lexer.eat(text) && lexer.peek() == Some(b'}') {
                return Some((Target::Name(name), false, Operation::Keys { star }));
            }
        }
        for (text, star) in [("@", false), ("*", true)] {
            if lexer.eat(text) && lexer.peek() == Some(b'}') {
                return Some((Target::Name(name), false, Operation::Names { star }));
            }
        }
    }
    lexer.at = start;
    None
}

fn target(lexer: &mut Lexer) -> Option<Target> {
    if let Some(b'1'..=b'9') = lexer.peek() {
        let digits = run(lexer, |byte| byte.is_ascii_digit());
        // Nobody has so many arguments, so what does not fit is unset.
        return Some(Target::Position(digits.parse().unwrap_or(usize::MAX)));
    }
    if let Some(special) = special(lexer) {
        return Some(special);
    }
    let name = name(lexer)?;
    for (text, star) in [("[@]", false), ("[*]", true)] {
        if lexer.eat(text) {
            return Some(Target::Elements { name, star });
        }
    }
    if !lexer.eat("[") {
        return Some(Target::Name(name));
    }
    let end = scan::bracketed(lexer.source.as_bytes(), lexer.at, lexer.depth)?;
    let index = lexer.source.get(lexer.at..end).filter(|index| !index.is_empty())?.to_owned();
    lexer.at = end + 1;
    Some(Target::Element { name, index })
}

fn special(lexer: &mut Lexer) -> Option<Target> {
    let target = match lexer.peek()? {
        b'@' => Target::Positions { star: false },
        b'*' => Target::Positions { star: true },
        byte @ (b'#' | b'?' | b'-' | b'$' | b'!' | b'0') => Target::Special(char::from(byte)),
        _ => return None,
    };
    lexer.at += 1;
    Some(target)
}

fn name(lexer: &mut Lexer) -> Option<String> {
    let first = lexer.peek()?;
    (first.is_ascii_alphabetic() || first == b'_')
        .then(|| run(lexer, |byte| byte.is_ascii_alphanumeric() || byte == b'_').to_owned())
}

fn run<'a>(lexer: &mut Lexer<'a>, part: impl Fn(u8) -> bool) -> &'a str {
    let rest = &lexer.source[lexer.at..];
    let length = rest.bytes().take_while(|&byte| part(byte)).count();
    lexer.at += length;
    &rest[..length]
}

/// Behind the parameter's name; nothing if no operator is known that starts so.
fn operation(lexer: &mut Lexer, mode: Mode) -> Result<Option<Operation>, Stop> {
    let operand = if mode == Mode::Word { Mode::Word } else { Mode::Operand };
    let Some(byte) = lexer.peek() else { return Ok(None) };
    if byte == b'}' {
        return Ok(Some(Operation::Value));
    }
    let empty = byte == b':';
    let unless = match if empty { lexer.ahead(1) } else { Some(byte) } {
        Some(b'-') => Some(Unless::Default),
        Some(b'=') => Some(Unless::Assign),
        Some(b'?') => Some(Unless::Fail),
        Some(b'+') => Some(Unless::Instead),
        _ => None,
    };
    if let Some(what) = unless {
        lexer.at += 1 + usize::from(empty);
        return Ok(Some(Operation::Unless { what, empty, word: lexer.until(operand, b"}")? }));
    }
    lexer.at += 1;
    let doubled = |lexer: &mut Lexer| {
        lexer.peek() == Some(byte) && {
            lexer.at += 1;
            true
        }
    };
    // Quotes around a pattern and its replacement quote even between double quotes.
    Ok(Some(match byte {
        b'#' | b'%' => {
            let longest = doubled(lexer);
            Operation::Strip { suffix: byte == b'%', longest, pattern: lexer.until(Mode::Word, b"}")? }
        }
        b'^' | b',' => {
            let all = doubled(lexer);
            Operation::Case { upper: byte == b'^', all, pattern: lexer.until(Mode::Word, b"}")? }
        }
        b':' => {
            let offset = lexer.until(Mode::Arithmetic, b":}")?;
            let length = if lexer.eat(":") { Some(lexer.until(Mode::Arithmetic, b"}")?) } else { None };
            if offset.is_empty() && length.is_none() {
                return Ok(None);
            }
            Operation::Slice { offset, length }
        }
        b'/' => {
            let r#where = match lexer.peek() {
                Some(b'/') => Where::All,
                Some(b'#') => Where::Start,
                Some(b'%') => Where::End,
                _ => Where::First,
            };
            lexer.at += usize::from(r#where != Where::First);
            // `${x////-}` replaces slashes.
            let slash = r#where == Where::All && lexer.eat("/");
            let mut pattern = lexer.until(Mode::Word, b"/}")?;
            if matches!(r#where, Where::Start | Where::End)
                && let Some(Piece::Text(text)) = pattern.first_mut()
                && text.starts_with('~')
            {
                // The tilde is not the first character behind the operator.
                text.remove(0);
                pattern.insert(0, Piece::Quoted("~".to_owned()));
            }
            if slash {
                pattern.insert(0, Piece::Quoted("/".to_owned()));
            }
            let with = if lexer.eat("/") { lexer.until(Mode::Word, b"}")? } else { Vec::new() };
            Operation::Replace { r#where, pattern, with }
        }
        b'@' => match lexer.peek() {
            Some(letter @ (b'Q' | b'E' | b'P' | b'A' | b'a' | b'U' | b'u' | b'L' | b'K' | b'k')) => {
                lexer.at += 1;
                Operation::Transform(char::from(letter))
            }
            _ => return Ok(None),
        },
        _ => return Ok(None),
    }))
}
