//! The forms in which a text may contain a value: unchanged, in JSON, in hexadecimal and in base64; also with any of the
//! characters escaped in the ways of the [`decoder`]: for a URL, JSON, HTML, CSV or a shell.
//!
//! This prevents values from being stored when programs or models pass them on in the usual ways. It does not stop a program that
//! hides a value on purpose, such as by reversing it or adding letters.

use super::{SecretValue, decoder};
use data_encoding::{Encoding, HEXLOWER, HEXUPPER};

/// Shorter values are not searched for: they would be found in many words, and are not secret.
const LEAST: usize = 4;

/// From this length on, enough characters of base64 depend only on the value to exclude matches by chance.
const LEAST_BASE64: usize = 6;

/// Minimum length of a part between colons that is searched for by itself: in `ID:KEY`, the key is the secret.
const LEAST_PART: usize = 16;

/// Levels of JSON inside of JSON that are searched.
const LEVELS: usize = 4;

/// A text to search for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SecretForm {
    pub text: SecretValue,
    /// Whether to search the decoded text instead of the original one.
    pub is_decoded: bool,
}

/// Returns every form in which a text may contain a value, the value itself first; none if it is too short to search for.
pub(super) fn forms_of(value: &SecretValue) -> Vec<SecretForm> {
    let value = value.expose();
    if value.chars().count() < LEAST {
        return Vec::new();
    }
    let mut texts = in_json(value);
    texts.push(SecretValue::new(HEXUPPER.encode(value.as_bytes())));
    texts.push(SecretValue::new(HEXLOWER.encode(value.as_bytes())));
    if value.len() >= LEAST_BASE64 {
        texts.extend(in_base64(value.as_bytes()));
    }
    let mut forms: Vec<SecretForm> = Vec::with_capacity(2 * texts.len());
    for text in texts {
        let decoded = decoder::decoded_value(text.expose(), LEAST).map(SecretValue::new);
        let decoded = decoded.map(|text| SecretForm { text, is_decoded: true });
        for form in std::iter::once(SecretForm { text, is_decoded: false }).chain(decoded) {
            if !forms.contains(&form) {
                forms.push(form);
            }
        }
    }
    forms
}

/// Returns the forms to search for in bytes that may repeat a value: each of its forms, also encoded for a URL, and those of its
/// long parts.
pub fn spellings(value: &SecretValue) -> Vec<SecretValue> {
    let parts = value.expose().split(':').filter(|part| part.len() >= LEAST_PART && part.len() < value.expose().len());
    let parts: Vec<_> = parts.map(|part| SecretValue::new(part.to_owned())).collect();
    let mut spellings: Vec<SecretValue> = Vec::new();
    for value in std::iter::once(value).chain(&parts) {
        let plain = forms_of(value).into_iter().filter(|form| !form.is_decoded).map(|form| form.text);
        let encoded = [HEXUPPER, HEXLOWER].map(|digits| percent_encoded(value.expose(), &digits));
        for spelling in plain.chain(encoded) {
            if !spellings.contains(&spelling) {
                spellings.push(spelling);
            }
        }
    }
    spellings
}

fn percent_encoded(value: &str, digits: &Encoding) -> SecretValue {
    let encode = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        _ => format!("%{}", digits.encode(&[byte])),
    };
    SecretValue::new(value.bytes().map(encode).collect())
}

/// Returns the value, and its form in JSON inside of JSON, each level with its escapes.
fn in_json(value: &str) -> Vec<SecretValue> {
    let mut forms = Vec::new();
    let mut form = SecretValue::new(value.to_owned());
    for _ in 0..LEVELS {
        let escaped = serde_json::Value::from(form.expose()).to_string();
        // Without the quotes around it.
        let escaped = SecretValue::new(escaped[1..escaped.len() - 1].to_owned());
        let last = escaped == form;
        forms.push(std::mem::replace(&mut form, escaped));
        if last {
            break;
        }
    }
    forms
}

/// Returns the characters that depend only on the value, for each position in the encoded bytes (a multiple of three, plus zero,
/// one or two), in both alphabets.
fn in_base64(value: &[u8]) -> Vec<SecretValue> {
    let alphabets = [b"+/", b"-_"].map(|last| {
        let mut alphabet: Vec<u8> = (b'A'..=b'Z').chain(b'a'..=b'z').chain(b'0'..=b'9').collect();
        alphabet.extend_from_slice(last);
        alphabet
    });
    let mut forms = Vec::new();
    for before in 0..3 {
        let bits = |at: usize| match at / 8 {
            byte if byte < before => 0,
            byte => value.get(byte - before).map_or(0, |value| value >> (7 - at % 8) & 1),
        };
        // Groups of six bits that belong completely to the value.
        let groups = (before * 8).div_ceil(6)..(before + value.len()) * 8 / 6;
        for alphabet in &alphabets {
            let letter = |group: usize| {
                let index = (group * 6..group * 6 + 6).fold(0, |index, at| index << 1 | usize::from(bits(at)));
                char::from(alphabet[index])
            };
            forms.push(SecretValue::new(groups.clone().map(letter).collect()));
        }
    }
    forms
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(value: &str) -> Vec<String> {
        let forms = forms_of(&SecretValue::new(value.to_owned()));
        forms.iter().filter(|form| !form.is_decoded).map(|form| form.text.expose().to_owned()).collect()
    }

    #[test]
    fn a_short_value_has_fewer_forms() {
        assert_eq!(texts("abc"), [""; 0]);
        assert_eq!(texts("abcd"), ["abcd", "61626364"]);
        assert_eq!(texts("jkäl")[1..], ["6A6BC3A46C", "6a6bc3a46c"]);
    }

    /// Compared with the output of `base64` for the value after zero, one and two other bytes.
    #[test]
    fn base64_is_known_wherever_the_value_stands() {
        let forms = texts("hunter22");
        for encoded in ["aHVudGVyMjI=", "eGh1bnRlcjIyeA==", "eHhodW50ZXIyMnh4", "dXNlcjpodW50ZXIyMg=="] {
            assert!(forms.iter().any(|form| encoded.contains(form.as_str())), "{encoded}: {forms:?}");
        }
        let forms = texts("\u{7ff}\u{7ff}??>>>");
        assert!(
            forms.iter().any(|form| form.contains('+')) && forms.iter().any(|form| form.contains('_')),
            "{forms:?}"
        );
    }
}
