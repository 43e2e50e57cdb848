//! The scripts of `sed`.

use std::iter::Peekable;
use std::rc::Rc;
use std::str::Chars;

use super::pattern::Pattern;

/// Nothing for an empty expression, which means the last one that was used.
pub type Expression = Option<Rc<Pattern>>;

pub enum Address {
    Line(usize),
    Last,
    /// `first~step`
    Step(usize, usize),
    Match(Expression),
}

pub enum End {
    Line(usize),
    Last,
    Match(Expression),
    /// `+N`
    Count(usize),
    /// `~N`
    Multiple(usize),
}

#[derive(Default)]
pub struct Range {
    pub start: Option<Address>,
    pub end: Option<End>,
    pub negated: bool,
}

/// A part of the text that `s` puts in the place of a match.
#[derive(Debug, PartialEq)]
pub enum Part {
    Text(Vec<u8>),
    Group(usize),
    /// `\U`, `\L`, `\u`, `\l`, `\E`
    Case(char),
}

pub struct Substitution {
    pub pattern: Expression,
    pub parts: Vec<Part>,
    pub all: bool,
    /// From which match on.
    pub first: usize,
    pub print: bool,
    pub file: Option<String>,
}

pub enum Action {
    /// `{`, with the place after its `}`.
    Block(usize),
    Substitute(Substitution),
    Translate(Vec<(char, char)>),
    Append(String),
    Insert(String),
    Change(String),
    /// `b`, `t`, `T` with the place to go to.
    Branch(char, usize),
    Read(String),
    Write(String),
    Quit {
        code: i32,
        print: bool,
    },
    /// A command that is only a letter.
    Plain(char),
}

pub struct Command {
    pub range: Range,
    pub action: Action,
}

struct Parser<'a> {
    chars: Peekable<Chars<'a>>,
    extended: bool,
    commands: Vec<Command>,
    labels: Vec<(String, usize)>,
    branches: Vec<(usize, String)>,
    blocks: Vec<usize>,
}

pub fn parse(text: &str, extended: bool) -> Result<Vec<Command>, String> {
    let chars = text.chars().peekable();
    let mut parser =
        Parser { chars, extended, commands: Vec::new(), labels: Vec::new(), branches: Vec::new(), blocks: Vec::new() };
    while parser.command()? {}
    if !parser.blocks.is_empty() {
        return Err("unmatched `{'".into());
    }
    let end = parser.commands.len();
    for (at, label) in &parser.branches {
        let target = match parser.labels.iter().find(|(name, _)| name == label) {
            Some((_, target)) => *target,
            None if label.is_empty() => end,
            None => return Err(format!("can't find label for jump to `{label}'")),
        };
        if let Action::Branch(_, to) = &mut parser.commands[*at].action {
            *to = target;
        }
    }
    Ok(parser.commands)
}

impl Parser<'_> {
    fn blanks(&mut self) {
        while self.chars.next_if(|c| *c == ' ' || *c == '\t').is_some() {}
    }

    fn number(&mut self) -> Option<usize> {
        let mut digits = String::new();
        while let Some(digit) = self.chars.next_if(char::is_ascii_digit) {
            digits.push(digit);
        }
        digits.parse().ok()
    }

    /// Returns whether there was one.
    fn command(&mut self) -> Result<bool, String> {
        while self.chars.next_if(|c| c.is_whitespace() || *c == ';').is_some() {}
        if self.chars.peek().is_none() {
            return Ok(false);
        }
        let range = self.range()?;
        let letter = self.chars.next().ok_or("missing command")?;
        let at = self.commands.len();
        let action = match letter {
            '#' => {
                while self.chars.next().is_some_and(|c| c != '\n') {}
                return Ok(true);
            }
            ':' => {
                let label = self.word(false);
                if label.is_empty() {
                    return Err("\":\" lacks a label".into());
                }
                self.labels.push((label, at));
                return Ok(true);
            }
            '{' => {
                self.blocks.push(at);
                self.commands.push(Command { range, action: Action::Block(0) });
                return Ok(true);
            }
            '}' => {
                let open = self.blocks.pop().ok_or("unexpected `}'")?;
                self.commands[open].action = Action::Block(at);
                self.end_of_command()?;
                return Ok(true);
            }
            's' => self.substitution()?,
            'y' => self.translation()?,
            'a' => Action::Append(self.text()?),
            'i' => Action::Insert(self.text()?),
            'c' => Action::Change(self.text()?),
            'b' | 't' | 'T' => {
                let label = self.word(true);
                self.branches.push((at, label));
                Action::Branch(letter, 0)
            }
            'r' => Action::Read(self.rest()?),
            'w' => Action::Write(self.rest()?),
            'q' | 'Q' => {
                self.blanks();
                let code = self.number().unwrap_or(0);
                Action::Quit { code: i32::try_from(code).unwrap_or(1), print: letter == 'q' }
            }
            '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'l' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z' | 'F' => {
                Action::Plain(letter)
            }
            other => return Err(format!("unknown command: `{other}'")),
        };
        if !matches!(
            action,
            Action::Append(_) | Action::Insert(_) | Action::Change(_) | Action::Read(_) | Action::Write(_)
        ) {
            self.end_of_command()?;
        }
        self.commands.push(Command { range, action });
        Ok(true)
    }

    fn end_of_command(&mut self) -> Result<(), String> {
        self.blanks();
        match self.chars.peek() {
            None | Some(';' | '\n' | '}' | '#') => Ok(()),
            Some(_) => Err("extra characters after command".into()),
        }
    }

    fn range(&mut self) -> Result<Range, String> {
        let mut range = Range { start: self.address()?, ..Range::default() };
        self.blanks();
        if range.start.is_some() && self.chars.next_if_eq(&',').is_some() {
            self.blanks();
            range.end = Some(match self.chars.peek() {
                Some('+') => {
                    self.chars.next();
                    End::Count(self.number().ok_or("expected a number after `+'")?)
                }
                Some('~') => {
                    self.chars.next();
                    End::Multiple(self.number().ok_or("expected a number after `~'")?)
                }
                _ => match self.address()?.ok_or("unexpected `,'")? {
                    Address::Line(line) => End::Line(line),
                    Address::Last => End::Last,
                    Address::Match(expression) => End::Match(expression),
                    Address::Step(..) => return Err("a step cannot end a range".into()),
                },
            });
        }
        if matches!(range.start, Some(Address::Line(0))) && !matches!(range.end, Some(End::Match(_))) {
            return Err("invalid usage of line address 0".into());
        }
        self.blanks();
        while self.chars.next_if_eq(&'!').is_some() {
            range.negated = true;
            self.blanks();
        }
        Ok(range)
    }

    fn address(&mut self) -> Result<Option<Address>, String> {
        let delimiter = match self.chars.peek() {
            Some('$') => {
                self.chars.next();
                return Ok(Some(Address::Last));
            }
            Some('0'..='9') => {
                let line = self.number().ok_or("the line number is too large")?;
                if self.chars.next_if_eq(&'~').is_some() {
                    return Ok(Some(Address::Step(line, self.number().unwrap_or(0))));
                }
                return Ok(Some(Address::Line(line)));
            }
            Some('/') => '/',
            Some('\\') => {
                self.chars.next();
                *self.chars.peek().ok_or("unterminated address regex")?
            }
            _ => return Ok(None),
        };
        self.chars.next();
        let text = self.until(delimiter, true).ok_or("unterminated address regex")?;
        let (mut ignore_case, mut lines) = (false, false);
        while let Some(flag) = self.chars.next_if(|c| *c == 'I' || *c == 'M') {
            ignore_case |= flag == 'I';
            lines |= flag == 'M';
        }
        Ok(Some(Address::Match(self.expression(&text, ignore_case, lines)?)))
    }

    fn expression(&self, text: &str, ignore_case: bool, lines: bool) -> Result<Expression, String> {
        if text.is_empty() {
            return Ok(None);
        }
        Ok(Some(Rc::new(Pattern::new(text, self.extended, ignore_case, lines)?)))
    }

    /// Reads the text before the delimiter. An escaped delimiter loses its backslash. In an expression, escapes such as
    /// `\n` are replaced, and a delimiter within brackets still ends it.
    fn until(&mut self, delimiter: char, is_expression: bool) -> Option<String> {
        let mut text = String::new();
        loop {
            let c = self.chars.next()?;
            if c == delimiter {
                return Some(text);
            }
            if c == '\n' && is_expression {
                return None;
            }
            if c != '\\' {
                text.push(c);
                continue;
            }
            match self.chars.next()? {
                escaped if escaped == delimiter => {
                    // `s|a\|b|x|` means the character, which a basic expression would take for an alternative.
                    text.push(delimiter);
                }
                'n' if is_expression => text.push('\n'),
                't' if is_expression => text.push('\t'),
                'r' if is_expression => text.push('\r'),
                // As in GNU's, it means what the character itself would mean here.
                'x' if is_expression => match numbered(&mut self.chars, 2, 16) {
                    Some(c) => text.push(c),
                    None => text.extend(['\\', 'x']),
                },
                escaped => text.extend(['\\', escaped]),
            }
        }
    }

    fn substitution(&mut self) -> Result<Action, String> {
        let delimiter = self.chars.next().ok_or("unterminated `s' command")?;
        let text = self.until(delimiter, true).ok_or("unterminated `s' command")?;
        let with = self.until(delimiter, false).ok_or("unterminated `s' command")?;
        let (mut ignore_case, mut lines) = (false, false);
        let mut substitution =
            Substitution { pattern: None, parts: parts(&with), all: false, first: 1, print: false, file: None };
        loop {
            match self.chars.peek() {
                Some('g') => substitution.all = true,
                Some('p') => substitution.print = true,
                Some('i' | 'I') => ignore_case = true,
                Some('m' | 'M') => lines = true,
                Some('1'..='9') => {
                    substitution.first = self.number().ok_or("the number is too large")?;
                    continue;
                }
                Some('0') => return Err("number option to `s' command may not be zero".into()),
                Some('w') => {
                    self.chars.next();
                    substitution.file = Some(self.rest()?);
                    break;
                }
                Some('e') => return Err("the flag `e' is not supported: nothing is executed here".into()),
                Some(' ' | '\t' | ';' | '\n' | '}' | '#') | None => break,
                Some(_) => return Err("unknown option to `s'".into()),
            }
            self.chars.next();
        }
        substitution.pattern = self.expression(&text, ignore_case, lines)?;
        Ok(Action::Substitute(substitution))
    }

    fn translation(&mut self) -> Result<Action, String> {
        let delimiter = self.chars.next().ok_or("unterminated `y' command")?;
        let mut side = || -> Result<Vec<char>, String> {
            let text = self.until(delimiter, true).ok_or("unterminated `y' command")?;
            Ok(text.replace("\\\\", "\\").chars().collect())
        };
        let (from, to) = (side()?, side()?);
        if from.len() != to.len() {
            return Err("strings for `y' command are different lengths".into());
        }
        Ok(Action::Translate(from.into_iter().zip(to).collect()))
    }

    /// A label, which ends at a blank or `;`, and after a branch at `}` too.
    fn word(&mut self, of_branch: bool) -> String {
        self.blanks();
        let mut word = String::new();
        while let Some(c) = self.chars.next_if(|c| !c.is_whitespace() && *c != ';' && !(of_branch && *c == '}')) {
            word.push(c);
        }
        word
    }

    fn rest(&mut self) -> Result<String, String> {
        self.blanks();
        let mut text = String::new();
        while let Some(c) = self.chars.next_if(|c| *c != '\n') {
            text.push(c);
        }
        if text.is_empty() { Err("missing filename in r/R/w/W commands".into()) } else { Ok(text) }
    }

    /// The text of `a`, `i` and `c`: in the same line or after a backslash in the next ones.
    fn text(&mut self) -> Result<String, String> {
        self.blanks();
        if self.chars.next_if_eq(&'\\').is_some() {
            self.blanks();
            // GNU's form in one line keeps leading blanks after the backslash.
            self.chars.next_if_eq(&'\n');
        }
        let mut text = String::new();
        while let Some(c) = self.chars.next() {
            match c {
                '\\' => {
                    if let Some(escaped) = self.chars.next() {
                        text.push(unescaped(escaped, &mut self.chars));
                    }
                }
                '\n' => break,
                c => text.push(c),
            }
        }
        if text.is_empty() && self.chars.peek().is_none() {
            return Err("expected \\ after `a', `c' or `i'".into());
        }
        text.push('\n');
        Ok(text)
    }
}

/// Returns the character that an escape stands for in a text.
fn unescaped(escaped: char, chars: &mut (impl Iterator<Item = char> + Clone)) -> char {
    match escaped {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'f' => '\x0c',
        'v' => '\x0b',
        'a' => '\x07',
        'd' => numbered(chars, 3, 10).unwrap_or('d'),
        'o' => numbered(chars, 3, 8).unwrap_or('o'),
        'x' => numbered(chars, 2, 16).unwrap_or('x'),
        escaped => escaped,
    }
}

/// The character whose number the next digits are.
fn numbered(chars: &mut (impl Iterator<Item = char> + Clone), most: usize, radix: u32) -> Option<char> {
    let digits: String = chars.clone().take(most).take_while(|c| c.is_digit(radix)).collect();
    let code = u8::from_str_radix(&digits, radix).ok().filter(u8::is_ascii)?;
    chars.nth(digits.len() - 1);
    Some(char::from(code))
}

fn parts(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut plain = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let part = match c {
            '&' => Part::Group(0),
            '\\' => match chars.next() {
                Some(digit @ '0'..='9') => Part::Group(digit.to_digit(10).unwrap_or(0) as usize),
                Some(case @ ('U' | 'L' | 'u' | 'l' | 'E')) => Part::Case(case),
                Some(escaped) => {
                    plain.push(unescaped(escaped, &mut chars));
                    continue;
                }
                None => continue,
            },
            c => {
                plain.push(c);
                continue;
            }
        };
        if !plain.is_empty() {
            parts.push(Part::Text(std::mem::take(&mut plain).into_bytes()));
        }
        parts.push(part);
    }
    if !plain.is_empty() {
        parts.push(Part::Text(plain.into_bytes()));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_scripts_are_named() {
        for (script, message) in [
            ("s/a", "unterminated `s'"),
            ("s/a/b/k", "unknown option to `s'"),
            ("{p", "unmatched `{'"),
            ("p}", "unexpected `}'"),
            ("k", "unknown command: `k'"),
            ("b x", "can't find label"),
            ("0p", "line address 0"),
            ("y/ab/c/", "different lengths"),
            ("pp", "extra characters"),
        ] {
            let error = parse(script, false).err().unwrap_or_default();
            assert!(error.contains(message), "{script}: {error}");
        }
    }

    #[test]
    fn replacements_have_parts() {
        let text = |text: &str| Part::Text(text.into());
        assert_eq!(parts(r"a&\1\n\&"), [text("a"), Part::Group(0), Part::Group(1), text("\n&")]);
        assert_eq!(parts(r"\U&\E"), [Part::Case('U'), Part::Group(0), Part::Case('E')]);
    }
}
