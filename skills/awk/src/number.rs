//! Numbers in texts, and texts of numbers.

use crate::format;

/// Whole numbers up to here are exact in a double, and are written without an exponent.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The powers of ten that a double holds exactly.
const TENS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

/// The number that a text begins with, or 0.
pub fn from_text(text: &[u8]) -> f64 {
    prefix(text).0
}

/// The number that the whole text is, blanks around it aside: what makes input compare as a number.
pub fn whole(text: &[u8]) -> Option<f64> {
    let (number, end) = prefix(text);
    (end > 0 && text[end..].iter().all(|c| blank(*c))).then_some(number)
}

fn blank(c: u8) -> bool {
    matches!(c, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

/// The number at the beginning of a text, blanks before it aside, and where it ends: 0 if there is none.
fn prefix(text: &[u8]) -> (f64, usize) {
    let mut at = text.iter().take_while(|c| blank(**c)).count();
    let start = at;
    let negative = text.get(at) == Some(&b'-');
    if matches!(text.get(at), Some(b'-' | b'+')) {
        at += 1;
    }
    let mut mantissa: u64 = 0;
    let (mut digits, mut shift) = (0_usize, 0_i32);
    let mut exact = true;
    let mut point = false;
    while let Some(&c) = text.get(at) {
        match c {
            b'0'..=b'9' => {
                digits += 1;
                exact &= mantissa < 1 << 49;
                mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(c - b'0'));
                shift -= i32::from(point);
            }
            b'.' if !point => point = true,
            _ => break,
        }
        at += 1;
    }
    if digits == 0 {
        return named(text, start);
    }
    if let Some((exponent, end)) = exponent(text, at) {
        at = end;
        shift = shift.saturating_add(exponent);
    }
    let tens = TENS.get(shift.unsigned_abs() as usize);
    let number = match (exact, tens) {
        (true, Some(tens)) if shift < 0 => mantissa as f64 / tens,
        (true, Some(tens)) => mantissa as f64 * tens,
        _ => {
            let text = std::str::from_utf8(&text[start..at]).unwrap_or_default();
            return (text.parse().unwrap_or(0.0), at);
        }
    };
    (if negative { -number } else { number }, at)
}

/// The `e12` behind a number, if there is one.
fn exponent(text: &[u8], mut at: usize) -> Option<(i32, usize)> {
    if !matches!(text.get(at), Some(b'e' | b'E')) {
        return None;
    }
    at += 1;
    let negative = text.get(at) == Some(&b'-');
    at += usize::from(matches!(text.get(at), Some(b'-' | b'+')));
    let digits = text[at..].iter().take_while(|c| c.is_ascii_digit()).count();
    if digits == 0 {
        return None;
    }
    let value =
        text[at..at + digits].iter().fold(0_i32, |sum, c| sum.saturating_mul(10).saturating_add(i32::from(c - b'0')));
    Some((if negative { -value } else { value }, at + digits))
}

/// `+inf` and `-nan`, which are numbers with a sign only, so that words stay words.
fn named(text: &[u8], start: usize) -> (f64, usize) {
    let negative = match text.get(start) {
        Some(b'-') => true,
        Some(b'+') => false,
        _ => return (0.0, 0),
    };
    let word: Vec<u8> = text[start + 1..].iter().take(3).map(u8::to_ascii_lowercase).collect();
    let number = match word.as_slice() {
        b"inf" => f64::INFINITY,
        b"nan" => f64::NAN,
        _ => return (0.0, 0),
    };
    if text.get(start + 4).is_some_and(u8::is_ascii_alphanumeric) {
        return (0.0, 0);
    }
    (if negative { -number } else { number }, start + 4)
}

/// Writes a number as `print` and concatenation do: whole ones as they are, others by CONVFMT or OFMT.
pub fn write(number: f64, conversion: &[u8], out: &mut Vec<u8>) {
    if number.fract() == 0.0 && number.abs() < EXACT {
        return integer(number as i64, out);
    }
    if !number.is_finite() {
        return out.extend_from_slice(unbounded(number).as_bytes());
    }
    if number.fract() == 0.0 {
        return out.extend_from_slice(format!("{number:.0}").as_bytes());
    }
    if conversion == b"%.6g" {
        return out.extend_from_slice(format::general(number, 6, false, false).as_bytes());
    }
    format::one_number(conversion, number, out);
}

pub fn unbounded(number: f64) -> &'static str {
    match (number.is_nan(), number.is_sign_negative()) {
        (true, true) => "-nan",
        (true, false) => "nan",
        (false, true) => "-inf",
        (false, false) => "inf",
    }
}

pub fn integer(number: i64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = number.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_to_their_end() {
        for (text, number) in [
            ("12", 12.0),
            (" -3.5x", -3.5),
            (".5", 0.5),
            ("1e3", 1000.0),
            ("1e", 1.0),
            ("+7", 7.0),
            ("x1", 0.0),
            ("", 0.0),
            ("0x11", 0.0),
            ("123456789012345678901234567890", 1.234_567_890_123_456_8e29),
            ("1e-400", 0.0),
            ("nancy", 0.0),
            ("-inf", f64::NEG_INFINITY),
            ("0.1", 0.1),
            ("1e99999999999", f64::INFINITY),
            ("9007199254740993", 9_007_199_254_740_992.0),
        ] {
            assert_eq!(from_text(text.as_bytes()), number, "{text}");
        }
    }

    #[test]
    fn only_whole_texts_look_like_numbers() {
        assert_eq!(whole(b" 12 "), Some(12.0));
        for text in ["", " ", "12a", "0x1f", "inf", "+", "1 2", "e5"] {
            assert_eq!(whole(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn numbers_are_written() {
        for (number, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (-12.0, "-12"),
            (0.1 + 0.2, "0.3"),
            (1e30, "1000000000000000019884624838656"),
            (1e-7, "1e-07"),
            (123456.789, "123457"),
            (1234567.5, "1.23457e+06"),
            (f64::INFINITY, "inf"),
        ] {
            let mut out = Vec::new();
            write(number, b"%.6g", &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), text);
        }
    }
}
