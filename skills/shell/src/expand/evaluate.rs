//! From pieces to fields.

use super::lex::Piece;
use super::parameter::{Operation, Parameter, Target};
use super::split::{self, Field, Fields, Kind};
use super::value::{self, Value};
use super::{Env, Opt, Pattern, Stop, operation};
use crate::arith;

pub struct Expander<'e> {
    pub env: &'e mut dyn Env,
    fields: Fields,
    /// There is one field only: lists are joined.
    joining: bool,
    /// This is the right side of an assignment: a tilde behind each colon is a directory.
    colons: bool,
    /// A list in double quotes was empty, so that the quotes around it may be nothing at all.
    vanished: bool,
}

/// The value of a parameter, before or after an operator changes it.
#[derive(Clone, Debug)]
pub enum Expansion {
    One(Option<String>),
    /// `$@`, or with `star` `$*`; elements of arrays likewise.
    Many {
        values: Vec<String>,
        star: bool,
    },
}

impl Expansion {
    pub fn is_set(&self) -> bool {
        match self {
            Self::One(value) => value.is_some(),
            Self::Many { values, .. } => !values.is_empty(),
        }
    }

    pub fn is_empty(&self) -> bool {
        match self {
            Self::One(value) => value.as_ref().is_none_or(String::is_empty),
            Self::Many { values, .. } => values.len() < 2 && values.iter().all(String::is_empty),
        }
    }
}

impl<'e> Expander<'e> {
    /// For words that may become several.
    pub fn splitting(env: &'e mut dyn Env) -> Self {
        Self { env, fields: Fields::default(), joining: false, colons: false, vanished: false }
    }

    pub fn joining(env: &'e mut dyn Env) -> Self {
        Self { env, fields: Fields::default(), joining: true, colons: false, vanished: false }
    }

    pub fn finish(self) -> Vec<Field> {
        self.fields.finish()
    }

    /// The field of a `joining` expander, which never ends a field.
    pub fn finish_one(self) -> Field {
        self.fields.finish().pop().unwrap_or_default()
    }

    /// A whole word, with its tilde.
    pub fn word(&mut self, pieces: &[Piece]) -> Result<(), Stop> {
        // In bash, `make PREFIX=~/x` means the directory, although it is not an assignment.
        if !self.joining
            && let Some(Piece::Text(text)) = pieces.first()
            && let Some((name, _)) = text.split_once('=')
            && is_name(name)
        {
            let behind = name.len() + 1;
            self.fields.push(&text[..behind], Kind::Literal);
            return self.tildes(&text[behind..], &pieces[1..], true, Kind::Literal);
        }
        self.unquoted(pieces, Kind::Literal)
    }

    /// The right side of an assignment.
    pub fn assigned(&mut self, pieces: &[Piece]) -> Result<(), Stop> {
        self.colons = true;
        match pieces.split_first() {
            Some((Piece::Text(text), rest)) => self.tildes(text, rest, true, Kind::Literal),
            _ => self.tildes("", pieces, true, Kind::Literal),
        }
    }

    /// Pieces outside of quotes. `kind` is what plain text is: in the operand of a `${…}` it is split.
    pub fn unquoted(&mut self, pieces: &[Piece], kind: Kind) -> Result<(), Stop> {
        match pieces.split_first() {
            Some((Piece::Text(text), rest)) if self.colons || text.starts_with('~') => {
                self.tildes(text, rest, self.colons, kind)
            }
            _ => pieces.iter().try_for_each(|piece| self.piece(piece, kind)),
        }
    }

    /// Pieces between double quotes.
    pub fn quoted(&mut self, pieces: &[Piece]) -> Result<(), Stop> {
        pieces.iter().try_for_each(|piece| self.piece(piece, Kind::Quoted))
    }

    /// Text at the start of a word and what follows; `colons`: each `:` starts a directory name again.
    fn tildes(&mut self, text: &str, rest: &[Piece], colons: bool, kind: Kind) -> Result<(), Stop> {
        self.directories(text, rest.is_empty(), true, colons, kind);
        for (index, piece) in rest.iter().enumerate() {
            match piece {
                Piece::Text(text) if colons => self.directories(text, index + 1 == rest.len(), false, true, kind),
                other => self.piece(other, kind)?,
            }
        }
        Ok(())
    }

    fn directories(&mut self, text: &str, last: bool, start: bool, colons: bool, kind: Kind) {
        let mut parts = if colons { text.split(':').collect() } else { vec![text] };
        // A part that quoted text follows is not the whole of a directory's name.
        let tail = parts.pop().unwrap_or_default();
        for (index, part) in parts.iter().enumerate() {
            self.directory(part, index > 0 || start, true, kind);
            self.fields.push(":", kind);
        }
        self.directory(tail, start || !parts.is_empty(), last, kind);
    }

    fn directory(&mut self, text: &str, may: bool, whole: bool, kind: Kind) {
        let (user, rest) = text.split_at(text.find(['/', ':']).unwrap_or(text.len()));
        let whole = whole || !rest.is_empty();
        let home = user.strip_prefix('~').filter(|_| may && whole).and_then(|user| self.home(user));
        match home {
            Some(home) => {
                self.fields.push(home, Kind::Quoted);
                self.fields.push(rest, kind);
            }
            None => self.fields.push(text, kind),
        }
    }

    fn home(&self, user: &str) -> Option<String> {
        match user {
            "" => Some(self.scalar("HOME").unwrap_or_else(|| "/".into())),
            "+" => Some(self.env.cwd().to_owned()),
            "-" => self.scalar("OLDPWD"),
            _ => None,
        }
    }

    fn scalar(&self, name: &str) -> Option<String> {
        self.env.get(name).and_then(value::scalar)
    }

    fn piece(&mut self, piece: &Piece, kind: Kind) -> Result<(), Stop> {
        let result = if kind == Kind::Quoted { Kind::Quoted } else { Kind::Expanded };
        match piece {
            Piece::Text(text) => self.push(text, kind),
            Piece::Quoted(text) => self.fields.push(text, Kind::Quoted),
            Piece::Double(inner) => {
                let before = self.fields.added;
                self.vanished = false;
                self.quoted(inner)?;
                if self.fields.added == before && !self.vanished {
                    self.fields.push("", Kind::Quoted);
                }
            }
            Piece::Parameter(parameter) => self.parameter(parameter, result)?,
            Piece::Command(source) => {
                let output = self.env.substitute(source)?;
                self.push(&output, result);
            }
            Piece::Arithmetic(inner) => {
                let source = text(self.env, inner, Kind::Quoted)?;
                let number = arith::evaluate(self.env, &source)?;
                self.push(&number.to_string(), result);
            }
        }
        Ok(())
    }

    /// Nothing does not make a field, not even between quotes: the quotes do that.
    fn push(&mut self, text: &str, kind: Kind) {
        if !text.is_empty() {
            self.fields.push(text, kind);
        }
    }

    fn parameter(&mut self, parameter: &Parameter, kind: Kind) -> Result<(), Stop> {
        let target = operation::pointed(self.env, parameter)?;
        let target = target.as_ref();
        if let Operation::Unless { what, empty, word } = &parameter.operation {
            let found = self.found(target)?;
            let is_empty = if kind == Kind::Quoted { self.is_empty(&found) } else { found.is_empty() };
            let missing = !found.is_set() || *empty && is_empty;
            return match operation::unless(self.env, target, *what, *empty, missing, word, &parameter.source)? {
                operation::Use::Value => self.emit(found, kind),
                operation::Use::Word if kind == Kind::Quoted => self.quoted(word),
                operation::Use::Word => self.unquoted(word, Kind::Expanded),
                operation::Use::Text(text) => self.emit(Expansion::One(Some(text)), kind),
            };
        }
        let found = operation::apply(self, target, parameter)?;
        self.emit(found, kind)
    }

    /// `$*` is what joining makes of it.
    fn is_empty(&self, found: &Expansion) -> bool {
        match found {
            Expansion::Many { values, star: true } if first_separator(self.env).is_empty() => {
                values.iter().all(String::is_empty)
            }
            found => found.is_empty(),
        }
    }

    /// The value of a parameter; one that is not set is an error under `set -u` unless the operator is for that.
    pub fn checked(&mut self, target: &Target, source: &str) -> Result<Expansion, Stop> {
        let found = self.found(target)?;
        let list = matches!(target, Target::Positions { .. } | Target::Elements { .. });
        if !found.is_set() && !list && self.env.option(Opt::Nounset) {
            return Err(Stop::unset(format!("{}: unbound variable", operation::label(target, source))));
        }
        Ok(found)
    }

    pub fn found(&mut self, target: &Target) -> Result<Expansion, Stop> {
        Ok(match target {
            Target::Name(name) => Expansion::One(self.scalar(name)),
            Target::Position(number) => {
                Expansion::One(number.checked_sub(1).and_then(|index| self.env.positional().get(index)).cloned())
            }
            Target::Special(name) => Expansion::One(self.env.special(*name)),
            Target::Positions { star } => Expansion::Many { values: self.env.positional().to_vec(), star: *star },
            Target::Elements { name, star } => {
                let values = self.env.get(name).map_or_else(Vec::new, |value| value.elements());
                Expansion::Many { values, star: *star }
            }
            Target::Element { name, index } => Expansion::One(element(self.env, name, index)?),
        })
    }

    fn emit(&mut self, found: Expansion, kind: Kind) -> Result<(), Stop> {
        match found {
            Expansion::One(value) => self.push(&value.unwrap_or_default(), kind),
            Expansion::Many { values, star } if values.is_empty() => self.vanished |= !star,
            Expansion::Many { values, star } if self.joining || star && kind == Kind::Quoted => {
                let separator = if star { first_separator(self.env) } else { " ".into() };
                self.push(&values.join(&separator), kind);
            }
            Expansion::Many { values, .. } if kind == Kind::Expanded && splits_visibly(self.env) => {
                // With such a separator splitting keeps the empty ones of a joined list, as bash does.
                self.push(&values.join(&first_separator(self.env)), kind);
            }
            Expansion::Many { values, .. } => {
                for (index, value) in values.into_iter().enumerate() {
                    if index > 0 {
                        self.fields.end_field();
                    }
                    self.fields.push(value, kind);
                }
            }
        }
        Ok(())
    }
}

/// Whether `IFS` starts with something else than white space.
fn splits_visibly(env: &dyn Env) -> bool {
    first_separator(env).chars().any(|c| !matches!(c, ' ' | '\t' | '\n'))
}

/// The separator that `"$*"` puts between the parameters.
fn first_separator(env: &dyn Env) -> String {
    match env.get("IFS").and_then(value::scalar) {
        None => " ".into(),
        Some(separators) => separators.chars().take(1).collect(),
    }
}

/// `${name[index]}`.
pub fn element(env: &mut dyn Env, name: &str, index: &str) -> Result<Option<String>, Stop> {
    if matches!(env.get(name).as_deref(), Some(Value::Keyed(_))) {
        let key = key(env, index)?;
        return Ok(match env.get(name).as_deref() {
            Some(Value::Keyed(elements)) => elements.get(&key).cloned(),
            _ => None,
        });
    }
    let number = arith::arithmetic(env, index)?;
    Ok(env.get(name).as_deref().and_then(|value| value.element(number)).map(str::to_owned))
}

/// The subscript of an array with keys: a word.
pub fn key(env: &mut dyn Env, source: &str) -> Result<String, Stop> {
    text(env, &super::lex::word(source)?, Kind::Literal)
}

/// The string that pieces make; `kind` is `Quoted` if they stand between double quotes.
pub fn text(env: &mut dyn Env, pieces: &[Piece], kind: Kind) -> Result<String, Stop> {
    Ok(split::join(&field(env, pieces, kind)?))
}

/// The pattern that pieces make; `fold`: upper and lower case are the same.
pub fn pattern(env: &mut dyn Env, pieces: &[Piece], fold: bool) -> Result<Pattern, Stop> {
    let field = field(env, pieces, Kind::Literal)?;
    Ok(Pattern::new(&split::marks(&field), env.option(Opt::Extglob), fold))
}

pub fn field(env: &mut dyn Env, pieces: &[Piece], kind: Kind) -> Result<Field, Stop> {
    let mut expander = Expander::joining(env);
    match kind {
        Kind::Quoted => expander.quoted(pieces)?,
        kind => expander.unquoted(pieces, kind)?,
    }
    Ok(expander.finish_one())
}

pub fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
