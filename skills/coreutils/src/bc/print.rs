//! Texts as `print` writes them.

/// The text of `print` with what its backslashes mean.
pub fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            plain.push(character);
            continue;
        }
        match characters.next() {
            Some('a') => plain.push('\x07'),
            Some('b') => plain.push('\x08'),
            Some('f') => plain.push('\x0c'),
            Some('n') => plain.push('\n'),
            Some('q') => plain.push('"'),
            Some('r') => plain.push('\r'),
            Some('t') => plain.push('\t'),
            Some('\\') => plain.push('\\'),
            // GNU's bc leaves others out.
            _ => {}
        }
    }
    plain
}
