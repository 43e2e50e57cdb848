use crate::condition::{self, Test};
use crate::{aggregate, describe, group, join, order, render::Format};
use kiso_sdk::Failure;
use serde::Deserialize;
use table::{Column, Table};

/// The arguments of a call, as `kiso.toml` declares them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Query {
    pub file: String,
    pub join: Option<String>,
    pub on: Option<String>,
    #[serde(rename = "where")]
    pub conditions: Vec<String>,
    pub group: Vec<String>,
    pub compute: Vec<String>,
    pub select: Vec<String>,
    pub sort: Vec<String>,
    pub limit: Option<usize>,
    pub describe: bool,
    pub format: Format,
    pub save: Option<String>,
}

/// The rows that a query leaves: row numbers into a table, and the columns to show.
#[derive(Debug)]
pub struct Answer {
    pub table: Table,
    pub rows: Vec<u32>,
    pub columns: Vec<usize>,
    /// Set when the rows describe columns: the answer as JSON then holds these instead of texts.
    pub summaries: Option<Vec<describe::Summary>>,
}

impl Answer {
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The columns to show, in order.
    pub fn shown(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().map(|&c| &self.table.columns[c])
    }
}

/// Answers a query; `load` reads a table by its path.
pub fn answer(query: &Query, load: &dyn Fn(&str) -> Result<Table, Failure>) -> Result<Answer, Failure> {
    if let Some(path) = &query.save
        && [Some(&query.file), query.join.as_ref()].into_iter().flatten().any(|read| same_file(read, path))
    {
        return Err(Failure::new(
            "bad-args",
            format!("{path} is read by this query; save the result under another name"),
        ));
    }
    let mut table = load(&query.file)?;
    if let Some(other) = &query.join {
        table = join::join(table, load(other)?, query.on.as_deref())?;
    } else if query.on.is_some() {
        return Err(Failure::new("bad-args", "`on` says what to join on, but `join` names no table"));
    }
    let mut rows = filter(&table, &query.conditions)?;
    let counted = !query.group.is_empty() || !query.compute.is_empty();
    if counted {
        let keys = group::keys(&table, &query.group)?;
        let computed = aggregate::parse_all(&table, &query.compute)?;
        table = group::group(&table, rows, keys, &computed)?;
        rows = all(&table);
    }
    order::sort(&table, &mut rows, &query.sort)?;
    let columns = match query.select.is_empty() {
        true => (0..table.columns.len()).collect(),
        false => select(&table, &query.select)?,
    };
    rows.truncate(query.limit.unwrap_or(usize::MAX));
    if query.describe {
        let shown: Vec<&Column> = columns.iter().map(|&c| &table.columns[c]).collect();
        let summaries = describe::describe(&shown, &rows);
        let described = describe::table(&summaries, &table, rows.len());
        let (rows, columns) = (all(&described), (0..described.columns.len()).collect());
        return Ok(Answer { table: described, rows, columns, summaries: Some(summaries) });
    }
    Ok(Answer { table, rows, columns, summaries: None })
}

fn all(table: &Table) -> Vec<u32> {
    (0..table.rows as u32).collect()
}

fn filter(table: &Table, conditions: &[String]) -> Result<Vec<u32>, Failure> {
    let tests = conditions.iter().map(|c| condition::parse(table, c)).collect::<Result<Vec<Test>, Failure>>()?;
    Ok((0..table.rows as u32).filter(|&row| tests.iter().all(|t| t.holds(row as usize))).collect())
}

/// The columns to keep. A computed one may also be named as it was asked for, such as `mean(temp)`.
fn select(table: &Table, names: &[String]) -> Result<Vec<usize>, Failure> {
    let mut columns = Vec::new();
    for name in pieces(table, names) {
        let column = order::result_column(table, name)?;
        if !columns.contains(&column) {
            columns.push(column);
        }
    }
    Ok(columns)
}

/// The items of a list argument. An item with commas outside of parentheses is a list of its own, unless a column is
/// called so.
pub fn pieces<'a>(table: &Table, items: &'a [String]) -> Vec<&'a str> {
    let mut pieces = Vec::new();
    for item in items {
        if table.position(item).is_some() {
            pieces.push(item.as_str());
            continue;
        }
        let (mut depth, mut start) = (0, 0);
        for (i, c) in item.char_indices() {
            match c {
                '(' => depth += 1,
                ')' => depth -= 1,
                ',' if depth == 0 => {
                    pieces.push(&item[start..i]);
                    start = i + 1;
                }
                _ => {}
            }
        }
        pieces.push(&item[start..]);
    }
    pieces.into_iter().map(str::trim).filter(|p| !p.is_empty()).collect()
}

fn same_file(a: &str, b: &str) -> bool {
    match (kiso_sdk::resolve(a), kiso_sdk::resolve(b)) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}
