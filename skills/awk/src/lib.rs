//! AWK: POSIX's language, with the functions and variables of gawk that programs use.
//!
//! [`command`] is the whole command; [`Program::parse`] makes a program, [`run`] runs it. A program reads and writes files itself; commands (`system`,
//! `cmd | getline`, `print | cmd`) are started by what implements [`Commands`].
//!
//! Texts are bytes. Functions count characters where the bytes are UTF-8, as gawk does. The files, in reading order: `lexer`,
//! `parser` (names become slots right away), `code` (the result), `value`, `number`, `format`, `regex`, `record`
//! (records and fields), `stream` (files and pipes of the program), `interpret`.

use std::fmt;
use std::io::{self, Read, Write};

mod code;
mod command;
mod format;
mod interpret;
mod lexer;
mod number;
mod parser;
mod record;
mod regex;
mod stream;
mod time;
mod value;

pub use code::Program;
pub use command::command;
pub use interpret::{Settings, run};

/// Why a program cannot be read, or cannot go on.
#[derive(Debug)]
pub struct Error {
    /// Of the program, where it is known.
    pub line: Option<usize>,
    pub message: String,
}

impl Error {
    fn at_line(line: usize, message: String) -> Error {
        Error { line: Some(line), message }
    }

    fn new(message: impl Into<String>) -> Error {
        Error { line: None, message: message.into() }
    }
}

impl From<String> for Error {
    fn from(message: String) -> Self {
        Error::new(message)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line} of the program: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Error {}

impl Program {
    pub fn parse(source: &[u8]) -> Result<Program, Error> {
        parser::parse(source)
    }
}

/// A command that was started and that the program reads from or writes to.
pub trait Child {
    /// Waits for its end, and returns its exit code.
    fn wait(&mut self) -> i32;
}

/// Starts command lines in a shell.
pub trait Commands {
    /// Runs a command with the program's own input and output, and returns its exit code.
    fn run(&mut self, command: &str) -> io::Result<i32>;

    /// Starts a command whose output the program reads.
    fn reader(&mut self, command: &str) -> io::Result<(Box<dyn Read>, Box<dyn Child>)>;

    /// Starts a command that reads what the program prints.
    fn writer(&mut self, command: &str) -> io::Result<(Box<dyn Write>, Box<dyn Child>)>;
}
