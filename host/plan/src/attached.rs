//! Files that are attached to a message. Its last line may name them ("Files: weather.csv, notes.txt"), as the page and `kiso run
//! --file` write it. The line is not part of the question.

use serde::{Deserialize, Serialize};

use crate::label::Label;
use crate::picture::Picture;
use crate::prompt::FileCard;

/// The files attached to a message, in the form that models see.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AttachedFiles {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub documents: Vec<AttachedDocument>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pictures: Vec<Picture>,
    /// The label of all of them, including files of which only names and columns are shown.
    #[serde(skip_serializing_if = "Label::is_default")]
    pub label: Label,
}

/// A document as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachedDocument {
    /// Relative to `/work`.
    pub path: String,
    /// Markdown: the whole document if it fits, otherwise its outline.
    pub text: String,
}

impl AttachedFiles {
    pub fn is_empty(&self) -> bool {
        !self.shows_any() && self.label.is_default()
    }

    /// Whether there is anything to show.
    pub fn shows_any(&self) -> bool {
        !(self.documents.is_empty() && self.pictures.is_empty())
    }

    /// The documents, each below a line with its path.
    pub fn text(&self) -> String {
        self.documents.iter().map(AttachedDocument::section).collect::<Vec<_>>().join("\n\n")
    }
}

impl AttachedDocument {
    /// Returns the text below a line with its path.
    pub fn section(&self) -> String {
        format!("--- {} ---\n{}", self.path, self.text.trim_end())
    }
}

const MARK: &str = "Files:";

/// A file that a message names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedFile<'f> {
    pub card: &'f FileCard,
    /// Whether the last line names it, instead of a sentence.
    pub came_along: bool,
}

/// Returns the files that a message names: in its last line, or by their whole paths anywhere in it.
pub fn named<'f>(message: &str, files: &'f [FileCard]) -> Vec<NamedFile<'f>> {
    let (text, along) = split(message, files);
    let is_in_name = |c: char| c.is_alphanumeric() || "-_/.".contains(c);
    let is_said = |path: &str| {
        text.match_indices(path).any(|(at, _)| {
            let before = text[..at].strip_suffix("/work/").unwrap_or(&text[..at]).chars().next_back();
            let mut after = text[at + path.len()..].chars();
            // A full stop ends the sentence, or is part of the name.
            let end = match after.next() {
                Some('.') => after.next(),
                next => next,
            };
            !before.is_some_and(is_in_name) && !end.is_some_and(is_in_name)
        })
    };
    let file = |card: &'f FileCard| {
        let came_along = along.contains(&card.path);
        (came_along || is_said(&card.path)).then_some(NamedFile { card, came_along })
    };
    let mut named: Vec<_> = files.iter().filter_map(file).collect();
    // In the order of the last line.
    named.sort_by_key(|file| along.iter().position(|path| *path == file.card.path));
    named
}

/// Splits a message into its text and the workspace files that its last line names. A name that ends with a slash is a folder
/// with everything in it.
pub fn split<'m>(message: &'m str, files: &[FileCard]) -> (&'m str, Vec<String>) {
    let text = message.trim_end();
    let start = text.rfind('\n').map_or(0, |at| at + 1);
    let Some(mut names) = text[start..].trim_start().strip_prefix(MARK).map(str::trim) else {
        return (message, Vec::new());
    };
    let mut found = Vec::new();
    while !names.is_empty() {
        // A name may contain a comma itself.
        let is_next =
            |path: &str| names.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with(','));
        let known =
            files.iter().map(|file| file.path.as_str()).filter(|path| is_next(path)).max_by_key(|path| path.len());
        let length = known.map_or_else(|| names.find(',').unwrap_or(names.len()), str::len);
        found.extend(known.map(str::to_owned));
        if known.is_none() {
            let folder = Some(&names[..length]).filter(|name| name.ends_with('/'));
            let inside = |file: &&FileCard| folder.is_some_and(|folder| file.path.starts_with(folder));
            found.extend(files.iter().filter(inside).map(|file| file.path.clone()));
        }
        names = names[length..].trim_start_matches([',', ' ']);
    }
    // A last line without any file is a sentence.
    if found.is_empty() { (message, found) } else { (text[..start].trim(), found) }
}

/// Returns the message without a last line that may name files.
pub fn without_names(message: &str) -> &str {
    let text = message.trim_end();
    let start = text.rfind('\n').map_or(0, |at| at + 1);
    if text[start..].trim_start().starts_with(MARK) { text[..start].trim() } else { message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_in_sentences_too() {
        let card = |path: &str| FileCard { path: path.to_owned(), bytes: 1, ..FileCard::default() };
        let files = ["a.pdf", "in/b.png", "c"].map(card);
        for (message, names) in [
            ("read a.pdf.", vec!["a.pdf"]),
            ("read /work/in/b.png and 'c'", vec!["in/b.png", "c"]),
            ("read xa.pdf, a.pdf2, a.pdf.gz, in/b.pngs and cc", vec![]),
            ("read it\n\nFiles: a.pdf", vec!["a.pdf"]),
        ] {
            let found: Vec<_> = named(message, &files).iter().map(|file| file.card.path.as_str()).collect();
            assert_eq!(found, names, "{message}");
        }
        assert_eq!(
            named("c\n\nFiles: a.pdf", &files).iter().map(|file| file.came_along).collect::<Vec<_>>(),
            [false, true]
        );
    }

    #[test]
    fn the_last_line_names_files() {
        let card = |path: &str| FileCard { path: path.to_owned(), bytes: 1, ..FileCard::default() };
        let files = [card("a.csv"), card("b, c.txt"), card("b"), card("in/x"), card("in/y/z")];
        for (message, rest, names) in [
            ("plot it\n\nFiles: a.csv", "plot it", vec!["a.csv"]),
            ("Files: b, c.txt, a.csv", "", vec!["b, c.txt", "a.csv"]),
            ("plot it\nFiles: gone.csv, a.csv\n", "plot it", vec!["a.csv"]),
            ("look\n\nFiles: a.csv, in/", "look", vec!["a.csv", "in/x", "in/y/z"]),
            ("look\n\nFiles: out/", "look\n\nFiles: out/", vec![]),
            ("Files: none of them", "Files: none of them", vec![]),
            ("Files: a.csv\nplot it", "Files: a.csv\nplot it", vec![]),
        ] {
            assert_eq!(split(message, &files), (rest, names.into_iter().map(str::to_owned).collect()), "{message}");
        }
    }
}
