//! Texts: their encoding, the ends of their lines, and what is written in them.

use std::borrow::Cow;

use super::Kind;
use crate::jq;

/// A longer line is worth a word.
const LONG_LINE: usize = 300;

/// Lines of a table that are compared.
const TABLE_LINES: usize = 10;

/// How a text is written down.
struct Encoding<'a> {
    words: &'static str,
    charset: &'static str,
    text: Cow<'a, str>,
}

pub fn kind(bytes: &[u8], whole: bool) -> Option<Kind> {
    let encoding = encoding(bytes, whole)?;
    let text = encoding.text.as_ref();
    let (what, mime) = content(text, whole);
    let words = match what {
        // Formats of data say nothing of their encoding.
        Some(format @ ("JSON text data" | "New Line Delimited JSON text data" | "CSV text")) => format.to_owned(),
        Some("SVG Scalable Vector Graphics image") => "SVG Scalable Vector Graphics image".to_owned(),
        what => {
            let what = what.map(|what| format!("{what}, ")).unwrap_or_default();
            let executable = if text.starts_with("#!") { " executable" } else { "" };
            format!("{what}{} text{executable}{}", encoding.words, lines(text))
        }
    };
    Some(Kind { words, mime, charset: encoding.charset })
}

/// The encoding of a text; `None` if the bytes are not a text.
fn encoding(bytes: &[u8], whole: bool) -> Option<Encoding<'_>> {
    for (mark, little, words, charset) in [
        (&b"\xff\xfe"[..], true, "Unicode text, UTF-16, little-endian", "utf-16le"),
        (b"\xfe\xff", false, "Unicode text, UTF-16, big-endian", "utf-16be"),
    ] {
        if let Some(rest) = bytes.strip_prefix(mark) {
            let (pairs, _) = rest.as_chunks::<2>();
            let unit = |pair: &[u8; 2]| if little { u16::from_le_bytes(*pair) } else { u16::from_be_bytes(*pair) };
            let text: Result<String, _> = char::decode_utf16(pairs.iter().map(unit)).collect();
            return text.ok().map(|text| Encoding { words, charset, text: text.into() });
        }
    }
    if bytes.iter().any(|byte| is_binary(*byte)) {
        return None;
    }
    if bytes.is_ascii() {
        return Some(Encoding { words: "ASCII", charset: "us-ascii", text: String::from_utf8_lossy(bytes) });
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => Some(text),
        // The look may end within a character.
        Err(e) if !whole && e.error_len().is_none() => std::str::from_utf8(&bytes[..e.valid_up_to()]).ok(),
        Err(_) => None,
    };
    if let Some(text) = text {
        return Some(match text.strip_prefix('\u{feff}') {
            Some(text) => Encoding { words: "Unicode text, UTF-8 (with BOM)", charset: "utf-8", text: text.into() },
            None => Encoding { words: "Unicode text, UTF-8", charset: "utf-8", text: text.into() },
        });
    }
    let text: String = bytes.iter().map(|byte| *byte as char).collect();
    let (words, charset) = match bytes.iter().any(|byte| (0x80..0xa0).contains(byte)) {
        true => ("Non-ISO extended-ASCII", "unknown-8bit"),
        false => ("ISO-8859", "iso-8859-1"),
    };
    Some(Encoding { words, charset, text: text.into() })
}

/// A byte that no text has.
fn is_binary(byte: u8) -> bool {
    matches!(byte, 0..=6 | 14..=26 | 28..=31 | 127)
}

/// Describes unusual line ends and long lines.
fn lines(text: &str) -> String {
    let mut words = String::new();
    let longest = text.split(['\n', '\r']).map(str::len).max().unwrap_or_default();
    if longest > LONG_LINE {
        words.push_str(&format!(", with very long lines ({longest})"));
    }
    let (mut crlf, mut lf, mut cr) = (false, false, false);
    let mut bytes = text.bytes().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\r' if bytes.next_if_eq(&b'\n').is_some() => crlf = true,
            b'\r' => cr = true,
            b'\n' => lf = true,
            _ => {}
        }
    }
    let ends: Vec<&str> =
        [(crlf, "CRLF"), (cr, "CR"), (lf, "LF")].iter().filter(|end| end.0).map(|end| end.1).collect();
    match ends.as_slice() {
        [] => words.push_str(", with no line terminators"),
        ["LF"] => {}
        ends => words.push_str(&format!(", with {} line terminators", ends.join(", "))),
    }
    if text.contains('\x1b') {
        words.push_str(", with escape sequences");
    }
    words
}

/// The format of a text and its media type.
fn content(text: &str, whole: bool) -> (Option<&'static str>, &'static str) {
    let start = text.trim_start();
    if let Some(found) = script(text) {
        return found;
    }
    let lower = start.get(..start.floor_char_boundary(1 << 10)).unwrap_or_default().to_ascii_lowercase();
    if lower.starts_with("<?xml") || lower.starts_with("<svg") {
        return match lower.contains("<svg") {
            true => (Some("SVG Scalable Vector Graphics image"), "image/svg+xml"),
            false => (Some("XML 1.0 document"), "text/xml"),
        };
    }
    if ["<!doctype html", "<html", "<head", "<body"].iter().any(|tag| lower.starts_with(tag)) {
        return (Some("HTML document"), "text/html");
    }
    if whole && start.starts_with(['{', '[']) {
        match jq::count(text.as_bytes()) {
            Some(1) => return (Some("JSON text data"), "application/json"),
            Some(values) if values == text.lines().filter(|line| !line.trim().is_empty()).count() => {
                return (Some("New Line Delimited JSON text data"), "application/x-ndjson");
            }
            _ => {}
        }
    }
    if text.starts_with("--- ") && text.contains("\n+++ ") && text.contains("\n@@ ") || text.starts_with("diff --git ")
    {
        return (Some("unified diff output"), "text/x-diff");
    }
    for (label, words, mime) in [
        ("-----BEGIN CERTIFICATE-----", "PEM certificate", "text/plain"),
        ("-----BEGIN RSA PRIVATE KEY-----", "PEM RSA private key", "text/plain"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----", "OpenSSH private key", "text/plain"),
        ("{\\rtf", "Rich Text Format data", "text/rtf"),
        ("%!PS", "PostScript document", "application/postscript"),
        ("BEGIN:VCALENDAR", "vCalendar calendar file", "text/calendar"),
        ("BEGIN:VCARD", "vCard visiting card", "text/vcard"),
    ] {
        if text.starts_with(label) {
            return (Some(words), mime);
        }
    }
    if text.lines().take(200).any(|line| line.starts_with("#include <") || line.starts_with("#include \"")) {
        return (Some("C source"), "text/x-c");
    }
    if is_table(text) {
        return (Some("CSV text"), "text/csv");
    }
    (None, "text/plain")
}

/// The interpreter of a text that begins with `#!`.
fn script(text: &str) -> Option<(Option<&'static str>, &'static str)> {
    let line = text.strip_prefix("#!")?.lines().next()?;
    let mut words = line.split_whitespace().map(|word| word.rsplit('/').next().unwrap_or_default());
    let name = words.find(|word| *word != "env" && !word.starts_with('-'))?;
    Some(match name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.') {
        "sh" | "dash" => (Some("POSIX shell script"), "text/x-shellscript"),
        "bash" => (Some("Bourne-Again shell script"), "text/x-shellscript"),
        "zsh" => (Some("Paul Falstad's zsh script"), "text/x-shellscript"),
        "python" => (Some("Python script"), "text/x-script.python"),
        "node" | "js" => (Some("Node.js script"), "application/javascript"),
        "perl" => (Some("Perl script text"), "text/x-perl"),
        "ruby" => (Some("Ruby script"), "text/x-ruby"),
        "awk" | "gawk" | "mawk" => (Some("awk script"), "text/x-awk"),
        _ => (Some("script"), "text/plain"),
    })
}

/// Whether all lines have the same number of commas outside quotes.
fn is_table(text: &str) -> bool {
    let (mut quoted, mut commas, mut first, mut lines) = (false, 0, None, 0);
    for byte in text.bytes() {
        match byte {
            b'"' => quoted = !quoted,
            b',' if !quoted => commas += 1,
            b'\n' if !quoted => {
                lines += 1;
                if commas == 0 || first.is_some_and(|first| first != commas) {
                    return false;
                }
                if lines == TABLE_LINES {
                    return commas > 1;
                }
                first = Some(commas);
                commas = 0;
            }
            _ => {}
        }
    }
    lines >= 2
}
