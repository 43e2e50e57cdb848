//! Ranges and conditional requests for files (RFC 9110, sections 13 and 14).

use axum::http::{HeaderMap, HeaderName, header};
use std::os::unix::fs::MetadataExt;

/// The part of the file to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyRange {
    Whole,
    /// A range of bytes; both ends are inclusive.
    Part {
        first: u64,
        last: u64,
    },
    /// Nothing, because the client already has the file.
    Nothing,
    /// The range is outside of the file.
    Beyond,
}

/// Returns the entity tag of a file: its inode, length and modification time.
pub(super) fn tag(meta: &std::fs::Metadata) -> String {
    format!("\"{:x}-{:x}-{:x}.{:x}\"", meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec())
}

/// Returns the part of a file with this tag and length that a request asks for. An invalid `Range`, or one with several parts, is
/// ignored, as the standard allows.
pub(super) fn wanted(asked: &HeaderMap, tag: &str, length: u64) -> BodyRange {
    let text = |name: HeaderName| asked.get(name).and_then(|value| value.to_str().ok());
    if text(header::IF_NONE_MATCH).is_some_and(|known| is_among(tag, known)) {
        return BodyRange::Nothing;
    }
    // The file has changed, so the requested part does not belong to the client's version. Dates are too coarse to detect this.
    if text(header::IF_RANGE).is_some_and(|known| known.trim() != tag) {
        return BodyRange::Whole;
    }
    text(header::RANGE).and_then(|range| part(range, length)).unwrap_or(BodyRange::Whole)
}

/// Parses a range; `None` if it must be ignored.
fn part(range: &str, length: u64) -> Option<BodyRange> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let number = |text: &str| -> Option<Option<u64>> {
        let text = text.trim();
        match text.bytes().all(|byte| byte.is_ascii_digit()) {
            // Numbers that overflow are larger than any file.
            true if !text.is_empty() => Some(Some(text.parse().unwrap_or(u64::MAX))),
            true => Some(None),
            false => None,
        }
    };
    Some(match (number(first)?, number(last)?) {
        (Some(first), Some(last)) if last < first => return None,
        (Some(first), _) if first >= length => BodyRange::Beyond,
        (Some(first), last) => BodyRange::Part { first, last: last.unwrap_or(u64::MAX).min(length - 1) },
        (None, Some(0)) => BodyRange::Beyond,
        (None, Some(_)) if length == 0 => BodyRange::Beyond,
        (None, Some(count)) => BodyRange::Part { first: length.saturating_sub(count), last: length - 1 },
        (None, None) => return None,
    })
}

fn is_among(tag: &str, known: &str) -> bool {
    let mut tags = known.split(',').map(|known| known.trim().trim_start_matches("W/"));
    tags.any(|known| known == tag || known == "*")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requested(headers: &[(HeaderName, &str)], length: u64) -> BodyRange {
        wanted(&headers.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect(), "\"a\"", length)
    }

    #[test]
    fn one_part_is_given_and_what_is_odd_is_ignored() {
        let part = |first, last| BodyRange::Part { first, last };
        for (range, wanted) in [
            ("bytes=0-0", part(0, 0)),
            ("bytes=2-5", part(2, 5)),
            ("bytes=2-", part(2, 9)),
            ("bytes=2-99999999999999999999999", part(2, 9)),
            ("bytes=-3", part(7, 9)),
            ("bytes=-300", part(0, 9)),
            ("bytes=10-", BodyRange::Beyond),
            ("bytes=10-20", BodyRange::Beyond),
            ("bytes=99999999999999999999999-", BodyRange::Beyond),
            ("bytes=-0", BodyRange::Beyond),
            ("bytes=5-2", BodyRange::Whole),
            ("bytes=-", BodyRange::Whole),
            ("bytes=0-1,3-4", BodyRange::Whole),
            ("bytes=a-b", BodyRange::Whole),
            ("bytes=+1-2", BodyRange::Whole),
            ("lines=1-2", BodyRange::Whole),
            ("bytes 1-2", BodyRange::Whole),
        ] {
            assert_eq!(requested(&[(header::RANGE, range)], 10), wanted, "{range}");
        }
        assert_eq!(requested(&[(header::RANGE, "bytes=-3")], 0), BodyRange::Beyond);
        assert_eq!(requested(&[(header::RANGE, "bytes=0-")], 0), BodyRange::Beyond);
        assert_eq!(requested(&[], 0), BodyRange::Whole);
    }

    #[test]
    fn what_the_client_has_is_not_sent_again() {
        for known in ["\"a\"", "\"b\", \"a\"", "W/\"a\"", "*"] {
            assert_eq!(requested(&[(header::IF_NONE_MATCH, known)], 10), BodyRange::Nothing, "{known}");
        }
        assert_eq!(requested(&[(header::IF_NONE_MATCH, "\"b\"")], 10), BodyRange::Whole);
        let range = (header::RANGE, "bytes=1-2");
        let part = BodyRange::Part { first: 1, last: 2 };
        assert_eq!(requested(&[range.clone(), (header::IF_RANGE, "\"a\"")], 10), part);
        assert_eq!(requested(&[range.clone(), (header::IF_RANGE, "\"b\"")], 10), BodyRange::Whole);
        assert_eq!(requested(&[range, (header::IF_RANGE, "Sun, 06 Nov 1994 08:49:37 GMT")], 10), BodyRange::Whole);
    }
}
