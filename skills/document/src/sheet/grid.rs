//! The cells of one sheet, as a table.

use std::collections::BTreeMap;

use crate::out::Out;

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
        if text.is_empty() {
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

    /// Writes a table without empty rows and without empty columns at its left.
    pub fn write(&self, out: &mut Out) {
        let left = self.rows.values().flatten().map(|(column, _)| *column).min().unwrap_or(0);
        let rows: Vec<Vec<String>> = self.rows.values().map(|row| dense(row, left)).collect();
        out.table(&rows);
    }

    /// All rows from the first on, empty ones too, all of one width.
    pub fn dense_rows(&self) -> impl Iterator<Item = Vec<String>> {
        let width = self.width as usize;
        (0..self.height).map(move |number| {
            let mut row = self.rows.get(&number).map(|row| dense(row, 0)).unwrap_or_default();
            row.resize(width, String::new());
            row
        })
    }
}

fn dense(row: &[(u32, String)], left: u32) -> Vec<String> {
    let mut cells = Vec::new();
    for (column, text) in row {
        let index = (column - left) as usize;
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
    }
}
