//! Splits a text into passages.

/// Small paragraphs are joined up to this size in bytes: a search finds a passage by a few words, and the text around them must
/// show what it is about.
const WANTED: usize = 1_000;

/// Maximum bytes of a passage, below the store's limit.
const LONGEST: usize = 2_000;

/// Splits a text into passages of whole paragraphs, as many as fit. A paragraph that is too long is split at the end of a line or
/// a sentence, otherwise between words, otherwise anywhere. Only white space is left out.
pub fn chunks(text: &str) -> Vec<String> {
    let mut chunks: Vec<String> = Vec::new();
    let mut open = false;
    for paragraph in paragraphs(text) {
        for part in parts(paragraph) {
            match chunks.last_mut() {
                Some(last) if open && last.len() + 2 + part.len() <= WANTED => {
                    last.push_str("\n\n");
                    last.push_str(part);
                }
                _ => chunks.push(part.to_owned()),
            }
            open = true;
        }
    }
    chunks
}

/// Returns the texts between empty lines.
fn paragraphs(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text.trim();
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut end = rest.len();
        let mut at = 0;
        for line in rest.split_inclusive('\n') {
            if line.trim().is_empty() {
                end = at;
                break;
            }
            at += line.len();
        }
        let paragraph = rest[..end].trim();
        rest = rest[end..].trim_start();
        Some(paragraph)
    })
}

/// Splits a paragraph into parts of at most [`LONGEST`] bytes.
fn parts(paragraph: &str) -> impl Iterator<Item = &str> {
    let mut rest = paragraph;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = if rest.len() <= LONGEST { rest.len() } else { cut(rest) };
        let part = rest[..end].trim();
        rest = rest[end..].trim_start();
        Some(part)
    })
}

/// Returns the best place to split a text that is too long.
fn cut(text: &str) -> usize {
    let mut end = LONGEST;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let window = &text[..end];
    // Not so early that a passage has only a few words.
    let late = |at: &usize| *at > LONGEST / 2;
    let sentence = |mark: &str| window.rfind(mark).map(|at| at + mark.len());
    let found = ["\n", ". ", "! ", "? ", "。", "; ", " "].into_iter().find_map(|mark| sentence(mark).filter(late));
    found.unwrap_or(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn paragraphs_stay_together_as_far_as_they_fit() {
        assert_eq!(chunks(" \n\n"), [""; 0]);
        assert_eq!(chunks("one\ntwo\n\n \t\nthree\n"), ["one\ntwo\n\nthree"]);
        let long = "A sentence of five words. ".repeat(30);
        let cut = chunks(&format!("{long}\n\n{long}\n\nshort"));
        assert_eq!(cut.len(), 2);
        assert!(cut[1].ends_with("\n\nshort"));
        let cut = chunks(&"A sentence of five words. ".repeat(300));
        assert!(cut.len() > 3 && cut.iter().all(|chunk| chunk.ends_with("words.")), "{cut:?}");
    }

    proptest! {
        #[test]
        fn no_passage_is_too_long_and_nothing_is_lost(text in "([a-zé日.]{0,300}[ \n]{0,3}){0,40}") {
            let chunks = chunks(&text);
            let plain = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            prop_assert_eq!(plain(&chunks.concat()), plain(&text));
            prop_assert!(chunks.iter().all(|chunk| !chunk.is_empty() && chunk.len() <= LONGEST));
        }
    }
}
