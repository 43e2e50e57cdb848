//! The summary that replaces a compressed conversation, and the two parts of writing it: the source is split into parts that a
//! model can read, and the summaries of the parts are joined.

/// First line of a summary.
pub const MARK: &str = "[CONVERSATION SUMMARY]";

const SOURCE: &str = "Source archived at ref:";

/// Counts tokens for the model that will read the text.
pub type Count<'a> = &'a dyn Fn(&str) -> usize;

/// Returns the text that replaces the summarised part. `key` is the key of the archived source in the scratchpad, without `ref:`.
pub fn render(key: &str, text: &str) -> String {
    format!("{MARK}\n{SOURCE}{key}\n{}", text.trim())
}

/// The same for a source under several keys, oldest first; without keys, returns the text alone.
pub fn render_parts(keys: &[String], text: &str) -> String {
    match keys {
        [] => text.trim().to_owned(),
        keys => render(&keys.join(", ref:"), text),
    }
}

/// Returns the key in a summary; `None` if `text` is not a summary.
pub fn reference(text: &str) -> Option<&str> {
    let rest = text.trim_start().strip_prefix(MARK)?.trim_start().strip_prefix(SOURCE)?;
    rest.lines().next().map(str::trim).filter(|key| !key.is_empty())
}

/// Whether `text` is a summary, which is never summarised again.
pub fn is_summary(text: &str) -> bool {
    reference(text).is_some()
}

/// Separates texts in a part.
const GAP: &str = "\n\n";

/// Splits the texts into parts of at most `max_tokens` each, in order, for one model call each. Leaves out summaries. Texts share
/// a part if they fit; a text longer than a part is cut, if possible after a line or a word. A single character is never cut,
/// whatever its size.
pub fn chunks<'a>(texts: impl IntoIterator<Item = &'a str>, max_tokens: usize, count: Count<'_>) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut open = false;
    for text in texts.into_iter().filter(|text| !text.is_empty() && !is_summary(text)) {
        if open && let Some(last) = parts.last_mut() {
            let length = last.len();
            last.push_str(GAP);
            last.push_str(text);
            if count(last) <= max_tokens {
                continue;
            }
            last.truncate(length);
        }
        let mut rest = text;
        while !rest.is_empty() {
            let (head, tail) = rest.split_at(fitting(rest, max_tokens, count));
            parts.push(head.to_owned());
            rest = tail;
        }
        open = true;
    }
    parts
}

/// Returns how many bytes of `text`, which must not be empty, fit into the next part: at least one character.
fn fitting(text: &str, max_tokens: usize, count: Count<'_>) -> usize {
    let fits = |at: usize| count(&text[..at]) <= max_tokens;
    // Doubling first: the cost depends on the size of the part and not on the length of the text.
    let (mut low, mut high) = (0, text.floor_char_boundary(64).max(first_char(text)));
    while fits(high) {
        if high == text.len() {
            return high;
        }
        low = high;
        high = text.floor_char_boundary(high.saturating_mul(2).min(text.len()));
    }
    while low < high {
        let middle = text.floor_char_boundary(low + (high - low) / 2);
        if middle <= low {
            break;
        }
        if fits(middle) { low = middle } else { high = middle }
    }
    let cut = low.max(first_char(text));
    // A cut in the second half of the part, so that text without line breaks is also split into few parts.
    let half = text.ceil_char_boundary(cut / 2);
    let after = |mark: char| text[half..cut].rfind(mark).map(|at| half + at + mark.len_utf8());
    after('\n').or_else(|| after(' ')).unwrap_or(cut)
}

fn first_char(text: &str) -> usize {
    text.chars().next().map_or(0, char::len_utf8)
}

/// Joins the summaries of the parts into the text for the last call. `None` if there is nothing to reduce.
pub fn join(summaries: &[String]) -> Option<String> {
    let mut texts = summaries.iter().map(|text| text.trim()).filter(|text| !text.is_empty()).peekable();
    texts.peek()?;
    let parts: Vec<_> = texts.enumerate().map(|(index, text)| format!("Part {}:\n{text}", index + 1)).collect();
    Some(parts.join(GAP))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn characters(text: &str) -> usize {
        text.chars().count()
    }

    #[test]
    fn a_block_names_its_source() {
        let block = render("history-2", " They agreed.\n");
        assert_eq!(block, "[CONVERSATION SUMMARY]\nSource archived at ref:history-2\nThey agreed.");
        assert_eq!(reference(&block), Some("history-2"));
        let keys = ["history-2".to_owned(), "history-9".to_owned()];
        assert_eq!(
            render_parts(&keys, "They agreed."),
            "[CONVERSATION SUMMARY]\nSource archived at ref:history-2, ref:history-9\nThey agreed."
        );
        assert_eq!(render_parts(&[], " They agreed.\n"), "They agreed.");
        for text in ["", MARK, "a [CONVERSATION SUMMARY]\nSource archived at ref:x", "[CONVERSATION SUMMARY]\nof mine"]
        {
            assert!(!is_summary(text), "{text}");
        }
    }

    #[test]
    fn texts_share_a_part_while_they_fit() {
        let summary = render("k", "old");
        let texts = ["one", "two", &summary, "", "three four five", "six"];
        assert_eq!(chunks(texts, 8, &characters), ["one\n\ntwo", "three ", "four ", "five", "six"][..].to_vec());
        assert!(chunks([], 8, &characters).is_empty());
        assert_eq!(chunks(["äö"], 0, &characters), ["ä", "ö"]);
    }

    #[test]
    fn parts_are_put_together_in_order() {
        assert_eq!(join(&[]), None);
        assert_eq!(join(&[" ".to_owned()]), None);
        let joined = join(&["a".to_owned(), String::new(), " b ".to_owned()]);
        assert_eq!(joined.as_deref(), Some("Part 1:\na\n\nPart 2:\nb"));
    }

    proptest! {
        /// Nothing is lost or added, and every part fits.
        #[test]
        fn parts_hold_everything_once(texts in prop::collection::vec("[a-zäß日 \n]{0,40}", 0..12), max in 1usize..30) {
            let parts = chunks(texts.iter().map(String::as_str), max, &characters);
            prop_assert!(parts.iter().all(|part| !part.is_empty() && characters(part) <= max), "{:?}", parts);
            let plain = |text: String| text.replace('\n', "");
            prop_assert_eq!(plain(parts.concat()), plain(texts.concat()));
        }
    }
}
