use crate::aggregate::{self, Function};
use serde_json::{Value as Json, json};
use table::date::{self, Precision};
use table::{Column, Kind, Table, Texts, Values, number};

/// The description of a column in one line.
#[derive(Debug)]
pub struct Summary {
    name: String,
    kind: Kind,
    count: usize,
    missing: usize,
    distinct: usize,
    /// Min, mean and max of numbers or dates.
    span: Option<[f64; 3]>,
    /// Min and max of long integers, to the last digit.
    exact: Option<[String; 2]>,
    precision: Precision,
}

pub const NAMES: [&str; 8] = ["column", "type", "count", "missing", "distinct", "min", "mean", "max"];

pub fn describe(columns: &[&Column], rows: &[u32]) -> Vec<Summary> {
    columns.iter().map(|column| summary(column, rows)).collect()
}

fn summary(column: &Column, rows: &[u32]) -> Summary {
    let missing = rows.iter().filter(|&&r| column.value(r as usize).is_missing()).count();
    let mut present: Vec<f64> = rows.iter().map(|&r| column.number(r as usize)).filter(|n| !n.is_nan()).collect();
    let mut of = |function| aggregate::of_numbers(function, &mut present);
    let span = [of(Function::Min), of(Function::Mean), of(Function::Max)];
    Summary {
        name: column.name.clone(),
        kind: column.kind(),
        count: rows.len() - missing,
        missing,
        distinct: aggregate::distinct(column, rows),
        span: span[0].is_finite().then_some(span),
        exact: exact(column, rows),
        precision: if let Values::Dates(_, precision) = column.values { precision } else { Precision::Day },
    }
}

fn exact(column: &Column, rows: &[u32]) -> Option<[String; 2]> {
    let present = || rows.iter().filter_map(|&r| column.integer(r as usize));
    (column.kind() == Kind::Integer).then(|| Some([present().min()?.to_string(), present().max()?.to_string()]))?
}

impl Summary {
    /// The row as JSON; numbers stay numbers.
    pub fn json(&self) -> Vec<Json> {
        let span = |i: usize| match self.span {
            Some(_) if i != 1 && self.exact.is_some() => json!(self.exact.as_ref().map(|exact| &exact[i / 2])),
            Some(span) if self.kind == Kind::Date => json!(date::format(span[i], self.precision, 'T')),
            Some(span) => crate::render::number(span[i]),
            None => Json::Null,
        };
        let counts = [self.count, self.missing, self.distinct].map(|n| json!(n));
        let mut row = vec![json!(self.name), json!(self.kind.name())];
        row.extend(counts);
        row.extend([span(0), span(1), span(2)]);
        row
    }

    fn texts(&self) -> [String; 3] {
        let Some(span) = self.span else { return Default::default() };
        if self.kind == Kind::Date {
            return span.map(|s| date::format(s, self.precision, ' '));
        }
        if let Some([min, max]) = self.exact.clone() {
            return [min, number::fixed(span[1], 0), max];
        }
        let decimals = number::decimals([span[0], span[2]].into_iter());
        let mean = number::decimals(span.into_iter());
        [number::fixed(span[0], decimals), number::fixed(span[1], mean), number::fixed(span[2], decimals)]
    }
}

/// The summaries as a table for people.
pub fn table(summaries: &[Summary], of: &Table, rows: usize) -> Table {
    let text = |name: &str, pick: &dyn Fn(&Summary) -> String| {
        let mut texts = Texts::default();
        summaries.iter().for_each(|s| texts.push(&pick(s)));
        Column { name: name.into(), values: Values::Text(texts) }
    };
    let count = |name: &str, pick: fn(&Summary) -> usize| {
        Column::numbers(name, summaries.iter().map(|s| pick(s) as f64).collect())
    };
    let columns = vec![
        text(NAMES[0], &|s| s.name.clone()),
        text(NAMES[1], &|s| s.kind.name().into()),
        count(NAMES[2], |s| s.count),
        count(NAMES[3], |s| s.missing),
        count(NAMES[4], |s| s.distinct),
        text(NAMES[5], &|s| s.texts()[0].clone()),
        text(NAMES[6], &|s| s.texts()[1].clone()),
        text(NAMES[7], &|s| s.texts()[2].clone()),
    ];
    let mut notes = vec![format!("{} of {}", crate::render::counted(rows, "row"), of.file)];
    notes.extend(of.notes.iter().cloned());
    Table { file: of.file.clone(), columns, rows: summaries.len(), notes }
}
