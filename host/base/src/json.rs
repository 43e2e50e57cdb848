//! Limits for the nesting of JSON from outside.
//!
//! JSON parsers stop at 128 levels so that they do not overflow the stack. Stored JSON is nested in a few more levels: a reply of
//! 126 levels would be stored and could never be read again. So the nesting of all input has a much lower limit, and everything
//! is checked once more before it is committed.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;

/// Maximum levels of lists and objects in a document from outside.
pub const MAX_DEPTH: usize = 64;

/// Maximum levels of a step's result: a document from outside, nested in the result.
pub const MAX_RESULT: usize = 90;

/// Maximum levels of everything that is committed: a document from outside and all that contains it. Parsers stop at 128.
pub const MAX_COMMITTED: usize = 100;

/// Replaces values that are nested too deeply.
pub const CUT: &str = "(nested too deeply; left out)";

/// A document that is refused.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    #[error(transparent)]
    Syntax(#[from] serde_json::Error),
    #[error("it is nested more than {MAX_DEPTH} levels deep")]
    Depth,
}

/// Returns the JSON of a value of kiso's own types, on one line.
#[expect(clippy::expect_used, reason = "types of kiso's own have texts as keys, and no part without a JSON form")]
pub fn text(value: &(impl Serialize + ?Sized)) -> String {
    serde_json::to_string(value).expect("the type has a JSON form")
}

/// Returns the JSON of a value of kiso's own types, as bytes.
pub fn bytes(value: &(impl Serialize + ?Sized)) -> Vec<u8> {
    text(value).into_bytes()
}

/// Parses a document from outside.
pub fn parse<T: serde::de::DeserializeOwned>(text: &[u8]) -> Result<T, JsonError> {
    if is_deeper(text, MAX_DEPTH) {
        return Err(JsonError::Depth);
    }
    Ok(serde_json::from_slice(text)?)
}

/// Whether a JSON text has more than this many levels. Reads each byte at most once. The result for text that is not JSON is
/// undefined.
pub fn is_deeper(text: &[u8], most: usize) -> bool {
    let mut levels = Levels::default();
    // In pieces: only the beginning of a very deep text is read.
    text.chunks(4 << 10).any(|piece| {
        levels.read(piece);
        levels.most > most
    })
}

/// Whether the JSON of a document has more than this many levels. The JSON is not stored.
pub fn is_document_deeper<T: Serialize>(document: &T, most: usize) -> Result<bool, serde_json::Error> {
    let mut levels = Levels::default();
    serde_json::to_writer(&mut levels, document)?;
    Ok(levels.most > most)
}

/// Counts the levels of the JSON that is written to it.
#[derive(Debug, Default)]
struct Levels {
    depth: usize,
    most: usize,
    quoted: bool,
    escaped: bool,
}

impl Levels {
    fn read(&mut self, text: &[u8]) {
        for byte in text {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.quoted => self.escaped = true,
                b'"' => self.quoted = !self.quoted,
                _ if self.quoted => {}
                b'[' | b'{' => {
                    self.depth += 1;
                    self.most = self.most.max(self.depth);
                }
                b']' | b'}' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }
}

impl Write for Levels {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.read(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Replaces all values below `most` levels by [`CUT`].
pub fn flatten(value: &mut Value, most: usize) {
    cut(value, most);
}

/// Recursion is safe: parsed values have at most 128 levels.
fn cut(value: &mut Value, left: usize) {
    match value {
        Value::Array(_) | Value::Object(_) if left == 0 => *value = Value::from(CUT),
        Value::Array(items) => items.iter_mut().for_each(|item| cut(item, left - 1)),
        Value::Object(fields) => fields.values_mut().for_each(|field| cut(field, left - 1)),
        _ => {}
    }
}

/// Whether a value has more than [`MAX_DEPTH`] levels.
pub fn is_deep(value: &Value) -> bool {
    fn beyond(value: &Value, left: usize) -> bool {
        match value {
            Value::Array(_) | Value::Object(_) if left == 0 => true,
            Value::Array(items) => items.iter().any(|item| beyond(item, left - 1)),
            Value::Object(fields) => fields.values().any(|field| beyond(field, left - 1)),
            _ => false,
        }
    }
    beyond(value, MAX_DEPTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(levels: usize) -> String {
        format!("{}1{}", "[".repeat(levels), "]".repeat(levels))
    }

    #[test]
    fn depth_is_counted_outside_of_strings() {
        for (text, levels) in [("1", 0), ("[]", 1), (r#"{"a":[{}]}"#, 3), (r#"["[[[\"[[\\"]"#, 1), ("[[],[],[]]", 2)] {
            assert!(!is_deeper(text.as_bytes(), levels), "{text}");
            assert!(levels == 0 || is_deeper(text.as_bytes(), levels - 1), "{text}");
            let document: Value = serde_json::from_str(text).unwrap();
            assert!(!is_document_deeper(&document, levels).unwrap(), "{text}");
            assert!(levels == 0 || is_document_deeper(&document, levels - 1).unwrap(), "{text}");
        }
        assert!(is_deeper("[".repeat(1 << 20).as_bytes(), 127));
    }

    #[test]
    fn what_is_too_deep_is_refused_and_nothing_else() {
        assert!(parse::<Value>(nested(MAX_DEPTH).as_bytes()).is_ok());
        let error = parse::<Value>(nested(MAX_DEPTH + 1).as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), "it is nested more than 64 levels deep");
        assert!(matches!(parse::<Value>(b"[1"), Err(JsonError::Syntax(_))));
    }

    #[test]
    fn a_value_is_cut_where_it_is_too_deep() {
        for levels in [0, 1, MAX_DEPTH, MAX_DEPTH + 1, 126] {
            let mut value: Value = serde_json::from_str(&nested(levels)).unwrap();
            assert_eq!(is_deep(&value), levels > MAX_DEPTH);
            let before = value.clone();
            flatten(&mut value, MAX_DEPTH);
            assert!(!is_deep(&value) && (value == before) == (levels <= MAX_DEPTH), "{levels}");
            assert_eq!(value.to_string().contains(CUT), levels > MAX_DEPTH);
        }
    }
}
