//! Finds credentials in a user's message, before any of it is stored or shown to a model.
//!
//! Two kinds are found: values with a recognizable form (`ghp_…`, a private key, the password in a URL), and values after a label
//! ("password: …", "пароль — …", "パスワードは…です"). A label alone is not a secret, and neither is a description: the "password reset
//! page" stays. In doubt, the text stays unchanged; the planner may still list a secret that was not found here.

mod format;
mod label;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::{SecretValue, Secrets};

/// Maximum credentials of a text that are stored, which is a session's maximum. Each is searched for in the whole text, so
/// thousands would take hours.
const MAX_FOUND: usize = 100;

/// Replaces further ones: they are removed, and cannot be used.
const NAMELESS: &str = "[secret]";

/// A credential in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// Such as `github_token`; a second password is `password_2`.
    pub name: String,
    /// The place of the value, in bytes.
    pub range: Range<usize>,
}

/// Returns the credentials in a text, in order, with names that describe them. Equal values have the same name, and different
/// values have different names.
pub fn find(text: &str) -> Vec<Credential> {
    let mut spans: Vec<(Range<usize>, String)> = format::spans(text);
    spans.extend(label::spans(text));
    // A name by form is more precise than one by label, and comes before it in the list.
    spans.sort_by_key(|(range, _)| range.start);
    let mut merged: Vec<(Range<usize>, String)> = Vec::new();
    for (range, name) in spans {
        match merged.last_mut() {
            Some((last, last_name)) if range.start < last.end => {
                if range.len() > last.len() && format::NAMES.contains(&name.as_str()) {
                    *last_name = name;
                }
                last.end = last.end.max(range.end);
            }
            _ => merged.push((range, name)),
        }
    }
    let mut names: BTreeMap<&str, String> = BTreeMap::new();
    let mut uses: BTreeMap<String, u32> = BTreeMap::new();
    let mut found = Vec::new();
    for (range, name) in merged {
        let value = &text[range.clone()];
        let name = names.entry(value).or_insert_with(|| {
            let count = uses.entry(name.clone()).or_default();
            *count += 1;
            if *count == 1 { name } else { format!("{name}_{count}") }
        });
        found.push(Credential { name: name.clone(), range });
    }
    found
}

/// Returns the credentials that are recognized by their form, in order and without overlap. Credentials that only a label
/// reveals are not included.
pub(super) fn by_form(text: &str) -> Vec<(Range<usize>, String)> {
    let mut spans = format::spans(text);
    spans.sort_by_key(|(range, _)| range.start);
    let mut end = 0;
    spans.retain(|(range, _)| {
        let apart = range.start >= end;
        end = end.max(range.end);
        apart
    });
    spans
}

/// Returns the text with `[secret NAME]` in place of each credential, and the credentials by name. The names are different from
/// those in `known`, except for equal values.
pub fn extract(text: &str, known: &Secrets) -> (String, Vec<(String, SecretValue)>) {
    let mut values: Vec<(String, SecretValue)> = Vec::new();
    let (mut all, mut new) = (known.clone(), Secrets::default());
    let mut seen = BTreeSet::new();
    let (mut rest, mut copied) = (String::new(), 0);
    for Credential { name, range } in find(text) {
        if seen.len() >= MAX_FOUND && !seen.contains(&name) {
            rest.push_str(&text[copied..range.start]);
            rest.push_str(NAMELESS);
            copied = range.end;
            continue;
        }
        if seen.insert(name.clone()) {
            let value = SecretValue::new(text[range].to_owned());
            let name = all.name_for(&name, &value);
            all.add_session(name.clone(), value.clone());
            new.add_session(name.clone(), value.clone());
            values.push((name, value));
        }
    }
    rest.push_str(&text[copied..]);
    // Not only at the found places: a value may be repeated without a label.
    if values.is_empty() { (rest, values) } else { (new.redact(&rest), values) }
}

#[cfg(test)]
mod tests;
