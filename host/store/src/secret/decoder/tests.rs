use super::*;
use crate::secret::{SecretValue, Secrets};
use proptest::prelude::*;
use std::fmt::Write;

/// Returns the decoded text without the added backslashes.
fn decoded(text: &str) -> String {
    let bytes: Vec<u8> = decode(text).iter().map(|decoded| decoded.byte).collect();
    assert_eq!(bytes, decoded_text(text), "{text}");
    String::from_utf8(bytes).unwrap().replace(r"\/", "/")
}

#[test]
fn whatever_was_encoded_reads_the_same() {
    for text in ["a/b c", "a%2Fb%20c", "a%2fb+c", "%61%2F%62%20%63", "a%252Fb%252520c", "%2561/b c"] {
        assert_eq!(decoded(text), "a/b c", "{text}");
    }
    for (text, wanted) in [("100%", "100%"), ("%zz%2", "%zz%2"), ("%%41", "%A"), ("5%4", "5%4"), ("%C3%A9", "é")] {
        assert_eq!(decoded(text), wanted, "{text}");
    }
    assert_eq!(decoded_value("%A9x+", 1), None, "no text when decoded");
    assert_eq!(decoded_value("\"\"\"a", 3), None, "two characters when decoded");
}

#[test]
fn each_byte_knows_where_it_stood() {
    let places = |text: &str| -> Vec<_> {
        decode(text).iter().map(|d| (char::from(d.byte), d.start, d.end, d.begins, d.ends)).collect()
    };
    assert_eq!(places("a%2541+"), [('a', 0, 1, true, true), ('A', 1, 6, true, true), (' ', 6, 7, true, true)]);
    assert_eq!(places("\\u0026amp;b"), [('&', 0, 10, true, true), ('b', 10, 11, true, true)]);
    assert_eq!(
        places("\\\\\"\n"),
        [('\\', 0, 2, true, true), ('"', 2, 3, true, true), ('\\', 3, 3, true, false), ('n', 3, 4, false, true)]
    );
    assert_eq!(places("\\\\\\u0041"), [('\\', 0, 2, true, true), ('A', 2, 8, true, true)]);
}

#[test]
fn only_text_with_an_escape_may_be_a_value() {
    for (text, wanted) in [("ab/c", false), ("ab\\/c", true), ("a\"\"b", true), ("a\"\"", false), ("\\d", false)] {
        let decoded = decode(text);
        assert_eq!(may_be_value(&decoded[0], &decoded[decoded.len() - 1]), wanted, "{text}");
        assert!(has_escapes(text) || !wanted, "{text}");
    }
}

/// A program that writes a value into a text.
#[derive(Debug, Clone, Copy)]
enum Encoder {
    Url,
    Json,
    Html,
    Csv,
    Shell,
    Sql,
}

const ENCODERS: [Encoder; 6] = [Encoder::Url, Encoder::Json, Encoder::Html, Encoder::Csv, Encoder::Shell, Encoder::Sql];

impl Encoder {
    /// Writes a character. `choice` selects one of several ways. Digits of an earlier encoding stay unchanged, because encoders
    /// do not escape digits.
    fn write(self, c: char, choice: u8, is_again: bool, out: &mut String) {
        let in_json = |out: &mut String| {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = if choice & 8 == 0 { write!(out, "\\u{unit:04x}") } else { write!(out, "\\u{unit:04X}") };
            }
        };
        let in_html = |out: &mut String| {
            let _ = match choice >> 3 & 3 {
                0 => write!(out, "&#{};", u32::from(c)),
                1 => write!(out, "&#x{:x};", u32::from(c)),
                2 => write!(out, "&#X{:X};", u32::from(c)),
                _ => write!(out, "&#{:03};", u32::from(c)),
            };
        };
        let often = choice & 4 == 0;
        match (self, c) {
            (Encoder::Url, ' ') if often => out.push('+'),
            (Encoder::Url, 'a'..='z' | '0'..='9') if !often && !is_again => {
                let _ = write!(out, "%{:02x}", u32::from(c));
            }
            (_, 'a'..='z' | 'A'..='Z' | '0'..='9') => out.push(c),
            (Encoder::Url, '/' | '&' | ';' | '"' | '\'' | '<' | '>' | '#') if choice & 1 == 0 => out.push(c),
            (Encoder::Url, _) => c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| {
                let _ = if choice & 8 == 0 { write!(out, "%{byte:02x}") } else { write!(out, "%{byte:02X}") };
            }),
            (Encoder::Json, '"') if often => out.extend(['\\', c]),
            (Encoder::Json, '\\') if often || is_again => out.extend(['\\', c]),
            (Encoder::Json, '\n') if often => out.push_str("\\n"),
            (Encoder::Json, '"' | '\\' | '\n') => in_json(out),
            (Encoder::Json, '/') if often => out.push_str("\\/"),
            (Encoder::Json, ' ' | '/') => out.push(c),
            (Encoder::Json, _) if often => out.push(c),
            (Encoder::Json, _) => in_json(out),
            (Encoder::Html, '&') if often => out.push_str("&amp;"),
            (Encoder::Html, '"') if often => out.push_str("&quot;"),
            (Encoder::Html, '\'') if often => out.push_str("&apos;"),
            (Encoder::Html, '<') if often => out.push_str("&lt;"),
            (Encoder::Html, '&') => in_html(out),
            (Encoder::Html, ' ' | '\n' | ';') => out.push(c),
            (Encoder::Html, _) if choice & 1 == 0 => in_html(out),
            (Encoder::Csv, '"') => out.push_str("\"\""),
            (Encoder::Shell, '\'') => out.push_str("'\\''"),
            (Encoder::Sql, '\'') => out.push_str("''"),
            _ => out.push(c),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// A value is found in any encoding, and nothing of it is left. (Except for one of two quotes at its end that were doubled.)
    #[test]
    fn any_encoder_is_undone(
        value in "[a-fnrtu0-9&<>\"'/\\\\żé🔑\n %+;#]{6,14}[a-z]{4}",
        layers in prop::collection::vec((prop::sample::select(&ENCODERS[..]), prop::collection::vec(any::<u8>(), 1..8)), 1..4),
        at in any::<prop::sample::Index>(),
    ) {
        // The value contains letters, so that it is long enough.
        let places: Vec<usize> = value.char_indices().map(|(at, _)| at).collect();
        let (start, end) = value.split_at(places[at.index(places.len())]);
        let value = format!("{end}{start}").trim_matches(['"', '\'', '\\']).to_owned();
        prop_assume!(decoded_value(&value, 4).is_some());
        let mut secrets = Secrets::default();
        secrets.add_session("pw".to_owned(), SecretValue::new(value.clone()));
        let has_percent = value.contains('%');
        let mut text = value;
        for (layer, (encoder, choices)) in layers.into_iter().enumerate() {
            let mut encoded = String::new();
            for (c, choice) in text.chars().zip(choices.iter().cycle()) {
                // An encoder treats all backslashes in the same way.
                let choice = if c == '\\' { choices[0] } else { *choice };
                encoder.write(c, choice, layer > 0 || has_percent, &mut encoded);
            }
            text = encoded;
        }
        let text = format!("is ({text}) ż");
        decoded(&text);
        let clean = secrets.redact(&text);
        prop_assert_eq!(&clean, "is ([secret pw]) ż", "{}", text);
        let mut stream = secrets.streaming();
        let mut pieces: String = text.chars().map(|c| stream.push(c.encode_utf8(&mut [0; 4]))).collect();
        pieces += &stream.finish();
        prop_assert_eq!(pieces, clean);
    }
}

#[test]
fn escapes_that_only_begin_are_let_out() {
    for text in ["&", "\\&", "&\\", "%&", "&#"] {
        let text = text.repeat(10_000);
        let (mut decoder, mut out) = (Decoder::default(), Vec::new());
        text.bytes().enumerate().for_each(|(at, byte)| decoder.push(byte, at, &mut out));
        assert!(decoder.unsettled().is_none_or(|at| at + 100 > text.len()), "{}", &text[..2]);
    }
}
