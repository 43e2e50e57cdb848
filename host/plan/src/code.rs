//! Error codes of calls, tasks and installs: one word that a program can check.
//!
//! A word is written with dashes and is a plain string wherever it is stored or sent. Every word that the host uses is a variant,
//! so the compiler checks how the host handles each, and no texts are compared.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use strum::{EnumString, IntoStaticStr};

/// Maximum bytes kept of a code that a guest chose.
const MAX_GUEST_CODE: usize = 64;

/// Why something failed.
#[derive(Debug, Clone, PartialEq, Eq, EnumString, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
#[cfg_attr(test, derive(strum::EnumIter))]
pub enum ErrorCode {
    /// The name belongs to an Agent Skill, which has no component to call.
    AgentSkill,
    ApprovalExpired,
    ApprovalNeeded,
    BadAddress,
    BadAgentSkill,
    BadAnswer,
    BadArchive,
    /// The arguments are invalid; nothing was tried.
    #[strum(to_string = "bad-args", serialize = "bad-arguments")]
    BadArgs,
    BadArtifact,
    BadComponent,
    BadCredentials,
    BadForm,
    BadGrant,
    BadIndex,
    BadJson,
    BadLock,
    BadManifest,
    BadReference,
    BadReply,
    BadSignature,
    Broken,
    Bundled,
    Busy,
    Changed,
    ChangedIndex,
    CutOff,
    Denied,
    Digest,
    Downgrade,
    EffectDenied,
    EmptyAnswer,
    Exit,
    ExpiredIndex,
    Failed,
    InsufficientScope,
    /// The host did not see the end of the call.
    Interrupted,
    Io,
    Limit,
    Link,
    Login,
    Loop,
    ModelFailed,
    NameTaken,
    NoDigest,
    NoIndex,
    NoMatch,
    NoSource,
    NotAllowed,
    NotFound,
    NotText,
    NotUsed,
    OtherDigest,
    OtherPublisher,
    OtherSurface,
    Quota,
    Redirect,
    Refused,
    Registry,
    SecretMissing,
    SelfTest,
    SetAside,
    Several,
    StaleIndex,
    Status,
    Stopped,
    /// The deadline ended the call.
    Timeout,
    TooLarge,
    TooManyFiles,
    Trap,
    Unavailable,
    Unconfined,
    Undeclared,
    Unencrypted,
    UnknownSkill,
    UnknownTool,
    Unreachable,
    UnsafePath,
    Unsigned,
    UnsignedIndex,
    WrongKey,
    WrongMachine,
    /// A word that a guest chose and the host does not know. It is displayed, and the host ignores it.
    #[strum(disabled)]
    Guest(String),
}

/// Who can fix the error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Blame {
    /// The caller: wrong arguments, unknown skill.
    Caller,
    /// The skill: it failed, trapped, or exceeded a limit.
    Skill,
    /// The administrator's rules: not granted.
    Policy,
    /// This machine or kiso itself: disk full, corrupt file.
    Host,
}

/// Classes of errors that an interface of kiso distinguishes (by an HTTP status or an exit code).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// The skill does not exist.
    Unknown,
    /// Another process or call is using it.
    Busy,
    /// The name belongs to something else.
    Taken,
    /// A file of the administrator is invalid.
    Config,
    /// A limit ended it.
    Limit,
    /// Everything else, by who can fix it.
    Blamed(Blame),
}

impl ErrorCode {
    /// Returns the word.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Guest(code) => code,
            code => code.into(),
        }
    }

    /// Parses the code that a guest chose for its failure. `Failed` for a code that is reserved for the host, or if nothing
    /// legible remains.
    pub fn from_guest(code: &str) -> Self {
        let end = code.floor_char_boundary(MAX_GUEST_CODE);
        let code: String = code[..end].chars().filter(|c| !c.is_control()).collect();
        let read = Self::from(code);
        match &read {
            Self::Guest(code) if code.is_empty() => Self::Failed,
            code if code.is_for_guests() => read,
            _ => Self::Failed,
        }
    }

    /// Whether guests may use this code as well. The host's behaviour never depends on such a code.
    fn is_for_guests(&self) -> bool {
        matches!(
            self,
            Self::Guest(_)
                | Self::BadArgs
                | Self::Denied
                | Self::Failed
                | Self::NotFound
                | Self::NotText
                | Self::Quota
                | Self::TooLarge
                | Self::Unavailable
                | Self::Undeclared
        )
    }

    /// Returns the class of an error with this code.
    pub fn class(&self, blame: Blame) -> ErrorClass {
        match self {
            Self::UnknownSkill => ErrorClass::Unknown,
            Self::Busy => ErrorClass::Busy,
            Self::Bundled | Self::NameTaken => ErrorClass::Taken,
            Self::BadGrant => ErrorClass::Config,
            Self::Limit => ErrorClass::Limit,
            Self::AgentSkill
            | Self::ApprovalExpired
            | Self::ApprovalNeeded
            | Self::BadAddress
            | Self::BadAgentSkill
            | Self::BadAnswer
            | Self::BadArchive
            | Self::BadArgs
            | Self::BadArtifact
            | Self::BadComponent
            | Self::BadCredentials
            | Self::BadForm
            | Self::BadIndex
            | Self::BadJson
            | Self::BadLock
            | Self::BadManifest
            | Self::BadReference
            | Self::BadReply
            | Self::BadSignature
            | Self::Broken
            | Self::Changed
            | Self::ChangedIndex
            | Self::CutOff
            | Self::Denied
            | Self::Digest
            | Self::Downgrade
            | Self::EffectDenied
            | Self::EmptyAnswer
            | Self::Exit
            | Self::ExpiredIndex
            | Self::Failed
            | Self::InsufficientScope
            | Self::Interrupted
            | Self::Io
            | Self::Link
            | Self::Login
            | Self::Loop
            | Self::ModelFailed
            | Self::NoDigest
            | Self::NoIndex
            | Self::NoMatch
            | Self::NoSource
            | Self::NotAllowed
            | Self::NotFound
            | Self::NotText
            | Self::NotUsed
            | Self::OtherDigest
            | Self::OtherPublisher
            | Self::OtherSurface
            | Self::Quota
            | Self::Redirect
            | Self::Refused
            | Self::Registry
            | Self::SecretMissing
            | Self::SelfTest
            | Self::SetAside
            | Self::Several
            | Self::StaleIndex
            | Self::Status
            | Self::Stopped
            | Self::Timeout
            | Self::TooLarge
            | Self::TooManyFiles
            | Self::Trap
            | Self::Unavailable
            | Self::Unconfined
            | Self::Undeclared
            | Self::Unencrypted
            | Self::UnknownTool
            | Self::Unreachable
            | Self::UnsafePath
            | Self::Unsigned
            | Self::UnsignedIndex
            | Self::WrongKey
            | Self::WrongMachine
            | Self::Guest(_) => ErrorClass::Blamed(blame),
        }
    }
}

impl From<String> for ErrorCode {
    /// Parses a code that was stored or sent. Earlier versions wrote some with underscores.
    fn from(code: String) -> Self {
        let dashes = code.replace('_', "-");
        Self::from_str(&dashes).unwrap_or(Self::Guest(code))
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for ErrorCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for ErrorCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

impl JsonSchema for ErrorCode {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ErrorCode".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strum::IntoEnumIterator;

    const BLAMES: [Blame; 4] = [Blame::Caller, Blame::Skill, Blame::Policy, Blame::Host];

    fn of_host() -> impl Iterator<Item = ErrorCode> {
        ErrorCode::iter().filter(|code| !matches!(code, ErrorCode::Guest(_)))
    }

    #[test]
    fn a_code_has_one_spelling_and_is_read_back() {
        for code in of_host() {
            let text = serde_json::to_string(&code).unwrap();
            assert!(
                text.trim_matches('"').split('-').all(|word| word.chars().all(|c| c.is_ascii_lowercase())),
                "{text}"
            );
            assert_eq!(serde_json::from_str::<ErrorCode>(&text).unwrap(), code);
        }
        let odd = ErrorCode::Guest("Not_Today".to_owned());
        assert_eq!(serde_json::from_str::<ErrorCode>("\"Not_Today\"").unwrap(), odd);
        assert_eq!(serde_json::to_string(&odd).unwrap(), "\"Not_Today\"");
    }

    #[test]
    fn what_an_older_version_wrote_is_read() {
        for (old, code) in [
            ("bad_arguments", ErrorCode::BadArgs),
            ("bad_args", ErrorCode::BadArgs),
            ("bad_json", ErrorCode::BadJson),
            ("cut_off", ErrorCode::CutOff),
            ("unknown_tool", ErrorCode::UnknownTool),
            ("effect_denied", ErrorCode::EffectDenied),
            ("approval_needed", ErrorCode::ApprovalNeeded),
            ("approval_expired", ErrorCode::ApprovalExpired),
            ("not_allowed", ErrorCode::NotAllowed),
            ("bad_form", ErrorCode::BadForm),
            ("model_failed", ErrorCode::ModelFailed),
            ("empty_answer", ErrorCode::EmptyAnswer),
            ("insufficient_scope", ErrorCode::InsufficientScope),
            ("bad_answer", ErrorCode::BadAnswer),
            ("too_large", ErrorCode::TooLarge),
            ("not_text", ErrorCode::NotText),
            ("no_match", ErrorCode::NoMatch),
            ("not_found", ErrorCode::NotFound),
        ] {
            assert_eq!(ErrorCode::from(old.to_owned()), code, "{old}");
        }
    }

    #[test]
    fn a_code_that_a_guest_may_choose_decides_nothing() {
        for code in of_host() {
            let chosen = ErrorCode::from_guest(code.as_str());
            assert!(chosen == code || chosen == ErrorCode::Failed, "{code}");
            for blame in BLAMES {
                assert_eq!(chosen.class(blame), ErrorClass::Blamed(blame), "{code}");
            }
        }
    }

    #[test]
    fn a_code_of_a_guest_is_shown_as_far_as_it_is_legible() {
        for (chosen, code) in [
            ("not-today", ErrorCode::Guest("not-today".to_owned())),
            ("a\nb\u{7}", ErrorCode::Guest("ab".to_owned())),
            ("not_found", ErrorCode::NotFound),
            ("", ErrorCode::Failed),
            ("\u{1b}", ErrorCode::Failed),
            ("trap", ErrorCode::Failed),
            ("tra\u{0}p", ErrorCode::Failed),
            ("timeout", ErrorCode::Failed),
            ("effect_denied", ErrorCode::Failed),
        ] {
            assert_eq!(ErrorCode::from_guest(chosen), code, "{chosen:?}");
        }
        assert_eq!(ErrorCode::from_guest(&"ä".repeat(100)).as_str().len(), 64);
    }
}
