//! How much a text takes of a model's window, without asking the model.

/// How many tokens `text` takes in about any tokenizer: four ASCII characters to a token, one for any other character. Linear in
/// the text, which was capped where it came in.
pub fn tokens(text: &str) -> usize {
    // Most are, and that is seen many bytes at a time.
    if text.is_ascii() {
        return text.len().div_ceil(4);
    }
    let ascii = text.bytes().filter(u8::is_ascii).count();
    let others = text.chars().count() - ascii;
    ascii.div_ceil(4) + others
}

#[cfg(test)]
mod tests {
    use super::tokens;

    #[test]
    fn ascii_is_four_to_a_token_and_everything_else_one() {
        for (text, count) in
            [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("\u{e9}\u{e9}", 2), ("ab\u{65e5}\u{672c}", 3)]
        {
            assert_eq!(tokens(text), count, "{text}");
        }
    }
}
