//! JSON tables: an array of objects, `{columns, rows}`, an object around such an array, or one object a line.
//!
//! Values go to the sink while the text is parsed, so that no tree of the whole file is ever in memory.
//! Objects inside a row become columns of their own (`main.temp`); arrays stay as JSON text.

use crate::Error;
use crate::cell::{Cell, Sink};
use crate::name::distinct;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;

/// Objects nested deeper than this stay JSON text.
const FLATTENED: usize = 3;

/// Hands every cell of a JSON document to `sink`.
pub fn walk(file: &str, text: &str, sink: &mut impl Sink) -> Result<(), Error> {
    match document(&with_long_integers_quoted(text), sink) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Error::new(
            "not-a-table",
            format!("{file} has no rows; a JSON table is an array of objects, or an object with columns and rows"),
        )),
        Err(e) => Err(broken(file, e.line(), &e)),
    }
}

/// Whether there were rows.
pub fn document(text: &str, sink: &mut impl Sink) -> serde_json::Result<bool> {
    let mut from = serde_json::Deserializer::from_str(text);
    Document(sink).deserialize(&mut from).and_then(|found| from.end().map(|()| found))
}

/// As [`walk`], for one object a line.
pub fn walk_lines(file: &str, text: &str, sink: &mut impl Sink) -> Result<(), Error> {
    for (i, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let line = with_long_integers_quoted(line);
        let mut from = serde_json::Deserializer::from_str(&line);
        let read = Row { sink, needed: true }.deserialize(&mut from).and_then(|_| from.end());
        read.map_err(|e| broken(file, i + 1, &e))?;
    }
    Ok(())
}

/// Whether the first line is an object and the second one more.
pub fn is_lines(text: &str) -> bool {
    let mut lines = text.lines().filter(|l| !l.trim().is_empty());
    let object = |line: Option<&str>| {
        line.is_some_and(|l| l.trim().starts_with('{') && serde_json::from_str::<IgnoredAny>(l).is_ok())
    };
    object(lines.next()) && lines.next().is_some_and(|l| l.trim().starts_with('{'))
}

/// Digits that 64 bits hold in any case.
const SURE_DIGITS: usize = 19;

/// The text with quotes around integers of more digits than 64 bits hold: the parser makes rounded floats of those.
fn with_long_integers_quoted(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let (mut out, mut kept, mut at) = (String::new(), 0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at += 1;
                while at < bytes.len() && bytes[at] != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
            }
            b'-' | b'0'..=b'9' => {
                let end =
                    bytes[at + 1..].iter().position(|b| !matches!(b, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
                let end = end.map_or(bytes.len(), |length| at + 1 + length);
                let digits = &bytes[at + usize::from(bytes[at] == b'-')..end];
                if digits.len() > SURE_DIGITS && digits[0] != b'0' && digits.iter().all(u8::is_ascii_digit) {
                    out.push_str(&text[kept..at]);
                    out.extend(["\"", &text[at..end], "\""]);
                    kept = end;
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    if kept == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[kept..]);
    Cow::Owned(out)
}

fn broken(file: &str, line: usize, error: &serde_json::Error) -> Error {
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or_default();
    Error::new("not-a-table", format!("{file} line {line} column {}: {message}", error.column()))
}

/// Has its visitor asked for whatever comes.
macro_rules! any {
    ($seed:ident, $value:ty) => {
        impl<'de, S: Sink> DeserializeSeed<'de> for $seed<'_, S> {
            type Value = $value;
            fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<$value, D::Error> {
                from.deserialize_any(self)
            }
        }
    };
}

/// Answers whether there were rows.
struct Document<'s, S>(&'s mut S);

any!(Document, bool);

impl<'de, S: Sink> Visitor<'de> for Document<'_, S> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<bool, A::Error> {
        while seq.next_element_seed(Row { sink: self.0, needed: true })?.is_some() {}
        Ok(true)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        let mut found = false;
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "columns" if !found => {
                    for name in names(&map.next_value()?) {
                        self.0.column(&name);
                    }
                }
                _ if found => drop(map.next_value::<IgnoredAny>()?),
                _ => found = map.next_value_seed(Rows { sink: self.0, needed: key == "rows" })?,
            }
        }
        Ok(found)
    }
}

/// Names of columns: texts, or objects with a `name`. Skips anything else.
fn names(value: &Value) -> Vec<String> {
    let name = |v: &Value| v.get("name").unwrap_or(v).as_str().map(str::to_owned);
    distinct(value.as_array().into_iter().flatten().filter_map(name))
}

/// A value of an object that may be its rows.
struct Rows<'s, S> {
    sink: &'s mut S,
    needed: bool,
}

any!(Rows, bool);

/// Visits values that cannot be rows.
macro_rules! passed_over {
    ($($visit:ident: $type:ty),*) => {
        $(fn $visit<E: de::Error>(self, _: $type) -> Result<bool, E> { Ok(false) })*
        fn visit_unit<E: de::Error>(self) -> Result<bool, E> { Ok(false) }
    };
}

impl<'de, S: Sink> Visitor<'de> for Rows<'_, S> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("rows")
    }

    passed_over!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str);

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(false)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<bool, A::Error> {
        let mut rows = self.needed;
        while let Some(row) = seq.next_element_seed(Row { sink: self.sink, needed: rows })? {
            if !row {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                return Ok(false);
            }
            rows = true;
        }
        Ok(rows)
    }
}

/// One row: an object, or an array of values in the order of the columns. Answers whether it was one.
struct Row<'s, S> {
    sink: &'s mut S,
    needed: bool,
}

impl<'de, S: Sink> DeserializeSeed<'de> for Row<'_, S> {
    type Value = bool;
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<bool, D::Error> {
        // A scalar where a row must be is an error with its position; elsewhere it only shows that this is not a table.
        if self.needed { from.deserialize_any(NeededRow(self.sink)) } else { from.deserialize_any(self) }
    }
}

impl<'de, S: Sink> Visitor<'de> for Row<'_, S> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a row")
    }

    passed_over!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str);

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<bool, A::Error> {
        NeededRow(self.sink).visit_map(map)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<bool, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(false)
    }
}

struct NeededRow<'s, S>(&'s mut S);

impl<'de, S: Sink> Visitor<'de> for NeededRow<'_, S> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a row: an object, or an array of values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        entries(self.0, "", 0, &mut map)?;
        self.0.end_row();
        Ok(true)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<bool, A::Error> {
        let mut column = 0;
        while seq.next_element_seed(CellTarget { sink: self.0, name: None, column, depth: 0 })?.is_some() {
            column += 1;
        }
        self.0.end_row();
        Ok(true)
    }
}

fn entries<'de, S: Sink, A: MapAccess<'de>>(
    sink: &mut S,
    prefix: &str,
    depth: usize,
    map: &mut A,
) -> Result<(), A::Error> {
    while let Some(key) = map.next_key::<Cow<'_, str>>()? {
        let name = if prefix.is_empty() { key.into_owned() } else { format!("{prefix}.{key}") };
        map.next_value_seed(CellTarget { sink, name: Some(name), column: 0, depth })?;
    }
    Ok(())
}

/// Where a value of a row goes: a column by name, or by its place.
struct CellTarget<'s, S> {
    sink: &'s mut S,
    name: Option<String>,
    column: usize,
    depth: usize,
}

impl<S: Sink> CellTarget<'_, S> {
    fn put<E>(self, cell: Cell<'_>) -> Result<(), E> {
        let column = self.name.map_or(self.column, |name| self.sink.column(&name));
        self.sink.cell(column, cell);
        Ok(())
    }

    /// Integers above 2^53 go as digits, so that they are noticed: a float cannot hold them.
    fn put_integer<E>(self, size: u64, value: f64, digits: &dyn fmt::Display) -> Result<(), E> {
        if size > 1 << 53 { self.put(Cell::Written(&digits.to_string())) } else { self.put(Cell::Number(value)) }
    }
}

any!(CellTarget, ());

impl<'de, S: Sink> Visitor<'de> for CellTarget<'_, S> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<(), E> {
        self.put(Cell::Written(if value { "true" } else { "false" }))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<(), E> {
        self.put_integer(value.unsigned_abs(), value as f64, &value)
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<(), E> {
        self.put_integer(value, value as f64, &value)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<(), E> {
        self.put(Cell::Number(value))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<(), E> {
        self.put(Cell::Written(value.trim()))
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        self.put(Cell::Missing)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<(), A::Error> {
        let value = Value::deserialize(SeqAccessDeserializer::new(seq))?;
        self.put(Cell::Written(&value.to_string()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        match &self.name {
            Some(name) if self.depth < FLATTENED => entries(self.sink, name, self.depth + 1, &mut map),
            _ => {
                let value = Value::deserialize(MapAccessDeserializer::new(map))?;
                self.put(Cell::Written(&value.to_string()))
            }
        }
    }
}
