//! Encodings of texts.

use boa_engine::{Context, JsArgs, JsResult, JsString, JsValue};

use super::{Function, buffer, content, string, text};

pub const FUNCTIONS: &[(&str, Function)] = &[("encode", encode), ("decode", decode), ("isUtf8", is_utf8)];

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn encode(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let encoding = text(arguments, 1, context)?;
    let value = arguments.get_or_undefined(0).to_string(context)?;
    let bytes = match encoding.as_str() {
        "latin1" => value.to_vec().iter().map(|unit| unit.to_le_bytes()[0]).collect(),
        "utf16le" => value.to_vec().iter().flat_map(|unit| unit.to_le_bytes()).collect(),
        "hex" => from_hex(&value.to_std_string_lossy()),
        "base64" => from_base64(&value.to_std_string_lossy()),
        _ => value.to_std_string_lossy().into_bytes(),
    };
    buffer(&bytes, context)
}

fn decode(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let (bytes, encoding) = (content(arguments, 0, context)?, text(arguments, 1, context)?);
    Ok(match encoding.as_str() {
        "latin1" => string(&bytes.iter().map(|byte| char::from(*byte)).collect::<String>()),
        "ascii" => string(&bytes.iter().map(|byte| char::from(byte & 0x7f)).collect::<String>()),
        "utf16le" => {
            let units: Vec<u16> = bytes.as_chunks::<2>().0.iter().map(|unit| u16::from_le_bytes(*unit)).collect();
            JsString::from(units.as_slice()).into()
        }
        "hex" => string(&to_hex(&bytes)),
        "base64" => string(&to_base64(&bytes, BASE64[62], BASE64[63], true)),
        "base64url" => string(&to_base64(&bytes, b'-', b'_', false)),
        _ => string(&String::from_utf8_lossy(&bytes)),
    })
}

fn is_utf8(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    Ok(std::str::from_utf8(&content(arguments, 0, context)?).is_ok().into())
}

fn to_hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

/// The bytes up to the first pair that is not hexadecimal, as Node reads them.
fn from_hex(text: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = text.as_bytes().as_chunks::<2>().0.iter();
    pairs.map_while(|[high, low]| u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()).collect()
}

fn to_base64(bytes: &[u8], plus: u8, slash: u8, pads: bool) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            text.push(match (word >> (18 - 6 * place) & 63) as usize {
                _ if place > chunk.len() && pads => '=',
                _ if place > chunk.len() => break,
                62 => plus.into(),
                63 => slash.into(),
                value => BASE64[value].into(),
            });
        }
    }
    text
}

/// Both alphabets, with or without padding; other characters are skipped, as in Node.
fn from_base64(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut word, mut bits) = (0_u32, 0);
    for byte in text.bytes().take_while(|byte| *byte != b'=') {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => continue,
        };
        word = word << 6 | u32::from(value);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((word >> bits).to_le_bytes()[0]);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_and_hex_are_read_and_written() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")] {
            assert_eq!(to_base64(bytes.as_bytes(), b'+', b'/', true), text);
            assert_eq!(from_base64(text), bytes.as_bytes());
        }
        assert_eq!(to_base64(&[0xfb, 0xff], b'-', b'_', false), "-_8");
        assert_eq!((from_base64("-_8"), from_base64("+/\n8=")), (vec![0xfb, 0xff], vec![0xfb, 0xff]));
        assert_eq!((to_hex(&[0, 0xab]), from_hex("00abz1"), from_hex("0")), ("00ab".to_owned(), vec![0, 0xab], vec![]));
    }
}
