//! Sources that are run by this same shell (`eval`, `.`, traps), and how a shell ends.

use crate::options::Flag;
use crate::parse::parse;
use crate::shell::{Flow, Outcome, Shell};

impl Shell {
    /// `eval`, `.` and traps.
    pub fn source(&mut self, name: &str, source: &str) -> Outcome {
        match parse(source) {
            Ok(list) => self.deeper(name, |shell| shell.list(&list)),
            Err(error) => {
                self.complain(format_args!("{name}: {}", error.message));
                Ok(2)
            }
        }
    }

    /// `set -v`.
    pub fn echo_source(&self, source: &str) {
        if self.on(Flag::Verbose) {
            let _ = self.table.write(2, format!("{}\n", source.trim_end_matches('\n')).as_bytes());
        }
    }

    /// Runs the action of a trap, which sees and leaves the exit code as it was.
    pub fn run_trap(&mut self, name: &str) -> Result<(), Flow> {
        let Some(action) = self.state.traps.get(name).cloned() else { return Ok(()) };
        if self.in_trap || action.is_empty() {
            return Ok(());
        }
        if name == "ERR" && !self.state.scopes.is_empty() && !self.on(Flag::ErrTrace) {
            return Ok(());
        }
        let status = self.state.status;
        let line = self.line;
        let blame = self.blame.take();
        self.in_trap = true;
        let outcome = self.source("trap", &action);
        self.in_trap = false;
        self.line = line;
        self.blame = blame;
        self.state.status = status;
        outcome.map(drop)
    }

    /// The exit code of a shell that has nothing more to do. `goes_on`: another line will follow.
    pub fn finish(&mut self, outcome: Outcome, goes_on: bool) -> u8 {
        let code = match outcome {
            Ok(code) | Err(Flow::Exit(code) | Flow::Return(code)) => code,
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
