//! How two lines are compared.

use std::cmp::Ordering;
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};

use super::key::{Key, Kind, is_blank};
use crate::cli::Error;

/// By what lines are ordered, apart from the last resort, which is their bytes.
#[derive(Default)]
pub struct Order {
    pub separator: Option<u8>,
    keys: Vec<Key>,
    seed: u64,
}

/// A line with what is known of its first key, so that it need not be found again for every comparison.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub line: &'a [u8],
    pub key: &'a [u8],
    pub value: f64,
}

impl Order {
    /// Takes the keys, and the options of the whole line, which hold for keys without options.
    pub fn set_keys(&mut self, global: Key, keys: Vec<Key>) -> Result<(), Error> {
        self.keys = keys.into_iter().map(|key| key.with(&global)).collect();
        if self.keys.is_empty() {
            self.keys.push(global.clone());
        }
        if global.mixed || self.keys.iter().any(|key| key.mixed) {
            return Err("options '-ghMnRV' are incompatible with each other".into());
        }
        if self.seed == 0 && self.keys.iter().any(|key| key.kind == Kind::Random) {
            self.seed = RandomState::new().hash_one(0) | 1;
        }
        Ok(())
    }

    /// Derives the seed of `-R` from these bytes.
    pub fn seed_with(&mut self, bytes: &[u8]) {
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        self.seed = hasher.finish() | 1;
    }

    /// Whether equal keys are equal bytes of whole lines.
    pub fn is_plain(&self) -> bool {
        let [key] = self.keys.as_slice() else { return false };
        key.is_whole() && key.kind == Kind::Text && !key.fold && !key.dictionary && !key.printable
    }

    pub fn view<'a>(&self, line: &'a [u8]) -> View<'a> {
        let key = &self.keys[0];
        let text = if key.is_whole() { line } else { &line[key.find(line, self.separator)] };
        View { line, key: text, value: self.value(key.kind, text) }
    }

    /// Compares two lines by their keys.
    pub fn compare(&self, a: &View, b: &View) -> Ordering {
        let first = &self.keys[0];
        let by_first = by_value(first.kind, a.value, b.value).then_with(|| self.by_bytes(first, a.key, b.key));
        let mut order = if first.reverse { by_first.reverse() } else { by_first };
        for key in &self.keys[1..] {
            if order.is_ne() {
                break;
            }
            let (x, y) = (&a.line[key.find(a.line, self.separator)], &b.line[key.find(b.line, self.separator)]);
            order = by_value(key.kind, self.value(key.kind, x), self.value(key.kind, y));
            order = order.then_with(|| self.by_bytes(key, x, y));
            order = if key.reverse { order.reverse() } else { order };
        }
        order
    }

    /// A number that orders keys of this kind, though it may be the same for two that differ.
    fn value(&self, kind: Kind, key: &[u8]) -> f64 {
        match kind {
            Kind::Text | Kind::Version => 0.0,
            Kind::Number => approximate(decimal(key).0),
            Kind::Float => float(key),
            Kind::Human => {
                let (number, rest) = decimal(key);
                let number = approximate(number);
                let unit = rest
                    .first()
                    .and_then(|byte| b"KMGTPEZYRQ".iter().position(|u| u == byte || (*u == b'K' && *byte == b'k')));
                let unit = unit.filter(|_| number != 0.0).map_or(0.0, |unit| unit as f64 + 1.0);
                if number < 0.0 { -unit } else { unit }
            }
            Kind::Month => month(key),
            Kind::Random => {
                let mut hasher = DefaultHasher::new();
                (self.seed, key).hash(&mut hasher);
                // The bits that a number has room for.
                (hasher.finish() >> 11) as f64
            }
        }
    }

    fn by_bytes(&self, key: &Key, a: &[u8], b: &[u8]) -> Ordering {
        match key.kind {
            Kind::Number => exactly(decimal(a).0, decimal(b).0),
            Kind::Human => {
                let (a, b) = (decimal(a).0, decimal(b).0);
                approximate(a).total_cmp(&approximate(b)).then_with(|| exactly(a, b))
            }
            Kind::Float | Kind::Month => Ordering::Equal,
            Kind::Version => version(a, b),
            Kind::Text | Kind::Random if !(key.fold || key.dictionary || key.printable) => a.cmp(b),
            Kind::Text | Kind::Random => translated(key, a).cmp(translated(key, b)),
        }
    }
}

fn by_value(kind: Kind, a: f64, b: f64) -> Ordering {
    match kind {
        Kind::Text | Kind::Version => Ordering::Equal,
        Kind::Float => a.total_cmp(&b),
        _ => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
    }
}

/// The bytes that `-d` and `-i` leave, in the case that `-f` makes.
fn translated<'a>(key: &'a Key, bytes: &'a [u8]) -> impl Iterator<Item = u8> + 'a {
    let kept = |byte: &u8| {
        (!key.dictionary || is_blank(*byte) || byte.is_ascii_alphanumeric())
            && (!key.printable || matches!(byte, b' '..=b'~'))
    };
    bytes.iter().copied().filter(kept).map(|byte| if key.fold { byte.to_ascii_uppercase() } else { byte })
}

fn trim(text: &[u8]) -> &[u8] {
    &text[text.iter().take_while(|byte| is_blank(**byte)).count()..]
}

/// A decimal number: its sign and the digits before and after the point without zeros that say nothing.
type Decimal<'a> = (bool, &'a [u8], &'a [u8]);

/// The number that the key begins with (0 if there is none), and what follows it.
fn decimal(key: &[u8]) -> (Decimal<'_>, &[u8]) {
    let text = trim(key);
    let (negative, text) = text.strip_prefix(b"-").map_or((false, text), |rest| (true, rest));
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (whole, mut rest) = text.split_at(digits(text));
    let mut part: &[u8] = b"";
    if let [b'.', after @ ..] = rest {
        (part, rest) = after.split_at(digits(after));
    }
    let whole = &whole[whole.iter().take_while(|digit| **digit == b'0').count()..];
    let zeros = part.iter().rev().take_while(|digit| **digit == b'0').count();
    let part = &part[..part.len() - zeros];
    ((negative && !(whole.is_empty() && part.is_empty()), whole, part), rest)
}

/// The nearest number that fits 64 bits. It never orders two numbers otherwise than they are.
fn approximate((negative, whole, part): Decimal) -> f64 {
    let number = if whole.len() + part.len() <= 15 {
        let digits = whole.iter().chain(part).fold(0u64, |number, digit| number * 10 + u64::from(digit - b'0'));
        // Both are exact, so the quotient is the nearest number.
        digits as f64 / 10f64.powi(part.len() as i32)
    } else {
        let text = [whole, b".", part].concat();
        std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok()).unwrap_or(f64::INFINITY)
    };
    if negative { -number } else { number }
}

fn exactly(a: Decimal, b: Decimal) -> Ordering {
    let by_size = a.1.len().cmp(&b.1.len()).then_with(|| a.1.cmp(b.1)).then_with(|| a.2.cmp(b.2));
    match (a.0, b.0) {
        (false, false) => by_size,
        (true, true) => by_size.reverse(),
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
    }
}

/// The floating point number that the key begins with. What is none comes before NaN, and that before all numbers.
fn float(key: &[u8]) -> f64 {
    let text = trim(key);
    let text = String::from_utf8_lossy(&text[..text.len().min(400)]);
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, &*text),
    };
    let lower = digits.to_ascii_lowercase();
    let number = if lower.starts_with("inf") {
        f64::INFINITY
    } else if lower.starts_with("nan") {
        return -f64::from_bits(0x7ff8_0000_0000_0000);
    } else if let Some(hex) = lower.strip_prefix("0x") {
        hex.chars().map_while(|c| c.to_digit(16)).fold(0.0, |number, digit| number * 16.0 + f64::from(digit))
    } else {
        match prefix(&lower) {
            Some(number) => number,
            None => return -f64::from_bits(0x7fff_ffff_ffff_ffff),
        }
    };
    // -0 is as large as 0.
    (if negative { -number } else { number }) + 0.0
}

/// The longest beginning that is a number.
fn prefix(text: &str) -> Option<f64> {
    let count = |from: usize| text[from..].bytes().take_while(u8::is_ascii_digit).count();
    let whole = count(0);
    let mut end = whole;
    if text[end..].starts_with('.') {
        let part = count(end + 1);
        if whole + part == 0 {
            return None;
        }
        end += 1 + part;
    } else if whole == 0 {
        return None;
    }
    if text[end..].starts_with('e') {
        let sign = usize::from(text[end + 1..].starts_with(['+', '-']));
        let digits = count(end + 1 + sign);
        if digits > 0 {
            end += 1 + sign + digits;
        }
    }
    text[..end].parse().ok()
}

fn month(key: &[u8]) -> f64 {
    const MONTHS: &[u8; 36] = b"JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC";
    let text = trim(key);
    let Some(name) = text.get(..3) else { return 0.0 };
    MONTHS.chunks(3).position(|month| month.eq_ignore_ascii_case(name)).map_or(0.0, |month| month as f64 + 1.0)
}

/// Like `ls -v` and `sort -V`: digits are compared as numbers, `~` comes before the end, letters before the rest. A suffix
/// like `.tar.gz` counts only if all before it is equal.
fn version(a: &[u8], b: &[u8]) -> Ordering {
    if a == b {
        return Ordering::Equal;
    }
    // The empty name, `.` and `..` come first, then other hidden names.
    let rank = |name: &[u8]| match name {
        b"" => 0,
        b"." => 1,
        b".." => 2,
        [b'.', ..] => 3,
        _ => 4,
    };
    let (ranks, hidden) = (rank(a).cmp(&rank(b)), rank(a) == 3);
    if ranks.is_ne() {
        return ranks;
    }
    let (a, b) = if hidden { (&a[1..], &b[1..]) } else { (a, b) };
    pieces(&a[..stem(a)], &b[..stem(b)]).then_with(|| pieces(a, b)).then_with(|| a.cmp(b))
}

/// Where the suffix `(\.[A-Za-z~][A-Za-z0-9~]*)*$` begins.
fn stem(name: &[u8]) -> usize {
    let mut end = name.len();
    while let Some(dot) = name[..end].iter().rposition(|byte| *byte == b'.') {
        let (first, rest) = match &name[dot + 1..end] {
            [first, rest @ ..] => (*first, rest),
            [] => break,
        };
        let fits = (first.is_ascii_alphabetic() || first == b'~')
            && rest.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'~');
        if !fits || dot == 0 {
            break;
        }
        end = dot;
    }
    end
}

fn pieces(mut a: &[u8], mut b: &[u8]) -> Ordering {
    let weight = |byte: Option<&u8>| match byte {
        Some(b'~') => -1,
        None => 0,
        Some(byte) if byte.is_ascii_digit() => 0,
        Some(byte) if byte.is_ascii_alphabetic() => i32::from(*byte),
        Some(byte) => i32::from(*byte) + 256,
    };
    let is_other = |text: &[u8]| text.first().is_some_and(|byte| !byte.is_ascii_digit());
    while !(a.is_empty() && b.is_empty()) {
        while is_other(a) || is_other(b) {
            let order = weight(a.first()).cmp(&weight(b.first()));
            if order.is_ne() {
                return order;
            }
            (a, b) = (a.get(1..).unwrap_or_default(), b.get(1..).unwrap_or_default());
        }
        let split = |text: &'_ [u8]| {
            let zeros = text.iter().take_while(|byte| **byte == b'0').count();
            (zeros, zeros + text[zeros..].iter().take_while(|byte| byte.is_ascii_digit()).count())
        };
        let ((zeros_a, end_a), (zeros_b, end_b)) = (split(a), split(b));
        let (x, y) = (&a[zeros_a..end_a], &b[zeros_b..end_b]);
        let order = x.len().cmp(&y.len()).then_with(|| x.cmp(y));
        if order.is_ne() {
            return order;
        }
        (a, b) = (&a[end_a..], &b[end_b..]);
    }
    Ordering::Equal
}
