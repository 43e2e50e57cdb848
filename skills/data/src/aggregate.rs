//! Aggregates of a group of rows: `mean(temp)`, `count()`, `p90(x) as top`.
//!
//! Missing values are left out. Where no value is left the result is missing, except for counts.

use crate::{group, query};
use kiso_sdk::Failure;
use table::{Column, NO_INTEGER, Table, Texts, Values, name};

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Function {
    Mean,
    Sum,
    Min,
    Max,
    /// Of the sample (divided by n − 1).
    Std,
    /// From 0 to 1, interpolated between neighbours.
    Quantile(f64),
    /// Values that are there; rows when no column is named.
    Count,
    Distinct,
}

#[derive(Debug, Clone)]
pub struct Aggregate {
    pub function: Function,
    /// None only for `count()`.
    pub column: Option<usize>,
    pub name: String,
}

const NAMES: [&str; 9] = ["mean", "avg", "sum", "min", "max", "median", "std", "count", "distinct"];

/// Parses `compute`; without anything to compute, rows are counted.
pub fn parse_all(table: &Table, items: &[String]) -> Result<Vec<Aggregate>, Failure> {
    let pieces = query::pieces(table, items);
    if pieces.is_empty() {
        return Ok(vec![Aggregate { function: Function::Count, column: None, name: "count".into() }]);
    }
    let mut all = Vec::new();
    for piece in pieces {
        match parse(table, piece) {
            Ok(aggregate) => all.push(aggregate),
            // "mean(temp) and sum(rain)"
            Err(failure) => match piece.split(" and ").map(|p| parse(table, p)).collect::<Result<Vec<_>, _>>() {
                Ok(parsed) => all.extend(parsed),
                Err(_) => return Err(failure),
            },
        }
    }
    Ok(all)
}

/// Codes: "bad-expression", "unknown-column", "wrong-type".
fn parse(table: &Table, text: &str) -> Result<Aggregate, Failure> {
    let text = text.trim();
    let (expression, given) = match text.to_ascii_lowercase().rfind(" as ") {
        Some(i) => (text[..i].trim(), Some(name::unquoted(text[i + 4..].trim()).to_owned())),
        None => (text, None),
    };
    let Some((word, argument)) = parts(expression) else {
        let hint =
            if table.position(text).is_some() { format!("; write mean({text}) or sum({text})") } else { String::new() };
        return Err(Failure::new("bad-expression", format!("`{text}` is nothing to compute{hint}")));
    };
    let Some((function, label)) = function(&word) else {
        let near = name::near(&word, &NAMES);
        let hint = near.first().map(|n| format!("; did you mean {n}?")).unwrap_or_default();
        let known = NAMES.join(", ");
        return Err(Failure::new(
            "bad-expression",
            format!("`{text}`: unknown function {word}{hint} There are {known} and p1 to p99"),
        ));
    };
    if matches!(argument, "" | "*" | "rows") {
        if function != Function::Count {
            return Err(Failure::new("bad-expression", format!("`{text}` needs a column, such as {label}(temp)")));
        }
        return Ok(Aggregate { function, column: None, name: given.unwrap_or(label) });
    }
    let index = table.find(argument)?;
    let column = &table.columns[index];
    let computes = matches!(function, Function::Mean | Function::Sum | Function::Std | Function::Quantile(_));
    let dates = matches!(column.values, Values::Dates(..)) && matches!(function, Function::Sum | Function::Std);
    if computes && (!group::numeric(column) || dates) {
        let why = table.notes.iter().find(|n| n.starts_with(&format!("{}: ", column.name)));
        let why = why.map(|n| format!(" ({n})")).unwrap_or_default();
        let kind = column.kind().with_article();
        return Err(Failure::new("wrong-type", format!("`{text}`: {} holds {kind}, not numbers{why}", column.name)));
    }
    let name = given.unwrap_or_else(|| format!("{label}_{}", column.name));
    Ok(Aggregate { function, column: Some(index), name })
}

/// The name that a computed column gets when it is asked for as `text`, to find it again in `sort` and `select`.
pub fn default_name(text: &str) -> Option<String> {
    let (word, argument) = parts(text.trim())?;
    let (_, label) = function(&word)?;
    Some(if matches!(argument, "" | "*" | "rows") { label } else { format!("{label}_{}", name::unquoted(argument)) })
}

/// `mean(temp)`, `mean temp`, `mean of temp` or `count` as word and argument.
fn parts(text: &str) -> Option<(String, &str)> {
    let (word, argument) = match text.strip_suffix(')').and_then(|t| t.split_once('(')) {
        Some(split) => split,
        None => text.split_once(char::is_whitespace).unwrap_or((text, "")),
    };
    let argument = argument.trim();
    let argument = argument.strip_prefix("of ").unwrap_or(argument).trim();
    let word = word.trim().to_lowercase();
    (!word.is_empty() && (!argument.is_empty() || text.ends_with(')') || word == "count")).then_some((word, argument))
}

fn function(word: &str) -> Option<(Function, String)> {
    let (function, label) = match word {
        "mean" | "avg" | "average" => (Function::Mean, "mean"),
        "sum" | "total" => (Function::Sum, "sum"),
        "min" | "minimum" => (Function::Min, "min"),
        "max" | "maximum" => (Function::Max, "max"),
        "std" | "stddev" => (Function::Std, "std"),
        "median" => (Function::Quantile(0.5), "median"),
        "count" => (Function::Count, "count"),
        "distinct" | "unique" => (Function::Distinct, "distinct"),
        _ => {
            let percent: u8 = word.strip_prefix('p')?.parse().ok().filter(|p| (1..100).contains(p))?;
            return Some((Function::Quantile(f64::from(percent) / 100.0), word.to_owned()));
        }
    };
    Some((function, label.to_owned()))
}

/// The computed column, one value for each group.
pub fn column(aggregate: &Aggregate, table: &Table, groups: &[&[u32]]) -> Column {
    let name = aggregate.name.clone();
    let Some(source) = aggregate.column.map(|c| &table.columns[c]) else {
        return Column::numbers(name, groups.iter().map(|g| g.len() as f64).collect());
    };
    if let (Values::Text(texts), Function::Min | Function::Max) = (&source.values, aggregate.function) {
        let pick = |group: &&[u32]| {
            let present = group.iter().map(|&r| texts.get(r as usize)).filter(|t| !t.is_empty());
            if aggregate.function == Function::Min { present.min() } else { present.max() }.unwrap_or_default()
        };
        return Column { name, values: Values::Text(groups.iter().map(pick).collect::<Texts>()) };
    }
    if let (Values::Integers(_), Function::Min | Function::Max | Function::Sum) = (&source.values, aggregate.function) {
        let exact = |group: &&[u32]| {
            let mut present = group.iter().filter_map(|&r| source.integer(r as usize));
            let Some(first) = present.next() else { return Some(NO_INTEGER) };
            present.try_fold(first, |so_far, n| match aggregate.function {
                Function::Min => Some(so_far.min(n)),
                Function::Max => Some(so_far.max(n)),
                _ => so_far.checked_add(n),
            })
        };
        if let Some(values) = groups.iter().map(exact).collect() {
            return Column { name, values: Values::Integers(values) };
        }
    }
    let mut scratch = Vec::new();
    let mut compute = |group: &&[u32]| match aggregate.function {
        Function::Count => group.iter().filter(|&&r| !source.value(r as usize).is_missing()).count() as f64,
        Function::Distinct => distinct(source, group) as f64,
        function => {
            scratch.clear();
            scratch.extend(group.iter().map(|&r| source.number(r as usize)).filter(|n| !n.is_nan()));
            of_numbers(function, &mut scratch)
        }
    };
    let numbers: Vec<f64> = groups.iter().map(&mut compute).collect();
    let values = match (&source.values, aggregate.function) {
        (Values::Dates(_, precision), Function::Mean | Function::Min | Function::Max | Function::Quantile(_)) => {
            Values::Dates(numbers, *precision)
        }
        _ => Values::Numbers(numbers),
    };
    Column { name, values }
}

/// How many different values there are.
pub fn distinct(column: &Column, rows: &[u32]) -> usize {
    let count = |sorted: &mut dyn Iterator<Item = bool>| sorted.filter(|&new| new).count();
    match &column.values {
        Values::Numbers(v) | Values::Dates(v, _) => {
            let mut values: Vec<f64> = rows.iter().map(|&r| v[r as usize]).filter(|n| !n.is_nan()).collect();
            values.sort_unstable_by(f64::total_cmp);
            count(&mut (0..values.len()).map(|i| i == 0 || values[i] != values[i - 1]))
        }
        Values::Integers(_) => {
            let mut values: Vec<i128> = rows.iter().filter_map(|&r| column.integer(r as usize)).collect();
            values.sort_unstable();
            count(&mut (0..values.len()).map(|i| i == 0 || values[i] != values[i - 1]))
        }
        Values::Text(t) => {
            let mut values: Vec<&str> = rows.iter().map(|&r| t.get(r as usize)).filter(|t| !t.is_empty()).collect();
            values.sort_unstable();
            count(&mut (0..values.len()).map(|i| i == 0 || values[i] != values[i - 1]))
        }
    }
}

/// Computes from present values; NaN where there are too few. Changes their order.
pub fn of_numbers(function: Function, values: &mut [f64]) -> f64 {
    let n = values.len() as f64;
    if values.is_empty() {
        return f64::NAN;
    }
    match function {
        Function::Sum => rounded(sum(values)),
        Function::Mean => rounded(sum(values) / n),
        Function::Min => values.iter().copied().fold(f64::INFINITY, f64::min),
        Function::Max => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        Function::Std if values.len() < 2 => f64::NAN,
        Function::Std => {
            let mean = sum(values) / n;
            values.iter_mut().for_each(|v| *v = (*v - mean) * (*v - mean));
            rounded((sum(values) / (n - 1.0)).sqrt())
        }
        Function::Quantile(share) => {
            values.sort_unstable_by(f64::total_cmp);
            let at = share * (n - 1.0);
            let (low, high) = (values[at.floor() as usize], values[at.ceil() as usize]);
            rounded(low + (high - low) * at.fract())
        }
        Function::Count | Function::Distinct => n,
    }
}

/// Neumaier's sum: the order of large and small values does not matter.
fn sum(values: &[f64]) -> f64 {
    let (mut sum, mut lost) = (0.0f64, 0.0f64);
    for &value in values {
        let total = sum + value;
        lost += if sum.abs() >= value.abs() { (sum - total) + value } else { (value - total) + sum };
        sum = total;
    }
    sum + lost
}

/// To 14 significant digits: what lies behind is an artefact of binary fractions (0.1 + 0.2 = 0.30000000000000004).
fn rounded(value: f64) -> f64 {
    if !value.is_finite() { f64::NAN } else { format!("{value:.13e}").parse().unwrap_or(value) }
}
