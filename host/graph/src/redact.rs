//! Keeps credentials out of plans, logs and corrections. A plan lists them in `secrets`; from there they only go to the secret
//! store.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use kiso_base::role::{Lengths, MAX_WORD};
use kiso_plan::plan::Violation;

/// Maximum credentials of one message.
const MAX_SECRETS: usize = Lengths::READ.secrets;

/// Maximum bytes of a credential.
const MAX_SECRET: usize = Lengths::READ.secret;

/// Replaces a secret. A planner that copies it is asked to write the value again.
pub(super) const REMOVED: &str = "[removed: write it again]";

/// The beginning of the placeholder for a credential that the host removed from a message; its name and a bracket follow.
const PLACE: &str = "[secret ";

/// Returns the name of the known secret that a value refers to. A planner that may not see a credential uses `{"api_key":
/// "[secret github_token]"}` to give it the name that a skill asks for.
pub fn alias_of(value: &str) -> Option<&str> {
    let name = value.trim().strip_prefix(PLACE)?.strip_suffix(']')?;
    (!name.is_empty() && !name.contains(['[', ']'])).then_some(name)
}

/// Whether to search texts for this value. A reference to another secret may be anywhere.
fn is_searched(value: &str) -> bool {
    value.len() >= SEARCHED && alias_of(value).is_none()
}

/// Shorter values are not searched for, because they may be ordinary words or numbers.
const SEARCHED: usize = 6;

/// Credentials in the user's message: names and values. Only the names are ever printed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets(BTreeMap<String, String>);

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl IntoIterator for Secrets {
    type Item = (String, String);
    type IntoIter = std::collections::btree_map::IntoIter<String, String>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl Secrets {
    pub fn one(name: String, value: String) -> Self {
        Self(BTreeMap::from([(name, value)]))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    /// Parses the `secrets` of a plan.
    pub(super) fn read(value: Option<&Value>, violations: &mut Vec<Violation>) -> Self {
        let mut secrets = Self::default();
        let listed;
        let entries = match value {
            None | Some(Value::Null) => return secrets,
            Some(Value::Object(entries)) => entries,
            // In the form of a schema, which cannot limit an object with arbitrary names.
            Some(Value::Array(items)) => {
                let named = |item: &Value| Some((item["name"].as_str()?.to_owned(), item["value"].clone()));
                listed = items.iter().filter_map(named).collect::<serde_json::Map<_, _>>();
                if listed.len() < items.len() {
                    violations.push(Violation::new("secrets", "each needs a name of its own and a value"));
                }
                &listed
            }
            Some(_) => {
                violations.push(Violation::new("secrets", "must be an object of names and values"));
                return secrets;
            }
        };
        if entries.len() > MAX_SECRETS {
            violations.push(Violation::new("secrets", format!("at most {MAX_SECRETS} are taken from one message")));
        }
        for (name, value) in entries {
            let path = format!("secrets.{name}");
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
            match value {
                _ if name.is_empty() || name.len() > MAX_WORD || !name.chars().all(plain) => {
                    violations.push(Violation::new(path, "a name has 1 to 64 letters, digits and underscores"))
                }
                Value::String(value) if value.contains("[removed") => {
                    violations.push(Violation::new(path, "write the value exactly as in the message"))
                }
                Value::String(value) if value.contains(PLACE) && alias_of(value).is_none() => violations
                    .push(Violation::new(path, format!("write {PLACE}NAME] alone, exactly as in the message"))),
                Value::String(value) if !value.is_empty() && value.len() <= MAX_SECRET => {
                    secrets.0.insert(name.clone(), value.clone());
                }
                _ => violations.push(Violation::new(path, format!("must be a string of 1 to {MAX_SECRET} bytes"))),
            }
        }
        secrets
    }

    /// Returns the name of a secret whose value is in `text`.
    pub(super) fn within(&self, text: &str) -> Option<&str> {
        let mut searched = self.0.iter().filter(|(_, value)| is_searched(value));
        searched.find(|(_, value)| text.contains(value.as_str())).map(|(name, _)| name.as_str())
    }

    /// Returns `text` with every value replaced.
    pub(super) fn strike(&self, text: &str) -> String {
        let mut text = text.to_owned();
        let mut values: Vec<_> = self.0.values().filter(|value| is_searched(value)).collect();
        // Longest first: a value may contain another one, and its rest would remain.
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        for value in values {
            text = text.replace(value.as_str(), REMOVED);
            // The form inside JSON, where it may be escaped.
            let escaped = Value::from(value.as_str()).to_string();
            text = text.replace(&escaped[1..escaped.len() - 1], REMOVED);
        }
        text
    }
}

/// Returns `text` without the value of any key `secrets`. Works on invalid JSON, too: in doubt, it removes too much.
pub(super) fn strike_fields(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for (at, key) in lower.match_indices("secrets") {
        let end = at + key.len();
        if end < copied {
            continue; // inside a removed value
        }
        let value = text[end..].trim_start_matches(|c: char| c.is_whitespace() || "\"'`".contains(c));
        let Some(value) = value.strip_prefix([':', '=']) else {
            continue;
        };
        out.push_str(&text[copied..end]);
        out.push_str("\": \"");
        out.push_str(REMOVED);
        out.push('"');
        copied = text.len() - value.len() + value_length(value);
    }
    out.push_str(&text[copied..]);
    out
}

/// Returns the length of the JSON value at the beginning of `text`; up to the end if it is not closed.
fn value_length(text: &str) -> usize {
    let start = text.len() - text.trim_start().len();
    if !text[start..].starts_with(['{', '[', '"']) {
        return text[start..].find(['\n', '}']).map_or(text.len(), |at| start + at);
    }
    let (mut depth, mut quoted, mut escaped) = (0usize, false, false);
    for (at, c) in text[start..].char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '{' | '[' if !quoted => depth += 1,
            '}' | ']' if !quoted => depth -= 1,
            _ => {}
        }
        if depth == 0 && !quoted {
            return start + at + c.len_utf8();
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn broken_answers_lose_their_secrets() {
        for text in [
            r#"{"secrets": {"token": "ghp_abc}123", "b": ["x"]}, "goal": "g"}"#,
            r#"{"secrets": {"token": "ghp_abc}123"#,
            r#"{'secrets': 'ghp_abc}123', goal}"#,
            r#"{secrets = ghp_abc}"#,
            r#"{"Secrets": "ghp_abc\"}", "goal": "g"}"#,
            r#"{"secrets": {"a": "ghp_abc"}, "secrets": {"b": "ghp_abc"}}"#,
        ] {
            let struck = strike_fields(text);
            assert!(!struck.contains("ghp_abc"), "{struck}");
            assert!(struck.contains(REMOVED), "{struck}");
        }
        assert_eq!(strike_fields("no secrets here"), "no secrets here");
        assert!(strike_fields(r#"{"secrets": {"a": "x"}, "goal": "g"}"#).ends_with(r#", "goal": "g"}"#));
    }

    #[test]
    fn values_are_found_and_replaced_everywhere() {
        let mut violations = Vec::new();
        let given = json!({"token": "ghp_abc\"123", "longer": "ghp_abc\"123456", "pin": "12"});
        let secrets = Secrets::read(Some(&given), &mut violations);
        assert_eq!(violations, []);
        assert_eq!(secrets.within("use ghp_abc\"123 now"), Some("token"));
        assert_eq!(secrets.within("12 apples"), None);
        let struck = secrets.strike("a ghp_abc\"123456 b {\"x\": \"ghp_abc\\\"123\"}");
        assert!(!struck.contains("ghp") && !struck.contains("456"), "{struck}");
        assert_eq!(format!("{secrets:?}"), r#"{"longer", "pin", "token"}"#);
    }

    #[test]
    fn a_known_secret_may_get_another_name() {
        assert_eq!(alias_of("[secret github_token]"), Some("github_token"));
        for value in ["", "x", "[secret ]", "[secret a", "[secret a] b", "[secret a][secret b]"] {
            assert_eq!(alias_of(value), None, "{value}");
        }
        let mut violations = Vec::new();
        let given = json!({"api_key": "[secret github_token]", "odd": "Bearer [secret github_token]"});
        let secrets = Secrets::read(Some(&given), &mut violations);
        assert_eq!(secrets.names(), ["api_key"]);
        assert_eq!(violations.len(), 1, "{violations:?}");
        // It is not a value that a plan must not contain.
        assert_eq!(secrets.within("log in with [secret github_token]"), None);
        assert_eq!(secrets.strike("with [secret github_token]"), "with [secret github_token]");
    }

    proptest::proptest! {
        /// The value of a `secrets` field is never in the stored form of a broken answer.
        #[test]
        fn nothing_of_a_secrets_field_is_left(
            before in "[ {}\":,a-zä\n]{0,20}",
            value in "[ {}\\[\\]:,a-zä\n]{0,30}",
            after in "[ {}\":,a-zä\n]{0,20}",
        ) {
            let given = serde_json::json!({"k": format!("{value}TOPSECRET{value}")});
            for text in [
                format!("{before}\"secrets\": {given}{after}"),
                format!("{before}\"secrets\": {}", &given.to_string()[..given.to_string().len() - 2]),
            ] {
                let struck = strike_fields(&text);
                proptest::prop_assert!(!struck.contains("TOPSECRET"), "{}", struck);
            }
        }
    }

    #[test]
    fn odd_secrets_are_refused() {
        let mut violations = Vec::new();
        let given = json!({"a b": "x", "n": 1, "e": "", "r": REMOVED});
        assert!(Secrets::read(Some(&given), &mut violations).is_empty());
        assert_eq!(violations.len(), 4);
        Secrets::read(Some(&json!("x")), &mut violations);
        assert_eq!(violations.len(), 5);
    }
}
