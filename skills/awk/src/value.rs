//! Values of variables, fields and elements.

use std::borrow::Borrow;
use std::cell::RefCell;
use std::cmp::Ordering;
use std::rc::Rc;

use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;

use crate::number;

/// Bytes that several values share. They are UTF-8 where the input is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Text(Rc<Vec<u8>>);

impl Text {
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// For adding to its end: a copy if others share it.
    pub fn to_mut(&mut self) -> &mut Vec<u8> {
        Rc::make_mut(&mut self.0)
    }

    pub fn lossy(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }
}

impl From<Vec<u8>> for Text {
    fn from(bytes: Vec<u8>) -> Self {
        Text(Rc::new(bytes))
    }
}

impl From<&[u8]> for Text {
    fn from(bytes: &[u8]) -> Self {
        Text(Rc::new(bytes.to_vec()))
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Text(Rc::new(text.as_bytes().to_vec()))
    }
}

impl Borrow<[u8]> for Text {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

#[derive(Clone, Debug, Default)]
pub enum Value {
    /// Both 0 and "".
    #[default]
    Uninit,
    Number(f64),
    Text(Text),
    /// From outside: it counts as a number where it looks like one.
    Input(Text),
}

impl Value {
    pub fn number(&self) -> f64 {
        match self {
            Value::Uninit => 0.0,
            Value::Number(number) => *number,
            Value::Text(text) | Value::Input(text) => number::from_text(text.bytes()),
        }
    }

    pub fn truth(&self) -> bool {
        match self {
            Value::Uninit => false,
            Value::Number(number) => *number != 0.0,
            Value::Text(text) => !text.bytes().is_empty(),
            Value::Input(text) => number::whole(text.bytes()).map_or(!text.bytes().is_empty(), |number| number != 0.0),
        }
    }

    pub fn text(&self, conversion: &[u8]) -> Text {
        match self {
            Value::Uninit => Text::default(),
            Value::Number(number) => {
                let mut out = Vec::new();
                number::write(*number, conversion, &mut out);
                out.into()
            }
            Value::Text(text) | Value::Input(text) => text.clone(),
        }
    }

    pub fn write(&self, conversion: &[u8], out: &mut Vec<u8>) {
        match self {
            Value::Uninit => {}
            Value::Number(number) => number::write(*number, conversion, out),
            Value::Text(text) | Value::Input(text) => out.extend_from_slice(text.bytes()),
        }
    }

    /// Its number, if it compares as one.
    fn as_number(&self) -> Option<f64> {
        match self {
            Value::Uninit => Some(0.0),
            Value::Number(number) => Some(*number),
            Value::Text(_) => None,
            Value::Input(text) => number::whole(text.bytes()),
        }
    }

    /// As numbers if both look like numbers, as texts otherwise. `None` where one is not a number (nan).
    pub fn compare(&self, other: &Value, conversion: &[u8], fold: bool) -> Option<Ordering> {
        if let (Some(a), Some(b)) = (self.as_number(), other.as_number()) {
            return a.partial_cmp(&b);
        }
        let (a, b) = (self.text(conversion), other.text(conversion));
        if fold {
            return Some(a.lossy().to_lowercase().cmp(&b.lossy().to_lowercase()));
        }
        Some(a.cmp(&b))
    }
}

pub type Elements = IndexMap<Text, Cell, FxBuildHasher>;

/// An array, which is passed to functions by reference.
pub type Array = Rc<RefCell<Elements>>;

/// The content of a name or an element.
#[derive(Clone, Debug)]
pub enum Cell {
    Value(Value),
    Array(Array),
    /// Not used yet, but given to a function: an array, which both share, as soon as one of them uses it as such.
    Unused(Array),
}

impl Default for Cell {
    fn default() -> Self {
        Cell::Value(Value::Uninit)
    }
}

impl From<Value> for Cell {
    fn from(value: Value) -> Self {
        Cell::Value(value)
    }
}

impl Cell {
    /// The array that it is or becomes; `None` if it holds a value.
    pub fn array(&mut self) -> Option<Array> {
        match self {
            Cell::Array(array) => Some(array.clone()),
            Cell::Value(Value::Uninit) => {
                let array = Array::default();
                *self = Cell::Array(array.clone());
                Some(array)
            }
            Cell::Unused(array) => {
                let array = array.clone();
                *self = Cell::Array(array.clone());
                Some(array)
            }
            Cell::Value(_) => None,
        }
    }

    /// Returns the argument for a function that gets this cell by its name.
    pub fn share(&mut self) -> Cell {
        if let Cell::Value(Value::Uninit) = self {
            *self = Cell::Unused(Array::default());
        }
        self.clone()
    }
}

/// The bytes of a text as characters: of UTF-8, or a byte that is none by itself.
pub fn characters(text: &[u8]) -> Characters<'_> {
    Characters { rest: text }
}

pub struct Characters<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Characters<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let first = *self.rest.first()?;
        let length = match first {
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ => 1,
        };
        let whole = self.rest.get(..length).is_some_and(|c| std::str::from_utf8(c).is_ok());
        let (character, rest) = self.rest.split_at(if whole { length } else { 1 });
        self.rest = rest;
        Some(character)
    }
}

/// How many characters a text has.
pub fn length(text: &[u8]) -> usize {
    if text.is_ascii() { text.len() } else { characters(text).count() }
}

/// Where the character with this number begins, counted from 0; the text's end behind the last one.
pub fn offset(text: &[u8], character: usize) -> usize {
    if text.is_ascii() {
        return character.min(text.len());
    }
    characters(text).take(character).map(<[u8]>::len).sum()
}
