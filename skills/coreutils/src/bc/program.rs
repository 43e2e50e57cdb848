//! A program as the parser reads it and the machine runs it.

use std::rc::Rc;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Raise,
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    And,
    Or,
}

/// A place that a value can be assigned to.
#[derive(Debug)]
pub enum Lvalue {
    Variable(String),
    Element(String, Box<Expression>),
    Ibase,
    Obase,
    Scale,
    Last,
}

#[derive(Debug)]
pub enum Expression {
    Number(String),
    Read(Lvalue),
    Assign(Lvalue, Option<Operator>, Box<Expression>),
    /// `++` and `--`, in front of the name or behind it.
    Step {
        place: Lvalue,
        up: bool,
        before: bool,
    },
    Negate(Box<Expression>),
    Not(Box<Expression>),
    Power(Box<Expression>, Box<Expression>),
    /// Operators of one strength, from left to right: `paste -sd+ | bc` makes long ones.
    Chain(Box<Expression>, Vec<(Operator, Expression)>),
    Call(String, Vec<Argument>),
    Length(Box<Expression>),
    ScaleOf(Box<Expression>),
    SquareRoot(Box<Expression>),
    Input,
    Group(Box<Expression>),
}

#[derive(Debug)]
pub enum Argument {
    Value(Expression),
    Array(String),
}

#[derive(Debug)]
pub enum Printed {
    Value(Expression),
    Text(String),
}

#[derive(Debug)]
pub enum Statement {
    Expression(Expression),
    Text(String),
    Print(Vec<Printed>),
    If(Expression, Box<Statement>, Option<Box<Statement>>),
    /// A condition, a step and a body; `for` has its first expression before it.
    Loop(Option<Expression>, Option<Expression>, Box<Statement>),
    Block(Vec<Statement>),
    Break,
    Continue,
    Return(Option<Expression>),
    Halt,
}

/// A parameter or a variable of a function's own.
#[derive(Debug, Clone)]
pub struct Local {
    pub name: String,
    pub array: bool,
    /// The caller's array itself, not a copy.
    pub reference: bool,
}

#[derive(Debug)]
pub struct Function {
    pub parameters: Vec<Local>,
    pub own: Vec<Local>,
    pub body: Vec<Statement>,
    pub void: bool,
}

/// A line of the program, or a function that begins there.
#[derive(Debug)]
pub enum Item {
    Statements(Vec<Statement>),
    Function(String, Rc<Function>),
    End,
}

/// From weak to strong; `!` stands between `&&` and the comparisons.
pub const LEVELS: &[&[(&str, Operator)]] = &[
    &[("||", Operator::Or)],
    &[("&&", Operator::And)],
    &[
        ("==", Operator::Equal),
        ("!=", Operator::Unequal),
        ("<=", Operator::LessOrEqual),
        (">=", Operator::GreaterOrEqual),
        ("<", Operator::Less),
        (">", Operator::Greater),
    ],
    &[("+", Operator::Add), ("-", Operator::Subtract)],
    &[("*", Operator::Multiply), ("/", Operator::Divide), ("%", Operator::Modulo)],
];

/// The level below `!`.
pub const COMPARISON: usize = 2;

pub const KEYWORDS: &[&str] = &[
    "auto", "break", "continue", "define", "else", "for", "halt", "ibase", "if", "last", "length", "limits", "obase",
    "print", "quit", "read", "return", "scale", "sqrt", "void", "warranty", "while",
];
