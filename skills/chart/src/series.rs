//! From columns to series of points.

use crate::request::{Choice, Kind};
use crate::theme::SERIES;
use kiso_sdk::Failure;
use table::date::Precision;
use table::{Column, Table, Value, Values};

/// The meaning of the x of a point.
#[derive(Debug, Clone, PartialEq)]
pub enum X {
    /// Seconds since 1970.
    Time(Precision),
    Number,
    /// The place in this list.
    Names(Vec<String>),
}

/// A line, a row of bars or a cloud. Points are sorted by x unless they are scattered; a missing y is NaN.
#[derive(Debug, Clone)]
pub struct Series {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

impl Series {
    /// The least and the greatest y, if there is any.
    pub fn range(&self) -> Option<(f64, f64)> {
        let present = self.points.iter().map(|p| p.1).filter(|y| !y.is_nan());
        present.fold(None, |range: Option<(f64, f64)>, y| {
            Some(range.map_or((y, y), |(low, high)| (low.min(y), high.max(y))))
        })
    }
}

/// The data to draw.
#[derive(Debug)]
pub struct Prepared {
    pub x: X,
    pub series: Vec<Series>,
    /// The column whose values became series, where x repeats for each of them.
    pub split: Option<String>,
    /// Whether the rows that share an x were averaged.
    pub averaged: bool,
    /// Rows that were drawn.
    pub rows: usize,
    pub notes: Vec<String>,
}

/// Names on one axis: more are no longer a picture.
const MOST_NAMES: usize = 300;

/// Codes: "no-values", "too-many".
pub fn prepare(table: &Table, choice: &Choice) -> Result<Prepared, Failure> {
    let column = &table.columns[choice.x];
    let (x, at) = places(table, column)?;
    let mut rows: Vec<usize> = (0..table.rows).filter(|&r| !at[r].is_nan()).collect();
    let mut notes = Vec::new();
    if rows.len() < table.rows {
        let left_out = table.rows - rows.len();
        notes.push(format!("{left_out} of {} rows have no {} and were left out", table.rows, column.name));
    }
    if rows.is_empty() {
        return Err(Failure::new("no-values", format!("column {} of {} has no values", column.name, table.file)));
    }
    if choice.kind != Kind::Scatter {
        rows.sort_by(|&a, &b| at[a].total_cmp(&at[b]));
    }
    let repeats = choice.kind != Kind::Scatter && rows.windows(2).any(|w| at[w[0]] == at[w[1]]);
    let (mut split, mut averaged) = (None, false);
    let mut series = if choice.y.is_empty() {
        vec![counted(&rows, &at)]
    } else if repeats && let Some((name, series)) = split_by(table, choice, &rows, &at) {
        split = Some(name);
        series
    } else {
        averaged = repeats;
        let of = |&y: &usize| Series {
            name: table.columns[y].name.clone(),
            points: points(&table.columns[y], &rows, &at, repeats),
        };
        choice.y.iter().map(of).collect()
    };
    let empty: Vec<String> = series.iter().filter(|s| s.range().is_none()).map(|s| s.name.clone()).collect();
    if empty.len() == series.len() {
        return Err(Failure::new("no-values", format!("{} of {} has no values to draw", empty.join(", "), table.file)));
    }
    if !empty.is_empty() {
        notes.push(format!("{} has no values and was left out", empty.join(", ")));
        series.retain(|s| s.range().is_some());
    }
    if averaged {
        notes.push(format!("{} repeats; rows that share it were averaged", column.name));
    }
    Ok(Prepared { x, series, split, averaged, rows: rows.len(), notes })
}

/// The meaning of x, and the x of each row.
fn places(table: &Table, column: &Column) -> Result<(X, Vec<f64>), Failure> {
    let texts = match &column.values {
        Values::Integers(v) => {
            return Ok((X::Number, v.iter().enumerate().map(|(row, _)| column.number(row)).collect()));
        }
        Values::Numbers(v) => return Ok((X::Number, v.clone())),
        Values::Dates(v, precision) => return Ok((X::Time(*precision), v.clone())),
        Values::Text(texts) => texts,
    };
    let mut names: Vec<String> = Vec::new();
    let mut index = std::collections::HashMap::new();
    let mut at = Vec::with_capacity(texts.len());
    for text in (0..texts.len()).map(|r| texts.get(r)) {
        if text.is_empty() {
            at.push(f64::NAN);
            continue;
        }
        let place = *index.entry(text).or_insert_with(|| {
            names.push(text.to_owned());
            names.len() - 1
        });
        at.push(place as f64);
        if names.len() > MOST_NAMES {
            return Err(Failure::new(
                "too-many",
                format!(
                    "{} of {} is text with more than {MOST_NAMES} different values; group, filter or limit the rows first, \
                     or choose another x",
                    column.name, table.file
                ),
            ));
        }
    }
    Ok((X::Names(names), at))
}

fn points(y: &Column, rows: &[usize], at: &[f64], averaged: bool) -> Vec<(f64, f64)> {
    if !averaged {
        return rows.iter().map(|&r| (at[r], y.number(r))).collect();
    }
    let mean = |group: &[usize]| {
        let present: Vec<f64> = group.iter().map(|&r| y.number(r)).filter(|v| !v.is_nan()).collect();
        (at[group[0]], present.iter().sum::<f64>() / present.len() as f64)
    };
    rows.chunk_by(|&a, &b| at[a] == at[b]).map(mean).collect()
}

fn counted(rows: &[usize], at: &[f64]) -> Series {
    let points = rows.chunk_by(|&a, &b| at[a] == at[b]).map(|g| (at[g[0]], g.len() as f64)).collect();
    Series { name: "rows".into(), points }
}

/// One series for each value of a text column, if together with x it tells every row: a table in long form, such as one
/// with a row per day and city.
fn split_by(table: &Table, choice: &Choice, rows: &[usize], at: &[f64]) -> Option<(String, Vec<Series>)> {
    let [y] = choice.y.as_slice() else { return None };
    for column in table.columns.iter().enumerate().filter(|(i, _)| *i != choice.x).map(|(_, c)| c) {
        let Values::Text(texts) = &column.values else { continue };
        let mut series: Vec<Series> = Vec::new();
        let unique = rows.iter().all(|&r| {
            let value = texts.get(r);
            if value.is_empty() {
                return false;
            }
            let place = series.iter().position(|s| s.name == value).unwrap_or_else(|| {
                series.push(Series { name: value.to_owned(), points: Vec::new() });
                series.len() - 1
            });
            let points = &mut series[place].points;
            let again = points.last().is_some_and(|p| p.0 == at[r]);
            points.push((at[r], table.columns[*y].number(r)));
            !again && place < SERIES
        });
        if unique && series.len() > 1 {
            return Some((column.name.clone(), series));
        }
    }
    None
}

/// The least and the greatest x.
pub fn x_range(series: &[Series]) -> (f64, f64) {
    let all = series.iter().flat_map(|s| &s.points).map(|p| p.0);
    all.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)))
}

/// A value of x as a sentence tells it.
pub fn format_x(x: &X, at: f64) -> String {
    match x {
        X::Time(precision) => Value::Date(at, *precision).plain().replace('T', " "),
        X::Number => crate::scale::format_value(at),
        X::Names(names) => names.get(at as usize).cloned().unwrap_or_default(),
    }
}
