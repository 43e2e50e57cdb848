//! The cells of one sheet, as a table.

use std::collections::BTreeMap;

use crate::limits;
use crate::out::Out;

/// Rows of a sheet.
const ROWS: u32 = 1 << 20;

/// Cells of one merged range that get its value.
const MERGED: u64 = 2_000;

/// Cells by row and column, both from 0. Empty ones are absent.
#[derive(Debug, Default)]
pub struct Grid {
    rows: BTreeMap<u32, Vec<(u32, String)>>,
    /// Bytes of text.
    bytes: usize,
    /// Rows and columns that the sheet uses, whether or not their cells were kept.
    height: u32,
    width: u32,
    /// Rows with a value.
    filled: usize,
    last_row: Option<u32>,
}

impl Grid {
    /// Adds a cell, unless `limit` bytes are reached; then it is only counted.
    pub fn push(&mut self, row: u32, column: u32, text: String, limit: usize) {
        // No program has more, and what is beyond would make the table of a damaged file endless.
        if text.is_empty() || row >= ROWS || column as usize >= limits::COLUMNS {
            return;
        }
        self.height = self.height.max(row.saturating_add(1));
        self.width = self.width.max(column.saturating_add(1));
        if self.last_row != Some(row) && !self.rows.contains_key(&row) {
            self.filled += 1;
        }
        self.last_row = Some(row);
        if self.bytes > limit {
            return;
        }
        self.bytes += text.len() + 3;
        self.rows.entry(row).or_default().push((column, text));
    }

    /// Whether further cells are only counted.
    pub fn is_full(&self, limit: usize) -> bool {
        self.bytes > limit
    }

    /// Takes the number of rows from elsewhere, where not all of them were read.
    pub fn set_rows(&mut self, rows: u32) {
        self.filled = self.filled.max(rows as usize);
    }

    /// Gives each cell of a merged range the value of its first.
    pub fn fill(&mut self, first: (u32, u32), last: (u32, u32)) {
        let (rows, columns) =
            (u64::from(last.0.saturating_sub(first.0)) + 1, u64::from(last.1.saturating_sub(first.1)) + 1);
        if rows * columns > MERGED {
            return;
        }
        let value = self.rows.get(&first.0).and_then(|row| row.iter().find(|(column, _)| *column == first.1));
        let Some((_, value)) = value.cloned() else { return };
        for row in first.0..=last.0 {
            for column in first.1..=last.1 {
                let taken = self.rows.get(&row).is_some_and(|cells| cells.iter().any(|(known, _)| *known == column));
                if !taken {
                    self.push(row, column, value.clone(), usize::MAX);
                }
            }
        }
    }

    /// Rows with a value.
    pub fn filled(&self) -> usize {
        self.filled
    }

    pub fn width(&self) -> u32 {
        self.width
    }

    /// Writes a table without empty rows and columns.
    pub fn write(&self, out: &mut Out) {
        let mut columns: Vec<u32> = self.rows.values().flatten().map(|(column, _)| *column).collect();
        columns.sort_unstable();
        columns.dedup();
        let most = limits::CELLS / columns.len().max(1);
        let rows: Vec<Vec<String>> = self.rows.values().take(most).map(|row| dense(row, &columns)).collect();
        out.table(&rows);
        if rows.len() < self.rows.len() {
            out.raw(&format!("(the table is cut after {} rows, at {} cells)", rows.len(), limits::CELLS));
        }
    }

    /// All rows from the first on, empty ones too, all of one width.
    pub fn dense_rows(&self) -> impl Iterator<Item = Vec<String>> {
        let width = self.width as usize;
        (0..self.height).map(move |number| {
            let mut row = vec![String::new(); width];
            for (column, text) in self.rows.get(&number).into_iter().flatten() {
                row[*column as usize].clone_from(text);
            }
            row
        })
    }
}

/// The cells of a row under the columns that are used.
fn dense(row: &[(u32, String)], columns: &[u32]) -> Vec<String> {
    let mut cells = Vec::new();
    for (column, text) in row {
        let index = columns.partition_point(|used| used < column);
        if cells.len() <= index {
            cells.resize(index + 1, String::new());
        }
        cells[index].clone_from(text);
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::out::Style;

    #[test]
    fn merged_cells_are_filled() {
        let mut grid = Grid::default();
        for (row, column, text) in [(2, 1, "Year"), (3, 1, "a"), (3, 2, "b"), (9, 2, "1")] {
            grid.push(row, column, text.into(), 1_000);
        }
        grid.fill((2, 1), (2, 2));
        let mut out = Out::new(Style::Text, None, 1_000);
        grid.write(&mut out);
        assert_eq!(out.finish().1[0].text, "Year\tYear\na\tb\n\t1");
        assert_eq!(grid.filled(), 3);
        assert_eq!(grid.dense_rows().count(), 10);
        // A damaged file.
        grid.push(u32::MAX, 3, "x".into(), 1_000);
        grid.push(3, 1 << 30, "x".into(), 1_000);
        assert_eq!(grid.width(), 3);
    }
}
