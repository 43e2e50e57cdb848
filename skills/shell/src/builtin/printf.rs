//! `printf`.

use super::calendar;
use super::echo::{Style, unescape};
use super::misuse;
use crate::expand::Env;
use crate::print;
use crate::shell::{Outcome, Shell, now};
use crate::variable::is_name;

/// The limit for a width or precision, which bounds the memory. A larger one is an error.
const WIDEST: usize = 16 << 20;

/// Digits behind the point after which every number that there is has only zeros, and what Rust writes at most.
const MOST_DIGITS: usize = 1_100;

pub fn printf(shell: &mut Shell, args: &[String]) -> Outcome {
    let mut words = &args[1..];
    let mut variable = None;
    if words.first().is_some_and(|word| word.starts_with("-v")) {
        let attached = words[0][2..].to_owned();
        words = &words[1..];
        variable = Some(attached);
        if variable.as_ref().is_some_and(String::is_empty) {
            variable = words.first().cloned();
            words = words.get(1..).unwrap_or_default();
        }
    }
    if words.first().is_some_and(|word| word == "--") {
        words = &words[1..];
    }
    let Some((format, operands)) = words.split_first() else {
        return misuse(shell, "printf", "usage: printf [-v var] format [arguments]");
    };
    let began = i64::try_from(shell.state.began / 1000).unwrap_or(i64::MAX);
    let now = i64::try_from(now() / 1000).unwrap_or(i64::MAX);
    let mut printed = Printed { operands, out: Vec::new(), complaints: Vec::new(), now, began };
    printed.all(format);
    for complaint in &printed.complaints {
        shell.complain(format_args!("printf: {complaint}"));
    }
    let failed = u8::from(!printed.complaints.is_empty());
    let Some(variable) = variable else {
        let code = shell.print("printf", &printed.out)?;
        return Ok(code.max(failed));
    };
    let text = String::from_utf8_lossy(&printed.out).into_owned();
    let element = variable.strip_suffix(']').and_then(|variable| variable.split_once('['));
    let name = element.map_or(variable.as_str(), |(name, _)| name);
    if !is_name(name) {
        return misuse(shell, "printf", &format!("`{variable}': not a valid identifier"));
    }
    let set = match element {
        Some((name, index)) => {
            shell.index(name, index).and_then(|index| shell.assign_element(name, &index, text, false))
        }
        None => shell.set(&variable, text),
    };
    match set {
        Ok(()) => Ok(failed),
        Err(stop) => shell.stopped(stop),
    }
}

struct Printed<'a> {
    operands: &'a [String],
    out: Vec<u8>,
    complaints: Vec<String>,
    /// Seconds since 1970.
    now: i64,
    began: i64,
}

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

impl Printed<'_> {
    /// The format is used again as long as there are operands left.
    fn all(&mut self, format: &str) {
        loop {
            let before = self.operands.len();
            if self.once(format) || self.operands.is_empty() || self.operands.len() == before {
                return;
            }
        }
    }

    fn next(&mut self) -> Option<&str> {
        let (first, rest) = self.operands.split_first()?;
        self.operands = rest;
        Some(first)
    }

    /// Returns whether the output ends here.
    fn once(&mut self, format: &str) -> bool {
        let mut rest = format;
        while let Some(at) = rest.find('%') {
            unescape(&rest[..at], Style::Format, &mut self.out);
            rest = &rest[at + 1..];
            let mut spec = Spec::default();
            let flags = rest.len() - rest.trim_start_matches(['-', '+', ' ', '#', '0', '\'']).len();
            for flag in rest[..flags].chars() {
                match flag {
                    '-' => spec.left = true,
                    '+' => spec.plus = true,
                    ' ' => spec.space = true,
                    '#' => spec.alternate = true,
                    '0' => spec.zero = true,
                    _ => {}
                }
            }
            rest = &rest[flags..];
            let (width, after) = self.count(rest);
            if let Some(width) = width {
                spec.left |= width < 0;
                spec.width = match self.bounded(width.unsigned_abs()) {
                    Some(width) => width,
                    None => return true,
                };
            }
            rest = after;
            if let Some(after) = rest.strip_prefix('.') {
                let (precision, after) = self.count(after);
                spec.precision = match precision {
                    Some(precision) if precision < 0 => None,
                    Some(precision) => match self.bounded(precision.unsigned_abs()) {
                        Some(precision) => Some(precision),
                        None => return true,
                    },
                    None => Some(0),
                };
                rest = after;
            }
            rest = rest.trim_start_matches(['l', 'h', 'j', 'z', 't', 'L']);
            if let Some(inner) = rest.strip_prefix('(')
                && let Some((format, after)) = inner.split_once(")T")
            {
                rest = after;
                self.time(format, &spec);
                continue;
            }
            let Some(kind) = rest.chars().next() else {
                self.complaints.push("`%': missing format character".to_owned());
                return true;
            };
            rest = &rest[kind.len_utf8()..];
            if self.convert(kind, &spec) {
                return true;
            }
        }
        unescape(rest, Style::Format, &mut self.out);
        false
    }

    fn bounded(&mut self, count: u64) -> Option<usize> {
        let bounded = usize::try_from(count).ok().filter(|count| *count <= WIDEST);
        if bounded.is_none() {
            self.complaints.push(format!("a width or precision is larger than {WIDEST}"));
        }
        bounded
    }

    /// A width or a precision: digits, or `*` for the next operand.
    fn count<'t>(&mut self, text: &'t str) -> (Option<i64>, &'t str) {
        if let Some(rest) = text.strip_prefix('*') {
            return (Some(self.integer() as i64), rest);
        }
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        // Digits that exceed the range count as its greatest number.
        let count = (end > 0).then(|| text[..end].parse().unwrap_or(i64::MAX));
        (count, &text[end..])
    }

    fn convert(&mut self, kind: char, spec: &Spec) -> bool {
        match kind {
            '%' => self.out.push(b'%'),
            's' => {
                let text = self.next().unwrap_or_default().to_owned();
                let cut =
                    spec.precision.and_then(|most| text.char_indices().nth(most)).map_or(text.len(), |(at, _)| at);
                self.pad(&text.as_bytes()[..cut], spec);
            }
            'b' => {
                let text = self.next().unwrap_or_default().to_owned();
                let mut bytes = Vec::new();
                let ends = unescape(&text, Style::Echo, &mut bytes);
                self.pad(&bytes, spec);
                return ends;
            }
            'q' => {
                let text = print::escape(self.next().unwrap_or_default());
                self.pad(text.as_bytes(), spec);
            }
            'c' => {
                // Of the bytes, as in C.
                let first = self.next().and_then(|text| text.bytes().next());
                self.pad(first.as_slice(), spec);
            }
            'd' | 'i' => {
                let number = self.integer() as i64;
                self.number(&number.unsigned_abs().to_string(), sign(number < 0, spec), spec);
            }
            'u' | 'o' | 'x' | 'X' => {
                let number = self.unsigned();
                let (digits, prefix) = match kind {
                    'u' => (number.to_string(), ""),
                    'o' => (format!("{number:o}"), "0"),
                    'x' => (format!("{number:x}"), "0x"),
                    _ => (format!("{number:X}"), "0X"),
                };
                let prefix = if spec.alternate && number != 0 { prefix } else { "" };
                self.number(&digits, prefix, spec);
            }
            'e' | 'E' | 'f' | 'F' | 'g' | 'G' | 'a' | 'A' => {
                let number = self.float();
                let digits = float(number.abs(), kind, spec);
                let spec = Spec { zero: spec.zero && number.is_finite(), precision: None, ..*spec };
                let width = spec.width;
                let sign = sign(number.is_sign_negative(), &spec);
                let fill = if spec.zero && !spec.left { width.saturating_sub(sign.len() + digits.len()) } else { 0 };
                self.pad(format!("{sign}{}{digits}", "0".repeat(fill)).as_bytes(), &spec);
            }
            kind => {
                self.complaints.push(format!("`{kind}': invalid format character"));
                return true;
            }
        }
        false
    }

    fn number(&mut self, digits: &str, prefix: &str, spec: &Spec) {
        let digits = if spec.precision == Some(0) && digits == "0" { "" } else { digits };
        let least = match spec.precision {
            Some(precision) => precision,
            None if spec.zero && !spec.left => spec.width.saturating_sub(prefix.len()),
            None => 0,
        };
        let zeros = "0".repeat(least.saturating_sub(digits.len()));
        self.pad(format!("{prefix}{zeros}{digits}").as_bytes(), spec);
    }

    fn pad(&mut self, text: &[u8], spec: &Spec) {
        // Widths count bytes, as in the C library.
        let fill = spec.width.saturating_sub(text.len());
        if !spec.left {
            self.out.resize(self.out.len() + fill, b' ');
        }
        self.out.extend_from_slice(text);
        if spec.left {
            self.out.resize(self.out.len() + fill, b' ');
        }
    }

    /// `%(format)T`: seconds since 1970; -1 is now, -2 when the shell began.
    fn time(&mut self, format: &str, spec: &Spec) {
        let seconds = match self.operands.is_empty() {
            true => -1,
            false => self.integer() as i64,
        };
        let seconds = match seconds {
            -1 => self.now,
            -2 => self.began,
            seconds => seconds,
        };
        let format = if format.is_empty() { "%X" } else { format };
        let text = calendar::format(format, seconds);
        let cut = spec.precision.and_then(|most| text.char_indices().nth(most)).map_or(text.len(), |(at, _)| at);
        self.pad(&text.as_bytes()[..cut], spec);
    }

    /// The number, clamped to the range of a signed 64-bit integer.
    fn integer(&mut self) -> i128 {
        let number = self.number_of();
        number.clamp(i128::from(i64::MIN), i128::from(i64::MAX))
    }

    fn unsigned(&mut self) -> u64 {
        match self.number_of() {
            number if number >= 0 => u64::try_from(number).unwrap_or(u64::MAX),
            // As C does it: the negative of a number without sign.
            number => u64::try_from(-number).map_or(u64::MAX, u64::wrapping_neg),
        }
    }

    fn number_of(&mut self) -> i128 {
        let text = self.next().unwrap_or_default().to_owned();
        match integer(&text) {
            Ok(number) => number,
            Err(number) => {
                self.complaints.push(format!("{text}: invalid number"));
                number
            }
        }
    }

    fn float(&mut self) -> f64 {
        let text = self.next().unwrap_or_default().to_owned();
        let trimmed = text.trim_start();
        if trimmed.is_empty() {
            return 0.0;
        }
        if let Some(c) = character(trimmed) {
            return f64::from(c);
        }
        if let Ok(number) = trimmed.parse::<f64>() {
            return number;
        }
        if trimmed.starts_with("0x")
            && let Ok(number) = integer(trimmed)
        {
            return number as f64;
        }
        self.complaints.push(format!("{text}: invalid number"));
        let longest = (1..=trimmed.len()).rev().filter(|&end| trimmed.is_char_boundary(end));
        longest.into_iter().find_map(|end| trimmed[..end].parse().ok()).unwrap_or(0.0)
    }
}

/// `'a` and `"a` mean the number of the character.
fn character(text: &str) -> Option<u32> {
    Some(text.strip_prefix(['\'', '"'])?.chars().next().map_or(0, u32::from))
}

/// Numbers as C writes them: decimal, octal after a 0, hexadecimal after 0x. The error is the number before the first invalid character.
fn integer(text: &str) -> Result<i128, i128> {
    let text = text.trim_start();
    if let Some(c) = character(text) {
        return Ok(i128::from(c));
    }
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (base, digits) = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => (16, digits),
        None if digits.len() > 1 && digits.starts_with('0') => (8, &digits[1..]),
        None => (10, digits),
    };
    let mut number = 0_i128;
    let mut end = 0;
    for digit in digits.chars().map_while(|c| c.to_digit(base)) {
        number = number.saturating_mul(i128::from(base)).saturating_add(i128::from(digit));
        end += 1;
    }
    let value = if negative { -number } else { number };
    if end == digits.len() && (end > 0 || text.is_empty()) { Ok(value) } else { Err(value) }
}

fn sign(negative: bool, spec: &Spec) -> &'static str {
    match (negative, spec.plus, spec.space) {
        (true, ..) => "-",
        (_, true, _) => "+",
        (.., true) => " ",
        _ => "",
    }
}

/// A number that is not negative, as C's formats write it.
fn float(number: f64, kind: char, spec: &Spec) -> String {
    let text = if number.is_finite() {
        let precision = spec.precision.unwrap_or(6);
        match kind.to_ascii_lowercase() {
            'a' => hexadecimal(number, spec.precision),
            'f' if spec.alternate && precision == 0 => format!("{number:.0}."),
            'f' => fixed(number, precision),
            'e' => exponent(number, precision),
            _ => general(number, precision.max(1), spec.alternate),
        }
    } else if number.is_nan() {
        "nan".to_owned()
    } else {
        "inf".to_owned()
    };
    if kind.is_ascii_uppercase() { text.to_uppercase() } else { text }
}

/// `%a`, as bash writes it, whose numbers have 64 bits behind no point: the first digit is 8 to f.
fn hexadecimal(number: f64, precision: Option<usize>) -> String {
    const MANTISSA: u32 = 52;
    let bits = number.to_bits();
    let (exponent, fraction) = ((bits >> MANTISSA) & 0x7ff, bits & ((1 << MANTISSA) - 1));
    let (mut exponent, mantissa) = match exponent {
        0 if fraction == 0 => return format!("0x0{}p+0", point(&"0".repeat(precision.unwrap_or(0)))),
        0 => (-1074, fraction),
        exponent => (exponent as i32 - 1075, fraction | 1 << MANTISSA),
    };
    // The highest bit is that of the first digit.
    let shift = mantissa.leading_zeros();
    let mut mantissa = u128::from(mantissa << shift);
    exponent += 60 - shift as i32;
    let digits = precision.unwrap_or(15).min(15);
    let unit = 1_u128 << (4 * (15 - digits));
    let rest = mantissa % unit;
    mantissa -= rest;
    if rest * 2 > unit || (rest * 2 == unit && mantissa / unit % 2 == 1) {
        mantissa += unit;
    }
    if mantissa >> 64 > 0 {
        (mantissa, exponent) = (mantissa >> 4, exponent + 4);
    }
    let text = format!("{mantissa:016x}");
    let (first, rest) = text.split_at(1);
    let rest = match precision {
        Some(precision) => format!("{}{}", &rest[..digits], "0".repeat(precision - digits)),
        None => rest.trim_end_matches('0').to_owned(),
    };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("0x{first}{}p{sign}{}", point(&rest), exponent.unsigned_abs())
}

fn point(digits: &str) -> String {
    if digits.is_empty() { String::new() } else { format!(".{digits}") }
}

/// `%f`.
fn fixed(number: f64, precision: usize) -> String {
    let digits = precision.min(MOST_DIGITS);
    format!("{number:.digits$}{}", "0".repeat(precision - digits))
}

/// `%e`.
fn exponent(number: f64, precision: usize) -> String {
    let most = precision.min(MOST_DIGITS);
    let text = format!("{number:.most$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
    format!("{digits}{}e{sign}{exponent:0>2}", "0".repeat(precision - most))
}

/// `%g`: whichever form is shorter, without zeros at the end.
fn general(number: f64, precision: usize, keep_zeros: bool) -> String {
    let scientific = exponent(number, precision - 1);
    let power: i32 = scientific.split_once('e').and_then(|(_, power)| power.parse().ok()).unwrap_or(0);
    let trim = |text: &str| match text.contains('.') && !keep_zeros {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if power < -4 || power >= precision as i32 {
        let (digits, power) = scientific.split_once('e').unwrap_or((&scientific, "+00"));
        return format!("{}e{power}", trim(digits));
    }
    let places = (precision as i32 - 1 - power).max(0) as usize;
    trim(&fixed(number, places))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    /// The output and the errors of a format, with the clock at 1970.
    fn printed<'a>(format: &str, operands: &'a [String]) -> Printed<'a> {
        let mut printed = Printed { operands, out: Vec::new(), complaints: Vec::new(), now: 0, began: 0 };
        printed.all(format);
        printed
    }

    fn check(format: &str, operands: &[&str], expected: &str) {
        let operands: Vec<String> = operands.iter().map(|operand| (*operand).to_owned()).collect();
        let printed = printed(format, &operands);
        assert_eq!(String::from_utf8_lossy(&printed.out), expected);
    }

    #[test]
    fn formats_as_c_does() {
        check("%5.2f|%-6s|%06d\n", &["3.14159", "ab", "-42"], " 3.14|ab    |-00042\n");
        check("%x %X %o %#x %c%c", &["255", "255", "8", "255", "abc", ""], "ff FF 10 0xff a");
        check(
            "%e %g %g %g %G",
            &["12345.678", "0.0001", "1e10", "100000", "1e-7"],
            "1.234568e+04 0.0001 1e+10 100000 1E-07",
        );
        check("%*d|%-*d|%.*f", &["5", "42", "5", "42", "1", "2.55"], "   42|42   |2.5");
        check("%+d % d %i %u", &["5", "5", "010", "0x10"], "+5  5 8 16");
        check("%.3s|%5s|%%|%b", &["abcdef", "ä", "a\\tb"], "abc|   ä|%|a\tb");
        check("%q %q", &["a b", ""], "a\\ b ''");
        check("%d", &["'a"], "97");
        check("%a %a %a %A", &["1", "255.5", "0", "-0.1"], "0x8p-3 0xf.f8p+4 0x0p+0 -0XC.CCCCCCCCCCCDP-7");
        check("%.0a %.2a %.1a", &["1.999", "1", "255.99"], "0x1p+1 0x8.00p-3 0x1.0p+8");
    }

    #[test]
    fn a_precision_may_be_large_and_has_an_end() {
        let operands = ["1.5".to_owned(), "x".to_owned()];
        for (format, length) in
            [("%.65536f", 65_538), ("%.1000000e", 1_000_006), ("%#.70000g", 70_001), ("%.70000g", 3)]
        {
            let printed = printed(format, &operands[..1]);
            assert_eq!((printed.out.len(), printed.complaints.len()), (length, 0), "{format}");
        }
        for format in ["%.1000000000f", "%1000000000d", "%99999999999999999999s", "%.99999999999999999999s"] {
            let printed = printed(format, &operands);
            assert_eq!((printed.out.len(), printed.complaints.len()), (0, 1), "{format}");
        }
    }

    #[test]
    fn uses_the_format_again() {
        check("%s=%d\n", &["a", "1", "b"], "a=1\nb=0\n");
        check("x\n", &["a", "b"], "x\n");
        check("[%s]", &[], "[]");
    }

    #[test]
    fn complains_of_what_is_no_number() {
        let operands = ["12x".to_owned()];
        let printed = printed("%d", &operands);
        assert_eq!((printed.out.as_slice(), printed.complaints.len()), (&b"12"[..], 1));
    }
}
