//! What counts as a number, by the rules of `skills/data/table`.

/// How a column writes its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// `1,234.5`
    Point,
    /// `1.234,5`
    Comma,
}

/// Whether `text` says that a number or a date is missing.
pub fn is_missing(text: &str) -> bool {
    const WORDS: [&str; 9] = ["na", "n/a", "nan", "null", "none", "-", "inf", "-inf", "#n/a"];
    text.is_empty() || (text.len() <= 4 && WORDS.iter().any(|w| text.eq_ignore_ascii_case(w)))
}

/// Whether `text` is a number. Not what only looks like one and would lose digits: numbers with leading zeros (post
/// codes) and integers above 2^53 (identifiers).
pub fn is_number(text: &str, style: Style) -> bool {
    let Some(first) = text.chars().next() else { return false };
    if !(first.is_ascii_digit() || matches!(first, '-' | '+' | '.' | ',' | '\u{2212}')) {
        return false;
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
        return ungrouped(text, group, point).is_some_and(|plain| simple(&plain));
    }
    simple(text)
}

fn simple(text: &str) -> bool {
    let digits = text.trim_start_matches(['-', '+']);
    let bytes = digits.as_bytes();
    if bytes.len() > 1 && bytes[0] == b'0' && bytes[1].is_ascii_digit() {
        return false;
    }
    if !text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'-' | b'+' | b'.' | b'e' | b'E')) {
        return false;
    }
    let whole = bytes.iter().all(u8::is_ascii_digit);
    if whole && bytes.len() > 15 && digits.parse::<u64>().map_or(true, |n| n > 1 << 53) {
        return false;
    }
    text.parse::<f64>().is_ok_and(f64::is_finite)
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
