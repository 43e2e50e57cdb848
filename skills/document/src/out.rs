//! Blocks of text as Markdown or as plain text.

use crate::document::{Heading, Part};
use crate::limits;
use crate::pages::Pages;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    Markdown,
    Text,
}

/// Writes blocks into parts.
#[derive(Debug)]
pub struct Out {
    style: Style,
    pages: Option<Pages>,
    /// Added to the level of each heading, so that those of the document stand below those of its pages.
    shift: usize,
    limit: usize,
    bytes: usize,
    full: bool,
    total: usize,
    parts: Vec<Part>,
    headings: Vec<Heading>,
    wanted: bool,
    in_list: bool,
}

impl Out {
    /// `limit`: bytes of text, at most [`limits::TEXT_BYTES`].
    pub fn new(style: Style, pages: Option<Pages>, limit: usize) -> Self {
        Self {
            style,
            pages,
            shift: 0,
            limit: limit.min(limits::TEXT_BYTES),
            bytes: 0,
            full: false,
            total: 0,
            parts: Vec::new(),
            headings: Vec::new(),
            wanted: true,
            in_list: false,
        }
    }

    pub fn style(&self) -> Style {
        self.style
    }

    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Whether the limit is reached: nothing more is written.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Whether neither this part nor a later one is wanted.
    pub fn is_done(&self) -> bool {
        self.full || self.pages.as_ref().is_some_and(|pages| pages.end_before(self.total))
    }

    /// Whether the blocks of the current part are kept.
    pub fn is_wanted(&self) -> bool {
        self.wanted && !self.full
    }

    pub fn shift_headings(&mut self, by: usize) {
        self.shift = by;
    }

    /// Begins a part. Returns whether it is wanted.
    pub fn part(&mut self, title: &str) -> bool {
        self.total += 1;
        self.in_list = false;
        self.wanted = self.pages.as_ref().is_none_or(|pages| pages.contains(self.total));
        if self.wanted {
            let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
            self.parts.push(Part { number: self.total, title, text: String::new(), picture: false });
        }
        self.is_wanted()
    }

    /// Gives the next part this number.
    pub fn skip_to(&mut self, number: usize) {
        self.total = self.total.max(number.saturating_sub(1));
    }

    /// Number of the current part.
    pub fn number(&self) -> usize {
        self.total.max(1)
    }

    /// Sets the number of parts that the file has, where reading ended earlier.
    pub fn set_total(&mut self, total: usize) {
        self.total = self.total.max(total);
    }

    /// Headings so far.
    pub fn headings(&self) -> usize {
        self.headings.len()
    }

    /// The first heading after the first `count`.
    pub fn first_heading_since(&self, count: usize) -> Option<String> {
        self.headings.get(count).map(|heading| heading.text.clone())
    }

    /// Names the current part.
    pub fn title(&mut self, title: &str) {
        if let Some(part) = self.current() {
            part.title = title.split_whitespace().collect::<Vec<_>>().join(" ");
        }
    }

    pub fn mark_picture(&mut self) {
        if let Some(part) = self.current() {
            part.picture = true;
        }
    }

    fn current(&mut self) -> Option<&mut Part> {
        if self.total == 0 {
            self.part("");
        }
        self.parts.last_mut().filter(|_| self.wanted && !self.full)
    }

    /// Adds text after a separator, which the first text of a part does not need.
    fn put(&mut self, separator: &str, text: &str) {
        let (used, limit) = (self.bytes, self.limit);
        let Some(part) = self.current() else { return };
        let before = part.text.len();
        if !part.text.is_empty() {
            part.text.push_str(separator);
        }
        let room = limit.saturating_sub(used);
        let fits = text.floor_char_boundary(room.min(text.len()));
        part.text.push_str(&text[..fits]);
        let added = part.text.len() - before;
        self.bytes += added;
        self.full = fits < text.len() || self.bytes >= limit;
    }

    fn block(&mut self, text: &str) {
        let text = text.trim_matches(['\n', ' ']);
        if !text.is_empty() {
            self.in_list = false;
            self.put("\n\n", text);
        }
    }

    /// `text`: as [`crate::inline::Inline`] writes it.
    pub fn heading(&mut self, level: usize, text: &str) {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if text.is_empty() || !self.is_wanted() {
            return;
        }
        self.record_heading(level, &text);
        match self.style {
            Style::Text => self.block(&text),
            Style::Markdown => {
                let marks = "#".repeat((level + self.shift).clamp(1, 6));
                self.block(&format!("{marks} {text}"));
            }
        }
    }

    /// Adds a heading to the outline alone.
    pub fn record_heading(&mut self, level: usize, text: &str) {
        if self.headings.len() < limits::HEADINGS && self.wanted {
            let part = self.number();
            let text = text.chars().take(300).collect();
            self.headings.push(Heading { level: level.max(1), text, part });
        }
    }

    pub fn paragraph(&mut self, text: &str) {
        if self.style == Style::Markdown && text.starts_with(['#', '>']) {
            self.block(&format!("\\{text}"));
        } else {
            self.block(text);
        }
    }

    /// Text that is Markdown already, or that stays as it is.
    pub fn raw(&mut self, text: &str) {
        let text = text.trim_matches('\n');
        if !text.trim().is_empty() {
            self.in_list = false;
            self.put("\n\n", text);
        }
    }

    /// One more line right below the last one.
    pub fn line(&mut self, text: &str) {
        self.put("\n", text.trim_end());
    }

    /// `depth` from 0; `mark` is a bullet or a number with its point.
    pub fn item(&mut self, depth: usize, mark: &str, text: &str) {
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        let indent = "  ".repeat(depth.min(8));
        let wrapped = text.replace('\n', &format!("\n{indent}  "));
        let separator = if self.in_list { "\n" } else { "\n\n" };
        self.put(separator, &format!("{indent}{mark} {wrapped}"));
        self.in_list = true;
    }

    pub fn code(&mut self, text: &str) {
        let text = text.trim_matches('\n');
        match self.style {
            Style::Text => self.raw(text),
            Style::Markdown if text.trim().is_empty() => {}
            Style::Markdown => {
                let fence = if text.contains("```") { "~~~~" } else { "```" };
                self.raw(&format!("{fence}\n{text}\n{fence}"));
            }
        }
    }

    pub fn quote(&mut self, text: &str) {
        let text = text.trim();
        if !text.is_empty() {
            match self.style {
                Style::Text => self.block(text),
                Style::Markdown => self.block(&format!("> {}", text.replace('\n', "\n> "))),
            }
        }
    }

    /// The first row is the head. Empty rows and columns at the edges are left out.
    pub fn table(&mut self, rows: &[Vec<String>]) {
        if !self.is_wanted() {
            return;
        }
        let filled = |row: &&Vec<String>| row.iter().any(|cell| !cell.trim().is_empty());
        let rows: Vec<&Vec<String>> = rows.iter().filter(filled).collect();
        let used = |row: &&Vec<String>| row.iter().rposition(|cell| !cell.trim().is_empty()).map_or(0, |last| last + 1);
        let columns = rows.iter().map(used).max().unwrap_or(0).min(limits::COLUMNS);
        if columns == 0 {
            return;
        }
        let mut text = String::new();
        for (number, row) in rows.iter().enumerate() {
            if text.len() > self.limit {
                break;
            }
            write_row(&mut text, self.style, row, columns);
            if number == 0 && self.style == Style::Markdown {
                text.push('|');
                text.push_str(&" --- |".repeat(columns));
                text.push('\n');
            }
        }
        self.raw(&text);
    }

    /// Parts of the file, parts that were read, and headings.
    pub fn finish(mut self) -> (usize, Vec<Part>, Vec<Heading>) {
        for part in &mut self.parts {
            part.text.truncate(part.text.trim_end().len());
        }
        (self.total, self.parts, self.headings)
    }
}

fn write_row(text: &mut String, style: Style, row: &[String], columns: usize) {
    let cells = (0..columns).map(|column| row.get(column).map_or("", |cell| cell.trim()));
    match style {
        Style::Markdown => {
            text.push('|');
            for cell in cells {
                text.push(' ');
                write_cell(text, cell);
                text.push_str(" |");
            }
        }
        Style::Text => {
            for (number, cell) in cells.enumerate() {
                if number > 0 {
                    text.push('\t');
                }
                text.extend(cell.chars().map(|c| if matches!(c, '\n' | '\t' | '\r') { ' ' } else { c }));
            }
        }
    }
    text.push('\n');
}

fn write_cell(text: &mut String, cell: &str) {
    let mut before = ' ';
    for c in cell.chars() {
        match c {
            '|' if before != '\\' => text.push_str("\\|"),
            '\n' => {
                text.truncate(text.trim_end_matches(' ').len());
                text.push_str("<br>");
            }
            '\r' => {}
            '\t' => text.push(' '),
            c => text.push(c),
        }
        before = c;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(rows: &[&[&str]]) -> Vec<Vec<String>> {
        rows.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect()
    }

    #[test]
    fn blocks_are_markdown() {
        let mut out = Out::new(Style::Markdown, None, 1_000);
        out.heading(1, "A  title");
        out.paragraph("# not a heading");
        out.item(0, "-", "one");
        out.item(1, "-", "two");
        out.table(&cells(&[&["a", "b|c", ""], &["", "", ""], &["1", "2\n3", ""]]));
        out.code("x\n  y");
        let (total, parts, headings) = out.finish();
        assert_eq!(total, 1);
        assert_eq!(
            parts[0].text,
            "# A title\n\n\\# not a heading\n\n- one\n  - two\n\n| a | b\\|c |\n| --- | --- |\n| 1 | 2<br>3 |\n\n```\nx\n  y\n```"
        );
        assert_eq!(headings[0].text, "A title");
    }

    #[test]
    fn only_wanted_parts_are_kept_up_to_the_limit() {
        let mut out = Out::new(Style::Text, Some(Pages::between(2, 2)), 10);
        assert!(!out.part("") && !out.is_done());
        out.paragraph("first");
        assert!(out.part("second"));
        out.paragraph("abcdéfghijklm");
        assert!(out.is_full() && out.is_done());
        let (_, parts, _) = out.finish();
        assert_eq!((parts.len(), parts[0].number, parts[0].text.as_str()), (1, 2, "abcdéfghi"));
    }
}
