//! File name patterns, as `find -name`, `grep --include`, `tar --exclude` and `unzip` take them: `*`, `?`, `[…]`, `\`.

/// Whether the whole text fits the pattern. A slash is a character like any other.
pub fn fits(pattern: &str, text: &str, ignore_case: bool) -> bool {
    let fold = |text: &str| -> Vec<char> {
        if ignore_case { text.chars().flat_map(char::to_lowercase).collect() } else { text.chars().collect() }
    };
    fits_from(&fold(pattern), &fold(text))
}

/// Goes back to the last `*` only, which is enough: an earlier one could not match more.
fn fits_from(pattern: &[char], text: &[char]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star = None;
    loop {
        if p < pattern.len() && pattern[p] == '*' {
            star = Some((p, t));
            p += 1;
            continue;
        }
        if t == text.len() && p == pattern.len() {
            return true;
        }
        if t < text.len()
            && let Some(length) = one(&pattern[p..], text[t])
        {
            p += length;
            t += 1;
            continue;
        }
        match star {
            Some((at, from)) if from < text.len() => {
                star = Some((at, from + 1));
                (p, t) = (at + 1, from + 1);
            }
            _ => return false,
        }
    }
}

/// How much of the pattern takes this character, if its beginning does.
fn one(pattern: &[char], c: char) -> Option<usize> {
    match pattern.first()? {
        '?' => Some(1),
        '\\' if pattern.len() > 1 => (pattern[1] == c).then_some(2),
        '[' => match set(pattern, c) {
            Some((length, fits)) => fits.then_some(length),
            None => (c == '[').then_some(1),
        },
        literal => (*literal == c).then_some(1),
    }
}

/// The length of the bracket expression that the pattern begins with and whether it holds the character; nothing if it
/// is not closed.
fn set(pattern: &[char], c: char) -> Option<(usize, bool)> {
    let negated = matches!(pattern.get(1), Some('!' | '^'));
    let first = if negated { 2 } else { 1 };
    let mut at = first;
    let mut found = false;
    loop {
        let start = *pattern.get(at)?;
        if start == ']' && at > first {
            return Some((at + 1, found != negated));
        }
        if start == '['
            && pattern.get(at + 1) == Some(&':')
            && let Some(end) = pattern[at + 2..].iter().position(|c| *c == ':').map(|offset| at + 2 + offset)
            && pattern.get(end + 1) == Some(&']')
        {
            found |= class(&pattern[at + 2..end].iter().collect::<String>(), c);
            at = end + 2;
            continue;
        }
        if pattern.get(at + 1) == Some(&'-') && pattern.get(at + 2).is_some_and(|end| *end != ']') {
            found |= (start..=pattern[at + 2]).contains(&c);
            at += 3;
        } else {
            found |= start == c;
            at += 1;
        }
    }
}

fn class(name: &str, c: char) -> bool {
    match name {
        "alpha" => c.is_alphabetic(),
        "digit" => c.is_ascii_digit(),
        "alnum" => c.is_alphanumeric(),
        "upper" => c.is_uppercase(),
        "lower" => c.is_lowercase(),
        "space" => c.is_whitespace(),
        "blank" => c == ' ' || c == '\t',
        "punct" => c.is_ascii_punctuation(),
        "xdigit" => c.is_ascii_hexdigit(),
        "cntrl" => c.is_control(),
        "print" => !c.is_control(),
        "graph" => !c.is_control() && !c.is_whitespace(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn patterns_fit_whole_names() {
        for (pattern, text) in [
            ("*.txt", "a.txt"),
            ("*", ""),
            ("a*b*c", "a-b-b-c"),
            ("?x", "äx"),
            ("[a-c]1", "b1"),
            ("[!a-c]1", "d1"),
            ("[]x]", "]"),
            ("[[:digit:]]*", "7z"),
            ("\\*", "*"),
            ("[", "["),
            ("*/b", "a/c/b"),
        ] {
            assert!(fits(pattern, text, false), "{pattern} {text}");
        }
        for (pattern, text) in [("*.txt", "a.txt.gz"), ("[a-c]", "d"), ("a", "A"), ("\\*", "x"), ("?", "")] {
            assert!(!fits(pattern, text, false), "{pattern} {text}");
        }
        assert!(fits("*.TXT", "a.txt", true));
    }

    #[test]
    fn many_stars_take_no_time() {
        assert!(!fits(&"*a".repeat(60), &"a".repeat(59), false));
    }
}
