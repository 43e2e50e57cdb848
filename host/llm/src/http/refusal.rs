//! What a provider says instead of an answer, and what that means for the call.

use std::time::Duration;

use http::StatusCode;
use serde_json::Value;

use crate::LlmError;
use kiso_store::secret::SecretValue;

/// Characters of a provider's text that an error shows.
const SHOWN: usize = 400;

/// Keys that are shorter are not looked for: they would be found in half of all words, and hide nothing.
const LEAST_KEY: usize = 4;

/// Tokens of an answer below which a provider is not asked to try again with less.
const LEAST_LIMIT: u32 = 64;

/// A refusal as a status or as an error object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The status, or the one that the error object amounts to.
    pub status: u16,
    /// Everything that the provider said, in lower case, for looking up which field it did not like. Never shown.
    said: String,
    /// What an error shows.
    message: String,
    wait: Option<Duration>,
}

impl Refusal {
    /// Of the head and the body of an answer.
    pub(super) fn read(
        status: StatusCode,
        location: Option<&str>,
        body: &str,
        wait: Option<Duration>,
        key: Option<&SecretValue>,
    ) -> Self {
        let text = match serde_json::from_str::<Value>(body) {
            Ok(object) => message(&object),
            // Web pages of gateways say no more than the status.
            Err(_) if body.trim_start().starts_with('<') => String::new(),
            Err(_) => body.to_owned(),
        };
        let text = match location {
            Some(location) if status.is_redirection() => {
                format!("it points to {location}, and redirects are not followed; correct its base_url")
            }
            _ => text,
        };
        let colon = if text.trim().is_empty() { "" } else { ": " };
        let message = clean(&format!("{status}{colon}{text}"), key);
        Self { status: status.as_u16(), said: without(body, key).to_lowercase(), message, wait }
    }

    /// Of an error object that stands where an answer should.
    pub(super) fn object(error: &Value, key: Option<&SecretValue>) -> Self {
        Self {
            status: status_of(error),
            said: without(&error.to_string(), key).to_lowercase(),
            message: clean(&message(error), key),
            wait: None,
        }
    }

    /// Whether the request itself is at fault, and the provider names one of `words`, each in lower case.
    pub(crate) fn names(&self, words: &[&str]) -> bool {
        matches!(self.status, 400 | 422 | 500 | 501) && words.iter().any(|word| self.said.contains(word))
    }

    /// Whether the provider says that it takes no pictures, and not that it does not like one of them.
    pub(crate) fn is_of_all_pictures(&self) -> bool {
        // A content that has to be text is of the same kind.
        let none = [
            "image",
            "multimodal",
            "vision",
            "mmproj",
            "modalit",
            "must be a string",
            "expected a string",
            "expected `text`",
        ];
        self.is_of_content() && none.iter().any(|word| self.said.contains(word)) && !self.is_of_one_picture()
    }

    /// Whether the provider does not like one of the pictures.
    pub(crate) fn is_of_one_picture(&self) -> bool {
        let one = [
            "could not process",
            "exceed",
            "too large",
            "too many",
            "too small",
            "invalid image",
            "unable to process",
            "failed to decode",
            "failed to load",
        ];
        self.is_of_content() && self.said.contains("image") && one.iter().any(|word| self.said.contains(word))
    }

    fn is_of_content(&self) -> bool {
        matches!(self.status, 400 | 404 | 413 | 415 | 422 | 500 | 501)
    }

    /// The limit of an answer's tokens to try instead of `sent`, where the provider finds that too large: the largest smaller number that
    /// it names, or half.
    pub(crate) fn smaller_limit(&self, sent: u32) -> Option<u32> {
        let large = ["too large", "at most", "maximum", "exceed", "less than", "greater than", &format!("{sent} >")];
        if !self.names(&["max_tokens", "max_completion_tokens"]) || !large.iter().any(|word| self.said.contains(word)) {
            return None;
        }
        let numbers = self.said.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok());
        // Names of models have numbers, too.
        let named = numbers.filter(|number| (sent / 16..sent).contains(number)).max();
        Some(named.unwrap_or(sent / 2)).filter(|smaller| *smaller >= LEAST_LIMIT)
    }

    /// What it means for the call.
    pub(crate) fn into_error(self, model: &str) -> LlmError {
        let (model, message) = (model.to_owned(), self.message);
        match self.status {
            // The status of too many requests, but of no credit: waiting does not help.
            429 if self.said.contains("insufficient_quota") => {
                LlmError::Unavailable { model, message, retryable: false, retry_after: None }
            }
            408 | 409 | 425 | 429 | 500.. => {
                LlmError::Unavailable { model, message, retryable: true, retry_after: self.wait }
            }
            _ => LlmError::Refused { model, message },
        }
    }
}

/// The status that an error object amounts to. Its code may be one, and its type has the names of both formats. What is
/// not known counts as trouble of the provider, so that it is tried again.
fn status_of(error: &Value) -> u16 {
    let error = error.get("error").filter(|error| !error.is_null()).unwrap_or(error);
    let number = |value: &Value| value.as_u64().or_else(|| value.as_str()?.parse().ok());
    let code = ["code", "status"].iter().find_map(|name| number(error.get(name)?));
    if let Some(code) = code.and_then(|code| u16::try_from(code).ok()).filter(|code| (400..=599).contains(code)) {
        return code;
    }
    let words = ["code", "type"].iter().filter_map(|name| error.get(name)?.as_str());
    words
        .filter_map(|word| match word {
            "rate_limit_error" | "rate_limit_exceeded" | "insufficient_quota" => Some(429),
            "overloaded_error" => Some(529),
            "invalid_request_error" | "context_length_exceeded" | "bad_request" | "invalid_prompt" => Some(400),
            "authentication_error" | "invalid_api_key" => Some(401),
            "billing_error" => Some(402),
            "permission_error" => Some(403),
            "not_found_error" | "model_not_found" => Some(404),
            "request_too_large" => Some(413),
            _ => None,
        })
        .next()
        .unwrap_or(500)
}

/// The sentence in an error object, wherever the provider puts it.
fn message(object: &Value) -> String {
    // Google answers with a list of one.
    let object = object.get(0).unwrap_or(object);
    let error = object.get("error").filter(|error| !error.is_null()).unwrap_or(object);
    if let Some(text) = error.as_str() {
        return text.to_owned();
    }
    let said = ["message", "detail", "msg"].iter().find_map(|name| error.get(name)).unwrap_or(error);
    let mut text = said.as_str().map_or_else(|| said.to_string(), str::to_owned);
    // OpenRouter says "Provider returned error" and puts what the provider said beside it.
    if let Some(raw) = error.pointer("/metadata/raw") {
        let raw = raw.as_str().map_or_else(|| raw.to_string(), str::to_owned);
        text = format!("{text}: {raw}");
    }
    text
}

/// A provider's text without the key, which it may repeat, without what steers a terminal or turns text around, on one
/// line and not long.
pub(super) fn clean(text: &str, key: Option<&SecretValue>) -> String {
    let visible = without(text, key).chars().map(|c| if steers(c) { ' ' } else { c }).collect::<String>();
    let mut words = visible.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = words.char_indices().nth(SHOWN) {
        words.truncate(end);
        words.push('…');
    }
    words
}

fn without(text: &str, key: Option<&SecretValue>) -> String {
    match key.map(|key| key.expose().trim()).filter(|key| key.len() >= LEAST_KEY) {
        Some(key) => text.replace(key, "[key]"),
        None => text.to_owned(),
    }
}

fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn read(status: u16, body: &str) -> LlmError {
        let key = SecretValue::new("sk-very-secret\n".to_owned());
        Refusal::read(StatusCode::from_u16(status).unwrap(), None, body, Some(Duration::from_secs(3)), Some(&key))
            .into_error("p:m")
    }

    #[test]
    fn a_status_decides_whether_to_try_again() {
        for status in [400, 401, 402, 403, 404, 405, 413, 422, 307] {
            assert!(matches!(read(status, ""), LlmError::Refused { .. }), "{status}");
        }
        for status in [408, 409, 429, 500, 502, 503, 504, 529] {
            let LlmError::Unavailable { retryable, retry_after, .. } = read(status, "") else { panic!("{status}") };
            assert_eq!((retryable, retry_after), (true, Some(Duration::from_secs(3))), "{status}");
        }
        let spent = read(429, r#"{"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}"#);
        assert!(matches!(spent, LlmError::Unavailable { retryable: false, .. }), "{spent}");
    }

    #[test]
    fn the_sentence_is_found() {
        for (body, sentence) in [
            (r#"{"error": {"message": "No such model", "type": "x"}}"#, "404 Not Found: No such model"),
            (r#"{"error": "no such model"}"#, "404 Not Found: no such model"),
            (r#"{"error": null, "message": "gone"}"#, "404 Not Found: gone"),
            (r#"{"detail": [{"loc": ["body"]}]}"#, r#"404 Not Found: [{"loc":["body"]}]"#),
            (
                r#"{"error": {"message": "Provider returned error", "metadata": {"raw": "why"}}}"#,
                "404 Not Found: Provider returned error: why",
            ),
            (r#"{"odd": 1}"#, r#"404 Not Found: {"odd":1}"#),
            (r#"[{"error": {"message": "in a list"}}]"#, "404 Not Found: in a list"),
            ("<html>\n404", "404 Not Found"),
            ("plain\ttext\u{1b}[31m\n", "404 Not Found: plain text [31m"),
            ("", "404 Not Found"),
        ] {
            assert_eq!(read(404, body).to_string(), format!("the model p:m refused the request: {sentence}"), "{body}");
        }
    }

    #[test]
    fn a_key_that_is_echoed_is_taken_out_and_a_long_text_cut() {
        let error = read(401, r#"{"error": {"message": "bad key sk-very-secret in sk-very-secret"}}"#).to_string();
        assert!(error.ends_with("401 Unauthorized: bad key [key] in [key]"), "{error}");
        // Also where the cut would leave a part of it.
        let error = read(401, &format!("{} sk-very-secret", "x".repeat(SHOWN - 26))).to_string();
        assert!(!error.contains("sk-") && error.ends_with("x [key]"), "{error}");
        let error = read(400, &"ä".repeat(100_000)).to_string();
        assert!(error.chars().count() < SHOWN + 60 && error.ends_with('…'), "{error}");
        assert!(!format!("{:?}", read(400, "sk-very-secret")).contains("very"));
        assert_eq!(clean("a\u{202e}b\u{200b}c", None), "a b c");
    }

    #[test]
    fn error_objects_amount_to_a_status() {
        for (object, status) in [
            (json!({ "error": { "code": 502, "message": "x" } }), 502),
            (json!({ "code": "429" }), 429),
            (json!({ "type": "error", "error": { "type": "overloaded_error" } }), 529),
            (json!({ "error": { "type": "invalid_request_error", "code": null } }), 400),
            (json!({ "error": { "type": "rate_limit_error" } }), 429),
            (json!({ "error": { "type": "authentication_error" } }), 401),
            (json!({ "error": { "code": 7 } }), 500),
            (json!("out of memory"), 500),
        ] {
            assert_eq!(Refusal::object(&object, None).status, status, "{object}");
        }
    }

    #[test]
    fn a_redirect_says_where_it_points() {
        let status = StatusCode::TEMPORARY_REDIRECT;
        let error = Refusal::read(status, Some("https://other.example/v1"), "", None, None).into_error("p:m");
        assert!(error.to_string().contains("it points to https://other.example/v1, and redirects are not followed"));
    }
}
