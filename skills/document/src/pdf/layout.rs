//! A page as lines of characters, each at its place: `pdftotext -layout`.

use super::glyphs::Placed;
use super::words::{Piece, pieces};

/// Columns of a line; text beyond it follows the last word.
const COLUMNS: usize = 400;

/// Empty lines that follow one another.
const EMPTY_LINES: usize = 3;

pub fn lines(glyphs: &[Placed]) -> String {
    let mut text = String::new();
    for turn in 0..4 {
        let pieces = pieces(glyphs, turn);
        if !pieces.is_empty() {
            write(&pieces, &mut text);
        }
    }
    text
}

fn write(pieces: &[Piece], text: &mut String) {
    let left = pieces.iter().map(|piece| piece.left).fold(f32::MAX, f32::min);
    let width = character_width(pieces);
    let mut current = usize::MAX;
    let mut baseline = f32::MAX;
    let mut column = 0;
    for piece in pieces {
        if piece.line != current {
            if !text.is_empty() {
                text.push('\n');
                let skipped = ((piece.baseline - baseline) / (1.4 * piece.size.max(1.0))) as usize;
                text.push_str(&"\n".repeat(skipped.saturating_sub(1).min(EMPTY_LINES)));
            }
            (current, baseline, column) = (piece.line, piece.baseline, 0);
        }
        let wanted = (((piece.left - left) / width).round() as usize).min(COLUMNS);
        let least = if column == 0 { wanted } else { wanted.max(column + 2) };
        text.push_str(&" ".repeat(least - column));
        text.push_str(&piece.text);
        column = least + piece.text.chars().count();
    }
    text.push('\n');
}

/// The width at which no piece reaches into the next one, for most of them.
fn character_width(pieces: &[Piece]) -> f32 {
    let mut widths: Vec<f32> = pieces
        .iter()
        .filter(|piece| piece.text.chars().count() > 2)
        .map(|piece| (piece.right - piece.left) / piece.text.chars().count() as f32)
        .filter(|width| *width > 0.1)
        .collect();
    widths.sort_by(f32::total_cmp);
    widths.get(widths.len() / 2).copied().unwrap_or(5.0)
}

#[cfg(test)]
mod tests {
    use super::super::order::tests::piece;
    use super::*;

    #[test]
    fn pieces_keep_their_columns() {
        let mut text = String::new();
        write(
            &[piece("Name", 0.0, 0), piece("Price", 50.0, 0), piece("Bread", 0.0, 1), piece("3.50", 55.0, 1)],
            &mut text,
        );
        assert_eq!(text, "Name      Price\nBread      3.50\n");
    }
}
