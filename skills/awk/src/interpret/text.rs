//! Functions over texts: `sub`, `gsub`, `gensub`, `match`, `split`, `patsplit`, `substr`, `index`.

use std::borrow::Cow;

use crate::Error;
use crate::code::{ArrayRef, Expr, Lvalue, Special};
use crate::record::{self, Separator};
use crate::regex::Regex;
use crate::value::{Array, Cell, Text, Value, length, offset};

use super::Interpreter;

impl<'p> Interpreter<'p, '_> {
    /// `sub` and `gsub`: the count of replacements.
    pub fn substitute(&mut self, arguments: &'p [Expr], all: bool) -> Result<Value, Error> {
        let regex = self.pattern(&arguments[0])?;
        let replacement = self.value(&arguments[1])?.text(&self.convfmt);
        let place = match arguments.get(2) {
            Some(Expr::Place(place)) => Some(&**place),
            _ => None,
        };
        let text = match place {
            Some(place) => self.read(place)?.text(&self.convfmt),
            None => Text::from(self.record.text(&self.ofs, &self.convfmt)),
        };
        let parts = parts(replacement.bytes(), false);
        let (out, count) = replaced(&regex, text.bytes(), if all { None } else { Some(1) }, &parts);
        if count > 0 {
            match place {
                Some(place) => self.assign(place, Value::Text(out.into_owned().into()))?,
                None => self.record.set(&out),
            }
        }
        Ok(Value::Number(count as f64))
    }

    pub fn gensub(&mut self, arguments: &'p [Expr]) -> Result<Value, Error> {
        let regex = self.pattern(&arguments[0])?;
        let replacement = self.value(&arguments[1])?.text(&self.convfmt);
        let how = self.value(&arguments[2])?;
        let text = match arguments.get(3) {
            Some(text) => self.value(text)?.text(&self.convfmt),
            None => Text::from(self.record.text(&self.ofs, &self.convfmt)),
        };
        let which = match how.text(&self.convfmt).bytes().first() {
            Some(b'g' | b'G') => None,
            _ => Some(how.number().max(1.0) as usize),
        };
        let parts = parts(replacement.bytes(), true);
        Ok(Value::Text(replaced(&regex, text.bytes(), which, &parts).0.into_owned().into()))
    }

    pub fn match_groups(&mut self, arguments: &'p [Expr]) -> Result<Value, Error> {
        let text = self.value(&arguments[0])?.text(&self.convfmt);
        let regex = self.pattern(&arguments[1])?;
        let bytes = text.bytes();
        let found = regex.find(bytes, 0);
        let place = |start: usize, end: usize| (length(&bytes[..start]) + 1, length(&bytes[start..end]));
        let (start, size) = found.map_or((0.0, -1.0), |(start, end)| {
            let (start, size) = place(start, end);
            (start as f64, size as f64)
        });
        self.global_number(Special::Rstart, start);
        self.global_number(Special::Rlength, size);
        if let Some(groups) = arguments.get(2) {
            let array = self.array_argument(groups)?;
            let mut elements = array.borrow_mut();
            elements.clear();
            let groups = found.map(|(start, end)| regex.groups(bytes, start, end)).unwrap_or_default();
            for (number, group) in groups.into_iter().enumerate() {
                let Some((start, end)) = group else { continue };
                let (at, size) = place(start, end);
                let number = number.to_string();
                elements.insert(Text::from(number.as_str()), Value::Input(Text::from(&bytes[start..end])).into());
                for (what, value) in [("start", at), ("length", size)] {
                    let mut key = number.clone().into_bytes();
                    key.extend_from_slice(&self.subsep);
                    key.extend_from_slice(what.as_bytes());
                    elements.insert(key.into(), Value::Number(value as f64).into());
                }
            }
        }
        Ok(Value::Number(start))
    }

    /// An argument that must be an array.
    pub fn array_argument(&mut self, expr: &'p Expr) -> Result<Array, Error> {
        let Expr::Place(place) = expr else { return Err(Error::new("an array is needed as an argument")) };
        match &**place {
            Lvalue::Variable(slot) => self.array_of(*slot),
            Lvalue::Element(array, subscripts) => self.inner_array(array, subscripts),
            Lvalue::Field(_) => Err(Error::new("an array is needed as an argument, not a field")),
        }
    }

    fn inner_array(&mut self, array: &'p ArrayRef, subscripts: &'p [Expr]) -> Result<Array, Error> {
        let outer = self.array(array)?;
        let key = self.key(subscripts)?;
        let inner = outer.borrow_mut().entry(key).or_default().array();
        inner.ok_or_else(|| Error::new("the element is a value and cannot be used as an array"))
    }

    pub fn split(&mut self, arguments: &'p [Expr], by_content: bool) -> Result<Value, Error> {
        let text = self.value(&arguments[0])?.text(&self.convfmt);
        let separator = match arguments.get(2) {
            None if by_content => {
                let pattern = self.special(Special::Fpat)?.text(&self.convfmt);
                Separator::Fields(self.regex(pattern.bytes())?)
            }
            Some(pattern) if by_content => Separator::Fields(self.pattern(pattern)?),
            None => self.fs.clone(),
            Some(Expr::Regex(regex)) if regex.source().is_empty() => Separator::Nothing,
            Some(Expr::Regex(_)) => Separator::Regex(self.pattern(&arguments[2])?),
            Some(separator) => {
                let separator = self.value(separator)?.text(&self.convfmt);
                self.separator(separator.bytes())?
            }
        };
        let array = self.array_argument(&arguments[1])?;
        let between = match arguments.get(3) {
            Some(between) => Some(self.array_argument(between)?),
            None => None,
        };
        let bytes = text.bytes();
        let mut elements = array.borrow_mut();
        elements.clear();
        let mut separators = Vec::new();
        let mut behind = 0;
        let mut count = 0_usize;
        let mut key = Vec::new();
        record::split(bytes, &separator, false, |start, end| {
            if between.is_some() && (count > 0 || start > 0) {
                separators.push((count, behind, start));
            }
            behind = end;
            count += 1;
            key.clear();
            crate::number::integer(count as i64, &mut key);
            let field = match separator {
                Separator::Csv => record::unquoted(&bytes[start..end]).into(),
                _ => Text::from(&bytes[start..end]),
            };
            elements.insert(Text::from(key.as_slice()), Cell::Value(Value::Input(field)));
        });
        drop(elements);
        if let Some(between) = between {
            if behind < bytes.len() {
                separators.push((count, behind, bytes.len()));
            }
            let mut elements = between.borrow_mut();
            elements.clear();
            for (number, start, end) in separators {
                let value = Value::Text(Text::from(&bytes[start..end]));
                elements.insert(Text::from(number.to_string().as_str()), value.into());
            }
        }
        Ok(Value::Number(count as f64))
    }
}

/// A piece of what replaces a match.
enum Part {
    Text(Vec<u8>),
    Group(usize),
}

/// `&` is the match and `\&` an `&`; with `groups`, `\1` is a group.
fn parts(replacement: &[u8], groups: bool) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut text = Vec::new();
    let mut at = 0;
    while at < replacement.len() {
        let rest = &replacement[at..];
        let group = match rest {
            [b'\\', digit @ b'0'..=b'9', ..] if groups => Some((usize::from(digit - b'0'), 2)),
            [b'&', ..] => Some((0, 1)),
            _ => None,
        };
        if let Some((group, length)) = group {
            parts.push(Part::Text(std::mem::take(&mut text)));
            parts.push(Part::Group(group));
            at += length;
            continue;
        }
        let (bytes, length): (&[u8], usize) = match rest {
            [b'\\', b'\\', b'\\', b'&', ..] if !groups => (b"\\&", 4),
            [b'\\', b'\\', b'&', ..] if !groups => (b"\\", 2),
            [b'\\', b'&', ..] => (b"&", 2),
            [b'\\', b'\\', ..] if groups => (b"\\", 2),
            _ => (&rest[..1], 1),
        };
        text.extend_from_slice(bytes);
        at += length;
    }
    parts.push(Part::Text(text));
    parts
}

/// The text with one match, by its number, or all replaced, and how many were.
fn replaced<'t>(regex: &Regex, text: &'t [u8], which: Option<usize>, parts: &[Part]) -> (Cow<'t, [u8]>, usize) {
    let grouped = parts.iter().any(|part| matches!(part, Part::Group(1..)));
    let mut out = Vec::new();
    let (mut at, mut copied, mut seen, mut count) = (0, 0, 0, 0);
    let mut behind = None;
    while at <= text.len() {
        let Some((start, end)) = regex.find(text, at) else { break };
        // An empty match right behind another match does not count.
        if start == end && behind == Some(start) {
            at = step(text, end);
            continue;
        }
        seen += 1;
        behind = Some(end);
        if which.is_none_or(|which| which == seen) {
            count += 1;
            out.extend_from_slice(&text[copied..start]);
            let groups = if grouped { regex.groups(text, start, end) } else { Vec::new() };
            for part in parts {
                match part {
                    Part::Text(text) => out.extend_from_slice(text),
                    Part::Group(0) => out.extend_from_slice(&text[start..end]),
                    Part::Group(group) => {
                        let (start, end) = groups.get(*group).copied().flatten().unwrap_or_default();
                        out.extend_from_slice(&text[start..end]);
                    }
                }
            }
            copied = end;
            if which.is_some() {
                break;
            }
        }
        at = if end > start { end } else { step(text, end) };
    }
    if count == 0 {
        return (Cow::Borrowed(text), 0);
    }
    out.extend_from_slice(&text[copied..]);
    (Cow::Owned(out), count)
}

/// Behind the character that begins here.
fn step(text: &[u8], at: usize) -> usize {
    at + crate::value::characters(&text[at..]).next().map_or(1, <[u8]>::len)
}

/// `substr`. A start before the text is the text's, whatever the length, as in gawk and the original awk.
pub fn substr(text: &[u8], start: f64, size: Option<f64>) -> &[u8] {
    let begin = offset(text, start.trunc().max(1.0) as usize - 1);
    let rest = &text[begin..];
    match size {
        Some(size) if size.is_nan() => &[],
        Some(size) => &rest[..offset(rest, size.max(0.0) as usize)],
        None => rest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, text: &str, which: Option<usize>, replacement: &str, groups: bool, expected: &str) {
        let regex = Regex::new(pattern.as_bytes(), false).unwrap();
        let out = replaced(&regex, text.as_bytes(), which, &parts(replacement.as_bytes(), groups)).0;
        assert_eq!(String::from_utf8_lossy(&out), expected);
    }

    #[test]
    fn replacing() {
        check("x*", "abc", None, "-", false, "-a-b-c-");
        check("b*", "abc", None, "-", false, "-a-c-");
        check("a", "aaa", Some(1), "<&>", false, "<a>aa");
        check("a", "a", None, "\\&", false, "&");
        check("a", "a", None, "\\\\&", false, "\\a");
        check("(a)(b)", "xab ab", Some(2), "\\2\\1", true, "xab ba");
        check("^a", "aaa", None, "b", false, "baa");
        check("", "äb", None, ".", false, ".ä.b.");
        check("a", "a", None, "c\\d", false, "c\\d");
    }

    #[test]
    fn substrings() {
        for (start, size, expected) in [
            (0.0, Some(2.0), "he"),
            (2.0, None, "ello"),
            (-1.0, Some(3.0), "hel"),
            (1.5, Some(2.0), "he"),
            (4.0, Some(99.0), "lo"),
            (9.0, None, ""),
            (1.0, Some(-1.0), ""),
            (f64::NAN, None, "hello"),
            (2.0, Some(1e300), "ello"),
            (-1e300, None, "hello"),
        ] {
            assert_eq!(String::from_utf8_lossy(substr(b"hello", start, size)), expected, "{start} {size:?}");
        }
        assert_eq!(substr("aäb".as_bytes(), 2.0, Some(1.0)), "ä".as_bytes());
    }
}
