//! The regular expressions of `sed`.

use crate::posix;

/// Where a match and its groups are.
pub type Groups = Vec<Option<(usize, usize)>>;

pub enum Pattern {
    Bytes(regex::bytes::Regex),
    /// With back-references.
    Fancy(fancy_regex::Regex),
}

impl Pattern {
    pub fn new(text: &str, extended: bool, ignore_case: bool, lines: bool) -> Result<Pattern, String> {
        let syntax = if extended { posix::Syntax::Extended } else { posix::Syntax::Basic };
        let (translated, references) = posix::translate(text, syntax)?;
        let flags = format!("(?s{}{})", if ignore_case { "i" } else { "" }, if lines { "m" } else { "" });
        let whole = format!("{flags}{translated}");
        let short = |message: String| message.lines().last().unwrap_or_default().trim().to_owned();
        if references {
            return fancy_regex::Regex::new(&whole).map(Pattern::Fancy).map_err(|e| short(e.to_string()));
        }
        regex::bytes::Regex::new(&whole).map(Pattern::Bytes).map_err(|e| short(e.to_string()))
    }

    pub fn is_match(&self, text: &[u8]) -> bool {
        match self {
            Pattern::Bytes(regex) => regex.is_match(text),
            Pattern::Fancy(_) => self.groups(text, 0).is_some(),
        }
    }

    /// The first match that begins at this place or later.
    pub fn groups(&self, text: &[u8], from: usize) -> Option<Groups> {
        match self {
            Pattern::Bytes(regex) => {
                let found = regex.captures_at(text, from)?;
                Some(found.iter().map(|group| group.map(|group| (group.start(), group.end()))).collect())
            }
            Pattern::Fancy(regex) => {
                let text = std::str::from_utf8(text).ok()?;
                let found = regex.captures_from_pos(text, from).ok()??;
                Some(found.iter().map(|group| group.map(|group| (group.start(), group.end()))).collect())
            }
        }
    }
}
