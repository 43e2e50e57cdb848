use crate::theme::{SERIES, Theme};
use kiso_sdk::Failure;
use serde::Deserialize;
use table::{Column, Kind as Values, Table};

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    #[default]
    Line,
    Bar,
    Scatter,
    Histogram,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Line => "line chart",
            Self::Bar => "bar chart",
            Self::Scatter => "scatter plot",
            Self::Histogram => "histogram",
        }
    }
}

/// The arguments of a call, as `kiso.toml` declares them.
#[derive(Debug, Clone, Deserialize)]
pub struct Request {
    pub file: String,
    #[serde(default)]
    pub kind: Kind,
    pub x: Option<String>,
    #[serde(default)]
    pub y: Vec<String>,
    pub title: Option<String>,
    pub x_label: Option<String>,
    pub y_label: Option<String>,
    #[serde(default = "width")]
    pub width: u32,
    #[serde(default = "height")]
    pub height: u32,
    pub out: Option<String>,
    pub bins: Option<usize>,
    #[serde(default)]
    pub theme: Theme,
}

fn width() -> u32 {
    1000
}

fn height() -> u32 {
    600
}

/// The columns to draw.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    pub kind: Kind,
    pub x: usize,
    /// Empty for bars that count rows.
    pub y: Vec<usize>,
    /// Number columns that nobody named and that would flatten the others, or be flattened by them.
    pub left_out: Vec<usize>,
}

/// A column whose values are this many times larger than another's cannot share an axis with it.
const MAGNITUDE: f64 = 100.0;

/// Number columns that are drawn when none is named.
const DEFAULT_SERIES: usize = 6;

/// Codes: "unknown-column", "wrong-type", "bad-args".
pub fn choose(table: &Table, request: &Request) -> Result<Choice, Failure> {
    let number = |c: &Column| c.kind() == Values::Number;
    let mut y = named(table, request)?;
    let mut left_out = Vec::new();
    let x = match &request.x {
        Some(name) => table.find(name)?,
        None => {
            let free = |i: &usize| !y.contains(i);
            let all = 0..table.columns.len();
            let first = all.clone().filter(free).find(|&i| !number(&table.columns[i]));
            first.or_else(|| all.clone().find(free)).unwrap_or(0)
        }
    };
    if y.is_empty() && request.kind == Kind::Histogram && request.x.is_some() {
        y.push(x);
    }
    if y.is_empty() {
        let numbers = (0..table.columns.len()).filter(|&i| i != x && number(&table.columns[i]));
        (y, left_out) = alike(table, numbers.collect());
        y.truncate(if request.kind == Kind::Histogram { 1 } else { DEFAULT_SERIES });
    }
    if y.is_empty() && request.kind == Kind::Histogram && number(&table.columns[x]) {
        y.push(x);
    }
    if y.is_empty() && request.kind != Kind::Bar {
        let message = format!("{} has no number column to draw over {}", table.file, table.columns[x].name);
        return Err(Failure::new("wrong-type", message));
    }
    for &i in &y {
        let column = &table.columns[i];
        let countable = request.kind == Kind::Histogram && column.kind() == Values::Date;
        if (0..table.rows).all(|r| column.value(r).is_missing()) && y.len() == 1 {
            let message = format!("column {} of {} has no values to draw", column.name, table.file);
            return Err(Failure::new("no-values", message));
        }
        if !number(column) && !countable {
            let numbers: Vec<&str> = table.columns.iter().filter(|c| number(c)).map(|c| c.name.as_str()).collect();
            let others = if numbers.is_empty() { "none".to_owned() } else { numbers.join(", ") };
            let kind = column.kind().with_article();
            return Err(Failure::new(
                "wrong-type",
                format!(
                    "{} of {} holds {kind}, but y needs numbers; number columns: {others}",
                    column.name, table.file
                ),
            ));
        }
    }
    if request.kind == Kind::Histogram && y.len() > 1 {
        return Err(Failure::new("bad-args", "a histogram shows one column; name one in y"));
    }
    if y.len() > SERIES {
        let message = format!("{} columns in y; up to {SERIES} can be told apart in one chart", y.len());
        return Err(Failure::new("bad-args", message));
    }
    Ok(Choice { kind: request.kind, x, y, left_out })
}

/// Columns of about the magnitude of the first, and the others. Columns without values go with the first.
fn alike(table: &Table, columns: Vec<usize>) -> (Vec<usize>, Vec<usize>) {
    let size = |&i: &usize| {
        let sizes = (0..table.rows).map(|r| table.columns[i].number(r).abs());
        sizes.fold(0.0, f64::max)
    };
    let first = columns.iter().map(size).find(|s| *s > 0.0).unwrap_or(1.0);
    columns.into_iter().partition(|i| {
        let ratio = size(i) / first;
        ratio == 0.0 || (1.0 / MAGNITUDE..=MAGNITUDE).contains(&ratio)
    })
}

/// The columns that y names; an item may be several with commas or `and` between them.
fn named(table: &Table, request: &Request) -> Result<Vec<usize>, Failure> {
    let mut columns = Vec::new();
    for item in &request.y {
        let parts: Vec<&str> = match table.position(item) {
            Some(_) => vec![item.as_str()],
            None => item.split(',').flat_map(|p| p.split(" and ")).collect(),
        };
        for part in parts.into_iter().filter(|p| !p.trim().is_empty()) {
            let column = table.find(part.trim())?;
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
    }
    Ok(columns)
}
