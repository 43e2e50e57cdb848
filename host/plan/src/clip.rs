//! Texts that are too long for where they go.

/// `text` in at most about `max` characters: head and tail are kept, and the gap says how much is missing.
pub fn clip(text: &str, max: usize) -> String {
    // Bytes bound characters from above, so most texts are never counted.
    if text.len() <= max {
        return text.to_owned();
    }
    let length = text.chars().count();
    if length <= max {
        return text.to_owned();
    }
    let tail = max / 3;
    let head = max - tail;
    let at = |index: usize| text.char_indices().nth(index).map_or(text.len(), |(at, _)| at);
    format!("{}\n[… {} characters left out …]\n{}", &text[..at(head)], length - max, &text[at(length - tail)..])
}

#[cfg(test)]
mod tests {
    use super::clip;

    #[test]
    fn head_and_tail_are_kept() {
        assert_eq!(clip("abc", 3), "abc");
        assert_eq!(clip("äöü", 3), "äöü");
        assert_eq!(clip("äöüabcdefx", 6), "äöüa\n[… 4 characters left out …]\nfx");
        assert_eq!(clip("abc", 0), "\n[… 3 characters left out …]\n");
    }
}
