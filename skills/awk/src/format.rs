//! `printf` and `sprintf`.

use crate::number;
use crate::value::{Value, characters};

/// A wider field is a mistake of the program, and would fill the memory.
const WIDEST: usize = 1 << 24;

#[derive(Default)]
struct Spec {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
}

/// Writes `arguments` by `format`.
pub fn write(format: &[u8], arguments: &[Value], conversion: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    let mut rest = arguments.iter();
    let mut at = 0;
    while at < format.len() {
        let plain = memchr::memchr(b'%', &format[at..]).unwrap_or(format.len() - at);
        out.extend_from_slice(&format[at..at + plain]);
        at += plain;
        if at >= format.len() {
            break;
        }
        let start = at;
        at += 1;
        if format.get(at) == Some(&b'%') {
            out.push(b'%');
            at += 1;
            continue;
        }
        let Some((spec, letter, end)) = spec(format, at, arguments, &mut rest)? else {
            out.extend_from_slice(&format[start..]);
            break;
        };
        at = end;
        if !b"diouxXeEfFgGaAcs%".contains(&letter) {
            out.extend_from_slice(&format[start..end]);
            continue;
        }
        if letter == b'%' {
            out.push(b'%');
            continue;
        }
        let Some(value) = picked(format, start, arguments).or_else(|| rest.next()) else {
            let format = String::from_utf8_lossy(format);
            return Err(format!("printf: the format {format:?} needs more than {} argument(s)", arguments.len()));
        };
        one(&spec, letter, value, conversion, out)?;
    }
    Ok(())
}

/// The argument that `%2$s` names.
fn picked<'v>(format: &[u8], start: usize, arguments: &'v [Value]) -> Option<&'v Value> {
    let digits = format[start + 1..].iter().take_while(|c| c.is_ascii_digit()).count();
    if digits == 0 || format.get(start + 1 + digits) != Some(&b'$') {
        return None;
    }
    let index: usize = std::str::from_utf8(&format[start + 1..start + 1 + digits]).ok()?.parse().ok()?;
    arguments.get(index.checked_sub(1)?)
}

/// Flags, width and precision behind a `%`, the letter, and where it ends; nothing if the format ends before.
fn spec(
    format: &[u8],
    mut at: usize,
    arguments: &[Value],
    rest: &mut std::slice::Iter<Value>,
) -> Result<Option<(Spec, u8, usize)>, String> {
    let mut spec = Spec::default();
    if picked(format, at - 1, arguments).is_some() {
        at += format[at..].iter().take_while(|c| **c != b'$').count() + 1;
    }
    while let Some(&c) = format.get(at) {
        match c {
            b'-' => spec.left = true,
            b'+' => spec.plus = true,
            b' ' => spec.space = true,
            b'#' => spec.alternate = true,
            b'0' => spec.zero = true,
            b'\'' => {}
            _ => break,
        }
        at += 1;
    }
    let mut count = |at: &mut usize| -> Result<Option<i64>, String> {
        if format.get(*at) == Some(&b'*') {
            *at += 1;
            let value = rest.next().ok_or("printf: the format has a * without an argument")?;
            return Ok(Some(value.number() as i64));
        }
        let digits = format[*at..].iter().take_while(|c| c.is_ascii_digit()).count();
        let text = &format[*at..*at + digits];
        *at += digits;
        let value = text.iter().fold(0_i64, |sum, c| sum.saturating_mul(10).saturating_add(i64::from(c - b'0')));
        Ok((digits > 0).then_some(value))
    };
    if let Some(width) = count(&mut at)? {
        spec.left |= width < 0;
        spec.width = checked(width.unsigned_abs())?;
    }
    if format.get(at) == Some(&b'.') {
        at += 1;
        let precision = count(&mut at)?.unwrap_or(0);
        spec.precision = if precision < 0 { None } else { Some(checked(precision.unsigned_abs())?) };
    }
    while matches!(format.get(at), Some(b'h' | b'l' | b'L' | b'q' | b'j' | b'z' | b't')) {
        at += 1;
    }
    let Some(&letter) = format.get(at) else { return Ok(None) };
    Ok(Some((spec, letter, at + 1)))
}

fn checked(count: u64) -> Result<usize, String> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if count > WIDEST {
        Err(format!("printf: a width or precision of more than {WIDEST} is too large"))
    } else {
        Ok(count)
    }
}

fn one(spec: &Spec, letter: u8, value: &Value, conversion: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    match letter {
        b'c' => {
            let mut bytes = Vec::new();
            character(value, &mut bytes);
            pad(spec, &bytes, out);
        }
        b's' => {
            let text = value.text(conversion);
            let bytes = text.bytes();
            let cut = spec.precision.map_or(bytes.len(), |most| crate::value::offset(bytes, most));
            pad(spec, &bytes[..cut], out);
        }
        b'd' | b'i' => integer(spec, value.number(), out),
        b'o' | b'u' | b'x' | b'X' => unsigned(spec, letter, value.number(), out),
        _ => float(spec, letter, value.number(), out),
    }
    Ok(())
}

/// `%c`: the character with this number, or the first one of a text.
fn character(value: &Value, out: &mut Vec<u8>) {
    let code = match value {
        Value::Number(number) => *number,
        Value::Uninit => return,
        Value::Input(text) if number::whole(text.bytes()).is_some() => number::from_text(text.bytes()),
        Value::Text(text) | Value::Input(text) => {
            return out.extend_from_slice(characters(text.bytes()).next().unwrap_or_default());
        }
    };
    match char::from_u32(code as u32) {
        Some(c) if code >= 0.0 => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        _ => out.push(code as i64 as u8),
    }
}

fn pad(spec: &Spec, text: &[u8], out: &mut Vec<u8>) {
    let missing = spec.width.saturating_sub(crate::value::length(text));
    if !spec.left {
        out.resize(out.len() + missing, b' ');
    }
    out.extend_from_slice(text);
    if spec.left {
        out.resize(out.len() + missing, b' ');
    }
}

/// A number that is done but for sign, prefix and padding.
fn padded(spec: &Spec, sign: &str, digits: &str, zero: bool, out: &mut Vec<u8>) {
    let missing = spec.width.saturating_sub(sign.len() + digits.len());
    if !spec.left && !zero {
        out.resize(out.len() + missing, b' ');
    }
    out.extend_from_slice(sign.as_bytes());
    if !spec.left && zero {
        out.resize(out.len() + missing, b'0');
    }
    out.extend_from_slice(digits.as_bytes());
    if spec.left {
        out.resize(out.len() + missing, b' ');
    }
}

fn sign(spec: &Spec, negative: bool) -> &'static str {
    match (negative, spec.plus, spec.space) {
        (true, ..) => "-",
        (false, true, _) => "+",
        (false, false, true) => " ",
        (false, false, false) => "",
    }
}

fn integer(spec: &Spec, number: f64, out: &mut Vec<u8>) {
    if !number.is_finite() {
        return padded(spec, "", number::unbounded(number), false, out);
    }
    let digits = format!("{:.0}", number.trunc().abs());
    whole(spec, sign(spec, number.trunc() < 0.0), digits, out);
}

fn whole(spec: &Spec, sign: &str, mut digits: String, out: &mut Vec<u8>) {
    if let Some(precision) = spec.precision {
        if precision == 0 && digits == "0" {
            digits.clear();
        }
        if digits.len() < precision {
            digits.insert_str(0, &"0".repeat(precision - digits.len()));
        }
    }
    padded(spec, sign, &digits, spec.zero && spec.precision.is_none(), out);
}

fn unsigned(spec: &Spec, letter: u8, number: f64, out: &mut Vec<u8>) {
    let number = number.trunc();
    if !(-9_223_372_036_854_775_808.0..18_446_744_073_709_551_616.0).contains(&number) {
        return float(spec, b'g', number, out);
    }
    let bits = if number < 0.0 { number as i64 as u64 } else { number as u64 };
    let digits = match letter {
        b'o' => format!("{bits:o}"),
        b'x' => format!("{bits:x}"),
        b'X' => format!("{bits:X}"),
        _ => bits.to_string(),
    };
    let prefix = match letter {
        b'o' if spec.alternate && bits != 0 => "0",
        b'x' if spec.alternate && bits != 0 => "0x",
        b'X' if spec.alternate && bits != 0 => "0X",
        _ => "",
    };
    whole(spec, prefix, digits, out);
}

fn float(spec: &Spec, letter: u8, number: f64, out: &mut Vec<u8>) {
    let sign = sign(spec, number.is_sign_negative() && !number.is_nan());
    if !number.is_finite() {
        let word = number::unbounded(number).trim_start_matches('-');
        let word = if letter.is_ascii_uppercase() { word.to_uppercase() } else { word.to_owned() };
        return padded(spec, sign, &word, false, out);
    }
    let number = number.abs();
    let precision = spec.precision.unwrap_or(6);
    let upper = letter.is_ascii_uppercase();
    let digits = match letter.to_ascii_lowercase() {
        b'f' => fixed(number, precision, spec.alternate),
        b'e' => scientific(number, precision, upper, spec.alternate),
        b'a' => hexadecimal(number, spec.precision, upper),
        _ => general(number, precision, upper, spec.alternate),
    };
    padded(spec, sign, &digits, spec.zero, out);
}

/// Rust formats at most this many digits at once; all further ones of a double are zeros.
const MOST_DIGITS: usize = 1100;

fn fixed(number: f64, precision: usize, point: bool) -> String {
    let shown = precision.min(MOST_DIGITS);
    let mut text = format!("{number:.shown$}");
    text.push_str(&"0".repeat(precision - shown));
    if point && precision == 0 {
        text.push('.');
    }
    text
}

fn scientific(number: f64, precision: usize, upper: bool, point: bool) -> String {
    let shown = precision.min(MOST_DIGITS);
    let text = format!("{number:.shown$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let zeros = "0".repeat(precision - shown);
    let point = if point && precision == 0 { "." } else { "" };
    let (letter, sign) = (if upper { 'E' } else { 'e' }, if exponent < 0 { '-' } else { '+' });
    format!("{mantissa}{zeros}{point}{letter}{sign}{:02}", exponent.unsigned_abs())
}

/// `%g`.
pub fn general(number: f64, precision: usize, upper: bool, keep: bool) -> String {
    if number < 0.0 {
        return format!("-{}", general(-number, precision, upper, keep));
    }
    let precision = precision.max(1);
    let shown = (precision - 1).min(MOST_DIGITS);
    let text = format!("{number:.shown$e}");
    let exponent: i64 = text.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
    if exponent < -4 || exponent >= precision as i64 {
        let text = scientific(number, precision - 1, upper, keep);
        if keep {
            return text;
        }
        let letter = if upper { 'E' } else { 'e' };
        let (mantissa, exponent) = text.split_once(letter).unwrap_or((&text, ""));
        return format!("{}{letter}{exponent}", trimmed(mantissa));
    }
    let text = fixed(number, (precision as i64 - 1 - exponent).max(0) as usize, keep);
    if keep { text } else { trimmed(&text).to_owned() }
}

/// Without zeros at the end of a fraction.
fn trimmed(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// `%a`.
fn hexadecimal(number: f64, precision: Option<usize>, upper: bool) -> String {
    let bits = number.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i64;
    let mut fraction = bits & ((1 << 52) - 1);
    let mut lead = u64::from(exponent != 0);
    let power = if number == 0.0 { 0 } else { exponent.max(1) - 1023 };
    let mut digits = match precision {
        Some(most) if most < 13 => {
            let drop = 52 - 4 * most as u32;
            let whole = lead << 52 | fraction;
            let half = 1_u64 << (drop - 1);
            let odd = whole >> drop & 1;
            let rounded = (whole + half - 1 + odd) >> drop;
            lead = rounded >> (4 * most);
            fraction = rounded & ((1_u64 << (4 * most)) - 1);
            if most == 0 { String::new() } else { format!("{fraction:0most$x}") }
        }
        Some(most) => format!("{fraction:013x}{}", "0".repeat(most - 13)),
        None => format!("{fraction:013x}").trim_end_matches('0').to_owned(),
    };
    if !digits.is_empty() {
        digits.insert(0, '.');
    }
    let text = format!("0x{lead}{digits}p{power:+}");
    if upper { text.to_uppercase() } else { text }
}

/// A number by CONVFMT or OFMT. A format that is none leaves the shortest text.
pub fn one_number(format: &[u8], number: f64, out: &mut Vec<u8>) {
    let before = out.len();
    if write(format, &[Value::Number(number)], b"%.6g", out).is_err() {
        out.truncate(before);
        out.extend_from_slice(general(number, 6, false, false).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(format: &str, value: f64, expected: &str) {
        let mut out = Vec::new();
        write(format.as_bytes(), &[Value::Number(value)], b"%.6g", &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), expected, "{format}");
    }

    #[test]
    fn numbers_as_in_c() {
        check("%5.2f|", 3.14159, " 3.14|");
        check("%-8d|", 42.0, "42      |");
        check("%+08.3f|", -2.5, "-002.500|");
        check("%x %%", 255.0, "ff %");
        check("%#X", 255.0, "0XFF");
        check("%o", 8.0, "10");
        check("%e", 12345.678, "1.234568e+04");
        check("%G", 1e-10, "1E-10");
        check("%g", 100000.0, "100000");
        check("%g", 1000000.0, "1e+06");
        check("%.3d", 7.0, "007");
        check("% d", 7.0, " 7");
        check("%d", -3.9, "-3");
        check("%d", 1e18, "1000000000000000000");
        check("%c", 65.0, "A");
        check("%c", 228.0, "ä");
        check("%i", f64::NAN, "nan");
        check("%.0f", 0.5, "0");
        check("%.0f", 1.5, "2");
        check("%a", 1.0, "0x1p+0");
        check("%x", -1.0, "ffffffffffffffff");
        check("%#.3g", 1.0, "1.00");
        check("%z", 1.0, "%z");
    }

    #[test]
    fn too_wide_and_too_few_are_errors() {
        let mut out = Vec::new();
        assert!(write(b"%999999999999d", &[Value::Number(1.0)], b"%.6g", &mut out).unwrap_err().contains("too large"));
        assert!(write(b"%s %s", &[Value::Number(1.0)], b"%.6g", &mut out).unwrap_err().contains("needs more"));
    }
}
