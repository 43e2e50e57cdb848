//! All that the shell remembers: what goes from one line to the next and from a shell to its forks.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use crate::expand::Value;
use crate::options::Options;
use crate::program::{Command, List};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct State {
    pub variables: BTreeMap<String, Variable>,
    /// One for each function that is being called: what its locals hide.
    pub scopes: Vec<Scope>,
    pub functions: BTreeMap<String, Rc<Command>>,
    pub traps: BTreeMap<String, String>,
    /// They are those of the shell that this one was forked from.
    pub foreign_traps: bool,
    pub aliases: BTreeMap<String, String>,
    /// Calls of functions and sourced files, the innermost last.
    pub frames: Vec<Frame>,
    /// The file that each function comes from, where it comes from one.
    pub sources: BTreeMap<String, String>,
    /// The file that is being run, if it is not a command line.
    pub script: Option<String>,
    pub options: Options,
    /// `$0`.
    pub name: String,
    /// The letter of `$-` for how it was started: `c` with a command line, `s` with standard input.
    pub started: String,
    pub positional: Vec<String>,
    pub cwd: String,
    /// Directories that `pushd` left, the newest last.
    pub directories: Vec<String>,
    pub status: u8,
    pub pipe_status: Vec<u8>,
    /// `$_`.
    pub last_argument: String,
    /// `$!`.
    pub background: Option<u32>,
    pub umask: u32,
    /// The programs that were started, by path, and how often: `hash`.
    pub hashed: BTreeMap<String, u32>,
    /// When the shell began, in milliseconds since 1970: `SECONDS` counts from there.
    pub began: u64,
    /// The state of `RANDOM`.
    pub random: Cell<u64>,
    /// `OPTIND` as `getopts` left it, and the next letter of that operand.
    pub option_place: (usize, usize),
    /// How many forks are between this shell and the one that the host started.
    pub subshells: u32,
    /// How many of them are for `$(…)`: `set -x` repeats its mark for each.
    pub substitutions: u32,
    /// It was forked where a failure is asked for, so `set -e` does nothing in it, whoever sets it.
    pub forgiving: bool,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Variable {
    /// Absent: declared, but not set.
    pub value: Option<Value>,
    pub exported: bool,
    pub readonly: bool,
    pub integer: bool,
    pub case: Option<Case>,
    /// `declare -n`: the value is the name of the target.
    pub reference: bool,
}

impl Variable {
    /// As `declare -p` writes its attributes.
    pub fn flags(&self) -> String {
        let marks = [
            (matches!(self.value, Some(Value::Indexed(_))), 'a'),
            (matches!(self.value, Some(Value::Keyed(_))), 'A'),
            (self.integer, 'i'),
            (self.reference, 'n'),
            (self.readonly, 'r'),
            (self.exported, 'x'),
            (self.case == Some(Case::Lower), 'l'),
            (self.case == Some(Case::Upper), 'u'),
        ];
        marks.into_iter().filter(|(on, _)| *on).map(|(_, flag)| flag).collect()
    }
}

/// One call, for `FUNCNAME`, `BASH_SOURCE` and `BASH_LINENO`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Frame {
    pub name: String,
    /// The file that it runs.
    pub source: String,
    /// Where it was called.
    pub line: u32,
}

/// `declare -l` and `declare -u`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Case {
    Lower,
    Upper,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Scope {
    /// The function's name.
    pub function: String,
    /// The variables that its locals hide; `None` if there was no such variable.
    pub hidden: BTreeMap<String, Option<Variable>>,
}

/// The work of a fork.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Work {
    List(List),
    Command(Command),
    /// Text of a script, as `sh -c` and `sh FILE` run it.
    Source(String),
}

#[derive(Serialize)]
struct SentImage<'a> {
    version: u8,
    state: &'a State,
    work: &'a Option<Work>,
}

#[derive(Deserialize)]
struct Image {
    version: u8,
    state: State,
    work: Option<Work>,
}

/// Must be increased with each change of the stored form.
const VERSION: u8 = 4;

/// The state as bytes, perhaps with something to do.
pub fn encode(state: &State, work: &Option<Work>) -> Vec<u8> {
    // Writing into memory fails for no value that can be made.
    postcard::to_allocvec(&SentImage { version: VERSION, state, work }).unwrap_or_default()
}

pub fn decode(bytes: &[u8]) -> Result<(State, Option<Work>), String> {
    let image: Image =
        postcard::from_bytes(bytes).map_err(|error| format!("this is no state of the shell: {error}"))?;
    if image.version != VERSION {
        return Err(format!("this is a state of version {}, and only {VERSION} is known", image.version));
    }
    Ok((image.state, image.work))
}

/// Variables that the environment cannot set.
const OWN: [&str; 5] = ["PPID", "UID", "EUID", "SHELLOPTS", "BASHOPTS"];

impl State {
    /// A shell that has just been started.
    pub fn fresh(cwd: String, env: Vec<(String, String)>, positional: Vec<String>, now: u64) -> State {
        let mut state = State {
            name: "sh".to_owned(),
            positional,
            cwd,
            umask: 0o022,
            began: now,
            random: Cell::new(now | 1),
            ..State::default()
        };
        let env = env.into_iter().filter(|(name, _)| !OWN.contains(&name.as_str()));
        for (name, value) in [
            ("IFS", " \t\n"),
            ("PS4", "+ "),
            ("OPTIND", "1"),
            ("PPID", "0"),
            ("UID", "0"),
            ("EUID", "0"),
            ("OSTYPE", "wasi"),
        ] {
            let readonly = OWN.contains(&name);
            let variable = Variable { value: Some(Value::Scalar(value.to_owned())), readonly, ..Variable::default() };
            state.variables.insert(name.to_owned(), variable);
        }
        for (name, value) in env {
            let variable = Variable { value: Some(Value::Scalar(value)), exported: true, ..Variable::default() };
            state.variables.insert(name, variable);
        }
        let pwd = Variable { value: Some(Value::Scalar(state.cwd.clone())), exported: true, ..Variable::default() };
        state.variables.insert("PWD".to_owned(), pwd);
        state
    }

    /// The environment of a command.
    pub fn exported(&self) -> Vec<(String, String)> {
        let scalar = |(name, variable): (&String, &Variable)| match &variable.value {
            Some(Value::Scalar(value)) if variable.exported => Some((name.clone(), value.clone())),
            _ => None,
        };
        self.variables.iter().filter_map(scalar).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;

    #[test]
    fn a_state_survives_the_way_to_a_fork() {
        let env = vec![("A".to_owned(), "ä b".to_owned())];
        let mut state = State::fresh("/work".to_owned(), env, vec!["x".to_owned()], 7);
        let list = parse("f() { [[ $1 == a* ]] && cat <<E; }\n$1\nE\nfor i in 1 2; do f $i | wc -l >o 2>&1; done")
            .expect("a program");
        state.functions.insert(
            "f".to_owned(),
            Rc::new(Command { line: 1, kind: crate::program::Kind::Group(list.clone()), redirections: Vec::new() }),
        );
        let bytes = encode(&state, &Some(Work::List(list.clone())));
        let (back, work) = decode(&bytes).expect("a state");
        assert_eq!(back.exported(), state.exported());
        assert_eq!(back.functions, state.functions);
        assert!(matches!(work, Some(Work::List(sent)) if sent == list));
        assert!(bytes.len() < 1000, "{} bytes", bytes.len());
    }

    #[test]
    fn a_broken_state_is_an_error() {
        let bytes = encode(&State::default(), &None);
        assert!(decode(&bytes[..bytes.len() / 2]).is_err());
        assert!(decode(&[9; 40]).is_err());
        assert!(decode(&[]).is_err());
    }
}
