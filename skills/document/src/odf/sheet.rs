//! ODS: the cells of sheets as they are shown.

use super::{describe, open};
use crate::document::Document;
use crate::error::{Error, Result};
use crate::kind::Kind;
use crate::limits;
use crate::out::Out;
use crate::read::Reading;
use crate::sheet::excel::{self, Sheet};
use crate::sheet::grid::Grid;
use crate::sheet::number;
use crate::xml::{Node, Tag, Xml};

/// Cells with a value that one element may stand for, in a row and down.
const REPEATED: u32 = 10_000;

/// Reads a workbook.
pub fn read(bytes: &[u8], reading: &Reading) -> Result<Document> {
    let mut out = Out::new(reading.style, None, reading.limit);
    for_each(bytes, reading, |number, sheet| {
        excel::write(&sheet, number, &mut out);
        !out.is_full()
    })?;
    let mut document = Document::new(Kind::Ods, out);
    let mut package = open(bytes)?;
    describe(&mut package, &mut document, reading);
    Ok(document)
}

/// Calls `visit` with each wanted sheet and its number from 1, until it says no.
pub fn for_each(bytes: &[u8], reading: &Reading, mut visit: impl FnMut(usize, Sheet) -> bool) -> Result<()> {
    let mut package = open(bytes)?;
    let text = package.read_text("content.xml")?;
    let mut xml = Xml::new(&text);
    let mut names = Vec::new();
    let mut any = false;
    while let Some(node) = xml.next() {
        let Node::Open(tag) = node else { continue };
        if tag.name() != "table" {
            continue;
        }
        let name = tag.attribute("name").unwrap_or_default();
        let number = names.len() + 1;
        let wanted =
            reading.sheet.is_none_or(|wanted| wanted.eq_ignore_ascii_case(&name) || wanted.parse() == Ok(number))
                && reading.pages.as_ref().is_none_or(|pages| pages.contains(number));
        names.push(name.clone());
        let grid = read_table(&mut xml, reading, wanted)?;
        if wanted {
            any = true;
            if !visit(number, Sheet { name, hidden: false, grid }) {
                break;
            }
        }
    }
    match (any, reading.sheet) {
        (true, _) => Ok(()),
        _ if names.is_empty() => Err("it has no sheets".into()),
        (_, Some(sheet)) => Err(Error::new(format!("no sheet has the name {sheet}; there are {}", names.join(", ")))),
        (_, None) => Err(Error::new(format!("no sheet has these numbers; there are {}", names.join(", ")))),
    }
}

#[derive(Default)]
struct Cell {
    value: Option<String>,
    text: String,
    columns: u32,
    span: (u32, u32),
}

fn read_table(xml: &mut Xml, reading: &Reading, wanted: bool) -> Result<Grid> {
    let mut grid = Grid::default();
    let mut merged = Vec::new();
    let (mut row, mut rows, mut column) = (0_u32, 1_u32, 0_u32);
    let mut cell: Option<Cell> = None;
    let mut count = 0;
    let mut line: Vec<(u32, String)> = Vec::new();
    while let Some(node) = xml.next() {
        match node {
            Node::Open(tag) => match tag.name() {
                "table-row" => {
                    rows = repeated(&tag, "number-rows-repeated");
                    column = 0;
                }
                "table-cell" | "covered-table-cell" => {
                    let spanned = |name: &str| tag.attribute(name).and_then(|count| count.parse().ok()).unwrap_or(1);
                    cell = Some(Cell {
                        value: value(&tag),
                        text: String::new(),
                        columns: repeated(&tag, "number-columns-repeated"),
                        span: (spanned("number-rows-spanned"), spanned("number-columns-spanned")),
                    });
                }
                "annotation" | "shapes" | "desc" | "title" => xml.skip(),
                "p" => {
                    if let Some(cell) = &mut cell {
                        if !cell.text.is_empty() {
                            cell.text.push('\n');
                        }
                        read_paragraph(xml, &mut cell.text);
                    }
                }
                _ => {}
            },
            Node::Close(name) => match name.as_str() {
                "table" => break,
                "table-cell" | "covered-table-cell" => {
                    let Some(Cell { value, text, columns, span }) = cell.take() else { continue };
                    // Dates and numbers without their format; other values as they are shown.
                    let text = value.unwrap_or(text);
                    if !text.is_empty() && wanted {
                        if span != (1, 1) && reading.fill_merged {
                            let last = (
                                row.saturating_add(span.0).saturating_sub(1),
                                column.saturating_add(span.1).saturating_sub(1),
                            );
                            merged.push(((row, column), last));
                        }
                        for step in 0..columns.min(REPEATED) {
                            line.push((column.saturating_add(step), text.clone()));
                        }
                    }
                    column = column.saturating_add(columns);
                }
                "table-row" => {
                    let copies = if line.is_empty() { 0 } else { rows.min(REPEATED) };
                    for copy in 0..copies {
                        for (column, text) in &line {
                            count += 1;
                            grid.push(row.saturating_add(copy), *column, text.clone(), reading.limit);
                        }
                        if count > limits::CELLS {
                            return Err(Error::limit("a sheet has too many cells", limits::CELLS));
                        }
                    }
                    line.clear();
                    row = row.saturating_add(rows);
                }
                _ => {}
            },
            Node::Text(_) => {}
        }
    }
    for (first, last) in merged.into_iter().take(10_000) {
        grid.fill(first, last);
    }
    Ok(grid)
}

fn repeated(tag: &Tag, name: &str) -> u32 {
    tag.attribute(name).and_then(|count| count.parse().ok()).unwrap_or(1)
}

/// The value of a number or date. Percentages, money and texts are better as they are shown.
fn value(tag: &Tag) -> Option<String> {
    match tag.attribute("value-type")?.as_str() {
        "float" => Some(number::write(tag.attribute("value")?.parse().ok()?)),
        "date" => Some(tag.attribute("date-value")?.replace('T', " ").trim_end_matches(" 00:00:00").to_owned()),
        "boolean" => Some(tag.attribute("boolean-value")?.to_uppercase()),
        _ => None,
    }
}

fn read_paragraph(xml: &mut Xml, text: &mut String) {
    let mut open = 1_usize;
    while open > 0 {
        match xml.next() {
            Some(Node::Open(tag)) => {
                match tag.name() {
                    "s" => {
                        let count = tag.attribute("c").and_then(|count| count.parse().ok()).unwrap_or(1_usize);
                        text.push_str(&" ".repeat(count.min(200)));
                    }
                    "tab" => text.push('\t'),
                    "line-break" => text.push('\n'),
                    _ => {}
                }
                open += 1;
            }
            Some(Node::Close(_)) => open -= 1,
            Some(Node::Text(more)) => text.push_str(&more),
            None => break,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::package::tests::zip;

    fn ods(table: &str) -> Vec<u8> {
        zip(&[
            ("mimetype", "application/vnd.oasis.opendocument.spreadsheet"),
            ("content.xml", &format!("<c>{table}</c>")),
        ])
    }

    #[test]
    fn cells_are_read() {
        let bytes = ods(
            "<table:table table:name='A'><table:table-row><table:table-cell table:number-columns-spanned='2' office:value-type='string'><text:p>head</text:p></table:table-cell><table:covered-table-cell/></table:table-row>\
             <table:table-row table:number-rows-repeated='2'><table:table-cell office:value-type='date' office:date-value='2024-05-01T00:00:00'><text:p>1.5.24</text:p></table:table-cell><table:table-cell office:value-type='percentage' office:value='0.5'><text:p>50%</text:p></table:table-cell></table:table-row>\
             <table:table-row table:number-rows-repeated='1048573'><table:table-cell table:number-columns-repeated='16384'/></table:table-row></table:table>",
        );
        assert_eq!(crate::kind::find(&bytes, "").unwrap(), Kind::Ods);
        let document = read(&bytes, &Reading::default()).unwrap();
        assert_eq!(document.label(&document.parts[0]), "Sheet A (3 rows)");
        assert_eq!(
            document.parts[0].text,
            "| head | head |\n| --- | --- |\n| 2024-05-01 | 50% |\n| 2024-05-01 | 50% |"
        );
    }

    #[test]
    fn a_cell_that_is_repeated_for_ever_is_refused() {
        let cell = "<table:table-row table:number-rows-repeated='1048576'><table:table-cell table:number-columns-repeated='16384' office:value-type='float' office:value='1'/></table:table-row>";
        let bytes = ods(&format!("<table:table table:name='A'>{cell}</table:table>"));
        assert!(read(&bytes, &Reading::default()).unwrap_err().to_string().contains("too many cells"));
    }
}
