//! The program that the shell runs: the parser's tree without what only a parser needs, so that a fork can be sent in few bytes.
//!
//! Words are kept as they were written; `expand` reads them each time they are used. `lower` makes this from the tree of
//! brush-parser, `print` turns it into text again.

use std::rc::Rc;

use brush_parser::ast::{ExtendedTestExpr, Word};
use serde::{Deserialize, Serialize};

/// Commands one after the other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct List(pub Vec<Item>);

/// `a && b || c`, perhaps with `&` behind it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Item {
    pub first: Pipeline,
    pub rest: Vec<(Link, Pipeline)>,
    pub background: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Link {
    And,
    Or,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pipeline {
    pub time: Option<Clock>,
    pub negated: bool,
    pub stages: Vec<Command>,
}

/// How `time` writes what it measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Clock {
    Bash,
    Posix,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Command {
    /// Line of the source, from 1.
    pub line: u32,
    pub kind: Kind,
    /// Those of a simple command too, in the order in which they were written.
    pub redirections: Vec<Redirection>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Kind {
    Simple(Simple),
    Group(List),
    Subshell(List),
    If { branches: Vec<(List, List)>, otherwise: Option<List> },
    Loop { until: bool, condition: List, body: List },
    For { name: String, words: Option<Vec<Word>>, body: List },
    Select { name: String, words: Option<Vec<Word>>, body: List },
    ArithmeticFor { start: String, condition: String, step: String, body: List },
    Case { word: Word, items: Vec<CaseItem> },
    Arithmetic(String),
    Test(ExtendedTestExpr),
    Function { name: String, body: Rc<Command> },
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Simple {
    /// In front of the name.
    pub assignments: Vec<Assignment>,
    /// The name first.
    pub words: Vec<Argument>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Argument {
    Word(Word),
    /// `a=b` behind the name: an assignment for `export` and its like, a word for all others.
    Assignment(Assignment, Word),
    Process(Direction, List),
}

/// Of a process substitution: `<(…)` is read from, `>(…)` written to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Direction {
    Read,
    Write,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    pub name: String,
    pub index: Option<String>,
    pub value: Assigned,
    pub append: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Assigned {
    Scalar(Word),
    Array(Vec<(Option<Word>, Word)>),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseItem {
    pub patterns: Vec<Word>,
    pub body: List,
    pub then: Then,
}

/// The next step after the body of a `case` branch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Then {
    Leave,
    RunNext,
    TryNext,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Redirection {
    pub at: Descriptor,
    pub target: Target,
}

/// The file descriptor that is redirected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Descriptor {
    /// 0 or 1, as the operator says.
    Usual,
    Number(u32),
    /// `{name}>`: one that is free, stored in this variable.
    Name(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Target {
    File(Access, Word),
    /// `>&word` or `<&word`: a number, `-`, or for `>&` a file.
    Duplicate {
        output: bool,
        word: Word,
    },
    Process(Access, Direction, List),
    Both {
        append: bool,
        word: Word,
    },
    Document {
        text: String,
        expand: bool,
    },
    Text(Word),
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Access {
    Read,
    Write,
    /// `>|`, which `set -C` does not stop.
    Clobber,
    Append,
    ReadWrite,
}

impl Access {
    /// The number that the operator redirects if none is written.
    pub fn number(self) -> u32 {
        match self {
            Access::Read | Access::ReadWrite => 0,
            Access::Write | Access::Clobber | Access::Append => 1,
        }
    }
}

impl List {
    /// One command.
    pub fn from_command(command: Command) -> List {
        let first = Pipeline { time: None, negated: false, stages: vec![command] };
        List(vec![Item { first, rest: Vec::new(), background: false }])
    }
}
