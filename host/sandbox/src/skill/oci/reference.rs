//! `oci://HOST/NAME:TAG`: a place in a registry.

use super::OciError;
use std::fmt;

/// The default tag.
const LATEST: &str = "latest";

/// Characters of a name and of a tag: those of the specification.
const MAX_NAME: usize = 255;
const MAX_TAG: usize = 128;

/// A place in a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OciReference {
    /// With its port, unless that is the default.
    host: String,
    name: String,
    tag: Option<String>,
    /// "sha256:" and 64 hexadecimal digits.
    digest: Option<String>,
}

/// Whether a text is a valid tag.
pub(super) fn is_tag(tag: &str) -> bool {
    let all = tag.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'));
    all && !tag.is_empty() && tag.len() <= MAX_TAG && !tag.starts_with(['.', '-'])
}

impl OciReference {
    /// Whether a text has this form.
    pub fn is_one(text: &str) -> bool {
        text.starts_with("oci://")
    }

    pub fn parse(text: &str) -> Result<Self, OciError> {
        let refuse = |why| OciError::Reference { text: text.chars().take(200).collect(), why };
        let rest = text.strip_prefix("oci://").ok_or_else(|| refuse("it does not begin with oci://"))?;
        let (host, path) = rest.split_once('/').ok_or_else(|| refuse("it has no name behind the host"))?;
        let (path, digest) = match path.split_once('@') {
            Some((path, digest)) => (path, Some(digest.to_owned())),
            None => (path, None),
        };
        let (name, tag) = match path.rsplit_once(':') {
            Some((name, tag)) => (name, Some(tag.to_owned())),
            None => (path, None),
        };
        let is_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
        if host.is_empty() || host.len() > MAX_NAME || !host.chars().all(is_host) {
            return Err(refuse("its host is none"));
        }
        if host.parse::<http::uri::Authority>().is_err() {
            return Err(refuse("its host is none"));
        }
        let is_part = |part: &str| {
            let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-');
            let end = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
            part.chars().all(inner) && end(part.chars().next()) && end(part.chars().last()) && !part.contains("..")
        };
        if name.len() > MAX_NAME || !name.split('/').all(is_part) {
            return Err(refuse("its name is not made of lower-case letters, digits and . _ - between slashes"));
        }
        if !tag.as_deref().is_none_or(is_tag) {
            return Err(refuse("its tag is none"));
        }
        let is_digest = |digest: &String| {
            let hex = digest.strip_prefix("sha256:").unwrap_or_default();
            hex.len() == 64 && hex.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'))
        };
        if !digest.as_ref().is_none_or(is_digest) {
            return Err(refuse("its digest is not sha256: and 64 hexadecimal digits"));
        }
        Ok(Self { host: host.to_owned(), name: name.to_owned(), tag, digest })
    }

    pub fn host(&self) -> &str {
        &self.host
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The last part of the name.
    pub fn last(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or(&self.name)
    }

    pub fn digest(&self) -> Option<&str> {
        self.digest.as_deref()
    }

    /// The name to request a manifest by: the digest if there is one.
    pub fn wanted(&self) -> &str {
        self.digest.as_deref().unwrap_or_else(|| self.tag())
    }

    pub fn tag(&self) -> &str {
        self.tag.as_deref().unwrap_or(LATEST)
    }

    /// Registry and name, without the tag.
    pub fn source(&self) -> String {
        format!("oci://{}/{}", self.host, self.name)
    }

    /// The tag, if it names one.
    pub fn own_tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// The same name with another tag.
    pub fn tagged(&self, tag: &str) -> Self {
        Self { tag: Some(tag.to_owned()), digest: None, ..self.clone() }
    }

    /// The same place with this digest.
    pub fn with_digest(&self, digest: &str) -> Self {
        Self { digest: Some(digest.to_owned()), ..self.clone() }
    }
}

impl fmt::Display for OciReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source())?;
        if self.tag.is_some() || self.digest.is_none() {
            write!(f, ":{}", self.tag())?;
        }
        match &self.digest {
            Some(digest) => write!(f, "@{digest}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_and_written() {
        let digest = format!("sha256:{}", "0a".repeat(32));
        for (text, host, name, wanted) in [
            ("oci://ghcr.io/a/b:1.0", "ghcr.io", "a/b", "1.0"),
            ("oci://localhost:5000/a", "localhost:5000", "a", "latest"),
            (&format!("oci://h/a:1@{digest}"), "h", "a", &digest),
            (&format!("oci://[::1]:5000/a-b_c.d@{digest}"), "[::1]:5000", "a-b_c.d", &digest),
        ] {
            let read = OciReference::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!((read.host(), read.name(), read.wanted()), (host, name, wanted), "{text}");
            assert_eq!(OciReference::parse(&read.to_string()).unwrap().to_string(), read.to_string());
        }
        for text in [
            "ghcr.io/a:1",
            "oci://ghcr.io",
            "oci:///a",
            "oci://h/",
            "oci://h/A",
            "oci://h/../a",
            "oci://h/a//b",
            "oci://h/a:",
            "oci://h/a:b c",
            "oci://h/a@sha256:12",
            "oci://user:pw@h/a",
            "oci://h/a\r\nx: y",
            "oci://h/a?x",
        ] {
            assert!(OciReference::parse(text).is_err(), "{text}");
        }
    }
}
