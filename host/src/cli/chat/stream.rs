//! A text that is shown while it is written.

use super::markdown::{Looks, Markdown};
use crate::cli::show::{WrittenText, printable, wrap};

/// The form of texts.
#[derive(Debug, Clone, Copy)]
pub(super) enum TextForm {
    /// As Markdown, while they are written.
    Rendered(Looks),
    /// Unchanged, when they are complete.
    Raw,
}

impl TextForm {
    /// Returns a line in this form: broken between words if texts are rendered.
    pub(super) fn wrap(self, line: &str) -> String {
        match self {
            TextForm::Rendered(looks) => wrap(line, looks.width),
            TextForm::Raw => line.to_owned(),
        }
    }
}

/// A text while it is written.
#[derive(Debug)]
pub(super) struct Stream {
    run: String,
    pub role: String,
    pub written: WrittenText,
    pub markdown: Option<Markdown>,
}

impl Stream {
    pub(super) fn new(form: TextForm) -> Stream {
        let markdown = match form {
            TextForm::Rendered(looks) => Some(Markdown::new(looks)),
            TextForm::Raw => None,
        };
        Stream { run: String::new(), role: String::new(), written: WrittenText::default(), markdown }
    }

    /// Adds a piece of a role's text in the run.
    pub(super) fn push(&mut self, run: &str, role: &str, piece: &str) -> String {
        let Some(markdown) = &mut self.markdown else { return String::new() };
        let mut out = String::new();
        if self.run != run {
            (self.run, self.written) = (run.to_owned(), WrittenText::default());
            out = markdown.finish();
        }
        role.clone_into(&mut self.role);
        out + &markdown.push(&self.written.push(piece))
    }

    /// Returns the rest of the output for a complete text.
    pub(super) fn end(&mut self, run: Option<&str>, text: &str) -> String {
        let Some(markdown) = &mut self.markdown else { return format!("{}\n", printable(text).trim_end()) };
        let mut out = String::new();
        if run != Some(self.run.as_str()) {
            self.written = WrittenText::default();
            out = markdown.finish();
        }
        out.push_str(&markdown.push(&self.written.end(text)));
        self.run.clear();
        out + &markdown.finish()
    }

    /// Ends the text so far; it is not part of the following text.
    pub(super) fn leave(&mut self) -> String {
        self.written = WrittenText::default();
        self.markdown.as_mut().map(Markdown::finish).unwrap_or_default()
    }

    pub(super) fn unfinished(&self) -> &str {
        self.markdown.as_ref().map(Markdown::unfinished).unwrap_or_default()
    }
}
