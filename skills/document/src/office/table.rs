//! A table while its cells are read.

use crate::limits;

/// Columns that one cell may go over.
const SPAN: usize = 200;

#[derive(Debug, Default)]
pub struct Table {
    pub rows: Vec<Vec<String>>,
    cells: usize,
}

impl Table {
    pub fn begin_row(&mut self) {
        self.rows.push(Vec::new());
    }

    /// Adds a cell that goes over `span` columns.
    pub fn push(&mut self, text: String, span: usize) {
        let span = span.clamp(1, SPAN);
        self.cells += span;
        if self.cells > limits::TABLE_CELLS {
            return;
        }
        if self.rows.is_empty() {
            self.begin_row();
        }
        if let Some(row) = self.rows.last_mut() {
            row.push(text);
            row.extend(std::iter::repeat_n(String::new(), span - 1));
        }
    }

    /// All cells as one text, for a table inside a cell.
    pub fn into_text(self) -> String {
        let row = |row: Vec<String>| row.into_iter().filter(|cell| !cell.is_empty()).collect::<Vec<_>>().join(" ");
        self.rows.into_iter().map(row).collect::<Vec<_>>().join("\n")
    }

    /// Whether it only places a text: one cell.
    pub fn is_frame(&self) -> bool {
        self.rows.iter().flatten().filter(|cell| !cell.trim().is_empty()).count() < 2
    }
}
