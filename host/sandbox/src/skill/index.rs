//! Indexes of skills: one file of JSON that says which skills there are, where their files lie, and the digest of each. It is signed, so
//! anybody can host one anywhere, and nobody who does can change it.
//!
//! In reading order: [`catalogue`] lists what every home has, [`place`] says where an index is and who signs it, [`read`] gets one and
//! checks it, [`searched`] is what a client sees of a search, [`make`] writes one of a folder of files.

mod catalogue;
mod make;
mod place;
mod read;
mod searched;

pub use self::catalogue::{BUILT_IN, CATALOGUE};
pub use self::make::{IndexSettings, MadeIndex};
pub use self::place::IndexPlace;
pub use self::read::{FoundSkill, is_index_source};
pub use self::searched::IndexSearch;

use super::error::SkillError;
use super::signature::{PACKAGE, SignatureError, Statement};
use kiso_plan::code::{Blame, ErrorCode};
use serde::{Deserialize, Serialize};

/// The form that this kiso reads and writes.
const FORM: u32 = 1;

/// Bytes of an index, and skills in it.
const MAX_INDEX: u64 = 8 << 20;
const MAX_SKILLS: usize = 10_000;

/// Characters of a text in it.
const MAX_TEXT: usize = 1_024;

/// Names of a package in command lines.
const MAX_COMMANDS: usize = 64;

/// The kind in the signed statement of an index.
const KIND: &str = "index";

/// The content of an index file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillIndex {
    pub form: u32,
    /// Its name; two indexes of one name and key are versions of the same.
    pub name: String,
    /// Grows with each version.
    pub serial: u64,
    /// When it counts no more, RFC 3339: whoever hosts an old one is found out.
    pub expires: String,
    pub skills: Vec<IndexedSkill>,
}

/// A skill in an index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexedSkill {
    pub name: String,
    pub version: String,
    /// "component", "agent-skill" or "package".
    pub kind: String,
    pub summary: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub license: Option<String>,
    /// Of a package, its names in command lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// The place of its file: a name beside the index, `https://…`, or `oci://…@sha256:…`.
    pub place: String,
    /// SHA-256 of the file; of a package of kiso, that of its component.
    pub sha256: String,
    /// Bytes of the file; of a package of kiso, of everything that is fetched.
    pub size: u64,
    /// The signature of its publisher, as `kiso skill sign` writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

impl IndexedSkill {
    /// Whether its name, its commands or its summary have all of these words.
    pub(super) fn has(&self, words: &[String]) -> bool {
        let text = format!("{} {} {}", self.name, self.commands.join(" "), self.summary).to_lowercase();
        words.iter().all(|word| text.contains(&word.to_lowercase()))
    }
}

/// Why an index, or what it names, is not taken.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    #[error(
        "{text:?} is not an index: {why}; write \"https://HOST/index.json#KEY\", or a path of this machine with #KEY behind it"
    )]
    Place { text: String, why: String },
    #[error("the index {at} cannot be read: {why}")]
    Unreachable { at: String, why: String },
    #[error("the index {at} has no signature beside it ({why}), so it could be anybody's")]
    Unsigned { at: String, why: String },
    #[error("the index {at} is signed by {is}, and not by {wanted}, which config.toml names for it")]
    WrongKey { at: String, is: String, wanted: String },
    #[error("the index {at} is not the one that its key has signed: somebody changed it, or its signature")]
    Tampered { at: String },
    #[error("the index {at} cannot be used: {why}")]
    Format { at: String, why: String },
    #[error("the index {at} was good until {expires}: whoever hosts it shows an old one, or its maker has stopped")]
    Expired { at: String, expires: String },
    #[error("the index {at} has the number {serial}, and {seen} was seen before: whoever hosts it shows an old one")]
    Stale { at: String, serial: u64, seen: u64 },
    #[error("the index {at} has the number {serial}, as one that was seen before and says something else")]
    Changed { at: String, serial: u64 },
    #[error("no index has a skill {name:.100?}; `kiso skill search` lists what there is")]
    Missing { name: String },
    #[error("no index is named in config.toml: [skills] index = [\"https://HOST/index.json#KEY\"]")]
    None,
    #[error("{name} is in several indexes: {at}; say which with --index PLACE")]
    Several { name: String, at: String },
    #[error(
        "{what} is not what the index says: it has the SHA-256 {is}, and {wanted} is wanted; nothing was installed"
    )]
    Digest { what: String, wanted: String, is: String },
}

impl IndexError {
    /// A stable word.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Place { .. } | Self::Format { .. } => ErrorCode::BadIndex,
            Self::Unreachable { .. } => ErrorCode::Unreachable,
            Self::Unsigned { .. } => ErrorCode::UnsignedIndex,
            Self::WrongKey { .. } => ErrorCode::WrongKey,
            Self::Tampered { .. } => ErrorCode::BadSignature,
            Self::Expired { .. } => ErrorCode::ExpiredIndex,
            Self::Stale { .. } => ErrorCode::StaleIndex,
            Self::Changed { .. } => ErrorCode::ChangedIndex,
            Self::Missing { .. } => ErrorCode::NotFound,
            Self::None => ErrorCode::NoIndex,
            Self::Several { .. } => ErrorCode::Several,
            Self::Digest { .. } => ErrorCode::Digest,
        }
    }

    /// As the error of a skill, or of an index.
    pub fn to_skill_error(&self, of: &str) -> SkillError {
        let blame = match self {
            Self::Unreachable { .. } => Blame::Host,
            Self::Unsigned { .. }
            | Self::WrongKey { .. }
            | Self::Tampered { .. }
            | Self::Expired { .. }
            | Self::Stale { .. }
            | Self::Changed { .. }
            | Self::Digest { .. } => Blame::Policy,
            Self::Place { .. } | Self::Format { .. } | Self::Missing { .. } | Self::None | Self::Several { .. } => {
                Blame::Caller
            }
        };
        SkillError::new(of, blame, self.code(), self.to_string())
    }
}

/// The statement that an index's signature covers: the digest of its bytes, and that they are an index.
pub fn index_statement(digest: &str) -> Statement {
    Statement {
        name: KIND.to_owned(),
        version: FORM.to_string(),
        kind: KIND,
        digest: digest.to_owned(),
        manifest: None,
    }
}

/// Why a signature does not count.
fn unsigned(at: &str, error: &SignatureError) -> IndexError {
    match error {
        SignatureError::Wrong { .. } => IndexError::Tampered { at: at.to_owned() },
        other => IndexError::Unsigned { at: at.to_owned(), why: other.to_string() },
    }
}
