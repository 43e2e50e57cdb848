//! The source of a skill's code, for files without a signature: where the file came from.
//!
//! A name proves nothing. Another file of a skill's name gets its grant and its values only if that file comes from the same
//! source and is not older. Any other file begins with nothing, and a person is asked again.

use super::digest::Digest;
use std::cmp::Ordering;
use std::path::Path;

/// The source of a file: its path without links.
pub(super) fn of_file(path: &Path) -> std::io::Result<String> {
    Ok(format!("file:{}", path.canonicalize()?.display()))
}

/// The source of a file that a client sent. The client's source is not known, so every file has its own.
pub(super) fn of_upload(digest: &Digest) -> String {
    format!("upload:{digest}")
}

/// A source for people.
fn shown(source: Option<&str>) -> String {
    match source {
        None => "an unknown place".to_owned(),
        Some(source) if source.starts_with("upload:") => "an upload".to_owned(),
        // For a registry, the whole text is the name.
        Some(source) => source.strip_prefix("file:").unwrap_or(source).to_owned(),
    }
}

/// The properties of a file that are known before anything in it is trusted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Identity<'a> {
    pub version: &'a str,
    pub digest: &'a str,
    /// `None` if an older kiso did not record it.
    pub source: Option<&'a str>,
}

/// The reason why a new file is not accepted as the next version of the installed one; `None` if it is.
pub(super) fn doubt(name: &str, old: Identity<'_>, new: Identity<'_>) -> Option<String> {
    let (was, is) = (shown(old.source), shown(new.source));
    if old.digest != new.digest && (old.source.is_none() || old.source != new.source) {
        return Some(format!(
            "{name} {} was installed from {was}, and this file comes from {is}: it may be another publisher's",
            old.version
        ));
    }
    is_lower(new.version, old.version).then(|| {
        format!("{name} {} is installed, and this file is version {}, which is lower", old.version, new.version)
    })
}

/// Compares two versions. A text that is not a version is equal to any.
pub(super) fn compare(one: &str, other: &str) -> Ordering {
    match (parsed(one), parsed(other)) {
        (Some(one), Some(other)) => one.cmp_precedence(&other),
        _ => Ordering::Equal,
    }
}

/// The version in a tag, if it can be compared. A `v` before it is left out.
pub(super) fn of_tag(tag: &str) -> Option<&str> {
    let version = tag.strip_prefix('v').unwrap_or(tag);
    parsed(version).map(|_| version)
}

/// Whether a version is lower than another one. If the versions cannot be compared, a different one counts as lower; nothing is
/// lower than a missing version.
pub(super) fn is_lower(new: &str, old: &str) -> bool {
    match (parsed(new), parsed(old)) {
        (Some(new), Some(old)) => new.cmp_precedence(&old) == Ordering::Less,
        _ => new != old && !old.is_empty(),
    }
}

/// Parses a version, also one with fewer than three numbers.
fn parsed(version: &str) -> Option<semver::Version> {
    let numbers = version.split(['-', '+']).next().unwrap_or_default();
    let missing = 3usize.checked_sub(numbers.split('.').count())?;
    let (numbers, rest) = version.split_at(numbers.len());
    semver::Version::parse(&format!("{numbers}{}{rest}", ".0".repeat(missing))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        let table = [
            ("0.2.0", "0.1.0", false),
            ("0.1.0", "0.1.0", false),
            ("0.1.0", "0.2.0", true),
            ("1.10.0", "1.9.0", false),
            ("1.9", "1.10.0", true),
            ("2", "1.9.3", false),
            ("1.0.0-rc.1", "1.0.0", true),
            ("1.0.0+b", "1.0.0+a", false),
            ("spring", "spring", false),
            ("summer", "spring", true),
            ("1.0.0.1", "1.0.0", true),
            ("1.0.0", "", false),
            ("", "1.0.0", true),
        ];
        for (new, old, expected) in table {
            assert_eq!(is_lower(new, old), expected, "{new} after {old}");
        }
    }

    #[test]
    fn only_the_same_source_goes_on() {
        let (a, b) = (Some("file:/a.wasm"), Some("file:/b.wasm"));
        let id = |digest, source| Identity { version: "1.0.0", digest, source };
        let doubted = |old, new| doubt("x", old, new).is_some();
        assert!(!doubted(id("1", a), id("2", a)), "built again");
        assert!(!doubted(id("1", a), id("1", b)), "the very same file");
        assert!(doubted(id("1", a), id("2", b)));
        assert!(doubted(id("1", None), id("2", a)) && doubted(id("1", None), id("2", None)), "nobody knows");
        let upload = |digest: &str| of_upload(&Digest::compute(digest.as_bytes()));
        let (one, two) = (upload("1"), upload("2"));
        assert!(
            doubted(id("1", Some(&one)), id("2", Some(&two))) && !doubted(id("1", Some(&one)), id("1", Some(&one)))
        );
    }
}
