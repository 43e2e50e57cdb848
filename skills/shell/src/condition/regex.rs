//! `[[ text =~ expression ]]`: POSIX extended regular expressions on `regex-lite`.
//!
//! Among alternatives that match, the first wins instead of the longest.

use regex_lite::RegexBuilder;

use crate::expand::Stop;

/// The match and its groups, for `BASH_REMATCH`. The expression's parts say whether they were quoted.
pub fn groups(parts: &[(String, bool)], text: &str, fold: bool) -> Result<Option<Vec<String>>, Stop> {
    let source = translated(parts).map_err(|why| Stop::misuse(format!("[[: invalid regular expression: {why}")))?;
    let regex = RegexBuilder::new(&source)
        .case_insensitive(fold)
        .dot_matches_new_line(true)
        .build()
        .map_err(|error| Stop::misuse(format!("[[: invalid regular expression: {error}")))?;
    let Some(captures) = regex.captures(text) else { return Ok(None) };
    let group = |found: Option<regex_lite::Match>| found.map_or_else(String::new, |found| found.as_str().to_owned());
    Ok(Some(captures.iter().map(group).collect()))
}

/// In the crate's syntax. They differ inside brackets, where POSIX has no escapes and the crate has more operators, and in
/// escapes of letters, which mean nothing in POSIX.
fn translated(parts: &[(String, bool)]) -> Result<String, &'static str> {
    let marks: Vec<(char, bool)> =
        parts.iter().flat_map(|(text, quoted)| text.chars().map(move |c| (c, *quoted))).collect();
    let mut source = String::new();
    let (mut at, mut groups) = (0, 0_usize);
    while let Some(&(c, quoted)) = marks.get(at) {
        at += 1;
        match c {
            _ if quoted => literal(c, &mut source),
            '[' => match bracket(&marks, at, &mut source) {
                Some(behind) => at = behind,
                None => return Err("a [ without its ]"),
            },
            '\\' => match marks.get(at) {
                Some(&(next @ ('b' | 'B' | 'w' | 'W' | 's' | 'S'), _)) => {
                    source.extend(['\\', next]);
                    at += 1;
                }
                Some(&(next, _)) => {
                    literal(next, &mut source);
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
            c => {
                groups = groups + usize::from(c == '(') - usize::from(c == ')');
                source.push(c);
            }
        }
    }
    Ok(source)
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
fn bracket(marks: &[(char, bool)], mut at: usize, source: &mut String) -> Option<usize> {
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
            at += end + 2;
            continue;
        }
        inner.extend(matches!(c, '\\' | '[' | ']' | '&' | '~' | '^').then_some('\\'));
        inner.push(c);
        at += 1;
    }
}
