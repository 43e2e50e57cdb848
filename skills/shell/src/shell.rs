//! One running shell: its state, its open files, and what expansion asks of it.

use std::borrow::Cow;
use std::time::{SystemTime, UNIX_EPOCH};

use brush_parser::ast::Word;

use crate::bindings::kiso::exec::spawn::Errno;
use crate::expand::{Env, Opt, Reach, Stop, Value};
use crate::job::Jobs;
use crate::options::{self, Flag};
use crate::path;
use crate::state::{Frame, State, Variable};
use crate::table::{self, Table};

/// Why commands are not simply done one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Out of this many loops.
    Break(u32),
    Continue(u32),
    Return(u8),
    /// An error ended the line.
    Discard(u8),
    Exit(u8),
    /// Nobody reads what was written: as SIGPIPE, this ends the shell and runs no trap.
    Killed(u8),
}

/// The exit code of a command, unless something else goes on.
pub type Outcome = Result<u8, Flow>;

/// Which command an exit code came from.
pub struct Blame {
    pub command: String,
    pub line: u32,
    pub code: u8,
}

pub struct Shell {
    pub state: State,
    pub table: Table,
    pub jobs: Jobs,
    /// More than 0: a failure here is asked for, so `set -e` does not mind.
    pub asked: u32,
    /// How many loops are around this place in the present function.
    pub loops: u32,
    /// How many calls of functions, `eval` and `.` are around this place.
    pub depth: u32,
    pub line: u32,
    /// Added to the lines of commands: `eval` and traps continue the count of the line that they are on.
    pub offset: u32,
    /// `exec -a`: what the shell that is started next is called.
    pub called: Option<String>,
    pub blame: Option<Blame>,
    /// The code of the last `$(…)`, for `x=$(false)`.
    pub substituted: Option<u8>,
    /// Files of process substitutions that go when their command has ended.
    pub temporary: Vec<crate::substitute::Temporary>,
    /// How many sourced files are around this place: `return` leaves them.
    pub sourced: u32,
    /// `exit` was called.
    pub exited: bool,
    /// A trap runs now.
    pub in_trap: bool,
}

impl Shell {
    pub fn new(state: State, table: Table) -> Shell {
        Shell {
            asked: u32::from(state.forgiving),
            state,
            table,
            jobs: Jobs::default(),
            loops: 0,
            depth: 0,
            line: 1,
            offset: 0,
            called: None,
            blame: None,
            substituted: None,
            temporary: Vec::new(),
            sourced: 0,
            exited: false,
            in_trap: false,
        }
    }

    pub fn on(&self, flag: Flag) -> bool {
        self.state.options.on(flag)
    }

    /// To standard error. Nobody is told if that fails.
    pub fn complain(&self, message: impl std::fmt::Display) {
        let _ = self.table.write(2, format!("sh: {message}\n").as_bytes());
    }

    /// An expansion that failed: what becomes of the shell is up to its reach.
    pub fn stopped(&mut self, stop: Stop) -> Outcome {
        if !stop.message.is_empty() {
            self.complain(&stop.message);
        }
        // bash's code for this is 127 in the shell that was started, 1 in its forks.
        let forked = self.state.subshells > 0 || self.on(Flag::ErrExit);
        let code = if stop.code == 127 && forked { 1 } else { stop.code };
        match stop.reach {
            Reach::Command => Ok(code),
            Reach::Line => Err(Flow::Discard(code)),
            Reach::Shell => Err(Flow::Exit(code)),
        }
    }

    /// Writes the whole output of a builtin.
    pub fn print(&self, name: &str, text: &[u8]) -> Outcome {
        if text.is_empty() {
            return Ok(0);
        }
        match self.table.write(1, text) {
            Ok(()) => Ok(0),
            Err(Errno::Closed) => Err(Flow::Killed(141)),
            Err(error) => {
                self.complain(format_args!("{name}: write error: {}", table::explain(error)));
                Ok(1)
            }
        }
    }

    /// A path as the host takes it.
    pub fn absolute(&self, path: &str) -> String {
        path::absolute(&self.state.cwd, path)
    }

    /// Returns the alias of a command's name, if aliases are expanded.
    pub fn alias(&self, name: &str) -> Option<String> {
        self.state.aliases.get(name).filter(|_| self.on(Flag::ExpandAliases)).cloned()
    }

    /// The file that the present command comes from, if it comes from one.
    pub fn file(&self) -> Option<&str> {
        let sourced = self.state.frames.iter().rev().find(|frame| frame.name == "source");
        sourced.map(|frame| frame.source.as_str()).or(self.state.script.as_deref())
    }

    /// The calls with the script around them, the innermost first.
    fn frames(&self) -> Vec<Frame> {
        let main = self.state.script.as_ref();
        let main = main.map(|script| Frame { name: "main".to_owned(), source: script.clone(), line: 0 });
        self.state.frames.iter().rev().cloned().chain(main).collect()
    }

    pub fn scalar(&self, name: &str) -> Option<String> {
        self.get(name).and_then(crate::expand::value::scalar)
    }

    /// One string of one word.
    pub fn text(&mut self, word: &Word) -> Result<String, Stop> {
        crate::expand::text(self, word)
    }
}

pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

impl Env for Shell {
    fn get(&self, name: &str) -> Option<Cow<'_, Value>> {
        if let Some(stored) = self.stored(name) {
            return stored;
        }
        let elements = |list: Vec<String>| Value::Indexed((0..).zip(list).collect());
        let value = match name {
            "RANDOM" => Value::Scalar(self.random().to_string()),
            "SECONDS" => Value::Scalar((now().saturating_sub(self.state.began) / 1000).to_string()),
            "EPOCHSECONDS" => Value::Scalar((now() / 1000).to_string()),
            "EPOCHREALTIME" => Value::Scalar(format!("{}.{:06}", now() / 1000, now() % 1000 * 1000)),
            "_" => Value::Scalar(self.state.last_argument.clone()),
            "BASHPID" => Value::Scalar((1 + self.state.subshells).to_string()),
            "LINENO" => Value::Scalar(self.line.to_string()),
            "PIPESTATUS" => elements(self.state.pipe_status.iter().map(u8::to_string).collect()),
            "FUNCNAME" if !self.state.frames.is_empty() => {
                elements(self.frames().into_iter().map(|frame| frame.name).collect())
            }
            "BASH_SOURCE" => elements(self.frames().into_iter().map(|frame| frame.source).collect()),
            "BASH_LINENO" => elements(self.frames().into_iter().map(|frame| frame.line.to_string()).collect()),
            "SHELLOPTS" => Value::Scalar(self.state.options.names(false)),
            "BASHOPTS" => Value::Scalar(self.state.options.names(true)),
            "BASH_SUBSHELL" => Value::Scalar(self.state.subshells.to_string()),
            "DIRSTACK" => {
                let rest = self.state.directories.iter().rev().cloned();
                elements(std::iter::once(self.state.cwd.clone()).chain(rest).collect())
            }
            _ => return None,
        };
        Some(Cow::Owned(value))
    }

    fn set(&mut self, name: &str, value: String) -> Result<(), Stop> {
        self.assign(name, value, false)
    }

    fn set_element(&mut self, name: &str, index: &str, value: String) -> Result<(), Stop> {
        self.assign_element(name, index, value, false)
    }

    fn set_array(&mut self, name: &str, elements: Vec<String>) -> Result<(), Stop> {
        self.assign_value(name, Value::Indexed((0..).zip(elements).collect()))
    }

    fn attributes(&self, name: &str) -> String {
        self.state.variables.get(self.target(name)).map(Variable::flags).unwrap_or_default()
    }

    fn names(&self, prefix: &str) -> Vec<String> {
        let from = self.state.variables.range(prefix.to_owned()..);
        let with_prefix = from.take_while(|(name, _)| name.starts_with(prefix));
        with_prefix.filter(|(_, variable)| variable.value.is_some()).map(|(name, _)| name.clone()).collect()
    }

    fn positional(&self) -> &[String] {
        &self.state.positional
    }

    fn special(&self, name: char) -> Option<String> {
        Some(match name {
            '?' => self.state.status.to_string(),
            '$' => "1".to_owned(),
            '!' => self.state.background?.to_string(),
            '#' => self.state.positional.len().to_string(),
            '-' => format!("{}{}", self.state.options.letters(), self.state.started),
            '0' => self.state.name.clone(),
            _ => return None,
        })
    }

    fn named_option(&self, name: &str) -> bool {
        options::named(name, false).is_some_and(|flag| self.on(flag))
    }

    fn option(&self, option: Opt) -> bool {
        self.on(match option {
            Opt::Braces => Flag::BraceExpand,
            Opt::SkipDots => Flag::GlobSkipDots,
            Opt::PatternReplacement => Flag::PatternReplacement,
            Opt::Nounset => Flag::NoUnset,
            Opt::Noglob => Flag::NoGlob,
            Opt::Nullglob => Flag::NullGlob,
            Opt::Dotglob => Flag::DotGlob,
            Opt::Failglob => Flag::FailGlob,
            Opt::Globstar => Flag::GlobStar,
            Opt::Extglob => Flag::ExtGlob,
            Opt::Nocaseglob => Flag::NoCaseGlob,
            Opt::Nocasematch => Flag::NoCaseMatch,
        })
    }

    fn substitute(&mut self, source: &str) -> Result<String, Stop> {
        crate::substitute::command(self, source)
    }

    fn cwd(&self) -> &str {
        &self.state.cwd
    }

    fn is_terminal(&self, number: u32) -> bool {
        self.table.is_terminal(number)
    }
}
