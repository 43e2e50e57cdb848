//! The workspace as the planner sees it: paths, sizes, and the columns of tables, read from the head of each file.
//!
//! Guests wrote these files. Links are never followed, and only a bounded part of anything is read.

use crate::llm::prompt::{Column, ColumnKind, FileCard};
use cap_std::fs::Dir;
use std::io::Read;

/// Files that are looked at; the retrieval node shows fewer.
const MAX_FILES: usize = 500;
const MAX_DEPTH: usize = 6;
/// Tables whose columns are read.
const MAX_TABLES: usize = 50;
/// Bytes of a table that are read.
const HEAD_BYTES: u64 = 64 << 10;
/// Rows of a table that decide what its columns hold.
const HEAD_ROWS: usize = 100;

/// The files of a workspace in no particular order.
pub fn cards(work: &Dir) -> Vec<FileCard> {
    let mut cards = Vec::new();
    walk(work, "", 0, &mut cards);
    let mut tables = 0;
    for card in &mut cards {
        let delimiter = match card.path.rsplit('.').next() {
            Some("csv") => None,
            Some("tsv") => Some(b'\t'),
            _ => continue,
        };
        tables += 1;
        if tables > MAX_TABLES {
            break;
        }
        card.columns = columns(work, &card.path, delimiter);
    }
    cards
}

fn walk(dir: &Dir, prefix: &str, depth: usize, cards: &mut Vec<FileCard>) {
    let Ok(entries) = dir.entries() else { return };
    for entry in entries.flatten() {
        if cards.len() >= MAX_FILES {
            return;
        }
        // A name that is not UTF-8 cannot be written in a plan.
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = format!("{prefix}{name}");
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth < MAX_DEPTH => {
                if let Ok(inner) = dir.open_dir(&name) {
                    walk(&inner, &format!("{path}/"), depth + 1, cards);
                }
            }
            Ok(kind) if kind.is_file() => {
                let bytes = entry.metadata().map_or(0, |m| m.len());
                cards.push(FileCard { path, bytes, columns: None });
            }
            _ => {}
        }
    }
}

/// The columns of a table, or none if its head does not read as one.
fn columns(work: &Dir, path: &str, delimiter: Option<u8>) -> Option<Vec<Column>> {
    let mut head = Vec::new();
    work.open(path).ok()?.take(HEAD_BYTES).read_to_end(&mut head).ok()?;
    // The last line may be cut off.
    if head.len() as u64 == HEAD_BYTES {
        let end = head.iter().rposition(|b| *b == b'\n')?;
        head.truncate(end);
    }
    let text = String::from_utf8(head).ok()?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let first = text.lines().next()?;
    let delimiter = delimiter.unwrap_or_else(|| {
        let count = |d: u8| first.bytes().filter(|b| *b == d).count();
        [b',', b';', b'\t'].into_iter().max_by_key(|d| (count(*d), *d == b',')).unwrap_or(b',')
    });
    let mut reader = csv::ReaderBuilder::new().delimiter(delimiter).flexible(true).from_reader(text.as_bytes());
    let names: Vec<String> = reader.headers().ok()?.iter().map(|n| n.trim().to_owned()).collect();
    let mut kinds: Vec<Option<ColumnKind>> = vec![None; names.len()];
    for row in reader.records().take(HEAD_ROWS).flatten() {
        for (kind, cell) in kinds.iter_mut().zip(row.iter()) {
            let cell = cell.trim();
            if cell.is_empty() {
                continue;
            }
            let found = kind_of(cell);
            *kind = Some(match kind {
                Some(known) if *known != found => ColumnKind::Text,
                _ => found,
            });
        }
    }
    let column = |(name, kind): (String, Option<ColumnKind>)| Column { name, kind: kind.unwrap_or(ColumnKind::Text) };
    Some(names.into_iter().zip(kinds).map(column).collect())
}

fn kind_of(cell: &str) -> ColumnKind {
    if cell.parse::<f64>().is_ok() {
        return ColumnKind::Number;
    }
    // "2024-03-01" or "2024-03", with or without a time.
    let date = cell.split(['T', ' ']).next().unwrap_or(cell);
    let is_month = date.len() == 7 && format!("{date}-01").parse::<jiff::civil::Date>().is_ok();
    if date.parse::<jiff::civil::Date>().is_ok() || is_month { ColumnKind::Date } else { ColumnKind::Text }
}
