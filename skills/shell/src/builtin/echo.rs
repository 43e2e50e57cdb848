//! `echo`, and the escapes that `printf` shares with it.

use crate::shell::{Outcome, Shell};

pub fn echo(shell: &mut Shell, args: &[String]) -> Outcome {
    let (mut newline, mut escapes) = (true, false);
    let mut words = &args[1..];
    while let Some(flags) = words.first().and_then(|word| word.strip_prefix('-')) {
        if flags.is_empty() || !flags.bytes().all(|flag| b"neE".contains(&flag)) {
            break;
        }
        for flag in flags.bytes() {
            match flag {
                b'n' => newline = false,
                flag => escapes = flag == b'e',
            }
        }
        words = &words[1..];
    }
    let joined = words.join(" ");
    let mut text = Vec::with_capacity(joined.len() + 1);
    if escapes {
        if unescape(&joined, Style::Echo, &mut text) {
            newline = false;
        }
    } else {
        text.extend_from_slice(joined.as_bytes());
    }
    if newline {
        text.push(b'\n');
    }
    shell.print("echo", &text)
}

/// Where a backslash stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// `echo -e` and `printf %b`: octal numbers begin with a zero, `\c` ends the output.
    Echo,
    /// The format of `printf`.
    Format,
}

/// Returns whether `\c` ended the output.
pub fn unescape(text: &str, style: Style, out: &mut Vec<u8>) -> bool {
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.extend_from_slice(&rest.as_bytes()[..at]);
        let (length, ends) = escape(&rest[at + 1..], style, out);
        rest = &rest[at + 1 + length..];
        if ends {
            return true;
        }
    }
    out.extend_from_slice(rest.as_bytes());
    false
}

/// Writes the character of an escape. Returns how many bytes it took, and whether the output ends.
fn escape(text: &str, style: Style, out: &mut Vec<u8>) -> (usize, bool) {
    let Some(c) = text.chars().next() else {
        out.push(b'\\');
        return (0, false);
    };
    let plain = match c {
        'a' => 7,
        'b' => 8,
        'e' | 'E' => 27,
        'f' => 12,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 11,
        '\\' => b'\\',
        '"' if style == Style::Format => b'"',
        '\'' if style == Style::Format => b'\'',
        'c' if style == Style::Echo => return (1, true),
        '0'..='7' => {
            let skip = usize::from(style == Style::Echo && c == '0');
            let (value, digits) = number(&text[skip..], 8, 3);
            out.push(value as u8);
            return (skip + digits, false);
        }
        'x' => {
            let (value, digits) = number(&text[1..], 16, 2);
            if digits == 0 {
                out.extend_from_slice(b"\\x");
            } else {
                out.push(value as u8);
            }
            return (1 + digits, false);
        }
        'u' | 'U' => {
            let (value, digits) = number(&text[1..], 16, if c == 'u' { 4 } else { 8 });
            match char::from_u32(value) {
                Some(character) if digits > 0 => {
                    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                }
                _ => out.extend([b'\\', c as u8]),
            }
            return (1 + digits, false);
        }
        c => {
            out.push(b'\\');
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            return (c.len_utf8(), false);
        }
    };
    out.push(plain);
    (1, false)
}

fn number(text: &str, base: u32, most: usize) -> (u32, usize) {
    let digits = text.chars().take(most).map_while(|c| c.to_digit(base));
    digits.fold((0, 0), |(value, count), digit| (value.wrapping_mul(base).wrapping_add(digit), count + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, style: Style, expected: &[u8]) {
        let mut out = Vec::new();
        unescape(text, style, &mut out);
        assert_eq!(out, expected);
    }

    #[test]
    fn reads_escapes() {
        check(r"a\tb\n", Style::Echo, b"a\tb\n");
        check(r"\0101\x41\u00e4", Style::Echo, "AAä".as_bytes());
        check(r"\101\q\", Style::Format, br"A\q\");
        check(r"a\cb", Style::Echo, b"a");
        check(r"ä\\ö", Style::Echo, "ä\\ö".as_bytes());
    }
}
