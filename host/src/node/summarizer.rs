//! The summarizer: shortens what grew too long.

use crate::llm::prompt::{ChatMessage, Pieces};
use crate::llm::{Answer, Request, Role};
use crate::role::facts_schema;

/// The prompt that makes one summary out of the old one and the messages after it.
pub fn messages(system: &str, old: Option<String>, messages: Vec<ChatMessage>, boundary: &str) -> Request {
    let all = Pieces { summary: old, compress: Some(messages), ..Pieces::default() };
    super::request(Role::Summarizer, system, &all, boundary)
}

/// The prompt that makes fewer facts out of many; the answer is a JSON list of strings, or an object with one.
pub fn facts(system: &str, facts: Vec<String>, boundary: &str) -> Request {
    let all = Pieces { consolidate: Some(facts), ..Pieces::default() };
    Request { answer: Answer::Json(facts_schema().into()), ..super::request(Role::Summarizer, system, &all, boundary) }
}

/// Reads consolidated facts. `None` for anything but a list of fewer texts than there were.
pub fn read_facts(text: &str, given: usize) -> Option<Vec<String>> {
    let (start, end) = (text.find('[')?, text.rfind(']')?);
    let facts: Vec<String> = serde_json::from_str(text.get(start..=end)?).ok()?;
    let facts: Vec<_> = facts.into_iter().map(|fact| fact.trim().to_owned()).filter(|fact| !fact.is_empty()).collect();
    (!facts.is_empty() && facts.len() < given).then_some(facts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_shorter_list_of_texts_is_taken() {
        assert_eq!(read_facts("Here: [\"a\", \" \"]", 3), Some(vec!["a".to_owned()]));
        assert_eq!(read_facts("{\"facts\": [\"a\"]}", 3), Some(vec!["a".to_owned()]));
        for text in ["[]", "none", "[\"a\", \"b\", \"c\"]", "[1]", "] [", "[\"\"]"] {
            assert_eq!(read_facts(text, 3), None, "{text}");
        }
    }
}
