//! The parts of a workbook.

use std::collections::HashMap;
use std::io::Cursor;

use zip::ZipWriter;

use super::{Cell, Format, Sheet, check};
use crate::error::Result;
use crate::make::docx::{Zip, escape};

const XML: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n";
const MAIN: &str = "xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\"";
const RELATIONS: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";

/// Characters of the widest column.
const WIDEST: usize = 60;

/// Numbers of the styles below.
const HEAD: usize = 1;
const WRAPPED: usize = 9;
const CODE: usize = 10;

const STYLES: &str = "<numFmts count=\"2\"><numFmt numFmtId=\"164\" formatCode=\"yyyy\\-mm\\-dd\"/><numFmt numFmtId=\"165\" formatCode=\"yyyy\\-mm\\-dd\\ hh:mm:ss\"/></numFmts>\
<fonts count=\"2\"><font><sz val=\"11\"/><name val=\"Calibri\"/><family val=\"2\"/></font><font><b/><sz val=\"11\"/><name val=\"Calibri\"/><family val=\"2\"/></font></fonts>\
<fills count=\"3\"><fill><patternFill patternType=\"none\"/></fill><fill><patternFill patternType=\"gray125\"/></fill><fill><patternFill patternType=\"solid\"><fgColor rgb=\"FFEEF1F4\"/><bgColor indexed=\"64\"/></patternFill></fill></fills>\
<borders count=\"2\"><border><left/><right/><top/><bottom/><diagonal/></border><border><left/><right/><top/><bottom style=\"thin\"><color rgb=\"FF9AA5B1\"/></bottom><diagonal/></border></borders>\
<cellStyleXfs count=\"1\"><xf numFmtId=\"0\" fontId=\"0\" fillId=\"0\" borderId=\"0\"/></cellStyleXfs>\
<cellXfs count=\"11\"><xf numFmtId=\"0\" fontId=\"0\" fillId=\"0\" borderId=\"0\" xfId=\"0\"/>\
<xf numFmtId=\"0\" fontId=\"1\" fillId=\"2\" borderId=\"1\" xfId=\"0\" applyFont=\"1\" applyFill=\"1\" applyBorder=\"1\"/>\
<xf numFmtId=\"164\" fontId=\"0\" fillId=\"0\" borderId=\"0\" xfId=\"0\" applyNumberFormat=\"1\"/><xf numFmtId=\"165\" fontId=\"0\" fillId=\"0\" borderId=\"0\" xfId=\"0\" applyNumberFormat=\"1\"/>\
<xf numFmtId=\"21\" fontId=\"0\" fillId=\"0\" borderId=\"0\" xfId=\"0\" applyNumberFormat=\"1\"/><xf numFmtId=\"9\" fontId=\"0\" fillId=\"0\" borderId=\"0\" xfId=\"0\" applyNumberFormat=\"1\"/>\
<xf numFmtId=\"10\" fontId=\"0\" fillId=\"0\" borderId=\"0\" xfId=\"0\" applyNumberFormat=\"1\"/><xf numFmtId=\"3\" fontId=\"0\" fillId=\"0\" borderId=\"0\" xfId=\"0\" applyNumberFormat=\"1\"/>\
<xf numFmtId=\"4\" fontId=\"0\" fillId=\"0\" borderId=\"0\" xfId=\"0\" applyNumberFormat=\"1\"/><xf numFmtId=\"0\" fontId=\"0\" fillId=\"0\" borderId=\"0\" xfId=\"0\" applyAlignment=\"1\"><alignment vertical=\"top\" wrapText=\"1\"/></xf>\
<xf numFmtId=\"49\" fontId=\"0\" fillId=\"0\" borderId=\"0\" xfId=\"0\" applyNumberFormat=\"1\"/></cellXfs>\
<cellStyles count=\"1\"><cellStyle name=\"Normal\" xfId=\"0\" builtinId=\"0\"/></cellStyles>";

/// Texts that cells refer to by number.
#[derive(Default)]
struct Strings<'s> {
    numbers: HashMap<&'s str, usize>,
    all: Vec<&'s str>,
    uses: usize,
}

impl<'s> Strings<'s> {
    fn number(&mut self, text: &'s str) -> usize {
        self.uses += 1;
        let next = self.all.len();
        let number = *self.numbers.entry(text).or_insert(next);
        if number == next {
            self.all.push(text);
        }
        number
    }
}

/// The bytes of a workbook.
pub fn write(sheets: &[Sheet]) -> Result<Vec<u8>> {
    check(sheets)?;
    let mut zip = Zip(ZipWriter::new(Cursor::new(Vec::new())));
    let mut types = String::new();
    let mut list = String::new();
    let mut relations = String::new();
    for (index, sheet) in sheets.iter().enumerate() {
        let number = index + 1;
        types.push_str(&format!("<Override PartName=\"/xl/worksheets/sheet{number}.xml\" ContentType=\"application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml\"/>"));
        list.push_str(&format!("<sheet name=\"{}\" sheetId=\"{number}\" r:id=\"rId{number}\"/>", escape(&sheet.name)));
        relations.push_str(&format!(
            "<Relationship Id=\"rId{number}\" Type=\"{RELATIONS}/worksheet\" Target=\"worksheets/sheet{number}.xml\"/>"
        ));
    }
    let last = sheets.len();
    for (offset, kind) in [(1, "styles"), (2, "sharedStrings")] {
        relations.push_str(&format!(
            "<Relationship Id=\"rId{}\" Type=\"{RELATIONS}/{kind}\" Target=\"{kind}.xml\"/>",
            last + offset
        ));
    }
    let package = "http://schemas.openxmlformats.org/package/2006";
    zip.add(
        "[Content_Types].xml",
        format!(
            "{XML}<Types xmlns=\"{package}/content-types\"><Default Extension=\"rels\" ContentType=\"application/vnd.openxmlformats-package.relationships+xml\"/><Default Extension=\"xml\" ContentType=\"application/xml\"/>\
             <Override PartName=\"/xl/workbook.xml\" ContentType=\"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml\"/>\
             <Override PartName=\"/xl/styles.xml\" ContentType=\"application/vnd.openxmlformats-officedocument.spreadsheetml.styles+xml\"/>\
             <Override PartName=\"/xl/sharedStrings.xml\" ContentType=\"application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml\"/>{types}</Types>"
        )
        .as_bytes(),
    )?;
    zip.add(
        "_rels/.rels",
        format!("{XML}<Relationships xmlns=\"{package}/relationships\"><Relationship Id=\"rId1\" Type=\"{RELATIONS}/officeDocument\" Target=\"xl/workbook.xml\"/></Relationships>").as_bytes(),
    )?;
    zip.add(
        "xl/workbook.xml",
        format!("{XML}<workbook {MAIN} xmlns:r=\"{RELATIONS}\"><sheets>{list}</sheets></workbook>").as_bytes(),
    )?;
    zip.add(
        "xl/_rels/workbook.xml.rels",
        format!("{XML}<Relationships xmlns=\"{package}/relationships\">{relations}</Relationships>").as_bytes(),
    )?;
    zip.add("xl/styles.xml", format!("{XML}<styleSheet {MAIN}>{STYLES}</styleSheet>").as_bytes())?;
    let mut strings = Strings::default();
    for (index, sheet) in sheets.iter().enumerate() {
        let xml = sheet_xml(sheet, &mut strings);
        zip.add(&format!("xl/worksheets/sheet{}.xml", index + 1), xml.as_bytes())?;
    }
    let mut xml = format!("{XML}<sst {MAIN} count=\"{}\" uniqueCount=\"{}\">", strings.uses, strings.all.len());
    for text in &strings.all {
        xml.push_str("<si><t xml:space=\"preserve\">");
        xml.push_str(&escape(text));
        xml.push_str("</t></si>");
    }
    xml.push_str("</sst>");
    zip.add("xl/sharedStrings.xml", xml.as_bytes())?;
    zip.finish()
}

fn sheet_xml<'s>(sheet: &'s Sheet, strings: &mut Strings<'s>) -> String {
    let mut xml = format!("{XML}<worksheet {MAIN}>");
    let width = sheet.rows.iter().map(Vec::len).max().unwrap_or(0);
    if width > 0 {
        xml.push_str(&format!("<dimension ref=\"A1:{}{}\"/>", column(width - 1), sheet.rows.len()));
    }
    let pane = "<pane ySplit=\"1\" topLeftCell=\"A2\" activePane=\"bottomLeft\" state=\"frozen\"/>";
    xml.push_str(&format!(
        "<sheetViews><sheetView workbookViewId=\"0\">{}</sheetView></sheetViews>",
        if sheet.has_head { pane } else { "" }
    ));
    xml.push_str("<sheetFormatPr defaultRowHeight=\"15\"/>");
    if width > 0 {
        xml.push_str("<cols>");
        for (number, chars) in widths(sheet, width).into_iter().enumerate() {
            xml.push_str(&format!("<col min=\"{0}\" max=\"{0}\" width=\"{chars}\" customWidth=\"1\"/>", number + 1));
        }
        xml.push_str("</cols>");
    }
    xml.push_str("<sheetData>");
    for (number, row) in sheet.rows.iter().enumerate() {
        if row.iter().all(|cell| *cell == Cell::Empty) {
            continue;
        }
        xml.push_str(&format!("<row r=\"{}\">", number + 1));
        let is_head = sheet.has_head && number == 0;
        for (at, cell) in row.iter().enumerate() {
            push_cell(&mut xml, (&column(at), number + 1), cell, is_head, strings);
        }
        xml.push_str("</row>");
    }
    xml.push_str("</sheetData></worksheet>");
    xml
}

fn push_cell<'s>(
    xml: &mut String,
    (column, row): (&str, usize),
    cell: &'s Cell,
    is_head: bool,
    strings: &mut Strings<'s>,
) {
    let style = match cell {
        _ if is_head => HEAD,
        Cell::Empty => return,
        Cell::Text(text) if text.contains('\n') => WRAPPED,
        Cell::Text(_) | Cell::Bool(_) => 0,
        Cell::Code(_) => CODE,
        Cell::Number(_, format) => match format {
            Format::General => 0,
            Format::Date => 2,
            Format::DateTime => 3,
            Format::Time => 4,
            Format::Percent => 5,
            Format::PercentPart => 6,
            Format::Thousands => 7,
            Format::ThousandsPart => 8,
        },
    };
    let style = if style > 0 { format!(" s=\"{style}\"") } else { String::new() };
    match cell {
        Cell::Empty => xml.push_str(&format!("<c r=\"{column}{row}\"{style}/>")),
        Cell::Text(text) | Cell::Code(text) => {
            xml.push_str(&format!("<c r=\"{column}{row}\"{style} t=\"s\"><v>{}</v></c>", strings.number(text)));
        }
        Cell::Number(value, _) => xml.push_str(&format!("<c r=\"{column}{row}\"{style}><v>{value}</v></c>")),
        Cell::Bool(value) => {
            xml.push_str(&format!("<c r=\"{column}{row}\"{style} t=\"b\"><v>{}</v></c>", i32::from(*value)))
        }
    }
}

/// The letters of a column, which is counted from 0.
fn column(number: usize) -> String {
    let mut rest = number + 1;
    let mut name = String::new();
    while rest > 0 {
        rest -= 1;
        name.insert(0, char::from(b'A' + (rest % 26) as u8));
        rest /= 26;
    }
    name
}

/// The widths of columns in characters.
fn widths(sheet: &Sheet, width: usize) -> Vec<usize> {
    let mut widths = vec![6; width];
    // The first rows tell how wide the others are.
    for (number, row) in sheet.rows.iter().take(2_000).enumerate() {
        for (at, cell) in row.iter().enumerate() {
            let chars = match cell {
                Cell::Empty => 0,
                Cell::Text(text) | Cell::Code(text) => {
                    text.lines().map(|line| line.chars().take(WIDEST).count()).max().unwrap_or(0)
                }
                Cell::Number(value, format) => match format {
                    Format::Date => 10,
                    Format::DateTime => 19,
                    Format::Time => 8,
                    _ => value.to_string().len().min(18) + 2,
                },
                Cell::Bool(_) => 5,
            };
            let is_head = sheet.has_head && number == 0;
            widths[at] = widths[at].max(chars + usize::from(is_head));
        }
    }
    widths.iter().map(|chars| (chars + 2).min(WIDEST)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Taking, from_records, name_sheets};
    use super::*;
    use crate::kind::Kind;
    use crate::read::{self, Reading};

    #[test]
    fn a_workbook_is_read_back() {
        let records =
            |rows: &[&[&str]]| rows.iter().map(|row| row.iter().map(|text| (*text).to_owned()).collect()).collect();
        let first = records(&[
            &["name", "zip", "day", "sum"],
            &["A & <B>", "01234", "2026-05-01", "12.5"],
            &["line\nbreak", "9", "", "TRUE"],
        ]);
        let mut sheets = vec![
            from_records("a/b", first, Taking::default()),
            from_records("A_B", records(&[&["1", "2"]]), Taking::default()),
        ];
        name_sheets(&mut sheets);
        assert_eq!(sheets.iter().map(|sheet| sheet.name.as_str()).collect::<Vec<_>>(), ["a_b", "A_B (2)"]);
        let bytes = write(&sheets).unwrap();
        assert_eq!(bytes, write(&sheets).unwrap());
        let document = read::read_as(Kind::Xlsx, bytes, &Reading::default()).unwrap();
        assert_eq!(document.parts.len(), 2);
        let text = &document.parts[0].text;
        assert!(text.contains("| A & <B> | 01234 | 2026-05-01 | 12.5 |"), "{text}");
        assert_eq!(
            (column(0), column(25), column(26), column(16_383)),
            ("A".into(), "Z".into(), "AA".into(), "XFD".into())
        );
    }
}
