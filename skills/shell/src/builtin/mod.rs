//! The commands that the shell is made of.

mod calendar;
mod control;
mod declare;
mod directory;
mod echo;
mod getopts;
mod help;
mod inspect;
mod jobs;
mod printf;
mod read;
mod set;
mod test;
mod variables;

use crate::shell::{Outcome, Shell};
use crate::simple::{Operand, texts};

/// A builtin gets its name as the first argument.
type Plain = fn(&mut Shell, &[String]) -> Outcome;

#[derive(Clone, Copy)]
pub enum Builtin {
    Plain(Plain),
    /// Its operands may be assignments.
    Declaring(fn(&mut Shell, Vec<Operand>) -> Outcome),
}

/// Sorted by name.
const BUILTINS: &[(&str, Builtin)] = &[
    (".", Builtin::Plain(control::source)),
    (":", Builtin::Plain(control::nothing)),
    ("[", Builtin::Plain(test::bracket)),
    ("alias", Builtin::Plain(inspect::alias)),
    ("bg", Builtin::Plain(jobs::foreground)),
    ("break", Builtin::Plain(control::leave_loop)),
    ("builtin", Builtin::Plain(inspect::builtin)),
    ("cd", Builtin::Plain(directory::cd)),
    ("command", Builtin::Plain(inspect::command)),
    ("continue", Builtin::Plain(control::leave_loop)),
    ("declare", Builtin::Declaring(declare::declare)),
    ("dirs", Builtin::Plain(directory::dirs)),
    ("disown", Builtin::Plain(jobs::disown)),
    ("echo", Builtin::Plain(echo::echo)),
    ("eval", Builtin::Plain(control::eval)),
    ("exec", Builtin::Plain(control::exec)),
    ("exit", Builtin::Plain(control::exit)),
    ("export", Builtin::Declaring(declare::declare)),
    ("false", Builtin::Plain(control::failure)),
    ("fg", Builtin::Plain(jobs::foreground)),
    ("getopts", Builtin::Plain(getopts::getopts)),
    ("hash", Builtin::Plain(inspect::hash)),
    ("help", Builtin::Plain(help::help)),
    ("jobs", Builtin::Plain(jobs::jobs)),
    ("kill", Builtin::Plain(jobs::kill)),
    ("let", Builtin::Plain(test::arithmetic)),
    ("local", Builtin::Declaring(declare::declare)),
    ("mapfile", Builtin::Plain(read::mapfile)),
    ("popd", Builtin::Plain(directory::popd)),
    ("printf", Builtin::Plain(printf::printf)),
    ("pushd", Builtin::Plain(directory::pushd)),
    ("pwd", Builtin::Plain(directory::pwd)),
    ("read", Builtin::Plain(read::read)),
    ("readarray", Builtin::Plain(read::mapfile)),
    ("readonly", Builtin::Declaring(declare::declare)),
    ("return", Builtin::Plain(control::leave_function)),
    ("set", Builtin::Plain(set::set)),
    ("shift", Builtin::Plain(variables::shift)),
    ("shopt", Builtin::Plain(set::shopt)),
    ("source", Builtin::Plain(control::source)),
    ("test", Builtin::Plain(test::test)),
    ("times", Builtin::Plain(inspect::times)),
    ("trap", Builtin::Plain(control::trap)),
    ("true", Builtin::Plain(control::nothing)),
    ("type", Builtin::Plain(inspect::kind)),
    ("typeset", Builtin::Declaring(declare::declare)),
    ("ulimit", Builtin::Plain(inspect::limits)),
    ("umask", Builtin::Plain(inspect::umask)),
    ("unalias", Builtin::Plain(inspect::unalias)),
    ("unset", Builtin::Plain(variables::unset)),
    ("wait", Builtin::Plain(jobs::wait)),
];

pub const KEYWORDS: [&str; 22] = [
    "!", "[[", "]]", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in",
    "select", "then", "time", "until", "while", "{", "}",
];

pub fn find(name: &str) -> Option<Builtin> {
    let at = BUILTINS.binary_search_by(|(known, _)| (*known).cmp(name)).ok()?;
    Some(BUILTINS[at].1)
}

/// Whether `name a=b` is an assignment.
pub fn declares(name: &str) -> bool {
    matches!(find(name), Some(Builtin::Declaring(_)))
}

pub fn run(shell: &mut Shell, builtin: Builtin, operands: Vec<Operand>) -> Outcome {
    match builtin {
        Builtin::Plain(run) => run(shell, &texts(operands)),
        Builtin::Declaring(run) => run(shell, operands),
    }
}

/// Complains of a wrong use, which has the code 2.
fn misuse(shell: &Shell, name: &str, message: &str) -> Outcome {
    shell.complain(format_args!("{name}: {message}"));
    Ok(2)
}

fn failure(shell: &Shell, name: &str, message: &str) -> Outcome {
    shell.complain(format_args!("{name}: {message}"));
    Ok(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_builtin_is_found() {
        assert!(BUILTINS.iter().all(|(name, _)| find(name).is_some()));
        assert!(find("ls").is_none());
    }
}
