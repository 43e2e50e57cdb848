//! The files of `-K`: an option in each line.

use super::data;
use super::failed::Failed;
use crate::reason::reason;

/// The options of a file, or of standard input for `-`, each with its value.
pub fn read(path: &str) -> Result<Vec<(String, Option<String>)>, Failed> {
    let text = data::text_of(path).map_err(|e| Failed {
        code: 26,
        ..Failed::usage(&format!("cannot read config from '{path}': {}", reason(&e)))
    })?;
    Ok(text.lines().filter_map(parse).map(|(name, value)| (name.to_owned(), value)).collect())
}

/// The option and the value of a line; nothing for a comment.
fn parse(line: &str) -> Option<(&str, Option<String>)> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    // As in curl, only a name without dashes ends at these.
    let ends = |c: char| c.is_whitespace() || !line.starts_with('-') && (c == '=' || c == ':');
    let end = line.find(ends).unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    let rest = rest.trim_start_matches(ends);
    if rest.is_empty() {
        return Some((name, None));
    }
    let Some(quoted) = rest.strip_prefix('"') else {
        return Some((name, Some(rest.split_whitespace().next().unwrap_or_default().to_owned())));
    };
    let (mut value, mut escaped) = (String::new(), false);
    for c in quoted.chars() {
        match (escaped, c) {
            (true, 't') => value.push('\t'),
            (true, 'n') => value.push('\n'),
            (true, 'r') => value.push('\r'),
            (true, 'v') => value.push('\u{b}'),
            (true, c) => value.push(c),
            (false, '\\') => {
                escaped = true;
                continue;
            }
            (false, '"') => break,
            (false, c) => value.push(c),
        }
        escaped = false;
    }
    Some((name, Some(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_configuration_is_an_option() {
        for (line, expected) in [
            ("# comment", None),
            ("  ", None),
            ("silent", Some(("silent", None))),
            ("url = \"http://h/ a\\\"b\\n\"", Some(("url", Some("http://h/ a\"b\n")))),
            ("-H \"A: b\" rest", Some(("-H", Some("A: b")))),
            ("output=x y", Some(("output", Some("x")))),
            ("--max-time 3", Some(("--max-time", Some("3")))),
            ("-d: x", Some(("-d:", Some("x")))),
        ] {
            let expected = expected.map(|(name, value)| (name, value.map(str::to_owned)));
            assert_eq!(parse(line), expected, "{line}");
        }
    }
}
