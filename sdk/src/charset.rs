use crate::Failure;

/// Characters of windows-1252 at 0x80 to 0x9f, where Latin-1 has control characters. The five that are undefined stay as
/// they are (WHATWG Encoding, index windows-1252).
#[rustfmt::skip]
const WINDOWS_1252: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}', '‘', '’',
    '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

/// The text of `bytes`, whose charset is named by `label`, or guessed without one: UTF-8 if it is that, else Latin-1
/// (read as windows-1252, as browsers do). A byte order mark wins over both. Broken sequences become U+FFFD.
///
/// Fails with code "not-text" for a label other than those of UTF-8, UTF-16, Latin-1 and ASCII.
pub fn decode(bytes: &[u8], label: Option<&str>) -> Result<String, Failure> {
    match bytes {
        [0xef, 0xbb, 0xbf, rest @ ..] => return Ok(String::from_utf8_lossy(rest).into_owned()),
        [0xff, 0xfe, rest @ ..] => return Ok(utf16(rest, u16::from_le_bytes)),
        [0xfe, 0xff, rest @ ..] => return Ok(utf16(rest, u16::from_be_bytes)),
        _ => {}
    }
    let Some(label) = label else {
        return Ok(std::str::from_utf8(bytes).map_or_else(|_| latin(bytes), str::to_owned));
    };
    match label.to_ascii_lowercase().as_str() {
        "utf-8" | "utf8" | "unicode-1-1-utf-8" => Ok(String::from_utf8_lossy(bytes).into_owned()),
        // ASCII pages that say so often are not; browsers read all of these alike.
        "iso-8859-1" | "iso8859-1" | "iso_8859-1" | "latin1" | "latin-1" | "l1" | "windows-1252" | "cp1252"
        | "x-cp1252" | "us-ascii" | "ascii" => Ok(latin(bytes)),
        "utf-16" | "utf-16le" => Ok(utf16(bytes, u16::from_le_bytes)),
        "utf-16be" => Ok(utf16(bytes, u16::from_be_bytes)),
        other => Err(Failure::new(
            "not-text",
            format!("its charset {other:?} is not one of utf-8, utf-16, latin-1; save it to a file instead"),
        )),
    }
}

fn latin(bytes: &[u8]) -> String {
    bytes
        .iter()
        .map(|&b| if (0x80..0xa0).contains(&b) { WINDOWS_1252[usize::from(b - 0x80)] } else { char::from(b) })
        .collect()
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_charset_gives_the_same_text() {
        let cases: [(&[u8], Option<&str>); 8] = [
            ("naïve €".as_bytes(), Some("UTF-8")),
            ("naïve €".as_bytes(), None),
            (b"na\xefve \x80", Some("ISO-8859-1")),
            (b"na\xefve \x80", Some("windows-1252")),
            (b"na\xefve \x80", None),
            (b"\xef\xbb\xbfna\xc3\xafve \xe2\x82\xac", Some("latin1")),
            (b"\xff\xfen\0a\0\xef\0v\0e\0 \0\xac\x20", None),
            (b"\0n\0a\0\xef\0v\0e\0 \x20\xac", Some("utf-16be")),
        ];
        for (bytes, label) in cases {
            assert_eq!(decode(bytes, label).unwrap(), "naïve €", "{label:?}");
        }
    }

    #[test]
    fn what_is_broken_or_unknown_is_said() {
        assert_eq!(decode(b"a\xffb", Some("utf-8")).unwrap(), "a\u{fffd}b");
        assert_eq!(decode(b"x", Some("koi8-r")).unwrap_err().code, "not-text");
    }
}
