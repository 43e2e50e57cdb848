//! Tables: in columns if they fit, otherwise one line for each cell.

use super::inline::Inline;
use crate::cli::show::{Paint, columns};
use pulldown_cmark::Alignment;

/// The gap between two columns.
const GAP: &str = "  ";

/// Minimum columns of a cell beside its label.
const NARROWEST: usize = 16;

/// A table that is being collected.
#[derive(Debug)]
pub(super) struct Table {
    alignments: Vec<Alignment>,
    /// The rows; the first one is the head.
    rows: Vec<Vec<Inline>>,
    row: Vec<Inline>,
}

impl Table {
    pub(super) fn new(alignments: Vec<Alignment>) -> Table {
        Table { alignments, rows: Vec::new(), row: Vec::new() }
    }

    pub(super) fn cell(&mut self, cell: Inline) {
        self.row.push(cell);
    }

    pub(super) fn end_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.row));
    }

    pub(super) fn lines(&self, paint: Paint, width: usize) -> Vec<String> {
        let Some(head) = self.rows.first() else { return Vec::new() };
        let widest = |at: usize| self.rows.iter().filter_map(|row| row.get(at)).map(Inline::columns).max().unwrap_or(0);
        let widths: Vec<usize> = (0..head.len()).map(widest).collect();
        let whole = widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1);
        if whole > width { self.as_list(paint, width) } else { self.as_columns(paint, &widths) }
    }

    fn as_columns(&self, paint: Paint, widths: &[usize]) -> Vec<String> {
        let mut lines = Vec::new();
        for (number, row) in self.rows.iter().enumerate() {
            let cells = row.iter().zip(widths).enumerate().map(|(at, (cell, width))| {
                let free = width.saturating_sub(cell.columns());
                let before = match self.alignments.get(at) {
                    Some(Alignment::Right) => free,
                    Some(Alignment::Center) => free / 2,
                    _ => 0,
                };
                let text = cell.line(paint);
                let text = if number == 0 { paint.bold(&text) } else { text };
                format!("{}{text}{}", " ".repeat(before), " ".repeat(free - before))
            });
            lines.push(cells.collect::<Vec<_>>().join(GAP).trim_end().to_owned());
            if number == 0 {
                let rules: Vec<_> = widths.iter().map(|width| "─".repeat(*width)).collect();
                lines.push(paint.dim(&rules.join(GAP)));
            }
        }
        lines
    }

    /// Prints "Head: cell" lines, with an empty line between rows.
    fn as_list(&self, paint: Paint, width: usize) -> Vec<String> {
        let mut lines = Vec::new();
        let heads: Vec<String> = self.rows.first().into_iter().flatten().map(|head| head.from(0)).collect();
        for row in self.rows.iter().skip(1) {
            if !lines.is_empty() {
                lines.push(String::new());
            }
            for (cell, head) in row.iter().zip(&heads) {
                let label = format!("{head}: ");
                let room = width.saturating_sub(columns(&label)).max(NARROWEST);
                let mut parts = cell.wrapped(paint, room).into_iter();
                lines.push(format!("{}{}", paint.bold(&label), parts.next().unwrap_or_default()).trim_end().to_owned());
                lines.extend(parts.map(|part| format!("  {part}")));
            }
        }
        lines
    }
}
