//! Reads CSV, JSON and JSON lines into typed columns.
//!
//! A file is read twice: once to learn names, kinds and the number of rows, once to fill columns that then have exactly
//! the size they need. A number or a date takes eight bytes, a text its bytes and four more, so a file of n bytes never
//! needs more than about 5 n besides itself, and 10 MB fit the 64 MiB that a skill has by default. Of a file that is only to be
//! named to somebody, [`columns`] reads the head.

mod cell;
mod column;
pub mod date;
mod delimited;
mod error;
mod guess;
mod head;
mod json;
pub mod name;
pub mod number;
#[cfg(feature = "sdk")]
mod skill;
#[cfg(test)]
mod tests;
mod text;

pub use cell::Value;
pub use column::{Column, Kind, NO_INTEGER, Texts, Values};
pub use error::Error;
pub use head::{columns, is_table};

use cell::{Fill, Survey};

/// Rows and columns, and what was odd about the file.
#[derive(Debug, Default)]
pub struct Table {
    /// The file that the table was read from, for messages.
    pub file: String,
    /// Columns of one length, with distinct names.
    pub columns: Vec<Column>,
    /// How many values each column has.
    pub rows: usize,
    /// Sentences for the user about what had to be assumed, such as an order of day and month.
    pub notes: Vec<String>,
}

/// Columns beyond this number are a file of another shape, such as an object whose keys are the data.
const MAX_COLUMNS: usize = 2_000;

impl Table {
    /// Reads the bytes of a file called `file`. What starts with `[` or `{` is JSON, all else is delimited text.
    ///
    /// Codes: "not-a-table" (with line and column), "too-large".
    pub fn parse(file: &str, bytes: Vec<u8>, budget: usize) -> Result<Self, Error> {
        let size = bytes.len();
        let (text, encoding) = text::decode(file, bytes)?;
        let format = Format::detect(file, &text);
        let mut survey = Survey::default();
        let mut notes: Vec<String> = encoding.into_iter().collect();
        let layout = match format {
            Format::Delimited => Some(delimited::survey(file, &text, false, &mut survey, &mut notes)?),
            Format::Json => json::walk(file, &text, &mut survey).map(|()| None)?,
            Format::JsonLines => json::walk_lines(file, &text, &mut survey).map(|()| None)?,
        };
        if survey.columns() > MAX_COLUMNS {
            return Err(Error::new(
                "too-large",
                format!("{file} has {} columns; up to {MAX_COLUMNS} can be read", survey.columns()),
            ));
        }
        let decimal_comma = layout.as_ref().is_some_and(|l| l.delimiter != b',');
        let mut fill = Fill::new(survey, decimal_comma, &mut notes);
        if size.saturating_add(fill.bytes()) > budget {
            return Err(too_large(file, budget));
        }
        fill.reserve();
        match (format, layout) {
            (Format::Json, _) => json::walk(file, &text, &mut fill)?,
            (Format::JsonLines, _) => json::walk_lines(file, &text, &mut fill)?,
            (Format::Delimited, Some(layout)) => delimited::walk(file, &text, &layout, &mut fill)?,
            (Format::Delimited, None) => {}
        }
        drop(text);
        let (columns, rows) = fill.finish();
        Ok(Self { file: file.to_owned(), columns, rows, notes })
    }

    /// The column that a user means by `name`: exactly, or with case, spaces, underscores and dashes set aside.
    ///
    /// Fails with code "unknown-column", naming near names and all columns.
    pub fn find(&self, name: &str) -> Result<usize, Error> {
        self.position(name).ok_or_else(|| {
            let names: Vec<&str> = self.columns.iter().map(|c| c.name.as_str()).collect();
            Error::new("unknown-column", name::unknown(&self.file, name, &names))
        })
    }

    /// As [`find`](Self::find), for where a name may be something else.
    pub fn position(&self, name: &str) -> Option<usize> {
        let name = name::unquoted(name.trim());
        let exact = self.columns.iter().position(|c| c.name == name);
        exact.or_else(|| {
            let folded = name::fold(name);
            self.columns.iter().position(|c| name::fold(&c.name) == folded)
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Delimited,
    Json,
    JsonLines,
}

impl Format {
    fn detect(file: &str, text: &str) -> Self {
        let ending = file.rsplit('.').next().unwrap_or("").to_ascii_lowercase();
        let lines = match ending.as_str() {
            "csv" | "tsv" => return Self::Delimited,
            "jsonl" | "ndjson" => return Self::JsonLines,
            _ => json::is_lines(text),
        };
        match text.trim_start().chars().next() {
            _ if lines => Self::JsonLines,
            Some('[' | '{') => Self::Json,
            _ if ending == "json" => Self::Json,
            _ => Self::Delimited,
        }
    }
}

fn too_large(file: &str, budget: usize) -> Error {
    let mib = budget >> 20;
    Error::new("too-large", format!("{file} does not fit into the {mib} MiB that this skill has for tables; split it"))
}
