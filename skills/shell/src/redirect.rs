//! Redirections: they change the table, which the caller puts back when the command has ended.

use std::rc::Rc;

use crate::bindings::kiso::exec::spawn::{self, Channel, Errno, Mode};
use crate::expand::{self, Env, Reach, Stop};
use crate::options::Flag;
use crate::program::{Access, Descriptor, Redirection, Target};
use crate::shell::{Outcome, Shell};
use crate::table::{self, HIGHEST};
use brush_parser::ast::Word;

/// The first number that `{name}>` may choose, as in bash.
const FIRST_NAMED: u32 = 10;

/// Bytes that fit into a pipe that nobody reads yet.
const PIPE: usize = 64 << 10;

impl Shell {
    /// 0, or the code with which the command fails.
    pub fn redirect(&mut self, redirections: &[Redirection]) -> Outcome {
        for redirection in redirections {
            match self.redirect_one(redirection) {
                Ok(0) => {}
                failed => return failed,
            }
        }
        Ok(0)
    }

    fn redirect_one(&mut self, redirection: &Redirection) -> Outcome {
        let number = match &redirection.at {
            Descriptor::Usual => None,
            Descriptor::Number(number) if *number > HIGHEST => {
                self.complain(format_args!("{number}: Bad file descriptor"));
                return Ok(1);
            }
            Descriptor::Number(number) => Some(*number),
            Descriptor::Name(name) => match self.named(name, &redirection.target) {
                Ok(number) => Some(number),
                Err(stop) => return self.stopped(stop),
            },
        };
        match &redirection.target {
            Target::File(access, word) => {
                let number = number.unwrap_or(access.number());
                match self.one_word(word)? {
                    Ok(path) => self.open_at(number, *access, &path),
                    Err(code) => Ok(code),
                }
            }
            Target::Process(access, direction, list) => {
                let number = number.unwrap_or(access.number());
                match self.process_file(*direction, list) {
                    Ok(path) => self.open_at(number, *access, &path),
                    Err(stop) => self.stopped(stop),
                }
            }
            Target::Both { append, word } => match self.one_word(word)? {
                Ok(path) => {
                    let access = if *append { Access::Append } else { Access::Write };
                    let code = self.open_at(1, access, &path)?;
                    if code == 0
                        && let Some(end) = self.table.get(1).cloned()
                    {
                        self.table.put(2, end);
                    }
                    Ok(code)
                }
                Err(code) => Ok(code),
            },
            Target::Duplicate { output, word } => match self.one_word(word)? {
                Ok(source) => self.duplicate(number, *output, &source),
                Err(code) => Ok(code),
            },
            Target::Document { text, expand } => {
                let text = if *expand { expand::heredoc(self, text) } else { Ok(text.clone()) };
                match text {
                    Ok(text) => self.feed(number.unwrap_or(0), text.into_bytes()),
                    Err(stop) => self.stopped(stop),
                }
            }
            Target::Text(word) => match self.text(word) {
                Ok(text) => self.feed(number.unwrap_or(0), (text + "\n").into_bytes()),
                Err(stop) => self.stopped(stop),
            },
        }
    }

    /// The number for `{name}>`: that in the variable if it is to be closed, else one that is free and is stored there.
    fn named(&mut self, name: &str, target: &Target) -> Result<u32, Stop> {
        let refused = |message: &str| Stop { message: format!("{name}: {message}"), code: 1, reach: Reach::Command };
        if matches!(target, Target::Duplicate { word, .. } if word.value == "-") {
            let number = self.scalar(name).and_then(|number| number.parse().ok());
            return number.ok_or_else(|| refused("Bad file descriptor"));
        }
        let free = (FIRST_NAMED..=HIGHEST).find(|&number| self.table.get(number).is_none());
        let number = free.ok_or_else(|| refused("too many open files"))?;
        self.set(name, number.to_string())?;
        Ok(number)
    }

    fn one_word(&mut self, word: &Word) -> Result<Result<String, u8>, crate::shell::Flow> {
        match expand::word(self, word) {
            Ok(mut words) if words.len() == 1 => Ok(Ok(words.remove(0))),
            Ok(_) => {
                self.complain(format_args!("{word}: ambiguous redirect"));
                Ok(Err(1))
            }
            Err(stop) => self.stopped(stop).map(Err),
        }
    }

    fn duplicate(&mut self, number: Option<u32>, output: bool, source: &str) -> Outcome {
        let number = number.unwrap_or(u32::from(output));
        if source == "-" {
            self.table.close(number);
            return Ok(0);
        }
        // `3>&1-` moves.
        let (digits, moves) = source.strip_suffix('-').map_or((source, false), |digits| (digits, true));
        let Ok(from) = digits.parse::<u32>() else {
            if !output {
                self.complain(format_args!("{source}: ambiguous redirect"));
                return Ok(1);
            }
            // `>&file` is an old way to write `&>file`.
            let code = self.open_at(1, Access::Write, source)?;
            if code == 0
                && let Some(end) = self.table.get(1).cloned()
            {
                self.table.put(2, end);
            }
            return Ok(code);
        };
        let Some(end) = self.table.get(from).cloned() else {
            self.complain(format_args!("{from}: Bad file descriptor"));
            return Ok(1);
        };
        self.table.put(number, end);
        if moves {
            self.table.close(from);
        }
        Ok(0)
    }

    fn open_at(&mut self, number: u32, access: Access, path: &str) -> Outcome {
        let standard = match path {
            "/dev/stdin" => Some(0),
            "/dev/stdout" => Some(1),
            "/dev/stderr" => Some(2),
            _ => path.strip_prefix("/dev/fd/").and_then(|number| number.parse().ok()),
        };
        if let Some(end) = standard.and_then(|number| self.table.get(number)) {
            let end = Rc::clone(end);
            self.table.put(number, end);
            return Ok(0);
        }
        match self.open(access, path) {
            Ok(channel) => {
                self.table.put_channel(number, channel);
                Ok(0)
            }
            Err(error) => {
                self.complain(format_args!("{path}: {}", table::explain(error)));
                Ok(1)
            }
        }
    }

    fn open(&self, access: Access, path: &str) -> Result<Channel, Errno> {
        if path.is_empty() {
            return Err(Errno::NotFound);
        }
        let path = self.absolute(path);
        let mode = match access {
            Access::Read => Mode::Read,
            Access::Write if self.on(Flag::NoClobber) && !path.starts_with("/dev/") => Mode::CreateNew,
            Access::Write | Access::Clobber => Mode::Write,
            Access::Append => Mode::Append,
            Access::ReadWrite => Mode::ReadWrite,
        };
        spawn::open(&path, mode)
    }

    /// Lets a number be read as this text.
    fn feed(&mut self, number: u32, text: Vec<u8>) -> Outcome {
        if text.len() <= PIPE {
            let (reader, writer) = spawn::pipe();
            // It fits, so this does not wait; the only reader is in our hands, so it does not fail.
            let _ = writer.write(&text);
            self.table.put_channel(number, reader);
            return Ok(0);
        }
        match self.temporary_with(&text) {
            Ok(path) => {
                let code = self.open_at(number, Access::Read, &path);
                let _ = std::fs::remove_file(&path);
                code
            }
            Err(message) => {
                self.complain(format_args!("cannot create a here-document of {} bytes: {message}", text.len()));
                Ok(1)
            }
        }
    }
}
