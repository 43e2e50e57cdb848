//! The summarizer: shortens long texts, and finds the facts in a turn.

use kiso_base::role::{MAX_LEARNED, MOST_LEARNED, MOST_OUTDATED, Role, facts_schema, learned_schema};
use kiso_llm::{Answer, Request};
use kiso_plan::prompt::{ChatMessage, Pieces};
use serde_json::Value;

/// Returns the prompt for a new summary from the old one and later messages.
pub fn messages(system: &str, old: Option<String>, messages: Vec<ChatMessage>, boundary: &str) -> Request {
    let all = Pieces { summary: old, compress: Some(messages), ..Pieces::default() };
    super::request(Role::Summarizer, system, &all, boundary)
}

/// Returns the prompt for merging facts; the answer is a JSON list of strings, or an object with one.
pub fn facts(system: &str, facts: Vec<String>, boundary: &str) -> Request {
    let all = Pieces { consolidate: Some(facts), ..Pieces::default() };
    Request { answer: Answer::Json(facts_schema().into()), ..super::request(Role::Summarizer, system, &all, boundary) }
}

/// Share of the facts that must at least remain after merging, as a divisor: an answer with a single line would otherwise delete
/// the rest.
const LEFT: usize = 4;

/// Parses merged facts. `None` unless the answer is a list of fewer texts than before, but not of far fewer.
pub fn read_facts(text: &str, given: usize) -> Option<Vec<String>> {
    let (start, end) = (text.find('[')?, text.rfind(']')?);
    let facts: Vec<String> = serde_json::from_str(text.get(start..=end)?).ok()?;
    let facts: Vec<_> = facts.into_iter().map(|fact| fact.trim().to_owned()).filter(|fact| !fact.is_empty()).collect();
    (facts.len() < given && facts.len() * LEFT >= given).then_some(facts)
}

/// Returns the prompt that finds the lasting information in a turn, and which of the `known` facts it makes outdated.
pub fn turn(system: &str, turn: Vec<ChatMessage>, known: Vec<String>, boundary: &str) -> Request {
    let all = Pieces { turn: Some(turn), known: (!known.is_empty()).then_some(known), ..Pieces::default() };
    Request {
        answer: Answer::Json(learned_schema().into()),
        ..super::request(Role::Summarizer, system, &all, boundary)
    }
}

/// Facts from a turn.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TurnFacts {
    pub facts: Vec<String>,
    /// Positions in the list of known facts, from 0.
    pub outdated: Vec<usize>,
}

/// Parses the answer to [`turn`], with this number of known facts. `None` unless it is an object of the right form. Facts that
/// are too long, and numbers that are not in the list, are left out.
pub fn read_turn(text: &str, known: usize) -> Option<TurnFacts> {
    let (start, end) = (text.find('{')?, text.rfind('}')?);
    let object: Value = serde_json::from_str(text.get(start..=end)?).ok()?;
    let facts = object.get("facts")?.as_array()?.iter().filter_map(Value::as_str).map(str::trim);
    let usable = |fact: &&str| !fact.is_empty() && fact.chars().count() <= MAX_LEARNED;
    let numbers = object.get("outdated").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_u64);
    let places = numbers.filter_map(|number| usize::try_from(number).ok()?.checked_sub(1));
    let mut outdated: Vec<usize> = places.filter(|place| *place < known).take(MOST_OUTDATED).collect();
    outdated.sort_unstable();
    outdated.dedup();
    Some(TurnFacts { facts: facts.filter(usable).take(MOST_LEARNED).map(str::to_owned).collect(), outdated })
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
        assert_eq!(read_facts("[\"a\"]", 5), None, "it would forget nearly all");
    }

    #[test]
    fn what_a_turn_says_is_read_as_far_as_it_has_the_form() {
        let learned = |facts: &[&str], outdated: &[usize]| {
            let facts = facts.iter().map(|fact| (*fact).to_owned()).collect();
            Some(TurnFacts { facts, outdated: outdated.to_vec() })
        };
        assert_eq!(
            read_turn(r#"Sure: {"facts": [" Mia is allergic to nuts ", "", 3], "outdated": [2, 2, 1, 0, 9, "1"]}"#, 2),
            learned(&["Mia is allergic to nuts"], &[0, 1])
        );
        assert_eq!(read_turn(r#"{"facts": []}"#, 5), learned(&[], &[]));
        let long = format!(r#"{{"facts": ["{}", "a", "b", "c", "d", "e"]}}"#, "x".repeat(301));
        assert_eq!(read_turn(&long, 0), learned(&["a", "b", "c", "d"], &[]));
        for text in ["", "none", "[\"a\"]", r#"{"outdated": [1]}"#, r#"{"facts": "a"}"#] {
            assert_eq!(read_turn(text, 3), None, "{text}");
        }
    }
}
