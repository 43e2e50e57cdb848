//! Sources that are run by this same shell (`eval`, `.`, traps), and how a shell ends.

use crate::options::Flag;
use crate::parse::script;
use crate::program::List;
use crate::shell::{Flow, Outcome, Shell};

impl Shell {
    /// `eval`, `.` and traps.
    pub fn source(&mut self, name: &str, source: &str) -> Outcome {
        match script(source) {
            Ok(lines) => self.deeper(name, |shell| shell.lines(&lines)),
            Err(error) => {
                self.complain(format_args!("{name}: {}", error.message));
                Ok(2)
            }
        }
    }

    /// One line after the other; an error that ends one leaves the next alone. A fork ends with it.
    pub fn lines(&mut self, lines: &[List]) -> Outcome {
        let mut code = 0;
        for line in lines {
            code = match self.list(line) {
                Err(Flow::Discard(code)) if self.state.subshells == 0 => {
                    self.state.status = code;
                    self.state.pipe_status = vec![code];
                    code
                }
                outcome => outcome?,
            };
        }
        Ok(code)
    }

    /// `set -v`.
    pub fn echo_source(&self, source: &str) {
        if self.on(Flag::Verbose) {
            let _ = self.table.write(2, format!("{}\n", source.trim_end_matches('\n')).as_bytes());
        }
    }

    /// A fork shows the traps that it comes from and does not run them.
    pub fn in_force(&self, name: &str) -> bool {
        !self.state.foreign_traps
            || match name {
                "ERR" => self.on(Flag::ErrTrace),
                "DEBUG" | "RETURN" => self.on(Flag::FuncTrace),
                _ => self.state.traps.get(name).is_some_and(String::is_empty),
            }
    }

    /// Runs the action of a trap, which sees and leaves the exit code as it was.
    pub fn run_trap(&mut self, name: &str) -> Result<(), Flow> {
        let Some(action) = self.state.traps.get(name).filter(|_| self.in_force(name)).cloned() else { return Ok(()) };
        if self.in_trap || action.is_empty() {
            return Ok(());
        }
        if name == "ERR" && !self.state.scopes.is_empty() && !self.on(Flag::ErrTrace) {
            return Ok(());
        }
        let status = self.state.status;
        let (line, offset) = (self.line, self.offset);
        let blame = self.blame.take();
        self.in_trap = true;
        self.offset = if name == "EXIT" { 0 } else { line.saturating_sub(1) };
        let outcome = self.source("trap", &action);
        self.in_trap = false;
        self.offset = offset;
        self.line = line;
        self.blame = blame;
        self.state.status = status;
        outcome.map(drop)
    }

    /// The exit code of a shell that has nothing more to do. `goes_on`: another line will follow.
    pub fn finish(&mut self, outcome: Outcome, goes_on: bool) -> u8 {
        let code = match outcome {
            Ok(code) | Err(Flow::Exit(code) | Flow::Return(code) | Flow::Discard(code)) => code,
            Err(Flow::Killed(code)) => return code,
            Err(Flow::Break(_) | Flow::Continue(_)) => 0,
        };
        if goes_on && !self.exited {
            return code;
        }
        self.state.status = code;
        self.in_trap = false;
        match self.run_trap("EXIT") {
            Err(Flow::Exit(code) | Flow::Killed(code)) => code,
            _ => code,
        }
    }
}
