//! Decodes text whose encoding is said by a byte order mark, by a label, or by nobody.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// Bytes that the guess looks at.
const GUESSED_BYTES: usize = 64 << 10;

/// Decodes by the byte order mark, else as UTF-8 if that fits, else by `label`, else by a guess.
pub fn decode(bytes: &[u8], label: Option<&str>) -> String {
    let (encoding, rest) = choose(bytes, label);
    encoding.decode_without_bom_handling(rest).0.into_owned()
}

fn choose<'a>(bytes: &'a [u8], label: Option<&str>) -> (&'static Encoding, &'a [u8]) {
    if let Some((encoding, length)) = Encoding::for_bom(bytes) {
        return (encoding, &bytes[length..]);
    }
    if let Some(encoding) = looks_wide(bytes) {
        return (encoding, bytes);
    }
    let labelled = label.and_then(|label| Encoding::for_label(label.trim().as_bytes()));
    // A label that could be read in a file of single bytes is wrong if it says UTF-16.
    let labelled = labelled.filter(|encoding| *encoding != UTF_16LE && *encoding != UTF_16BE);
    // Pages say UTF-8 and are not, and the other way round; bytes that are valid UTF-8 beyond ASCII are hardly anything else.
    let valid = match std::str::from_utf8(bytes) {
        Ok(_) => true,
        // The text may have been cut inside a character.
        Err(e) => e.error_len().is_none() && e.valid_up_to() > 0,
    };
    if valid && labelled.is_none_or(|encoding| encoding.name() != "ISO-2022-JP") {
        return (UTF_8, bytes);
    }
    match labelled {
        Some(encoding) if encoding != UTF_8 => (encoding, bytes),
        _ => (guess(bytes), bytes),
    }
}

/// UTF-16 without a mark: every second byte of the beginning is zero.
fn looks_wide(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = &bytes[..bytes.len().min(400) & !1];
    if head.len() < 8 {
        return None;
    }
    let zeros = |offset: usize| head.iter().skip(offset).step_by(2).filter(|byte| **byte == 0).count() * 10;
    let (half, first, second) = (head.len() / 2, zeros(0), zeros(1));
    if second > half * 7 && first < half * 2 {
        Some(UTF_16LE)
    } else if first > half * 7 && second < half * 2 {
        Some(UTF_16BE)
    } else {
        None
    }
}

fn guess(bytes: &[u8]) -> &'static Encoding {
    let head = &bytes[..bytes.len().min(GUESSED_BYTES)];
    let mut detector = chardetng::EncodingDetector::new(chardetng::Iso2022JpDetection::Allow);
    detector.feed(head, true);
    detector.guess(None, chardetng::Utf8Detection::Allow)
}

/// The encoding of a Windows code page, as RTF and Outlook name them.
pub fn for_code_page(page: u32) -> &'static Encoding {
    let label = match page {
        65_001 => "utf-8",
        1_200 => "utf-16le",
        1_201 => "utf-16be",
        932 => "shift_jis",
        936 => "gbk",
        949 => "euc-kr",
        950 => "big5",
        874 => "windows-874",
        10_000 => "macintosh",
        866 => "ibm866",
        20_866 => "koi8-r",
        21_866 => "koi8-u",
        50_220..=50_222 => "iso-2022-jp",
        51_932 => "euc-jp",
        51_949 => "euc-kr",
        54_936 => "gb18030",
        28_592 => "iso-8859-2",
        28_595 => "iso-8859-5",
        28_597 => "iso-8859-7",
        28_599 => "iso-8859-9",
        28_605 => "iso-8859-15",
        1_250 => "windows-1250",
        1_251 => "windows-1251",
        1_253 => "windows-1253",
        1_254 => "windows-1254",
        1_255 => "windows-1255",
        1_256 => "windows-1256",
        1_257 => "windows-1257",
        1_258 => "windows-1258",
        _ => return WINDOWS_1252,
    };
    Encoding::for_label(label.as_bytes()).unwrap_or(WINDOWS_1252)
}

/// The label in the first bytes of an HTML page: `<meta charset=…>` or `content="text/html; charset=…"`.
pub fn html_label(bytes: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(4_096)]).to_ascii_lowercase();
    let xml = head.trim_start().starts_with("<?xml").then(|| head.find("encoding=")).flatten();
    let start = match xml {
        Some(start) => start + "encoding=".len(),
        None => head.match_indices("charset").find_map(|(start, word)| {
            let rest = head[start + word.len()..].trim_start();
            rest.starts_with('=').then(|| head.len() - rest.len() + 1)
        })?,
    };
    let label = head[start..].trim_start_matches([' ', '"', '\'']);
    let end = label.find(|c: char| !c.is_ascii_alphanumeric() && !"-_:.".contains(c)).unwrap_or(label.len());
    Some(label[..end].to_owned()).filter(|label| !label.is_empty())
}

/// The bytes of a text in which two hexadecimal digits behind a mark stand for a byte: `%20` in addresses, `=20` in mails.
pub fn unescaped(text: &str, mark: u8) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        let digit = |at: usize| more.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        match digit(0).zip(digit(1)).filter(|_| *first == mark) {
            Some((high, low)) => {
                bytes.push((high * 16 + low) as u8);
                rest = &more[2..];
            }
            None => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_bytes_are_read_and_others_stay() {
        assert_eq!(unescaped("a%20b%c3%A9%", b'%'), "a b\u{e9}%".as_bytes());
        assert_eq!(unescaped("=41=+5=4", b'='), b"A=+5=4");
    }

    #[test]
    fn encodings_are_told_apart() {
        assert_eq!(decode(b"\xef\xbb\xbfa\xc3\xa4", Some("latin1")), "aä");
        assert_eq!(decode(b"\xff\xfea\0b\0", None), "ab");
        assert_eq!(decode(b"h\0e\0l\0l\0o\0", None), "hello");
        assert_eq!(decode("größer als".as_bytes(), Some("iso-8859-1")), "größer als");
        assert_eq!(decode(b"gr\xf6\xdfer", Some("iso-8859-1")), "größer");
        assert_eq!(decode(b"gr\xf6\xdfer", Some("utf-8")), "größer");
        assert_eq!(decode(b"plain text", Some("unicode")), "plain text");
        assert_eq!(
            decode(b"\xcf\xf0\xe8\xe2\xe5\xf2, \xea\xe0\xea \xe4\xe5\xeb\xe0? \xd5\xee\xf0\xee\xf8\xee", None),
            "Привет, как дела? Хорошо"
        );
    }

    #[test]
    fn a_page_names_its_encoding() {
        assert_eq!(html_label(b"<meta charset=\"KOI8-R\">").as_deref(), Some("koi8-r"));
        assert_eq!(html_label(b"<meta content='text/html; charset = gbk'>").as_deref(), Some("gbk"));
        assert_eq!(html_label(b"<?xml version='1.0' encoding='big5'?>").as_deref(), Some("big5"));
        assert_eq!(html_label(b"<p>charset"), None);
    }
}
