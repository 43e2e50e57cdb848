//! Finds passages of a document.

use crate::document::Document;
use crate::limits;

/// Characters of a passage.
const PASSAGE: usize = 400;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// Number of its part.
    pub part: usize,
    pub text: String,
}

/// Finds the paragraphs that have a phrase, else those that have all of its words, else those with most of them.
pub fn find(document: &Document, phrase: &str) -> Vec<Passage> {
    let phrase = fold(phrase);
    let words: Vec<&str> = phrase.split(' ').filter(|word| !word.is_empty()).collect();
    if words.is_empty() {
        return Vec::new();
    }
    let mut phrases = Vec::new();
    // Part, words that were found, place of the first.
    let mut others: Vec<(usize, usize, String)> = Vec::new();
    for part in &document.parts {
        for paragraph in paragraphs(&part.text) {
            let paragraph = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
            let folded = fold(&paragraph);
            if folded.contains(&phrase) {
                phrases.extend(
                    around(&paragraph, &folded, &phrase).into_iter().map(|text| Passage { part: part.number, text }),
                );
            } else if phrases.is_empty() && words.len() > 1 {
                let found: Vec<&&str> = words.iter().filter(|word| folded.contains(**word)).collect();
                if let Some(first) = found.first().filter(|_| found.len() * 2 >= words.len()) {
                    let text = around(&paragraph, &folded, first).into_iter().next().unwrap_or_default();
                    others.push((part.number, found.len(), text));
                }
            }
            if phrases.len() >= limits::PASSAGES {
                phrases.truncate(limits::PASSAGES);
                return phrases;
            }
        }
    }
    if !phrases.is_empty() {
        return phrases;
    }
    let most = others.iter().map(|(_, found, _)| *found).max().unwrap_or(0);
    others.retain(|(_, found, _)| *found == most);
    others.into_iter().take(limits::PASSAGES).map(|(part, _, text)| Passage { part, text }).collect()
}

/// Paragraphs, items of lists and rows of tables.
fn paragraphs(text: &str) -> impl Iterator<Item = &str> {
    text.split("\n\n").flat_map(|block| {
        let by_lines = block.starts_with(['|', '-']) || block.contains('\t');
        let (lines, whole) = if by_lines { (Some(block.lines()), None) } else { (None, Some(block)) };
        lines.into_iter().flatten().chain(whole)
    })
}

/// Small letters, one character for each, with single spaces.
fn fold(text: &str) -> String {
    let folded: String = text.chars().map(|c| c.to_lowercase().next().unwrap_or(c)).collect();
    folded.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The text around each place of a phrase, without overlaps.
fn around(paragraph: &str, folded: &str, phrase: &str) -> Vec<String> {
    let chars: Vec<char> = paragraph.chars().collect();
    if chars.len() <= PASSAGE {
        return vec![paragraph.to_owned()];
    }
    let mut found = Vec::new();
    let mut end = 0;
    for (at, _) in folded.match_indices(phrase) {
        let at = folded[..at].chars().count();
        if at < end {
            continue;
        }
        let space = |index: &usize| chars.get(*index).is_none_or(|c| *c == ' ');
        let start = at.saturating_sub(PASSAGE / 2);
        let start = (start..=at).find(|index| *index == 0 || space(&(index - 1))).unwrap_or(start);
        end = (start + PASSAGE).min(chars.len());
        end = (at..=end).rev().find(|index| space(index)).unwrap_or(end);
        let mut text: String = chars[start..end.max(start)].iter().collect();
        if start > 0 {
            text.insert(0, '…');
        }
        if end < chars.len() {
            text.push('…');
        }
        found.push(text);
        if found.len() >= limits::PASSAGES {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Kind;
    use crate::out::{Out, Style};

    fn document(pages: &[&str]) -> Document {
        let mut out = Out::new(Style::Text, None, 100_000);
        for page in pages {
            out.part("");
            out.raw(page);
        }
        Document::new(Kind::Pdf, out)
    }

    #[test]
    fn passages_are_found_with_their_pages() {
        let document = document(&["The rent is due\non the first.", "Nothing here.", "Due dates: rent, heating."]);
        assert_eq!(find(&document, "DUE on"), [Passage { part: 1, text: "The rent is due on the first.".into() }]);
        let parts = |words: &str| find(&document, words).into_iter().map(|passage| passage.part).collect::<Vec<_>>();
        assert_eq!(parts("heating rent"), [3]);
        assert_eq!(parts("rent electricity"), [1, 3]);
        assert!(parts("absent").is_empty() && parts(" ").is_empty());
    }

    #[test]
    fn long_paragraphs_are_cut_around_the_words() {
        let text = format!("{} needle {}", "hay ".repeat(300), "stack ".repeat(300));
        let found = find(&document(&[&text]), "NEEDLE");
        assert!(
            found.len() == 1 && found[0].text.chars().count() <= PASSAGE + 2 && found[0].text.contains(" needle stack")
        );
    }
}
