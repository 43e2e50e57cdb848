//! Redaction of structured data: events, pieces of prompts, results. Only texts are searched. A match in the program's own words
//! and numbers would be a coincidence, and the redacted document could not be parsed again.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::Secrets;
use kiso_base::json;

/// Members whose texts are words of the program: the cases of its enums.
const WORDS: [&str; 17] = [
    "at", "by", "caller", "effort", "ending", "from", "kind", "level", "node", "recheck", "role", "stage", "state",
    "status", "to", "type", "why",
];

/// Members that contain JSON from outside, or a text that should be JSON; none of their members are the program's.
const FOREIGN: [&str; 3] = ["args", "data", "parameters"];

/// Numbers with fewer digits are not searched for, because they are found everywhere.
const LEAST_DIGITS: usize = 6;

impl Secrets {
    /// Returns `value` with every text redacted.
    pub fn redact_document<T: Serialize + DeserializeOwned>(&self, value: T) -> Result<T, serde_json::Error> {
        // Converting it to JSON and back is the most expensive step here.
        if self.nothing_to_hide() && !json::is_document_deeper(&value, json::MAX_RESULT)? {
            return Ok(value);
        }
        let mut clean = self.redacted(&value)?;
        // Stored JSON is parsed again later, and the parser refuses deeper values.
        json::flatten(&mut clean, json::MAX_RESULT);
        serde_json::from_value(clean)
    }

    /// Returns the JSON of `value` with every text redacted.
    pub fn redact_to_json<T: Serialize>(&self, value: &T) -> Result<String, serde_json::Error> {
        if self.nothing_to_hide() {
            return serde_json::to_string(value);
        }
        Ok(self.redacted(value)?.to_string())
    }

    /// Redacts every text in JSON from outside, including members' names.
    pub fn redact_value(&self, value: &mut Value) {
        if !self.nothing_to_hide() {
            self.walk(value, false);
        }
    }

    /// Redacts a text that is JSON, or should be.
    pub fn redact_json_text(&self, text: &str) -> String {
        if self.nothing_to_hide() {
            return text.to_owned();
        }
        match serde_json::from_str::<Value>(text) {
            Ok(mut value) => {
                let before = value.clone();
                self.redact_value(&mut value);
                // Unchanged if it contains no secrets.
                if value == before { text.to_owned() } else { value.to_string() }
            }
            Err(_) => self.redact(text),
        }
    }

    fn redacted<T: Serialize>(&self, value: &T) -> Result<Value, serde_json::Error> {
        let mut value = serde_json::to_value(value)?;
        self.walk(&mut value, true);
        Ok(value)
    }

    fn walk(&self, value: &mut Value, ours: bool) {
        match value {
            Value::String(text) => *text = self.redact(text),
            Value::Number(number) if !ours => {
                let text = number.to_string();
                if text.len() >= LEAST_DIGITS {
                    let clean = self.redact(&text);
                    if clean != text {
                        *value = Value::String(clean);
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.walk(item, ours)),
            Value::Object(members) if ours => {
                for (name, member) in members {
                    let is_foreign = FOREIGN.contains(&name.as_str());
                    match member {
                        Value::String(_) if WORDS.contains(&name.as_str()) => {}
                        Value::String(text) if is_foreign => *text = self.redact_json_text(text),
                        member => self.walk(member, !is_foreign),
                    }
                }
            }
            Value::Object(members) => {
                let clean = std::mem::take(members).into_iter().map(|(name, mut member)| {
                    self.walk(&mut member, false);
                    (self.redact(&name), member)
                });
                *members = clean.collect::<Map<_, _>>();
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::SecretValue;
    use kiso_graph::step::{Event, StepResult};
    use kiso_plan::plan::Task;
    use kiso_plan::report::{TaskReport, TaskStatus};
    use serde_json::json;

    fn secrets(values: &[&str]) -> Secrets {
        let mut secrets = Secrets::default();
        for value in values {
            secrets.add_session("pw".to_owned(), SecretValue::new((*value).to_owned()));
        }
        secrets
    }

    fn report() -> TaskReport {
        let task =
            json!({"type": "skill", "detail": "d", "skill": "data", "args": {"limit": 1000, "kind": "hunter22"}});
        let task: Task = serde_json::from_value(task).unwrap();
        let mut report = TaskReport::new(task, TaskStatus::Done, "said hunter22");
        report.data = Some(json!({"hunter22": ["hunter22", 12_345_678], "n": 1000}));
        report.millis = 12_345_678;
        report
    }

    /// The document can be parsed again, whatever word or number of the program a secret is equal to.
    #[test]
    fn words_and_numbers_of_the_program_stay() {
        let result = StepResult::Executed { task: 1000, report: Box::new(report()), call: None };
        let (moves, limits, reasoning) = (Vec::new(), Vec::new(), Vec::new());
        let event = Event { result, lost: None, moves, limits, say: None, continues: false, reasoning };
        for word in ["skill", "executed", "done", "1000", "data", "12345678", "millis", "true", "null", "report"] {
            let clean =
                secrets(&[word]).redact_document(event.clone()).unwrap_or_else(|error| panic!("{word}: {error}"));
            let StepResult::Executed { task, report: after, .. } = clean.result else { panic!("{word}") };
            assert_eq!((task, after.millis, after.status), (1000, 12_345_678, TaskStatus::Done), "{word}");
        }
    }

    #[test]
    fn texts_are_clean_wherever_they_stand() {
        let clean = secrets(&["hunter22"]).redact_to_json(&report()).unwrap();
        assert!(!clean.contains("hunter22"), "{clean}");
        assert_eq!(clean.matches("[secret pw]").count(), 4, "{clean}");
        let long = secrets(&["12345678"]).redact_to_json(&report()).unwrap();
        assert!(long.contains("[\"hunter22\",\"[secret pw]\"]") && long.contains("\"millis\":12345678"), "{long}");
    }

    /// The arguments of a call as a model wrote them.
    #[test]
    fn arguments_that_are_a_text_stay_json() {
        let call = json!({ "name": "exec", "args": r#"{"pin": 12345678, "command": "say 12345678"}"# });
        let clean = secrets(&["12345678"]).redact_to_json(&call).unwrap();
        assert_eq!(clean, r#"{"name":"exec","args":"{\"pin\":\"[secret pw]\",\"command\":\"say [secret pw]\"}"}"#);
    }

    #[test]
    fn a_text_that_is_json_stays_json() {
        let secrets = secrets(&["1000"]);
        assert_eq!(secrets.redact_json_text(r#"{"limit": 1000}"#), r#"{"limit": 1000}"#);
        assert_eq!(secrets.redact_json_text(r#"{"pw": "x1000"}"#), r#"{"pw":"x[secret pw]"}"#);
        assert_eq!(secrets.redact_json_text(r#"{"pw": "x1000"#), r#"{"pw": "x[secret pw]"#);
    }
}
