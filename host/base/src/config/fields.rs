//! Reads one table whose name a user chose: each key once, with all of its errors at once.

use super::key::{Key, Kind, NamedTable, ValueError, article, group, near, u64_of};
use kiso_plan::sink::{ArgumentRoles, ReadsWord, ToolEffect};
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Maximum characters of a text without another limit, such as the name of a variable.
const MAX_TEXT: usize = 500;

/// Maximum characters of a path: the system's limit in bytes.
const MAX_PATH: usize = 4_096;

/// Maximum entries of a list of given words.
const MAX_LISTED: usize = 8;

/// A table that is being read. Keys are requested by name; [`Self::finish`] reports those that were never requested.
pub(super) struct TableFields<'a> {
    /// Its name in messages, such as `providers.openai`.
    path: String,
    /// Where it begins.
    span: Range<usize>,
    keys: &'static [Key],
    table: &'a DeTable<'a>,
    asked: Vec<&'static str>,
    wrong: Vec<ValueError>,
}

impl<'a> TableFields<'a> {
    /// Reads `value`, which must be a table, as `declared`.
    pub(super) fn new(
        declared: &NamedTable,
        path: String,
        span: Range<usize>,
        value: &'a Spanned<DeValue<'a>>,
    ) -> Result<Self, Vec<ValueError>> {
        let keys = declared.keys;
        match value.get_ref() {
            DeValue::Table(table) => Ok(Self { path, span, keys, table, asked: Vec::new(), wrong: Vec::new() }),
            other => Err(vec![(value.span(), format!("[{path}] must be a table, and this is {}", article(other)))]),
        }
    }

    /// Reports an invalid key. `message` continues after the key: "must be …".
    pub(super) fn wrong(&mut self, span: Range<usize>, key: &str, message: &str) {
        self.wrong.push((span, format!("{}.{key} {message}", self.path)));
    }

    /// Reports a missing key.
    pub(super) fn missing(&mut self, key: &str, message: &str) {
        self.wrong.push((self.span.clone(), format!("[{}] needs {key}: {message}", self.path)));
    }

    /// Whether the table has a key, valid or not.
    pub(super) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    fn kind(&self, key: &str) -> Kind {
        let declared = self.keys.iter().find(|declared| declared.name == key);
        declared.unwrap_or_else(|| panic!("{}.{key} is not declared", self.path)).kind
    }

    fn get(&mut self, key: &'static str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.asked.push(key);
        self.table.get(key)
    }

    /// Reports a key whose type is not the `wanted` one.
    fn wrong_type(&mut self, value: &Spanned<DeValue<'_>>, key: &str, wanted: &str) {
        self.wrong(value.span(), key, &format!("must be {wanted}, and this is {}", article(value.get_ref())));
    }

    /// Returns a text and its place.
    pub(super) fn text(&mut self, key: &'static str) -> Option<(String, Range<usize>)> {
        let most = match self.kind(key) {
            Kind::Characters(most, _) => most,
            Kind::Path => MAX_PATH,
            _ => MAX_TEXT,
        };
        let value = self.get(key)?;
        match value.get_ref() {
            DeValue::String(text) if (1..=most).contains(&text.chars().count()) => {
                return Some((text.to_string(), value.span()));
            }
            DeValue::String(_) => {
                self.wrong(value.span(), key, &format!("must have 1 to {} characters", group(most as u64)));
            }
            _ => self.wrong_type(value, key, "a string"),
        }
        None
    }

    /// Returns a text in the form that `check` gives it, or reports its error. `check` must not repeat the text, which may be a
    /// secret.
    pub(super) fn checked<T>(
        &mut self,
        key: &'static str,
        check: impl FnOnce(&str) -> Result<T, &'static str>,
    ) -> Option<T> {
        let (text, span) = self.text(key)?;
        check(&text).map_err(|why| self.wrong(span, key, why)).ok()
    }

    /// Returns the meaning of one of some words.
    pub(super) fn one_of<T: Copy>(&mut self, key: &'static str, words: &[(&str, T)]) -> Option<T> {
        let value = self.get(key)?;
        let found = match value.get_ref() {
            DeValue::String(text) => words.iter().find(|(word, _)| word == text).map(|(_, meaning)| *meaning),
            _ => None,
        };
        if found.is_none() {
            let words: Vec<_> = words.iter().map(|(word, _)| format!("{word:?}")).collect();
            self.wrong(value.span(), key, &format!("must be {}", words.join(" or ")));
        }
        found
    }

    pub(super) fn bool(&mut self, key: &'static str) -> bool {
        let default = matches!(self.kind(key), Kind::Bool(true));
        let Some(value) = self.get(key) else { return default };
        let DeValue::Boolean(given) = value.get_ref() else {
            self.wrong_type(value, key, "true or false");
            return default;
        };
        *given
    }

    /// Returns an integer, or its default.
    pub(super) fn int(&mut self, key: &'static str) -> u64 {
        let default = if let Kind::Int(default, ..) = self.kind(key) { default } else { 0 };
        self.count(key).unwrap_or(default)
    }

    /// Returns an integer that may be absent.
    pub(super) fn count(&mut self, key: &'static str) -> Option<u64> {
        let (Kind::Int(_, min, max) | Kind::Count(min, max, _)) = self.kind(key) else { return None };
        let value = self.get(key)?;
        let DeValue::Integer(integer) = value.get_ref() else {
            self.wrong_type(value, key, "an integer");
            return None;
        };
        let number = u64_of(integer).filter(|number| (min..=max).contains(number));
        if number.is_none() {
            let range = format!("= {integer} is out of range: {} to {}", group(min), group(max));
            self.wrong(value.span(), key, &range);
        }
        number
    }

    /// Returns US dollars in millionths.
    pub(super) fn dollars(&mut self, key: &'static str) -> Option<u64> {
        let most = if let Kind::Dollars(most, _) = self.kind(key) { most } else { 0 };
        let value = self.get(key)?;
        let number: Option<f64> = match value.get_ref() {
            DeValue::Integer(integer) => u64_of(integer).map(|number| number as f64),
            DeValue::Float(float) => float.as_str().parse().ok(),
            _ => {
                self.wrong_type(value, key, "a number");
                return None;
            }
        };
        match number.filter(|number| (0.0..=f64::from(most)).contains(number)) {
            // Rounded, because 0.15 is not a binary number; no price list is finer than a millionth.
            Some(number) => Some((number * 1e6).round() as u64),
            None => {
                self.wrong(value.span(), key, &format!("is out of range: 0 to {} US dollars", group(most.into())));
                None
            }
        }
    }

    /// Returns texts that are each accepted by `allowed`, or the default.
    pub(super) fn list(&mut self, key: &'static str, rule: &str, allowed: impl Fn(&str) -> bool) -> Vec<String> {
        let (default, most): (&[&str], _) = match self.kind(key) {
            Kind::Listed(default, _) => (default, MAX_LISTED),
            Kind::List(most) => (&[], most),
            Kind::Named(words, _) => (&[], words.len()),
            _ => (&[], 0),
        };
        let mut texts = Vec::new();
        if let Some(value) = self.get(key) {
            let items: &[Spanned<DeValue<'_>>] = match value.get_ref() {
                DeValue::Array(items) => items,
                _ => {
                    self.wrong_type(value, key, "a list of strings");
                    &[]
                }
            };
            if items.len() > most {
                self.wrong(value.span(), key, &format!("has {} entries; the most is {most}", items.len()));
            }
            for item in items {
                match item.get_ref() {
                    DeValue::String(text) if allowed(text) => texts.push(text.to_string()),
                    _ => self.wrong(item.span(), key, rule),
                }
            }
        }
        if texts.is_empty() { default.iter().map(|&text| text.to_owned()).collect() } else { texts }
    }

    /// Returns the effects of tools, by names that are each accepted by `is_tool`.
    pub(super) fn effects(
        &mut self,
        key: &'static str,
        rule: &str,
        is_tool: impl Fn(&str) -> bool,
    ) -> BTreeMap<String, ToolEffect> {
        let most = if let Kind::Effects(most) = self.kind(key) { most } else { 0 };
        let mut effects = BTreeMap::new();
        let Some(value) = self.get(key) else { return effects };
        let DeValue::Table(table) = value.get_ref() else {
            self.wrong_type(value, key, "a table of tools");
            return effects;
        };
        if table.len() > most {
            self.wrong(value.span(), key, &format!("has {} entries; the most is {most}", table.len()));
        }
        for (name, value) in table {
            let tool = name.get_ref().as_ref();
            if !is_tool(tool) {
                self.wrong(name.span(), key, rule);
                continue;
            }
            match effect(value.get_ref()) {
                Ok(effect) => drop(effects.insert(tool.to_owned(), effect)),
                Err(why) => self.wrong(value.span(), &format!("{key}.{tool}"), why),
            }
        }
        effects
    }

    /// Returns TCP ports; the default is none.
    pub(super) fn ports(&mut self, key: &'static str) -> Vec<u16> {
        let most = if let Kind::Ports(most) = self.kind(key) { most } else { 0 };
        let Some(value) = self.get(key) else { return Vec::new() };
        let port = |item: &Spanned<DeValue<'_>>| match item.get_ref() {
            DeValue::Integer(integer) => {
                u64_of(integer).and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0)
            }
            _ => None,
        };
        let ports = match value.get_ref() {
            DeValue::Array(items) if items.len() <= most => items.iter().map(port).collect(),
            _ => None,
        };
        if ports.is_none() {
            self.wrong(value.span(), key, &format!("must be a list of at most {most} ports from 1 to 65535"));
        }
        ports.unwrap_or_default()
    }

    /// Reports a key that is not allowed here, at its place.
    pub(super) fn unfit(&mut self, key: &str, message: &str) {
        if let Some(value) = self.table.get(key) {
            self.wrong(value.span(), key, message);
        }
    }

    /// Returns all errors, including unknown keys. `hint` may add to the error of an unknown key.
    pub(super) fn finish(mut self, hint: fn(&str) -> Option<&'static str>) -> Result<(), Vec<ValueError>> {
        let mut allowed: Vec<String> = self.asked.iter().map(|&key| key.to_owned()).collect();
        allowed.sort();
        for (key, _) in self.table {
            let name = key.get_ref().as_ref();
            if self.asked.contains(&name) {
                continue;
            }
            let near = near(name, &allowed).map(|near| format!(" did you mean {near}?")).unwrap_or_default();
            let hint = hint(name).map_or(near, |hint| format!(" {hint}"));
            let allowed = allowed.join(", ");
            self.wrong.push((key.span(), format!("unknown key {}.{name}:{hint} Allowed here: {allowed}", self.path)));
        }
        if self.wrong.is_empty() { Ok(()) } else { Err(self.wrong) }
    }
}

/// Returns the effect of a tool from its value in the file, or the error.
fn effect(value: &DeValue<'_>) -> Result<ToolEffect, &'static str> {
    const FORM: &str = "must be \"read\", or a table with lists of arguments: address, value, content";
    let table = match value {
        DeValue::String(word) if word == "read" => return Ok(ToolEffect::Reads(ReadsWord::Read)),
        DeValue::Table(table) => table,
        _ => return Err(FORM),
    };
    let mut roles = ArgumentRoles::default();
    for (key, value) in table {
        let names = match key.get_ref().as_ref() {
            "address" => &mut roles.address,
            "value" => &mut roles.value,
            "content" => &mut roles.content,
            _ => return Err(FORM),
        };
        let DeValue::Array(items) = value.get_ref() else { return Err(FORM) };
        for item in items {
            match item.get_ref() {
                DeValue::String(name) if (1..=MAX_ARGUMENT).contains(&name.len()) && names.len() < MAX_ARGUMENTS => {
                    names.push(name.to_string());
                }
                _ => return Err("has a list with more than 64 arguments, or one whose name has not 1 to 128 bytes"),
            }
        }
    }
    Ok(ToolEffect::Changes(roles))
}

/// Maximum arguments of a tool of one kind, and bytes of an argument's name.
const MAX_ARGUMENTS: usize = 64;
const MAX_ARGUMENT: usize = 128;

/// Whether a user may choose this name for a table: 1 to 32 letters, digits, `-` and `_`.
pub fn is_name(name: &str) -> bool {
    (1..=32).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}

/// The rule of [`is_name`], for messages.
pub const NAME_RULE: &str = "1 to 32 letters, digits, - or _";
