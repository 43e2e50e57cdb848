//! Clauses: splits a message into the steps that it requests.

use std::collections::BTreeSet;

use crate::keyword::{function, is_keyword};
use crate::scene::Source;
use crate::template::Item;
use crate::vocabulary::Vocabulary;
use crate::word::{Punctuation, Word, WordShape, count, key};

/// Returns the keys of words that begin an example of a skill.
pub(crate) fn verbs(skills: &[Vocabulary]) -> BTreeSet<String> {
    let begins = skills.iter().flat_map(|skill| &skill.templates).filter_map(|template| match template.first() {
        Some(Item::Literal { key, content: true }) => Some(key.clone()),
        _ => None,
    });
    // The previous step saves a result, whatever the examples say.
    begins.chain([key("save")]).collect()
}

/// Splits `words` into clauses: at "then", at the end of a sentence, and at "and" or a comma before a verb.
#[expect(clippy::expect_used, reason = "starts with one")]
pub(crate) fn split(words: &[Word], verbs: &BTreeSet<String>, files: &[Source]) -> Vec<Vec<Word>> {
    let mut clauses: Vec<Vec<Word>> = vec![Vec::new()];
    let mut i = 0;
    while i < words.len() {
        let lead = lead(&words[i..]);
        let start = i + lead;
        let cut = lead > 0
            && words.get(start).is_some_and(|word| {
                let marks_step = words[i..start].iter().any(|w| is_then(&w.norm));
                marks_step || (starts_clause(word, verbs, files) && !words[i].norm.is_empty())
            });
        let after_comma = i > 0 && words[i - 1].mark == Punctuation::Comma && starts_clause(&words[i], verbs, files);
        if cut {
            clauses.push(Vec::new());
            i = start;
        } else if after_comma {
            clauses.push(Vec::new());
        }
        let Some(word) = words.get(i) else { break };
        clauses.last_mut().expect("starts with one").push(word.clone());
        if word.mark == Punctuation::Stop {
            clauses.push(Vec::new());
        }
        i += 1;
    }
    clauses.retain(|clause| clause.iter().any(|w| w.is_content() || w.norm == "it"));
    clauses
}

/// Returns how many words at the start only connect clauses: "and", "then", "and then", "after that", "finally".
fn lead(words: &[Word]) -> usize {
    let norm = |i: usize| words.get(i).map_or("", |w| if w.shape == WordShape::Plain { w.norm.as_str() } else { "" });
    match (norm(0), norm(1)) {
        ("and" | "but", "then" | "finally" | "also" | "afterwards") => 2,
        ("and", "please") => 2,
        ("after", "that" | "this") => 2,
        ("first", next) if count(next).is_none() && !next.is_empty() && next != "row" && next != "rows" => 1,
        ("then" | "finally" | "afterwards" | "next" | "and", _) => 1,
        _ => 0,
    }
}

fn is_then(norm: &str) -> bool {
    matches!(norm, "then" | "finally" | "afterwards" | "after" | "next" | "first")
}

/// Whether a word is a verb of an example, and neither a column's name nor a word of queries ("and total rain" continues the
/// list).
fn starts_clause(word: &Word, verbs: &BTreeSet<String>, files: &[Source]) -> bool {
    let is_column = || {
        files
            .iter()
            .flat_map(|f| f.columns.iter().flat_map(|c| c.iter()))
            .any(|c| c.name.eq_ignore_ascii_case(&word.norm))
    };
    word.shape == WordShape::Plain
        && verbs.contains(&word.key)
        && function(word).is_none()
        && !is_keyword(word)
        && !is_column()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::word::words;

    #[test]
    fn cuts() {
        let verbs: BTreeSet<String> = ["plot", "compute", "total", "save"].map(key).into();
        for (text, clauses) in [
            (
                "compute mean rain and total wind from a.csv, then draw both",
                vec!["compute mean rain and total wind from a.csv", "draw both"],
            ),
            ("compute mean rain. Plot it", vec!["compute mean rain", "Plot it"]),
            (
                "compute mean rain and plot it and save it as b.csv",
                vec!["compute mean rain", "plot it", "save it as b.csv"],
            ),
            ("plot rain; after that, plot wind", vec!["plot rain", "plot wind"]),
            ("plot rain and wind", vec!["plot rain and wind"]),
        ] {
            let found: Vec<String> = split(&words(text), &verbs, &[])
                .iter()
                .map(|c| c.iter().map(|w| w.raw.as_str()).collect::<Vec<_>>().join(" "))
                .collect();
            assert_eq!(found, clauses, "{text}");
        }
    }
}
