//! Backslash escapes, and text quoted so that the shell reads it back.

/// The inside of `` `…` ``: what a backslash protects from the outer shell.
pub fn unescape_backquoted(source: &str, quoted: bool) -> String {
    let mut text = String::with_capacity(source.len());
    let mut chars = source.chars().peekable();
    while let Some(c) = chars.next() {
        match chars.peek() {
            Some(&next) if c == '\\' && (matches!(next, '$' | '`' | '\\') || quoted && next == '"') => {
                text.push(next);
                chars.next();
            }
            _ => text.push(c),
        }
    }
    text
}

/// The inside of `$'…'`. Bytes (`\xff`) that are not UTF-8 become U+FFFD; a NUL ends the text.
pub fn ansi(source: &str) -> String {
    let mut bytes = Vec::with_capacity(source.len());
    let mut rest = source;
    while let Some(found) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..found]);
        rest = &rest[found + 1..];
        let Some(letter) = rest.chars().next() else {
            bytes.push(b'\\');
            break;
        };
        rest = &rest[letter.len_utf8()..];
        match escape(letter, &mut rest, &mut bytes) {
            Some(()) if bytes.last() == Some(&0) => {
                bytes.pop();
                rest = "";
                break;
            }
            Some(()) => {}
            None => {
                bytes.push(b'\\');
                bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// One escape, whose letter has been read; nothing if there is no such escape.
fn escape(letter: char, rest: &mut &str, bytes: &mut Vec<u8>) -> Option<()> {
    let byte = match letter {
        'a' => 7,
        'b' => 8,
        'e' | 'E' => 27,
        'f' => 12,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 11,
        '\\' | '\'' | '"' | '?' => letter as u8,
        '0'..='7' => {
            let more = digits(rest, 8, 2).map_or((0, 0), |(value, count)| (value, count));
            ((letter as u32 - '0' as u32) * 8_u32.pow(more.1) + more.0) as u8
        }
        'x' => digits(rest, 16, 2)?.0 as u8,
        'u' | 'U' => {
            let (value, _) = digits(rest, 16, if letter == 'u' { 4 } else { 8 })?;
            let c = char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER);
            bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            return Some(());
        }
        'c' => {
            let control = rest.chars().next().filter(char::is_ascii)?;
            *rest = &rest[1..];
            (control as u8).to_ascii_uppercase() & 0x1f
        }
        _ => return None,
    };
    bytes.push(byte);
    Some(())
}

/// At most `most` digits, and how many there were; nothing if there is none.
fn digits(rest: &mut &str, radix: u32, most: usize) -> Option<(u32, u32)> {
    let count = rest.chars().take(most).take_while(|c| c.is_digit(radix)).count();
    let value = u32::from_str_radix(&rest[..count], radix).ok()?;
    *rest = &rest[count..];
    Some((value, count as u32))
}

/// As `${x@Q}` writes it: always in quotes, in `$'…'` if there are control characters.
pub fn quoted(text: &str) -> String {
    if !text.contains(char::is_control) {
        return format!("'{}'", text.replace('\'', "'\\''"));
    }
    let mut quoted = String::from("$'");
    for c in text.chars() {
        match c {
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            '\x1b' => quoted.push_str("\\E"),
            '\\' | '\'' => quoted.extend(['\\', c]),
            c if c.is_ascii_control() => quoted.push_str(&format!("\\{:03o}", c as u32)),
            c => quoted.push(c),
        }
    }
    quoted + "'"
}
