//! From text to cells.

use serde_json::Value;

use super::{Cell, Format, Sheet, Taking};
use crate::error::{Error, Result};
use crate::limits;

/// Digits that a number in a workbook keeps.
const DIGITS: usize = 15;

/// A sheet from records of CSV.
pub fn from_records(name: &str, records: Vec<Vec<String>>, taking: Taking) -> Sheet {
    let width = records.iter().map(Vec::len).max().unwrap_or(0);
    let is_text = |text: &String| matches!(cell(text, false), Cell::Text(_) | Cell::Code(_) | Cell::Empty);
    let has_head = !taking.no_head
        && records.len() > 1
        && records
            .first()
            .is_some_and(|first| first.iter().all(is_text) && first.iter().any(|text| !text.trim().is_empty()));
    // If one value of a column has zeros before it, all of the column stays text.
    let mut codes = vec![taking.only_text; width];
    for record in records.iter().skip(usize::from(has_head)) {
        for (column, text) in record.iter().enumerate() {
            codes[column] |= is_code(text.trim());
        }
    }
    let rows = records.into_iter().enumerate().map(|(number, record)| {
        let is_head = has_head && number == 0;
        record.into_iter().enumerate().map(|(column, text)| cell(&text, codes[column] || is_head)).collect()
    });
    Sheet { name: name.to_owned(), rows: rows.collect(), has_head }
}

/// Digits with a zero or a plus before them, or more than a number keeps.
fn is_code(text: &str) -> bool {
    let digits = text.strip_prefix('+').unwrap_or(text);
    !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && ((digits.starts_with('0') && digits.len() > 1) || digits.len() > DIGITS || digits.len() < text.len())
}

fn cell(text: &str, only_text: bool) -> Cell {
    let plain = text.trim();
    if plain.is_empty() {
        return Cell::Empty;
    }
    if only_text || is_code(plain) {
        let is_digits = plain.bytes().all(|byte| byte.is_ascii_digit());
        return if is_digits { Cell::Code(plain.to_owned()) } else { Cell::Text(text.to_owned()) };
    }
    match plain {
        "TRUE" | "true" | "True" => return Cell::Bool(true),
        "FALSE" | "false" | "False" => return Cell::Bool(false),
        _ => {}
    }
    number(plain).or_else(|| date(plain)).unwrap_or_else(|| Cell::Text(text.to_owned()))
}

fn number(text: &str) -> Option<Cell> {
    if !text.ends_with(|c: char| c.is_ascii_digit() || c == '%') {
        return None;
    }
    let (digits, is_percent) = text.strip_suffix('%').map_or((text, false), |digits| (digits.trim_end(), true));
    let unsigned = digits.strip_prefix('-').unwrap_or(digits);
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let groups: Vec<&str> = whole.split(',').collect();
    let is_grouped = groups.len() > 1;
    let is_right = match groups.as_slice() {
        [only] => is_digits(only) && (only.len() == 1 || !only.starts_with('0')),
        [first, rest @ ..] => {
            is_digits(first)
                && first.len() <= 3
                && !first.starts_with('0')
                && rest.iter().all(|group| group.len() == 3 && is_digits(group))
        }
        [] => false,
    };
    if !is_right || !is_digits(part) || !is_digits(exponent.trim_start_matches(['-', '+'])) {
        return None;
    }
    let all = whole.bytes().chain(part.bytes()).filter(u8::is_ascii_digit).count();
    if all > DIGITS + 3 {
        return None;
    }
    let value: f64 = digits.replace(',', "").parse().ok().filter(|value: &f64| value.is_finite())?;
    let has_part = mantissa.contains('.');
    Some(match (is_percent, is_grouped, has_part) {
        (true, _, false) => Cell::Number(value / 100.0, Format::Percent),
        (true, _, true) => Cell::Number(value / 100.0, Format::PercentPart),
        (_, true, false) => Cell::Number(value, Format::Thousands),
        (_, true, true) => Cell::Number(value, Format::ThousandsPart),
        _ => Cell::Number(value, Format::General),
    })
}

/// Dates and times as ISO 8601 has them, without a zone.
fn date(text: &str) -> Option<Cell> {
    let (day, clock) = match text.split_once(['T', ' ']) {
        Some((day, clock)) => (day, Some(clock)),
        None if text.contains(':') => return Some(Cell::Number(time(text)?, Format::Time)),
        None => (text, None),
    };
    let days = days(day)?;
    match clock {
        None => Some(Cell::Number(days, Format::Date)),
        Some(clock) => Some(Cell::Number(days + time(clock)?, Format::DateTime)),
    }
}

fn parts<const N: usize>(text: &str, separator: char, lengths: [usize; N]) -> Option<[u32; N]> {
    let mut found = [0; N];
    let mut parts = text.split(separator);
    for (value, length) in found.iter_mut().zip(lengths) {
        let part =
            parts.next().filter(|part| part.len() == length && part.bytes().all(|byte| byte.is_ascii_digit()))?;
        *value = part.parse().ok()?;
    }
    parts.next().is_none().then_some(found)
}

/// Days since the end of 1899, as workbooks count them.
fn days(text: &str) -> Option<f64> {
    let [year, month, day] = parts(text, '-', [4, 2, 2])?;
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        _ => return None,
    };
    // Before March 1900, workbooks have a day that never was.
    if !(1..=length).contains(&day) || (year, month) < (1900, 3) {
        return None;
    }
    // Howard Hinnant's days from a civil date, with 1970-01-01 as day 25569.
    let (year, month) = (i64::from(year) - i64::from(month <= 2), i64::from(month));
    let era = year.div_euclid(400);
    let of_era = year - era * 400;
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + i64::from(day) - 1;
    let day_of_era = of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    Some((era * 146_097 + day_of_era - 719_468 + 25_569) as f64)
}

fn time(text: &str) -> Option<f64> {
    let (clock, part) = text.split_once('.').unwrap_or((text, "0"));
    let [hour, minute, second] = match clock.len() {
        5 => parts(clock, ':', [2, 2]).map(|[hour, minute]| [hour, minute, 0])?,
        _ => parts(clock, ':', [2, 2, 2])?,
    };
    if hour > 23 || minute > 59 || second > 59 || part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let part: f64 = format!("0.{part}").parse().ok()?;
    Some((f64::from(hour * 3_600 + minute * 60 + second) + part) / 86_400.0)
}

/// Sheets from JSON: a list of objects or lists, one on each line, or an object with such lists by the names of sheets.
pub fn from_json(name: &str, text: &str, taking: Taking) -> Result<Vec<Sheet>> {
    let wrong = || Error::new("its JSON is not a table: a list of objects or of lists is needed");
    let whole = serde_json::from_str::<Value>(text);
    let value = match whole {
        Ok(value) => value,
        Err(error) => {
            let lines = text.lines().filter(|line| !line.trim().is_empty());
            let rows: std::result::Result<Vec<Value>, _> = lines.map(serde_json::from_str).collect();
            Value::Array(rows.map_err(|_| Error::new(format!("its JSON cannot be read: {error}")))?)
        }
    };
    match value {
        Value::Array(rows) => Ok(vec![json_sheet(name, &rows, taking)?]),
        Value::Object(sheets) if !sheets.is_empty() && sheets.values().all(Value::is_array) => sheets
            .iter()
            .take(500)
            .map(|(name, rows)| json_sheet(name, rows.as_array().map_or(&[][..], Vec::as_slice), taking))
            .collect(),
        Value::Object(object) => Ok(vec![json_sheet(name, &[Value::Object(object)], taking)?]),
        _ => Err(wrong()),
    }
}

fn json_sheet(name: &str, rows: &[Value], taking: Taking) -> Result<Sheet> {
    let mut names: Vec<&str> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for object in rows.iter().filter_map(Value::as_object) {
        for key in object.keys() {
            if !places.contains_key(key.as_str()) {
                if names.len() >= limits::COLUMNS {
                    return Err(Error::limit("its objects have too many names", limits::COLUMNS));
                }
                places.insert(key.as_str(), names.len());
                names.push(key);
            }
        }
    }
    if names.len().saturating_mul(rows.len()) > limits::CELLS * 4 {
        return Err(Error::limit("there are too many cells", limits::CELLS));
    }
    let mut out: Vec<Vec<Cell>> = Vec::new();
    if !names.is_empty() {
        out.push(names.iter().map(|name| Cell::Text((*name).to_owned())).collect());
    }
    for row in rows {
        out.push(match row {
            Value::Object(object) => {
                let mut cells = vec![Cell::Empty; names.len()];
                object.iter().for_each(|(key, value)| cells[places[key.as_str()]] = json_cell(value, taking));
                while cells.last() == Some(&Cell::Empty) {
                    cells.pop();
                }
                cells
            }
            Value::Array(values) => values.iter().map(|value| json_cell(value, taking)).collect(),
            value => vec![json_cell(value, taking)],
        });
    }
    let is_named = |cells: &Vec<Cell>| !cells.is_empty() && cells.iter().all(|cell| matches!(cell, Cell::Text(_)));
    let has_head = !names.is_empty() || (!taking.no_head && out.len() > 1 && out.first().is_some_and(is_named));
    Ok(Sheet { name: name.to_owned(), rows: out, has_head })
}

fn json_cell(value: &Value, taking: Taking) -> Cell {
    match value {
        Value::Null => Cell::Empty,
        Value::Bool(value) => Cell::Bool(*value),
        Value::Number(number) => {
            let digits = number.to_string().bytes().filter(u8::is_ascii_digit).count();
            match number.as_f64() {
                Some(value) if value.is_finite() && (digits <= DIGITS || number.is_f64()) => {
                    Cell::Number(value, Format::General)
                }
                _ => Cell::Text(number.to_string()),
            }
        }
        // A string is text, but for dates, which JSON has no other way to write.
        Value::String(text) if text.is_empty() => Cell::Empty,
        Value::String(text) if !taking.only_text && text.contains('-') => {
            date(text.trim()).unwrap_or_else(|| Cell::Text(text.clone()))
        }
        Value::String(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => Cell::Code(text.clone()),
        Value::String(text) => Cell::Text(text.clone()),
        Value::Array(_) | Value::Object(_) => Cell::Text(value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_found() {
        for (text, expected) in [
            ("12", Cell::Number(12.0, Format::General)),
            ("-1.50", Cell::Number(-1.5, Format::General)),
            ("1e3", Cell::Number(1000.0, Format::General)),
            ("1,234.50", Cell::Number(1234.5, Format::ThousandsPart)),
            ("12%", Cell::Number(0.12, Format::Percent)),
            ("2026-05-01", Cell::Number(46143.0, Format::Date)),
            ("2026-05-01T12:00:00", Cell::Number(46143.5, Format::DateTime)),
            ("06:00", Cell::Number(0.25, Format::Time)),
            ("true", Cell::Bool(true)),
            ("", Cell::Empty),
            ("0123", Cell::Code("0123".to_owned())),
            ("12345678901234567", Cell::Code("12345678901234567".to_owned())),
            ("+4912345", Cell::Text("+4912345".to_owned())),
            ("=1+1", Cell::Text("=1+1".to_owned())),
            ("2026-02-30", Cell::Text("2026-02-30".to_owned())),
            ("1.2.3", Cell::Text("1.2.3".to_owned())),
            ("1,23", Cell::Text("1,23".to_owned())),
            ("inf", Cell::Text("inf".to_owned())),
            ("1e999", Cell::Text("1e999".to_owned())),
            ("-", Cell::Text("-".to_owned())),
            ("é%", Cell::Text("é%".to_owned())),
        ] {
            assert_eq!(cell(text, false), expected, "{text}");
        }
        assert_eq!(days("1970-01-01"), Some(25_569.0));
        assert_eq!(days("2000-02-29"), Some(36_585.0));
    }

    #[test]
    fn a_column_of_codes_is_text() {
        let records = vec![vec!["zip".to_owned()], vec!["01234".to_owned()], vec!["12345".to_owned()]];
        let sheet = from_records("a", records, Taking::default());
        assert!(sheet.has_head);
        assert_eq!(sheet.rows[2][0], Cell::Code("12345".to_owned()));
    }

    #[test]
    fn json_becomes_sheets() {
        let text = r#"[{"a":1,"b":"x"},{"b":"2026-05-01","c":[1]}]"#;
        let sheet = &from_json("s", text, Taking::default()).unwrap()[0];
        assert_eq!(sheet.rows[0].len(), 3);
        assert_eq!(sheet.rows[2][1], Cell::Number(46143.0, Format::Date));
        assert_eq!(from_json("s", r#"{"x":[[1]],"y":[{"k":true}]}"#, Taking::default()).unwrap().len(), 2);
        assert_eq!(from_json("s", "{\"a\":1}\n{\"a\":2}\n", Taking::default()).unwrap()[0].rows.len(), 3);
        assert!(from_json("s", "{", Taking::default()).is_err());
        assert!(from_json("s", "3", Taking::default()).is_err());
    }
}
