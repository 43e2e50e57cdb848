//! Hashtags in a message: `#web` adds a category of tools. They stay in the text.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Maximum tags of one message; further ones are text.
pub const MAX_TAGS: usize = 8;

/// Maximum characters of a tag without its `#`; a longer word is not a tag.
const MAX_TAG: usize = 32;

/// The tags of a message, in lower case, in order, each once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tags {
    pub names: Vec<String>,
}

/// A tag that adds no tools. It is kept with the message, so that the message can be found by it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnknownTag {
    pub tag: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub near: Vec<String>,
}

impl fmt::Display for UnknownTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnknownTag { tag, near } = self;
        write!(f, "#{tag} is not a category of tools; it is kept as a tag")?;
        if near.is_empty() { Ok(()) } else { write!(f, " (near: #{})", near.join(", #")) }
    }
}

impl Tags {
    /// Finds the tags in a text.
    ///
    /// A tag begins with a letter and continues with letters, digits, `_` and `-`. Before its `#` is a space, an opening bracket
    /// or quote, a comma, or nothing. So headings (`# Title`), issue numbers (`#12`) and the ends of addresses are not tags.
    /// Colours (`#fff`, `#c0ffee`) are not tags either, and code is not searched.
    pub fn from_text(text: &str) -> Self {
        let mut tags = Self::default();
        let of_tag = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        marked(text, '#', of_tag, |word| tags.add(word.trim_end_matches(['_', '-'])));
        tags
    }

    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns the tags that are in `known`, as spelt there.
    pub fn categories(&self, known: &[String]) -> Vec<String> {
        let named = |category: &&String| {
            let category = category.to_lowercase();
            self.names.contains(&category)
        };
        known.iter().filter(named).cloned().collect()
    }

    /// Returns the tags that are not in `known`.
    pub fn unknown<'t>(&'t self, known: &'t [String]) -> impl Iterator<Item = &'t str> {
        let named = |tag: &&str| !known.iter().any(|category| category.to_lowercase() == **tag);
        self.names.iter().map(String::as_str).filter(named)
    }

    fn add(&mut self, word: &str) {
        let letter = word.chars().next().is_some_and(char::is_alphabetic);
        if !letter || word.chars().nth(MAX_TAG).is_some() || is_colour(word) || self.names.len() >= MAX_TAGS {
            return;
        }
        let name = word.to_lowercase();
        if !self.names.contains(&name) {
            self.names.push(name);
        }
    }
}

/// Finds the words after `mark` in places where a tag may be: not in code, and not in the middle of another word. Characters for
/// which `within` is true belong to the word.
pub fn marked(text: &str, mark: char, within: impl Fn(char) -> bool, mut found: impl FnMut(&str)) {
    let mut fence: Option<&str> = None;
    // Code spans may continue over the lines of a paragraph, so all text between fences is searched at once.
    let mut start = 0;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let end = at + line.len();
        match (fence, fence_mark(line)) {
            (None, Some(opens)) => {
                search(&text[start..at], mark, &within, &mut found);
                fence = Some(opens);
            }
            (Some(open), Some(closing)) if closes(line, open, closing) => {
                fence = None;
                start = end;
            }
            _ => {}
        }
        at = end;
    }
    if fence.is_none() {
        search(&text[start..], mark, &within, &mut found);
    }
}

/// Searches text without fences.
fn search(text: &str, mark: char, within: &impl Fn(char) -> bool, found: &mut impl FnMut(&str)) {
    let mut at = 0;
    while let Some(next) = text[at..].find(['`', mark]) {
        at += next;
        if text[at..].starts_with('`') {
            at += code_span(&text[at..]);
            continue;
        }
        let word = &text[at + mark.len_utf8()..];
        let end = word.find(|c: char| !within(c)).unwrap_or(word.len());
        if text[..at].chars().next_back().is_none_or(opens) {
            found(&word[..end]);
        }
        at += mark.len_utf8() + end;
    }
}

fn opens(c: char) -> bool {
    c.is_whitespace() || "([{\"'“‘«„,;、。（「".contains(c)
}

fn is_colour(word: &str) -> bool {
    matches!(word.len(), 3 | 4 | 6 | 8) && word.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Returns the bytes of the code span at the beginning of `text`; only those of its marks if nothing closes them.
fn code_span(text: &str) -> usize {
    let marks = text.len() - text.trim_start_matches('`').len();
    let mut at = marks;
    while let Some(found) = text[at..].find('`') {
        at += found;
        let run = text[at..].len() - text[at..].trim_start_matches('`').len();
        at += run;
        if run == marks {
            return at;
        }
    }
    marks
}

/// Returns the marks with which a line opens or closes fenced code.
pub fn fence_mark(line: &str) -> Option<&str> {
    let text = line.trim_start_matches(' ');
    if line.len() - text.len() > 3 {
        return None;
    }
    ['`', '~'].into_iter().find_map(|mark| {
        let run = text.len() - text.trim_start_matches(mark).len();
        // A span of three backticks within a line is not a fence.
        (run >= 3 && !(mark == '`' && text[run..].contains('`'))).then(|| &text[..run])
    })
}

pub fn closes(line: &str, open: &str, mark: &str) -> bool {
    mark.starts_with(open) && line.trim() == mark
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tags(text: &str) -> Vec<String> {
        Tags::from_text(text).names
    }

    #[test]
    fn tags_are_found() {
        assert_eq!(
            tags("#Web find it (#data-science, #web) \"#notes_\"\n#längs"),
            ["web", "data-science", "notes", "längs"]
        );
        assert_eq!(tags("plan #project2024: go #a"), ["project2024", "a"]);
        assert_eq!(tags(&(0..20).map(|n| format!("#tag{n} ")).collect::<String>()).len(), MAX_TAGS);
    }

    #[test]
    fn what_only_looks_like_one() {
        for text in [
            "# Title",
            "## web",
            "##web",
            "fixes #12 and #12a",
            "C# F#minor a#b",
            "https://example.org/page#web http://#",
            "color: #fff; #c0ffee #12345678",
            "`#web` and ``a ` #web``",
            "```\n#web\n```",
            "~~~ sh\n#web\n```\n#web\n~~~~",
            "```\n#web, never closed",
            "a `span over\n#lines`",
            "\\#web",
            "#",
            "#-",
            "#_",
            &format!("#{}", "x".repeat(33)),
        ] {
            assert_eq!(tags(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn what_stands_around_code_is_searched() {
        assert_eq!(tags("#one `x` #two\n```\n#no\n```\n#three ` #four"), ["one", "two", "three", "four"]);
    }

    #[test]
    fn known_categories_are_named() {
        let known = ["Web".to_owned(), "data".to_owned()];
        let tags = Tags::from_text("#web #moon");
        assert_eq!(tags.categories(&known), ["Web"]);
        assert_eq!(tags.unknown(&known).collect::<Vec<_>>(), ["moon"]);
    }

    proptest! {
        /// Any text is searched within its bounds, and a tag is found again on its own.
        #[test]
        fn any_text_is_searched(text in "[#`~\\PC\n a-c-]{0,60}") {
            let names = tags(&text);
            prop_assert!(names.len() <= MAX_TAGS);
            for name in names {
                prop_assert_eq!(tags(&format!("#{name}")), [name]);
            }
        }
    }
}
