//! What came with a message. Its last line may name the files ("Files: weather.csv, notes.txt"), as the page and `kiso run --file` write
//! it. It is no part of what is asked, and says what the rest is about.

use serde::{Deserialize, Serialize};

use crate::label::Label;
use crate::picture::Picture;
use crate::prompt::FileCard;

/// Files that came with a message, as its models are shown them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Attached {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub documents: Vec<AttachedDocument>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pictures: Vec<Picture>,
    /// Of all of them, and of the files whose names and columns are shown.
    #[serde(skip_serializing_if = "Label::is_default")]
    pub label: Label,
}

/// A document in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachedDocument {
    /// Relative to `/work`.
    pub path: String,
    /// Markdown: the whole document where it fits, else its outline.
    pub text: String,
}

impl Attached {
    pub fn is_empty(&self) -> bool {
        self.documents.is_empty() && self.pictures.is_empty() && self.label.is_default()
    }

    /// The documents, each below a line with its path.
    pub fn text(&self) -> String {
        let document = |document: &AttachedDocument| format!("--- {} ---\n{}", document.path, document.text.trim_end());
        self.documents.iter().map(document).collect::<Vec<_>>().join("\n\n")
    }
}

const MARK: &str = "Files:";

/// The message without that line, and the files of the workspace that it names.
pub fn split<'m>(message: &'m str, files: &[FileCard]) -> (&'m str, Vec<String>) {
    let text = message.trim_end();
    let start = text.rfind('\n').map_or(0, |at| at + 1);
    let Some(mut names) = text[start..].trim_start().strip_prefix(MARK).map(str::trim) else {
        return (message, Vec::new());
    };
    let mut found = Vec::new();
    while !names.is_empty() {
        // A name may hold a comma itself.
        let is_next =
            |path: &str| names.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with(','));
        let known =
            files.iter().map(|file| file.path.as_str()).filter(|path| is_next(path)).max_by_key(|path| path.len());
        let length = known.map_or_else(|| names.find(',').unwrap_or(names.len()), str::len);
        found.extend(known.map(str::to_owned));
        names = names[length..].trim_start_matches([',', ' ']);
    }
    // A line of which nothing is a file is a sentence.
    if found.is_empty() { (message, found) } else { (text[..start].trim(), found) }
}

/// The message without a last line that may name files.
pub fn without_names(message: &str) -> &str {
    let text = message.trim_end();
    let start = text.rfind('\n').map_or(0, |at| at + 1);
    if text[start..].trim_start().starts_with(MARK) { text[..start].trim() } else { message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_names_files() {
        let card = |path: &str| FileCard { path: path.to_owned(), bytes: 1, ..FileCard::default() };
        let files = [card("a.csv"), card("b, c.txt"), card("b")];
        for (message, rest, names) in [
            ("plot it\n\nFiles: a.csv", "plot it", vec!["a.csv"]),
            ("Files: b, c.txt, a.csv", "", vec!["b, c.txt", "a.csv"]),
            ("plot it\nFiles: gone.csv, a.csv\n", "plot it", vec!["a.csv"]),
            ("Files: none of them", "Files: none of them", vec![]),
            ("Files: a.csv\nplot it", "Files: a.csv\nplot it", vec![]),
        ] {
            assert_eq!(split(message, &files), (rest, names.into_iter().map(str::to_owned).collect()), "{message}");
        }
    }
}
