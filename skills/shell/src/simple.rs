//! Simple commands: expand, redirect, assign, then call a function, a builtin or a component.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::rc::Rc;

use crate::builtin;
use crate::expand::{self, Stop};
use crate::external::Started;
use crate::options::Flag;
use crate::print;
use crate::program::{Argument, Assigned, Assignment, Command, Simple, Target};
use crate::shell::{Flow, Outcome, Shell};
use crate::state::{Frame, Scope, Variable};
use crate::table::Table;

/// How deep calls and compound commands may be nested while they run, so that 500 calls with an `if` in each are
/// possible. Each takes about 1 KiB of the host's stack of 4 MiB and less of the one that `build.rs` asks for; the rest is
/// for the parser and for expansion.
const DEEPEST: u32 = 1600;

/// An argument of a builtin.
pub enum Operand<'a> {
    Text(String),
    /// For `declare` and its like, which do the assignment themselves.
    Assignment(&'a Assignment),
}

type Hidden = BTreeMap<String, Option<Variable>>;

impl Shell {
    pub fn simple(&mut self, command: &Command, simple: &Simple) -> Outcome {
        let files = self.temporary.len();
        let saved = self.table.clone();
        self.substituted = None;
        let outcome = self.expanded(command, simple);
        // `exec >file` keeps what it has done to the table.
        if !matches!(&outcome, Ok((_, true))) {
            self.table = saved;
        }
        self.remove_temporary(files);
        let code = match outcome {
            Ok((code, _)) => code,
            Err(flow) => {
                if let Flow::Exit(code) | Flow::Killed(code) | Flow::Return(code) | Flow::Discard(code) = flow
                    && code != 0
                    && self.blame.as_ref().is_none_or(|blame| blame.code != code)
                {
                    self.blame(command, command.line, code);
                }
                return Err(flow);
            }
        };
        // A function's own commands know better which of them it was.
        let is_known = self.blame.as_ref().is_some_and(|blame| blame.code == code) && self.is_call(simple);
        if code != 0 && !is_known {
            self.blame(command, command.line, code);
        }
        Ok(code)
    }

    fn is_call(&self, simple: &Simple) -> bool {
        matches!(simple.words.first(), Some(Argument::Word(word))
            if self.state.functions.contains_key(&word.value) || matches!(word.value.as_str(), "eval" | "." | "source"))
    }

    /// The code, and whether the redirections stay.
    fn expanded(&mut self, command: &Command, simple: &Simple) -> Result<(u8, bool), Flow> {
        let operands = match self.operands(simple) {
            Ok(operands) => operands,
            Err(stop) => return self.stopped(stop).map(|code| (code, false)),
        };
        let Some(Operand::Text(name)) = operands.first() else {
            return self.assignments_only(command, simple).map(|code| (code, false));
        };
        let name = name.clone();
        let mut hidden = Hidden::new();
        if let Err(stop) = self.assign_for_command(&simple.assignments, &mut hidden) {
            self.restore(hidden);
            return self.stopped(stop).map(|code| (code, false));
        }
        if self.on(Flag::XTrace) {
            // Before standard error goes elsewhere.
            self.trace(traced(&operands));
        }
        match self.redirect(&command.redirections) {
            Ok(0) => {}
            failed => {
                self.restore(hidden);
                return failed.map(|code| (code, false));
            }
        }
        self.state.last_argument = match operands.last() {
            Some(Operand::Text(text)) => text.clone(),
            Some(Operand::Assignment(assignment)) => assignment.name.clone(),
            None => String::new(),
        };
        let outcome = self.dispatch(&name, operands);
        self.restore(hidden);
        outcome.map(|code| (code, name == "exec" && code == 0))
    }

    fn assignments_only(&mut self, command: &Command, simple: &Simple) -> Outcome {
        for assignment in &simple.assignments {
            if let Err(stop) = self.assignment(assignment) {
                return self.stopped(stop);
            }
        }
        match self.redirect(&command.redirections)? {
            0 => Ok(self.substituted.unwrap_or(0)),
            code => Ok(code),
        }
    }

    /// `A=1 command`: for this command only.
    fn assign_for_command(&mut self, assignments: &[Assignment], hidden: &mut Hidden) -> Result<(), Stop> {
        for assignment in assignments {
            let before = self.state.variables.get(&assignment.name).cloned();
            if before.as_ref().is_some_and(|variable| variable.readonly) {
                // The command runs without it.
                self.complain(format_args!("{}: readonly variable", assignment.name));
                continue;
            }
            hidden.entry(assignment.name.clone()).or_insert(before);
            self.assignment(assignment)?;
            if let Some(variable) = self.state.variables.get_mut(&assignment.name) {
                variable.exported = true;
            }
        }
        Ok(())
    }

    fn operands<'a>(&mut self, simple: &'a Simple) -> Result<Vec<Operand<'a>>, Stop> {
        let mut operands = Vec::with_capacity(simple.words.len());
        // Behind `command` or `builtin` their assignments are words like others.
        let declares = matches!(simple.words.first(), Some(Argument::Word(word)) if builtin::declares(&word.value));
        for argument in &simple.words {
            match argument {
                Argument::Word(word) => operands.extend(expand::word(self, word)?.into_iter().map(Operand::Text)),
                Argument::Assignment(assignment, _) if declares => operands.push(Operand::Assignment(assignment)),
                Argument::Assignment(_, word) => {
                    operands.extend(expand::word(self, word)?.into_iter().map(Operand::Text));
                }
                Argument::Process(direction, list) => {
                    operands.push(Operand::Text(self.process_file(*direction, list)?));
                }
            }
        }
        Ok(operands)
    }

    fn dispatch(&mut self, name: &str, operands: Vec<Operand>) -> Outcome {
        if let Some(body) = self.state.functions.get(name).map(Rc::clone) {
            let arguments = texts(operands).into_iter().skip(1).collect();
            return self.call(name, &body, arguments);
        }
        match builtin::find(name) {
            Some(builtin) => builtin::run(self, builtin, operands),
            None => {
                let table = self.table.clone();
                Ok(self.start_external(texts(operands), &table).wait())
            }
        }
    }

    pub fn call(&mut self, name: &str, body: &Command, arguments: Vec<String>) -> Outcome {
        let positional = std::mem::replace(&mut self.state.positional, arguments);
        self.state.scopes.push(Scope { function: name.to_owned(), hidden: Hidden::new() });
        let source = self.state.sources.get(name).cloned().unwrap_or_else(|| "environment".to_owned());
        self.state.frames.push(Frame { name: name.to_owned(), source, line: self.line });
        let line = self.line;
        let (loops, offset) = (std::mem::take(&mut self.loops), std::mem::take(&mut self.offset));
        // These two are a function's own.
        let own = if self.on(Flag::FuncTrace) { [""; 2] } else { ["DEBUG", "RETURN"] };
        let hidden = own.map(|name| self.state.traps.remove_entry(name));
        let outcome = self.deeper(name, |shell| shell.command(body));
        let trapped = self.run_trap("RETURN");
        for (name, action) in hidden.into_iter().flatten() {
            self.state.traps.entry(name).or_insert(action);
        }
        (self.loops, self.offset, self.line) = (loops, offset, line);
        self.state.frames.pop();
        if let Some(scope) = self.state.scopes.pop() {
            self.restore(scope.hidden);
        }
        self.state.positional = positional;
        trapped?;
        match outcome {
            Err(Flow::Return(code)) => Ok(code),
            outcome => outcome,
        }
    }

    /// Counts how deep calls are nested; a compound command has no name. The shell ends when they are too deep: to fail
    /// with a code would let `f() { f; f; }` go on for ever.
    pub fn deeper(&mut self, name: &str, run: impl FnOnce(&mut Shell) -> Outcome) -> Outcome {
        if self.depth >= DEEPEST {
            let function = self.state.scopes.last().map(|scope| scope.function.as_str());
            let name = if name.is_empty() { function.unwrap_or("line") } else { name };
            self.complain(format_args!("{name}: calls itself too deep: more than {DEEPEST} nested calls and commands"));
            return Err(Flow::Exit(1));
        }
        self.depth += 1;
        let outcome = run(self);
        self.depth -= 1;
        outcome
    }

    /// Whether this command needs no shell around it: its name is a component's, and reading its words changes nothing
    /// that anybody could see.
    pub fn is_direct(&self, command: &Command, simple: &Simple) -> bool {
        let Some(Argument::Word(name)) = simple.words.first() else { return false };
        let is_name = name.value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.+/".contains(&byte));
        is_name
            && !self.on(Flag::XTrace)
            && builtin::find(&name.value).is_none()
            && !self.state.functions.contains_key(&name.value)
            && simple.assignments.iter().all(|assignment| match &assignment.value {
                Assigned::Scalar(word) => is_calm(&word.value),
                Assigned::Array(_) => false,
            })
            && simple.words.iter().all(|argument| match argument {
                Argument::Word(word) | Argument::Assignment(_, word) => is_calm(&word.value),
                Argument::Process(..) => false,
            })
            && command.redirections.iter().all(|redirection| match &redirection.target {
                Target::File(_, word) | Target::Text(word) => is_calm(&word.value),
                Target::Duplicate { word, .. } | Target::Both { word, .. } => is_calm(&word.value),
                Target::Document { text, expand } => !expand || is_calm(text),
                Target::Process(..) => false,
            })
    }

    /// Starts such a command. What goes wrong before it runs goes wrong in its place, not in this shell.
    pub fn start_simple(&mut self, command: &Command, simple: &Simple, table: &Table) -> Started {
        let saved = std::mem::replace(&mut self.table, table.clone());
        let line = std::mem::replace(&mut self.line, command.line);
        // A fork remembers by itself which programs it started.
        let hashed = self.state.hashed.clone();
        let mut hidden = Hidden::new();
        let started = self.prepared(command, simple, &mut hidden);
        self.restore(hidden);
        self.line = line;
        self.state.hashed = hashed;
        self.table = saved;
        match started {
            Ok(started) => started,
            Err(Flow::Exit(code) | Flow::Killed(code) | Flow::Return(code) | Flow::Discard(code)) => {
                Started::Ended(code)
            }
            Err(Flow::Break(_) | Flow::Continue(_)) => Started::Ended(0),
        }
    }

    fn prepared(&mut self, command: &Command, simple: &Simple, hidden: &mut Hidden) -> Result<Started, Flow> {
        let operands = match self.operands(simple) {
            Ok(operands) => operands,
            Err(stop) => return self.stopped(stop).map(Started::Ended),
        };
        match self.redirect(&command.redirections)? {
            0 => {}
            code => return Ok(Started::Ended(code)),
        }
        if let Err(stop) = self.assign_for_command(&simple.assignments, hidden) {
            return self.stopped(stop).map(Started::Ended);
        }
        let table = self.table.clone();
        Ok(self.start_external(texts(operands), &table))
    }

    /// A line of `set -x`.
    pub fn trace(&self, text: impl Display) {
        let prompt = self.scalar("PS4").unwrap_or_default();
        let mark = prompt.chars().next().unwrap_or('+');
        let repeated: String = std::iter::repeat_n(mark, self.state.substitutions as usize).collect();
        let _ = self.table.write(2, format!("{repeated}{prompt}{text}\n").as_bytes());
    }
}

pub fn texts(operands: Vec<Operand>) -> Vec<String> {
    operands
        .into_iter()
        .map(|operand| match operand {
            Operand::Text(text) => text,
            Operand::Assignment(assignment) => assignment.to_string(),
        })
        .collect()
}

fn traced(operands: &[Operand]) -> String {
    let words: Vec<String> = operands
        .iter()
        .map(|operand| match operand {
            Operand::Text(text) => print::quote(text),
            Operand::Assignment(assignment) => assignment.to_string(),
        })
        .collect();
    words.join(" ")
}

/// Whether reading a word changes neither variables nor what a process could read or write.
pub fn is_calm(word: &str) -> bool {
    if !word.contains(['$', '`']) {
        return true;
    }
    let is_arithmetic_or_command = word.contains("$(") || word.contains("$[") || word.contains('`');
    !is_arithmetic_or_command && !word.split("${").skip(1).any(|rest| rest.contains(['=', '?', '[']))
}
