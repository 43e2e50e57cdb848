//! The shell: POSIX with what people use of bash, over the syntax tree of brush-parser.
//!
//! It starts nothing by itself. The host gives it channels for files and pipes, starts components as commands, and starts
//! this component again for whatever needs a process of its own: a fork is the shell's `state` as bytes.
//!
//! - `parse` and `lower` make a `program` of a source; `print` turns it into text again.
//! - `run` does lists, pipelines and compound commands (`select` that one), `simple` simple ones; `redirect`, `substitute`, `external` and `job`
//!   are what these need of the host; `builtin` has a file for each family.
//! - `expand`, `arith`, `pattern` and `condition` say what words mean.

mod arith;
mod builtin;
mod condition;
mod expand;
mod external;
mod job;
mod lower;
mod options;
mod parse;
mod path;
mod pattern;
mod print;
mod program;
mod redirect;
mod run;
mod script;
mod search;
mod select;
mod shell;
mod simple;
mod state;
mod substitute;
mod table;
mod variable;

// Builds for this machine, which are tests, export nothing.
#[cfg_attr(not(target_arch = "wasm32"), allow(unused_imports))]
#[rustfmt::skip]
mod bindings;

use bindings::exports::kiso::exec::shell::{Ended, Failure, Guest};
use shell::{Shell, now};
use state::{State, Work};
use table::Table;

struct Component;

impl Guest for Component {
    fn run(
        source: String,
        state: Vec<u8>,
        cwd: String,
        env: Vec<(String, String)>,
        args: Vec<String>,
        partial: bool,
    ) -> Ended {
        std::panic::set_hook(Box::new(report_panic));
        let table = Table::inherited();
        let nothing =
            |code, state, cwd, incomplete| Ended { code, failed: None, state, cwd, incomplete, exited: false };
        let restored = if state.is_empty() {
            let started = if partial { "s" } else { "c" }.to_owned();
            Ok(State { started, ..State::fresh(cwd.clone(), env, args, now()) })
        } else {
            state::decode(&state).map(|(state, _)| state)
        };
        let restored = match restored {
            Ok(restored) => restored,
            Err(message) => {
                Shell::new(State::default(), table).complain(message);
                return nothing(2, Vec::new(), cwd, false);
            }
        };
        let mut shell = Shell::new(restored, table);
        let lines = match parse::script(&source) {
            Ok(lines) => lines,
            Err(error) if partial && error.incomplete => return nothing(0, state, shell.state.cwd, true),
            Err(error) => {
                shell.complain(&error.message);
                shell.state.status = 2;
                return nothing(2, kept(&shell, partial), shell.state.cwd, false);
            }
        };
        shell.echo_source(&source);
        let outcome = shell.lines(&lines);
        // A shell at a terminal goes on with the next line, so its EXIT trap waits for `exit`.
        let code = shell.finish(outcome, partial);
        let failed = shell.blame.take().filter(|_| code != 0);
        let failed = failed.map(|blame| Failure { command: blame.command, line: blame.line, code });
        shell.state.status = code;
        Ended {
            code,
            failed,
            state: kept(&shell, partial),
            incomplete: false,
            exited: shell.exited,
            cwd: shell.state.cwd,
        }
    }

    fn resume(state: Vec<u8>) -> u8 {
        std::panic::set_hook(Box::new(report_panic));
        let table = Table::inherited();
        let (state, work) = match state::decode(&state) {
            Ok(image) => image,
            Err(message) => {
                Shell::new(State::default(), table).complain(message);
                return 2;
            }
        };
        let mut shell = Shell::new(state, table);
        let outcome = match work {
            Some(Work::List(list)) => shell.list(&list),
            Some(Work::Command(command)) => shell.list(&program::List::from_command(command)),
            Some(Work::Source(source)) => match parse::script(&source) {
                Ok(lines) => {
                    shell.echo_source(&source);
                    shell.lines(&lines)
                }
                Err(error) => {
                    shell.complain(&error.message);
                    Ok(2)
                }
            },
            None => Ok(0),
        };
        shell.finish(outcome, false)
    }
}

/// Reports a panic in words for the user; the panic's own text is for developers of the shell.
fn report_panic(_: &std::panic::PanicHookInfo) {
    eprintln!("sh: crashed: it cannot do this; the mistake is in the shell and not in the line");
}

/// Returns the state that the next line starts with; empty if there is none, because the state may be large.
fn kept(shell: &Shell, partial: bool) -> Vec<u8> {
    if partial { state::encode(&shell.state, &None) } else { Vec::new() }
}

#[cfg(target_arch = "wasm32")]
bindings::export!(Component with_types_in bindings);
