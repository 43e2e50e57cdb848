//! Redacts secrets in a text that arrives in pieces.
//!
//! Each known value is searched for with the automaton of Knuth, Morris and Pratt, whose state is the length of the value's
//! beginning at the end of the text so far. Text that may still become a value is held back; everything before it is final. Some
//! values are searched for in the decoded text, in which each byte has its original position.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::fmt;

use super::decoder::{DecodedByte, Decoder, may_be_value};
use super::form::SecretForm;

/// Redacts a text piece by piece. However it is split, the joined result is that of [`super::Secrets::redact`] for the whole
/// text.
pub struct RedactionStream {
    values: Vec<Value>,
    decoder: Decoder,
    /// The last bytes of the decoded text, as many as the longest value has.
    decoded: VecDeque<DecodedByte>,
    longest: usize,
    /// Text that is not final; it may contain the beginning of a secret.
    held: String,
    /// The position of `held` in the whole text, in bytes.
    start: usize,
    /// The end of the last found value: text before it is hidden.
    hidden_to: usize,
    /// Found values that are at least partly in `held`: position, length, index.
    found: Vec<(usize, usize, usize)>,
}

/// A form of a value, and how much of it the text ends with.
struct Value {
    name: String,
    form: SecretForm,
    /// For each length of a matching beginning, the next shorter one that also matches.
    shorter: Vec<usize>,
    state: usize,
}

impl fmt::Debug for RedactionStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedactionStream").field("values", &self.values.len()).field("held", &self.held.len()).finish()
    }
}

impl RedactionStream {
    /// `forms` contains names and texts to search for; of equal texts, the first one gives the name. None is empty.
    pub(super) fn new(forms: impl IntoIterator<Item = (String, SecretForm)>) -> RedactionStream {
        let values: Vec<Value> = forms.into_iter().map(|(name, form)| Value::new(name, form)).collect();
        let decoded = values.iter().filter(|value| value.form.is_decoded);
        let longest = decoded.map(|value| value.form.text.expose().len()).max().unwrap_or(0);
        RedactionStream {
            values,
            decoder: Decoder::default(),
            decoded: VecDeque::new(),
            longest,
            held: String::new(),
            start: 0,
            hidden_to: 0,
            found: Vec::new(),
        }
    }

    /// Takes the next piece of the text. Returns the text that is now final, possibly none.
    pub fn push(&mut self, piece: &str) -> String {
        let begin = self.start + self.held.len();
        for (which, value) in self.values.iter_mut().enumerate().filter(|(_, value)| !value.form.is_decoded) {
            for (at, byte) in piece.bytes().enumerate() {
                if value.advance(byte) {
                    let length = value.form.text.expose().len();
                    self.found.push((begin + at + 1 - length, length, which));
                }
            }
        }
        if self.longest > 0 {
            self.decode(piece, begin);
        }
        self.held.push_str(piece);
        let end = self.start + self.held.len();
        let unsettled = self.values.iter().map(|value| match value.form.is_decoded {
            false => end - value.state,
            true if value.state == 0 => end,
            true => self.decoded[self.decoded.len() - value.state].start,
        });
        let settled = unsettled.chain(self.decoder.unsettled()).min().unwrap_or(end);
        self.settle(settled)
    }

    /// Searches the piece in its decoded form.
    fn decode(&mut self, piece: &str, begin: usize) {
        let mut decoded = Vec::new();
        for (at, byte) in piece.bytes().enumerate() {
            self.decoder.push(byte, begin + at, &mut decoded);
        }
        self.follow(&decoded);
    }

    fn follow(&mut self, decoded: &[DecodedByte]) {
        for last in decoded {
            if self.decoded.len() == self.longest {
                self.decoded.pop_front();
            }
            self.decoded.push_back(*last);
            for (which, value) in self.values.iter_mut().enumerate().filter(|(_, value)| value.form.is_decoded) {
                if value.advance(last.byte) {
                    let first = self.decoded[self.decoded.len() - value.form.text.expose().len()];
                    if may_be_value(&first, last) {
                        self.found.push((first.start, last.end - first.start, which));
                    }
                }
            }
        }
    }

    /// Ends the text and returns the rest.
    pub fn finish(mut self) -> String {
        let mut decoded = Vec::new();
        self.decoder.finish(&mut decoded);
        self.follow(&decoded);
        self.settle(self.start + self.held.len())
    }

    /// Returns the text before `end`, which is final: no value can begin there any more.
    fn settle(&mut self, end: usize) -> String {
        // If two begin at the same place, the longer one hides more.
        self.found.sort_by_key(|(at, length, which)| (*at, Reverse(*length), *which));
        let mut clean = String::new();
        let mut copied = self.start.max(self.hidden_to);
        let mut later = Vec::new();
        for (at, length, which) in self.found.drain(..) {
            if at >= end {
                later.push((at, length, which));
                continue;
            }
            // The rest of a value that begins inside another one is hidden, too.
            if at >= self.hidden_to {
                clean.push_str(&self.held[copied - self.start..at - self.start]);
                clean.push_str("[secret ");
                clean.push_str(&self.values[which].name);
                clean.push(']');
            }
            self.hidden_to = self.hidden_to.max(at + length);
            copied = self.hidden_to;
        }
        self.found = later;
        if copied < end {
            clean.push_str(&self.held[copied - self.start..end - self.start]);
        }
        self.held.drain(..end - self.start);
        self.start = end;
        clean
    }
}

impl Value {
    fn new(name: String, form: SecretForm) -> Value {
        let bytes = form.text.expose().as_bytes();
        let mut shorter = vec![0; bytes.len() + 1];
        let mut state = 0;
        for at in 1..bytes.len() {
            while state > 0 && bytes[at] != bytes[state] {
                state = shorter[state];
            }
            state += usize::from(bytes[at] == bytes[state]);
            shorter[at + 1] = state;
        }
        Value { name, form, shorter, state: 0 }
    }

    /// Takes a byte. Returns whether the text now ends with the whole value.
    fn advance(&mut self, byte: u8) -> bool {
        let bytes = self.form.text.expose().as_bytes();
        while self.state > 0 && bytes[self.state] != byte {
            self.state = self.shorter[self.state];
        }
        self.state += usize::from(bytes[self.state] == byte);
        let whole = self.state == bytes.len();
        if whole {
            self.state = self.shorter[self.state];
        }
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::super::{SecretValue, Secrets};
    use proptest::prelude::*;

    fn secrets(values: &[(&str, &str)]) -> Secrets {
        let mut secrets = Secrets::default();
        for (name, value) in values {
            secrets.add_session((*name).to_owned(), SecretValue::new((*value).to_owned()));
        }
        secrets
    }

    fn pieces(secrets: &Secrets, pieces: &[&str]) -> Vec<String> {
        let mut stream = secrets.streaming();
        let mut out: Vec<String> = pieces.iter().map(|piece| stream.push(piece)).collect();
        out.push(stream.finish());
        out
    }

    fn split<'a>(text: &'a str, cuts: &[prop::sample::Index]) -> Vec<&'a str> {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cuts.retain(|cut| text.is_char_boundary(*cut));
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        cuts.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect()
    }

    #[test]
    fn only_what_may_become_a_secret_is_held_back() {
        let secrets = secrets(&[("pw", "hunter22"), ("longer", "hunter22-more")]);
        assert_eq!(pieces(&secrets, &["hello ", "there"]), ["hello ", "there", ""]);
        assert_eq!(pieces(&secrets, &["the hunt", "er is", " out"]), ["the ", "hunter is", " out", ""]);
        assert_eq!(pieces(&secrets, &["it is hunter22", " yes"]), ["it is ", "[secret pw] yes", ""]);
        assert_eq!(pieces(&secrets, &["hunter22", "-mo"]), ["", "", "[secret pw]-mo"]);
        assert_eq!(pieces(&secrets, &["hunter22", "-more"]), ["", "[secret longer]", ""]);
        assert!(!format!("{:?}", secrets.streaming()).contains("hunter"));
    }

    #[test]
    fn a_value_of_one_letter_costs_no_more_than_any_other() {
        let secrets = secrets(&[("a", &"a".repeat(10_000))]);
        let text = "a".repeat(200_000);
        assert_eq!(secrets.redact(&text), "[secret a]");
    }

    proptest! {
        #[test]
        fn any_split_gives_what_the_whole_gives(
            values in prop::collection::vec("[abé\"\\\\]{4,8}", 1..4),
            words in prop::collection::vec(("[abé\"\\\\ ]{0,6}", 0_usize..8, any::<bool>()), 0..8),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let named: Vec<(String, String)> =
                values.iter().enumerate().map(|(n, value)| (format!("n{n}"), value.clone())).collect();
            let named: Vec<(&str, &str)> = named.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            let secrets = secrets(&named);
            let mut text = String::new();
            for (word, which, json) in words {
                text.push_str(&word);
                if let Some(value) = values.get(which) {
                    text.push_str(&if json { serde_json::Value::from(value.as_str()).to_string() } else { value.clone() });
                }
            }
            let whole = secrets.redact(&text);
            prop_assert_eq!(pieces(&secrets, &split(&text, &cuts)).concat(), whole.clone());
            // The names and the brackets share no letters with the values, except for "e" and "s".
            for value in &values {
                prop_assert!(!whole.contains(value.as_str()), "{}", whole);
            }
        }

        #[test]
        fn any_split_of_escapes_gives_what_the_whole_gives(
            values in prop::collection::vec("[abnu0;é\"'\\\\/&%+\n]{4,8}", 1..4),
            text in prop::collection::vec(
                prop_oneof![
                    prop::sample::select(vec![
                        "\\", "\\\\", "\"", "'", "/", "&", "&amp;", "&#39;", "&#", "\\u0026", "\\u00", "\\ud83d", "\\udd11",
                        "%5c", "%", "+", ";", "n", "\n", "a", "b", "é", "u0061", "'\\''",
                    ]).prop_map(Err),
                    (0_usize..4).prop_map(Ok),
                ],
                0..24,
            ),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let names = ["n0", "n1", "n2"];
            let named: Vec<_> = names.into_iter().zip(values.iter().map(String::as_str)).collect();
            let secrets = secrets(&named);
            let text: String = text.iter().map(|part| match part {
                Ok(which) => values.get(*which).map_or("", String::as_str),
                Err(piece) => *piece,
            }).collect();
            let whole = secrets.redact(&text);
            prop_assert_eq!(pieces(&secrets, &split(&text, &cuts)).concat(), whole.clone());
            for value in &values {
                prop_assert!(!whole.contains(value.as_str()), "{}", whole);
            }
        }
    }
}
