//! Redacts secrets in the log.
//!
//! Code that writes to the log rarely knows which values are secret: a wrong URL, the message of a failing endpoint. So every
//! secret value of this process is registered here, and the log uses this before it writes. Credentials that are recognizable by
//! their form are redacted as well, registered or not.

use std::collections::VecDeque;
use std::fmt::Write;
use std::ops::Range;
use std::sync::{PoisonError, RwLock};

use super::form::{SecretForm, forms_of};
use super::{SecretValue, decoder, found};

/// Maximum registered values of sessions: those of a busy day. Beyond that, the oldest one is dropped; a new run registers those
/// of its session again.
const MAX_KNOWN: usize = 4_096;

/// A value and the forms in which a line may contain it.
struct Known {
    name: String,
    value: SecretValue,
    forms: Vec<SecretForm>,
    /// Belongs to the process, not to a session.
    kept: bool,
}

/// The registered values.
#[derive(Default)]
struct KnownValues(VecDeque<Known>);

/// One for the process, like the log.
static KNOWN: RwLock<KnownValues> = RwLock::new(KnownValues(VecDeque::new()));

/// Registers a value of a session, unless it is as short as ordinary words.
pub fn add(name: &str, value: &SecretValue) {
    note(name, value, false);
}

/// Registers a value of the environment, which is never dropped.
pub fn keep(name: &str, value: &SecretValue) {
    note(name, value, true);
}

fn note(name: &str, value: &SecretValue, kept: bool) {
    if !KNOWN.read().unwrap_or_else(PoisonError::into_inner).contains(value) {
        KNOWN.write().unwrap_or_else(PoisonError::into_inner).note(name, value, kept);
    }
}

/// Returns the text with `[secret NAME]` in place of every registered value, and of every credential with a recognizable form.
pub fn redacted(text: &str) -> String {
    KNOWN.read().unwrap_or_else(PoisonError::into_inner).redacted(text)
}

impl KnownValues {
    fn contains(&self, value: &SecretValue) -> bool {
        self.0.iter().any(|known| known.value == *value)
    }

    fn note(&mut self, name: &str, value: &SecretValue, kept: bool) {
        let mut forms = forms_of(value);
        if forms.is_empty() || self.contains(value) {
            return;
        }
        let debugged = SecretForm { text: debugged(value), is_decoded: false };
        if !forms.contains(&debugged) {
            forms.push(debugged);
        }
        if self.0.len() >= MAX_KNOWN {
            // A process normally has no thousands of variables; if it does, they stay.
            if let Some(oldest) = self.0.iter().position(|known| !known.kept) {
                self.0.remove(oldest);
            }
        }
        self.0.push_back(Known { name: name.to_owned(), value: value.clone(), forms, kept });
    }

    fn redacted(&self, text: &str) -> String {
        let mut spans = found::by_form(text);
        spans.extend(bearer(text));
        let decoded = if decoder::has_escapes(text) { decoder::decode(text) } else { Vec::new() };
        let decoded_bytes: Vec<u8> = decoded.iter().map(|decoded| decoded.byte).collect();
        for known in &self.0 {
            for form in known.forms.iter().filter(|form| !form.is_decoded) {
                spans.extend(places(text, form.text.expose()).map(|range| (range, known.name.clone())));
            }
            for form in known.forms.iter().filter(|form| form.is_decoded && !decoded.is_empty()) {
                let form = form.text.expose().as_bytes();
                let found = decoded_bytes.windows(form.len()).enumerate().filter(|(_, window)| *window == form);
                let ends = found.map(|(at, _)| (&decoded[at], &decoded[at + form.len() - 1]));
                let ends = ends.filter(|(first, last)| decoder::may_be_value(first, last));
                spans.extend(ends.map(|(first, last)| (first.start..last.end, known.name.clone())));
            }
            spans.extend(beginning(text, known));
        }
        // If two touch, both are redacted under the name of the longer one: a value may be part of a credential.
        spans.sort_by_key(|(range, _)| range.start);
        let mut merged: Vec<(Range<usize>, String, usize)> = Vec::new();
        for (range, name) in spans {
            match merged.last_mut() {
                Some((last, last_name, longest)) if range.start < last.end => {
                    if range.len() > *longest {
                        (*last_name, *longest) = (name, range.len());
                    }
                    last.end = last.end.max(range.end);
                }
                _ => merged.push((range.clone(), name, range.len())),
            }
        }
        let mut clean = String::with_capacity(text.len());
        let mut copied = 0;
        for (range, name, _) in merged {
            let _ = write!(clean, "{}[secret {name}]", &text[copied..range.start]);
            copied = range.end;
        }
        clean + &text[copied..]
    }
}

/// Returns the places of a value in a text, including overlapping ones.
fn places<'a>(text: &'a str, value: &'a str) -> impl Iterator<Item = Range<usize>> + 'a {
    let mut from = 0;
    std::iter::from_fn(move || {
        let at = from + text[from..].find(value)?;
        from = at + value.chars().next()?.len_utf8();
        Some(at..at + value.len())
    })
}

/// Returns the beginning of a long value at the end of a text: messages show the beginning of long texts.
fn beginning(text: &str, known: &Known) -> Option<(Range<usize>, String)> {
    const TELLING: usize = 12;
    let value = known.value.expose();
    let at = text.find(value.get(..value.floor_char_boundary(TELLING)).filter(|start| start.len() >= TELLING)?)?;
    let same = text[at..].char_indices().zip(value.chars()).take_while(|((_, a), b)| a == b);
    let length = same.last().map_or(0, |((last, c), _)| last + c.len_utf8());
    Some((at..at + length, known.name.clone()))
}

/// Returns the value in the form of Rust's `{:?}`, without the quotes.
fn debugged(value: &SecretValue) -> SecretValue {
    let shown = format!("{:?}", value.expose());
    SecretValue::new(shown[1..shown.len() - 1].to_owned())
}

/// Returns the words after "Bearer" that are long enough to be a token.
fn bearer(text: &str) -> impl Iterator<Item = (Range<usize>, String)> {
    const LEAST: usize = 12;
    let token = |c: char| c.is_ascii_alphanumeric() || "-._~+/=".contains(c);
    let words = text.match_indices("earer ").filter(|(at, _)| text[..*at].ends_with(['B', 'b']));
    words.filter_map(move |(at, word)| {
        let at = at + word.len();
        let length = text[at..].find(|c| !token(c)).unwrap_or(text.len() - at);
        (length >= LEAST).then(|| (at..at + length, "bearer".to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values that no other test of the same process uses.
    fn known(values: &[(&str, &str)]) -> KnownValues {
        let mut known = KnownValues::default();
        for (name, value) in values {
            known.note(name, &SecretValue::new((*value).to_owned()), false);
        }
        known
    }

    #[test]
    fn a_value_is_hidden_in_each_of_its_forms() {
        let value = SecretValue::new("hu\"sh me/1ü".to_owned());
        let known = known(&[("hush_test", value.expose())]);
        for text in [
            "got hu\"sh me/1ü here".to_owned(),
            format!("got {:?} here", value.expose()).replace('"', "").replace('\\', "\\\""),
            "got hu%22sh%20me%2F1%C3%BC here".to_owned(),
            "got %68u%22sh+me%2f1%c3%bc here".to_owned(),
            "got hu%2522sh%2520me/1%25C3%25BC here".to_owned(),
            "got 6875227368206d652f31c3bc here".to_owned(),
            format!("got {} here", serde_json::json!({ "a": value.expose() })),
            r"got hu\u0022sh me\/1\u00FC here".to_owned(),
            "got hu&quot;sh me&#x2F;1&#252; here".to_owned(),
            "got hu\"\"sh me/1ü here".to_owned(),
        ] {
            let clean = known.redacted(&text);
            assert!(clean.contains("[secret hush_test]") && !clean.contains("me"), "{text}: {clean}");
        }
    }

    #[test]
    fn the_beginning_of_a_value_is_hidden_too() {
        let known = known(&[("cut_test", "cut-test-0123456789-abcdefghi")]);
        assert_eq!(known.redacted("key = \"cut-test-0123456789-ab\" is long"), "key = \"[secret cut_test]\" is long");
        assert_eq!(known.redacted("cut-test-01 is not telling"), "cut-test-01 is not telling");
    }

    #[test]
    fn a_value_inside_another_leaves_no_rest() {
        let known =
            known(&[("hush_inner", "inner-5521"), ("hush_outer", "outer-inner-5521-outer"), ("hush_twice", "zqzqzq")]);
        assert_eq!(known.redacted("a outer-inner-5521-outer inner-5521"), "a [secret hush_outer] [secret hush_inner]");
        assert_eq!(known.redacted("xzqzqzqzqy"), "x[secret hush_twice]y");
    }

    #[test]
    fn credentials_are_known_by_their_form() {
        let known = KnownValues::default();
        let token = format!("kiso_{}_{}", "0a1b2c3d4e5f", "0123456789abcdef".repeat(3));
        assert_eq!(known.redacted(&format!("by {token}.")), "by [secret kiso_token].");
        assert_eq!(known.redacted("Authorization: Bearer abcdefghijkl1 x"), "Authorization: Bearer [secret bearer] x");
        assert_eq!(known.redacted("Bearer token"), "Bearer token");
        assert_eq!(known.redacted("a ghp_a1b2c3d4 b ghp_e5f6g7h8"), "a [secret github_token] b [secret github_token]");
        assert_eq!(known.redacted("https://me:Zx81qqWv@lab.example/"), "https://me:[secret password]@lab.example/");
        assert_eq!(known.redacted("nothing of that kind"), "nothing of that kind");
    }
}
