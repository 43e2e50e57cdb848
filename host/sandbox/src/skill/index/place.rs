//! The place and the key of an index: a line of `config.toml`.

use super::IndexError;
use crate::skill::signature::PublisherKey;
use crate::skill::web::is_encrypted_or_here;
use std::path::{Path, PathBuf};

/// The place of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexPlace {
    /// `https://…` (`http://…` for this machine itself), or an absolute path.
    pub at: String,
    /// The key that signs it.
    pub key: PublisherKey,
}

impl IndexPlace {
    /// Reads "PLACE#KEY".
    pub fn parse(text: &str) -> Result<Self, IndexError> {
        let refuse = |why: &str| IndexError::Place { text: text.chars().take(200).collect(), why: why.to_owned() };
        let (at, key) = text.rsplit_once('#').ok_or_else(|| refuse("it names no key"))?;
        let key = PublisherKey::read(key).map_err(|error| refuse(&error.to_string()))?;
        if !is_encrypted_or_here(at) && !Path::new(at).is_absolute() {
            return Err(refuse(
                "it is neither an address with https:// (http:// for this machine itself) nor an absolute path",
            ));
        }
        if at.contains(['?', '#']) && !Path::new(at).is_absolute() {
            return Err(refuse("an address of an index has nothing behind a ? or #"));
        }
        Ok(Self { at: at.to_owned(), key })
    }

    /// The file, if it is on this machine.
    pub fn file(&self) -> Option<PathBuf> {
        Some(PathBuf::from(&self.at)).filter(|path| path.is_absolute())
    }

    /// The source that identifies a skill of this index, wherever the index is hosted.
    pub fn source(&self, name: &str) -> String {
        format!("{SCHEME}{}/{name}", self.key.text)
    }

    /// The full address of an entry's place. A place beside the index must stay below it.
    pub fn resolve(&self, place: &str) -> Result<String, IndexError> {
        if place.starts_with("oci://") || place.starts_with("https://") {
            return Ok(place.to_owned());
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-+/".contains(c);
        let is_part = |part: &str| !matches!(part, "" | "." | "..");
        if place.len() > 500 || !place.chars().all(plain) || !place.split('/').all(is_part) {
            let why = format!("{:?} is not a place of a skill", place.chars().take(100).collect::<String>());
            return Err(IndexError::Format { at: self.at.clone(), why });
        }
        Ok(match self.file() {
            Some(file) => file.with_file_name(place).display().to_string(),
            None => {
                let dir = self.at.rsplit_once('/').map_or(self.at.as_str(), |(dir, _)| dir);
                format!("{dir}/{place}")
            }
        })
    }
}

/// The beginning of the source of a skill of an index, before the key.
pub(super) const SCHEME: &str = "index:";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skill::signature::SecretKey;

    #[test]
    fn a_place_has_a_key_and_what_lies_beside_it_stays_there() {
        let key = SecretKey::generate().unwrap().public().text;
        let parse = |at: &str| IndexPlace::parse(&format!("{at}#{key}"));
        let web = parse("https://example.org/skills/index.json").unwrap();
        assert_eq!(web.resolve("a/b-1.0.wasm").unwrap(), "https://example.org/skills/a/b-1.0.wasm");
        let file = parse("/srv/my skills/index.json").unwrap();
        assert_eq!(file.resolve("b.zip").unwrap(), "/srv/my skills/b.zip");
        assert_eq!(web.resolve("oci://h/a@sha256:1").unwrap(), "oci://h/a@sha256:1");
        for place in ["../b.zip", "/etc/passwd", "a//b", "a/../../b", "http://e.org/b.zip", "a?b", "", "a\nb"] {
            assert!(web.resolve(place).is_err() && file.resolve(place).is_err(), "{place:?}");
        }
        for at in
            ["http://example.org/i.json", "skills/index.json", "https://e.org/i.json?x", "https://e.org/i.json#x", ""]
        {
            assert!(parse(at).is_err(), "{at:?}");
        }
        assert!(IndexPlace::parse("https://example.org/i.json").is_err());
        assert!(IndexPlace::parse("https://example.org/i.json#RWQnokey").is_err());
    }
}
