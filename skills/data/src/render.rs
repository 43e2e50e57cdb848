//! Answers as aligned text for people and models, and as JSON for tools.

use crate::query::Answer;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use table::{Column, Kind, Value, Values, date, number};

/// How the text of the reply is written.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    #[default]
    Table,
    Json,
}

/// Rows that people read before they lose the thread.
const SHOWN_ROWS: usize = 40;
/// Columns that fit beside each other, more or less.
const SHOWN_COLUMNS: usize = 24;
/// Letters of one value.
const SHOWN_LETTERS: usize = 48;
/// Rows in the JSON of a reply.
const JSON_ROWS: usize = 1_000;
/// Bytes of the JSON: twice this and some text stay below the 256 KiB that a reply may have.
const JSON_BYTES: usize = 110 << 10;

/// The text of the reply.
pub fn text(answer: &Answer, format: Format) -> String {
    match format {
        Format::Json => json(answer).to_string(),
        Format::Table => aligned(answer),
    }
}

/// `{columns, rows, total, truncated}`: at most 1,000 rows, fewer where their values are long.
pub fn json(answer: &Answer) -> Json {
    let columns: Vec<&str> = answer.shown().map(|c| c.name.as_str()).collect();
    let mut bytes = columns.iter().map(|c| c.len() + 3).sum::<usize>();
    let mut rows: Vec<Vec<Json>> = Vec::new();
    for i in 0..answer.len().min(JSON_ROWS) {
        let row = json_row(answer, i);
        bytes += row.iter().map(|v| v.to_string().len() + 1).sum::<usize>() + 3;
        if bytes > JSON_BYTES {
            break;
        }
        rows.push(row);
    }
    let truncated = rows.len() < answer.len();
    json!({ "columns": columns, "rows": rows, "total": answer.len(), "truncated": truncated })
}

/// One row of the answer as JSON values.
pub fn json_row(answer: &Answer, i: usize) -> Vec<Json> {
    if let Some(summaries) = &answer.summaries {
        return summaries[i].json();
    }
    let row = answer.rows[i] as usize;
    let value = |column: &Column| match column.value(row) {
        Value::Missing => Json::Null,
        Value::Number(n) => number(n),
        other => Json::String(other.plain()),
    };
    answer.shown().map(value).collect()
}

/// A JSON number: whole where it is whole.
pub fn number(n: f64) -> Json {
    if n.fract() == 0.0 && n.abs() < 9e15 { json!(n as i64) } else { json!(n) }
}

/// "1 row", "2 rows".
pub fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn aligned(answer: &Answer) -> String {
    let shown: Vec<&Column> = answer.shown().take(SHOWN_COLUMNS).collect();
    let rows = &answer.rows[..answer.len().min(SHOWN_ROWS)];
    let columns: Vec<(Vec<String>, bool)> =
        shown.iter().map(|column| cells(column, rows, answer.summaries.is_some())).collect();
    let widths: Vec<usize> =
        columns.iter().map(|(cells, _)| cells.iter().map(|c| width(c)).max().unwrap_or(0)).collect();
    let mut text = String::new();
    for line in 0..=rows.len() {
        let mut cells = String::new();
        for ((column, right), width_of) in columns.iter().zip(&widths) {
            let cell = &column[line];
            let gap = " ".repeat(width_of - width(cell));
            let (before, after) = if *right { (gap.as_str(), "") } else { ("", gap.as_str()) };
            cells.push_str(&format!("{before}{cell}{after}  "));
        }
        text.push_str(cells.trim_end());
        text.push('\n');
        if line == 0 {
            let rule: Vec<String> = widths.iter().map(|w| "-".repeat(*w)).collect();
            text.push_str(&rule.join("  "));
            text.push('\n');
        }
    }
    if answer.is_empty() {
        text.push_str("no rows\n");
    }
    if answer.len() > SHOWN_ROWS {
        text.push_str(&format!(
            "… and {} more {}\n",
            answer.len() - SHOWN_ROWS,
            if answer.len() == SHOWN_ROWS + 1 { "row" } else { "rows" }
        ));
    }
    let hidden: Vec<&str> = answer.shown().skip(SHOWN_COLUMNS).map(|c| c.name.as_str()).collect();
    if !hidden.is_empty() {
        let named = hidden.iter().take(40).copied().collect::<Vec<_>>().join(", ");
        text.push_str(&format!("… and {}: {named}\n", counted(hidden.len(), "more column")));
    }
    for note in answer.table.notes.iter().take(10) {
        text.push_str(&format!("Note: {note}\n"));
    }
    text
}

/// The cells of a column with its name on top, and whether they stand to the right.
fn cells(column: &Column, rows: &[u32], described: bool) -> (Vec<String>, bool) {
    let values = rows.iter().map(|&r| column.value(r as usize));
    let decimals = match column.kind() {
        Kind::Number => number::decimals(rows.iter().map(|&r| column.number(r as usize))),
        _ => 0,
    };
    let cell = |value: Value<'_>| match value {
        Value::Missing => String::new(),
        Value::Number(n) => number::fixed(n, decimals),
        Value::Integer(n) => n.to_string(),
        Value::Date(seconds, precision) => date::format(seconds, precision, ' '),
        Value::Text(text) => one_line(text),
    };
    let spans =
        described && matches!(column.values, Values::Text(_)) && matches!(column.name.as_str(), "min" | "mean" | "max");
    let right = matches!(column.kind(), Kind::Number | Kind::Integer) || spans;
    (std::iter::once(one_line(&column.name)).chain(values.map(cell)).collect(), right)
}

fn one_line(text: &str) -> String {
    let mut line = String::new();
    for (i, c) in text.chars().enumerate() {
        if i >= SHOWN_LETTERS {
            line.push('…');
            break;
        }
        line.push(if c.is_control() { ' ' } else { c });
    }
    line
}

/// Columns of a terminal that `text` takes: East Asian letters and pictographs take two, marks none.
fn width(text: &str) -> usize {
    let wide = |c: char| match c as u32 {
        0x300..=0x36F | 0x200B..=0x200F | 0xFE00..=0xFE0F => 0,
        0x1100..=0x115F | 0x2E80..=0xA4CF | 0xAC00..=0xD7A3 | 0xF900..=0xFAFF | 0xFE30..=0xFE6F => 2,
        0xFF00..=0xFF60 | 0xFFE0..=0xFFE6 | 0x1F300..=0x1FAFF | 0x20000..=0x3FFFD => 2,
        _ => 1,
    };
    text.chars().map(wide).sum()
}
