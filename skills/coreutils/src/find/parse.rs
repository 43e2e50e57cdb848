//! The expression of `find`.

use std::cell::RefCell;
use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use regex::Regex;

use super::printf::{self, Part};
use crate::cli::{self, Error};
use crate::posix;

/// A number with `+` (more), `-` (less) or nothing (exactly).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Amount {
    pub order: std::cmp::Ordering,
    pub number: u64,
}

impl Amount {
    pub fn takes(&self, number: u64) -> bool {
        number.cmp(&self.number) == self.order
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Permissions {
    Exactly(u32),
    All(u32),
    Any(u32),
}

pub enum Expression {
    And(Box<Expression>, Box<Expression>),
    Or(Box<Expression>, Box<Expression>),
    /// `,`
    Then(Box<Expression>, Box<Expression>),
    Not(Box<Expression>),
    Constant(bool),
    Name {
        glob: String,
        ignore_case: bool,
    },
    Path {
        glob: String,
        ignore_case: bool,
    },
    LinkName {
        glob: String,
        ignore_case: bool,
    },
    Regex(Regex),
    Type(String),
    /// Of the file that a link leads to; of the link itself where links are followed anyway.
    OtherType(String),
    Size {
        amount: Amount,
        unit: u64,
    },
    Empty,
    /// Age in whole units of this many seconds.
    Age {
        amount: Amount,
        unit: u64,
    },
    Newer(SystemTime),
    Permissions(Permissions),
    /// `-executable`
    Executable,
    SameFile(PathBuf),
    Print,
    Print0,
    Printf(Vec<Part>),
    PrintTo(RefCell<File>),
    List,
    Delete,
    Prune,
    Quit,
    Exec {
        argv: Vec<String>,
        in_directory: bool,
    },
    /// `-exec … {} +` with what was collected so far.
    ExecMany {
        argv: Vec<String>,
        paths: RefCell<Vec<String>>,
    },
}

pub struct Command {
    pub paths: Vec<String>,
    pub expression: Expression,
    pub follow: bool,
    pub contents_first: bool,
    pub min_depth: usize,
    pub max_depth: usize,
    /// The moment that ages are counted from.
    pub now: SystemTime,
}

struct Parser {
    words: std::iter::Peekable<std::vec::IntoIter<String>>,
    command: Command,
    acts: bool,
    syntax: posix::Syntax,
}

pub fn parse(arguments: Vec<String>, now: SystemTime) -> Result<Command, Error> {
    let command = Command {
        paths: Vec::new(),
        expression: Expression::Constant(true),
        follow: false,
        contents_first: false,
        min_depth: 0,
        max_depth: usize::MAX,
        now,
    };
    let words = arguments.into_iter().peekable();
    let mut parser = Parser { words, command, acts: false, syntax: posix::Syntax::Basic };
    while let Some(option) = parser.words.next_if(|word| matches!(word.as_str(), "-L" | "-H" | "-P")) {
        parser.command.follow = option != "-P";
    }
    while let Some(path) = parser.words.next_if(|word| !word.starts_with('-') && !matches!(word.as_str(), "(" | "!")) {
        parser.command.paths.push(path);
    }
    if parser.command.paths.is_empty() {
        parser.command.paths.push(".".into());
    }
    let mut expression = match parser.words.peek() {
        Some(_) => parser.list()?,
        None => Expression::Constant(true),
    };
    if let Some(word) = parser.words.next() {
        return Err(match word.as_str() {
            ")" => "invalid expression; you have too many ')'".into(),
            word => format!("paths must precede expression: `{word}'").into(),
        });
    }
    if !parser.acts {
        expression = Expression::And(Box::new(expression), Box::new(Expression::Print));
    }
    parser.command.expression = expression;
    Ok(parser.command)
}

impl Parser {
    fn list(&mut self) -> Result<Expression, Error> {
        let mut left = self.or()?;
        while self.words.next_if(|word| word == ",").is_some() {
            left = Expression::Then(Box::new(left), Box::new(self.or()?));
        }
        Ok(left)
    }

    fn or(&mut self) -> Result<Expression, Error> {
        let mut left = self.and()?;
        while self.words.next_if(|word| matches!(word.as_str(), "-o" | "-or")).is_some() {
            left = Expression::Or(Box::new(left), Box::new(self.and()?));
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Expression, Error> {
        let mut left = self.not()?;
        loop {
            let explicit = self.words.next_if(|word| matches!(word.as_str(), "-a" | "-and")).is_some();
            let more = self.words.peek().is_some_and(|word| !matches!(word.as_str(), ")" | "," | "-o" | "-or"));
            if !explicit && !more {
                return Ok(left);
            }
            left = Expression::And(Box::new(left), Box::new(self.not()?));
        }
    }

    fn not(&mut self) -> Result<Expression, Error> {
        if self.words.next_if(|word| matches!(word.as_str(), "!" | "-not")).is_some() {
            return Ok(Expression::Not(Box::new(self.not()?)));
        }
        if self.words.next_if(|word| word == "(").is_some() {
            let inner = self.list()?;
            return match self.words.next() {
                Some(word) if word == ")" => Ok(inner),
                _ => Err("invalid expression; I was expecting to find a ')' somewhere but did not see one".into()),
            };
        }
        self.primary()
    }

    fn value(&mut self, of: &str) -> Result<String, Error> {
        self.words.next().ok_or_else(|| format!("missing argument to `{of}'").into())
    }

    fn primary(&mut self) -> Result<Expression, Error> {
        let word = self.words.next().ok_or("an expression is missing after an operator")?;
        self.acts |= matches!(
            word.as_str(),
            "-print" | "-print0" | "-printf" | "-fprint" | "-ls" | "-delete" | "-exec" | "-execdir" | "-ok" | "-quit"
        );
        let ignore_case = word.starts_with("-i");
        Ok(match word.as_str() {
            "-name" | "-iname" => Expression::Name { glob: self.value(&word)?, ignore_case },
            "-path" | "-ipath" | "-wholename" | "-iwholename" => {
                Expression::Path { glob: self.value(&word)?, ignore_case }
            }
            "-lname" | "-ilname" => Expression::LinkName { glob: self.value(&word)?, ignore_case },
            "-regex" | "-iregex" => {
                let (pattern, _) = posix::translate(&self.value(&word)?, self.syntax)?;
                let flags = if ignore_case { "(?si)" } else { "(?s)" };
                Expression::Regex(Regex::new(&format!("{flags}^(?:{pattern})$"))?)
            }
            "-regextype" => {
                self.syntax = match self.value(&word)?.as_str() {
                    "emacs" | "sed" | "grep" | "posix-basic" | "ed" | "findutils-default" => posix::Syntax::Basic,
                    _ => posix::Syntax::Extended,
                };
                Expression::Constant(true)
            }
            "-type" | "-xtype" => {
                let kinds = self.value(&word)?;
                if kinds.is_empty() || !kinds.chars().all(|kind| "fdlbcps,".contains(kind)) {
                    return Err(format!("Unknown argument to -type: {kinds}").into());
                }
                if word == "-xtype" { Expression::OtherType(kinds) } else { Expression::Type(kinds) }
            }
            "-size" => size(&self.value(&word)?)?,
            "-empty" => Expression::Empty,
            "-mtime" | "-atime" | "-ctime" => Expression::Age { amount: amount(&self.value(&word)?)?, unit: 86400 },
            "-mmin" | "-amin" | "-cmin" => Expression::Age { amount: amount(&self.value(&word)?)?, unit: 60 },
            "-newer" | "-anewer" | "-cnewer" | "-newermm" => {
                let path = self.value(&word)?;
                let modified =
                    std::fs::metadata(&path).and_then(|meta| meta.modified()).map_err(cli::with_path(&path))?;
                Expression::Newer(modified)
            }
            "-newermt" => Expression::Newer(date(&self.value(&word)?, self.command.now)?),
            "-perm" => Expression::Permissions(permissions(&self.value(&word)?)?),
            "-executable" => Expression::Executable,
            "-readable" | "-writable" | "-true" | "-noleaf" | "-mount" | "-xdev" | "-nowarn" => {
                Expression::Constant(true)
            }
            "-daystart" => {
                let day = Duration::from_secs(86400);
                let seconds = self.command.now.duration_since(SystemTime::UNIX_EPOCH)?.as_secs();
                self.command.now = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds - seconds % 86400) + day;
                Expression::Constant(true)
            }
            "-false" => Expression::Constant(false),
            "-samefile" => {
                let path = self.value(&word)?;
                Expression::SameFile(std::fs::canonicalize(&path).map_err(cli::with_path(&path))?)
            }
            "-maxdepth" => {
                self.command.max_depth = self.depth(&word)?;
                Expression::Constant(true)
            }
            "-mindepth" => {
                self.command.min_depth = self.depth(&word)?;
                Expression::Constant(true)
            }
            "-depth" | "-d" => {
                self.command.contents_first = true;
                Expression::Constant(true)
            }
            "-follow" => {
                self.command.follow = true;
                Expression::Constant(true)
            }
            "-print" => Expression::Print,
            "-print0" => Expression::Print0,
            "-printf" => Expression::Printf(printf::parse(&self.value(&word)?)?),
            "-fprint" => {
                let path = self.value(&word)?;
                Expression::PrintTo(RefCell::new(File::create(&path).map_err(cli::with_path(&path))?))
            }
            "-ls" => Expression::List,
            "-delete" => {
                self.command.contents_first = true;
                Expression::Delete
            }
            "-prune" => Expression::Prune,
            "-quit" => Expression::Quit,
            "-exec" | "-execdir" => self.exec(&word)?,
            word => return Err(format!("unknown predicate `{word}'").into()),
        })
    }

    fn depth(&mut self, of: &str) -> Result<usize, Error> {
        let text = self.value(of)?;
        text.parse()
            .map_err(|_| format!("Expected a positive decimal integer argument to {of}, but got '{text}'").into())
    }

    fn exec(&mut self, word: &str) -> Result<Expression, Error> {
        let mut argv = Vec::new();
        loop {
            let argument = self.value(word)?;
            match argument.as_str() {
                ";" => break,
                "+" if argv.last().is_some_and(|last| last == "{}") => {
                    argv.pop();
                    if argv.is_empty() {
                        return Err(format!("missing command in `{word}'").into());
                    }
                    return Ok(Expression::ExecMany { argv, paths: RefCell::default() });
                }
                _ => argv.push(argument),
            }
        }
        if argv.is_empty() {
            return Err(format!("missing command in `{word}'").into());
        }
        Ok(Expression::Exec { argv, in_directory: word == "-execdir" })
    }
}

fn amount(text: &str) -> Result<Amount, Error> {
    let (order, digits) = match text.split_at_checked(1) {
        Some(("+", rest)) => (std::cmp::Ordering::Greater, rest),
        Some(("-", rest)) => (std::cmp::Ordering::Less, rest),
        _ => (std::cmp::Ordering::Equal, text),
    };
    let number = digits.parse().map_err(|_| format!("invalid number '{text}'"))?;
    Ok(Amount { order, number })
}

fn size(text: &str) -> Result<Expression, Error> {
    let (digits, unit) = match text.chars().last() {
        Some('c') => (&text[..text.len() - 1], 1),
        Some('w') => (&text[..text.len() - 1], 2),
        Some('b') => (&text[..text.len() - 1], 512),
        Some('k') => (&text[..text.len() - 1], 1 << 10),
        Some('M') => (&text[..text.len() - 1], 1 << 20),
        Some('G') => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 512),
    };
    Ok(Expression::Size { amount: amount(digits)?, unit })
}

fn permissions(text: &str) -> Result<Permissions, Error> {
    let (kind, mode): (fn(u32) -> Permissions, _) = match text.split_at_checked(1) {
        Some(("-", mode)) => (Permissions::All, mode),
        Some(("/", mode)) => (Permissions::Any, mode),
        _ => (Permissions::Exactly, text),
    };
    let bits = match u32::from_str_radix(mode, 8) {
        Ok(bits) => bits,
        Err(_) => symbolic(mode).ok_or_else(|| format!("invalid mode '{text}'"))?,
    };
    Ok(kind(bits))
}

/// `u=rwx,g+x` and the like, on nothing.
fn symbolic(mode: &str) -> Option<u32> {
    let mut bits = 0;
    for clause in mode.split(',') {
        let at = clause.find(['+', '=', '-'])?;
        let (who, what) = (&clause[..at], &clause[at + 1..]);
        let mut one = 0;
        for c in what.chars() {
            one |= match c {
                'r' => 4,
                'w' => 2,
                'x' => 1,
                _ => return None,
            };
        }
        for c in if who.is_empty() || who.contains('a') { "ugo" } else { who }.chars() {
            bits |= match c {
                'u' => one << 6,
                'g' => one << 3,
                'o' => one,
                _ => return None,
            };
        }
    }
    Some(bits)
}

/// `2024-01-31`, with or without a time, `@seconds`, or a number of days, hours or minutes "ago". All in UTC, said or not.
pub fn date(text: &str, now: SystemTime) -> Result<SystemTime, Error> {
    let wrong = || format!("I cannot figure out how to interpret '{text}' as a date or time");
    let text = text.strip_prefix("UTC ").or(text.strip_suffix(" UTC")).or(text.strip_suffix('Z')).unwrap_or(text);
    if let Some(seconds) = text.strip_prefix('@') {
        return after_1970(seconds.parse().map_err(|_| wrong())?).ok_or_else(|| wrong().into());
    }
    if let Some((number, unit)) = text.strip_suffix(" ago").and_then(|text| text.split_once(' ')) {
        let seconds = match unit.trim_end_matches('s') {
            "second" | "sec" => 1,
            "minute" | "min" => 60,
            "hour" => 3600,
            "day" => 86400,
            "week" => 7 * 86400,
            _ => return Err(wrong().into()),
        };
        let number: u64 = number.trim_start_matches('-').parse().map_err(|_| wrong())?;
        let before = number.checked_mul(seconds).and_then(|seconds| now.checked_sub(Duration::from_secs(seconds)));
        return before.ok_or_else(|| wrong().into());
    }
    let numbers: Vec<i64> =
        text.split(['-', ' ', 'T', ':']).map(|part| part.parse().map_err(|_| wrong())).collect::<Result<_, _>>()?;
    let at = |index: usize, default| numbers.get(index).copied().unwrap_or(default);
    if numbers.len() < 3 {
        return Err(wrong().into());
    }
    // A number far beyond any calendar must not overflow in the calculation.
    if numbers.iter().any(|number| !(0..=9_999).contains(number)) {
        return Err(wrong().into());
    }
    let days = printf::days_from_civil(at(0, 1970), at(1, 1), at(2, 1));
    let seconds = days * 86400 + at(3, 0) * 3600 + at(4, 0) * 60 + at(5, 0);
    u64::try_from(seconds).ok().and_then(after_1970).ok_or_else(|| wrong().into())
}

fn after_1970(seconds: u64) -> Option<SystemTime> {
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refuse(words: &[&str]) -> String {
        let words = words.iter().map(|word| word.to_string()).collect();
        parse(words, SystemTime::UNIX_EPOCH).err().expect("this is no expression").to_string()
    }

    #[test]
    fn dates_are_read_and_what_is_beyond_them_is_an_error() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000);
        let at = |text: &str| {
            date(text, now).ok().map(|time| time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs())
        };
        assert_eq!([at("@7"), at("10 seconds ago")], [Some(7), Some(990)]);
        for text in
            ["1970-01-02 00:01:02", "1970-01-02 00:01:02Z", "1970-01-02 00:01:02 UTC", "UTC 1970-01-02 00:01:02"]
        {
            assert_eq!(at(text), Some(86_462), "{text}");
        }
        for text in
            ["@18446744073709551615", "99999-01-01", "18446744073709551615 weeks ago", "1969-12-31", "never", ""]
        {
            assert!(date(text, now).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_no_expression_is_named() {
        assert!(refuse(&[".", "-nam", "x"]).contains("`-nam'"));
        assert!(refuse(&[".", "(", "-name", "x"]).contains("')'"));
        assert!(refuse(&[".", "-name"]).contains("`-name'"));
        assert!(refuse(&[".", "-exec", "ls"]).contains("`-exec'"));
        assert!(refuse(&[".", "-type", "q"]).contains("-type"));
    }

    #[test]
    fn amounts_and_modes() {
        assert!(amount("+3").unwrap().takes(4) && !amount("+3").unwrap().takes(3));
        assert!(amount("-3").unwrap().takes(2) && amount("3").unwrap().takes(3));
        assert_eq!(permissions("-u=rw,g+x").unwrap(), Permissions::All(0o610));
        assert_eq!(permissions("/222").unwrap(), Permissions::Any(0o222));
        assert_eq!(permissions("644").unwrap(), Permissions::Exactly(0o644));
    }

    #[test]
    fn dates() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let seconds = |text| date(text, now).unwrap().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        assert_eq!(seconds("2024-02-29"), 1_709_164_800);
        assert_eq!(seconds("1970-01-02 01:00"), 90_000);
        assert_eq!(seconds("@5"), 5);
        assert_eq!(seconds("2 days ago"), 1_000_000 - 172_800);
        assert!(date("soon", now).is_err());
    }
}
