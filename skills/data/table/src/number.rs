//! Numbers as tables write them, and as people like to read them.

use std::borrow::Cow;

/// How a column writes its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// `1,234.5`
    Point,
    /// `1.234,5`
    Comma,
}

/// Whether `text` says that a number or a date is missing. An infinity counts: nothing can be computed from it.
pub fn is_missing(text: &str) -> bool {
    const WORDS: [&str; 9] = ["na", "n/a", "nan", "null", "none", "-", "inf", "-inf", "#n/a"];
    text.is_empty() || (text.len() <= 4 && WORDS.iter().any(|w| text.eq_ignore_ascii_case(w)))
}

/// The number in `text`.
///
/// None also for what only looks like one and would lose digits: numbers with leading zeros (post codes), a plus sign before seven
/// digits or more (telephone numbers), and integers above 2^53 (identifiers; [`integer`] reads those).
pub fn parse(text: &str, style: Style) -> Option<f64> {
    let first = *text.as_bytes().first()?;
    if !(first.is_ascii_digit() || matches!(first, b'-' | b'+' | b'.' | b',' | 0xE2)) {
        return None;
    }
    let plain;
    let text = if let Some(rest) = text.strip_prefix('\u{2212}') {
        plain = format!("-{rest}");
        plain.as_str()
    } else {
        text
    };
    let (group, point) = match style {
        Style::Point => (b',', b'.'),
        Style::Comma => (b'.', b','),
    };
    let bytes = text.as_bytes();
    if bytes.contains(&group) || (style == Style::Comma && bytes.contains(&point)) {
        return simple(&ungrouped(text, group, point)?);
    }
    simple(text)
}

fn simple(text: &str) -> Option<f64> {
    let digits = text.trim_start_matches(['-', '+']).as_bytes();
    if is_code(text) {
        return None;
    }
    if !text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'-' | b'+' | b'.' | b'e' | b'E')) {
        return None;
    }
    let whole = digits.iter().all(u8::is_ascii_digit);
    if whole && digits.len() > 15 && text.trim_start_matches(['-', '+']).parse::<u64>().map_or(true, |n| n > 1 << 53) {
        return None;
    }
    text.parse::<f64>().ok().filter(|n| n.is_finite())
}

/// Whether `text` begins as a number that stands for itself: with zeros, or as a telephone number.
fn is_code(text: &str) -> bool {
    let digits = text.trim_start_matches(['-', '+']).as_bytes();
    let zeros = digits.len() > 1 && digits[0] == b'0' && digits[1].is_ascii_digit();
    zeros || (text.starts_with('+') && digits.len() >= TELEPHONE_DIGITS && digits.iter().all(u8::is_ascii_digit))
}

/// The shortest telephone numbers that are written with the code of their country.
const TELEPHONE_DIGITS: usize = 7;

/// The integer in `text`, of up to 38 digits; None for those that [`parse`] leaves as they are, too.
pub fn integer(text: &str) -> Option<i128> {
    let text = text.strip_prefix('\u{2212}').map_or(Cow::Borrowed(text), |rest| Cow::Owned(format!("-{rest}")));
    let text = if text.contains(',') { ungrouped(&text, b',', b'.')?.into() } else { text };
    if is_code(&text) {
        return None;
    }
    // The least one stands for a missing value.
    text.parse().ok().filter(|n| *n != i128::MIN)
}

/// `text` with a point and without groups, if its groups are of three digits.
fn ungrouped(text: &str, group: u8, point: u8) -> Option<String> {
    let (whole, fraction) = match text.bytes().position(|b| b == point) {
        Some(i) => (&text[..i], Some(&text[i + 1..])),
        None => (text, None),
    };
    let mut parts = whole.split(char::from(group));
    let head = parts.next()?;
    let mut plain = head.to_owned();
    let head = head.trim_start_matches(['-', '+']);
    for part in parts {
        if part.len() != 3 || head.is_empty() || head.len() > 3 || !head.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        plain.push_str(part);
    }
    if let Some(fraction) = fraction {
        plain.push('.');
        plain.push_str(fraction);
    }
    Some(plain)
}

/// Decimals that a column of numbers deserves: all of them when four are enough, else about four significant digits.
pub fn decimals(values: impl Iterator<Item = f64>) -> usize {
    let mut needed = 0;
    let mut largest: f64 = 0.0;
    for value in values.filter(|v| v.is_finite()) {
        let shortest = format!("{value}");
        needed = needed.max(shortest.split_once('.').map_or(0, |(_, fraction)| fraction.len()));
        largest = largest.max(value.abs());
    }
    if needed <= 4 || largest == 0.0 {
        return needed;
    }
    let whole = largest.log10().floor() as i32 + 1;
    usize::try_from((4 - whole).max(2)).unwrap_or(2)
}

/// `value` with `decimals`, or with an exponent where the digits would not tell anything.
pub fn fixed(value: f64, decimals: usize) -> String {
    let size = value.abs();
    if size >= 1e15 || (size > 0.0 && size < 1e-5) {
        return format!("{value:.3e}");
    }
    let text = format!("{value:.decimals$}");
    match text.strip_prefix('-') {
        Some(rest) if rest.bytes().all(|b| matches!(b, b'0' | b'.')) => rest.to_owned(),
        _ => text,
    }
}

/// Whole thousands set apart by commas, from 10,000 on.
pub fn grouped(text: &str) -> String {
    let (sign, rest) = text.strip_prefix('-').map_or(("", text), |r| ("-", r));
    let (whole, fraction) = rest.find('.').map_or((rest, ""), |i| rest.split_at(i));
    if whole.len() < 5 || !whole.bytes().all(|b| b.is_ascii_digit()) {
        return text.to_owned();
    }
    let mut out = sign.to_owned();
    for (i, c) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(c);
    }
    out + fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_a_number() {
        for (text, value) in [
            ("1", 1.0),
            ("-2.50", -2.5),
            ("+3", 3.0),
            (".5", 0.5),
            ("1e-3", 1e-3),
            ("1,234.5", 1234.5),
            ("-12,345,678", -12_345_678.0),
            ("\u{2212}4", -4.0),
            ("9007199254740992", 9_007_199_254_740_992.0),
            ("0", 0.0),
            ("0.25", 0.25),
        ] {
            assert_eq!(parse(text, Style::Point), Some(value), "{text}");
        }
        for text in [
            "",
            "007",
            "1,23",
            "12,34,567",
            "1e999",
            "9007199254740993",
            "1.2.3",
            "5 km",
            "2024-01-01",
            "-",
            "e5",
            "+491234567",
        ] {
            assert_eq!(parse(text, Style::Point), None, "{text}");
        }
        assert_eq!(parse("3,25", Style::Comma), Some(3.25));
        assert_eq!(parse("1.234.567,8", Style::Comma), Some(1_234_567.8));
    }

    #[test]
    fn integers_are_exact() {
        for (text, value) in [
            ("5", 5),
            ("-9007199254740993", -9_007_199_254_740_993),
            ("12345678901234567890123", 12_345_678_901_234_567_890_123),
            ("1,234,567,890,123,456,789", 1_234_567_890_123_456_789),
            ("\u{2212}4", -4),
            ("+3", 3),
        ] {
            assert_eq!(integer(text), Some(value), "{text}");
        }
        for text in ["", "1.5", "1e3", "007", "+491234567", "12,34", "x", "999999999999999999999999999999999999999"] {
            assert_eq!(integer(text), None, "{text}");
        }
    }

    #[test]
    fn how_numbers_look() {
        assert_eq!(decimals([1.0, 2.5].into_iter()), 1);
        assert_eq!(decimals([1.0853, 1.1].into_iter()), 4);
        assert_eq!(decimals([23.456_789].into_iter()), 2);
        assert_eq!(decimals([0.012_345_6].into_iter()), 5);
        assert_eq!(fixed(-0.001, 2), "0.00");
        assert_eq!(fixed(1.5e20, 0), "1.500e20");
        assert_eq!(grouped("1234"), "1234");
        assert_eq!(grouped("-1234567.25"), "-1,234,567.25");
    }
}
