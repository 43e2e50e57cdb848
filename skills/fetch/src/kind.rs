//! The type of a response, by its content type; by its first bytes where that says nothing.

use std::fmt;

/// The type of a response.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    pub shape: Shape,
    /// Media type without parameters, in lower case.
    media_type: String,
    /// Charset that the header named.
    charset: Option<String>,
}

/// How an answer can be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Html,
    /// Text that is shown as it is: plain, JSON, XML, CSV, source code.
    Text,
    Binary,
}

/// Types outside `text/*` that are text.
const TEXT_TYPES: [&str; 11] = [
    "application/json",
    "application/x-ndjson",
    "application/jsonl",
    "application/xml",
    "application/javascript",
    "application/ecmascript",
    "application/yaml",
    "application/x-yaml",
    "application/toml",
    "application/sql",
    "application/x-sh",
];

impl Kind {
    /// From the header `content-type`, and from the body where that is missing or says nothing.
    pub fn detect(content_type: Option<&str>, body: &[u8]) -> Self {
        let mut parts = content_type.unwrap_or_default().split(';');
        let media_type = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
        let charset = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            let value = value.trim().trim_matches(['"', '\'']);
            (name.trim().eq_ignore_ascii_case("charset") && !value.is_empty()).then(|| value.to_owned())
        });
        let shape = match media_type.as_str() {
            "text/html" | "application/xhtml+xml" => Shape::Html,
            "" | "application/octet-stream" | "application/unknown" | "*/*" => Self::sniff(body),
            t if t.starts_with("text/") || t.ends_with("+json") || t.ends_with("+xml") => Shape::Text,
            t if TEXT_TYPES.contains(&t) => Shape::Text,
            _ => Shape::Binary,
        };
        Self { shape, media_type, charset }
    }

    fn sniff(body: &[u8]) -> Shape {
        let head = &body[..body.len().min(1024)];
        let start =
            String::from_utf8_lossy(head).trim_start_matches(['\u{feff}', ' ', '\n', '\r', '\t']).to_lowercase();
        match std::str::from_utf8(body) {
            _ if start.starts_with("<!doctype html") || start.starts_with("<html") => Shape::Html,
            Ok(_) if !body.contains(&0) => Shape::Text,
            _ => Shape::Binary,
        }
    }

    /// The charset that the header names, or an HTML page in its first 1,024 bytes (as the HTML standard looks for it).
    pub fn charset(&self, body: &[u8]) -> Option<String> {
        if self.charset.is_some() || self.shape != Shape::Html {
            return self.charset.clone();
        }
        let head = String::from_utf8_lossy(&body[..body.len().min(1024)]).to_ascii_lowercase();
        let (_, rest) = head.split_once("charset=")?;
        let rest = rest.trim_start_matches(['"', '\'', ' ']);
        let end = rest.find(['"', '\'', ' ', '>', ';', '/']).unwrap_or(rest.len());
        (end > 0).then(|| rest[..end].to_owned())
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.media_type.as_str(), self.shape) {
            ("", Shape::Html) => "HTML",
            ("", Shape::Text) => "text",
            ("", Shape::Binary) => "of unknown type",
            (named, _) => named,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_decides_and_the_body_where_it_does_not() {
        let cases: [(Option<&str>, &[u8], Shape); 9] = [
            (Some("text/html; charset=utf-8"), b"x", Shape::Html),
            (Some("Text/HTML"), b"x", Shape::Html),
            (Some("application/ld+json"), b"{}", Shape::Text),
            (Some("image/svg+xml"), b"<svg/>", Shape::Text),
            (Some("image/png"), b"\x89PNG", Shape::Binary),
            (None, b"\n <!DOCTYPE html><p>", Shape::Html),
            (None, b"plain", Shape::Text),
            (Some("application/octet-stream"), b"a\0b", Shape::Binary),
            (None, b"\xff\xd8\xff", Shape::Binary),
        ];
        for (header, body, shape) in cases {
            assert_eq!(Kind::detect(header, body).shape, shape, "{header:?}");
        }
    }

    #[test]
    fn a_charset_is_found_in_header_and_page() {
        let charset = |header, body: &str| Kind::detect(Some(header), body.as_bytes()).charset(body.as_bytes());
        assert_eq!(charset("text/html; charset=\"ISO-8859-1\"", "").as_deref(), Some("ISO-8859-1"));
        assert_eq!(charset("text/html", "<meta charset=latin1>").as_deref(), Some("latin1"));
        let old = "<meta http-equiv='Content-Type' content='text/html; charset=windows-1252'>";
        assert_eq!(charset("text/html", old).as_deref(), Some("windows-1252"));
        assert_eq!(charset("text/plain", "charset=latin1"), None);
    }
}
