//! `[[ text =~ expression ]]`: POSIX extended regular expressions on `regex-lite`.
//!
//! Among alternatives that match, the first wins instead of the longest.

use regex_lite::RegexBuilder;

use crate::expand::Stop;

/// The match and its groups, for `BASH_REMATCH`. The expression's parts say whether they were quoted.
pub fn groups(parts: &[(String, bool)], text: &str, fold: bool) -> Result<Option<Vec<String>>, Stop> {
    let others = Others::from_text(text, fold);
    let source =
        translated(parts, &others).map_err(|why| Stop::misuse(format!("[[: invalid regular expression: {why}")))?;
    let regex = RegexBuilder::new(&source)
        .case_insensitive(fold)
        .dot_matches_new_line(true)
        .build()
        .map_err(|error| Stop::misuse(format!("[[: invalid regular expression: {error}")))?;
    let Some(captures) = regex.captures(text) else { return Ok(None) };
    let group = |found: Option<regex_lite::Match>| found.map_or_else(String::new, |found| found.as_str().to_owned());
    Ok(Some(captures.iter().map(group).collect()))
}

/// The characters of the text beyond ASCII. The crate has no tables of them, and none but these can be matched: a class is its ASCII part
/// and those of them that it holds.
struct Others {
    chars: Vec<char>,
    fold: bool,
}

impl Others {
    fn from_text(text: &str, fold: bool) -> Self {
        let mut chars: Vec<char> = text.chars().filter(|c| !c.is_ascii()).collect();
        chars.sort_unstable();
        chars.dedup();
        Self { chars, fold }
    }

    /// `c` as itself or, where case is folded, in either case.
    fn either(&self, c: char) -> Vec<char> {
        let cases = c.to_lowercase().chain(c.to_uppercase()).filter(|_| self.fold && !c.is_ascii());
        let mut all: Vec<char> = cases.collect();
        all.insert(0, c);
        all.dedup();
        all
    }

    fn in_class(&self, name: &str) -> impl Iterator<Item = char> {
        let holds: fn(char) -> bool = match name {
            "alpha" => char::is_alphabetic,
            "alnum" => char::is_alphanumeric,
            "upper" => char::is_uppercase,
            "lower" => char::is_lowercase,
            "space" => |c| c.is_whitespace() && c != '\u{a0}',
            "blank" => |c| c.is_whitespace() && !matches!(c, '\u{85}' | '\u{a0}' | '\u{2028}' | '\u{2029}'),
            "punct" => |c| !c.is_alphanumeric() && !c.is_whitespace() && !c.is_control(),
            "graph" => |c| !c.is_whitespace() && !c.is_control(),
            "print" => |c| !c.is_control(),
            "cntrl" => char::is_control,
            _ => |_| false,
        };
        self.chars.iter().copied().filter(move |c| self.either(*c).into_iter().any(holds))
    }
}

/// In the crate's syntax. They differ inside brackets, where POSIX has no escapes and the crate has more operators, and in
/// escapes of letters, which mean nothing in POSIX.
fn translated(parts: &[(String, bool)], others: &Others) -> Result<String, &'static str> {
    let marks: Vec<(char, bool)> =
        parts.iter().flat_map(|(text, quoted)| text.chars().map(move |c| (c, *quoted))).collect();
    let mut source = String::new();
    let (mut at, mut groups) = (0, 0_usize);
    while let Some(&(c, quoted)) = marks.get(at) {
        at += 1;
        match c {
            _ if quoted => letter(c, others, &mut source),
            '[' => match bracket(&marks, at, others, &mut source) {
                Some(behind) => at = behind,
                None => return Err("a [ without its ]"),
            },
            '\\' => match marks.get(at) {
                Some(&(next @ ('b' | 'B' | 'w' | 'W' | 's' | 'S'), _)) => {
                    source.extend(['\\', next]);
                    at += 1;
                }
                Some(&(next, _)) => {
                    letter(next, others, &mut source);
                    at += 1;
                }
                None => return Err("a backslash at its end"),
            },
            '{' if marks.get(at).is_some_and(|next| next.0 == ',') && repetition(&marks[at + 1..]) => {
                source.push_str("{0");
            }
            '{' if !repetition(&marks[at..]) => return Err("a { that no repetition follows"),
            // One that closes nothing is a character.
            ')' if groups == 0 => source.push_str("\\)"),
            c if !c.is_ascii() => letter(c, others, &mut source),
            c => {
                groups = groups + usize::from(c == '(') - usize::from(c == ')');
                source.push(c);
            }
        }
    }
    Ok(source)
}

/// A character that stands for itself, in either case where that is folded.
fn letter(c: char, others: &Others, source: &mut String) {
    match others.either(c).as_slice() {
        [one] => literal(*one, source),
        all => source.extend(["[".to_owned(), all.iter().collect(), "]".to_owned()]),
    }
}

fn literal(c: char, source: &mut String) {
    source.extend(c.is_ascii_punctuation().then_some('\\'));
    source.push(c);
}

/// Behind a `{`: whether `3}`, `3,}` or `3,5}` follows.
fn repetition(marks: &[(char, bool)]) -> bool {
    let end = marks.iter().position(|mark| mark.0 == '}');
    end.is_some_and(|end| {
        end > 0 && marks[0].0 != ',' && marks[..end].iter().all(|mark| mark.0.is_ascii_digit() || mark.0 == ',')
    })
}

/// Behind a `[`: writes the bracket expression and returns the index behind it; nothing if it has no end.
fn bracket(marks: &[(char, bool)], mut at: usize, others: &Others, source: &mut String) -> Option<usize> {
    let mut inner = String::from("[");
    if marks.get(at)?.0 == '^' {
        inner.push('^');
        at += 1;
    }
    let first = at;
    loop {
        let &(c, _) = marks.get(at)?;
        if c == ']' && at > first {
            source.push_str(&inner);
            source.push(']');
            return Some(at + 1);
        }
        if c == '[' && marks.get(at + 1).is_some_and(|next| next.0 == ':') {
            let end =
                marks[at..].windows(2).position(|pair| pair[0].0 == ':' && pair[1].0 == ']').filter(|&end| end > 1)?;
            inner.extend(marks[at..at + end + 2].iter().map(|mark| mark.0));
            let name: String = marks[at + 2..at + end].iter().map(|mark| mark.0).collect();
            inner.extend(others.in_class(&name).flat_map(|c| others.either(c)));
            at += end + 2;
            continue;
        }
        inner.extend(matches!(c, '\\' | '[' | ']' | '&' | '~' | '^').then_some('\\'));
        match is_range(marks, at) {
            true => inner.push(c),
            false => inner.extend(others.either(c)),
        }
        at += 1;
    }
}

/// Whether a character is one end of a range.
fn is_range(marks: &[(char, bool)], at: usize) -> bool {
    let dash = |at: Option<usize>| at.and_then(|at| marks.get(at)).is_some_and(|mark| mark.0 == '-');
    dash(at.checked_sub(1)) || dash(Some(at + 1))
}
