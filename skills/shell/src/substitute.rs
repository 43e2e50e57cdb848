//! `$(…)`, `<(…)` and `>(…)`, and forks.

use std::cell::RefCell;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::rc::Rc;

use crate::bindings::kiso::exec::spawn::{self, Channel};
use crate::builtin;
use crate::expand::{Reach, Stop};
use crate::external::Started;
use crate::options::Flag;
use crate::parse::parse;
use crate::program::{Access, Argument, Command, Descriptor, Direction, Item, Kind, List, Target};
use crate::shell::{Flow, Shell, now};
use crate::simple::is_calm;
use crate::state::{self, Work};
use crate::table::{self, End, Table};

/// The limit for the output of `<(…)`: it runs first, so `<(yes)` would fill the workspace.
const LONGEST_OUTPUT: usize = 16 << 20;

/// A file that stands for a process substitution.
pub struct Temporary {
    path: String,
    /// `>(…)`: what reads the file when the command that wrote it has ended.
    reader: Option<List>,
}

/// The output of a command, without the newlines at its end.
pub fn command(shell: &mut Shell, source: &str) -> Result<String, Stop> {
    let list = parse(source).map_err(|error| Stop {
        message: format!("command substitution: {}", error.message),
        code: 2,
        reach: Reach::Line,
    })?;
    let line = shell.line;
    let (output, code) = capture(shell, &list).map_err(|message| Stop { message, code: 1, reach: Reach::Command })?;
    shell.line = line;
    shell.substituted = Some(code);
    shell.state.status = code;
    let mut text =
        String::from_utf8(output).unwrap_or_else(|bytes| String::from_utf8_lossy(bytes.as_bytes()).into_owned());
    // A string of the C library ends at a zero byte; bash leaves them out.
    text.retain(|c| c != '\0');
    text.truncate(text.trim_end_matches('\n').len());
    Ok(text)
}

fn capture(shell: &mut Shell, list: &List) -> Result<(Vec<u8>, u8), String> {
    match alone(list) {
        Some(command) if reads_file(command) => return Ok(read_file(shell, command)),
        Some(command) if is_pure(shell, command) => return Ok(run_here(shell, command)),
        _ => {}
    }
    let (reader, writer) = spawn::pipe();
    let mut table = shell.table.clone();
    table.put_channel(1, writer);
    // POSIX would let it inherit `set -e`, bash does not.
    let errexit = shell.on(Flag::ErrExit);
    shell.state.options.switch(Flag::ErrExit, errexit && shell.on(Flag::InheritErrExit));
    shell.state.substitutions += 1;
    let mut started = shell.start_list(list, &table);
    shell.state.substitutions -= 1;
    shell.state.options.switch(Flag::ErrExit, errexit);
    // Or the end of the output would never come.
    drop(table);
    let output = table::drain(&reader).map_err(|error| table::explain(error).to_owned())?;
    Ok((output, started.wait()))
}

/// Copies the output of `<(…)` into its file.
fn pour(from: &Channel, to: &Channel) -> Result<(), String> {
    let explained = |error| table::explain(error).to_owned();
    let mut total = 0;
    loop {
        let piece = from.read(1 << 16).map_err(explained)?;
        total += piece.len();
        if piece.is_empty() {
            return Ok(());
        }
        if total > LONGEST_OUTPUT {
            return Err(format!(
                "<(…) wrote more than {LONGEST_OUTPUT} bytes; it runs to its end before its reader starts, a pipe would not"
            ));
        }
        to.write(&piece).map_err(explained)?;
    }
}

/// The only command of a list.
fn alone(list: &List) -> Option<&Command> {
    match list.0.as_slice() {
        [Item { first, rest, background: false }] if rest.is_empty() && first.time.is_none() && !first.negated => {
            first.stages.first().filter(|_| first.stages.len() == 1)
        }
        _ => None,
    }
}

/// `$(<file)`.
fn reads_file(command: &Command) -> bool {
    let Kind::Simple(simple) = &command.kind else { return false };
    simple.words.is_empty()
        && simple.assignments.is_empty()
        && matches!(
            command.redirections.as_slice(),
            [one] if matches!(one.at, Descriptor::Usual | Descriptor::Number(0))
                && matches!(&one.target, Target::File(Access::Read, word) if is_calm(&word.value))
        )
}

fn read_file(shell: &mut Shell, command: &Command) -> (Vec<u8>, u8) {
    let saved = shell.table.clone();
    let code = shell.redirect(&command.redirections).unwrap_or(1);
    let mut output = Vec::new();
    if code == 0
        && let Some(End::Channel(channel)) = shell.table.get(0).map(|end| &**end)
    {
        output = table::drain(channel).unwrap_or_default();
    }
    shell.table = saved;
    (output, code)
}

/// A builtin that only writes, with words that only read: no process is needed to keep it from changing this shell.
fn is_pure(shell: &Shell, command: &Command) -> bool {
    let Kind::Simple(simple) = &command.kind else { return false };
    let Some(Argument::Word(name)) = simple.words.first() else { return false };
    let pure = match name.value.as_str() {
        "echo" | "pwd" | "true" | "false" | "type" | ":" => true,
        "printf" => {
            !matches!(simple.words.get(1), Some(Argument::Word(word)) if word.value.starts_with("-v") || word.value.starts_with('$'))
        }
        "command" => matches!(simple.words.get(1), Some(Argument::Word(word)) if word.value == "-v"),
        _ => false,
    };
    pure && simple.assignments.is_empty()
        && !shell.on(Flag::XTrace)
        && !shell.state.functions.contains_key(&name.value)
        && command
            .redirections
            .iter()
            .all(|redirection| matches!(&redirection.target, Target::Duplicate { word, .. } if is_calm(&word.value)))
        && simple.words.iter().all(|argument| match argument {
            Argument::Word(word) | Argument::Assignment(_, word) => is_calm(&word.value),
            Argument::Process(..) => false,
        })
        && builtin::find(&name.value).is_some()
}

fn run_here(shell: &mut Shell, command: &Command) -> (Vec<u8>, u8) {
    let memory = Rc::new(End::Memory(RefCell::new(Vec::new())));
    let saved = shell.table.clone();
    shell.table.put(1, Rc::clone(&memory));
    let (status, asked) = (shell.state.status, shell.asked);
    let code = match shell.command(command) {
        Ok(code) | Err(Flow::Exit(code) | Flow::Killed(code) | Flow::Return(code) | Flow::Discard(code)) => code,
        Err(Flow::Break(_) | Flow::Continue(_)) => 0,
    };
    shell.table = saved;
    (shell.state.status, shell.asked) = (status, asked);
    let output = match &*memory {
        End::Memory(bytes) => bytes.take(),
        End::Channel(_) => Vec::new(),
    };
    (output, code)
}

impl Shell {
    /// Another shell that goes on from here.
    pub fn fork(&mut self, work: Work, table: &Table) -> Started {
        let foreign = std::mem::replace(&mut self.state.foreign_traps, true);
        let forgiving = std::mem::replace(&mut self.state.forgiving, self.asked > 0);
        self.state.subshells += 1;
        let image = state::encode(&self.state, &Some(work));
        self.state.subshells -= 1;
        self.state.forgiving = forgiving;
        self.state.foreign_traps = foreign;
        Started::Process(spawn::fork(&image, &table.channels(table::HIGHEST + 1)))
    }

    /// The path of a file that stands for `<(…)` or `>(…)`. A pipe has no path here, so the one is run first and the
    /// other afterwards.
    pub fn process_file(&mut self, direction: Direction, list: &List) -> Result<String, Stop> {
        let failed = |message: String| Stop {
            message: format!("process substitution: {message}"),
            code: 1,
            reach: Reach::Command,
        };
        let path = self.temporary_with(b"").map_err(failed)?;
        let reader = (direction == Direction::Write).then(|| list.clone());
        self.temporary.push(Temporary { path: path.clone(), reader });
        if direction == Direction::Read {
            let output =
                spawn::open(&path, spawn::Mode::Write).map_err(|error| failed(table::explain(error).to_owned()))?;
            let (reader, writer) = spawn::pipe();
            let mut table = self.table.clone();
            table.put_channel(1, writer);
            let mut started = self.start_list(list, &table);
            drop(table);
            pour(&reader, &output).map_err(failed)?;
            started.wait();
        }
        Ok(path)
    }

    /// Makes a file with a name of its own.
    pub fn temporary_with(&mut self, bytes: &[u8]) -> Result<String, String> {
        let mut attempt = now();
        loop {
            let path = format!("/tmp/sh-{attempt:x}-{}", self.random());
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(mut file) => {
                    file.write_all(bytes).map_err(|error| error.to_string())?;
                    return Ok(path);
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => attempt += 1,
                Err(error) => return Err(format!("no file can be made in /tmp: {error}")),
            }
        }
    }

    /// Ends the process substitutions that were made since there were `keep`.
    pub fn remove_temporary(&mut self, keep: usize) {
        while self.temporary.len() > keep {
            let Some(file) = self.temporary.pop() else { return };
            if let Some(list) = file.reader
                && let Ok(input) = spawn::open(&file.path, spawn::Mode::Read)
            {
                let mut table = self.table.clone();
                table.put_channel(0, input);
                self.start_list(&list, &table).wait();
            }
            // It may be gone already: `rm` can do that too.
            let _ = fs::remove_file(&file.path);
        }
    }

    /// The next of `RANDOM`: 0 to 32767.
    pub fn random(&self) -> u64 {
        let mut seed = self.state.random.get();
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.state.random.set(seed);
        seed >> 33 & 0x7fff
    }
}
