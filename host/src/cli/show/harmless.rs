//! Makes foreign text harmless for a terminal, where a character may move the cursor, fill the clipboard, reverse the
//! direction of a line or begin one that looks like kiso's.
//!
//! Active characters are shown as on the page, `⟦U+202E⟧`. Letters stay, including those of scripts that run from right to
//! left. The log has its own version of this in `cli/log.rs`, JSON another in `cli/out.rs`.

use std::fmt::Write;

/// Returns whether the character has an effect beyond being drawn: a control character, one that changes the direction of
/// text, or one that breaks a line.
pub(crate) fn is_active(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Makes a text of one or several lines harmless. Only line feeds and tabs keep their meaning.
pub(crate) fn printable(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' | '\t' => clean.push(c),
            // Part of a line end in Windows files.
            '\r' if matches!(chars.peek(), None | Some('\n')) => {}
            c => push(&mut clean, c),
        }
    }
    clean
}

/// Makes a part of one line harmless, such as a name, a title or a summary: it can neither end the line nor begin one.
pub(crate) fn printable_line(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for c in text.chars() {
        push(&mut clean, if c == '\t' { ' ' } else { c });
    }
    clean
}

/// The last check of kiso's own terminal output, if a caller forgot the functions above: only kiso's own colours keep their
/// effect.
pub(crate) fn backstop(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some(length) = colour(rest.as_bytes()) {
            clean.push_str(&rest[..length]);
            rest = &rest[length..];
            continue;
        }
        match c {
            '\n' | '\t' => clean.push(c),
            '\r' if rest.starts_with("\r\n") => {}
            c => push(&mut clean, c),
        }
        rest = &rest[c.len_utf8()..];
    }
    clean
}

fn push(clean: &mut String, c: char) {
    match is_active(c) {
        true => drop(write!(clean, "⟦U+{:04X}⟧", u32::from(c))),
        false => clean.push(c),
    }
}

/// Maximum length of a sequence that is accepted as a colour.
const LONGEST: usize = 48;

/// Returns the length of the sequence "Select Graphic Rendition" that the bytes begin with, if it only sets colours.
fn colour(bytes: &[u8]) -> Option<usize> {
    let parameters = bytes.strip_prefix(b"\x1b[")?;
    let end = parameters.iter().take(LONGEST).position(|b| !b"0123456789;:".contains(b))?;
    let text = std::str::from_utf8(&parameters[..end]).ok()?;
    (parameters[end] == b'm' && only_colours(text)).then_some(2 + end + 1)
}

/// Accepts all parameters except invisible text (8), and those that terminals interpret differently.
fn only_colours(parameters: &str) -> bool {
    let mut codes = parameters.split([';', ':']).map(|code| if code.is_empty() { Ok(0) } else { code.parse::<u32>() });
    while let Some(code) = codes.next() {
        match code {
            Ok(38 | 48 | 58) => {
                let more = match codes.next() {
                    Some(Ok(5)) => 1,
                    Some(Ok(2)) => 3,
                    _ => return false,
                };
                if !(0..more).all(|_| matches!(codes.next(), Some(Ok(0..=255)))) {
                    return false;
                }
            }
            Ok(0..=4 | 7 | 9 | 21..=25 | 27 | 29..=37 | 39..=47 | 49 | 53 | 55 | 59 | 90..=97 | 100..=107) => {}
            _ => return false,
        }
    }
    true
}

/// Filters the output of a command for a terminal, in pieces. Colours keep their effect until the command ends; all other
/// active characters are shown. A byte that is not part of a character is shown as `⟦0x9B⟧`.
#[derive(Debug, Default)]
pub(crate) struct Output {
    /// The beginning of a possible character, colour or line end.
    held: Vec<u8>,
    coloured: bool,
}

impl Output {
    pub(crate) fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(piece);
        self.take(false)
    }

    /// Returns the rest.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        let mut clean = self.take(true);
        if self.coloured {
            clean.extend_from_slice(b"\x1b[0m");
        }
        clean
    }

    fn take(&mut self, ends: bool) -> Vec<u8> {
        let bytes = std::mem::take(&mut self.held);
        let mut clean = Vec::with_capacity(bytes.len());
        let mut rest = &bytes[..];
        while let Some(first) = rest.first() {
            if !ends && is_begun(rest) {
                break;
            }
            let length = if let Some(length) = colour(rest) {
                self.coloured = !matches!(&rest[..length], b"\x1b[m" | b"\x1b[0m");
                clean.extend_from_slice(&rest[..length]);
                length
            } else if b"\n\t".contains(first) || rest.starts_with(b"\r\n") {
                clean.push(*first);
                1
            } else if let Some(c) = character(rest) {
                let mut shown = String::new();
                push(&mut shown, c);
                clean.extend_from_slice(shown.as_bytes());
                c.len_utf8()
            } else {
                clean.extend_from_slice(format!("⟦0x{first:02X}⟧").as_bytes());
                1
            };
            rest = &rest[length..];
        }
        self.held = rest.to_vec();
        clean
    }
}

/// Returns whether the meaning of the bytes depends on what follows.
fn is_begun(bytes: &[u8]) -> bool {
    match bytes {
        [b'\r'] | [0x1b] => true,
        [0x1b, b'[', parameters @ ..] => {
            parameters.len() < LONGEST && parameters.iter().all(|b| b"0123456789;:".contains(b))
        }
        _ if bytes.len() < 4 => {
            std::str::from_utf8(bytes).is_err_and(|e| e.valid_up_to() == 0 && e.error_len().is_none())
        }
        _ => false,
    }
}

/// Returns the character that the bytes begin with.
fn character(bytes: &[u8]) -> Option<char> {
    let bytes = &bytes[..bytes.len().min(4)];
    match std::str::from_utf8(bytes) {
        Ok(text) => text.chars().next(),
        Err(e) => std::str::from_utf8(&bytes[..e.valid_up_to()]).ok()?.chars().next(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attacks in foreign text, and how they are shown where several lines are allowed.
    const ATTEMPTS: &[(&str, &str)] = &[
        ("plain, äöü, 日本, 👍🏽", "plain, äöü, 日本, 👍🏽"),
        ("two\nlines\tand a tab\r\n", "two\nlines\tand a tab\n"),
        ("\x1b[2Jgone", "⟦U+001B⟧[2Jgone"),
        ("\x1b[31mred\x1b[0m", "⟦U+001B⟧[31mred⟦U+001B⟧[0m"),
        ("\x1b]52;c;ZXZpbA==\x07", "⟦U+001B⟧]52;c;ZXZpbA==⟦U+0007⟧"),
        ("\x1b]0;title\x1b\\", "⟦U+001B⟧]0;title⟦U+001B⟧\\"),
        ("\x1bP$q\"p\x1b\\", "⟦U+001B⟧P$q\"p⟦U+001B⟧\\"),
        ("\x1bc", "⟦U+001B⟧c"),
        ("\u{9b}2J \u{9d}52;c;x\u{9c}", "⟦U+009B⟧2J ⟦U+009D⟧52;c;x⟦U+009C⟧"),
        ("\u{90}x\u{98}y\u{9e}z\u{9f}", "⟦U+0090⟧x⟦U+0098⟧y⟦U+009E⟧z⟦U+009F⟧"),
        ("safe\rdanger", "safe⟦U+000D⟧danger"),
        ("x\x08\x08y\x7f", "x⟦U+0008⟧⟦U+0008⟧y⟦U+007F⟧"),
        ("\0\x05\x0b\x0c\x0e\x0f", "⟦U+0000⟧⟦U+0005⟧⟦U+000B⟧⟦U+000C⟧⟦U+000E⟧⟦U+000F⟧"),
        ("a\u{202e}gpj.exe", "a⟦U+202E⟧gpj.exe"),
        ("\u{202a}\u{202b}\u{202c}\u{202d}", "⟦U+202A⟧⟦U+202B⟧⟦U+202C⟧⟦U+202D⟧"),
        ("\u{2066}\u{2067}\u{2068}\u{2069}", "⟦U+2066⟧⟦U+2067⟧⟦U+2068⟧⟦U+2069⟧"),
        ("\u{61c}\u{200e}\u{200f}", "⟦U+061C⟧⟦U+200E⟧⟦U+200F⟧"),
        ("one\u{2028}two\u{2029}three\u{85}four", "one⟦U+2028⟧two⟦U+2029⟧three⟦U+0085⟧four"),
        ("שלום, مرحبا", "שלום, مرحبا"),
    ];

    #[test]
    fn what_acts_is_shown_and_letters_stay() {
        for (text, shown) in ATTEMPTS {
            assert_eq!(printable(text), *shown, "{text:?}");
            let line = printable_line(text);
            assert!(!line.chars().any(is_active), "{line:?}");
        }
        assert_eq!(printable_line("a\nloaded b\t1\r\n"), "a⟦U+000A⟧loaded b 1⟦U+000D⟧⟦U+000A⟧");
    }

    #[test]
    fn the_backstop_lets_only_colours_through() {
        for (text, shown) in ATTEMPTS.iter().filter(|(text, _)| !text.contains("[31m")) {
            assert_eq!(backstop(text), *shown, "{text:?}");
        }
        for own in ["\x1b[2mdim\x1b[0m", "\x1b[1;36mx\x1b[m", "\x1b[38;5;8mx", "\x1b[48;2;1;2;3mx"] {
            assert_eq!(backstop(own), own);
        }
        for other in ["\x1b[8mhidden", "\x1b[1;8mx", "\x1b[38;5m", "\x1b[?1m", "\x1b[1", "\x1b[1K", "\x1b[>4m"] {
            assert!(backstop(other).starts_with("⟦U+001B⟧["), "{other:?}");
        }
    }

    #[test]
    fn the_output_of_a_command_is_the_same_however_it_is_cut() {
        let text = "é\x1b[1;31mred\x1b[0m \r\n\x1b]52;c;eA==\x07 \u{9b}2J \u{202e}x\r\u{1f44d} \x1b[1mbold";
        let mut bytes = text.as_bytes().to_vec();
        bytes.extend_from_slice(b"\xff\x9b0c\xe2\x82");
        let shown = "é\x1b[1;31mred\x1b[0m \r\n⟦U+001B⟧]52;c;eA==⟦U+0007⟧ ⟦U+009B⟧2J ⟦U+202E⟧x⟦U+000D⟧👍 \
                     \x1b[1mbold⟦0xFF⟧⟦0x9B⟧0c⟦0xE2⟧⟦0x82⟧\x1b[0m";
        for step in 1..=bytes.len() {
            let mut output = Output::default();
            let mut clean: Vec<u8> = bytes.chunks(step).flat_map(|piece| output.push(piece)).collect();
            clean.extend(output.finish());
            assert_eq!(String::from_utf8(clean).unwrap(), shown, "in pieces of {step}");
        }
    }

    #[test]
    fn what_cannot_become_more_is_not_held_back() {
        let mut output = Output::default();
        assert_eq!(output.push(b"a$ "), b"a$ ");
        assert_eq!(output.push(b"\x1b[1"), b"");
        assert_eq!(output.push(b"mx"), b"\x1b[1mx");
        assert_eq!(output.finish(), b"\x1b[0m");
        let long = [b"\x1b[".as_slice(), &b"1;".repeat(LONGEST)].concat();
        assert!(Output::default().push(&long).len() > LONGEST);
    }
}
