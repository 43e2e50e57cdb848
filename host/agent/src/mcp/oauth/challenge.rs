//! Parses `WWW-Authenticate: Bearer …` of a refusal.

use http::HeaderMap;
use http::header::WWW_AUTHENTICATE;

/// Maximum size of the header in bytes.
const MAX_HEADER: usize = 8 << 10;

/// The server's requirements in a refusal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Challenge {
    /// Address of its metadata.
    pub resource_metadata: Option<String>,
    /// Scopes that the request needs.
    pub scope: Option<String>,
    pub error: Option<String>,
}

impl Challenge {
    /// Returns the first challenge of the kind Bearer.
    pub fn read(headers: &HeaderMap) -> Option<Challenge> {
        let values = headers.get_all(WWW_AUTHENTICATE).iter().filter(|value| value.len() <= MAX_HEADER);
        values.filter_map(|value| value.to_str().ok()).find_map(read)
    }
}

fn read(text: &str) -> Option<Challenge> {
    let mut found: Option<Challenge> = None;
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let end = rest.find(|c: char| c.is_whitespace() || matches!(c, '=' | ',')).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        match after.trim_start().strip_prefix('=') {
            // A parameter.
            Some(value) if !word.is_empty() => {
                let (value, after) = value_of(value.trim_start());
                if let Some(challenge) = &mut found {
                    let place = match word.to_ascii_lowercase().as_str() {
                        "resource_metadata" => Some(&mut challenge.resource_metadata),
                        "scope" => Some(&mut challenge.scope),
                        "error" => Some(&mut challenge.error),
                        _ => None,
                    };
                    // The first value is used.
                    place.map(|place| place.get_or_insert(value));
                }
                rest = after;
            }
            // The kind of a challenge.
            _ if !word.is_empty() => {
                if found.is_some() {
                    return found;
                }
                if word.eq_ignore_ascii_case("bearer") {
                    found = Some(Challenge::default());
                }
                rest = after;
            }
            _ => rest = after.get(1..).unwrap_or_default(),
        }
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
    }
    found
}

/// Parses a token or a quoted text; returns it and the rest.
fn value_of(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(|c: char| c.is_whitespace() || c == ',').unwrap_or(text.len());
        return (text[..end].to_owned(), &text[end..]);
    };
    let (mut value, mut escaped) = (String::new(), false);
    for (at, c) in quoted.char_indices() {
        match c {
            _ if std::mem::take(&mut escaped) => value.push(c),
            '\\' => escaped = true,
            '"' => return (value, &quoted[at + 1..]),
            c => value.push(c),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_is_found_among_others() {
        let of = |metadata: Option<&str>, scope: Option<&str>, error: Option<&str>| {
            let owned = |text: Option<&str>| text.map(str::to_owned);
            Some(Challenge { resource_metadata: owned(metadata), scope: owned(scope), error: owned(error) })
        };
        for (text, found) in [
            ("Bearer", of(None, None, None)),
            ("Basic realm=\"a, Bearer scope=x\"", None),
            ("Bearer resource_metadata=\"https://a/b\", scope=\"r w\"", of(Some("https://a/b"), Some("r w"), None)),
            ("Basic realm=x, bearer error = invalid_token", of(None, None, Some("invalid_token"))),
            ("Bearer scope=\"a\\\"b\", scope=c, Digest scope=d, error=e", of(None, Some("a\"b"), None)),
            ("Bearer scope=\"never ends", of(None, Some("never ends"), None)),
            ("=,=\"", None),
        ] {
            assert_eq!(read(text), found, "{text}");
        }
    }
}
