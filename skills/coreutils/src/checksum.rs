//! The commands of checksums, on those of uutils. With `--check` they print the names of files in quotes of the shell, and GNU's print
//! them as they are in the list.

use crate::table::Arguments;

pub fn main(arguments: Arguments, run: fn(Arguments) -> i32) -> i32 {
    let arguments: Vec<_> = arguments.collect();
    #[cfg(target_os = "wasi")]
    if arguments
        .iter()
        .skip(1)
        .take_while(|argument| *argument != "--")
        .any(|argument| is_check(&argument.to_string_lossy()))
    {
        command::rewrite_lines(|line| report(&String::from_utf8_lossy(line)).into_bytes());
    }
    run(arguments.into_iter())
}

/// Whether an argument asks to check: `-c`, `-wc`, `--check` or what it is shortened to.
#[cfg(any(test, target_os = "wasi"))]
fn is_check(argument: &str) -> bool {
    match argument.strip_prefix("--") {
        Some(name) => name.len() > 1 && "check".starts_with(name),
        None => {
            argument.strip_prefix('-').is_some_and(|letters| letters.contains('c') && !letters.contains(['a', 'l']))
        }
    }
}

/// Converts a result line of `--check` to the form of GNU's checksum tools: the name has no quotes; if it contains a newline,
/// it is escaped and the line begins with a backslash.
#[cfg(any(test, target_os = "wasi"))]
fn report(line: &str) -> String {
    let Some((name, result)) = line.rsplit_once(": ") else { return line.to_owned() };
    let name = unquoted(name);
    if !name.contains(['\n', '\r']) {
        return format!("{name}: {result}");
    }
    let escaped = name.replace('\\', r"\\").replace('\n', r"\n").replace('\r', r"\r");
    format!("\\{escaped}: {result}")
}

/// The word that a shell reads from `'a b'`, `"it's"` or `'a'$'\n''b'`; uutils writes no other quotes.
#[cfg(any(test, target_os = "wasi"))]
fn unquoted(quoted: &str) -> String {
    let mut word = String::new();
    let mut rest = quoted;
    while let Some(c) = rest.chars().next() {
        let (open, close) = match c {
            '\'' => ("'", '\''),
            '"' => ("\"", '"'),
            '$' if rest.starts_with("$'") => ("$'", '\''),
            _ => {
                word.push(c);
                rest = &rest[c.len_utf8()..];
                continue;
            }
        };
        let inside = &rest[open.len()..];
        let escapes = open != "'";
        let mut chars = inside.char_indices();
        let mut bytes: Vec<u8> = Vec::new();
        let end = loop {
            match chars.next() {
                None => break inside.len(),
                Some((at, c)) if c == close => break at + 1,
                Some((_, '\\')) if escapes => match chars.next() {
                    Some((at, digit @ '0'..='7')) => {
                        let digits =
                            inside[at..].find(|c: char| !matches!(c, '0'..='7')).map_or(inside.len(), |n| at + n);
                        let digits = &inside[at..digits.min(at + 3)];
                        bytes.push(u8::from_str_radix(digits, 8).unwrap_or(digit as u8));
                        chars.by_ref().take(digits.len() - 1).for_each(drop);
                    }
                    Some((_, letter)) => bytes.push(control(letter)),
                    None => break inside.len(),
                },
                Some((_, c)) => bytes.extend(c.to_string().bytes()),
            }
        };
        word.push_str(&String::from_utf8_lossy(&bytes));
        rest = &inside[end..];
    }
    word
}

/// The character that a letter behind a backslash stands for.
#[cfg(any(test, target_os = "wasi"))]
fn control(letter: char) -> u8 {
    match letter {
        'a' => 7,
        'b' => 8,
        't' => b'\t',
        'n' => b'\n',
        'v' => 11,
        'f' => 12,
        'r' => b'\r',
        other => u8::try_from(other).unwrap_or(b'?'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_printed_as_in_the_list() {
        for (line, printed) in [
            ("a: OK", "a: OK"),
            ("'a b': FAILED", "a b: FAILED"),
            ("\"it's\": OK", "it's: OK"),
            ("'q\"': FAILED open or read", "q\": FAILED open or read"),
            (r"'n'$'\n''l': OK", r"\n\nl: OK"),
            (r"'t'$'\t''b': OK", "t\tb: OK"),
            (r"'c\d': OK", r"c\d: OK"),
            ("'a: b': OK", "a: b: OK"),
            (r"''$'\303\251': OK", "\u{e9}: OK"),
            ("", ""),
        ] {
            assert_eq!(report(line), printed, "{line}");
        }
    }

    #[test]
    fn a_check_is_asked_for_in_several_ways() {
        assert!(["-c", "-wc", "--check", "--ch"].iter().all(|argument| is_check(argument)));
        assert!(!["c", "-w", "--quiet", "-", "--", "--checks", "-acrc"].iter().any(|argument| is_check(argument)));
    }
}
