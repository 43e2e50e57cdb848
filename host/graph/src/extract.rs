//! Finds the JSON in a model's answer, and hides it from the user.
//!
//! A planner may write text first; its plan is between `<FINAL_PRD>` and `</FINAL_PRD>`. Small models forget the tags, put the
//! plan in a code fence, or are cut off before the closing tag; all of these are accepted.

use serde_json::{Deserializer, Map, Value};

use kiso_base::json::{self, JsonError};
use kiso_plan::plan::Violation;

mod say;

pub use say::SayField;

const OPEN: &str = "<final_prd>";
const CLOSE: &str = "</final_prd>";
const FENCE: &str = "```json";

/// Longer answers are refused: a plan of fifty tasks is a tenth of this.
pub(super) const MAX_ANSWER: usize = 256 * 1024;

/// Maximum parse attempts: the object may begin at any `{`, and a text full of them must not cost a parse for each.
const MAX_TRIES: usize = 64;

/// Returns the main object of an answer: that of the last wrapper that contains one, otherwise the first object in the text with
/// the field `key`. The error says where the JSON is invalid.
pub(super) fn object(text: &str, key: &str) -> Result<Map<String, Value>, Violation> {
    if text.len() > MAX_ANSWER {
        let message = format!("the answer has {} bytes, at most {MAX_ANSWER} are read", text.len());
        return Err(Violation::new("", message));
    }
    let lower = text.to_ascii_lowercase();
    let mut error = None;
    for (at, _) in lower.rmatch_indices(OPEN).take(8) {
        let start = at + OPEN.len();
        let end = lower[start..].find(CLOSE).map_or(text.len(), |length| start + length);
        match find_object(&text[start..end], key) {
            Ok(map) => return Ok(map),
            Err(violation) => error = Some(violation),
        }
    }
    match error {
        Some(error) => Err(error),
        None => find_object(text, key),
    }
}

fn find_object(text: &str, key: &str) -> Result<Map<String, Value>, Violation> {
    // The error is that of the first object: a later one may be a part of it that happens to be valid.
    let mut first = None;
    let mut from = 0;
    for _ in 0..MAX_TRIES {
        let Some(at) = text[from..].find('{').map(|offset| from + offset) else {
            break;
        };
        let mut values = Deserializer::from_str(&text[at..]).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) if json::is_deep(&value) => {
                from = at + values.byte_offset().max(1);
                first.get_or_insert(Err(Violation::new("", JsonError::Depth.to_string())));
            }
            Some(Ok(Value::Object(map))) if map.contains_key(key) => return Ok(map),
            Some(Ok(Value::Object(map))) => {
                from = at + values.byte_offset().max(1);
                first.get_or_insert(Ok(map));
            }
            Some(Err(error)) => {
                from = at + 1;
                first.get_or_insert(Err(Violation::new("", format!("this is not valid JSON: {error}"))));
            }
            _ => from = at + 1,
        }
    }
    first.unwrap_or_else(|| Err(Violation::new("", "there is no JSON object in the answer")))
}

/// Maximum hidden parts of an answer: a planner writes one plan, so the rest of an answer with more parts is ignored.
const MAX_HIDDEN: usize = 16;

/// Extracts a planner's text besides its plan while the answer arrives.
#[derive(Debug)]
pub struct Chatter {
    /// Text that may be the beginning of a tag or a fence.
    held: String,
    /// Whether `held` begins at the start of a line.
    line_start: bool,
    hidden: Hidden,
    /// How many parts were hidden so far.
    times: usize,
    /// Reads the `say` field of a plan without tags at the very beginning.
    say: Option<SayField>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Hidden {
    No,
    Until(&'static str),
    /// A plan without tags has no end mark, so nothing after its first brace is shown.
    Rest,
}

impl Default for Chatter {
    fn default() -> Self {
        Self { held: String::new(), line_start: true, hidden: Hidden::No, times: 0, say: Some(SayField::default()) }
    }
}

impl Chatter {
    /// Returns all text besides the plan in a complete answer.
    pub fn extract(text: &str) -> String {
        let mut chatter = Self::default();
        let mut talk = chatter.push(&text[..text.floor_char_boundary(MAX_ANSWER)]);
        talk.push_str(&chatter.finish());
        talk.trim().trim_end_matches("```").trim_end().to_owned()
    }

    /// Takes the next piece of the answer and returns the text that can be shown now.
    pub fn push(&mut self, piece: &str) -> String {
        self.held.push_str(piece);
        let mut talk = String::new();
        loop {
            match self.hidden {
                Hidden::Rest => {
                    if let Some(say) = &mut self.say {
                        talk.push_str(&say.push(&self.held));
                    }
                    self.held.clear();
                    return talk;
                }
                Hidden::Until(end) => {
                    let Some(at) = self.held.to_ascii_lowercase().find(end) else {
                        let keep = self.held.floor_char_boundary(self.held.len().saturating_sub(end.len()));
                        self.held.drain(..keep);
                        return talk;
                    };
                    self.held.drain(..at + end.len());
                    self.hidden = Hidden::No;
                    self.line_start = false;
                }
                Hidden::No => {
                    let (shown, skipped, hidden) = self.opening();
                    talk.push_str(&self.held[..shown]);
                    if !talk.trim().is_empty() || !matches!(hidden, Hidden::No | Hidden::Rest) {
                        self.say = None;
                    }
                    if shown > 0 {
                        self.line_start = self.held[..shown].ends_with('\n');
                    }
                    self.held.drain(..shown + skipped);
                    self.hidden = hidden;
                    if hidden == Hidden::No {
                        return talk;
                    }
                    self.times += 1;
                    if self.times > MAX_HIDDEN {
                        self.hidden = Hidden::Rest;
                    }
                }
            }
        }
    }

    /// Returns the rest after the end of the answer.
    pub fn finish(self) -> String {
        if self.hidden == Hidden::No { self.held } else { String::new() }
    }

    /// Returns how many bytes of `held` are text, how many the mark after them has, and what that mark begins.
    fn opening(&self) -> (usize, usize, Hidden) {
        let lower = self.held.to_ascii_lowercase();
        let mut start = 0;
        for line in lower.split_inclusive('\n') {
            let last = !line.ends_with('\n');
            if start > 0 || self.line_start {
                let text = line.trim_start();
                if text.starts_with('{') {
                    return (start, 0, Hidden::Rest);
                }
                if text.starts_with(FENCE) {
                    return (start, line.len() - text.len() + FENCE.len(), Hidden::Until("```"));
                }
                if last && FENCE.starts_with(text) {
                    return (start, 0, Hidden::No);
                }
            }
            if let Some(at) = line.find(OPEN) {
                return (start + at, OPEN.len(), Hidden::Until(CLOSE));
            }
            if last && let Some(at) = line.rfind('<').filter(|&at| OPEN.starts_with(&line[at..])) {
                return (start + at, 0, Hidden::No);
            }
            start += line.len();
        }
        (start, 0, Hidden::No)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn goal(text: &str) -> Result<String, String> {
        let map = object(text, "tasks").map_err(|violation| violation.message)?;
        Ok(map["goal"].as_str().unwrap_or_default().to_owned())
    }

    const PLAN: &str = r#"{"goal": "g", "tasks": []}"#;

    #[test]
    fn finds_the_plan_wherever_it_stands() {
        for text in [
            PLAN.to_owned(),
            format!("Sure!\n<FINAL_PRD>{PLAN}</FINAL_PRD>\nDone."),
            format!("<FINAL_PRD>\n```json\n{PLAN}\n```\n</FINAL_PRD>"),
            format!("<FINAL_PRD>{PLAN}"),
            format!("<final_prd>{PLAN}</final_prd>"),
            format!("Here:\n```json\n{PLAN}\n```\nok {{braces}}"),
            format!("{{not json}} then {PLAN} and more"),
            format!(r#"{{"note": 1}} {PLAN}"#),
            format!("I will write <FINAL_PRD>soon</FINAL_PRD>: <FINAL_PRD>{PLAN}</FINAL_PRD>"),
            format!("<FINAL_PRD>{PLAN}</FINAL_PRD> That was the <FINAL_PRD> block."),
        ] {
            assert_eq!(goal(&text).as_deref(), Ok("g"), "{text}");
        }
    }

    #[test]
    fn says_why_there_is_none() {
        assert_eq!(goal("no"), Err("there is no JSON object in the answer".to_owned()));
        let cut = goal(r#"<FINAL_PRD>{"goal": "g", "tasks": [{"type": "msg"}"#).unwrap_err();
        assert!(cut.contains("EOF") && cut.contains("line 1"), "{cut}");
        assert!(goal(&"x".repeat(MAX_ANSWER + 1)).unwrap_err().contains("bytes"));
        assert!(goal(&"{".repeat(MAX_ANSWER)).is_err());
    }

    #[test]
    fn an_object_without_the_field_is_left_to_the_check_of_its_fields() {
        assert!(object(r#"{"goal": "g"}"#, "tasks").is_ok());
    }

    /// The extracted text does not depend on how the stream is split.
    #[test]
    fn chatter_never_shows_the_plan() {
        for (text, talk) in [
            (format!("Let me see.\n<FINAL_PRD>{PLAN}</FINAL_PRD> Bye."), "Let me see.\n Bye."),
            (format!("Hi <FINAL_PRD>{PLAN}"), "Hi"),
            (format!("Hi\n  {PLAN}"), "Hi"),
            (format!("Hi\n```json\n{PLAN}\n```\nBye"), "Hi\n\nBye"),
            (format!("Hi\n```\n{PLAN}\n```"), "Hi"),
            ("a < b, <final is ok, ünïcode <".to_owned(), "a < b, <final is ok, ünïcode <"),
            ("```jsonnet".to_owned(), ""),
        ] {
            assert_eq!(Chatter::extract(&text), talk, "{text}");
            for cut in (0..=text.len()).filter(|&at| text.is_char_boundary(at)) {
                let mut chatter = Chatter::default();
                let mut seen = chatter.push(&text[..cut]);
                seen.push_str(&chatter.push(&text[cut..]));
                seen.push_str(&chatter.finish());
                assert_eq!(seen.trim().trim_end_matches("```").trim_end(), talk, "cut at {cut} of {text}");
            }
        }
    }

    fn fragment() -> impl Strategy<Value = &'static str> {
        proptest::sample::select(vec![
            "<FINAL_PRD>",
            "</FINAL_PRD>",
            "<final",
            "</",
            "```json",
            "```",
            "{",
            "}",
            "\n",
            "\"",
            "ä",
            "talk ",
            PLAN,
            "{\"tasks\": [",
            "secrets: x",
            " ",
        ])
    }

    proptest! {
        /// No answer breaks the parser, and the extracted text does not depend on how the stream is split.
        #[test]
        fn any_answer_is_read(pieces in proptest::collection::vec(fragment(), 0..30)) {
            let text = pieces.concat();
            let _ = object(&text, "tasks");
            let (mut whole, mut cut) = (Chatter::default(), Chatter::default());
            let mut at_once = whole.push(&text);
            at_once.push_str(&whole.finish());
            let mut bit_by_bit = String::new();
            for c in text.chars() {
                bit_by_bit.push_str(&cut.push(c.encode_utf8(&mut [0; 4])));
            }
            bit_by_bit.push_str(&cut.finish());
            prop_assert_eq!(&at_once, &bit_by_bit);
            prop_assert!(!at_once.to_ascii_lowercase().contains(OPEN), "{}", at_once);
        }
    }
}
