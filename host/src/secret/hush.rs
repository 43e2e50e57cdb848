//! Keeping secrets out of the log.
//!
//! Who writes a line of the log rarely knows which values are secret: a wrong URL, the message of a failing endpoint. So
//! every value that becomes a secret of anything in this process is noted here, and the log asks before it writes. What
//! has the form of a credential is hidden as well, known or not.

use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::{PoisonError, RwLock};

use super::stream::Stream;
use super::{SecretValue, forms_of, found};

/// Values that are remembered: those of a busy day. Of more, the one that was noted first is forgotten.
const MAX_KNOWN: usize = 4_096;

/// A value and the forms in which it may stand in a line.
struct Known {
    name: String,
    value: SecretValue,
    forms: Vec<SecretValue>,
}

/// The log is one for the process, and so is this.
static KNOWN: RwLock<VecDeque<Known>> = RwLock::new(VecDeque::new());

/// Notes a value. One that is too short to be told from other words is not.
pub fn add(name: &str, value: &SecretValue) {
    let is_known = |known: &VecDeque<Known>| known.iter().any(|known| known.value == *value);
    if is_known(&KNOWN.read().unwrap_or_else(PoisonError::into_inner)) {
        return;
    }
    let mut forms = forms_of(value);
    if forms.is_empty() {
        return;
    }
    for other in [debugged(value), encoded(value)] {
        if !forms.contains(&other) {
            forms.push(other);
        }
    }
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    if is_known(&known) {
        return;
    }
    if known.len() >= MAX_KNOWN {
        known.pop_front();
    }
    known.push_back(Known { name: name.to_owned(), value: value.clone(), forms });
}

/// The text with `[secret NAME]` in the place of every value that was noted, and of every credential by its form.
pub fn hushed(text: &str) -> String {
    let mut cut = Vec::new();
    let mut clean = {
        let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
        let forms = known.iter().flat_map(|known| known.forms.iter().map(|form| (&known.name, form)));
        let clean = {
            let here: Vec<_> = forms.filter(|(_, form)| text.contains(form.expose())).collect();
            if here.is_empty() {
                text.to_owned()
            } else {
                let mut stream = Stream::new(here.into_iter().map(|(name, form)| (name.clone(), form.clone())));
                let clean = stream.push(text);
                clean + &stream.finish()
            }
        };
        cut.extend(known.iter().filter_map(|known| beginning(&clean, known)));
        clean
    };
    let mut spans = found::by_form(&clean);
    spans.extend(cut);
    spans.extend(bearer(&clean));
    // From the end, so that the places of those before stay right.
    spans.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
    let mut from = usize::MAX;
    for (range, name) in spans {
        if range.end <= from {
            from = range.start;
            clean.replace_range(range, &format!("[secret {name}]"));
        }
    }
    clean
}

/// What stands there of a long value that was cut off: messages show the beginning of a text that is too long for them.
fn beginning(text: &str, known: &Known) -> Option<(std::ops::Range<usize>, String)> {
    const TELLING: usize = 12;
    let value = known.value.expose();
    let at = text.find(value.get(..value.floor_char_boundary(TELLING)).filter(|start| start.len() >= TELLING)?)?;
    let same = text[at..].char_indices().zip(value.chars()).take_while(|((_, a), b)| a == b);
    let length = same.last().map_or(0, |((last, c), _)| last + c.len_utf8());
    Some((at..at + length, known.name.clone()))
}

/// As Rust's `{:?}` shows it, without the quotes.
fn debugged(value: &SecretValue) -> SecretValue {
    let shown = format!("{:?}", value.expose());
    SecretValue::new(shown[1..shown.len() - 1].to_owned())
}

/// As it stands in a URL.
fn encoded(value: &SecretValue) -> SecretValue {
    let mut text = String::new();
    for byte in value.expose().bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => text.push(char::from(byte)),
            other => drop(write!(text, "%{other:02X}")),
        }
    }
    SecretValue::new(text)
}

/// What follows the word "Bearer" in a header, where it is long enough to be a token.
fn bearer(text: &str) -> Option<(std::ops::Range<usize>, String)> {
    const LEAST: usize = 12;
    let at = text.find("Bearer ").or_else(|| text.find("bearer "))? + "Bearer ".len();
    let token = |c: char| c.is_ascii_alphanumeric() || "-._~+/=".contains(c);
    let length = text[at..].find(|c| !token(c)).unwrap_or(text.len() - at);
    (length >= LEAST).then(|| (at..at + length, "bearer".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_hidden_in_each_of_its_forms() {
        let value = SecretValue::new("hu\"sh me/1ü".to_owned());
        add("hush_test", &value);
        for text in [
            "got hu\"sh me/1ü here".to_owned(),
            format!("got {:?} here", value.expose()).replace('"', "").replace('\\', "\\\""),
            format!("got {} here", encoded(&value).expose()),
            format!("got {} here", serde_json::json!({ "a": value.expose() })),
        ] {
            let clean = hushed(&text);
            assert!(clean.contains("[secret hush_test]") && !clean.contains("me"), "{text}: {clean}");
        }
    }

    #[test]
    fn the_beginning_of_a_value_is_hidden_too() {
        add("cut_test", &SecretValue::new("cut-test-0123456789-abcdefghi".to_owned()));
        assert_eq!(hushed("key = \"cut-test-0123456789-ab\" is long"), "key = \"[secret cut_test]\" is long");
        assert_eq!(hushed("cut-test-01 is not telling"), "cut-test-01 is not telling");
    }

    #[test]
    fn credentials_are_known_by_their_form() {
        let token = format!("kiso_{}_{}", "0a1b2c3d4e5f", "0123456789abcdef".repeat(3));
        assert_eq!(hushed(&format!("by {token}.")), "by [secret kiso_token].");
        assert_eq!(hushed("Authorization: Bearer abcdefghijkl1 x"), "Authorization: Bearer [secret bearer] x");
        assert_eq!(hushed("Bearer token"), "Bearer token");
        assert_eq!(hushed("a ghp_a1b2c3d4 b ghp_e5f6g7h8"), "a [secret github_token] b [secret github_token]");
        assert_eq!(hushed("https://me:hunter22@host/"), "https://me:[secret password]@host/");
        assert_eq!(hushed("nothing of that kind"), "nothing of that kind");
    }
}
