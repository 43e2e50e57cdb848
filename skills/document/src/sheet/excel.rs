//! XLSX, XLSB and XLS.

use std::io::Cursor;

use calamine::{Data, DataRef, Dimensions, Reader, SheetVisible, Xls, Xlsb, Xlsx};

use super::grid::Grid;
use super::{guard, number};
use crate::document::Document;
use crate::error::{Error, Result};
use crate::kind::Kind;
use crate::limits;
use crate::office;
use crate::out::Out;
use crate::package::Package;
use crate::read::Reading;

type Source<'a> = Cursor<&'a [u8]>;

enum Workbook<'a> {
    Xlsx(Box<Xlsx<Source<'a>>>),
    Xlsb(Box<Xlsb<Source<'a>>>),
    Xls(Box<Xls<Source<'a>>>),
}

/// A sheet of a workbook.
#[derive(Debug)]
pub struct Sheet {
    pub name: String,
    pub hidden: bool,
    pub grid: Grid,
}

/// Reads a workbook, each sheet as a table.
pub fn read(kind: Kind, bytes: &[u8], reading: &Reading) -> Result<Document> {
    let mut out = Out::new(reading.style, None, reading.limit);
    let mut found = false;
    let mut names = Vec::new();
    for_each(kind, bytes, reading, |number, sheet| {
        names.push(sheet.name.clone());
        found = true;
        write(&sheet, number, &mut out);
        !out.is_full()
    })?;
    if !found {
        return Err("it has no sheets".into());
    }
    let mut document = Document::new(kind, out);
    if kind != Kind::Xls {
        let mut package = Package::open(bytes)?;
        office::describe(&mut package, &mut document, &["xl/media/", "xl/embeddings/"], reading);
    }
    Ok(document)
}

/// Writes a sheet as a part.
pub fn write(sheet: &Sheet, number: usize, out: &mut Out) {
    out.skip_to(number);
    let rows = sheet.grid.filled();
    let hidden = if sheet.hidden { ", hidden" } else { "" };
    let unit = if rows == 1 { "row" } else { "rows" };
    if out.part(&format!("{} ({rows} {unit}{hidden})", sheet.name)) {
        sheet.grid.write(out);
    }
}

/// Calls `visit` with each wanted sheet and its number from 1, until it says no.
pub fn for_each(
    kind: Kind,
    bytes: &[u8],
    reading: &Reading,
    mut visit: impl FnMut(usize, Sheet) -> bool,
) -> Result<()> {
    let mut workbook = open(kind, bytes)?;
    let sheets = workbook.sheets();
    let wanted = |number: usize, name: &str| {
        reading.sheet.is_none_or(|wanted| wanted.eq_ignore_ascii_case(name) || wanted.parse() == Ok(number))
            && reading.pages.as_ref().is_none_or(|pages| pages.contains(number))
    };
    let names: Vec<String> = sheets.iter().map(|(name, _)| name.clone()).collect();
    let mut any = false;
    for (index, (name, hidden)) in sheets.into_iter().enumerate() {
        if !wanted(index + 1, &name) {
            continue;
        }
        any = true;
        let grid = workbook.grid(&name, reading)?;
        if !visit(index + 1, Sheet { name, hidden, grid }) {
            break;
        }
    }
    if !any && !names.is_empty() {
        let asked = reading.sheet.map_or_else(|| "these numbers".to_owned(), |sheet| format!("the name {sheet}"));
        return Err(Error::new(format!("no sheet has {asked}; there are {}", names.join(", "))));
    }
    Ok(())
}

fn open(kind: Kind, bytes: &[u8]) -> Result<Workbook<'_>> {
    let source = Cursor::new(bytes);
    match kind {
        Kind::Xls => guard::check_compound(bytes)?,
        _ => guard::check_package(bytes)?,
    }
    Ok(match kind {
        Kind::Xls => Workbook::Xls(Box::new(Xls::new(source).map_err(|e| damaged(&e))?)),
        Kind::Xlsb => Workbook::Xlsb(Box::new(Xlsb::new(source).map_err(|e| damaged(&e))?)),
        _ => Workbook::Xlsx(Box::new(Xlsx::new(source).map_err(|e| damaged(&e))?)),
    })
}

fn damaged(error: &impl std::fmt::Display) -> Error {
    let reason = error.to_string();
    if reason.to_ascii_lowercase().contains("password") {
        return "it is encrypted with a password; here only PDF files can be opened with one".into();
    }
    Error::damaged("the workbook", reason)
}

impl Workbook<'_> {
    /// Names, and whether they are hidden. Charts have no cells.
    fn sheets(&self) -> Vec<(String, bool)> {
        let sheets = match self {
            Self::Xlsx(workbook) => workbook.sheets_metadata(),
            Self::Xlsb(workbook) => workbook.sheets_metadata(),
            Self::Xls(workbook) => workbook.sheets_metadata(),
        };
        let cells = |sheet: &&calamine::Sheet| {
            matches!(
                sheet.typ,
                calamine::SheetType::WorkSheet | calamine::SheetType::MacroSheet | calamine::SheetType::DialogSheet
            )
        };
        sheets.iter().filter(cells).map(|sheet| (sheet.name.clone(), sheet.visible != SheetVisible::Visible)).collect()
    }

    fn grid(&mut self, name: &str, reading: &Reading) -> Result<Grid> {
        let mut grid = Grid::default();
        let mut merged: Vec<Dimensions> = Vec::new();
        // The two readers have the same methods and no trait.
        macro_rules! fill {
            ($workbook:ident) => {
                let mut cells = $workbook.worksheet_cells_reader(name).map_err(|e| damaged(&e))?;
                let mut count = 0;
                let bounds = cells.dimensions();
                while let Some(cell) = cells.next_cell().map_err(|e| damaged(&e))? {
                    count += 1;
                    check_count(count)?;
                    let (row, column) = cell.get_position();
                    grid.push(row, column, text(cell.get_value()), reading.limit);
                    if grid.is_full(reading.limit) && bounds.end.0 > row {
                        grid.set_rows(bounds.end.0 - bounds.start.0 + 1);
                        break;
                    }
                }
            };
        }
        match self {
            Self::Xlsx(workbook) => {
                if reading.fill_merged {
                    merged = workbook.merge_cells_by_sheet_name(name).unwrap_or_default();
                }
                fill!(workbook);
            }
            Self::Xlsb(workbook) => {
                fill!(workbook);
            }
            Self::Xls(workbook) => {
                if reading.fill_merged {
                    merged = workbook.merge_cells_by_sheet_name(name).unwrap_or_default();
                }
                let range = workbook.worksheet_range(name).map_err(|e| damaged(&e))?;
                let (top, left) = range.start().unwrap_or_default();
                for (row, column, value) in range.used_cells() {
                    let place =
                        |index: usize, first: u32| first.saturating_add(u32::try_from(index).unwrap_or(u32::MAX));
                    grid.push(place(row, top), place(column, left), text(&borrow(value)), reading.limit);
                }
            }
        }
        for range in merged.into_iter().take(10_000) {
            grid.fill(range.start, range.end);
        }
        Ok(grid)
    }
}

fn check_count(count: usize) -> Result<()> {
    if count > limits::CELLS { Err(Error::limit("a sheet has too many cells", limits::CELLS)) } else { Ok(()) }
}

fn text(value: &DataRef) -> String {
    match value {
        DataRef::Int(value) => value.to_string(),
        DataRef::Float(value) => number::write(*value),
        DataRef::String(text) => clean(text),
        DataRef::SharedString(text) => clean(text),
        DataRef::Bool(value) => if *value { "TRUE" } else { "FALSE" }.to_owned(),
        DataRef::DateTime(date) => number::write_date(date),
        DataRef::DateTimeIso(text) | DataRef::DurationIso(text) => text.clone(),
        DataRef::Error(error) => error.to_string(),
        DataRef::Empty => String::new(),
    }
}

/// A cell of the old format as one of the new.
fn borrow(value: &Data) -> DataRef<'_> {
    match value {
        Data::Int(value) => DataRef::Int(*value),
        Data::Float(value) => DataRef::Float(*value),
        Data::String(text) => DataRef::SharedString(text),
        Data::Bool(value) => DataRef::Bool(*value),
        Data::DateTime(date) => DataRef::DateTime(*date),
        Data::DateTimeIso(text) => DataRef::DateTimeIso(text.clone()),
        Data::DurationIso(text) => DataRef::DurationIso(text.clone()),
        Data::Error(error) => DataRef::Error(error.clone()),
        Data::Empty => DataRef::Empty,
    }
}

/// Spreadsheets write control characters as `_x000D_`.
fn clean(text: &str) -> String {
    text.replace("_x000D_", "").replace("\r\n", "\n").replace('\r', "\n")
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::package::tests::zip;

    pub fn xlsx() -> Vec<u8> {
        zip(&[
            (
                "[Content_Types].xml",
                "<Types><Override PartName='/xl/workbook.xml' ContentType='application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml'/></Types>",
            ),
            (
                "_rels/.rels",
                "<Relationships><Relationship Id='r' Type='http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument' Target='xl/workbook.xml'/></Relationships>",
            ),
            (
                "xl/workbook.xml",
                "<workbook xmlns:r='http://schemas.openxmlformats.org/officeDocument/2006/relationships'><sheets><sheet name='Costs' sheetId='1' r:id='r1'/><sheet name='More' sheetId='2' state='hidden' r:id='r2'/></sheets></workbook>",
            ),
            (
                "xl/_rels/workbook.xml.rels",
                "<Relationships><Relationship Id='r1' Type='http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet' Target='worksheets/s1.xml'/><Relationship Id='r2' Type='http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet' Target='worksheets/s2.xml'/><Relationship Id='r3' Type='http://schemas.openxmlformats.org/officeDocument/2006/relationships/styles' Target='styles.xml'/></Relationships>",
            ),
            (
                "xl/styles.xml",
                "<styleSheet><cellXfs count='2'><xf numFmtId='0'/><xf numFmtId='14'/></cellXfs></styleSheet>",
            ),
            (
                "xl/worksheets/s1.xml",
                "<worksheet><sheetData><row r='1'><c r='A1' t='inlineStr'><is><t>2024</t></is></c></row><row r='2'><c r='A2' t='inlineStr'><is><t>day</t></is></c><c r='B2' t='inlineStr'><is><t>sum</t></is></c></row><row r='3'><c r='A3' s='1'><v>45413</v></c><c r='B3'><v>12.5</v></c></row></sheetData><mergeCells count='1'><mergeCell ref='A1:B1'/></mergeCells></worksheet>",
            ),
            (
                "xl/worksheets/s2.xml",
                "<worksheet><sheetData><row r='4'><c r='C4' t='b'><v>1</v></c></row></sheetData></worksheet>",
            ),
        ])
    }

    #[test]
    fn sheets_are_tables_with_dates_and_merged_heads() {
        let document = read(Kind::Xlsx, &xlsx(), &Reading::default()).unwrap();
        assert_eq!(document.label(&document.parts[0]), "Sheet Costs (3 rows)");
        assert_eq!(document.parts[0].text, "| 2024 | 2024 |\n| --- | --- |\n| day | sum |\n| 2024-05-01 | 12.5 |");
        assert_eq!(document.label(&document.parts[1]), "Sheet More (1 row, hidden)");
    }

    #[test]
    fn one_sheet_can_be_chosen() {
        for name in ["more", "2"] {
            let document = read(Kind::Xlsx, &xlsx(), &Reading { sheet: Some(name), ..Reading::default() }).unwrap();
            assert_eq!(document.parts.last().unwrap().text, "| TRUE |\n| --- |");
        }
        let error = read(Kind::Xlsx, &xlsx(), &Reading { sheet: Some("x"), ..Reading::default() }).unwrap_err();
        assert_eq!(error.to_string(), "no sheet has the name x; there are Costs, More");
    }
}
