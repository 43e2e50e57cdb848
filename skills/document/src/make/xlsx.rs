//! Writes workbooks from tables of text, with the types that the text has.

mod cells;
mod write;

use crate::error::{Error, Result};
use crate::limits;

pub use cells::{from_json, from_records};
pub use write::write;

/// Characters of one cell, which Excel limits.
const CELL_CHARS: usize = 32_767;

/// Rows of a sheet, which Excel limits.
const ROWS: usize = 1 << 20;

/// Characters of the name of a sheet, which Excel limits.
const NAME_CHARS: usize = 31;

#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    Empty,
    Text(String),
    /// Digits that are text, such as a postcode.
    Code(String),
    Number(f64, Format),
    Bool(bool),
}

/// How a number is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    General,
    Date,
    DateTime,
    Time,
    Percent,
    PercentPart,
    Thousands,
    ThousandsPart,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Sheet {
    pub name: String,
    pub rows: Vec<Vec<Cell>>,
    /// Whether the first row names the columns.
    pub has_head: bool,
}

/// How text becomes cells.
#[derive(Debug, Clone, Copy, Default)]
pub struct Taking {
    /// Whether everything stays text.
    pub only_text: bool,
    /// Whether the first row is known not to name the columns.
    pub no_head: bool,
}

/// Gives sheets names that Excel takes, each once.
pub fn name_sheets(sheets: &mut [Sheet]) {
    let mut taken: Vec<String> = Vec::new();
    for (number, sheet) in sheets.iter_mut().enumerate() {
        let plain: String =
            sheet.name.chars().map(|c| if "[]:*?/\\".contains(c) || c.is_control() { '_' } else { c }).collect();
        let plain = plain.trim_matches(['\'', ' ']);
        let base: String =
            if plain.is_empty() { format!("Sheet{}", number + 1) } else { plain.chars().take(NAME_CHARS).collect() };
        let mut name = base.clone();
        let mut count = 1;
        while taken.contains(&name.to_lowercase()) {
            count += 1;
            let end = format!(" ({count})");
            name = base.chars().take(NAME_CHARS - end.len()).collect::<String>() + &end;
        }
        taken.push(name.to_lowercase());
        sheet.name = name;
    }
}

/// Whether sheets are within what workbooks can have.
fn check(sheets: &[Sheet]) -> Result<()> {
    let mut cells = 0;
    for sheet in sheets {
        if sheet.rows.len() > ROWS {
            return Err(Error::limit(&format!("sheet {}: it has {} rows", sheet.name, sheet.rows.len()), ROWS));
        }
        for row in &sheet.rows {
            cells += row.len();
            if row.len() > limits::COLUMNS {
                return Err(Error::limit(
                    &format!("sheet {}: it has {} columns", sheet.name, row.len()),
                    limits::COLUMNS,
                ));
            }
        }
        if cells > limits::CELLS {
            return Err(Error::limit("there are too many cells", limits::CELLS));
        }
        let is_long = |cell: &Cell| matches!(cell, Cell::Text(text) if text.len() > CELL_CHARS && text.chars().count() > CELL_CHARS);
        if sheet.rows.iter().flatten().any(is_long) {
            return Err(Error::limit(&format!("sheet {}: a cell has too many characters", sheet.name), CELL_CHARS));
        }
    }
    Ok(())
}
