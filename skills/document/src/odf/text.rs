//! ODT and ODP: paragraphs, headings, lists, tables, notes and slides.

use std::collections::HashMap;

use super::{describe, open};
use crate::document::Document;
use crate::error::Result;
use crate::inline::{Inline, Marks};
use crate::kind::{Kind, contains};
use crate::office::table::Table;
use crate::out::Out;
use crate::read::Reading;
use crate::xml::{Node, Tag, Xml};

/// Paragraphs within paragraphs (in frames), lists and tables within one another.
const NESTING: usize = 32;

/// Spaces that one element stands for.
const SPACES: usize = 200;

/// Reads a text or slides.
pub fn read(kind: Kind, bytes: &[u8], reading: &Reading) -> Result<Document> {
    let mut package = open(bytes)?;
    let text = package.read_text("content.xml")?;
    let mut out = Out::new(reading.style, reading.pages.clone(), reading.limit);
    let paged = kind == Kind::Odt && reading.paged && contains(text.as_bytes(), b"soft-page-break");
    if paged {
        out.part("");
    }
    if paged || kind == Kind::Odp {
        out.shift_headings(2);
    }
    Walk { paged, ..Walk::default() }.read(&text, &mut out);
    let mut document = Document::new(kind, out);
    describe(&mut package, &mut document, reading);
    Ok(document)
}

#[derive(Default)]
struct Walk {
    paged: bool,
    break_pending: bool,
    /// Marks of automatic styles by name.
    styles: HashMap<String, Marks>,
    style: String,
    paragraphs: Vec<(Inline, Option<usize>)>,
    /// Marks of the spans that are open.
    spans: Vec<Marks>,
    /// The number of the next item; `None` for bullets is not known, so all are bullets.
    lists: usize,
    item_begins: bool,
    tables: Vec<(Table, String, usize)>,
    notes: Vec<(String, String)>,
    in_note: Option<String>,
    in_speaker_notes: bool,
    slide_title: bool,
}

impl Walk {
    fn read(mut self, text: &str, out: &mut Out) {
        let mut xml = Xml::new(text);
        while let Some(node) = xml.next() {
            if out.is_done() {
                break;
            }
            match node {
                Node::Open(tag) => self.open(&tag, &mut xml, out),
                Node::Close(name) => self.close(&name, out),
                Node::Text(text) => self.text(&text),
            }
        }
        while !self.paragraphs.is_empty() {
            self.end_paragraph(out);
        }
        while !self.tables.is_empty() {
            self.end_cell();
            self.end_table(out);
        }
        for (number, (mark, text)) in self.notes.iter().enumerate() {
            let line = format!("{mark}: {text}");
            if number == 0 { out.raw(&line) } else { out.line(&line) }
        }
    }

    fn text(&mut self, text: &str) {
        let marks = self.spans.last().cloned().unwrap_or_default();
        if let Some((inline, level)) = self.paragraphs.last_mut() {
            let marks = if level.is_some() { Marks::default() } else { marks };
            inline.push_collapsed(&marks, text);
        }
    }

    fn push(&mut self, text: &str) {
        if let Some((inline, _)) = self.paragraphs.last_mut() {
            inline.push(&Marks::default(), text);
        }
    }

    fn open(&mut self, tag: &Tag, xml: &mut Xml, out: &mut Out) {
        match tag.name() {
            "style" => self.style = tag.attribute("name").unwrap_or_default(),
            "text-properties" => {
                let is = |name: &str, value: &str| tag.attribute(name).is_some_and(|found| found == value);
                let strike = tag.attribute("text-line-through-style").is_some_and(|style| style != "none");
                let marks = Marks {
                    bold: is("font-weight", "bold"),
                    italic: is("font-style", "italic"),
                    strike,
                    ..Marks::default()
                };
                if self.styles.len() < 50_000 {
                    self.styles.insert(self.style.clone(), marks);
                }
            }
            "tracked-changes" | "annotation-end" | "forms" | "settings" | "number" | "bookmark-ref-mark" => xml.skip(),
            "p" | "h" => {
                let level = (tag.name() == "h")
                    .then(|| tag.attribute("outline-level").and_then(|level| level.parse().ok()).unwrap_or(1));
                if self.paragraphs.len() < NESTING {
                    self.paragraphs.push((Inline::default(), level));
                }
            }
            "span" => {
                let marks = tag.attribute("style-name").and_then(|style| self.styles.get(&style).cloned());
                let outer = self.spans.last().cloned().unwrap_or_default();
                let inner = marks.map_or(outer.clone(), |marks| Marks { link: outer.link.clone(), ..marks });
                self.spans.push(inner);
            }
            "a" => {
                let outer = self.spans.last().cloned().unwrap_or_default();
                self.spans.push(Marks { link: tag.attribute("href"), ..outer });
            }
            "s" => {
                let count = tag.attribute("c").and_then(|count| count.parse().ok()).unwrap_or(1_usize);
                self.push(&" ".repeat(count.min(SPACES)));
            }
            "tab" => self.push("\t"),
            "line-break" => self.push("\n"),
            "soft-page-break" if self.paged => self.break_page(out),
            "list" => self.lists = (self.lists + 1).min(NESTING),
            "list-item" | "list-header" => self.item_begins = true,
            "table" if self.tables.len() < NESTING => self.tables.push((Table::default(), String::new(), 1)),
            "table-row" => {
                if let Some((table, ..)) = self.tables.last_mut() {
                    table.begin_row();
                }
            }
            "table-cell" => {
                if let Some((_, _, span)) = self.tables.last_mut() {
                    *span = tag.attribute("number-columns-repeated").and_then(|count| count.parse().ok()).unwrap_or(1);
                }
            }
            "covered-table-cell" => {
                if let Some((table, ..)) = self.tables.last_mut() {
                    table.push(String::new(), 1);
                }
            }
            "note-citation" => {
                let mark = xml.text();
                let mark = format!("[^{}]", mark.trim());
                self.push(&mark);
                self.in_note = Some(mark);
            }
            "annotation" => self.in_note = Some("Comment".to_owned()),
            "page" => {
                out.part("");
            }
            "notes" => self.in_speaker_notes = true,
            "frame" => self.slide_title = tag.attribute("class").is_some_and(|class| class == "title"),
            "title" | "desc" if !self.paragraphs.is_empty() => {
                let words = xml.text();
                if !words.trim().is_empty() && tag.name() == "desc" {
                    self.push(&format!("[picture: {}]", words.trim()));
                }
            }
            _ => {}
        }
    }

    fn close(&mut self, name: &str, out: &mut Out) {
        match name {
            "p" | "h" => self.end_paragraph(out),
            "span" | "a" => drop(self.spans.pop()),
            "list" => self.lists = self.lists.saturating_sub(1),
            "table-cell" => self.end_cell(),
            "table" => self.end_table(out),
            "note" | "annotation" => self.in_note = None,
            "notes" => self.in_speaker_notes = false,
            "frame" => self.slide_title = false,
            _ => {}
        }
    }

    fn break_page(&mut self, out: &mut Out) {
        if self.tables.is_empty() && self.paragraphs.iter().all(|(inline, _)| inline.is_blank()) {
            out.part("");
        } else {
            self.break_pending = true;
        }
    }

    fn end_paragraph(&mut self, out: &mut Out) {
        let Some((mut inline, level)) = self.paragraphs.pop() else { return };
        let text = inline.finish(out.style());
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        if let Some(mark) = &self.in_note {
            match self.notes.last_mut() {
                Some((known, note)) if known == mark && mark != "Comment" => {
                    note.push(' ');
                    note.push_str(text);
                }
                _ => self.notes.push((mark.clone(), text.to_owned())),
            }
        } else if let Some((_, cell, _)) = self.tables.last_mut() {
            if !cell.is_empty() {
                cell.push('\n');
            }
            cell.push_str(text);
        } else if self.in_speaker_notes {
            // Page numbers are there, too.
            if text.chars().any(char::is_alphabetic) {
                out.quote(&format!("Notes: {text}"));
            }
        } else if self.slide_title {
            out.title(text);
            out.record_heading(1, text);
        } else if let Some(level) = level {
            out.heading(level, text);
        } else if self.lists > 0 && self.item_begins {
            self.item_begins = false;
            out.item(self.lists - 1, "-", text);
        } else {
            out.paragraph(text);
        }
        if self.break_pending && self.tables.is_empty() && self.paragraphs.is_empty() {
            self.break_pending = false;
            out.part("");
        }
    }

    fn end_cell(&mut self) {
        if let Some((table, cell, span)) = self.tables.last_mut() {
            let text = std::mem::take(cell);
            // Cells that are repeated far to the right are empty.
            let count = if text.is_empty() { (*span).min(64) } else { (*span).min(1_000) };
            table.push(text, count);
            *span = 1;
        }
    }

    fn end_table(&mut self, out: &mut Out) {
        let Some((table, ..)) = self.tables.pop() else { return };
        match self.tables.last_mut() {
            Some((_, cell, _)) => {
                if !cell.is_empty() {
                    cell.push('\n');
                }
                cell.push_str(&table.into_text());
            }
            None if table.is_frame() => out.paragraph(&table.into_text()),
            None => out.table(&table.rows),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::package::tests::zip;

    fn read_content(kind: Kind, content: &str) -> Document {
        let bytes = zip(&[
            ("mimetype", "application/vnd.oasis.opendocument.text"),
            ("content.xml", content),
            ("meta.xml", "<m><dc:title>A text</dc:title><meta:initial-creator>Ada</meta:initial-creator></m>"),
        ]);
        read(kind, &bytes, &Reading::default()).unwrap()
    }

    #[test]
    fn texts_are_read() {
        let document = read_content(
            Kind::Odt,
            "<c><style:style style:name='T1'><style:text-properties fo:font-weight='bold'/></style:style>\
             <text:h text:outline-level='2'>Head</text:h><text:p>a<text:s text:c='2'/>b <text:span text:style-name='T1'>bold</text:span>\
             <text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>the note</text:p></text:note-body></text:note></text:p>\
             <text:list><text:list-item><text:p>one</text:p><text:list><text:list-item><text:p>two</text:p></text:list-item></text:list></text:list-item></text:list>\
             <table:table><table:table-row><table:table-cell><text:p>x</text:p></table:table-cell><table:table-cell><text:p>y</text:p></table:table-cell></table:table-row></table:table></c>",
        );
        assert_eq!(
            document.parts[0].text,
            "## Head\n\na  b **bold**[^1]\n\n- one\n  - two\n\n| x | y |\n| --- | --- |\n\n[^1]: the note"
        );
        assert_eq!(document.find_fact("title"), Some("A text"));
    }

    #[test]
    fn slides_are_parts() {
        let document = read_content(
            Kind::Odp,
            "<c><draw:page><draw:frame presentation:class='title'><text:p>One</text:p></draw:frame><text:p>text</text:p>\
             <presentation:notes><text:p>say</text:p></presentation:notes></draw:page><draw:page/></c>",
        );
        assert_eq!(document.label(&document.parts[0]), "Slide 1: One");
        assert_eq!(document.parts[0].text, "text\n\n> Notes: say");
        assert_eq!(document.total, 2);
    }
}
