//! Questions to the word indexes (FTS5). What a person or a model writes is never FTS syntax: it is taken apart into
//! words, and each is quoted.

use std::fmt::Write as _;

/// Words of a question that are looked for; the rest of a long text would only make every row match.
const MAX_WORDS: usize = 24;

/// Longest word that is looked for, in characters; what is longer is cut, and found as a prefix.
const MAX_WORD: usize = 40;

/// Words of three letters and more that say nothing about what a text is about. With one of them every row would match, and a
/// short row that has it would seem to fit better than a long one that is meant.
const FILLERS: &[&str] = &[
    "the", "and", "for", "are", "was", "were", "who", "how", "what", "why", "when", "where", "which", "with", "from",
    "that", "this", "these", "those", "have", "has", "had", "you", "your", "can", "could", "would", "should", "please",
    "about", "into", "der", "die", "das", "und", "ist", "ein", "eine", "einen", "mit", "für", "wie", "wer", "wann",
    "von", "den", "dem", "bitte", "los", "las", "que", "con", "por", "para", "una", "del", "cómo", "como", "cuál",
    "les", "des", "une", "est", "pour", "dans", "avec", "qui", "quel", "что", "как", "это", "для", "где", "или", "кто",
];

/// A question as FTS5 wants it, in two strengths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Words(Vec<String>);

impl Words {
    /// The words of the text; none where it has no letter and no digit.
    pub fn of(text: &str) -> Option<Words> {
        let mut words: Vec<String> = Vec::new();
        for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
            let word: String = word.chars().take(MAX_WORD).flat_map(char::to_lowercase).collect();
            if !words.contains(&word) {
                words.push(word);
            }
            if words.len() == MAX_WORDS {
                break;
            }
        }
        (!words.is_empty()).then_some(Words(words))
    }

    /// Rows that have all of the words, each perhaps as the beginning of a longer one.
    pub fn all(&self) -> String {
        self.joined(" AND ")
    }

    /// Rows that have any of the words. Words that stand in every text count only where there are no others.
    pub fn any(&self) -> String {
        let telling: Vec<String> =
            self.0.iter().filter(|word| word.len() > 2 && !FILLERS.contains(&word.as_str())).cloned().collect();
        if telling.is_empty() { self.joined(" OR ") } else { Words(telling).joined(" OR ") }
    }

    fn joined(&self, with: &str) -> String {
        let mut query = String::new();
        for (index, word) in self.0.iter().enumerate() {
            let with = if index == 0 { "" } else { with };
            // A lone letter as a prefix would match every word that begins with it.
            let prefix = if word.chars().count() > 1 { "*" } else { "" };
            let _ = write!(query, "{with}\"{word}\"{prefix}");
        }
        query
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_question_is_syntax() {
        let words = Words::of("Rust AND \"x\" NEAR(wasi*) col:umn -not ^a").unwrap();
        assert_eq!(
            words.all(),
            r#""rust"* AND "and"* AND "x" AND "near"* AND "wasi"* AND "col"* AND "umn"* AND "not"* AND "a""#
        );
        assert_eq!(Words::of("\"*()  - :"), None);
        assert_eq!(Words::of("is it in Oslo").unwrap().any(), r#""oslo"*"#);
        assert_eq!(Words::of("is it").unwrap().any(), r#""is"* OR "it"*"#);
    }

    #[test]
    fn a_long_text_is_cut() {
        let text = (0..1_000).map(|n| format!("word{n} ")).collect::<String>();
        assert_eq!(Words::of(&text).unwrap().0.len(), MAX_WORDS);
        assert_eq!(Words::of(&"x".repeat(1_000)).unwrap().0[0].len(), MAX_WORD);
    }

    proptest::proptest! {
        #[test]
        fn sqlite_takes_every_question(text in "\\PC{0,60}") {
            let conn = rusqlite::Connection::open_in_memory().unwrap();
            conn.execute_batch("CREATE VIRTUAL TABLE w USING fts5 (text); INSERT INTO w VALUES ('some text')").unwrap();
            for query in Words::of(&text).iter().flat_map(|words| [words.all(), words.any()]) {
                let count: Result<i64, _> = conn.query_row("SELECT count(*) FROM w WHERE w MATCH ?1", [&query], |r| r.get(0));
                proptest::prop_assert!(count.is_ok(), "{query}: {count:?}");
            }
        }
    }
}
