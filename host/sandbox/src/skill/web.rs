//! Skills at addresses: `https://HOST/NAME.wasm` or `.zip`, with a known digest. The server is not trusted.

use super::Skills;
use super::digest::Digest;
use super::error::SkillError;
use super::fetched::FetchedFile;
use super::loader::MAX_WASM_BYTES;
use super::signature::{ENDING, MAX_FILE};
use crate::package::{DownloadError, download};
use kiso_plan::code::{Blame, ErrorCode};

/// The reason why an address cannot be fetched.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    #[error("{text:?} is not an address of a skill: {why}")]
    Address { text: String, why: &'static str },
    #[error(
        "what is at {url} could be anything: give its digest with --sha256 DIGEST, or behind the address as #sha256=DIGEST"
    )]
    NoDigest { url: String },
    #[error("{0:?} is not a SHA-256: 64 hexadecimal digits")]
    BadDigest(String),
    #[error("what is at {url} has the SHA-256 {is}, and {wanted} is wanted; nothing was installed")]
    Digest { url: String, wanted: String, is: String },
    #[error(transparent)]
    Download(#[from] DownloadError),
}

impl WebError {
    /// A stable word.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Address { .. } => ErrorCode::BadAddress,
            Self::NoDigest { .. } => ErrorCode::NoDigest,
            Self::BadDigest(_) => ErrorCode::BadArgs,
            Self::Digest { .. } => ErrorCode::Digest,
            Self::Download(_) => ErrorCode::Unreachable,
        }
    }

    pub(super) fn to_skill_error(&self, of: &str) -> SkillError {
        let blame = match self {
            Self::NoDigest { .. } | Self::Digest { .. } => Blame::Policy,
            Self::Download(_) => Blame::Host,
            Self::Address { .. } | Self::BadDigest(_) => Blame::Caller,
        };
        SkillError::new(of, blame, self.code(), self.to_string())
    }
}

/// An address, and the digest of its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebPlace {
    url: String,
    sha256: Option<String>,
}

impl WebPlace {
    /// Whether a text has this form.
    pub fn is_one(text: &str) -> bool {
        text.starts_with("https://") || text.starts_with("http://")
    }

    /// Parses `https://…`, optionally followed by `#sha256=…`. `http://` is only for this machine.
    pub fn parse(text: &str) -> Result<Self, WebError> {
        let (url, fragment) = text.split_once('#').map_or((text, None), |(url, fragment)| (url, Some(fragment)));
        let refuse = |why| Err(WebError::Address { text: text.chars().take(200).collect(), why });
        if url.len() > 2_000 || url.chars().any(|c| c.is_control() || c == ' ') {
            return refuse("it is too long, or has a space or a line break in it");
        }
        if !is_encrypted_or_here(url) {
            return refuse("it begins with https:// (or http:// for this machine itself)");
        }
        let sha256 = match fragment.map(|fragment| fragment.strip_prefix("sha256=")) {
            None => None,
            Some(Some(digest)) => Some(checked_digest(digest)?),
            Some(None) => return refuse("behind its # stands something else than sha256="),
        };
        Ok(Self { url: url.to_owned(), sha256 })
    }

    /// Replaces the digest.
    pub fn with_digest(self, sha256: Option<&str>) -> Result<Self, WebError> {
        match sha256 {
            None => Ok(self),
            Some(digest) => Ok(Self { sha256: Some(checked_digest(digest)?), ..self }),
        }
    }

    /// The address, which is the source of the skill.
    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn has_digest(&self) -> bool {
        self.sha256.is_some()
    }

    /// Removes the digest, to fetch the present content.
    pub fn as_it_is_now(self) -> Self {
        Self { sha256: None, ..self }
    }

    /// The last part of the address, as the name of a file.
    fn file_name(&self, bytes: &[u8]) -> String {
        let path = self.url.split('?').next().unwrap_or_default();
        let last = path.rsplit('/').next().unwrap_or_default();
        let plain: String =
            last.chars().filter(|c| c.is_ascii_alphanumeric() || "._-".contains(*c)).take(100).collect();
        let stem = plain.trim_start_matches('.');
        let ending = if bytes.starts_with(b"PK") { ".zip" } else { ".wasm" };
        let known = [".zip", ".skill", ".wasm"].iter().any(|known| stem.to_ascii_lowercase().ends_with(known));
        match (stem.is_empty(), known) {
            (true, _) => format!("skill{ending}"),
            (false, true) => stem.to_owned(),
            (false, false) => format!("{stem}{ending}"),
        }
    }
}

/// Whether nobody can change a response of this address on its way.
pub(super) fn is_encrypted_or_here(url: &str) -> bool {
    if url.starts_with("https://") {
        return true;
    }
    let Some(rest) = url.strip_prefix("http://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let name = match authority.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => authority,
    };
    matches!(name, "localhost" | "127.0.0.1" | "[::1]")
}

/// 64 hexadecimal digits in small letters.
pub(super) fn checked_digest(text: &str) -> Result<String, WebError> {
    let text = text.strip_prefix("sha256:").unwrap_or(text);
    if text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit()) {
        Ok(text.to_ascii_lowercase())
    } else {
        Err(WebError::BadDigest(text.chars().take(100).collect()))
    }
}

impl Skills {
    /// Fetches an address, with the signature beside it. Without a digest, any content is accepted.
    pub async fn fetch(
        &self,
        from: &WebPlace,
        progress: impl FnMut(u64, Option<u64>),
    ) -> Result<FetchedFile, SkillError> {
        let told = |error: WebError| error.to_skill_error(&from.url);
        let bytes = download(&from.url, MAX_WASM_BYTES, progress).await.map_err(|error| told(error.into()))?;
        let is = Digest::compute(&bytes).to_string();
        if let Some(wanted) = from.sha256.as_ref().filter(|wanted| **wanted != is) {
            return Err(told(WebError::Digest { url: from.url.clone(), wanted: wanted.clone(), is }));
        }
        // If the signature is missing or cannot be fetched, the file counts as unsigned.
        let signature = download(&beside(&from.url), MAX_FILE, |_, _| {}).await.ok();
        let signature = signature.and_then(|text| String::from_utf8(text).ok());
        // Many servers answer a missing file with a page.
        let signature = signature.filter(|text| super::signature::claimed_by(text).is_ok());
        let places = (from.url.clone(), format!("{}#sha256={is}", from.url));
        self.keep_fetched(&from.file_name(&bytes), &bytes, places, signature)
    }
}

/// The address of the signature.
fn beside(url: &str) -> String {
    match url.split_once('?') {
        Some((path, query)) => format!("{path}.{ENDING}?{query}"),
        None => format!("{url}.{ENDING}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_encryption_or_is_this_machine() {
        let digest = "0A".repeat(32);
        for (text, fits) in [
            ("https://example.org/a.zip", true),
            ("http://127.0.0.1:80/a.zip", true),
            ("http://[::1]:80/a.zip", true),
            ("http://localhost/a.zip", true),
            ("http://example.org/a.zip", false),
            ("http://127.0.0.1.example.org/a.zip", false),
            ("http://localhost@example.org/a.zip", false),
            ("ftp://example.org/a.zip", false),
            ("https://example.org/a b", false),
            (&format!("https://example.org/a.zip#sha256={digest}"), true),
            ("https://example.org/a.zip#sha256=12", false),
            ("https://example.org/a.zip#top", false),
        ] {
            assert_eq!(WebPlace::parse(text).is_ok(), fits, "{text}");
        }
        let place = WebPlace::parse(&format!("https://e.org/a#sha256={digest}")).unwrap();
        assert_eq!(place.sha256.as_deref(), Some("0a".repeat(32).as_str()));
    }

    #[test]
    fn a_file_is_named_by_its_address() {
        for (url, bytes, name) in [
            ("https://e.org/x/greet.zip?y=1", "PK", "greet.zip"),
            ("https://e.org/x/greet", "PK", "greet.zip"),
            ("https://e.org/x/greet", "\0asm", "greet.wasm"),
            ("https://e.org/x/../.greet", "\0asm", "greet.wasm"),
            ("https://e.org/", "\0asm", "skill.wasm"),
        ] {
            assert_eq!(WebPlace::parse(url).unwrap().file_name(bytes.as_bytes()), name, "{url}");
        }
        assert_eq!(beside("https://e.org/a.zip?b=c"), "https://e.org/a.zip.minisig?b=c");
    }
}
