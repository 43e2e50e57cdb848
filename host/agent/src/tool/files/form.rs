//! Notes on a table besides its columns: how its bytes are encoded, and which columns have values in several formats.

use super::short_name;
use kiso_plan::prompt::{Column, ColumnKind};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Separators that are tried.
const SEPARATORS: [char; 4] = [',', ';', '\t', '|'];

/// Maximum number of lines before the header.
const PREAMBLE: usize = 20;

/// Maximum number of names in one note.
const MAX_NAMES: usize = 8;

/// Returns the notes on a table that begins with `head`, and continues after it if `cut`.
pub(super) fn notes(path: &str, head: &[u8], cut: bool, columns: &[Column]) -> Vec<String> {
    let ending = path.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    match ending.as_str() {
        "json" => of_json(head, cut),
        "csv" | "tsv" => of_delimited(&ending, head, cut, columns),
        _ => Vec::new(),
    }
}

fn of_delimited(ending: &str, head: &[u8], cut: bool, columns: &[Column]) -> Vec<String> {
    let mut notes = Vec::new();
    let (text, encoding) = decoded(head, cut);
    notes.extend(encoding.map(str::to_owned));
    let Some((separator, rows)) = rows(&text, columns.len(), cut) else { return notes };
    let usual = if ending == "tsv" { '\t' } else { ',' };
    if columns.len() > 1 && separator != usual {
        let shown = if separator == '\t' { "tab".to_owned() } else { separator.to_string() };
        notes.push(format!("separator {shown}"));
    }
    let is_mixed = |(at, column): &(usize, &Column)| {
        let values = rows.iter().skip(1).filter_map(|row| row.get(*at)).map(|value| value.trim());
        let values = values.filter(|value| value.bytes().any(|b| b.is_ascii_digit()));
        match column.kind {
            ColumnKind::Number => has_numbers_of_several_forms(values),
            ColumnKind::Date => has_dates_of_several_forms(values),
            // A text may have any format.
            ColumnKind::Text => false,
        }
    };
    let mixed = columns.iter().enumerate().filter(is_mixed).map(|(_, column)| column.name.clone());
    notes.extend(listed("mixed forms", mixed.collect()));
    notes
}

/// Returns the text of a head, and its encoding if that is not UTF-8. Equal to `table::text` in the skill `data`.
fn decoded(head: &[u8], cut: bool) -> (String, Option<&'static str>) {
    let wide = |pair: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = head[2..].chunks_exact(2).map(|unit| pair([unit[0], unit[1]])).collect();
        String::from_utf16_lossy(&units)
    };
    match head {
        [0xFF, 0xFE, ..] => return (wide(u16::from_le_bytes), Some("UTF-16")),
        [0xFE, 0xFF, ..] => return (wide(u16::from_be_bytes), Some("UTF-16")),
        _ => {}
    }
    let (head, mark) = match head.strip_prefix(b"\xEF\xBB\xBF") {
        Some(rest) => (rest, Some("UTF-8 with BOM")),
        None => (head, None),
    };
    match std::str::from_utf8(head) {
        Ok(text) => (text.to_owned(), mark),
        Err(error) if cut && error.error_len().is_none() => (String::from_utf8_lossy(head).into_owned(), mark),
        // The exact characters do not matter here.
        Err(_) => (head.iter().copied().map(char::from).collect(), Some("cp1252")),
    }
}

/// Returns the rows from the header on, and the separator of their fields; `None` if no line has as many fields as there are
/// columns. A possibly incomplete last row is left out.
fn rows(text: &str, columns: usize, cut: bool) -> Option<(char, Vec<Vec<String>>)> {
    let read = |separator| {
        let mut rows = records(text, separator);
        if cut {
            rows.pop();
        }
        let header = rows.iter().take(PREAMBLE).position(|row| row.len() == columns)?;
        rows.drain(..header);
        let fitting = rows.iter().filter(|row| row.len() == columns).count();
        Some((fitting, separator, rows))
    };
    let found = SEPARATORS.into_iter().filter_map(read).max_by_key(|(fitting, ..)| *fitting)?;
    Some((found.1, found.2))
}

/// Splits delimited text into fields (RFC 4180).
fn records(text: &str, separator: char) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut field, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                field.push('"');
            }
            '"' if quoted => quoted = false,
            '"' if field.is_empty() => quoted = true,
            '\n' if !quoted => {
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            c if c == separator && !quoted => row.push(std::mem::take(&mut field)),
            '\r' if !quoted => {}
            c => field.push(c),
        }
    }
    if !field.is_empty() || !row.is_empty() {
        row.push(field);
        rows.push(row);
    }
    rows
}

/// Returns whether dates have more than one format: `2023-01-01` and `01.02.2023`.
fn has_dates_of_several_forms<'a>(values: impl Iterator<Item = &'a str>) -> bool {
    // Digits become one sign, with a different one for years, and so do letters.
    let shape = |value: &str| {
        let mut shape = String::new();
        let mut rest = value;
        while let Some(c) = rest.chars().next() {
            let is_same = |other: char| match c {
                c if c.is_ascii_digit() => other.is_ascii_digit(),
                c if c.is_alphabetic() => other.is_alphabetic(),
                c => other == c,
            };
            let length = rest.find(|other| !is_same(other)).unwrap_or(rest.len());
            shape.push(match c {
                c if c.is_ascii_digit() && length == 4 => 'y',
                c if c.is_ascii_digit() => 'd',
                c if c.is_alphabetic() => 'a',
                c => c,
            });
            rest = &rest[length..];
        }
        shape
    };
    values.map(shape).collect::<BTreeSet<_>>().len() > 1
}

/// Returns whether numbers have more than one format: `48.211,4` and `48520,0`, or `1.5` and `1,5`.
fn has_numbers_of_several_forms<'a>(values: impl Iterator<Item = &'a str>) -> bool {
    let (mut marks, mut ungrouped, mut grouped) = (BTreeSet::new(), false, false);
    for value in values {
        let value = value.trim_start_matches(['-', '+']);
        if !value.bytes().all(|b| b.is_ascii_digit() || b == b'.' || b == b',') {
            continue;
        }
        let separators: Vec<char> = value.chars().filter(|c| !c.is_ascii_digit()).collect();
        let (whole, rest) = value.split_once(['.', ',']).unwrap_or((value, ""));
        match separators.as_slice() {
            // The sign may be a decimal separator or a group separator.
            [_] if rest.len() == 3 && whole.len() <= 3 => {}
            [] | [_] => {
                marks.extend(separators);
                ungrouped |= whole.len() > 3;
            }
            [first, .., last] => {
                grouped = true;
                marks.extend((first != last).then_some(*last));
            }
        }
    }
    marks.len() > 1 || grouped && ungrouped
}

/// Describes the top-level kind, and the members of its records that have several kinds.
fn of_json(head: &[u8], cut: bool) -> Vec<String> {
    let head = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head);
    let first = head.iter().find(|byte| !byte.is_ascii_whitespace());
    let is_object = first == Some(&b'{');
    let Some(value) = (!cut).then(|| kiso_base::json::parse::<Value>(head).ok()).flatten() else {
        return if is_object { vec!["an object".to_owned()] } else { Vec::new() };
    };
    let mut notes = Vec::new();
    let records = match &value {
        Value::Object(members) => {
            let keys = members.keys().map(|key| short_name(key)).collect();
            notes.extend(listed("object", keys));
            let lists: Vec<_> = members.values().filter_map(Value::as_array).collect();
            if let [list] = lists[..] { list } else { return notes }
        }
        Value::Array(list) => list,
        _ => return notes,
    };
    let mut kinds: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (key, value) in records.iter().filter_map(Value::as_object).flatten() {
        kinds.entry(key).or_default().insert(kind(value));
    }
    let is_plain = |kinds: &BTreeSet<&str>| {
        let others = kinds.iter().filter(|kind| **kind != "null").count();
        others <= 1 && !kinds.contains("list") && (!kinds.contains("object") || kinds.len() == 1)
    };
    let odd = kinds.into_iter().filter(|(_, kinds)| !is_plain(kinds));
    let odd =
        odd.map(|(key, kinds)| format!("{}: {}", short_name(key), kinds.into_iter().collect::<Vec<_>>().join("/")));
    notes.extend(listed("with", odd.collect()));
    notes
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    }
}

/// Formats a list as "mixed forms {day, price}", with at most [`MAX_NAMES`]; `None` if it is empty.
fn listed(what: &str, mut names: Vec<String>) -> Option<String> {
    let more = if names.len() > MAX_NAMES { ", …" } else { "" };
    names.truncate(MAX_NAMES);
    (!names.is_empty()).then(|| format!("{what} {{{}{more}}}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::{has_dates_of_several_forms, has_numbers_of_several_forms};

    #[test]
    fn values_of_several_forms_are_noticed_and_usual_ones_are_not() {
        let numbers = |values: &[&str]| has_numbers_of_several_forms(values.iter().copied());
        for values in [&["48.211,4", "48520,0"][..], &["1.5", "1,5"], &["1,234", "12,345.5", "9999.5"]] {
            assert!(numbers(values), "{values:?}");
        }
        for values in [
            &["1", "2.5", "-300", "12345.6789"][..],
            &["1,234.50", "12.50", "999", "1,234"],
            &["1.234.567", "12"],
            &["1e5", "5 EUR", "3 %"],
            &[],
        ] {
            assert!(!numbers(values), "{values:?}");
        }
        let dates = |values: &[&str]| has_dates_of_several_forms(values.iter().copied());
        for values in [["2023-01-01", "01.02.2023"], ["1/2/2024", "2024/1/2"], ["2024-01-02", "2024-01-02T10:00:00"]] {
            assert!(dates(&values), "{values:?}");
        }
        for values in [
            ["2023-01-01", "2023-12-31"],
            ["1.2.2024", "12.10.2024"],
            ["3 May 2024", "12 March 2024"],
            ["2024", "2025"],
        ] {
            assert!(!dates(&values), "{values:?}");
        }
    }
}
