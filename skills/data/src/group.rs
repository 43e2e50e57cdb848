//! Columns derived from dates, and groups of rows that agree on some columns.

use crate::aggregate::{self, Aggregate};
use crate::{order, query};
use kiso_sdk::Failure;
use std::borrow::Cow;
use table::date::{Civil, DAY, Precision, WEEKDAYS};
use table::{Column, Kind, Table, Texts, Values, name};

const PARTS: [&str; 6] = ["year", "month", "week", "day", "hour", "weekday"];

/// A column of the table, or one that is made from dates: `year(date)` → 2024, `month(date)` → 2024-01,
/// `week(date)` → 2024-W05 (ISO 8601), `day(date)` → 2024-01-31, `hour(date)` → 0 to 23, `weekday(date)` → Mon.
///
/// Codes: "unknown-column", "wrong-type", "bad-expression".
pub fn derived<'t>(table: &'t Table, text: &str) -> Result<Cow<'t, Column>, Failure> {
    let text = text.trim();
    if let Some(i) = table.position(text) {
        return Ok(Cow::Borrowed(&table.columns[i]));
    }
    let Some((part, column)) = text.strip_suffix(')').and_then(|t| t.split_once('(')) else {
        return Ok(Cow::Borrowed(&table.columns[table.find(text)?]));
    };
    let part = part.trim().to_lowercase();
    if !PARTS.contains(&part.as_str()) {
        let near = name::near(&part, &PARTS);
        let hint = near.first().map(|n| format!("did you mean {n}? ")).unwrap_or_default();
        let message = format!("`{text}`: unknown part {part}; {hint}There are {}", PARTS.join(", "));
        return Err(Failure::new("bad-expression", message));
    }
    let source = &table.columns[table.find(column)?];
    let Values::Dates(moments, _) = &source.values else {
        let kind = source.kind().with_article();
        return Err(Failure::new("wrong-type", format!("`{text}`: {} holds {kind}, not dates", source.name)));
    };
    Ok(Cow::Owned(Column { values: values_of(&part, moments), name: part }))
}

fn values_of(part: &str, moments: &[f64]) -> Values {
    let numbers = |of: fn(Civil) -> f64| {
        moments.iter().map(|&m| if m.is_nan() { m } else { of(Civil::from_seconds(m)) }).collect::<Vec<f64>>()
    };
    let texts = |of: fn(Civil) -> String| {
        let mut texts = Texts::default();
        for &m in moments {
            texts.push(if m.is_nan() { String::new() } else { of(Civil::from_seconds(m)) }.as_str());
        }
        texts
    };
    match part {
        "year" => Values::Numbers(numbers(|c| c.year as f64)),
        "month" => Values::Dates(numbers(|c| c.start(Precision::Month)), Precision::Month),
        "day" => Values::Dates(moments.iter().map(|m| (m / DAY).floor() * DAY).collect(), Precision::Day),
        "hour" => Values::Numbers(numbers(|c| f64::from(c.hour))),
        "weekday" => Values::Text(texts(|c| WEEKDAYS[c.weekday()].to_owned())),
        _ => Values::Text(texts(|c| {
            let (year, week) = c.week();
            format!("{year}-W{week:02}")
        })),
    }
}

/// The columns to group by.
pub fn keys<'t>(table: &'t Table, names: &[String]) -> Result<Vec<Cow<'t, Column>>, Failure> {
    query::pieces(table, names).into_iter().map(|n| derived(table, n)).collect()
}

/// One row for each group, in the order of the keys; one row in all when there are no keys.
pub fn group(
    table: &Table,
    mut rows: Vec<u32>,
    keys: Vec<Cow<'_, Column>>,
    computed: &[Aggregate],
) -> Result<Table, Failure> {
    let by: Vec<order::By<'_>> = keys.iter().map(|k| order::By::ascending(k)).collect();
    rows.sort_by(|&a, &b| order::compare(&by, a, b));
    let mut groups: Vec<&[u32]> = rows.chunk_by(|&a, &b| order::compare(&by, a, b).is_eq()).collect();
    if keys.is_empty() && groups.is_empty() {
        groups.push(&[]);
    }
    let firsts: Vec<u32> = groups.iter().filter_map(|g| g.first().copied()).collect();
    let mut columns: Vec<Column> = keys.iter().map(|k| k.take(&firsts)).collect();
    drop(by);
    for aggregate in computed {
        columns.push(aggregate::column(aggregate, table, &groups));
    }
    let names = name::distinct(columns.iter().map(|c| c.name.clone()));
    columns.iter_mut().zip(names).for_each(|(c, name)| c.name = name);
    Ok(Table { file: "the result".into(), rows: groups.len(), columns, notes: table.notes.clone() })
}

/// Whether a column can be computed with.
pub fn numeric(column: &Column) -> bool {
    column.kind() != Kind::Text
}
