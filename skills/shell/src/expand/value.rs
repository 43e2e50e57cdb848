use std::borrow::Cow;
use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// The value of a variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Value {
    Scalar(String),
    /// `a=(x y)`: elements by index, with gaps.
    Indexed(BTreeMap<u64, String>),
    /// `declare -A`: in the order in which the keys were first set; `ordered` is how they are shown.
    Keyed(IndexMap<String, String>),
}

impl Value {
    /// The value of `$name`: an array stands for its element 0.
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
            Self::Keyed(elements) => ordered(elements).into_iter().map(|(_, value)| value.clone()).collect(),
        }
    }

    /// `"${!name[@]}"`.
    pub fn keys(&self) -> Vec<String> {
        match self {
            Self::Scalar(_) => vec!["0".into()],
            Self::Indexed(elements) => elements.keys().map(u64::to_string).collect(),
            Self::Keyed(elements) => ordered(elements).into_iter().map(|(key, _)| key.clone()).collect(),
        }
    }

    /// The element with a subscript that is already a number; a negative one counts from the end.
    pub fn element(&self, index: i64) -> Option<&str> {
        match self {
            Self::Scalar(text) => matches!(index, 0 | -1).then_some(text.as_str()),
            Self::Indexed(elements) => elements.get(&absolute(index, elements)?).map(String::as_str),
            Self::Keyed(elements) => elements.get(&index.to_string()).map(String::as_str),
        }
    }
}

/// The elements as bash goes through them: by the place of the key's hash in its table, the newest first in each place. Scripts
/// whose output was kept show that order.
pub fn ordered(elements: &IndexMap<String, String>) -> Vec<(&String, &String)> {
    // The table starts with 1024 places, and grows to four times as many when there are two elements for each.
    let mut places = 1024;
    while elements.len() >= places * 2 {
        places *= 4;
    }
    let mut all: Vec<_> =
        elements.iter().enumerate().map(|(at, pair)| (hash(pair.0) as usize % places, at, pair)).collect();
    all.sort_unstable_by_key(|&(place, at, _)| (place, std::cmp::Reverse(at)));
    all.into_iter().map(|(_, _, pair)| pair).collect()
}

/// FNV-1, with 32 bits.
fn hash(key: &str) -> u32 {
    key.bytes().fold(2_166_136_261, |hash: u32, byte| hash.wrapping_mul(16_777_619) ^ i32::from(byte as i8) as u32)
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
