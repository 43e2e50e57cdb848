//! Forms with files (`multipart/form-data`).

use crate::body::{Body, Piece};
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;

/// A field of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub name: String,
    pub content: Piece,
    /// The name of the file that it is.
    pub file_name: Option<String>,
    pub content_type: Option<String>,
    /// Further headers.
    pub headers: Vec<String>,
}

impl Part {
    pub fn text(name: &str, value: &str) -> Self {
        Self {
            name: name.to_owned(),
            content: Piece::Bytes(value.as_bytes().to_vec()),
            file_name: None,
            content_type: None,
            headers: Vec::new(),
        }
    }

    /// Its content is a file, or standard input for `-`.
    pub fn of_file(name: &str, path: &str) -> Self {
        let content = match path {
            "-" => Piece::Input,
            path => Piece::File { path: PathBuf::from(path), skip: 0 },
        };
        Self { content, ..Self::text(name, "") }
    }
}

/// The type of a file whose name says it, as curl guesses it.
pub fn type_of(name: &str) -> Option<&'static str> {
    let lower = name.to_ascii_lowercase();
    let known = [
        (".gif", "image/gif"),
        (".jpg", "image/jpeg"),
        (".jpeg", "image/jpeg"),
        (".png", "image/png"),
        (".svg", "image/svg+xml"),
        (".txt", "text/plain"),
        (".htm", "text/html"),
        (".html", "text/html"),
        (".pdf", "application/pdf"),
        (".xml", "application/xml"),
    ];
    known.iter().find(|(end, _)| lower.ends_with(end)).map(|(_, kind)| *kind)
}

/// A boundary that no content has by chance.
pub fn boundary() -> String {
    format!("------------------------{:016x}", RandomState::new().hash_one("boundary"))
}

/// The body of a form. With `escape`, quotes in names have a backslash, otherwise they are percent-encoded as browsers do.
pub fn body(parts: &[Part], boundary: &str, escape: bool) -> Body {
    let quoted = |text: &str| match escape {
        true => text.replace('\\', "\\\\").replace('"', "\\\""),
        false => text.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A"),
    };
    let mut pieces = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let mut head = format!(
            "{}--{boundary}\r\nContent-Disposition: form-data; name=\"{}\"",
            if at > 0 { "\r\n" } else { "" },
            quoted(&part.name)
        );
        if let Some(name) = &part.file_name {
            head.push_str(&format!("; filename=\"{}\"", quoted(name)));
        }
        if let Some(kind) = &part.content_type {
            head.push_str(&format!("\r\nContent-Type: {kind}"));
        }
        for header in &part.headers {
            head.push_str(&format!("\r\n{header}"));
        }
        head.push_str("\r\n\r\n");
        pieces.push(Piece::Bytes(head.into_bytes()));
        pieces.push(part.content.clone());
    }
    pieces.push(Piece::Bytes(format!("\r\n--{boundary}--\r\n").into_bytes()));
    Body { pieces }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_written_as_browsers_do() {
        let file =
            Part { file_name: Some("a\"b".into()), content_type: Some("x/y".into()), ..Part::text("f", "content") };
        let body = body(&[Part::text("n\r\n", "1"), file], "B", false);
        let mut all = Vec::new();
        body.read(&mut |part| {
            all.extend_from_slice(part);
            true
        })
        .unwrap();
        let expected = "--B\r\nContent-Disposition: form-data; name=\"n%0D%0A\"\r\n\r\n1\r\n--B\r\nContent-Disposition: form-data; \
                        name=\"f\"; filename=\"a%22b\"\r\nContent-Type: x/y\r\n\r\ncontent\r\n--B--\r\n";
        assert_eq!(String::from_utf8(all).unwrap(), expected);
        assert_eq!((type_of("A.PNG"), type_of("x")), (Some("image/png"), None));
        assert_ne!(boundary(), boundary());
    }
}
