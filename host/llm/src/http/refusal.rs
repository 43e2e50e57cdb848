//! Errors of providers, and their meaning for the call.

use std::time::Duration;

use http::StatusCode;
use serde_json::Value;

use crate::LlmError;
use kiso_store::secret::SecretValue;

/// Maximum characters of a provider's text in an error.
const SHOWN: usize = 400;

/// Shorter keys are not searched for in texts: they would be found in many words.
const LEAST_KEY: usize = 4;

/// If fewer output tokens than this are allowed, the request is not repeated with a smaller limit.
const LEAST_LIMIT: u32 = 64;

/// A refusal by a status or an error object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The status, or the equivalent of the error object.
    pub status: u16,
    /// The provider's whole text in lower case, for finding the refused field. Never shown.
    said: String,
    /// The text for errors.
    message: String,
    wait: Option<Duration>,
}

impl Refusal {
    /// Reads the refusal from the head and the body of a response.
    pub(super) fn read(
        status: StatusCode,
        location: Option<&str>,
        body: &str,
        wait: Option<Duration>,
        key: Option<&SecretValue>,
    ) -> Self {
        let text = match serde_json::from_str::<Value>(body) {
            Ok(object) => message(&object),
            // Web pages of gateways add nothing to the status.
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

    /// Reads an error object in place of an answer.
    pub(super) fn object(error: &Value, key: Option<&SecretValue>) -> Self {
        Self {
            status: status_of(error),
            said: without(&error.to_string(), key).to_lowercase(),
            message: clean(&message(error), key),
            wait: None,
        }
    }

    /// Whether the request itself is invalid, and the provider names one of `words`, each in lower case.
    pub(crate) fn names(&self, words: &[&str]) -> bool {
        matches!(self.status, 400 | 422 | 500 | 501) && words.iter().any(|word| self.said.contains(word))
    }

    /// Whether the provider accepts no pictures at all, instead of refusing a particular one.
    pub(crate) fn is_of_all_pictures(&self) -> bool {
        // An error that says the content must be text counts, too.
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

    /// Whether the provider refuses a particular picture.
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

    /// Returns the output token limit to try instead of `sent`, if the provider finds that too large: the largest smaller number
    /// in its text, or half.
    pub(crate) fn smaller_limit(&self, sent: u32) -> Option<u32> {
        let large = ["too large", "at most", "maximum", "exceed", "less than", "greater than", &format!("{sent} >")];
        if !self.names(&["max_tokens", "max_completion_tokens"]) || !large.iter().any(|word| self.said.contains(word)) {
            return None;
        }
        let numbers = self.said.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok());
        // Names of models contain numbers, too.
        let named = numbers.filter(|number| (sent / 16..sent).contains(number)).max();
        Some(named.unwrap_or(sent / 2)).filter(|smaller| *smaller >= LEAST_LIMIT)
    }

    /// Converts it to an error of the call.
    pub(crate) fn into_error(self, model: &str) -> LlmError {
        let (model, message) = (model.to_owned(), self.message);
        match self.status {
            // This status normally means too many requests; here there is no credit, so waiting does not help.
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

/// Returns the HTTP status that an error object corresponds to. The object may contain a status as its code, or a type in the
/// words of either format. An unknown error counts as a failure of the provider, so that the call is retried.
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

/// Returns the message in an error object, wherever the provider puts it.
fn message(object: &Value) -> String {
    // Google answers with a list of one object.
    let object = object.get(0).unwrap_or(object);
    let error = object.get("error").filter(|error| !error.is_null()).unwrap_or(object);
    if let Some(text) = error.as_str() {
        return text.to_owned();
    }
    let said = ["message", "detail", "msg"].iter().find_map(|name| error.get(name)).unwrap_or(error);
    let mut text = said.as_str().map_or_else(|| said.to_string(), str::to_owned);
    // OpenRouter says "Provider returned error" and adds the provider's text.
    if let Some(raw) = error.pointer("/metadata/raw") {
        let raw = raw.as_str().map_or_else(|| raw.to_string(), str::to_owned);
        text = format!("{text}: {raw}");
    }
    text
}

/// Returns a provider's text on one short line, without the key, which it may repeat, and without characters that control a
/// terminal or the direction of text.
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
        // Also if the cut would leave a part of it.
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
