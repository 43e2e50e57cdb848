//! The silent rule: a subagent with nothing to report says so, and nobody is notified.

use serde_json::Value;

/// Whether a subagent's reply is kept but not sent: it is a JSON object, bare or in a code fence, in which `silent` is true.
/// Everything else is sent, even text that looks like broken JSON: an unnecessary message does less harm than a lost one.
pub fn is_silent(reply: &str) -> bool {
    let reply = reply.trim();
    let fenced = reply.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let bare = fenced.map_or(reply, |inside| inside.strip_prefix("json").unwrap_or(inside).trim());
    matches!(serde_json::from_str(bare), Ok(Value::Object(map)) if map.get("silent") == Some(&Value::Bool(true)))
}

/// `tests/all/subagents.rs` tests the same with a daemon.
#[cfg(test)]
mod subagent_silent_logic_test {
    use super::is_silent;

    #[test]
    fn response_with_silent_true_not_sent_to_gateway() {
        for reply in
            ["{\"silent\": true}", " {\"silent\":true, \"log\": \"42 checked\"}\n", "```json\n{\"silent\": true}\n```"]
        {
            assert!(is_silent(reply), "{reply}");
        }
    }

    #[test]
    fn response_without_silent_field_sent_to_gateway() {
        assert!(!is_silent("{\"result\": 3}") && !is_silent("{}"));
    }

    #[test]
    fn response_with_silent_false_sent_to_gateway() {
        assert!(!is_silent("{\"silent\": false}"));
    }

    #[test]
    fn non_json_response_treated_as_not_silent_safe_default() {
        for reply in ["", "All is well.", "silent: true", "I say: {\"silent\": true}", "{\"silent\": true} and more"] {
            assert!(!is_silent(reply), "{reply}");
        }
    }

    #[test]
    fn parse_failure_treated_as_not_silent() {
        for reply in [
            "{\"silent\": true",
            "{'silent': true}",
            "{\"silent\": \"true\"}",
            "{\"silent\": 1}",
            "[{\"silent\": true}]",
        ] {
            assert!(!is_silent(reply), "{reply}");
        }
    }
}
