//! Shortens texts that are too long for their place.

/// Returns `text` in at most about `max` characters: keeps the beginning and the end, and says how much is missing. Returns the
/// whole text if the result would not be shorter.
pub fn clip(text: &str, max: usize) -> String {
    // A text has at most as many characters as bytes, so most texts need not be counted.
    if text.len() <= max {
        return text.to_owned();
    }
    let length = text.chars().count();
    if length <= max {
        return text.to_owned();
    }
    let note = format!("\n[… {} characters left out …]\n", length - max);
    if length - max <= note.chars().count() {
        return text.to_owned();
    }
    let tail = max / 3;
    let head = max - tail;
    let at = |index: usize| text.char_indices().nth(index).map_or(text.len(), |(at, _)| at);
    format!("{}{note}{}", &text[..at(head)], &text[at(length - tail)..])
}

#[cfg(test)]
mod tests {
    use super::clip;

    #[test]
    fn head_and_tail_are_kept() {
        assert_eq!(clip("abc", 3), "abc");
        assert_eq!(clip("äöü", 3), "äöü");
        let long = format!("äöüa{}fx", "b".repeat(40));
        assert_eq!(clip(&long, 6), "äöüa\n[… 40 characters left out …]\nfx");
    }

    #[test]
    fn the_note_is_shorter_than_what_it_replaces() {
        let text = "ä".repeat(60);
        for max in 0..60 {
            assert!(clip(&text, max).chars().count() <= 60, "{max}");
        }
        assert_eq!(clip(&text, 30), text);
        assert!(clip(&text, 29).contains("[… 31 characters left out …]"));
        assert!(clip(&text, 20).contains("[… 40 characters left out …]"));
    }
}
