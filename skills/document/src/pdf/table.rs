//! Finds tables in a block: neighbouring lines whose pieces stand in clear columns.

use super::words::Piece;

/// Columns of a table on a page.
const COLUMNS: usize = 40;

/// Share of pieces that may fall into a taken cell.
const CONFLICTS: f32 = 0.1;

/// Characters of a cell in a table of two columns; longer ones are columns of text.
const PAIR_CHARS: usize = 60;

/// A part of a block.
#[derive(Debug)]
pub enum Section {
    Table(Vec<Vec<String>>),
    /// Lines from the top, each as its pieces joined.
    Lines(Vec<Piece>),
}

/// Divides a block into tables and lines between them.
pub fn sections(block: Vec<Piece>) -> Vec<Section> {
    let rows = rows(block);
    let mut sections = Vec::new();
    let mut lines: Vec<Piece> = Vec::new();
    let mut index = 0;
    while index < rows.len() {
        let length = run(&rows[index..]);
        match table(&rows[index..index + length]) {
            Some(table) => {
                if !lines.is_empty() {
                    sections.push(Section::Lines(std::mem::take(&mut lines)));
                }
                sections.push(Section::Table(table));
            }
            None => lines.extend(rows[index..index + length.max(1)].iter().map(|row| join(row))),
        }
        index += length.max(1);
    }
    if !lines.is_empty() {
        sections.push(Section::Lines(lines));
    }
    sections
}

/// Pieces by lines, each from the left. A bullet is joined with the text behind it.
fn rows(block: Vec<Piece>) -> Vec<Vec<Piece>> {
    let mut rows: Vec<Vec<Piece>> = Vec::new();
    for piece in block {
        match rows.last_mut() {
            Some(row) if row.last().is_some_and(|last| last.line == piece.line) => match row.last_mut() {
                Some(last) if row_mark(&last.text) && piece.left - last.right < 4.0 * piece.size => {
                    last.text = format!("{} {}", last.text, piece.text);
                    last.right = piece.right;
                    last.words += piece.words;
                }
                _ => row.push(piece),
            },
            _ => rows.push(vec![piece]),
        }
    }
    rows
}

/// Whether a piece is a bullet or the number of an item.
pub fn row_mark(text: &str) -> bool {
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (Some(c), None) => "•◦▪■●○–—-*·‣➢✓□".contains(c),
        (Some(_), Some(_)) if text.len() <= 5 => {
            let inner = text.trim_start_matches('(').trim_end_matches(['.', ')']);
            inner.len() < text.len()
                && inner.len() <= 3
                && (inner.chars().all(|c| c.is_ascii_digit())
                    || inner.len() == 1
                    || inner.chars().all(|c| "ivx".contains(c)))
        }
        _ => false,
    }
}

/// Rows from the first on that may be one table: most have several pieces, and none is far from the next.
fn run(rows: &[Vec<Piece>]) -> usize {
    let Some(first) = rows.first().filter(|row| row.len() > 1) else { return 0 };
    let mut length = 1;
    let mut end = 1;
    let mut bottom = first[0].bottom;
    let mut singles = 0;
    for row in &rows[1..] {
        let size = row[0].size;
        if row[0].top - bottom > 2.5 * size {
            break;
        }
        length += 1;
        if row.len() > 1 {
            end = length;
            singles = 0;
        } else {
            singles += 1;
            // A cell that goes over several lines; text below the table goes on longer.
            if singles > 2 || row[0].text.len() > 120 {
                break;
            }
        }
        bottom = row.iter().map(|piece| piece.bottom).fold(f32::MIN, f32::max);
    }
    end
}

fn table(rows: &[Vec<Piece>]) -> Option<Vec<Vec<String>>> {
    let several = rows.iter().filter(|row| row.len() > 1).count();
    if several < 2 {
        return None;
    }
    let columns = columns(rows)?;
    if columns.len() == 2 {
        let pieces = || rows.iter().flatten();
        let longest = pieces().map(|piece| piece.text.chars().count()).max().unwrap_or(0);
        if several < 3 || longest > PAIR_CHARS {
            return None;
        }
    }
    let mut conflicts = 0;
    let mut total = 0;
    let mut table: Vec<Vec<String>> = Vec::new();
    let mut last_baseline = f32::MIN;
    for row in rows {
        let mut cells = vec![String::new(); columns.len()];
        for piece in row {
            total += 1;
            let column = place(&columns, piece);
            if cells[column].is_empty() {
                cells[column].push_str(&piece.text);
            } else {
                conflicts += 1;
                cells[column].push(' ');
                cells[column].push_str(&piece.text);
            }
        }
        let tight = row[0].baseline - last_baseline < 1.35 * row[0].size;
        last_baseline = row[0].baseline;
        let filled = cells.iter().filter(|cell| !cell.is_empty()).count();
        // The rest of cells that go over several lines.
        match table.last_mut() {
            Some(above) if tight && cells[0].is_empty() && filled * 2 <= columns.len() => {
                for (cell, more) in above.iter_mut().zip(cells).filter(|(_, more)| !more.is_empty()) {
                    if !cell.is_empty() {
                        cell.push(' ');
                    }
                    cell.push_str(&more);
                }
            }
            _ => table.push(cells),
        }
    }
    merge_columns(&mut table);
    (conflicts as f32 <= CONFLICTS * total as f32 && table.len() > 1).then_some(table)
}

/// Puts a column that has only a heading together with the one beside it that has only values: they are aligned differently.
fn merge_columns(table: &mut [Vec<String>]) {
    let mut left = 0;
    while left + 1 < table.first().map_or(0, Vec::len) {
        let filled = |column: usize| table.iter().filter(|row| !row[column].is_empty()).count();
        let apart = table.iter().all(|row| row[left].is_empty() || row[left + 1].is_empty());
        let heading = |column: usize| filled(column) <= 2 && table.iter().skip(3).all(|row| row[column].is_empty());
        if apart && (heading(left) != heading(left + 1) || filled(left) == 0 || filled(left + 1) == 0) {
            for row in table.iter_mut() {
                let right = row.remove(left + 1);
                row[left].push_str(&right);
            }
        } else {
            left += 1;
        }
    }
}

/// The left and right ends of the columns, from the rows that have nearly the most pieces.
fn columns(rows: &[Vec<Piece>]) -> Option<Vec<(f32, f32)>> {
    let most = rows.iter().map(Vec::len).max()?;
    let full = rows.iter().filter(|row| row.len() + usize::from(most > 3) >= most && row.len() > 1);
    let mut pieces: Vec<(f32, f32)> = full.flatten().map(|piece| (piece.left, piece.right)).collect();
    pieces.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut columns: Vec<(f32, f32)> = Vec::new();
    for (left, right) in pieces {
        match columns.last_mut() {
            Some(last) if left <= last.1 => last.1 = last.1.max(right),
            _ => columns.push((left, right)),
        }
    }
    (2..=COLUMNS).contains(&columns.len()).then_some(columns)
}

/// The column that a piece overlaps most, else the nearest.
fn place(columns: &[(f32, f32)], piece: &Piece) -> usize {
    let near = |(left, right): &(f32, f32)| right.min(piece.right) - left.max(piece.left);
    // A heading over several columns belongs to the first.
    let covers = columns.iter().position(|(left, right)| {
        piece.left < *right && piece.right > *left && near(&(*left, *right)) > 0.5 * (right - left)
    });
    let best = || (0..columns.len()).max_by(|a, b| near(&columns[*a]).total_cmp(&near(&columns[*b])));
    covers.or_else(best).unwrap_or(0)
}

/// One piece of all in a line.
fn join(row: &[Piece]) -> Piece {
    let mut joined = row[0].clone();
    for piece in &row[1..] {
        joined.text.push(' ');
        joined.text.push_str(&piece.text);
        joined.right = joined.right.max(piece.right);
        joined.words += piece.words;
        joined.size = joined.size.max(piece.size);
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::super::order::tests::piece;
    use super::*;

    #[test]
    fn a_table_stands_between_lines() {
        let block = vec![
            piece("Costs of the last year", 0.0, 0),
            piece("Item", 0.0, 1),
            piece("Number", 100.0, 1),
            piece("Price", 200.0, 1),
            piece("Bread", 0.0, 2),
            piece("2", 110.0, 2),
            piece("3.50", 205.0, 2),
            piece("Milk", 0.0, 3),
            piece("1.20", 205.0, 3),
            piece("All prices are in euros.", 0.0, 5),
        ];
        let sections = sections(block);
        assert_eq!(sections.len(), 3);
        let Section::Table(table) = &sections[1] else { panic!("{sections:?}") };
        assert_eq!(table[0], ["Item", "Number", "Price"]);
        assert_eq!(table[2], ["Milk", "", "1.20"]);
    }

    #[test]
    fn a_heading_stands_over_its_column() {
        let mut table: Vec<Vec<String>> =
            [["a", "", "n"], ["x", "1", ""], ["y", "2", ""], ["z", "3", ""], ["z", "4", ""]]
                .map(|row| row.map(str::to_owned).to_vec())
                .to_vec();
        merge_columns(&mut table);
        assert_eq!(table[..2], [["a", "n"], ["x", "1"]]);
    }

    #[test]
    fn a_list_is_no_table() {
        let block = (0..4).flat_map(|line| [piece("•", 0.0, line), piece("an item", 20.0, line)]).collect();
        let sections = sections(block);
        assert!(matches!(&sections[..], [Section::Lines(lines)] if lines[0].text == "• an item"), "{sections:?}");
    }
}
