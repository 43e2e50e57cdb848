use std::borrow::Cow;
use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// What a variable holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Value {
    Scalar(String),
    /// `a=(x y)`: elements by index, with gaps.
    Indexed(BTreeMap<u64, String>),
    /// `declare -A`: in the order in which the keys were first set.
    Keyed(IndexMap<String, String>),
}

impl Value {
    /// What `$name` means: an array stands for its element 0.
    pub fn scalar(&self) -> Option<&str> {
        match self {
            Self::Scalar(text) => Some(text),
            Self::Indexed(elements) => elements.get(&0).map(String::as_str),
            Self::Keyed(elements) => elements.get("0").map(String::as_str),
        }
    }

    /// `"${name[@]}"`; a scalar is an array of one.
    pub fn elements(&self) -> Vec<String> {
        match self {
            Self::Scalar(text) => vec![text.clone()],
            Self::Indexed(elements) => elements.values().cloned().collect(),
            Self::Keyed(elements) => elements.values().cloned().collect(),
        }
    }

    /// `"${!name[@]}"`.
    pub fn keys(&self) -> Vec<String> {
        match self {
            Self::Scalar(_) => vec!["0".into()],
            Self::Indexed(elements) => elements.keys().map(u64::to_string).collect(),
            Self::Keyed(elements) => elements.keys().cloned().collect(),
        }
    }

    /// The element with a subscript that is already a number; a negative one counts from the end.
    pub fn at(&self, index: i64) -> Option<&str> {
        match self {
            Self::Scalar(text) => matches!(index, 0 | -1).then_some(text.as_str()),
            Self::Indexed(elements) => elements.get(&absolute(index, elements)?).map(String::as_str),
            Self::Keyed(elements) => elements.get(&index.to_string()).map(String::as_str),
        }
    }
}

/// The index that a subscript means in this array; nothing if it lies before the start.
pub fn absolute(index: i64, elements: &BTreeMap<u64, String>) -> Option<u64> {
    if index >= 0 {
        return Some(index as u64);
    }
    let end = elements.last_key_value().map_or(0, |(last, _)| last.saturating_add(1));
    end.checked_sub(index.unsigned_abs())
}

/// The text of a variable, borrowed as long as it can be.
pub fn scalar(value: Cow<'_, Value>) -> Option<String> {
    match value {
        Cow::Owned(Value::Scalar(text)) => Some(text),
        other => other.scalar().map(str::to_owned),
    }
}
