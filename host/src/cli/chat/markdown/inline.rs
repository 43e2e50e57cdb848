//! Text with emphasis, code and links, broken into lines.

use crate::cli::show::{Paint, columns};

/// The style of a piece of text; styles can be combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Style(u8);

impl Style {
    pub(super) const BOLD: Style = Style(1);
    pub(super) const ITALIC: Style = Style(2);
    pub(super) const CODE: Style = Style(4);
    pub(super) const STRUCK: Style = Style(8);
    pub(super) const LINK: Style = Style(16);
    pub(super) const DIM: Style = Style(32);

    fn with(self, other: Style) -> Style {
        Style(self.0 | other.0)
    }

    /// Returns the codes for "Select Graphic Rendition".
    fn codes(self) -> String {
        let all = [(1, "1"), (2, "3"), (4, "36"), (8, "9"), (16, "4"), (32, "2")];
        let set: Vec<_> = all.iter().filter(|(bit, _)| self.0 & bit != 0).map(|(_, code)| *code).collect();
        set.join(";")
    }
}

/// A text that is being collected.
#[derive(Debug, Default)]
pub(super) struct Inline {
    pieces: Vec<Piece>,
    open: Vec<Style>,
}

#[derive(Debug, PartialEq)]
enum Piece {
    Text(Style, String),
    LineEnd,
}

impl Inline {
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Returns the number of pieces.
    pub(super) fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Returns the text from this piece on.
    pub(super) fn from(&self, start: usize) -> String {
        let texts = self.pieces.iter().skip(start).map(|piece| match piece {
            Piece::Text(_, text) => text.as_str(),
            Piece::LineEnd => " ",
        });
        texts.collect()
    }

    pub(super) fn begin(&mut self, style: Style) {
        self.open.push(self.style().with(style));
    }

    pub(super) fn end(&mut self) {
        self.open.pop();
    }

    pub(super) fn text(&mut self, text: &str) {
        self.styled(Style::default(), text);
    }

    pub(super) fn styled(&mut self, style: Style, text: &str) {
        let style = self.style().with(style);
        self.pieces.push(Piece::Text(style, text.replace(['\t', '\n'], " ")));
    }

    pub(super) fn end_line(&mut self) {
        self.pieces.push(Piece::LineEnd);
    }

    fn style(&self) -> Style {
        self.open.last().copied().unwrap_or_default()
    }

    /// Returns the columns of the text in one line.
    pub(super) fn columns(&self) -> usize {
        columns(&self.from(0))
    }

    /// Returns the text as one line.
    pub(super) fn line(&self, paint: Paint) -> String {
        let pieces = self.pieces.iter().map(|piece| match piece {
            Piece::Text(style, text) => paint.with(&style.codes(), text),
            Piece::LineEnd => " ".to_owned(),
        });
        pieces.collect()
    }

    /// Returns lines broken between words. A word that is wider than a line gets its own line and is not cut.
    pub(super) fn wrapped(&self, paint: Paint, width: usize) -> Vec<String> {
        let mut lines = Lines { paint, width, done: Vec::new(), line: Vec::new(), used: 0, word: Vec::new(), wide: 0 };
        for piece in &self.pieces {
            let Piece::Text(style, text) = piece else {
                lines.end_line();
                continue;
            };
            for (at, part) in text.split(' ').enumerate() {
                if at > 0 {
                    lines.end_word();
                    lines.space(*style);
                }
                lines.add(*style, part);
            }
        }
        lines.end_line();
        while lines.done.last().is_some_and(String::is_empty) {
            lines.done.pop();
        }
        lines.done
    }
}

struct Lines {
    paint: Paint,
    width: usize,
    done: Vec<String>,
    line: Vec<(Style, String)>,
    used: usize,
    /// The unfinished word; its parts may have different styles.
    word: Vec<(Style, String)>,
    wide: usize,
}

impl Lines {
    fn add(&mut self, style: Style, part: &str) {
        if !part.is_empty() {
            self.wide += columns(part);
            push(&mut self.word, style, part);
        }
    }

    fn end_word(&mut self) {
        if self.word.is_empty() {
            return;
        }
        if self.used > 0 && self.used + self.wide > self.width {
            self.break_line();
        }
        self.used += std::mem::take(&mut self.wide);
        for (style, part) in std::mem::take(&mut self.word) {
            push(&mut self.line, style, &part);
        }
    }

    fn space(&mut self, style: Style) {
        if self.used > 0 {
            self.used += 1;
            push(&mut self.line, style, " ");
        }
    }

    fn break_line(&mut self) {
        let mut line = std::mem::take(&mut self.line);
        if let Some((_, last)) = line.last_mut() {
            last.truncate(last.trim_end().len());
        }
        let painted = line.iter().filter(|(_, text)| !text.is_empty());
        self.done.push(painted.map(|(style, text)| self.paint.with(&style.codes(), text)).collect());
        self.used = 0;
    }

    fn end_line(&mut self) {
        self.end_word();
        self.break_line();
    }
}

fn push(pieces: &mut Vec<(Style, String)>, style: Style, part: &str) {
    match pieces.last_mut() {
        Some((last, text)) if *last == style => text.push_str(part),
        _ => pieces.push((style, part.to_owned())),
    }
}
