//! The width of text on a terminal.

/// Returns the columns of a text without control characters, as terminals count them.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// Shortens a text to so many columns; "…" means that there is more.
pub(crate) fn clip(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let mut left = width.saturating_sub(1);
    let fits = |c: &char| {
        let taken = columns_of(*c);
        let fits = taken <= left;
        left = left.saturating_sub(taken);
        fits
    };
    let mut clipped: String = text.chars().take_while(fits).collect();
    if width > 0 {
        clipped.push('…');
    }
    clipped
}

/// Breaks a line between words into lines of at most so many columns, all with the same indentation.
pub(crate) fn wrap(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let indent = &text[..text.len() - text.trim_start().len()];
    let (mut out, mut taken, mut is_empty) = (indent.to_owned(), indent.len(), true);
    for word in text.split_whitespace() {
        let wide = columns(word);
        if !is_empty && taken + 1 + wide > width {
            out.push('\n');
            out.push_str(indent);
            (taken, is_empty) = (indent.len(), true);
        }
        if !is_empty {
            out.push(' ');
            taken += 1;
        }
        out.push_str(word);
        (taken, is_empty) = (taken + wide, false);
    }
    out
}

/// Breaks a line for standard error between words, if that is a terminal.
pub(crate) fn wrap_to_terminal(text: &str) -> String {
    match rustix::termios::tcgetwinsize(std::io::stderr()) {
        Ok(size) if size.ws_col > 0 => wrap(text, usize::from(size.ws_col)),
        _ => text.to_owned(),
    }
}

/// Returns two for East Asian wide characters and emoji, zero for characters that combine with the one before.
fn columns_of(c: char) -> usize {
    match u32::from(c) {
        0x0300..=0x036F | 0x200B..=0x200F | 0x20D0..=0x20FF | 0xFE00..=0xFE0F | 0x1F3FB..=0x1F3FF => 0,
        0x1100..=0x115F
        | 0x231A..=0x231B
        | 0x23E9..=0x23EC
        | 0x2705
        | 0x274C
        | 0x2E80..=0x303E
        | 0x3041..=0xA4CF
        | 0xAC00..=0xD7A3
        | 0xF900..=0xFAFF
        | 0xFE30..=0xFE6F
        | 0xFF00..=0xFF60
        | 0xFFE0..=0xFFE6
        | 0x1F300..=0x1F64F
        | 0x1F680..=0x1F6FF
        | 0x1F900..=0x1FAFF
        | 0x20000..=0x3FFFD => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_count_twice_and_marks_not_at_all() {
        let counted = ["abc", "日本", "e\u{301}", "👍", ""].map(columns);
        assert_eq!(counted, [3, 4, 1, 2, 0]);
    }

    #[test]
    fn what_does_not_fit_is_clipped() {
        let clipped: Vec<_> = ["abc", "abcd", "日本語"].iter().map(|text| clip(text, 3)).collect();
        assert_eq!(clipped, ["abc", "ab…", "日…"]);
        assert_eq!((clip("abc", 0), clip("abc", 1)), (String::new(), "…".to_owned()));
    }
    #[test]
    fn a_line_is_broken_between_words() {
        assert_eq!(wrap("a  b", 4), "a  b");
        assert_eq!(wrap("one two three", 7), "one two\nthree");
        assert_eq!(wrap("  one two", 6), "  one\n  two");
        assert_eq!(wrap("日本 日本 extraordinary", 9), "日本 日本\nextraordinary");
        assert_eq!((wrap("", 5), wrap("one", 0)), (String::new(), "one".to_owned()));
    }
}
