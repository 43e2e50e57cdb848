//! Estimates the tokens of a text without asking the model.

/// Estimates the tokens of `text` for a typical tokenizer: four ASCII characters per token, two letters of other alphabets, or
/// one of any other character. So German or French text has nearly four characters per token, because most of it is ASCII, and
/// Chinese text has one. Takes linear time; all texts were limited when they came in.
pub fn tokens(text: &str) -> usize {
    // Most texts are ASCII, and this check is fast.
    if text.is_ascii() {
        return text.len().div_ceil(4);
    }
    text.chars().map(quarters).sum::<usize>().div_ceil(4)
}

/// The size of a character, in quarters of a token.
pub fn quarters(c: char) -> usize {
    match c {
        '\0'..='\x7f' => 1,
        // Latin letters with diacritics, and Greek, Cyrillic and Armenian letters.
        '\u{c0}'..='\u{58f}' | '\u{1e00}'..='\u{1fff}' => 2,
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::tokens;

    #[test]
    fn a_token_has_four_of_ascii_two_of_an_alphabet_and_one_of_everything_else() {
        for (text, count) in [
            ("", 0),
            ("a", 1),
            ("abcd", 1),
            ("abcde", 2),
            ("\u{e9}\u{e9}", 1),
            ("a\u{308}ab", 2),
            ("ab\u{65e5}\u{672c}", 3),
            ("\u{1f600}", 1),
        ] {
            assert_eq!(tokens(text), count, "{text}");
        }
    }

    #[test]
    fn a_token_of_a_language_with_diacritics_has_three_to_four_characters() {
        for text in [
            "Für die Prüfung müssen wir zunächst größere Änderungen an den Übungsblättern vornehmen.",
            "L'été dernier, la forêt brûlée était déjà très sèche à cause de la chaleur.",
            "Příliš žluťoučký kůň úpěl ďábelské ódy a šel pomalu domů k večeři.",
            "Tiếng Việt có nhiều dấu thanh và người đọc cần đủ chỗ cho cả câu.",
        ] {
            let (characters, tokens) = (text.chars().count(), tokens(text));
            assert!(
                (3 * tokens..=4 * tokens).contains(&characters),
                "{characters} characters, {tokens} tokens: {text}"
            );
        }
    }
}
