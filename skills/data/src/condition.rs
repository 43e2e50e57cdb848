//! Conditions on rows: `temp > 20`, `city is not Oslo`, `date >= 2024-03`, `name contains foo`, `rain is empty`.
//!
//! The column's kind decides how its values are compared: numbers and dates as such, text without regard to case.
//! A date may be given in part: `date = 2024-03` holds for all of that March. A missing value only satisfies
//! `is empty`. `and` and `or` may join conditions; `or` binds weaker.

use crate::group;
use kiso_sdk::Failure;
use std::borrow::Cow;
use std::cmp::Ordering;
use table::date::{self, Order};
use table::number::{self, Style};
use table::{Column, Kind, Table, Values, name};

/// A condition that is bound to the columns of a table.
#[derive(Debug)]
pub enum Test<'t> {
    All(Vec<Self>),
    Any(Vec<Self>),
    Empty {
        column: Cow<'t, Column>,
        wanted: bool,
    },
    Number {
        column: Cow<'t, Column>,
        is: Compare,
        value: f64,
    },
    Integer {
        column: Cow<'t, Column>,
        is: Compare,
        value: i128,
    },
    /// Against a span, from its start until just before its end.
    Date {
        column: Cow<'t, Column>,
        is: Compare,
        span: (f64, f64),
    },
    Columns {
        left: Cow<'t, Column>,
        is: Compare,
        right: Cow<'t, Column>,
    },
    Text {
        column: Cow<'t, Column>,
        is: Matches,
        value: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compare {
    Equal,
    NotEqual,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Matches {
    Compares(Compare),
    Contains,
    ContainsNot,
    StartsWith,
    EndsWith,
}

#[derive(Debug, Clone, Copy)]
enum Operator {
    Empty(bool),
    Is(Matches),
}

use Compare::{AtLeast, AtMost, Equal, Greater, Less, NotEqual};

const fn compares(compare: Compare) -> Operator {
    Operator::Is(Matches::Compares(compare))
}

/// Those that begin alike stand with the longer one first.
const OPERATORS: [(&str, Operator); 40] = [
    (">=", compares(AtLeast)),
    ("<=", compares(AtMost)),
    ("!=", compares(NotEqual)),
    ("<>", compares(NotEqual)),
    ("==", compares(Equal)),
    ("=", compares(Equal)),
    (">", compares(Greater)),
    ("<", compares(Less)),
    ("≥", compares(AtLeast)),
    ("≤", compares(AtMost)),
    ("≠", compares(NotEqual)),
    ("is not empty", Operator::Empty(false)),
    ("is not missing", Operator::Empty(false)),
    ("is empty", Operator::Empty(true)),
    ("is missing", Operator::Empty(true)),
    ("does not contain", Operator::Is(Matches::ContainsNot)),
    ("contains", Operator::Is(Matches::Contains)),
    ("starts with", Operator::Is(Matches::StartsWith)),
    ("ends with", Operator::Is(Matches::EndsWith)),
    ("is greater than", compares(Greater)),
    ("is more than", compares(Greater)),
    ("is less than", compares(Less)),
    ("is at least", compares(AtLeast)),
    ("is at most", compares(AtMost)),
    ("is above", compares(Greater)),
    ("is over", compares(Greater)),
    ("is below", compares(Less)),
    ("is under", compares(Less)),
    ("is after", compares(Greater)),
    ("is before", compares(Less)),
    ("is not", compares(NotEqual)),
    ("is", compares(Equal)),
    ("above", compares(Greater)),
    ("over", compares(Greater)),
    ("below", compares(Less)),
    ("under", compares(Less)),
    ("after", compares(Greater)),
    ("before", compares(Less)),
    ("since", compares(AtLeast)),
    ("equals", compares(Equal)),
];

/// Parses a condition. Codes: "bad-expression", "unknown-column", "wrong-type".
pub fn parse<'t>(table: &'t Table, text: &str) -> Result<Test<'t>, Failure> {
    let mut any = Vec::new();
    for part in split(table, text, " or ") {
        let all = split(table, part, " and ").into_iter().map(|p| single(table, p)).collect::<Result<Vec<_>, _>>()?;
        any.push(one_or(all, Test::All));
    }
    Ok(one_or(any, Test::Any))
}

fn one_or<'t>(mut tests: Vec<Test<'t>>, join: fn(Vec<Test<'t>>) -> Test<'t>) -> Test<'t> {
    if tests.len() == 1 { tests.remove(0) } else { join(tests) }
}

/// Splits at `word` where a condition follows; elsewhere the word is part of a value, as in "Trinidad and Tobago".
fn split<'a>(table: &Table, text: &'a str, word: &str) -> Vec<&'a str> {
    let mut parts = Vec::new();
    let (mut start, mut from) = (0, 0);
    while let Some(i) = find_word(text, word, from) {
        from = i + word.len();
        if locate(table, &text[from..]).is_ok() && locate(table, &text[start..i]).is_ok() {
            parts.push(&text[start..i]);
            start = from;
        }
    }
    parts.push(&text[start..]);
    parts
}

/// The next place of `word` outside of quotes, whatever its case.
fn find_word(text: &str, word: &str, from: usize) -> Option<usize> {
    let mut quote = None;
    for (i, c) in text.char_indices() {
        match (quote, c) {
            (None, '"' | '`') => quote = Some(c),
            (Some(q), c) if q == c => quote = None,
            (None, _) if i >= from && text.get(i..i + word.len()).is_some_and(|t| t.eq_ignore_ascii_case(word)) => {
                return Some(i);
            }
            _ => {}
        }
    }
    None
}

fn single<'t>(table: &'t Table, text: &str) -> Result<Test<'t>, Failure> {
    let (column, operator, value) = locate(table, text)?;
    let value = value.trim();
    let is = match operator {
        Operator::Empty(wanted) => return Ok(Test::Empty { column, wanted }),
        Operator::Is(is) => is,
    };
    if value.is_empty() {
        return Err(bad(text, "has no value to compare with; for missing values write `is empty`"));
    }
    let plain = name::unquoted(value);
    let Matches::Compares(compare) = is else {
        return Ok(Test::Text { column, is, value: plain.to_lowercase() });
    };
    // An unquoted name of a column that is compared in the same way: `close > open`.
    let other = (plain.len() == value.len() && column.kind() != Kind::Text)
        .then(|| group::derived(table, value).ok())
        .flatten()
        .filter(|other| other.kind() == column.kind() || (is_number(other.kind()) && is_number(column.kind())));
    match (column.kind(), other) {
        (_, Some(right)) => Ok(Test::Columns { left: column, is: compare, right }),
        (Kind::Text, None) => Ok(Test::Text { column, is, value: plain.to_lowercase() }),
        (Kind::Number, None) => match number::parse(plain, Style::Point) {
            Some(value) => Ok(Test::Number { column, is: compare, value }),
            None => Err(wrong(text, &column, plain)),
        },
        (Kind::Integer, None) => match (number::integer(plain), number::parse(plain, Style::Point)) {
            (Some(value), _) => Ok(Test::Integer { column, is: compare, value }),
            (None, Some(value)) => Ok(beside(column, compare, value)),
            (None, None) => Err(wrong(text, &column, plain)),
        },
        (Kind::Date, None) => match date::parse_span(plain, Order::MonthFirst) {
            Some(span) => Ok(Test::Date { column, is: compare, span }),
            None => Err(wrong(text, &column, plain)),
        },
    }
}

fn is_number(kind: Kind) -> bool {
    matches!(kind, Kind::Number | Kind::Integer)
}

/// A test of integers against a number with a fraction or an exponent: no integer lies between that and the next lower one.
fn beside(column: Cow<'_, Column>, is: Compare, value: f64) -> Test<'_> {
    let whole = value.floor() as i128;
    let is_whole = value.fract() == 0.0;
    match is {
        _ if is_whole => Test::Integer { column, is, value: whole },
        Greater | AtLeast => Test::Integer { column, is: Greater, value: whole },
        Less | AtMost => Test::Integer { column, is: AtMost, value: whole },
        Equal | NotEqual => Test::Number { column, is, value },
    }
}

/// The column, operator and value of a condition: the first operator that has a column in front of it.
fn locate<'t, 'a>(table: &'t Table, text: &'a str) -> Result<(Cow<'t, Column>, Operator, &'a str), Failure> {
    let text = text.trim();
    let mut failure = None;
    for (i, _) in text.char_indices() {
        for (word, operator) in &OPERATORS {
            let Some(rest) =
                text.get(i..i + word.len()).filter(|t| t.eq_ignore_ascii_case(word)).map(|_| &text[i + word.len()..])
            else {
                continue;
            };
            let spelled = word.as_bytes()[0].is_ascii_alphabetic();
            let apart =
                text[..i].ends_with(char::is_whitespace) && (rest.is_empty() || rest.starts_with(char::is_whitespace));
            if spelled && !apart {
                continue;
            }
            match group::derived(table, &text[..i]) {
                Ok(column) => return Ok((column, *operator, rest)),
                Err(f) => failure = failure.or(Some(f)),
            }
            break;
        }
    }
    Err(failure.unwrap_or_else(|| {
        bad(
            text,
            "is no condition; write a column, a comparison and a value, such as temp > 20, city = Oslo, rain is empty",
        )
    }))
}

fn bad(text: &str, problem: &str) -> Failure {
    Failure::new("bad-expression", format!("`{}` {problem}", text.trim()))
}

fn wrong(text: &str, column: &Column, value: &str) -> Failure {
    let kind = column.kind();
    let example = if kind == Kind::Date { "2024-03-01" } else { "20.5" };
    let message = format!(
        "`{}`: {} is a {} column and `{value}` is not {} such as {example}",
        text.trim(),
        column.name,
        kind.name(),
        kind.with_article()
    );
    Failure::new("wrong-type", message)
}

impl Test<'_> {
    /// Whether the condition holds for a row of the table that it was parsed for.
    pub fn holds(&self, row: usize) -> bool {
        match self {
            Self::All(tests) => tests.iter().all(|t| t.holds(row)),
            Self::Any(tests) => tests.iter().any(|t| t.holds(row)),
            Self::Empty { column, wanted } => column.value(row).is_missing() == *wanted,
            Self::Number { column, is, value } => numbers(*is, column.number(row), *value),
            Self::Integer { column, is, value } => column.integer(row).is_some_and(|n| is.holds(n.cmp(value))),
            Self::Columns { left, is, right } => match (left.integer(row), right.integer(row)) {
                (Some(left), Some(right)) => is.holds(left.cmp(&right)),
                _ => numbers(*is, left.number(row), right.number(row)),
            },
            Self::Date { column, is, span: (start, end) } => {
                let at = column.number(row);
                match is {
                    _ if at.is_nan() => false,
                    Equal => (*start..*end).contains(&at),
                    NotEqual => !(*start..*end).contains(&at),
                    Less => at < *start,
                    AtMost => at < *end,
                    Greater => at >= *end,
                    AtLeast => at >= *start,
                }
            }
            Self::Text { column, is, value } => match &column.values {
                Values::Text(texts) => !texts.get(row).is_empty() && texts_match(*is, texts.get(row), value),
                _ => !column.value(row).is_missing() && texts_match(*is, &column.value(row).plain(), value),
            },
        }
    }
}

impl Compare {
    /// Whether two values in this order satisfy it.
    fn holds(self, order: Ordering) -> bool {
        match self {
            Equal => order.is_eq(),
            NotEqual => order.is_ne(),
            Less => order.is_lt(),
            AtMost => order.is_le(),
            Greater => order.is_gt(),
            AtLeast => order.is_ge(),
        }
    }
}

fn numbers(is: Compare, a: f64, b: f64) -> bool {
    a.partial_cmp(&b).is_some_and(|order| is.holds(order))
}

fn texts_match(is: Matches, text: &str, value: &str) -> bool {
    let text = text.to_lowercase();
    match is {
        Matches::Contains => text.contains(value),
        Matches::ContainsNot => !text.contains(value),
        Matches::StartsWith => text.starts_with(value),
        Matches::EndsWith => text.ends_with(value),
        Matches::Compares(compare) => compare.holds(text.as_str().cmp(value)),
    }
}
