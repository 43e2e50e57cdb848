//! The publisher of a signed skill: the keys that an administrator trusts, and the key that a skill is pinned to.
//!
//! The first signature by a trusted key pins the skill to that key. From then on, no unsigned file and no file that another
//! trusted key has signed can replace it. To replace it all the same, remove the skill first.

use super::Skills;
use super::error::SkillError;
use super::signature::{self, MAX_FILE, PublisherKey, Statement};
use kiso_plan::code::{Blame, ErrorCode};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Keys that a home trusts, at most.
const MAX_KEYS: usize = 1_000;

/// Characters of a key's label.
const MAX_LABEL: usize = 100;

/// A trusted key, and the local label of its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedKey {
    pub key: PublisherKey,
    pub label: String,
}

/// The result of checking the signature beside a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct SignatureCheck {
    /// The key that signed it, if that is trusted: a line of base64.
    pub by: Option<String>,
    /// The reason why an existing signature does not count.
    pub warning: Option<String>,
}

impl Skills {
    /// The trusted keys, in the order in which they were added.
    pub fn trusted_keys(&self) -> Result<Vec<TrustedKey>, SkillError> {
        let path = self.home().trusted_keys_path();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(SkillError::host("trust", format!("{}: {error}", path.display()))),
        };
        let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
        let read = |line: &str| {
            let (key, label) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
            let key = PublisherKey::read(key)
                .map_err(|error| SkillError::host("trust", format!("{}: {key}: {error}", path.display())))?;
            Ok(TrustedKey { key, label: label.trim().to_owned() })
        };
        lines.map(read).collect()
    }

    /// Trusts a key. If it is trusted already, changes its label.
    pub fn trust(&self, key: PublisherKey, label: &str) -> Result<(), SkillError> {
        let refuse = |message: String| SkillError::new("trust", Blame::Caller, ErrorCode::BadArgs, message);
        if label.chars().count() > MAX_LABEL || label.chars().any(char::is_control) {
            return Err(refuse(format!("a label has at most {MAX_LABEL} characters, and no line break")));
        }
        let mut keys = self.trusted_keys()?;
        // The owner of a key chooses its number, so two keys can have the same one.
        if keys.iter().any(|known| known.key.id == key.id && known.key.text != key.text) {
            return Err(refuse(format!("another key with the number {} is trusted already", key.id)));
        }
        keys.retain(|known| known.key != key);
        if keys.len() >= MAX_KEYS {
            return Err(refuse(format!(
                "{MAX_KEYS} keys are trusted, and no more can be; `kiso skill trust remove` removes one"
            )));
        }
        keys.push(TrustedKey { key, label: label.to_owned() });
        self.write_trusted(&keys)
    }

    /// Stops trusting a key, by its number or label. Installed skills stay pinned to it.
    pub fn distrust(&self, wanted: &str) -> Result<TrustedKey, SkillError> {
        let mut keys = self.trusted_keys()?;
        let is = |known: &TrustedKey| {
            known.key.id.to_string().eq_ignore_ascii_case(wanted) || known.key.text == wanted || known.label == wanted
        };
        let found = keys.iter().position(is).ok_or_else(|| {
            let message =
                format!("no trusted key has the number or label {wanted:.100?}; `kiso skill trust list` shows them");
            SkillError::new("trust", Blame::Caller, ErrorCode::NotFound, message)
        })?;
        let gone = keys.remove(found);
        self.write_trusted(&keys)?;
        Ok(gone)
    }

    fn write_trusted(&self, keys: &[TrustedKey]) -> Result<(), SkillError> {
        let head = "# Keys of publishers whose signatures count. `kiso skill trust` changes this file.\n".to_owned();
        let text = keys
            .iter()
            .fold(head, |text, known| text + format!("{} {}", known.key.text, known.label).trim_end() + "\n");
        let path = self.home().trusted_keys_path();
        self.home().write_atomic(&path, text.as_bytes()).map_err(|error| SkillError::host("trust", error))
    }

    /// Checks the signature beside a file. A wrong signature is an error: somebody changed something.
    pub(super) fn signed_beside(&self, file: &Path, statement: &Statement) -> Result<SignatureCheck, SkillError> {
        let place = signature_of(file);
        let mut text = String::new();
        match fs::File::open(&place).and_then(|file| file.take(MAX_FILE).read_to_string(&mut text)) {
            Ok(_) => self.signed(&text, statement),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(SignatureCheck::default()),
            Err(error) => {
                Err(refused(&statement.name, ErrorCode::BadSignature, format!("{}: {error}", place.display())))
            }
        }
    }

    /// The same for the text of a signature.
    pub(super) fn signed(&self, text: &str, statement: &Statement) -> Result<SignatureCheck, SkillError> {
        let bad =
            |error: signature::SignatureError| refused(&statement.name, ErrorCode::BadSignature, error.to_string());
        let id = signature::claimed_by(text).map_err(bad)?;
        let Some(known) = self.trusted_keys()?.into_iter().find(|known| known.key.id == id) else {
            let warning = format!(
                "it is signed by {id}, which is not trusted, so the signature does not count; `kiso skill trust add KEY` trusts it"
            );
            return Ok(SignatureCheck { by: None, warning: Some(warning) });
        };
        known.key.verify(statement, text).map_err(bad)?;
        Ok(SignatureCheck { by: Some(known.key.text), warning: None })
    }

    /// Checks whether a file with this signature may replace the skill that is pinned to `old`.
    pub(super) fn check_publisher(
        &self,
        name: &str,
        old: Option<&str>,
        signed: &SignatureCheck,
    ) -> Result<(), SkillError> {
        let id = |text: &str| PublisherKey::read(text).map_or_else(|_| text.to_owned(), |key| key.id.to_string());
        if let Some(old) = old
            && signed.by.as_deref() != Some(old)
        {
            let is = match (&signed.by, &signed.warning) {
                (Some(by), _) => format!("by {}", id(by)),
                (None, Some(warning)) => format!("by no key that counts ({warning})"),
                (None, None) => "by nobody".to_owned(),
            };
            let message = format!(
                "{name} is pinned to the key {}, which signed it first, and this one is signed {is}; nothing changed. If it is right \
                 all the same: `kiso skill remove {name}`, and add it again",
                id(old)
            );
            return Err(refused(name, ErrorCode::OtherPublisher, message));
        }
        if self.config().skills.require_signature && signed.by.is_none() {
            let why = signed.warning.clone().unwrap_or_else(|| "it is not signed".to_owned());
            let message =
                format!("{why}, and [skills] require_signature in config.toml wants a signature by a trusted key");
            return Err(refused(name, ErrorCode::Unsigned, message));
        }
        Ok(())
    }
}

/// The path of the signature of a file or folder, beside it.
pub fn signature_of(file: &Path) -> PathBuf {
    let plain: PathBuf = file.components().collect();
    let mut name = plain.file_name().map(ToOwned::to_owned).unwrap_or_default();
    name.push(".");
    name.push(signature::ENDING);
    plain.with_file_name(name)
}

/// The local name of a key: its label, or its number.
pub fn local_name(keys: &[TrustedKey], text: &str) -> String {
    match keys.iter().find(|known| known.key.text == text) {
        Some(known) if !known.label.is_empty() => format!("{} ({})", known.label, known.key.id),
        Some(known) => known.key.id.to_string(),
        None => PublisherKey::read(text).map_or_else(|_| text.to_owned(), |key| format!("{} (not trusted)", key.id)),
    }
}

fn refused(name: &str, code: ErrorCode, message: String) -> SkillError {
    SkillError::new(name, Blame::Policy, code, message)
}
