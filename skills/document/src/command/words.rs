//! Arguments of programs, some of whose long options have one dash.

use crate::error::{Error, Result};

pub struct Words<'a> {
    rest: std::slice::Iter<'a, String>,
    only_operands: bool,
    /// The value behind `=` of a long option.
    attached: Option<&'a str>,
}

pub enum Word<'a> {
    /// With its dashes.
    Option(&'a str),
    Operand(&'a str),
}

impl<'a> Words<'a> {
    pub fn new(arguments: &'a [String]) -> Self {
        Self { rest: arguments.iter(), only_operands: false, attached: None }
    }

    /// The value of the option that came last.
    pub fn value(&mut self, option: &str) -> Result<&'a str> {
        if let Some(value) = self.attached.take() {
            return Ok(value);
        }
        let value = self.rest.next().ok_or_else(|| Error::new(format!("the option {option} needs a value")))?;
        Ok(value)
    }

    pub fn number<T: std::str::FromStr>(&mut self, option: &str) -> Result<T> {
        let value = self.value(option)?;
        value.parse().map_err(|_| Error::new(format!("the option {option}: `{value}` is not a number")))
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = Word<'a>;

    fn next(&mut self) -> Option<Word<'a>> {
        let word = self.rest.next()?.as_str();
        if word == "--" && !self.only_operands {
            self.only_operands = true;
            return self.next();
        }
        if word.len() < 2 || !word.starts_with('-') || self.only_operands {
            return Some(Word::Operand(word));
        }
        self.attached = None;
        if let Some((option, value)) = word.split_once('=').filter(|_| word.starts_with("--")) {
            self.attached = Some(value);
            return Some(Word::Option(option));
        }
        Some(Word::Option(word))
    }
}

/// The error for an option that a command does not have.
pub fn unknown(option: &str) -> Error {
    Error::new(format!("the option {option} is not supported here (--help lists those that are)"))
}

/// The error for a file too many.
pub fn unexpected(operand: &str) -> Error {
    Error::new(format!("unexpected argument `{operand}`"))
}
