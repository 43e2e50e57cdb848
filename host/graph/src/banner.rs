//! The banners of a self-assessment: one of three is the first line of an answer given at the step limit, and of no other answer.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The result of a self-assessment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Banner {
    Achieved,
    PartiallyAchieved,
    NotAchieved,
}

impl Banner {
    pub const ALL: [Self; 3] = [Self::Achieved, Self::PartiallyAchieved, Self::NotAchieved];

    /// Returns the line as it is displayed.
    pub fn text(self) -> &'static str {
        match self {
            Self::Achieved => "✅ GOAL ACHIEVED",
            Self::PartiallyAchieved => "⚠ GOAL PARTIALLY ACHIEVED",
            Self::NotAchieved => "❌ GOAL NOT ACHIEVED",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Achieved => "GOAL ACHIEVED",
            Self::PartiallyAchieved => "GOAL PARTIALLY ACHIEVED",
            Self::NotAchieved => "GOAL NOT ACHIEVED",
        }
    }
}

impl fmt::Display for Banner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// Returns `text` without banners at the beginning of lines. A line that contains nothing else is removed.
pub fn strip(text: &str) -> String {
    let mut stripper = Stripper::default();
    let mut out = stripper.push(text);
    out.push_str(&stripper.finish());
    out
}

/// Parses a self-assessment. Returns the banner, and the text to display: the banner, an empty line, and the text without
/// banners.
///
/// There must be exactly one banner. If there is none or more than one, even if they agree, the goal counts as not achieved: an
/// answer in the wrong form does not prove success.
pub fn enforce(text: &str) -> (Banner, String) {
    let mut stripper = Stripper::default();
    let mut body = stripper.push(text);
    let (rest, found) = stripper.end();
    body.push_str(&rest);
    let within_lines = Banner::ALL.into_iter().any(|banner| body.contains(banner.text()));
    let banner = match found[..] {
        [banner] if !within_lines => banner,
        _ => Banner::NotAchieved,
    };
    let body = body.trim();
    let shown = if body.is_empty() { banner.text().to_owned() } else { format!("{banner}\n\n{body}") };
    (banner, shown)
}

/// Whether a text is a self-assessment in the form of [`enforce`]. All other answers have no banners, because they were removed.
pub fn is_assessment(text: &str) -> bool {
    Banner::ALL.into_iter().any(|banner| text.starts_with(banner.text()))
}

/// Removes banners from text that arrives in pieces. Holds back text that may be the beginning of a banner, at most [`MAX_HEAD`]
/// characters.
#[derive(Debug, Default)]
pub struct Stripper {
    at: ScanState,
    /// The beginning of a line that may be a banner; only in [`ScanState::Head`].
    held: String,
    /// Banners so far, at most [`MAX_FOUND`].
    found: Vec<Banner>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
enum ScanState {
    /// Where a banner may begin: at the start of a line, or after another banner.
    #[default]
    Head,
    /// Inside a line of text.
    Line,
    /// Directly after a banner, where its emphasis ends.
    Close,
    /// After a banner and a space, before the rest of its line.
    Gap,
    /// In the line after a removed line. If it is empty, it is removed, too.
    Below,
}

/// Maximum characters before the words of a banner: emphasis, a heading, a list's dash, an emoji.
const MAX_DECORATION: usize = 16;

/// A line that is longer than this is not a banner. The longest banner has 23 characters without decoration and spaces.
const MAX_HEAD: usize = 64;

/// Maximum counted banners: more than one is an error anyway.
const MAX_FOUND: usize = 8;

impl Stripper {
    /// Takes the next piece and returns the text that can be displayed now.
    pub fn push(&mut self, piece: &str) -> String {
        let mut out = String::with_capacity(piece.len());
        for c in piece.chars() {
            self.take(c, &mut out);
        }
        out
    }

    /// Returns the rest after the end of the text.
    pub fn finish(self) -> String {
        self.end().0
    }

    fn end(mut self) -> (String, Vec<Banner>) {
        if let Head::Banner(banner) = read(&self.held, true) {
            self.note(banner);
            self.held.clear();
        }
        (self.held, self.found)
    }

    fn take(&mut self, c: char, out: &mut String) {
        match self.at {
            ScanState::Line => {
                out.push(c);
                if c == '\n' {
                    self.at = ScanState::Head;
                }
            }
            ScanState::Head => self.head(c, out),
            ScanState::Close | ScanState::Gap if c == '\n' => self.at = ScanState::Below,
            ScanState::Close if "*_~`:.!".contains(c) => {}
            ScanState::Gap if "-–—:|".contains(c) => {}
            ScanState::Close | ScanState::Gap if c.is_whitespace() => self.at = ScanState::Gap,
            // Another banner may follow on the same line.
            ScanState::Close | ScanState::Gap => {
                self.at = ScanState::Head;
                self.head(c, out);
            }
            ScanState::Below => {
                self.at = ScanState::Head;
                if c != '\n' {
                    self.head(c, out);
                }
            }
        }
    }

    fn head(&mut self, c: char, out: &mut String) {
        self.held.push(c);
        match read(&self.held, false) {
            Head::Open => {}
            Head::Text => {
                out.push_str(&self.held);
                self.held.clear();
                self.at = if c == '\n' { ScanState::Head } else { ScanState::Line };
            }
            Head::Banner(banner) => {
                self.note(banner);
                self.held.clear();
                self.at = ScanState::Close;
                // This character ended the words.
                self.take(c, out);
            }
        }
    }

    fn note(&mut self, banner: Banner) {
        if self.found.len() < MAX_FOUND {
            self.found.push(banner);
        }
    }
}

/// Classification of a line's beginning.
enum Head {
    /// The text may still become a banner.
    Open,
    /// The text is not a banner.
    Text,
    /// The text is this banner, followed by one more character unless it has ended.
    Banner(Banner),
}

/// Classifies the beginning of a line. The words must be in capitals, or follow an emoji: people write "Goal achieved" in normal
/// text.
fn read(held: &str, ended: bool) -> Head {
    if held.chars().nth(MAX_HEAD).is_some() {
        return Head::Text;
    }
    let words = held.trim_start_matches(decorates);
    let decoration = &held[..held.len() - words.len()];
    if decoration.chars().nth(MAX_DECORATION).is_some() {
        return Head::Text;
    }
    let any_case = decoration.contains(is_emoji);
    let mut open = false;
    for banner in Banner::ALL {
        match behind(words, banner.words(), any_case) {
            Behind::Cut => open = true,
            Behind::Rest(rest) if rest.is_empty() && !ended => open = true,
            Behind::Rest(rest) if !rest.starts_with(char::is_alphanumeric) => return Head::Banner(banner),
            Behind::Rest(_) | Behind::Other => {}
        }
    }
    if open && !ended { Head::Open } else { Head::Text }
}

enum Behind<'a> {
    /// The text ends inside the phrase.
    Cut,
    Rest(&'a str),
    Other,
}

/// Returns the text after `phrase`; any run of spaces counts as one space.
fn behind<'a>(text: &'a str, phrase: &str, any_case: bool) -> Behind<'a> {
    let mut rest = text;
    for expected in phrase.chars() {
        let Some(c) = rest.chars().next() else {
            return Behind::Cut;
        };
        if expected == ' ' {
            if !is_blank(c) {
                return Behind::Other;
            }
            rest = rest.trim_start_matches(is_blank);
        } else if c == expected || any_case && c.eq_ignore_ascii_case(&expected) {
            rest = &rest[c.len_utf8()..];
        } else {
            return Behind::Other;
        }
    }
    Behind::Rest(rest)
}

fn is_blank(c: char) -> bool {
    c.is_whitespace() && c != '\n'
}

fn decorates(c: char) -> bool {
    is_blank(c) || "*_~`#>-+".contains(c) || is_emoji(c)
}

/// Whether a character is a pictograph, or a mark that selects its form or joins it.
fn is_emoji(c: char) -> bool {
    matches!(c, '\u{2600}'..='\u{27bf}' | '\u{2b00}'..='\u{2bff}' | '\u{1f300}'..='\u{1faff}' | '\u{fe0e}' | '\u{fe0f}' | '\u{200d}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn banners_are_taken_out_of_normal_turns() {
        for (text, expected) in [
            ("✅ GOAL ACHIEVED\n\nThe file is there.", "The file is there."),
            ("Done.\n✅ GOAL ACHIEVED", "Done.\n"),
            ("**✅ GOAL ACHIEVED**\nDone.", "Done."),
            ("## ⚠\u{fe0f} GOAL  PARTIALLY ACHIEVED:\nHalf.", "Half."),
            ("⚠ GOAL PARTIALLY ACHIEVED - half of it", "half of it"),
            ("GOAL NOT ACHIEVED. No file.", "No file."),
            ("❌ Goal not achieved\r\nNo.", "No."),
            ("❌ GOAL NOT ACHIEVED ✅ GOAL ACHIEVED\nWell.", "Well."),
            ("**GOAL ACHIEVED:** **bold** rest", "**bold** rest"),
            ("a\n> ✅ GOAL ACHIEVED\nb", "a\nb"),
        ] {
            assert_eq!(strip(text), expected, "{text}");
        }
    }

    #[test]
    fn ordinary_text_stays() {
        for text in [
            "",
            "\n\n",
            "Goal achieved: the file is there.",
            "The banner says ✅ GOAL ACHIEVED when it is done.",
            "GOAL ACHIEVEDLY",
            "GOAL",
            "✅ Done",
            "✅ Goal",
            "- a\n- b\n---\n# Title\n",
            "\"GOAL ACHIEVED\" is a banner",
            "**bold**\n    code\n\tGO",
            "------------------------------------ GOAL ACHIEVED",
        ] {
            assert_eq!(strip(text), text);
        }
    }

    #[test]
    fn a_self_assessment_has_exactly_one() {
        for (text, banner, shown) in [
            ("✅ GOAL ACHIEVED\nAll done.", Banner::Achieved, "✅ GOAL ACHIEVED\n\nAll done."),
            (
                "I tried.\n\n**⚠️ GOAL PARTIALLY ACHIEVED**",
                Banner::PartiallyAchieved,
                "⚠ GOAL PARTIALLY ACHIEVED\n\nI tried.",
            ),
            ("GOAL NOT ACHIEVED", Banner::NotAchieved, "❌ GOAL NOT ACHIEVED"),
            ("All done.", Banner::NotAchieved, "❌ GOAL NOT ACHIEVED\n\nAll done."),
            ("", Banner::NotAchieved, "❌ GOAL NOT ACHIEVED"),
            ("✅ GOAL ACHIEVED\nno:\n❌ GOAL NOT ACHIEVED", Banner::NotAchieved, "❌ GOAL NOT ACHIEVED\n\nno:"),
            ("✅ GOAL ACHIEVED\nx\n✅ GOAL ACHIEVED", Banner::NotAchieved, "❌ GOAL NOT ACHIEVED\n\nx"),
        ] {
            assert_eq!(enforce(text), (banner, shown.to_owned()), "{text}");
        }
        let hidden = "✅ GOAL ACHIEVED\nthat is, ❌ GOAL NOT ACHIEVED";
        assert_eq!(enforce(hidden).0, Banner::NotAchieved);
    }

    fn fragment() -> impl Strategy<Value = &'static str> {
        prop::sample::select(vec![
            "✅ ",
            "⚠",
            "\u{fe0f}",
            "❌ ",
            "GOAL ",
            "GOAL",
            " ",
            "ACHIEVED",
            "PARTIALLY ",
            "NOT ",
            "NOT",
            "goal ",
            "achieved",
            "\n",
            "**",
            "- ",
            "#",
            ":",
            ".",
            "word ",
            "ä",
            "\r\n",
            "✅ GOAL ACHIEVED",
            "❌ GOAL NOT ACHIEVED\n",
            "\n\n",
        ])
    }

    proptest! {
        /// The result does not depend on how the text is split, and contains no more banners.
        #[test]
        fn pieces_show_the_same_as_the_whole(parts in prop::collection::vec(fragment(), 0..24), sizes in prop::collection::vec(1usize..9, 1..30)) {
            let text = parts.concat();
            let whole = strip(&text);
            let mut stripper = Stripper::default();
            let (mut shown, mut rest, mut sizes) = (String::new(), text.as_str(), sizes.into_iter().cycle());
            while !rest.is_empty() {
                let (piece, tail) = rest.split_at(rest.ceil_char_boundary(sizes.next().unwrap_or(1).min(rest.len())));
                shown.push_str(&stripper.push(piece));
                prop_assert!(stripper.held.chars().count() <= MAX_HEAD);
                rest = tail;
            }
            shown.push_str(&stripper.finish());
            prop_assert_eq!(&shown, &whole);
            prop_assert_eq!(strip(&whole), whole);
        }

        /// The text displayed at the step limit begins with a banner, and no other line does.
        #[test]
        fn one_banner_is_shown(parts in prop::collection::vec(fragment(), 0..24)) {
            let (banner, shown) = enforce(&parts.concat());
            let rest = shown.strip_prefix(banner.text());
            prop_assert!(rest.is_some());
            prop_assert_eq!(strip(rest.unwrap_or_default()), rest.unwrap_or_default());
        }
    }
}
