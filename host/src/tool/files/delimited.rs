//! Heads of comma, semicolon, tab and bar separated values, by the rules of `skills/data/table`.

use super::date::{self, Order};
use super::guess::{Cell, Survey, distinct};
use super::head::Head;
use super::number::{self, Style};
use crate::llm::prompt::Column;

/// The columns; none where a row has more values than there are columns, or a quote is never closed.
pub fn columns(head: &Head) -> Option<Vec<Column>> {
    let (skip, skipped_lines) = preamble(&head.text);
    let text = &head.text[skip..];
    let delimiter = sniff(text, head.cut);
    let mut rows = Rows::new(text, delimiter, head.cut);
    let mut record = csv::StringRecord::new();
    if !rows.next(&mut record)? {
        return None;
    }
    let mut survey = Survey::default();
    let count = record.len();
    let header = !(data(&record) && {
        let mut second = csv::StringRecord::new();
        rows.next(&mut second)? && data(&second)
    });
    let names = if header { record.iter().map(str::to_owned).collect() } else { vec![String::new(); count] };
    for name in distinct(names) {
        survey.column(&name);
    }

    let mut rows = Rows::new(text, delimiter, head.cut);
    let (mut first, mut last_line) = (header, 0);
    while rows.next(&mut record)? {
        if std::mem::take(&mut first) {
            continue;
        }
        last_line = record.position().map_or(0, csv::Position::line) + skipped_lines;
        if record.len() == 1 && record[0].trim().is_empty() && count > 1 {
            continue;
        }
        if record.iter().skip(count).any(|c| !c.trim().is_empty()) {
            return None;
        }
        for (column, cell) in record.iter().take(count).enumerate() {
            survey.cell(column, Cell::Written(cell.trim()));
        }
        survey.end_row();
    }
    // A quote that nobody closes swallows the rest of the file into one cell; in a head it may be closed further on.
    let swallowed = !head.cut && rows.reader.position().line() > last_line + 1;
    if swallowed && head.text.bytes().filter(|&b| b == b'"').count() % 2 == 1 {
        return None;
    }
    survey.finish(delimiter != b',')
}

/// The whole rows of a head.
struct Rows<'t> {
    reader: csv::Reader<&'t [u8]>,
    /// Where a row that ends there may be half of one.
    end: Option<u64>,
}

impl<'t> Rows<'t> {
    fn new(text: &'t str, delimiter: u8, cut: bool) -> Self {
        let reader = csv::ReaderBuilder::new()
            .delimiter(delimiter)
            .has_headers(false)
            .flexible(true)
            .from_reader(text.as_bytes());
        Self { reader, end: cut.then_some(text.len() as u64) }
    }

    /// Whether there was one more; none if it does not read as one.
    fn next(&mut self, record: &mut csv::StringRecord) -> Option<bool> {
        let read = self.reader.read_record(record).ok()?;
        Some(read && self.end.is_none_or(|end| self.reader.position().byte() < end))
    }
}

/// Bytes and lines in front of the header: comments, empty ones, and what spreadsheets say about the delimiter.
fn preamble(text: &str) -> (usize, u64) {
    let (mut bytes, mut lines) = (0, 0);
    for line in text.split_inclusive('\n') {
        let start = line.trim();
        if !(start.is_empty() || start.starts_with('#') || start.starts_with("sep=")) {
            break;
        }
        bytes += line.len();
        lines += 1;
    }
    (bytes, lines)
}

/// The delimiter that the first lines have equally often, and most of; the rarer one where two are as good.
fn sniff(text: &str, cut: bool) -> u8 {
    const CANDIDATES: [u8; 4] = [b'\t', b';', b'|', b','];
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
                if let Some(i) = CANDIDATES.iter().position(|&c| c == byte)
                    && let Some(line) = lines.last_mut()
                {
                    line[i] += 1;
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
    if lines[0][best] == 0 { b',' } else { CANDIDATES[best] }
}

/// Whether all values are numbers and dates. Where the first two lines are, there is no header.
fn data(record: &csv::StringRecord) -> bool {
    let mut cells = record.iter().map(str::trim).filter(|c| !c.is_empty()).peekable();
    cells.peek().is_some() && cells.all(|c| number::is_number(c, Style::Point) || date::is_date(c, Order::MonthFirst))
}
