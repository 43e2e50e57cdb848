//! How much a text takes of a model's window, without asking the model.

/// How many tokens `text` takes in about any tokenizer: four ASCII characters to a token, two letters of other alphabets, and one of
/// any other character. So a text in German or French has nearly four characters to a token, as its words are mostly ASCII, and one in
/// Chinese one. Linear in the text, which was capped where it came in.
pub fn tokens(text: &str) -> usize {
    // Most are, and that is seen many bytes at a time.
    if text.is_ascii() {
        return text.len().div_ceil(4);
    }
    text.chars().map(quarters).sum::<usize>().div_ceil(4)
}

/// The size of a character, in quarters of a token.
pub fn quarters(c: char) -> usize {
    match c {
        '\0'..='\x7f' => 1,
        // Latin letters with diacritics, and these alone; Greek, Cyrillic, Armenian.
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
