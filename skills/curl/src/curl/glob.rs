//! URLs with sets and ranges: `{a,b}`, `[1-10:2]`, `[001-100]`, `[a-z]`.

use super::failed::Failed;
use crate::limits::GLOBBED;

/// A URL, and what stood for each of its patterns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Globbed {
    pub url: String,
    pub parts: Vec<String>,
}

enum Piece {
    Text(String),
    Choices(Vec<String>),
}

/// Expands a URL, the last pattern fastest.
pub fn expand(pattern: &str) -> Result<Vec<Globbed>, Failed> {
    let pieces = parse(pattern)?;
    let mut all = vec![Globbed { url: String::new(), parts: Vec::new() }];
    for piece in pieces {
        match piece {
            Piece::Text(text) => all.iter_mut().for_each(|globbed| globbed.url.push_str(&text)),
            Piece::Choices(choices) => {
                if all.len() as u64 * choices.len() as u64 > GLOBBED {
                    return Err(Failed::new(3, format!("the pattern makes more than {GLOBBED} URLs")));
                }
                let with = |globbed: &Globbed, choice: &String| Globbed {
                    url: format!("{}{choice}", globbed.url),
                    parts: globbed.parts.iter().chain([choice]).cloned().collect(),
                };
                all = all.iter().flat_map(|globbed| choices.iter().map(move |choice| with(globbed, choice))).collect();
            }
        }
    }
    Ok(all)
}

/// Puts what stood for the patterns into a name: `#1` is the first of them.
pub fn fill(name: &str, parts: &[String]) -> String {
    let (mut out, mut rest) = (String::new(), name);
    while let Some(at) = rest.find('#') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let part = rest[..digits].parse::<usize>().ok().and_then(|number| parts.get(number.checked_sub(1)?));
        match part {
            Some(part) => {
                out.push_str(part);
                rest = &rest[digits..];
            }
            None => out.push('#'),
        }
    }
    out + rest
}

fn parse(pattern: &str) -> Result<Vec<Piece>, Failed> {
    let wrong = |why: &str, at: usize| {
        Failed::new(3, format!("{why} in URL position {}:\n{pattern}\n{}^", at + 1, " ".repeat(at)))
    };
    let (mut pieces, mut text, mut rest) = (Vec::new(), String::new(), pattern);
    while let Some(c) = rest.chars().next() {
        let at = pattern.len() - rest.len();
        rest = &rest[c.len_utf8()..];
        match c {
            '\\' if rest.starts_with(['{', '}', '[', ']']) => {
                text.push_str(&rest[..1]);
                rest = &rest[1..];
            }
            '{' => {
                let (inner, after) = rest.split_once('}').ok_or_else(|| wrong("unmatched brace", at))?;
                if inner.is_empty() {
                    return Err(wrong("empty string within braces", at + 1));
                }
                if inner.contains('{') {
                    return Err(wrong("nested brace", at + 1));
                }
                pieces.push(Piece::Text(std::mem::take(&mut text)));
                pieces.push(Piece::Choices(inner.split(',').map(str::to_owned).collect()));
                rest = after;
            }
            '[' if is_address(rest) => text.push('['),
            '[' => {
                let (inner, after) = rest.split_once(']').ok_or_else(|| wrong("bad range", at + 1))?;
                let choices = range(inner).ok_or_else(|| wrong("bad range", at + 1))?;
                pieces.push(Piece::Text(std::mem::take(&mut text)));
                pieces.push(Piece::Choices(choices));
                rest = after;
            }
            '}' => return Err(wrong("unmatched close brace/bracket", at)),
            ']' if !text.contains('[') => return Err(wrong("unmatched close brace/bracket", at)),
            c => text.push(c),
        }
    }
    pieces.push(Piece::Text(text));
    Ok(pieces)
}

/// Whether an IPv6 address follows, and no range.
fn is_address(rest: &str) -> bool {
    rest.split_once(']').is_some_and(|(inner, _)| inner.parse::<std::net::Ipv6Addr>().is_ok())
}

fn range(inner: &str) -> Option<Vec<String>> {
    let (ends, step) = match inner.split_once(':') {
        Some((ends, step)) => (ends, step.parse::<u64>().ok().filter(|step| *step > 0)?),
        None => (inner, 1),
    };
    let (from, to) = ends.split_once('-')?;
    if let (Ok(first), Ok(last)) = (from.parse::<u64>(), to.parse::<u64>()) {
        let count = last.checked_sub(first)? / step + 1;
        let width = if from.len() > 1 && from.starts_with('0') { from.len().min(20) } else { 0 };
        // One more than are allowed is enough to see that they are too many.
        return Some((0..count.min(GLOBBED + 1)).map(|at| format!("{:0width$}", first + at * step)).collect());
    }
    let letter = |text: &str| text.bytes().next().filter(|byte| text.len() == 1 && byte.is_ascii_alphabetic());
    let (first, last) = (letter(from)?, letter(to)?);
    let fits = first <= last && first.is_ascii_uppercase() == last.is_ascii_uppercase();
    let step = usize::try_from(step).ok()?;
    fits.then(|| (first..=last).step_by(step).map(|byte| char::from(byte).to_string()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn urls(pattern: &str) -> Vec<String> {
        expand(pattern).unwrap().into_iter().map(|globbed| globbed.url).collect()
    }

    #[test]
    fn patterns_become_urls() {
        assert_eq!(urls("h/{a,b}[1-2]"), ["h/a1", "h/a2", "h/b1", "h/b2"]);
        assert_eq!(urls("h/[08-10]"), ["h/08", "h/09", "h/10"]);
        assert_eq!(urls("h/[0-10:5]"), ["h/0", "h/5", "h/10"]);
        assert_eq!(urls("h/[a-e:2]"), ["h/a", "h/c", "h/e"]);
        assert_eq!(urls("http://[::1]:1/"), ["http://[::1]:1/"]);
        assert_eq!(urls("h/\\{a\\}"), ["h/{a}"]);
        for pattern in
            ["h/[1-", "h/{a", "h/[2-1]", "h/[a-B]", "h/{}", "h/a}", "h/[1-2:0]", "h/[0-9999999]", "h/[1-999][1-999]"]
        {
            assert_eq!(expand(pattern).unwrap_err().code, 3, "{pattern}");
        }
        let message = expand("http://127.0.0.1:1/[1-").unwrap_err().message;
        assert_eq!(message, "bad range in URL position 21:\nhttp://127.0.0.1:1/[1-\n                    ^");
    }

    #[test]
    fn parts_go_into_names() {
        let globbed = expand("h/{a,b}[1-2]").unwrap().remove(3);
        assert_eq!(fill("#1_#2-#3#.txt", &globbed.parts), "b_2-#3#.txt");
    }
}
