//! Words: splits a text into words with shapes, and compares words.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::OnceLock;

use crate::effort;

/// The form of a word, which decides which arguments it can fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WordShape {
    Plain,
    /// `10`, `-2.5`, `1,000`, `10mm`.
    Number,
    /// `2024-03` or `2024-03-01`.
    Date,
    /// `weather.csv`, `pub/rain.svg`.
    File,
    /// `https://example.org/`.
    Url,
    /// In quotes, which are not part of `raw`.
    Quoted,
    /// `>`, `<=`, `!=`.
    Compare,
    /// `mean(temperature_c)`.
    Call,
}

/// The punctuation mark after a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Punctuation {
    None,
    Comma,
    /// `.`, `;`, `!`, `?` or the end of a line.
    Stop,
}

/// One word of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    pub raw: String,
    /// Lower case.
    pub norm: String,
    /// Equal for words with the same stem or synonyms.
    pub key: String,
    pub shape: WordShape,
    pub mark: Punctuation,
    /// The bytes of the text, including quotes.
    pub at: Range<usize>,
    content: bool,
}

impl Word {
    fn new(raw: &str, shape: WordShape, at: Range<usize>) -> Self {
        let norm = raw.to_lowercase();
        Self {
            raw: raw.to_owned(),
            key: key(&norm),
            content: shape != WordShape::Plain || !(is_filler(&norm) || is_joint(&norm) || is_reference(&norm)),
            norm,
            shape,
            mark: Punctuation::None,
            at,
        }
    }

    /// Whether the word has content: it is not a filler, a preposition or "and".
    pub(crate) fn is_content(&self) -> bool {
        self.content
    }

    /// Whether it is capitalized, like names.
    pub(crate) fn is_name(&self) -> bool {
        matches!(self.shape, WordShape::Plain | WordShape::Quoted)
            && self.raw.chars().next().is_some_and(char::is_uppercase)
    }
}

/// Returns the beginning of a text, at most `most` bytes.
pub(crate) fn clip(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// Splits `text` into words.
pub(crate) fn words(text: &str) -> Vec<Word> {
    words_around(text, &[])
}

/// Splits `text` into words; a file with one of these names (in lower case) is one word.
pub(crate) fn words_around(text: &str, names: &[String]) -> Vec<Word> {
    let mut out: Vec<Word> = Vec::new();
    let mut rest = 0;
    while let Some(c) = text[rest..].chars().next() {
        if c.is_whitespace() {
            if c == '\n'
                && let Some(last) = out.last_mut()
            {
                last.mark = Punctuation::Stop;
            }
            rest += c.len_utf8();
            continue;
        }
        let known = |name: &&String| {
            let end = rest + name.len();
            text.get(rest..end).is_some_and(|part| part.to_lowercase() == **name)
                && !text[end..].starts_with(char::is_alphanumeric)
        };
        if effort::spend(names.len() + 1)
            && let Some(name) = names.iter().find(known)
        {
            let at = rest..rest + name.len();
            out.push(Word::new(&text[at.clone()], WordShape::File, at.clone()));
            rest = at.end;
            continue;
        }
        if let Some(close) = closing_quote(c)
            && let Some(len) = text[rest + c.len_utf8()..].find(close)
        {
            let inner = rest + c.len_utf8()..rest + c.len_utf8() + len;
            let end = inner.end + close.len_utf8();
            let shape = match shape(&text[inner.clone()]) {
                WordShape::File => WordShape::File,
                WordShape::Url => WordShape::Url,
                _ => WordShape::Quoted,
            };
            out.push(Word::new(&text[inner], shape, rest..end));
            rest = end;
            continue;
        }
        let len = text[rest..].find(char::is_whitespace).unwrap_or(text.len() - rest);
        chunk(&text[rest..rest + len], rest, &mut out);
        rest += len;
    }
    out
}

fn closing_quote(open: char) -> Option<char> {
    match open {
        '"' | '\'' | '`' => Some(open),
        '“' => Some('”'),
        '‘' => Some('’'),
        _ => None,
    }
}

/// Parses a run of characters without white space: removes punctuation, splits comparisons (`rain>=10`).
fn chunk(text: &str, offset: usize, out: &mut Vec<Word>) {
    let (body, mark) = match text.trim_end_matches([',', '.', ';', ':', '!', '?', '…']) {
        "" => ("", mark(text)),
        body => (body, mark(&text[body.len()..])),
    };
    if body.is_empty() {
        if let Some(last) = out.last_mut()
            && mark != Punctuation::None
        {
            last.mark = mark;
        }
        return;
    }
    if matches!(shape(body), WordShape::Url) {
        out.push(Word::new(body, WordShape::Url, offset..offset + body.len()));
    } else {
        let comparing = |c: char| matches!(c, '<' | '>' | '=' | '≥' | '≤' | '≠' | '!');
        let mut start = 0;
        while start < body.len() {
            let compare = body[start..].starts_with(comparing);
            let len = body[start..].find(|c| comparing(c) != compare).unwrap_or(body.len() - start);
            let piece = &body[start..start + len];
            let at = offset + start;
            if compare {
                out.push(Word::new(piece, WordShape::Compare, at..at + len));
            } else {
                // A bracket that is opened and closed inside belongs to a call; any other is punctuation.
                let call = piece.find('(').is_some_and(|i| i > 0) && piece.ends_with(')');
                let bare = if call { piece } else { piece.trim_matches(['(', ')', '[', ']', '{', '}', '"', '\'']) };
                if !bare.is_empty() {
                    let shape = if call { WordShape::Call } else { shape(bare) };
                    out.push(Word::new(bare, shape, at..at + len));
                }
            }
            start += len;
        }
    }
    if let Some(last) = out.last_mut() {
        last.mark = mark;
    }
}

fn mark(tail: &str) -> Punctuation {
    match tail.chars().next() {
        Some('.' | ';' | '!' | '?') => Punctuation::Stop,
        Some(',') => Punctuation::Comma,
        _ => Punctuation::None,
    }
}

fn shape(text: &str) -> WordShape {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if text.contains("://") {
        WordShape::Url
    } else if is_date(text) {
        WordShape::Date
    } else if digits.starts_with(|c: char| c.is_ascii_digit()) && number(text).is_some() {
        WordShape::Number
    } else if looks_like_file(text) {
        WordShape::File
    } else {
        WordShape::Plain
    }
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    (2..=3).contains(&parts.len())
        && parts[0].len() == 4
        && parts[1..].iter().all(|p| p.len() == 2)
        && parts.iter().all(|p| p.bytes().all(|b| b.is_ascii_digit()))
}

/// Whether a text is a name with an extension that starts with a letter: `a.csv`, `data/a.jsonl`, but neither `3.5` nor `e.g`.
fn looks_like_file(text: &str) -> bool {
    let name = text.rsplit('/').next().unwrap_or(text);
    let Some((base, extension)) = name.rsplit_once('.') else {
        return false;
    };
    base.chars().count() > 1
        && (2..=5).contains(&extension.len())
        && extension.starts_with(|c: char| c.is_ascii_alphabetic())
        && extension.bytes().all(|b| b.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_alphanumeric() || "._-/".contains(c))
}

/// Parses a number in digits; `1,000` and a unit without a space (`10mm`, `5%`) are allowed.
pub(crate) fn number(text: &str) -> Option<f64> {
    let text = text.replace(',', "");
    let end = text
        .char_indices()
        .find(|(i, c)| !(c.is_ascii_digit() || *c == '.' || (*i == 0 && "+-".contains(*c))))
        .map_or(text.len(), |(i, _)| i);
    let unit = &text[end..];
    let glued = unit.chars().count() <= 4 && unit.chars().all(|c| c.is_alphabetic() || "%°/".contains(c));
    (end > 0 && glued).then(|| text[..end].parse().ok()).flatten().filter(|n: &f64| n.is_finite())
}

/// Parses a whole number in digits, or in words up to twelve.
pub(crate) fn count(norm: &str) -> Option<u64> {
    const NAMES: [&str; 13] =
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
    NAMES.iter().position(|name| *name == norm).map(|n| n as u64).or_else(|| norm.replace(',', "").parse().ok())
}

/// Returns the stem of a lower-case word: without plural, -ing and -ed endings and a last e.
pub(crate) fn stem(norm: &str) -> String {
    let long = |s: &str, n: usize| s.chars().count() >= n;
    let mut s = norm.to_owned();
    if let Some(base) = s.strip_suffix("ies").filter(|b| long(b, 2)) {
        s = format!("{base}y");
    } else if let Some(base) = s.strip_suffix("ches").or(s.strip_suffix("shes")) {
        s = format!("{base}{}", if norm.ends_with("ches") { "ch" } else { "sh" });
    } else if let Some(base) = s.strip_suffix('s')
        && long(base, 3)
        && !base.ends_with(['s', 'u', 'i'])
    {
        s = base.to_owned();
    }
    for ending in ["ing", "ed"] {
        if let Some(base) = s.strip_suffix(ending)
            && long(base, 3)
            && base.contains(['a', 'e', 'i', 'o', 'u', 'y'])
        {
            let mut base = base.to_owned();
            let mut tail = base.chars().rev();
            if let (Some(a), Some(b)) = (tail.next(), tail.next())
                && a == b
                && !"lsz".contains(a)
            {
                base.pop();
            }
            s = base;
            break;
        }
    }
    if s.ends_with('e') && long(&s, 4) {
        s.pop();
    }
    s
}

/// Synonyms; the first word of each row stands for all. Printed in docs/reflex.md.
pub(crate) const SYNONYMS: &[&[&str]] = &[
    &["mean", "average", "avg"],
    &["total", "sum"],
    &["plot", "draw", "chart", "graph", "visualize", "visualise", "diagram"],
    &["by", "per", "over", "against", "versus", "vs"],
    &["from", "in", "of", "within", "inside"],
    &["show", "list", "display", "print"],
    &["fetch", "get", "download", "retrieve"],
    &["describe", "summarize", "summarise", "summary", "overview"],
    &["compute", "calculate", "determine"],
    &["with", "and"],
];

/// Returns the key of a lower-case word: words with the same key are equivalent.
pub(crate) fn key(norm: &str) -> String {
    static ROWS: OnceLock<BTreeMap<String, &str>> = OnceLock::new();
    let rows =
        ROWS.get_or_init(|| SYNONYMS.iter().flat_map(|row| row.iter().map(|word| (stem(word), row[0]))).collect());
    let own = stem(norm);
    rows.get(&own).map(|word| (*word).to_owned()).unwrap_or(own)
}

const FILLERS: &str = "\
    a an the please kindly can could would will should you i we want need like me us my our your now also just \
    simply let lets let's is are was were be do does did there here some any using use as to for on at into its \
    their nice quick simple new small good pretty little beautiful give make create have has had file so i'd i'm out \
    up compare what's hey ok okay";

/// Whether a word has no effect.
pub(crate) fn is_filler(norm: &str) -> bool {
    static SET: OnceLock<BTreeSet<&str>> = OnceLock::new();
    SET.get_or_init(|| FILLERS.split(' ').collect()).contains(norm)
}

/// Whether a word is a preposition or "and": it only introduces the next word.
pub(crate) fn is_joint(norm: &str) -> bool {
    listed("by per over against versus vs from in of within inside with and then or each every", norm)
}

/// Whether a word refers to something before it.
pub(crate) fn is_reference(norm: &str) -> bool {
    listed("it them both that this these those result results everything all", norm)
}

/// Whether a word is in a space-separated list.
pub(crate) fn listed(list: &str, word: &str) -> bool {
    list.split(' ').any(|one| one == word)
}

/// Returns the phrase with a capital first letter.
pub(crate) fn sentence(phrase: &str) -> String {
    let mut chars = phrase.chars();
    chars.next().map(|c| c.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes() {
        let text = "Plot rain>=10mm from \"a b.csv\", mean(temp) since 2024-03-01 at https://x.org/a?b=c.";
        let shapes: Vec<_> = words(text).into_iter().map(|w| (w.raw, w.shape)).collect();
        let expected = [
            ("Plot", WordShape::Plain),
            ("rain", WordShape::Plain),
            (">=", WordShape::Compare),
            ("10mm", WordShape::Number),
            ("from", WordShape::Plain),
            ("a b.csv", WordShape::Quoted),
            ("mean(temp)", WordShape::Call),
            ("since", WordShape::Plain),
            ("2024-03-01", WordShape::Date),
            ("at", WordShape::Plain),
            ("https://x.org/a?b=c", WordShape::Url),
        ];
        assert_eq!(shapes, expected.map(|(raw, shape)| (raw.to_owned(), shape)));
    }

    #[test]
    fn stems_and_synonyms() {
        for (a, b) in [
            ("plotting", "plot"),
            ("cities", "city"),
            ("averages", "mean"),
            ("drawn", "drawn"),
            ("bars", "bar"),
            ("over", "per"),
        ] {
            assert_eq!(key(a), key(b), "{a} and {b}");
        }
        assert_ne!(key("rain"), key("plot"));
    }
}
