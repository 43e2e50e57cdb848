//! Finds the order in which the pieces of a page are read: columns one after the other, tables row by row.

use super::words::Piece;

/// Bands above a block of columns that are tried, and bands of a page with columns at all.
const BANDS: usize = 300;

/// Blocks within blocks.
const DEPTH: usize = 12;

/// Characters that a line of a column has on average; cells of tables have fewer.
const COLUMN_CHARS: usize = 18;

/// Pieces that are read from the top to the bottom.
pub type Block = Vec<Piece>;

/// Divides a page into blocks in reading order.
pub fn blocks(pieces: Vec<Piece>) -> Vec<Block> {
    let mut blocks = Vec::new();
    divide(pieces, 0, &mut blocks);
    blocks
}

fn divide(mut pieces: Vec<Piece>, depth: usize, blocks: &mut Vec<Block>) {
    if pieces.is_empty() {
        return;
    }
    pieces.sort_by(|a, b| a.top.total_cmp(&b.top));
    let bands = bands(&pieces);
    let found = if depth < DEPTH && bands.len() <= BANDS { find_columns(&pieces, &bands) } else { None };
    let Some(Columns { first, last, gutter }) = found else {
        pieces.sort_by(|a, b| (a.line, a.left).partial_cmp(&(b.line, b.left)).unwrap_or(std::cmp::Ordering::Equal));
        blocks.push(pieces);
        return;
    };
    let (start, end) = (bands[first], bands.get(last).copied().unwrap_or(pieces.len()));
    let below = pieces.split_off(end);
    let columns = pieces.split_off(start);
    // The part above has no columns, or they would have been found.
    divide(pieces, DEPTH, blocks);
    let (left, right) = columns.into_iter().partition(|piece| (piece.left + piece.right) / 2.0 < gutter);
    divide(left, depth + 1, blocks);
    divide(right, depth + 1, blocks);
    divide(below, depth + 1, blocks);
}

/// The first piece of each band of pieces that overlap from the top down.
fn bands(pieces: &[Piece]) -> Vec<usize> {
    let mut bands = Vec::new();
    let mut bottom = f32::MIN;
    for (index, piece) in pieces.iter().enumerate() {
        if piece.top >= bottom - 0.1 * piece.size {
            bands.push(index);
        }
        bottom = bottom.max(piece.bottom);
    }
    bands
}

struct Columns {
    first: usize,
    last: usize,
    gutter: f32,
}

/// Finds the bands, the topmost first and as many as possible, that a gutter divides into columns of text.
fn find_columns(pieces: &[Piece], bands: &[usize]) -> Option<Columns> {
    let end = |band: usize| bands.get(band + 1).copied().unwrap_or(pieces.len());
    for first in 0..bands.len() {
        let mut covered: Vec<(f32, f32)> = Vec::new();
        let mut best = None;
        for band in first..bands.len() {
            for piece in &pieces[bands[band]..end(band)] {
                cover(&mut covered, piece.left, piece.right);
            }
            if covered.len() < 2 && band > first {
                break;
            }
            let part = &pieces[bands[first]..end(band)];
            if part.len() >= 6
                && let Some(gutter) = widest_gutter(&covered, part)
            {
                best = Some(Columns { first, last: band + 1, gutter });
            }
        }
        if best.is_some() {
            return best;
        }
    }
    None
}

/// Adds an interval to sorted ones that do not touch.
fn cover(covered: &mut Vec<(f32, f32)>, left: f32, right: f32) {
    let start = covered.partition_point(|(_, end)| *end < left);
    let end = covered.partition_point(|(begin, _)| *begin <= right);
    if start >= end {
        covered.insert(start, (left, right));
        return;
    }
    let merged = (covered[start].0.min(left), covered[end - 1].1.max(right));
    covered.splice(start..end, [merged]);
}

/// The middle of the widest gap that has columns of text on both sides.
fn widest_gutter(covered: &[(f32, f32)], pieces: &[Piece]) -> Option<f32> {
    let size = pieces.iter().map(|piece| piece.size).sum::<f32>() / pieces.len() as f32;
    let mut gaps: Vec<(f32, f32)> = covered.windows(2).map(|pair| (pair[0].1, pair[1].0)).collect();
    gaps.retain(|(left, right)| right - left > 0.7 * size);
    gaps.sort_by(|a, b| (b.1 - b.0).total_cmp(&(a.1 - a.0)));
    gaps.into_iter().take(4).map(|(left, right)| (left + right) / 2.0).find(|gutter| are_columns(pieces, *gutter))
}

fn are_columns(pieces: &[Piece], gutter: f32) -> bool {
    [true, false].into_iter().all(|left| {
        let side = || pieces.iter().filter(|piece| ((piece.left + piece.right) / 2.0 < gutter) == left);
        let count = side().count();
        let chars: usize = side().map(|piece| piece.text.chars().count()).sum();
        let words: usize = side().map(|piece| piece.words).sum();
        count >= 3 && chars >= COLUMN_CHARS * count && (words >= 3 * count || chars >= 30 * count)
    })
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A piece of text of size 10 in line `line`, with 5 for each character.
    pub fn piece(text: &str, left: f32, line: usize) -> Piece {
        let baseline = line as f32 * 12.0 + 10.0;
        Piece {
            left,
            right: left + 5.0 * text.chars().count() as f32,
            top: baseline - 7.5,
            bottom: baseline + 2.5,
            baseline,
            size: 10.0,
            line,
            words: text.split(' ').count(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn columns_are_read_one_after_the_other() {
        let mut pieces = vec![piece("A title that goes over both of the columns of this page", 0.0, 0)];
        for line in 1..6 {
            pieces.push(piece(&format!("left column has line {line}"), 0.0, line));
            pieces.push(piece(&format!("right column has line {line}"), 150.0, line));
        }
        pieces.push(piece("A footer that goes over both of the columns of this page", 0.0, 6));
        let texts: Vec<Vec<String>> =
            blocks(pieces).into_iter().map(|block| block.into_iter().map(|piece| piece.text).collect()).collect();
        assert_eq!(texts.len(), 4);
        assert_eq!(texts[1].len(), 5);
        assert!(texts[1].iter().all(|text| text.starts_with("left")) && texts[2][4] == "right column has line 5");
    }

    #[test]
    fn tables_are_read_by_rows() {
        let mut pieces = Vec::new();
        for line in 0..6 {
            pieces.push(piece("name", 0.0, line));
            pieces.push(piece("12.50", 100.0, line));
            pieces.push(piece("13.75", 200.0, line));
        }
        assert_eq!(blocks(pieces).len(), 1);
    }
}
