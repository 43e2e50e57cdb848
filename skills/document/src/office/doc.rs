//! DOC: texts of Word 97 to 2003 ([MS-DOC]): paragraphs, headings and tables.

use std::io::{Cursor, Read};

use super::table::Table;
use crate::document::Document;
use crate::error::{Error, Result};
use crate::inline::escape;
use crate::kind::Kind;
use crate::limits;
use crate::out::{Out, Style};
use crate::read::Reading;

type File<'a> = cfb::CompoundFile<Cursor<&'a [u8]>>;

/// Pieces of a text, and runs of paragraphs.
const PIECES: usize = 500_000;

/// The first version with the structure that is read here.
const WORD_97: u16 = 0x00c1;

/// The mark at which a paragraph ends in a table.
const CELL: char = '\u{7}';

/// Reads a text.
pub fn read(bytes: &[u8], reading: &Reading) -> Result<Document> {
    let mut file = File::open(Cursor::new(bytes)).map_err(|e| Error::damaged("the container of the text", e))?;
    let main = stream(&mut file, "WordDocument")?;
    let mut out = Out::new(reading.style, reading.pages.clone(), reading.limit);
    match old_piece(&main) {
        Some(piece) => {
            let count = piece.last;
            write(&main, &[piece], &[], |number| number < count, &mut out);
        }
        None => {
            let header = Header::parse(&main)?;
            let table = stream(&mut file, header.table)?;
            let pieces = pieces(&table, &header)?;
            let runs = runs(&main, &table, &header);
            write(&main, &pieces, &runs, |number| header.is_read(number), &mut out);
        }
    }
    let mut document = Document::new(Kind::Doc, out);
    super::summary::describe(&mut file, &mut document);
    Ok(document)
}

pub fn stream(file: &mut File, name: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let stream = file.open_stream(name).map_err(|e| Error::damaged(name, e))?;
    stream.take(limits::FILE_BYTES).read_to_end(&mut bytes).map_err(|e| Error::damaged(name, e))?;
    Ok(bytes)
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<usize> {
    let four = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
    usize::try_from(u32::from_le_bytes(four)).ok()
}

/// Sizes and places from the beginning of the file.
struct Header {
    /// The stream with the tables.
    table: &'static str,
    /// Characters of the text, its footnotes, and its text boxes. What lies between them is not read.
    text: usize,
    notes: usize,
    between: usize,
    boxes: usize,
    /// Place and length of the pieces, and of the runs of paragraphs.
    pieces: (usize, usize),
    paragraphs: (usize, usize),
}

impl Header {
    fn parse(main: &[u8]) -> Result<Self> {
        const ENCRYPTED: u16 = 0x0100;
        const SECOND_TABLE: u16 = 0x0200;
        let cut = || Error::new("it is damaged: it is cut in its head");
        let (version, flags) = (word(main, 2).ok_or_else(cut)?, word(main, 10).ok_or_else(cut)?);
        if flags & ENCRYPTED != 0 {
            return Err("it is encrypted with a password; here only PDF files can be opened with one: remove the password in Office".into());
        }
        if version < WORD_97 {
            return Err("it is a Word file of a version before 97 that was saved quickly, which cannot be read here: save it as .docx".into());
        }
        let count = |index: usize| long(main, 64 + 4 * index).ok_or_else(cut);
        let pair = |index: usize| Some((long(main, 154 + 8 * index)?, long(main, 158 + 8 * index)?));
        Ok(Self {
            table: if flags & SECOND_TABLE == 0 { "0Table" } else { "1Table" },
            text: count(3)?,
            notes: count(4)?,
            // Headers, macros, comments and endnotes.
            between: count(5)?.saturating_add(count(6)?).saturating_add(count(7)?).saturating_add(count(8)?),
            boxes: count(9)?,
            pieces: pair(33).ok_or_else(cut)?,
            paragraphs: pair(13).ok_or_else(cut)?,
        })
    }

    /// Whether a character is of the text, its notes or its boxes.
    fn is_read(&self, number: usize) -> bool {
        let notes = self.text.saturating_add(self.notes);
        let boxes = notes.saturating_add(self.between);
        number < notes || (boxes..boxes.saturating_add(self.boxes)).contains(&number)
    }
}

/// The text of Word 6 and 95, which lies together unless the file was saved quickly.
fn old_piece(main: &[u8]) -> Option<Piece> {
    const QUICK_OR_ENCRYPTED: u16 = 0x0104;
    let (version, flags) = (word(main, 2)?, word(main, 10)?);
    let is_old = (101..WORD_97).contains(&version) && flags & QUICK_OR_ENCRYPTED == 0;
    let (place, count) = (long(main, 0x18)?, long(main, 0x34)?);
    is_old.then_some(Piece { first: 0, last: count, place, narrow: true })
}

/// Characters that lie together in the file.
struct Piece {
    /// Number of its first character.
    first: usize,
    last: usize,
    /// Where it is in the file.
    place: usize,
    /// One byte for each character, or two.
    narrow: bool,
}

fn pieces(table: &[u8], header: &Header) -> Result<Vec<Piece>> {
    let damaged = || Error::new("it is damaged: its list of pieces is cut");
    let (start, length) = header.pieces;
    let mut rest = table.get(start..start.saturating_add(length)).ok_or_else(damaged)?;
    // Before the list of pieces are properties that they share.
    while let [1, low, high, ..] = rest {
        let length = usize::from(u16::from_le_bytes([*low, *high]));
        rest = rest.get(3 + length..).ok_or_else(damaged)?;
    }
    let list = rest.first().filter(|kind| **kind == 2).and_then(|_| rest.get(5..)).ok_or_else(damaged)?;
    let count = list.len().saturating_sub(4) / 12;
    let mut pieces = Vec::new();
    for index in 0..count.min(PIECES) {
        let (Some(first), Some(last)) = (long(list, 4 * index), long(list, 4 * index + 4)) else { break };
        let Some(place) = long(list, 4 * (count + 1) + 8 * index + 2) else { break };
        let narrow = place & 0x4000_0000 != 0;
        let place = place & 0x3fff_ffff;
        if first < last {
            pieces.push(Piece { first, last, place: if narrow { place / 2 } else { place }, narrow });
        }
    }
    Ok(pieces)
}

/// Properties of paragraphs in one range of the file.
#[derive(Debug, Clone, Copy, Default)]
struct Run {
    start: usize,
    end: usize,
    /// Number of its style; 1 to 9 are headings.
    style: u16,
    in_table: bool,
    /// Whether its mark ends a row.
    ends_row: bool,
}

fn runs(main: &[u8], table: &[u8], header: &Header) -> Vec<Run> {
    const PAGE: usize = 512;
    let (start, length) = header.paragraphs;
    let Some(list) = table.get(start..start.saturating_add(length)) else { return Vec::new() };
    let count = list.len().saturating_sub(4) / 8;
    let mut runs = Vec::new();
    for index in 0..count {
        let number = long(list, 4 * (count + 1) + 4 * index).map(|number| number & 0x003f_ffff);
        let page = number.and_then(|number| main.get(number * PAGE..(number + 1) * PAGE));
        let Some(page) = page else { continue };
        let entries = usize::from(page[PAGE - 1]);
        for entry in 0..entries {
            let (Some(start), Some(end)) = (long(page, 4 * entry), long(page, 4 * entry + 4)) else { break };
            let offset = page.get(4 * (entries + 1) + 13 * entry).map_or(0, |offset| usize::from(*offset) * 2);
            let mut run = Run { start, end, ..Run::default() };
            if offset > 0 {
                run.read(page, offset);
            }
            runs.push(run);
            if runs.len() >= PIECES {
                return runs;
            }
        }
    }
    runs.sort_by_key(|run| run.start);
    runs
}

impl Run {
    fn read(&mut self, page: &[u8], offset: usize) {
        let length = |at: usize| page.get(at).map_or(0, |length| usize::from(*length));
        let (start, size) = match length(offset) {
            0 => (offset + 2, 2 * length(offset + 1)),
            words => (offset + 1, 2 * words - 1),
        };
        self.style = word(page, start).unwrap_or(0);
        let mut rest = page.get(start + 2..(start + size).min(page.len())).unwrap_or_default();
        while let [low, high, value @ ..] = rest {
            let code = u16::from_le_bytes([*low, *high]);
            let on = value.first().is_some_and(|value| *value != 0);
            match code {
                0x2416 => self.in_table = on,
                0x2417 => self.ends_row = on,
                _ => {}
            }
            // The size of the value is in the code.
            let size = match code >> 13 {
                0 | 1 => 1,
                2 | 4 | 5 => 2,
                3 => 4,
                7 => 3,
                _ if code == 0xd608 => word(value, 0).map_or(usize::MAX, |size| usize::from(size) + 1),
                _ => value.first().map_or(usize::MAX, |size| usize::from(*size) + 1),
            };
            rest = value.get(size..).unwrap_or_default();
        }
    }
}

struct Writer<'o> {
    out: &'o mut Out,
    text: String,
    /// For each open field, whether its result is being read rather than its formula.
    fields: Vec<bool>,
    table: Option<(Table, String)>,
}

fn write(main: &[u8], pieces: &[Piece], runs: &[Run], is_read: impl Fn(usize) -> bool, out: &mut Out) {
    let mut writer = Writer { out, text: String::new(), fields: Vec::new(), table: None };
    let mut high = None;
    for piece in pieces {
        let width = if piece.narrow { 1 } else { 2 };
        let end = piece.place.saturating_add((piece.last - piece.first).saturating_mul(width)).min(main.len());
        let mut place = piece.place.min(end);
        let mut number = piece.first;
        while place + width <= end && !writer.out.is_full() {
            let c = match piece.narrow {
                true => narrow(main[place]),
                false => {
                    let unit = u16::from_le_bytes([main[place], main[place + 1]]);
                    match char::decode_utf16(high.take().into_iter().chain([unit])).next() {
                        Some(Ok(c)) => c,
                        _ => {
                            high = Some(unit).filter(|unit| (0xd800..0xdc00).contains(unit));
                            '\0'
                        }
                    }
                }
            };
            if is_read(number) {
                writer.push(c, place, runs);
            }
            place += width;
            number += 1;
        }
    }
    writer.end_paragraph(Run::default(), false);
    writer.end_table();
}

/// A character of one byte. All are those of Windows-1252.
fn narrow(byte: u8) -> char {
    match byte {
        0x80..=0x9f => encoding_rs::WINDOWS_1252.decode_without_bom_handling(&[byte]).0.chars().next().unwrap_or('\0'),
        byte => char::from(byte),
    }
}

impl Writer<'_> {
    fn push(&mut self, c: char, place: usize, runs: &[Run]) {
        match c {
            '\u{13}' => self.fields.push(false),
            '\u{14}' => {
                if let Some(field) = self.fields.last_mut() {
                    *field = true;
                }
            }
            '\u{15}' => drop(self.fields.pop()),
            '\r' | CELL | '\u{c}' => {
                let index = runs.partition_point(|run| run.start <= place).checked_sub(1);
                let run = index.map(|index| runs[index]).filter(|run| place < run.end).unwrap_or_default();
                self.fields.clear();
                self.end_paragraph(run, c == CELL);
            }
            _ if self.fields.contains(&false) => {}
            '\u{b}' => self.text.push('\n'),
            '\u{1e}' => self.text.push('-'),
            '\u{a0}' => self.text.push(' '),
            '\t' => self.text.push('\t'),
            c if c.is_control() => {}
            // Symbols of fonts that have their own.
            '\u{f000}'..='\u{f0ff}' => self.text.push('•'),
            c => self.text.push(c),
        }
    }

    fn end_paragraph(&mut self, run: Run, is_cell: bool) {
        let text = std::mem::take(&mut self.text);
        let mut written = String::with_capacity(text.len());
        match self.out.style() {
            Style::Markdown => escape(&mut written, text.trim()),
            Style::Text => written.push_str(text.trim()),
        }
        if is_cell || run.in_table {
            let (table, cell) = self.table.get_or_insert_with(Default::default);
            // Without properties, an empty cell is the end of a row.
            if run.ends_row || is_cell && run.end == 0 && cell.is_empty() && written.is_empty() {
                table.begin_row();
                return;
            }
            if !cell.is_empty() && !written.is_empty() {
                cell.push('\n');
            }
            cell.push_str(&written);
            if is_cell {
                table.push(std::mem::take(cell), 1);
            }
            return;
        }
        self.end_table();
        match run.style {
            1..=9 => self.out.heading(usize::from(run.style), &written),
            _ => self.out.paragraph(&written),
        }
    }

    fn end_table(&mut self) {
        let Some((mut table, cell)) = self.table.take() else { return };
        if !cell.is_empty() {
            table.push(cell, 1);
        }
        match table.is_frame() {
            true => self.out.paragraph(&table.into_text()),
            false => self.out.table(&table.rows),
        }
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use std::io::Write;

    /// Makes a file of one piece.
    pub fn doc(text: &str, properties: &[(usize, u16, &[u8])]) -> Vec<u8> {
        let mut main = vec![0_u8; 1_024];
        main[..4].copy_from_slice(&[0xec, 0xa5, 0xc1, 0]);
        let units: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let start = 1_024;
        main[64 + 12..64 + 16].copy_from_slice(&((units.len() / 2) as u32).to_le_bytes());
        let mut table = vec![2, 16, 0, 0, 0, 0, 0, 0, 0];
        table.extend(((units.len() / 2) as u32).to_le_bytes());
        table.extend([0, 0]);
        table.extend((start as u32).to_le_bytes());
        table.extend([0, 0]);
        main[154 + 8 * 33 + 4..154 + 8 * 33 + 8].copy_from_slice(&(table.len() as u32).to_le_bytes());
        main.extend(units);
        main.resize(main.len().next_multiple_of(512), 0);
        // One page of properties: each is of the text up to a character.
        let mut page = vec![0_u8; 512];
        page[511] = properties.len() as u8;
        let (mut from, mut free) = (start, 500);
        for (index, (end, style, values)) in properties.iter().enumerate() {
            page[4 * index..4 * index + 4].copy_from_slice(&(from as u32).to_le_bytes());
            from = start + 2 * end;
            page[4 * index + 4..4 * index + 8].copy_from_slice(&(from as u32).to_le_bytes());
            free = (free - values.len() - 4) & !1;
            page[4 * (properties.len() + 1) + 13 * index] = (free / 2) as u8;
            page[free + 1] = ((values.len() + 3) / 2) as u8;
            page[free + 2..free + 4].copy_from_slice(&style.to_le_bytes());
            page[free + 4..free + 4 + values.len()].copy_from_slice(values);
        }
        let place = table.len();
        table.extend([0; 8]);
        table.extend(((main.len() / 512) as u32).to_le_bytes());
        main[154 + 8 * 13..154 + 8 * 13 + 4].copy_from_slice(&(place as u32).to_le_bytes());
        main[154 + 8 * 13 + 4..154 + 8 * 13 + 8].copy_from_slice(&12_u32.to_le_bytes());
        main.extend(page);
        let mut file = cfb::CompoundFile::create(Cursor::new(Vec::new())).unwrap();
        file.create_stream("WordDocument").unwrap().write_all(&main).unwrap();
        file.create_stream("0Table").unwrap().write_all(&table).unwrap();
        file.into_inner().into_inner()
    }

    #[test]
    fn a_text_is_read() {
        let text = "Title\rSome \u{13} HYPERLINK x \u{14}words\u{15} here\ra\u{7}b\u{7}\u{7}1\u{7}2\u{7}\u{7}end\r";
        let ends = text.chars().count();
        let cell: &[u8] = &[0x16, 0x24, 1];
        let row: &[u8] = &[0x16, 0x24, 1, 0x17, 0x24, 1];
        let start = text.chars().position(|c| c == CELL).unwrap() - 1;
        let properties: Vec<(usize, u16, &[u8])> = vec![
            (6, 2, &[]),
            (start, 0, &[]),
            (start + 4, 0, cell),
            (start + 5, 0, row),
            (start + 9, 0, cell),
            (start + 10, 0, row),
            (ends, 0, &[]),
        ];
        let bytes = doc(text, &properties);
        assert_eq!(crate::kind::find(&bytes, "a.doc").unwrap(), Kind::Doc);
        let document = read(&bytes, &Reading::default()).unwrap();
        assert_eq!(document.parts[0].text, "## Title\n\nSome words here\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\nend");
    }

    #[test]
    fn cut_and_changed_files_end() {
        let bytes = doc("Title\rtext\r", &[(6, 1, &[0x16, 0x24, 1]), (11, 0, &[0x08, 0xd6, 9])]);
        for place in (512..bytes.len()).step_by(11) {
            let mut changed = bytes.clone();
            changed[place] ^= 0x5f;
            let _ = read(&changed, &Reading::default());
        }
    }
}
