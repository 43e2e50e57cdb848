//! Comma, semicolon, tab and bar separated values (RFC 4180 and what is found in the wild).

use crate::Error;
use crate::cell::{Cell, Sink};
use crate::date::{self, Order};
use crate::name;
use crate::number::{self, Style};

/// How a file is laid out.
#[derive(Debug)]
pub struct Layout {
    pub delimiter: u8,
    /// Bytes in front of the header: lines of comment and empty ones.
    skip: usize,
    skipped_lines: usize,
    header: bool,
    columns: usize,
    /// Where a row that ends there may be half of one, because the text was cut.
    end: Option<u64>,
}

/// Learns the layout and hands every cell to `sink`. Of a text that was `cut` off, what may be half of a row is left out.
pub fn survey(
    file: &str,
    text: &str,
    cut: bool,
    sink: &mut impl Sink,
    notes: &mut Vec<String>,
) -> Result<Layout, Error> {
    let (skip, skipped_lines) = preamble(text);
    let delimiter = sniff(&text[skip..], cut);
    let end = cut.then_some((text.len() - skip) as u64);
    let mut layout = Layout { delimiter, skip, skipped_lines, header: true, columns: 0, end };
    let mut first = csv::StringRecord::new();
    if !next(&mut reader(text, &layout), &layout, &mut first).map_err(|e| broken(file, &layout, &e))? {
        return Err(Error::new(
            "not-a-table",
            format!("{file} is empty; a table needs at least a line with column names"),
        ));
    }
    layout.columns = first.len();
    layout.header = !headless(text, &layout, &first);
    let names = if layout.header {
        first.iter().map(str::to_owned).collect()
    } else {
        notes.push(format!("{file} has no line with column names; its columns are called column_1, column_2, …"));
        vec![String::new(); first.len()]
    };
    for name in name::distinct(names) {
        sink.column(&name);
    }
    let short = rows(file, text, &layout, sink)?;
    if let Some((count, line)) = short {
        let rows = if count == 1 { "1 row has".to_owned() } else { format!("{count} rows have") };
        notes.push(format!("{rows} fewer values than the header (first on line {line}); the rest counts as missing"));
    }
    Ok(layout)
}

/// Hands every cell to `sink`.
pub fn walk(file: &str, text: &str, layout: &Layout, sink: &mut impl Sink) -> Result<(), Error> {
    rows(file, text, layout, sink).map(|_| ())
}

/// The number of rows that are too short, and the line of the first.
fn rows(file: &str, text: &str, layout: &Layout, sink: &mut impl Sink) -> Result<Option<(usize, u64)>, Error> {
    let mut reader = reader(text, layout);
    let mut record = csv::StringRecord::new();
    let (mut short, mut first) = (None, layout.header);
    let mut last_line = 0;
    while next(&mut reader, layout, &mut record).map_err(|e| broken(file, layout, &e))? {
        if std::mem::take(&mut first) {
            continue;
        }
        let line = record.position().map_or(0, csv::Position::line) + layout.skipped_lines as u64;
        last_line = line;
        if record.len() == 1 && record[0].trim().is_empty() && layout.columns > 1 {
            continue;
        }
        if let Some(extra) = record.iter().skip(layout.columns).position(|c| !c.trim().is_empty()) {
            let count = layout.columns + extra + 1;
            return Err(Error::new(
                "not-a-table",
                format!(
                    "{file} line {line} column {count}: the line has {} values, but there are {} columns; put a value that \
                     holds the delimiter {} in double quotes",
                    record.len(),
                    layout.columns,
                    shown(layout.delimiter)
                ),
            ));
        }
        if record.len() < layout.columns {
            short = Some(short.map_or((1, line), |(count, first)| (count + 1, first)));
        }
        for (column, cell) in record.iter().take(layout.columns).enumerate() {
            sink.cell(column, Cell::Written(cell.trim()));
        }
        sink.end_row();
    }
    // A quote that nobody closes swallows the rest of the file into one cell; behind a cut it may be closed.
    let swallowed =
        layout.end.is_none() && (record.iter().any(|c| c.contains('\n')) || reader.position().line() > last_line + 1);
    if swallowed && text.bytes().filter(|&b| b == b'"').count() % 2 == 1 {
        let message = format!("{file} line {last_line}: a double quote is opened and never closed");
        return Err(Error::new("not-a-table", message));
    }
    Ok(short)
}

fn reader<'t>(text: &'t str, layout: &Layout) -> csv::Reader<&'t [u8]> {
    csv::ReaderBuilder::new()
        .delimiter(layout.delimiter)
        .has_headers(false)
        .flexible(true)
        .from_reader(&text.as_bytes()[layout.skip..])
}

/// Whether there was one more whole row.
fn next(reader: &mut csv::Reader<&[u8]>, layout: &Layout, record: &mut csv::StringRecord) -> Result<bool, csv::Error> {
    let read = reader.read_record(record)?;
    Ok(read && layout.end.is_none_or(|end| reader.position().byte() < end))
}

fn broken(file: &str, layout: &Layout, error: &csv::Error) -> Error {
    let line = error.position().map_or(0, csv::Position::line) + layout.skipped_lines as u64;
    Error::new("not-a-table", format!("{file} line {line}: {error}"))
}

/// Bytes and lines in front of the header. A `sep=;` line is what spreadsheets put there.
fn preamble(text: &str) -> (usize, usize) {
    let (mut bytes, mut lines) = (0, 0);
    let mut comment: Option<(&str, (usize, usize))> = None;
    let mut all = text.split_inclusive('\n');
    while let Some(line) = all.next() {
        let start = line.trim();
        if !(start.is_empty() || start.starts_with('#') || start.starts_with("sep=")) {
            let names = comment.filter(|(line, _)| names_columns(line, start, all.next().unwrap_or_default()));
            return names.map_or((bytes, lines), |(_, place)| place);
        }
        comment = start.starts_with('#').then_some((start, (bytes, lines)));
        bytes += line.len();
        lines += 1;
    }
    // A first line that is all there is, and has several names, is a header without rows.
    match comment {
        Some((line, (0, 0))) if !line.starts_with("# ") && line.contains(CANDIDATES) => (0, 0),
        _ => (bytes, lines),
    }
}

/// Whether a line that begins with `#` names the columns of the line behind it, as `#id,v` and `#CHROM` do: it has as many cells and no
/// space behind the mark, and what follows is data, or looks no more like data than the line after it.
fn names_columns(comment: &str, row: &str, after: &str) -> bool {
    if comment[1..].starts_with([' ', '#', '!']) || comment.len() == 1 {
        return false;
    }
    let count = |line: &str, delimiter: char| line.matches(delimiter).count();
    let most = CANDIDATES.into_iter().rev().max_by_key(|delimiter| count(comment, *delimiter)).unwrap_or(',');
    let is_data = |line: &str| line.split(most).any(|cell| is_value(cell.trim().trim_matches('"')));
    let several = count(comment, most) > 0;
    count(comment, most) == count(row, most)
        && !is_data(comment)
        && (is_data(row) || several && !is_data(after))
        && (several || !comment.contains(' '))
}

/// Whether a cell is a number or a date, which no column is called.
fn is_value(cell: &str) -> bool {
    number::parse(cell, Style::Point).is_some()
        || number::integer(cell).is_some()
        || date::parse(cell, Order::MonthFirst).is_some()
}

/// Delimiters that are detected.
const CANDIDATES: [char; 4] = ['\t', ';', '|', ','];

/// The delimiter that the first lines have equally often, and most of; the rarer one where two are as good.
fn sniff(text: &str, cut: bool) -> u8 {
    const LINES: usize = 20;
    let mut lines: Vec<[usize; 4]> = vec![[0; 4]];
    let (mut quoted, mut end) = (false, 0);
    for byte in text.bytes() {
        end += 1;
        match byte {
            b'"' => quoted = !quoted,
            b'\n' if !quoted && lines.len() == LINES => break,
            b'\n' if !quoted => lines.push([0; 4]),
            _ if !quoted => {
                if let Some(i) = CANDIDATES.iter().position(|&c| c == char::from(byte)) {
                    lines.last_mut().expect("starts with one")[i] += 1;
                }
            }
            _ => {}
        }
    }
    // The last one is not a line, or half of one.
    if end == text.len() && lines.len() > 1 && (cut || text.ends_with('\n')) {
        lines.pop();
    }
    let score = |i: &usize| {
        let header = lines[0][*i];
        let same = lines.iter().filter(|l| l[*i] == header).count();
        (header > 0, header * same)
    };
    let best = (0..CANDIDATES.len()).rev().max_by_key(score).unwrap_or_default();
    if lines[0][best] == 0 { b',' } else { CANDIDATES[best] as u8 }
}

/// Whether the first line is already data: all numbers and dates, and so is the second.
fn headless(text: &str, layout: &Layout, first: &csv::StringRecord) -> bool {
    let data = |record: &csv::StringRecord| {
        record.iter().any(|c| !c.trim().is_empty())
            && record.iter().map(str::trim).filter(|c| !c.is_empty()).all(is_value)
    };
    let mut second = csv::StringRecord::new();
    let mut reader = reader(text, layout);
    let mut row = || next(&mut reader, layout, &mut second).is_ok_and(|more| more);
    let read = row() && row();
    read && data(first) && data(&second)
}

fn shown(delimiter: u8) -> String {
    if delimiter == b'\t' { "tab".to_owned() } else { format!("`{}`", char::from(delimiter)) }
}
