//! The text of a document and the options of its look.

use std::path::PathBuf;

use super::paper::Texts;

/// The text of a document.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a> {
    Markdown(&'a str),
    Html(&'a str),
}

/// Options of a document. What is not given is the document's own, or a default.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    /// Names and values such as title, author, date.
    pub facts: Vec<(String, String)>,
    /// Width and height in points.
    pub size: Option<(f32, f32)>,
    pub is_landscape: bool,
    /// Top, right, bottom, left.
    pub margin: [Option<f32>; 4],
    /// Of pages that have no style sheet for it.
    pub default_margin: Option<f32>,
    pub font_size: Option<f32>,
    /// A file, or the name of a family.
    pub main_font: Option<String>,
    pub mono_font: Option<String>,
    pub line_height: Option<f32>,
    pub has_contents: bool,
    pub contents_depth: Option<u8>,
    pub is_numbered: bool,
    /// Style sheets, as texts.
    pub sheets: Vec<String>,
    pub texts: Texts,
    /// Whether quotes and dashes stay as they are.
    pub is_exact: bool,
    /// Whether pages are without numbers that Markdown else has.
    pub is_unnumbered: bool,
    /// Directory from which relative paths start.
    pub folder: PathBuf,
}

impl Setup {
    /// The fact of a name.
    pub fn fact(&self, name: &str) -> Option<&str> {
        self.facts.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}
