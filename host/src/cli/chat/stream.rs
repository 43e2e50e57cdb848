//! A text that comes in pieces, as it is shown while it is written.

use super::markdown::{Looks, Markdown};
use crate::cli::show::{WrittenText, printable, wrap};

/// How texts are shown.
#[derive(Debug, Clone, Copy)]
pub(super) enum TextForm {
    /// As Markdown, while they are written.
    Rendered(Looks),
    /// As they are, when they are complete.
    Raw,
}

impl TextForm {
    /// A line as it is shown: broken between words where it is rendered.
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

    /// Takes a piece of what a role of the run writes.
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

    /// What is still to be printed of a text that is complete.
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

    /// What was written so far is not part of what follows.
    pub(super) fn leave(&mut self) -> String {
        self.written = WrittenText::default();
        self.markdown.as_mut().map(Markdown::finish).unwrap_or_default()
    }

    pub(super) fn unfinished(&self) -> &str {
        self.markdown.as_ref().map(Markdown::unfinished).unwrap_or_default()
    }
}
