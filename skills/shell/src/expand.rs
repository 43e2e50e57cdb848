//! Word expansion: from the source text of a word to the strings that a command gets.
//!
//! `lex` reads a word into pieces, `brace` multiplies them, `parameter` and this file evaluate them to fields whose
//! characters remember whether they were quoted, `split` and `glob` turn fields into words.
//!
//! brush-parser has a word parser too. It is not used, because each level of `"x ${a:-"…"}"` doubles its time, it
//! recurses without bound, panics on `{1..99999999999999999999}`, and takes `${what it does not know}` for text.

mod brace;
mod evaluate;
mod glob;
mod lex;
mod operation;
mod parameter;
mod quote;
pub(crate) mod scan;
mod split;
#[cfg(test)]
pub(crate) mod tests;
pub mod value;

use std::borrow::Cow;

use brush_parser::ast::Word;

pub use crate::arith::arithmetic;
pub use crate::condition::{extended_test, test};
pub use crate::pattern::Pattern;
use evaluate::Expander;
pub(crate) use evaluate::{element, key};
use lex::Piece;
pub(crate) use split::Mark;
use split::{Field, Kind};
pub use value::Value;

/// The state of the shell that expansion reads and changes.
pub trait Env {
    /// None: unset.
    fn get(&self, name: &str) -> Option<Cow<'_, Value>>;
    /// `${x:=y}` and assignments in arithmetic. An array gets it as its element 0.
    fn set(&mut self, name: &str, value: String) -> Result<(), Stop>;
    /// `index` is a number that is not negative, or the key if the variable is keyed.
    fn set_element(&mut self, name: &str, index: &str, value: String) -> Result<(), Stop>;
    /// Replaces a whole array: `BASH_REMATCH`.
    fn set_array(&mut self, name: &str, elements: Vec<String>) -> Result<(), Stop>;
    /// The letters of `declare` that a variable has: `${x@a}`.
    fn attributes(&self, name: &str) -> String;
    /// The names of all variables that are set and start with `prefix`, sorted: `${!prefix*}`.
    fn names(&self, prefix: &str) -> Vec<String>;
    /// `$1` and so on.
    fn positional(&self) -> &[String];
    /// One of `? $ ! # - 0`. None: unset, as `$!` before the first `&`.
    fn special(&self, name: char) -> Option<String>;
    fn option(&self, option: Opt) -> bool;
    /// Whether `set -o NAME` is on.
    fn named_option(&self, name: &str) -> bool;
    /// `$(…)`: standard output without the newlines at its end.
    fn substitute(&mut self, source: &str) -> Result<String, Stop>;
    /// Absolute.
    fn cwd(&self) -> &str;
    fn is_terminal(&self, fd: u32) -> bool;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opt {
    Braces,
    SkipDots,
    PatternReplacement,
    Nounset,
    Noglob,
    Nullglob,
    Dotglob,
    Failglob,
    Globstar,
    Extglob,
    Nocaseglob,
    Nocasematch,
}

/// Why expansion ends the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// For standard error, without the shell's name.
    pub message: String,
    pub code: u8,
    pub reach: Reach,
}

/// The extent of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The command, which fails.
    Command,
    /// All that was read with it: the line, with the loops and functions that are around it. The shell goes on with the
    /// next line.
    Line,
    Shell,
}

impl Stop {
    /// An expansion that cannot be done.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: 1, reach: Reach::Line }
    }

    /// A parameter that should have been set: bash exits with 127 then.
    pub(crate) fn unset(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: 127, reach: Reach::Shell }
    }

    /// A test that makes no sense.
    pub(crate) fn misuse(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: 2, reach: Reach::Command }
    }

    /// A command that reads the expression itself fails where an expansion would end the line.
    pub(crate) fn of_command(self) -> Self {
        let reach = if self.reach == Reach::Line { Reach::Command } else { self.reach };
        Self { reach, ..self }
    }
}

/// Everything: braces, tildes, parameters, commands, arithmetic, splitting, globs, quote removal.
pub fn words(env: &mut dyn Env, words: &[&Word]) -> Result<Vec<String>, Stop> {
    let mut all = Vec::new();
    for each in words {
        all.append(&mut word(env, each)?);
    }
    Ok(all)
}

pub fn word(env: &mut dyn Env, word: &Word) -> Result<Vec<String>, Stop> {
    if is_plain(&word.value) {
        return Ok(vec![word.value.clone()]);
    }
    let mut strings = Vec::new();
    let sources = if env.option(Opt::Braces) { brace::expand(&word.value)? } else { vec![word.value.clone()] };
    for source in sources {
        let mut expander = Expander::splitting(env);
        expander.word(&lex::word(&source)?)?;
        let fields = expander.finish();
        for field in split::split(fields, &separators(env)) {
            glob::expand(env, field, &mut strings)?;
        }
    }
    Ok(strings)
}

/// Neither splitting nor globs: case subjects, here-strings, targets of redirections.
pub fn text(env: &mut dyn Env, word: &Word) -> Result<String, Stop> {
    if is_plain(&word.value) {
        return Ok(word.value.clone());
    }
    Ok(split::join(&joined(env, &lex::word(&word.value)?)?))
}

/// The right side of an assignment: like `text`, but a tilde behind a colon is a directory too.
pub fn assigned(env: &mut dyn Env, word: &Word) -> Result<String, Stop> {
    if is_plain(&word.value) {
        return Ok(word.value.clone());
    }
    let mut expander = Expander::joining(env);
    expander.assigned(&lex::word(&word.value)?)?;
    Ok(split::join(&expander.finish_one()))
}

/// Quoted parts stand for themselves: the patterns of `case`, the right side of `[[ == ]]`.
pub fn pattern(env: &mut dyn Env, word: &Word) -> Result<Pattern, Stop> {
    let field = joined(env, &lex::word(&word.value)?)?;
    // bash wants `extglob` for the extended ones in `case`, but without it they would be syntax errors.
    Ok(Pattern::new(&split::marks(&field), true, env.option(Opt::Nocasematch)))
}

/// The body of a here-document whose delimiter was not quoted.
pub fn heredoc(env: &mut dyn Env, doc: &str) -> Result<String, Stop> {
    let pieces = lex::document(doc)?;
    let mut expander = Expander::joining(env);
    expander.quoted(&pieces)?;
    Ok(split::join(&expander.finish_one()))
}

/// Expands the text of an arithmetic expression, before it is evaluated.
pub(crate) fn expression(env: &mut dyn Env, source: &str) -> Result<String, Stop> {
    if !source.contains(['$', '`', '"', '\\']) {
        return Ok(source.to_owned());
    }
    let pieces = lex::arithmetic(source)?;
    let mut expander = Expander::joining(env);
    expander.quoted(&pieces)?;
    Ok(split::join(&expander.finish_one()))
}

/// The parts of a word with their quoting, for `=~`.
pub(crate) fn parts(env: &mut dyn Env, word: &Word) -> Result<Vec<(String, bool)>, Stop> {
    let field = joined(env, &lex::word(&word.value)?)?;
    Ok(field.into_iter().map(|segment| (segment.text, segment.kind == Kind::Quoted)).collect())
}

fn joined(env: &mut dyn Env, pieces: &[Piece]) -> Result<Field, Stop> {
    let mut expander = Expander::joining(env);
    expander.word(pieces)?;
    Ok(expander.finish_one())
}

/// `$IFS`, or what it is taken for when it is unset.
fn separators(env: &dyn Env) -> String {
    env.get("IFS").and_then(value::scalar).unwrap_or_else(|| " \t\n".into())
}

/// Most words of most commands need no work.
fn is_plain(source: &str) -> bool {
    let plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/' | b',' | b'+' | b':');
    !source.is_empty() && source.bytes().all(plain)
}
