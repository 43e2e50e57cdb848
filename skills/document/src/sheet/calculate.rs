//! Calculates the formulas of a workbook once more, and puts their values into it. Nothing else in the file changes.

use std::collections::HashMap;
use std::io::Cursor;

use ironcalc::base::Model;
use ironcalc::base::cell::CellValue;
use ironcalc::base::types::{Cell, CellType};
use quick_xml::events::{BytesEnd, BytesStart, BytesText, Event};
use quick_xml::{Reader, Writer};

use crate::error::{Error, Result};
use crate::limits;
use crate::make::docx::{Zip, escape};
use crate::package::Package;
use crate::xml::{Node, Xml};

/// The errors that a workbook can have. The library has more, such as `#CIRC!`, with which other programs call the file damaged.
const ERRORS: [&str; 7] = ["#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A"];

/// The value of a formula, as a workbook has it: the type of the cell and the text.
type Value = (Option<&'static str>, String);

/// The workbook with the values of all its formulas, and how many there are.
pub fn calculate(bytes: &[u8]) -> Result<(Vec<u8>, usize)> {
    let mut package = Package::open(bytes)?;
    for name in package.names().to_vec() {
        package.check(&name)?;
    }
    let wrong = |error: &dyn std::fmt::Display| Error::new(format!("its formulas cannot be calculated: {error}"));
    let workbook = ironcalc::import::load_from_xlsx_bytes(bytes, "workbook", "en", "UTC").map_err(|e| wrong(&e))?;
    let mut model = Model::from_workbook(workbook, "en").map_err(|e| wrong(&e))?;
    if model.get_all_cells().len() > limits::CELLS {
        return Err(Error::limit("it has too many cells", limits::CELLS));
    }
    model.evaluate();
    let names = model.workbook.get_worksheet_names();
    let parts = parts(&mut package);
    let mut zip = Zip(zip::ZipWriter::new(Cursor::new(Vec::new())));
    let mut count = 0;
    for name in package.names().to_vec() {
        if name.ends_with('/') {
            continue;
        }
        let mut part = package.read(&name)?;
        let sheet = parts.get(&name).and_then(|title| names.iter().position(|known| known == title));
        if let Some(sheet) = sheet.and_then(|sheet| u32::try_from(sheet).ok()) {
            let text = crate::xml::decode(&part);
            let value = |row, column| value(&model, sheet, row, column);
            part = with_values(&text, value, |row, column| is_spilled(&model, sheet, row, column), &mut count)?;
        }
        zip.add(&name, &part)?;
    }
    Ok((zip.finish()?, count))
}

/// The parts of the package that are sheets, with the sheets' names.
fn parts(package: &mut Package) -> HashMap<String, String> {
    let main = package.main_part();
    let targets: HashMap<_, _> = package.relationships(&main).into_iter().map(|one| (one.id, one.target)).collect();
    let text = package.read_text(&main).unwrap_or_default();
    let mut xml = Xml::new(&text);
    let mut found = HashMap::new();
    while let Some(node) = xml.next() {
        if let Node::Open(tag) = node
            && tag.name() == "sheet"
            && let Some(target) = tag.prefixed("r:id").and_then(|id| targets.get(&id))
        {
            found.insert(target.clone(), tag.attribute("name").unwrap_or_default());
        }
    }
    found
}

/// The value of a cell; none where there is nothing to show.
fn value(model: &Model, sheet: u32, row: i32, column: i32) -> Option<Value> {
    let is_error = matches!(model.get_cell_type(sheet, row, column), Ok(CellType::ErrorValue));
    Some(match model.get_cell_value_by_index(sheet, row, column).ok()? {
        CellValue::None => return None,
        CellValue::String(text) if is_error && ERRORS.contains(&text.as_str()) => (Some("e"), text),
        CellValue::String(_) if is_error => (Some("e"), "#VALUE!".to_owned()),
        CellValue::String(text) => (Some("str"), text),
        CellValue::Number(number) if number.is_finite() => (None, number.to_string()),
        CellValue::Number(_) => (Some("e"), "#NUM!".to_owned()),
        CellValue::Boolean(yes) => (Some("b"), u8::from(yes).to_string()),
    })
}

/// Whether a cell has a value of an array formula that is in another cell.
fn is_spilled(model: &Model, sheet: u32, row: i32, column: i32) -> bool {
    let cell = model.workbook.worksheet(sheet).ok().and_then(|sheet| sheet.cell(row, column));
    matches!(cell.as_deref(), Some(Cell::SpillCell { .. }))
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::damaged("a sheet", error)
}

/// A sheet in which each cell with a formula has its value, and so has each cell that an array formula fills or filled.
fn with_values(
    text: &str,
    value: impl Fn(i32, i32) -> Option<Value>,
    is_spilled: impl Fn(i32, i32) -> bool,
    count: &mut usize,
) -> Result<Vec<u8>> {
    let mut reader = Reader::from_str(text);
    let mut writer = Writer::new(Vec::with_capacity(text.len()));
    // An array formula is in the first cell of its area.
    let mut areas: Vec<Area> = Vec::new();
    loop {
        let (tag, inner) = match reader.read_event().map_err(failed)? {
            Event::Eof => return Ok(writer.into_inner()),
            Event::Start(tag) if tag.local_name().into_inner() == "c" => (tag, Some(cell(&mut reader)?)),
            Event::Empty(tag) if tag.local_name().into_inner() == "c" => (tag, None),
            event => {
                writer.write_event(event).map_err(failed)?;
                continue;
            }
        };
        let place = attribute(&tag, "r").and_then(|place| position(&place));
        let formula = inner.iter().flatten().find(|event| is_start(event, "f"));
        let has_formula = formula.is_some();
        areas.extend(formula.and_then(area));
        let is_filled = |(row, column)| is_spilled(row, column) || areas.iter().any(|area| area.has(row, column));
        if has_formula || place.is_some_and(is_filled) {
            *count += usize::from(has_formula);
            let value = place.and_then(|(row, column)| value(row, column));
            let inner = inner.unwrap_or_else(|| vec![Event::End(tag.to_end().into_owned())]);
            write_cell(&tag, inner, value, &mut writer)?;
            continue;
        }
        match inner {
            None => writer.write_event(Event::Empty(tag)).map_err(failed)?,
            Some(inner) => {
                writer.write_event(Event::Start(tag)).map_err(failed)?;
                inner.into_iter().try_for_each(|event| writer.write_event(event)).map_err(failed)?;
            }
        }
    }
}

/// The cells that an array formula fills, from the first row and column to the last.
struct Area {
    first: (i32, i32),
    last: (i32, i32),
}

impl Area {
    fn has(&self, row: i32, column: i32) -> bool {
        (self.first.0..=self.last.0).contains(&row) && (self.first.1..=self.last.1).contains(&column)
    }
}

/// The area of a formula, if it is an array formula.
fn area(formula: &Event) -> Option<Area> {
    let (Event::Start(tag) | Event::Empty(tag)) = formula else { return None };
    let cells = attribute(tag, "ref").filter(|_| attribute(tag, "t").as_deref() == Some("array"))?;
    let (first, last) = cells.split_once(':').unwrap_or((&cells, &cells));
    Some(Area { first: position(first)?, last: position(last)? })
}

fn attribute(tag: &BytesStart, name: &str) -> Option<String> {
    let mut attributes = tag.attributes();
    let found = attributes.with_checks(false).flatten().find(|one| one.key.into_inner() == name)?;
    Some(found.value.into_owned())
}

/// The events in a cell, with its end.
fn cell<'a>(reader: &mut Reader<&'a [u8]>) -> Result<Vec<Event<'a>>> {
    let (mut events, mut depth) = (Vec::new(), 0);
    loop {
        let event = reader.read_event().map_err(failed)?;
        match &event {
            Event::Eof => return Err(failed("it ends too early")),
            Event::Start(_) => depth += 1,
            Event::End(_) if depth == 0 => {
                events.push(event);
                return Ok(events);
            }
            Event::End(_) => depth -= 1,
            _ => {}
        }
        events.push(event);
    }
}

fn is_start(event: &Event, name: &str) -> bool {
    matches!(event, Event::Start(tag) | Event::Empty(tag) if tag.local_name().into_inner() == name)
}

fn write_cell(tag: &BytesStart, inner: Vec<Event>, value: Option<Value>, writer: &mut Writer<Vec<u8>>) -> Result<()> {
    let mut own = BytesStart::new(tag.name().into_inner().to_owned());
    let mut attributes = tag.attributes();
    for attribute in attributes.with_checks(false).flatten().filter(|one| one.key.into_inner() != "t") {
        own.push_attribute(attribute);
    }
    if let Some((Some(kind), _)) = &value {
        own.push_attribute(("t", *kind));
    }
    // The value has the prefix of the cell.
    let tag_name = tag.name();
    let name = tag_name.into_inner().rsplit_once(':').map_or("v".to_owned(), |(prefix, _)| format!("{prefix}:v"));
    writer.write_event(Event::Start(own)).map_err(failed)?;
    let (mut skipped, mut depth) = (false, 0);
    for event in inner {
        if depth == 0 {
            skipped = is_start(&event, "v") || is_start(&event, "is");
            if let (Event::End(_), Some((_, text))) = (&event, &value) {
                writer.write_event(Event::Start(BytesStart::new(name.as_str()))).map_err(failed)?;
                writer.write_event(Event::Text(BytesText::from_escaped(escape(text)))).map_err(failed)?;
                writer.write_event(Event::End(BytesEnd::new(name.as_str()))).map_err(failed)?;
            }
        }
        match &event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth -= 1,
            _ => {}
        }
        if !skipped {
            writer.write_event(event).map_err(failed)?;
        }
    }
    Ok(())
}

/// Row and column of a place such as `AB12`.
fn position(place: &str) -> Option<(i32, i32)> {
    let digits = place.find(|c: char| c.is_ascii_digit())?;
    let column = place[..digits].bytes().try_fold(0_i32, |sum, letter| {
        let letter = letter.is_ascii_uppercase().then(|| i32::from(letter - b'A') + 1)?;
        sum.checked_mul(26)?.checked_add(letter)
    })?;
    Some((place[digits..].parse().ok()?, column))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_put_into_cells_with_formulas() {
        let sheet = "<sheetData><row r='1'><c r='A1'><v>2</v></c><c r='B1' s='3' t='n'><f>A1*3</f><v></v></c><c r='C1' t='str'><f>x</f><v>old</v></c><c r='D1'><f>y</f></c><c r='AA1'><f/></c></row></sheetData>";
        let mut count = 0;
        let value = |row, column| match (row, column) {
            (1, 2) => Some((None, "6".to_owned())),
            (1, 3) => Some((Some("e"), "#DIV/0!".to_owned())),
            (1, 27) => Some((Some("str"), "a<b".to_owned())),
            _ => None,
        };
        let found = String::from_utf8(with_values(sheet, value, |_, _| false, &mut count).unwrap()).unwrap();
        let expected = "<sheetData><row r='1'><c r='A1'><v>2</v></c><c r=\"B1\" s=\"3\"><f>A1*3</f><v>6</v></c><c r=\"C1\" t=\"e\"><f>x</f><v>#DIV/0!</v></c><c r=\"D1\"><f>y</f></c><c r=\"AA1\" t=\"str\"><f/><v>a&lt;b</v></c></row></sheetData>";
        assert_eq!((found.as_str(), count), (expected, 4));
        // Values of an array formula are in cells without a formula, of which the area may have fewer or more by now.
        let sheet = "<row r='2'><c r='A2'><f t='array' ref='A2:B2'>z</f><v>1</v></c><c r='B2' t='s'><v>0</v></c><c r='C2' t='s'><v>0</v></c><c r='D2' s='1'/><c r='E2'/></row>";
        let value =
            |_, column| [None, Some(7), None, Some(8), Some(9)][column as usize].map(|n: u8| (None, n.to_string()));
        let found = with_values(sheet, value, |_, column| column == 4, &mut count).unwrap();
        let expected = "<row r='2'><c r=\"A2\"><f t='array' ref='A2:B2'>z</f><v>7</v></c><c r=\"B2\"></c><c r='C2' t='s'><v>0</v></c><c r=\"D2\" s=\"1\"><v>9</v></c><c r='E2'/></row>";
        assert_eq!((String::from_utf8(found).unwrap().as_str(), count), (expected, 5));
        assert_eq!(position("AB12"), Some((12, 28)));
        assert_eq!(position("a1").or(position("A").or(position("ZZZZZZZZZ1"))), None);
    }
}
