//! Why a model gave no answer: one word for programs, and the next step for a person.

use super::LlmError;

/// Why a model gave no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelTrouble {
    /// Its key is missing, so it was not called.
    NoKey,
    /// The provider refuses the key.
    KeyRefused,
    /// The account has no credit or no quota left.
    NoCredit,
    /// The provider does not know the model, or nothing is at this address.
    NotFound,
    /// Nothing answers at the address.
    Unreachable,
    /// The provider is overloaded, or its limit of requests is reached.
    Busy,
    /// The answer was too slow, or broke off.
    BrokenOff,
    /// The provider withheld the answer.
    Withheld,
    /// The prompt is longer than the model allows.
    TooLong,
    /// The provider refused the request for another reason.
    Refused,
    /// The provider failed.
    ProviderFailed,
}

impl ModelTrouble {
    /// Returns a stable word for programs.
    pub fn code(self) -> &'static str {
        match self {
            Self::NoKey => "no_key",
            Self::KeyRefused => "key_refused",
            Self::NoCredit => "no_credit",
            Self::NotFound => "model_not_found",
            Self::Unreachable => "unreachable",
            Self::Busy => "busy",
            Self::BrokenOff => "broken_off",
            Self::Withheld => "withheld",
            Self::TooLong => "too_long",
            Self::Refused => "refused",
            Self::ProviderFailed => "provider_failed",
        }
    }

    /// Returns a sentence about what happened.
    pub fn title(self) -> &'static str {
        match self {
            Self::NoKey => "The model has no key",
            Self::KeyRefused => "The provider does not accept the key",
            Self::NoCredit => "The account at the provider has no credit left",
            Self::NotFound => "The provider does not know this model or address",
            Self::Unreachable => "The model’s server cannot be reached",
            Self::Busy => "The provider is busy",
            Self::BrokenOff => "The model’s answer did not arrive",
            Self::Withheld => "The provider withheld the answer",
            Self::TooLong => "The conversation is too long for the model",
            Self::Refused => "The provider refused the request",
            Self::ProviderFailed => "The provider failed",
        }
    }

    /// Returns the next step.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::NoKey => "Enter the key, or choose another model.",
            Self::KeyRefused => "Copy the key again from the provider’s site, check that it is active, and enter it.",
            Self::NoCredit => "Add credit at the provider, or choose another model.",
            Self::NotFound => {
                "Choose a model from the provider’s list, and check the address: that of most servers ends in /v1."
            }
            Self::Unreachable => {
                "Start the server, and check its address and port. “localhost” is the machine that kiso runs on."
            }
            Self::Busy => "Wait a moment and try again, or choose another model.",
            Self::BrokenOff => "Try again. A large local model may need longer timeouts (the settings `llm.*`).",
            Self::Withheld => "Word the message differently, or choose another model.",
            Self::TooLong => {
                "Begin a new chat, or lower the size of its context in kiso (setting `context_budget` of the model)."
            }
            Self::Refused => "The provider’s words say why. Another model may work.",
            Self::ProviderFailed => "Try again in a moment, or choose another model.",
        }
    }

    /// Classifies an error; `None` for a scripted model's.
    pub fn from_error(error: &LlmError) -> Option<Self> {
        match error {
            LlmError::Unready { .. } => Some(Self::NoKey),
            LlmError::Refused { message, .. } => Some(Self::of_refusal(message)),
            LlmError::Unavailable { message, .. } => Some(Self::of_silence(message)),
            LlmError::Script(_) => None,
        }
    }

    /// Finds the text of an [`LlmError`] in a text. Returns its class and the model that it names.
    pub fn in_text(text: &str) -> Option<(Self, &str)> {
        const SUBJECT: &str = "the model ";
        text.match_indices(SUBJECT).find_map(|(at, _)| {
            // A model's name contains no spaces, so the rest is the error's text.
            let (model, rest) = text[at + SUBJECT.len()..].split_once(' ')?;
            let refusal = rest.strip_prefix("refused the request: ").map(Self::of_refusal);
            let silence = || rest.strip_prefix("did not answer: ").map(Self::of_silence);
            let no_key = || rest.strip_prefix("cannot be called: ").map(|_| Self::NoKey);
            Some((refusal.or_else(silence).or_else(no_key)?, model))
        })
    }

    fn of_refusal(message: &str) -> Self {
        let lower = message.to_ascii_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        if lower.contains("content filter") {
            return Self::Withheld;
        }
        if says(&["context length", "context_length", "maximum context", "prompt is too long", "context window"]) {
            return Self::TooLong;
        }
        match status(message) {
            Some(401 | 403) => Self::KeyRefused,
            Some(402) => Self::NoCredit,
            Some(404) => Self::NotFound,
            None if says(&["invalid_api_key", "api key", "x-api-key", "authentication"]) => Self::KeyRefused,
            _ if says(&["credit balance", "insufficient credit"]) => Self::NoCredit,
            _ if says(&["invalid api key", "incorrect api key", "api key not valid"]) => Self::KeyRefused,
            _ if says(&["redirects are not followed", "lack a part such as /v1", "model not found"]) => Self::NotFound,
            _ => Self::Refused,
        }
    }

    fn of_silence(message: &str) -> Self {
        let lower = message.to_ascii_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        match status(message) {
            Some(429) if says(&["quota", "credit", "billing"]) => Self::NoCredit,
            Some(429 | 503 | 529) => Self::Busy,
            Some(_) => Self::ProviderFailed,
            None if says(&["connect", "dns", "no connection within", "refused", "resolve"]) && !says(&["broke"]) => {
                Self::Unreachable
            }
            None if says(&["within", "time-out", "broke", "in time", "ended"]) => Self::BrokenOff,
            None if says(&["lack a part such as /v1"]) => Self::NotFound,
            None => Self::ProviderFailed,
        }
    }
}

/// Returns the status at the beginning of a refusal's message.
fn status(message: &str) -> Option<u16> {
    let (number, rest) = message.split_at_checked(3)?;
    let number = number.parse().ok().filter(|status| (100..600).contains(status))?;
    rest.starts_with(|c: char| !c.is_ascii_digit()).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(message: &str) -> LlmError {
        LlmError::Refused { model: "p:m".to_owned(), message: message.to_owned() }
    }

    fn silent(message: &str) -> LlmError {
        let (model, message) = ("p:m".to_owned(), message.to_owned());
        LlmError::Unavailable { model, message, retryable: true, retry_after: None }
    }

    #[test]
    fn an_error_and_its_text_tell_the_same_trouble() {
        use ModelTrouble::*;
        let unready = LlmError::Unready { model: "p:m".to_owned(), message: "KEY is not set".to_owned() };
        for (error, expected) in [
            (unready, NoKey),
            (refused("401 Unauthorized: Incorrect API key provided: [key]"), KeyRefused),
            (refused("400 Bad Request: API key not valid. Please pass a valid API key."), KeyRefused),
            (refused("402 Payment Required"), NoCredit),
            (refused("400 Bad Request: Your credit balance is too low"), NoCredit),
            (refused("404 Not Found: model \"x\" not found"), NotFound),
            (refused("302 Found: it points to https://x, and redirects are not followed"), NotFound),
            (refused("400 Bad Request: This model's maximum context length is 8192 tokens"), TooLong),
            (refused("it held the answer back (content filter)"), Withheld),
            (refused("400 Bad Request: odd"), Refused),
            (silent("429 Too Many Requests: slow down (3 attempts)"), Busy),
            (silent("429 Too Many Requests: insufficient_quota"), NoCredit),
            (silent("500 Internal Server Error"), ProviderFailed),
            (silent("client error (Connect): tcp connect error: Connection refused (os error 111)"), Unreachable),
            (silent("no connection within 10s (the connect time-out)"), Unreachable),
            (silent("no answer within 120s (the first_token time-out)"), BrokenOff),
            (silent("the connection broke in the middle of the answer: x"), BrokenOff),
        ] {
            assert_eq!(ModelTrouble::from_error(&error), Some(expected), "{error}");
            let text = format!("Planning failed: {error}");
            assert_eq!(ModelTrouble::in_text(&text), Some((expected, "p:m")), "{text}");
        }
        for text in ["the model of a car did not answer: no", "there is no sea.csv", "the model answered with nothing"]
        {
            assert_eq!(ModelTrouble::in_text(text), None, "{text}");
        }
    }
}
