//! Queries of the word indexes (FTS5). Text of a person or a model is never used as FTS syntax: it is split into words, and each
//! is quoted.
//!
//! Chinese and Japanese have no spaces between words, so FTS5 would index a whole sentence as one word. Therefore, the indexes
//! also contain the text's [`grams`]: every two neighbouring characters of such runs.

mod index;

pub(crate) use index::{Index, IndexQuery};

use std::fmt::Write as _;

/// Maximum words of a query; the rest of a long text would only make every row match.
const MAX_WORDS: usize = 24;

/// Maximum words of a text that is compared with another one.
const MAX_COMPARED: usize = 400;

/// Common first letters of two forms of the same word.
const STEM: usize = 4;

/// Maximum characters of a word in a query; a longer one is cut and used as a prefix.
const MAX_WORD: usize = 40;

/// Words of three or more letters without information about a text's topic. With one of them, every row would match, and a short
/// row with it would rank above a long relevant one.
const FILLERS: &[&str] = &[
    "the", "and", "for", "are", "was", "were", "who", "how", "what", "why", "when", "where", "which", "with", "from",
    "that", "this", "these", "those", "have", "has", "had", "you", "your", "can", "could", "would", "should", "please",
    "about", "into", "does", "did", "some", "any", "but", "not", "all", "its", "our", "his", "her", "their", "they",
    "there", "will", "user", "wants", "want", "know", "make", "give", "tell", "show", "get", "der", "die", "das",
    "und", "ist", "ein", "eine", "einen", "mit", "für", "wie", "wer", "wann", "von", "den", "dem", "bitte", "nicht",
    "auf", "aus", "auch", "wir", "sie", "ich", "mir", "mich", "mein", "meine", "sind", "hat", "soll", "los", "las",
    "que", "con", "por", "para", "una", "del", "cómo", "como", "cuál", "les", "des", "une", "est", "pour", "dans",
    "avec", "qui", "quel", "что", "как", "это", "для", "где", "или", "кто",
];

/// A query for FTS5, in a strict and a loose form. Use [`Words::ask`] for an index that may be large.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words(Vec<Word>);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Word {
    Plain(String),
    /// A run of characters without spaces between its words.
    Run(Vec<char>),
}

impl Words {
    /// Parses the words of the text; `None` if it contains neither letters nor digits.
    pub fn parse(text: &str) -> Option<Words> {
        Self::first_of(text, MAX_WORDS)
    }

    /// [`Words::parse`] for a text that is compared instead of being searched for.
    fn of_any_length(text: &str) -> Option<Words> {
        Self::first_of(text, MAX_COMPARED)
    }

    fn first_of(text: &str, most: usize) -> Option<Words> {
        let mut words: Vec<Word> = Vec::new();
        for part in parts(text) {
            let chars = part.chars().take(MAX_WORD);
            let word = if part.starts_with(is_dense) {
                Word::Run(chars.collect())
            } else {
                Word::Plain(chars.flat_map(char::to_lowercase).collect())
            };
            if !words.contains(&word) {
                words.push(word);
            }
            if words.len() == most {
                break;
            }
        }
        (!words.is_empty()).then_some(Words(words))
    }

    /// Matches rows that contain all of the words, also as the beginning of longer ones.
    pub fn all(&self) -> String {
        joined(self.0.iter().map(Word::phrase), " AND ")
    }

    /// Whether a text without an index contains all of the words, also as the beginning of longer ones.
    pub fn stand_in(&self, text: &str) -> bool {
        self.0.iter().all(|word| word.stands_at(text).is_some())
    }

    /// Returns the position of the first of the words in the text.
    pub fn first_in(&self, text: &str) -> Option<usize> {
        self.0.iter().filter_map(|word| word.stands_at(text)).min()
    }

    /// Matches rows that contain any of the words. Very common words only count if there are no others.
    pub fn any(&self) -> String {
        joined(self.telling().iter().map(Word::phrase), " OR ")
    }
}

impl Word {
    /// Whether the two are the same word, or one is the beginning of the other.
    fn is_form_of(&self, other: &Word) -> bool {
        match (self, other) {
            (Word::Plain(one), Word::Plain(other)) => {
                let plain = |word: &str| word.chars().map(index::base).collect::<String>();
                let (one, other) = (plain(one), plain(other));
                let (short, long) = if one.len() <= other.len() { (&one, &other) } else { (&other, &one) };
                one == other || short.chars().count() >= STEM && long.starts_with(short.as_str())
            }
            _ => self == other,
        }
    }

    /// Returns the FTS5 phrase of the word.
    fn phrase(&self) -> String {
        match self {
            // A single letter as a prefix would match every word that begins with it.
            Word::Plain(word) if word.chars().nth(1).is_none() => format!("\"{word}\""),
            Word::Plain(word) => format!("\"{word}\"*"),
            Word::Run(run) if run.len() == 1 => format!("\"{}\"*", run[0]),
            Word::Run(run) => {
                let pairs = run.windows(2).map(|pair| pair.iter().collect::<String>()).collect::<Vec<_>>();
                format!("\"{}\"", pairs.join(" "))
            }
        }
    }

    /// Returns the position of the word in a text, also as the beginning of a longer one.
    fn stands_at(&self, text: &str) -> Option<usize> {
        let plain = match self {
            Word::Run(run) => return text.find(&run.iter().collect::<String>()),
            Word::Plain(word) => word,
        };
        let of_word = |c: char| c.is_alphanumeric() && !is_dense(c);
        let mut within = false;
        for (at, c) in text.char_indices() {
            if of_word(c) && !within && begins_with(&text[at..], plain) {
                return Some(at);
            }
            within = of_word(c);
        }
        None
    }

    /// Returns the parts that may occur alone in a row about the same topic, each with whether it is significant.
    fn terms(&self) -> Vec<(Word, bool)> {
        match self {
            Word::Plain(word) => vec![(self.clone(), word.len() > 2 && !FILLERS.contains(&word.as_str()))],
            Word::Run(run) if run.len() == 1 => vec![(self.clone(), true)],
            Word::Run(run) => {
                // Pairs of only Hiragana are particles and endings.
                let telling = |pair: &[char]| pair.iter().any(|c| !('\u{3040}'..='\u{309f}').contains(c));
                run.windows(2).map(|pair| (Word::Run(pair.to_vec()), telling(pair))).collect()
            }
        }
    }
}

/// Whether the text begins with the word, which is in lower case.
fn begins_with(text: &str, word: &str) -> bool {
    let mut letters = text.chars().flat_map(char::to_lowercase);
    word.chars().all(|letter| letters.next() == Some(letter))
}

fn joined(terms: impl IntoIterator<Item = String>, with: &str) -> String {
    let mut query = String::new();
    for (index, term) in terms.into_iter().enumerate() {
        let _ = write!(query, "{}{term}", if index == 0 { "" } else { with });
    }
    query
}

/// Returns how many of the significant words of `about` occur in `text`, and how many there are. A word also matches as the
/// beginning of a longer one, and as another form of one.
pub fn shared_words(about: &str, text: &str) -> (usize, usize) {
    let (Some(about), Some(text)) = (Words::parse(about), Words::of_any_length(text)) else { return (0, 0) };
    let (about, known) = (about.telling(), text.terms().map(|(word, _)| word).collect::<Vec<_>>());
    let shared = about.iter().filter(|word| known.iter().any(|other| word.is_form_of(other))).count();
    (shared, about.len())
}

/// The prefix of sealed texts, which have no words for the index.
pub const SEALED: &str = "sealed:1:";

/// Returns the grams of a message's text for the index; `None` if it is not indexed.
pub(super) fn indexed_grams(text: &str) -> Option<String> {
    (!text.starts_with(SEALED)).then(|| grams(text))
}

/// Returns the pairs of characters of every run without spaces, and text beside such a run in the same word; empty for most
/// languages.
pub(super) fn grams(text: &str) -> String {
    let mut grams = String::new();
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.contains(is_dense)) {
        for part in parts(word) {
            let chars: Vec<char> = part.chars().collect();
            if !part.starts_with(is_dense) || chars.len() == 1 {
                let _ = write!(grams, "{part} ");
                continue;
            }
            for pair in chars.windows(2) {
                grams.extend(pair);
                grams.push(' ');
            }
        }
    }
    grams
}

/// Splits a text into words, also between scripts with and without spaces.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).flat_map(|word| {
        let mut rest = word;
        std::iter::from_fn(move || {
            let dense = is_dense(rest.chars().next()?);
            let end = rest.find(|c| is_dense(c) != dense).unwrap_or(rest.len());
            let (part, after) = rest.split_at(end);
            rest = after;
            Some(part)
        })
    })
}

/// Whether the character belongs to a script without spaces between words.
fn is_dense(c: char) -> bool {
    matches!(c, '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{ff66}'..='\u{ff9f}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_question_is_syntax() {
        let words = Words::parse("Rust AND \"x\" NEAR(wasi*) col:umn -not ^a").unwrap();
        assert_eq!(
            words.all(),
            r#""rust"* AND "and"* AND "x" AND "near"* AND "wasi"* AND "col"* AND "umn"* AND "not"* AND "a""#
        );
        assert_eq!(Words::parse("\"*()  - :"), None);
        assert_eq!(Words::parse("is the hotel in Oslo").unwrap().any(), r#""hotel"* OR "oslo"*"#);
        assert_eq!(Words::parse("is it").unwrap().any(), r#""is"* OR "it"*"#);
    }

    #[test]
    fn runs_without_spaces_are_taken_apart() {
        let words = Words::parse("東京のAPIは何").unwrap();
        assert_eq!(words.all(), r#""東京 京の" AND "api"* AND "は何""#);
        assert_eq!(words.any(), r#""東京" OR "京の" OR "api"* OR "は何""#);
        assert_eq!(Words::parse("車").unwrap().all(), r#""車"*"#);
        assert_eq!(grams("plain text, ünïcode 12"), "");
        assert_eq!(grams("see 東京のAPI now"), "東京 京の API ");
    }

    #[test]
    fn a_long_text_is_cut() {
        let text = (0..1_000).map(|n| format!("word{n} ")).collect::<String>();
        assert_eq!(Words::parse(&text).unwrap().0.len(), MAX_WORDS);
        assert_eq!(Words::parse(&"x".repeat(1_000)).unwrap().all().len(), MAX_WORD + 3);
        assert_eq!(Words::parse(&"車".repeat(1_000)).unwrap().any().matches(" OR ").count(), MAX_WORDS - 1);
    }

    #[test]
    fn texts_share_what_they_are_about() {
        assert_eq!(shared_words("due.py leaves Saturdays unmoved", "fix due.py: a Saturday is moved"), (2, 4));
        assert_eq!(shared_words("the rain in Grünwald", "RAINY days of grunwald"), (2, 2));
        assert_eq!(
            shared_words("what does the user want", "the user wants what others do"),
            (4, 5),
            "where nothing says more"
        );
        assert_eq!(shared_words("a cat", "categories"), (0, 1), "a short word is not a stem");
        assert_eq!(shared_words("東京の天気", "東京は雨"), (1, 4));
        assert_eq!((shared_words("", "a"), shared_words("rain", "…")), ((0, 0), (0, 0)));
        let long = (0..1_000).map(|n| format!("word{n} ")).collect::<String>();
        assert_eq!(shared_words("word399 word400", &long), (2, 2), "word40 is the beginning of word400");
    }

    #[test]
    fn words_are_seen_in_a_text_without_an_index() {
        let words = Words::parse("RAIN in 東京").unwrap();
        assert!(words.stand_in("It is raining in 東京都"));
        assert!(!words.stand_in("It is raining in Oslo"));
        assert_eq!(Words::parse("rain oslo").unwrap().first_in("Terrain of Oslo, rainy"), Some(11));
        assert_eq!(Words::parse("京都").unwrap().first_in("東京都"), Some(3));
        assert_eq!(Words::parse("snow").unwrap().first_in("Terrain"), None);
    }

    proptest::proptest! {
        #[test]
        fn sqlite_takes_every_question(text in "\\PC{0,60}") {
            let conn = rusqlite::Connection::open_in_memory().unwrap();
            conn.execute_batch("CREATE VIRTUAL TABLE w USING fts5 (text); INSERT INTO w VALUES ('some text')").unwrap();
            for query in Words::parse(&text).iter().flat_map(|words| [words.all(), words.any()]) {
                let count: Result<i64, _> = conn.query_row("SELECT count(*) FROM w WHERE w MATCH ?1", [&query], |r| r.get(0));
                proptest::prop_assert!(count.is_ok(), "{query}: {count:?}");
            }
        }
    }
}
