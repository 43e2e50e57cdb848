//! Finds which of many forms a text contains, in one pass: a session may have a hundred secrets, each with a dozen forms, and a
//! text may have a megabyte. A search for each form would block a thread of the runtime for seconds.

use std::fmt;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use super::decoder;
use super::form::SecretForm;

/// The forms with the names of their secrets, and their search automatons.
pub(super) struct Finder {
    forms: Vec<(String, SecretForm)>,
    /// For the original text.
    plain: Search,
    /// For the decoded text.
    decoded: Search,
}

/// Bytes of a form in the automaton; the rest is compared afterwards. Whole values of several kilobytes each would make the
/// automaton very large.
const BEGINNING: usize = 16;

/// An automaton for the beginnings of forms, and the index of the form of each pattern.
struct Search {
    automaton: AhoCorasick,
    forms: Vec<usize>,
}

/// Written by hand, because the patterns are secret.
impl fmt::Debug for Finder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Finder").field("forms", &self.forms.len()).finish()
    }
}

impl Finder {
    #[expect(clippy::expect_used, reason = "some thousand short patterns fit")]
    pub(super) fn new(forms: Vec<(String, SecretForm)>) -> Finder {
        let search = |is_decoded| {
            let wanted: Vec<usize> = (0..forms.len()).filter(|at| forms[*at].1.is_decoded == is_decoded).collect();
            let beginnings = wanted.iter().map(|at| {
                let form = forms[*at].1.text.expose().as_bytes();
                &form[..form.len().min(BEGINNING)]
            });
            // A DFA would search a little faster, but take minutes and gigabytes to build for a few thousand patterns.
            let automaton = AhoCorasick::builder().kind(Some(AhoCorasickKind::ContiguousNFA)).build(beginnings);
            let automaton = automaton.expect("some thousand short patterns fit");
            Search { automaton, forms: wanted }
        };
        let (plain, decoded) = (search(false), search(true));
        Finder { forms, plain, decoded }
    }

    /// Whether there is nothing to search for.
    pub(super) fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    pub(super) fn forms(&self) -> &[(String, SecretForm)] {
        &self.forms
    }

    /// Returns the forms that the text contains, in the order of the list. Some matches may not be values.
    pub(super) fn standing(&self, text: &str) -> Vec<(String, SecretForm)> {
        let mut stands = vec![false; self.forms.len()];
        self.plain.mark(&self.forms, text, &mut stands);
        if decoder::has_escapes(text) {
            let decoded = decoder::decoded_text(text);
            self.decoded.mark(&self.forms, &String::from_utf8_lossy(&decoded), &mut stands);
        }
        let standing = self.forms.iter().zip(stands).filter(|(_, stands)| *stands);
        standing.map(|(form, _)| form.clone()).collect()
    }
}

impl Search {
    /// Searches for a whole form once after its beginning was found, so that a text of many beginnings costs at most one search
    /// for each form.
    fn mark(&self, forms: &[(String, SecretForm)], text: &str, stands: &mut [bool]) {
        let mut left = self.forms.len();
        if left == 0 {
            return;
        }
        let mut begins = vec![false; forms.len()];
        for found in self.automaton.find_overlapping_iter(text) {
            let at = self.forms[found.pattern().as_usize()];
            if std::mem::replace(&mut begins[at], true) {
                continue;
            }
            stands[at] = text[found.start()..].contains(forms[at].1.text.expose());
            left -= 1;
            if left == 0 {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{SecretValue, Secrets};
    use std::time::{Duration, Instant};

    fn secrets(count: usize) -> Secrets {
        let mut secrets = Secrets::default();
        for n in 0..count {
            secrets.add_session(format!("key_{n}"), SecretValue::new(format!("{n}-correct-horse-{n}-battery-{n}")));
        }
        secrets
    }

    #[test]
    fn every_form_is_found_among_many_also_where_one_stands_in_another() {
        let secrets = secrets(100);
        let text =
            "a 7-correct-horse-7-battery-7, b 77-correct-horse-77-battery-77%21 and 312d636f72726563742d686f727365";
        let clean = secrets.redact(text);
        assert_eq!(clean, "a [secret key_7], b [secret key_77]%21 and 312d636f72726563742d686f727365");
        assert_eq!(secrets.redact("99%2Dcorrect%2Dhorse%2D99%2Dbattery%2D99"), "[secret key_99]");
        assert!(!format!("{secrets:?}").contains("horse"));
    }

    #[test]
    fn a_hundred_secrets_are_looked_for_faster_than_one_by_one() {
        let text = "The quick brown fox jumps over the 12 lazy dogs of the harbour-master.\n".repeat(4_000);
        let secrets = secrets(100);
        let least = |search: &dyn Fn() -> bool| {
            let took = |_| {
                let began = Instant::now();
                assert!(!search());
                began.elapsed()
            };
            (0..5).map(took).min().unwrap_or(Duration::ZERO)
        };
        let one_by_one = least(&|| secrets.finder().forms().iter().any(|(_, form)| text.contains(form.text.expose())));
        let together = least(&|| secrets.redact(&text) != text);
        assert!(together * 2 < one_by_one, "together {together:?}, one by one {one_by_one:?}");
    }
}
