//! A parsed program. Names are already numbers of slots.

use crate::regex::Regex;
use crate::value::Text;

pub struct Program {
    pub begin: Vec<Vec<Statement>>,
    pub rules: Vec<Rule>,
    pub end: Vec<Vec<Statement>>,
    pub begin_file: Vec<Vec<Statement>>,
    pub end_file: Vec<Vec<Statement>>,
    pub functions: Vec<Function>,
    /// The names of the global variables, by slot; the first ones are those of [`Special`].
    pub globals: Vec<String>,
}

pub struct Rule {
    pub pattern: Pattern,
    /// Nothing prints the record.
    pub action: Option<Vec<Statement>>,
}

pub enum Pattern {
    Always,
    When(Expr),
    /// From a record to a record. The number says which range of the program it is.
    Range(Expr, Expr, usize),
}

pub struct Function {
    pub name: String,
    pub parameters: usize,
    pub body: Vec<Statement>,
    /// How deep its statements and expressions are nested, which is what a call takes of the stack.
    pub depth: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Slot {
    Global(usize),
    Local(usize),
}

macro_rules! specials {
    ($($name:ident $text:literal),* $(,)?) => {
        /// The variables that mean something to the interpreter, in the order of their slots.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum Special { $($name),* }
        pub const SPECIALS: &[(&str, Special)] = &[$(($text, Special::$name)),*];
    };
}

specials! {
    Nf "NF", Nr "NR", Fnr "FNR", Fs "FS", Ofs "OFS", Ors "ORS", Rs "RS", Subsep "SUBSEP", Convfmt "CONVFMT", Ofmt "OFMT",
    Ignorecase "IGNORECASE", Fieldwidths "FIELDWIDTHS", Fpat "FPAT", Rstart "RSTART", Rlength "RLENGTH",
    Filename "FILENAME", Rt "RT", Environ "ENVIRON", Argc "ARGC", Argv "ARGV", Argind "ARGIND", Errno "ERRNO",
    Procinfo "PROCINFO",
}

impl Special {
    pub const fn slot(self) -> usize {
        self as usize
    }
}

pub enum Statement {
    Expr(Expr),
    Print(Vec<Expr>, Option<Redirect>),
    Printf(Vec<Expr>, Option<Redirect>),
    If(Expr, Vec<Statement>, Vec<Statement>),
    While(Expr, Vec<Statement>),
    Do(Vec<Statement>, Expr),
    For(Option<Expr>, Option<Expr>, Option<Expr>, Vec<Statement>),
    ForIn(Lvalue, ArrayRef, Vec<Statement>),
    Switch(Expr, Vec<(Case, Vec<Statement>)>),
    Break,
    Continue,
    Next,
    NextFile,
    Exit(Option<Expr>),
    Return(Option<Expr>),
    Delete(ArrayRef, Vec<Expr>),
    DeleteAll(ArrayRef),
    Block(Vec<Statement>),
}

pub enum Case {
    Value(Expr),
    Regex(Regex),
    Default,
}

pub struct Redirect {
    pub to: Target,
    pub name: Expr,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    File,
    Append,
    Command,
}

pub enum ArrayRef {
    Variable(Slot),
    /// An array that is an element of another.
    Element(Box<ArrayRef>, Vec<Expr>),
}

pub enum Lvalue {
    Variable(Slot),
    Field(Expr),
    Element(ArrayRef, Vec<Expr>),
}

pub enum Expr {
    Number(f64),
    Text(Text),
    /// `/re/` by itself is matched against the record.
    Regex(Regex),
    /// In parentheses.
    Group(Box<Expr>),
    Place(Box<Lvalue>),
    Assign(Box<Lvalue>, Box<Expr>),
    /// `x = x a b`, which adds to the end of `x`.
    Append(Slot, Vec<Expr>),
    Update(Operator, Box<Lvalue>, Box<Expr>),
    /// `++` and `--`; `true`: the value is the one before.
    Step(Box<Lvalue>, f64, bool),
    Binary(Operator, Box<Expr>, Box<Expr>),
    Compare(Comparison, Box<Expr>, Box<Expr>),
    Concat(Vec<Expr>),
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    Not(Box<Expr>),
    Negate(Box<Expr>),
    Plus(Box<Expr>),
    Conditional(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `true`: it must not match.
    Match(Box<Expr>, Box<Expr>, bool),
    In(ArrayRef, Vec<Expr>),
    Call(usize, Vec<Expr>),
    Builtin(Builtin, Vec<Expr>),
    Getline(Source, Option<Box<Lvalue>>),
}

pub enum Source {
    Main,
    File(Box<Expr>),
    Command(Box<Expr>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Power,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Comparison {
    Less,
    LessEqual,
    Equal,
    NotEqual,
    Greater,
    GreaterEqual,
}

macro_rules! builtins {
    ($($name:ident $text:literal $least:literal..=$most:literal),* $(,)?) => {
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum Builtin { $($name),* }
        /// Name and how many arguments are taken, at least and at most.
        pub const BUILTINS: &[(&str, Builtin, usize, usize)] = &[$(($text, Builtin::$name, $least, $most)),*];
    };
}

/// More than a call may be given.
pub const ANY: usize = 1000;

builtins! {
    Length "length" 0..=1, Substr "substr" 2..=3, Index "index" 2..=2, Split "split" 2..=4, Sub "sub" 2..=3,
    Gsub "gsub" 2..=3, Match "match" 2..=3, Sprintf "sprintf" 1..=1000, Sin "sin" 1..=1, Cos "cos" 1..=1,
    Atan2 "atan2" 2..=2, Exp "exp" 1..=1, Log "log" 1..=1, Sqrt "sqrt" 1..=1, Int "int" 1..=1, Rand "rand" 0..=0,
    Srand "srand" 0..=1, Tolower "tolower" 1..=1, Toupper "toupper" 1..=1, System "system" 1..=1, Close "close" 1..=2,
    Fflush "fflush" 0..=1,
    // Those of gawk, whose names a program may define itself.
    Gensub "gensub" 3..=4, Strftime "strftime" 0..=3, Systime "systime" 0..=0, Mktime "mktime" 1..=2, And "and" 2..=1000,
    Or "or" 2..=1000, Xor "xor" 2..=1000, Lshift "lshift" 2..=2, Rshift "rshift" 2..=2, Compl "compl" 1..=1,
    Strtonum "strtonum" 1..=1, Asort "asort" 1..=3, Asorti "asorti" 1..=3, Isarray "isarray" 1..=1, Typeof "typeof" 1..=1,
    Patsplit "patsplit" 2..=4,
}
