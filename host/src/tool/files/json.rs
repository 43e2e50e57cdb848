//! Heads of JSON tables, by the rules of `skills/data/table`: an array of objects, `{columns, rows}`, an object around
//! such an array, or one object a line. Objects inside a row become columns of their own (`main.temp`).
//!
//! Values go to the survey while the text is parsed, so a head that ends inside a row has told all rows before it.

use super::guess::{Cell, Survey, distinct};
use super::head::Head;
use crate::llm::prompt::Column;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;

/// Objects nested deeper than this stay JSON text.
const FLATTENED: usize = 3;

pub fn columns(head: &Head) -> Option<Vec<Column>> {
    let mut survey = Survey::default();
    let mut from = serde_json::Deserializer::from_str(&head.text);
    let found = Document(&mut survey).deserialize(&mut from).and_then(|found| from.end().map(|()| found));
    let is_table = match found {
        Ok(found) => found,
        Err(e) => head.cut && e.is_eof() && survey.rows > 0,
    };
    if is_table { survey.finish(false) } else { None }
}

pub fn columns_of_lines(head: &Head) -> Option<Vec<Column>> {
    let text = if head.cut { &head.text[..head.text.rfind('\n')?] } else { head.text.as_str() };
    let mut survey = Survey::default();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let mut from = serde_json::Deserializer::from_str(line);
        Row { survey: &mut survey, needed: true }.deserialize(&mut from).and_then(|_| from.end()).ok()?;
    }
    survey.finish(false)
}

/// Whether the first line is an object and the second one more.
pub fn is_lines(text: &str) -> bool {
    let mut lines = text.lines().filter(|l| !l.trim().is_empty());
    let object = |l: &str| l.trim().starts_with('{') && serde_json::from_str::<IgnoredAny>(l).is_ok();
    lines.next().is_some_and(object) && lines.next().is_some_and(|l| l.trim().starts_with('{'))
}

/// Has its visitor asked for whatever comes.
macro_rules! any {
    ($seed:ident, $value:ty) => {
        impl<'de> DeserializeSeed<'de> for $seed<'_> {
            type Value = $value;
            fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<$value, D::Error> {
                from.deserialize_any(self)
            }
        }
    };
}

/// What is not there to be rows.
macro_rules! passed_over {
    ($($visit:ident: $type:ty),*) => {
        $(fn $visit<E: Error>(self, _: $type) -> Result<bool, E> { Ok(false) })*
        fn visit_unit<E: Error>(self) -> Result<bool, E> { Ok(false) }
    };
}

/// Answers whether there were rows.
struct Document<'s>(&'s mut Survey);

any!(Document, bool);

impl<'de> Visitor<'de> for Document<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<bool, A::Error> {
        while seq.next_element_seed(Row { survey: self.0, needed: true })?.is_some() {}
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
                _ => found = map.next_value_seed(Rows { survey: self.0, needed: key == "rows" })?,
            }
        }
        Ok(found)
    }
}

/// Names of columns: texts, or objects with a `name`. Anything else is not a list of names and is passed over.
fn names(value: &Value) -> Vec<String> {
    let name = |v: &Value| v.get("name").unwrap_or(v).as_str().map(str::to_owned);
    distinct(value.as_array().into_iter().flatten().filter_map(name))
}

/// A value of an object that may be its rows.
struct Rows<'s> {
    survey: &'s mut Survey,
    needed: bool,
}

any!(Rows, bool);

impl<'de> Visitor<'de> for Rows<'_> {
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
        while let Some(row) = seq.next_element_seed(Row { survey: self.survey, needed: rows })? {
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
struct Row<'s> {
    survey: &'s mut Survey,
    needed: bool,
}

impl<'de> DeserializeSeed<'de> for Row<'_> {
    type Value = bool;
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<bool, D::Error> {
        // A scalar where a row must be is an error; elsewhere it only says that this is not a table.
        if self.needed { from.deserialize_any(NeededRow(self.survey)) } else { from.deserialize_any(self) }
    }
}

impl<'de> Visitor<'de> for Row<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a row")
    }

    passed_over!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str);

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<bool, A::Error> {
        NeededRow(self.survey).visit_map(map)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<bool, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(false)
    }
}

struct NeededRow<'s>(&'s mut Survey);

impl<'de> Visitor<'de> for NeededRow<'_> {
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
        while seq.next_element_seed(CellTarget { survey: self.0, name: None, column, depth: 0 })?.is_some() {
            column += 1;
        }
        self.0.end_row();
        Ok(true)
    }
}

fn entries<'de, A: MapAccess<'de>>(
    survey: &mut Survey,
    prefix: &str,
    depth: usize,
    map: &mut A,
) -> Result<(), A::Error> {
    while let Some(key) = map.next_key::<Cow<'_, str>>()? {
        let name = if prefix.is_empty() { key.into_owned() } else { format!("{prefix}.{key}") };
        map.next_value_seed(CellTarget { survey, name: Some(name), column: 0, depth })?;
    }
    Ok(())
}

/// Where a value of a row goes: a column by name, or by its place.
struct CellTarget<'s> {
    survey: &'s mut Survey,
    name: Option<String>,
    column: usize,
    depth: usize,
}

impl CellTarget<'_> {
    fn put<E>(self, cell: Cell<'_>) -> Result<(), E> {
        let column = self.name.map_or(self.column, |name| self.survey.column(&name));
        self.survey.cell(column, cell);
        Ok(())
    }

    /// Integers above 2^53 go as digits: a float cannot hold them, so they are not numbers.
    fn put_integer<E>(self, size: u64, digits: &dyn fmt::Display) -> Result<(), E> {
        if size > 1 << 53 { self.put(Cell::Written(&digits.to_string())) } else { self.put(Cell::Number) }
    }
}

any!(CellTarget, ());

impl<'de> Visitor<'de> for CellTarget<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.put(Cell::Written(if value { "true" } else { "false" }))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.put_integer(value.unsigned_abs(), &value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.put_integer(value, &value)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        self.put(Cell::Number)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        self.put(Cell::Written(value.trim()))
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.put(Cell::Missing)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<(), A::Error> {
        let value = Value::deserialize(SeqAccessDeserializer::new(seq))?;
        self.put(Cell::Written(&value.to_string()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        match &self.name {
            Some(name) if self.depth < FLATTENED => entries(self.survey, name, self.depth + 1, &mut map),
            _ => {
                let value = Value::deserialize(MapAccessDeserializer::new(map))?;
                self.put(Cell::Written(&value.to_string()))
            }
        }
    }
}
