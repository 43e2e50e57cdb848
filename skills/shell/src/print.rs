//! Commands as text again, on one line: for messages and `jobs`. What is printed can be run. `layout` writes functions.

mod layout;

use std::fmt::{self, Display, Formatter, Write};

use crate::expand::Value;
use crate::expand::value::ordered;
use crate::program::{
    Access, Argument, Assigned, Assignment, CaseItem, Command, Descriptor, Direction, Item, Kind, Link, List, Pipeline,
    Redirection, Target, Then,
};

pub use layout::function;

/// At most this much of a command is named in a message.
const LONGEST: usize = 200;

/// The text of a command, cut at a character.
pub fn short(command: &impl Display) -> String {
    let mut text = command.to_string();
    if text.len() > LONGEST {
        let cut = (0..=LONGEST - '…'.len_utf8()).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        text.truncate(cut);
        text.push('…');
    }
    text
}

impl Display for List {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        for (at, item) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str(if self.0[at - 1].background { " " } else { "; " })?;
            }
            write!(f, "{item}")?;
        }
        Ok(())
    }
}

/// A list with the separator that the word behind it needs.
struct Closed<'a>(&'a List);

impl Display for Closed<'_> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let background = self.0.0.last().is_some_and(|item| item.background);
        write!(f, "{}{}", self.0, if background { "" } else { ";" })
    }
}

impl Display for Item {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        write!(f, "{}", self.first)?;
        for (link, pipeline) in &self.rest {
            write!(f, " {} {pipeline}", if *link == Link::And { "&&" } else { "||" })?;
        }
        f.write_str(if self.background { " &" } else { "" })
    }
}

impl Display for Pipeline {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        if self.time.is_some() {
            f.write_str("time ")?;
        }
        if self.negated {
            f.write_str("! ")?;
        }
        join(f, &self.stages, " | ")
    }
}

impl Display for Command {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        for (at, redirection) in self.redirections.iter().enumerate() {
            let bare = at == 0
                && matches!(&self.kind, Kind::Simple(simple) if simple.words.is_empty() && simple.assignments.is_empty());
            write!(f, "{}{redirection}", if bare { "" } else { " " })?;
        }
        Ok(())
    }
}

impl Display for Kind {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Kind::Simple(simple) => {
                join(f, &simple.assignments, " ")?;
                if !simple.assignments.is_empty() && !simple.words.is_empty() {
                    f.write_char(' ')?;
                }
                join(f, &simple.words, " ")
            }
            Kind::Group(list) => write!(f, "{{ {} }}", Closed(list)),
            Kind::Subshell(list) => write!(f, "({list})"),
            Kind::If { branches, otherwise } => {
                for (at, (condition, body)) in branches.iter().enumerate() {
                    let word = if at == 0 { "if" } else { " elif" };
                    write!(f, "{word} {} then {}", Closed(condition), Closed(body))?;
                }
                if let Some(body) = otherwise {
                    write!(f, " else {}", Closed(body))?;
                }
                f.write_str(" fi")
            }
            Kind::Loop { until, condition, body } => {
                let word = if *until { "until" } else { "while" };
                write!(f, "{word} {} do {} done", Closed(condition), Closed(body))
            }
            Kind::For { name, words, body } | Kind::Select { name, words, body } => {
                let word = if matches!(self, Kind::Select { .. }) { "select" } else { "for" };
                write!(f, "{word} {name}")?;
                if let Some(words) = words {
                    f.write_str(" in ")?;
                    join(f, words, " ")?;
                }
                write!(f, "; do {} done", Closed(body))
            }
            Kind::ArithmeticFor { start, condition, step, body } => {
                write!(f, "for (({start}; {condition}; {step})); do {} done", Closed(body))
            }
            Kind::Case { word, items } => {
                write!(f, "case {word} in")?;
                for item in items {
                    write!(f, " {item}")?;
                }
                f.write_str(" esac")
            }
            Kind::Arithmetic(expression) => write!(f, "(({expression}))"),
            Kind::Test(test) => write!(f, "[[ {test} ]]"),
            Kind::Function { name, body } => write!(f, "{name} () {body}"),
        }
    }
}

impl Display for CaseItem {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let end = match self.then {
            Then::Leave => ";;",
            Then::RunNext => ";&",
            Then::TryNext => ";;&",
        };
        join(f, &self.patterns, "|")?;
        write!(f, ") {} {end}", self.body)
    }
}

impl Display for Argument {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Argument::Word(word) => write!(f, "{word}"),
            Argument::Assignment(assignment, _) => write!(f, "{assignment}"),
            Argument::Process(Direction::Read, list) => write!(f, "<({list})"),
            Argument::Process(Direction::Write, list) => write!(f, ">({list})"),
        }
    }
}

impl Display for Assignment {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str(&self.name)?;
        if let Some(index) = &self.index {
            write!(f, "[{index}]")?;
        }
        f.write_str(if self.append { "+=" } else { "=" })?;
        match &self.value {
            Assigned::Scalar(word) => write!(f, "{word}"),
            Assigned::Array(elements) => {
                f.write_char('(')?;
                for (at, (key, word)) in elements.iter().enumerate() {
                    f.write_str(if at > 0 { " " } else { "" })?;
                    match key {
                        Some(key) => write!(f, "[{key}]={word}")?,
                        None => write!(f, "{word}")?,
                    }
                }
                f.write_char(')')
            }
        }
    }
}

impl Display for Redirection {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match &self.at {
            Descriptor::Usual => {}
            Descriptor::Number(number) => write!(f, "{number}")?,
            Descriptor::Name(name) => write!(f, "{{{name}}}")?,
        }
        match &self.target {
            Target::File(access, word) => write!(f, "{} {word}", operator(*access)),
            Target::Duplicate { output, word } => write!(f, "{}{word}", if *output { ">&" } else { "<&" }),
            Target::Process(access, Direction::Read, list) => write!(f, "{} <({list})", operator(*access)),
            Target::Process(access, Direction::Write, list) => write!(f, "{} >({list})", operator(*access)),
            Target::Both { append, word } => write!(f, "{} {word}", if *append { "&>>" } else { "&>" }),
            Target::Document { text, expand } => {
                // On one line a document is a here-string, whose newline comes by itself.
                let text = text.strip_suffix('\n').unwrap_or(text);
                let quoted = if *expand { format!("\"{}\"", text.replace('"', "\\\"")) } else { quote(text) };
                write!(f, "<<< {quoted}")
            }
            Target::Text(word) => write!(f, "<<< {word}"),
        }
    }
}

fn operator(access: Access) -> &'static str {
    match access {
        Access::Read => "<",
        Access::Write => ">",
        Access::Clobber => ">|",
        Access::Append => ">>",
        Access::ReadWrite => "<>",
    }
}

fn join<T: Display>(f: &mut Formatter, parts: &[T], between: &str) -> fmt::Result {
    for (at, part) in parts.iter().enumerate() {
        write!(f, "{}{part}", if at > 0 { between } else { "" })?;
    }
    Ok(())
}

/// A word that means this text, quoted only where it has to be: as `set -x` and `set` write it.
pub fn quote(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-./:=@%+,^".contains(c);
    if text.is_empty() {
        return "''".to_owned();
    }
    if text.chars().any(|c| c.is_control()) {
        return dollar_quote(text);
    }
    if text.chars().all(plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// The value of an assignment, as `set -x` writes it.
pub fn quote_value(text: &str) -> String {
    if text.is_empty() { String::new() } else { quote(text) }
}

/// In single quotes even if it need not be.
pub fn always_quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// The same with a backslash before each character: as `printf %q` writes it.
pub fn escape(text: &str) -> String {
    if text.is_empty() {
        return "''".to_owned();
    }
    if text.chars().any(|c| c.is_control()) {
        return dollar_quote(text);
    }
    let mut escaped = String::with_capacity(text.len());
    for (at, c) in text.chars().enumerate() {
        let special = " \t\"'\\|&;()<>$`*?[]!{},^".contains(c) || (at == 0 && "~#".contains(c));
        if special {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// In double quotes: as `declare -p` writes values.
pub fn double_quote(text: &str) -> String {
    if text.chars().any(char::is_control) {
        return dollar_quote(text);
    }
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        if "\"\\$`".contains(c) {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted.push('"');
    quoted
}

/// A value as `declare -p` and `set` write it.
pub fn literal(value: &Value) -> String {
    match value {
        Value::Scalar(text) => double_quote(text),
        Value::Indexed(elements) => {
            let elements: Vec<String> =
                elements.iter().map(|(at, text)| format!("[{at}]={}", double_quote(text))).collect();
            format!("({})", elements.join(" "))
        }
        Value::Keyed(elements) => {
            let key = |key: &str| {
                let plain = key.chars().all(|c| c.is_alphanumeric() || c == '_');
                if plain && !key.is_empty() { key.to_owned() } else { double_quote(key) }
            };
            let elements: String = ordered(elements)
                .into_iter()
                .map(|(name, text)| format!("[{}]={} ", key(name), double_quote(text)))
                .collect();
            format!("({elements})")
        }
    }
}

fn dollar_quote(text: &str) -> String {
    let mut quoted = "$'".to_owned();
    for c in text.chars() {
        match c {
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            '\x07' => quoted.push_str("\\a"),
            '\x08' => quoted.push_str("\\b"),
            '\x0b' => quoted.push_str("\\v"),
            '\x0c' => quoted.push_str("\\f"),
            '\x1b' => quoted.push_str("\\E"),
            '\'' | '\\' => quoted.extend(['\\', c]),
            c if c.is_ascii_control() => quoted.push_str(&format!("\\{:03o}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('\'');
    quoted
}
