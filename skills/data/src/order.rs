use crate::{aggregate, query};
use kiso_sdk::Failure;
use std::cmp::Ordering;
use table::date::WEEKDAYS;
use table::{Column, Table, Texts, Values, name};

/// One column to sort by. Missing values come last either way.
#[derive(Debug)]
pub struct By<'t> {
    column: &'t Column,
    descending: bool,
    /// Texts that are all days of a week go by the week, not by the alphabet.
    weekdays: bool,
}

impl<'t> By<'t> {
    pub fn ascending(column: &'t Column) -> Self {
        let weekday =
            |t: &Texts| !t.is_empty() && (0..t.len()).all(|r| weekday(t.get(r)).is_some() || t.get(r).is_empty());
        let weekdays = matches!(&column.values, Values::Text(t) if weekday(t));
        Self { column, descending: false, weekdays }
    }
}

fn weekday(text: &str) -> Option<usize> {
    WEEKDAYS.iter().position(|d| *d == text)
}

/// Compares two rows by the columns in turn.
pub fn compare(by: &[By<'_>], a: u32, b: u32) -> Ordering {
    let mut orders = by.iter().map(|by| {
        let directed = |order: Ordering| if by.descending { order.reverse() } else { order };
        match &by.column.values {
            Values::Numbers(v) | Values::Dates(v, _) => {
                let (a, b) = (v[a as usize], v[b as usize]);
                match (a.is_nan(), b.is_nan()) {
                    (false, false) => directed(a.partial_cmp(&b).unwrap_or(Ordering::Equal)),
                    missing => missing.0.cmp(&missing.1),
                }
            }
            Values::Integers(_) => {
                let (a, b) = (by.column.integer(a as usize), by.column.integer(b as usize));
                match (a, b) {
                    (Some(a), Some(b)) => directed(a.cmp(&b)),
                    missing => missing.0.is_none().cmp(&missing.1.is_none()),
                }
            }
            Values::Text(t) => {
                let (a, b) = (t.get(a as usize), t.get(b as usize));
                match (a.is_empty(), b.is_empty()) {
                    (false, false) if by.weekdays => directed(weekday(a).cmp(&weekday(b))),
                    (false, false) => directed(a.cmp(b)),
                    missing => missing.0.cmp(&missing.1),
                }
            }
        }
    });
    orders.find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
}

/// Sorts row numbers by `temp`, `temp desc`, `-temp`; rows that are equal stay as they are.
pub fn sort(table: &Table, rows: &mut [u32], items: &[String]) -> Result<(), Failure> {
    let mut by = Vec::new();
    for item in query::pieces(table, items) {
        let (name, descending) = direction(table, item);
        by.push(By { descending, ..By::ascending(&table.columns[result_column(table, name)?]) });
    }
    if !by.is_empty() {
        rows.sort_by(|&a, &b| compare(&by, a, b));
    }
    Ok(())
}

fn direction<'a>(table: &Table, item: &'a str) -> (&'a str, bool) {
    if table.position(item).is_some() {
        return (item, false);
    }
    if let Some(name) = item.strip_prefix('-') {
        return (name.trim(), true);
    }
    match item.rsplit_once(char::is_whitespace) {
        Some((name, word)) => match word.to_ascii_lowercase().as_str() {
            "desc" | "descending" => (name.trim(), true),
            "asc" | "ascending" => (name.trim(), false),
            _ => (item, false),
        },
        None => (item, false),
    }
}

/// A column of the result: by its name, or as it was asked for (`mean(temp)`, `avg_temp`, `month(date)`).
pub fn result_column(table: &Table, text: &str) -> Result<usize, Failure> {
    let part = || text.split_once('(').filter(|_| text.ends_with(')')).and_then(|(part, _)| table.position(part));
    let spelled = || text.split_once('_').map(|(word, rest)| format!("{word}({rest})"));
    let computed = |text: &str| aggregate::default_name(text).and_then(|name| table.position(&name));
    let found =
        table.position(text).or_else(|| computed(text)).or_else(|| spelled().and_then(|s| computed(&s))).or_else(part);
    match found {
        Some(column) => Ok(column),
        None => Ok(table.find(name::unquoted(text))?),
    }
}
