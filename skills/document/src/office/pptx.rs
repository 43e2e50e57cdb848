//! PPTX: slides with titles, lists, tables and notes.

use super::properties::describe;
use super::table::Table;
use crate::document::Document;
use crate::error::Result;
use crate::inline::{Inline, Marks};
use crate::kind::Kind;
use crate::out::Out;
use crate::package::Package;
use crate::read::Reading;
use crate::xml::{Node, Tag, Xml};

/// Slides of a presentation.
const SLIDES: usize = 5_000;

/// Reads a presentation.
pub fn read(bytes: &[u8], reading: &Reading) -> Result<Document> {
    let mut package = Package::open(bytes)?;
    let mut main = package.main_part();
    if !package.has(&main) {
        main = "ppt/presentation.xml".to_owned();
    }
    let slides = slides(&mut package, &main)?;
    let mut out = Out::new(reading.style, reading.pages.clone(), reading.limit);
    out.shift_headings(2);
    let total = slides.len();
    for slide in slides {
        if out.part("") {
            // A slide that is missing keeps its number.
            let text = package.read_text(&slide).unwrap_or_default();
            let title = Slide::default().read(&text, &mut out);
            out.title(&title);
            if !title.is_empty() {
                out.record_heading(1, &title);
            }
            let notes =
                package.relationships(&slide).into_iter().find(|relationship| relationship.kind == "notesSlide");
            if let Some(text) = notes.and_then(|notes| package.read_text(&notes.target).ok()) {
                write_notes(&text, &mut out);
            }
        }
        if out.is_done() {
            break;
        }
    }
    out.set_total(total);
    let mut document = Document::new(Kind::Pptx, out);
    describe(&mut package, &mut document, &["ppt/media/", "ppt/embeddings/"], reading);
    Ok(document)
}

/// The parts of the slides in their order.
fn slides(package: &mut Package, main: &str) -> Result<Vec<String>> {
    let text = package.read_text(main)?;
    let relationships = package.relationships(main);
    let mut found = Vec::new();
    let mut xml = Xml::new(&text);
    while let Some(node) = xml.next() {
        if let Node::Open(tag) = node
            && tag.name() == "sldId"
            && let Some(id) = tag.prefixed("r:id")
            && let Some(relationship) = relationships.iter().find(|relationship| relationship.id == id)
            && found.len() < SLIDES
        {
            found.push(relationship.target.clone());
        }
    }
    Ok(found)
}

fn write_notes(text: &str, out: &mut Out) {
    let mut notes = Out::new(out.style(), None, out.limit());
    Slide { notes: true, ..Slide::default() }.read(text, &mut notes);
    let text = notes.finish().1.into_iter().map(|part| part.text).collect::<Vec<_>>().join("\n\n");
    if !text.is_empty() {
        out.quote(&format!("Notes: {text}"));
    }
}

#[derive(Default)]
struct Slide {
    /// Whether only the body of notes is wanted.
    notes: bool,
    inline: Inline,
    marks: Marks,
    level: usize,
    bullet: bool,
    /// Kind of the shape's placeholder.
    placeholder: String,
    title: String,
    table: Option<(Table, String, usize)>,
    in_run: bool,
}

impl Slide {
    /// Writes the shapes of a slide. Returns its title.
    fn read(mut self, text: &str, out: &mut Out) -> String {
        let mut xml = Xml::new(text);
        while let Some(node) = xml.next() {
            match node {
                Node::Open(tag) => self.open(&tag, &mut xml, out),
                Node::Close(name) => self.close(&name, out),
                Node::Text(_) => {}
            }
        }
        self.close("p", out);
        self.close("tbl", out);
        self.title
    }

    fn open(&mut self, tag: &Tag, xml: &mut Xml, out: &mut Out) {
        match tag.name() {
            "sp" | "graphicFrame" => self.placeholder.clear(),
            "ph" => self.placeholder = tag.attribute("type").unwrap_or_else(|| "body".to_owned()),
            "Fallback" => xml.skip(),
            "tbl" => self.table = Some((Table::default(), String::new(), 1)),
            "tr" => {
                if let Some((table, ..)) = &mut self.table {
                    table.begin_row();
                }
            }
            "tc" => {
                if let Some((_, _, span)) = &mut self.table {
                    *span = tag.attribute("gridSpan").and_then(|span| span.parse().ok()).unwrap_or(1);
                    // The cell before covers it.
                    if tag.attribute("hMerge").is_some_and(|merged| merged == "1") {
                        *span = 0;
                    }
                }
            }
            "p" => {
                self.level = 0;
                self.bullet = matches!(self.placeholder.as_str(), "body" | "obj" | "");
            }
            "pPr" => self.level = tag.attribute("lvl").and_then(|level| level.parse().ok()).unwrap_or(0),
            "buNone" => self.bullet = false,
            "buChar" | "buAutoNum" => self.bullet = true,
            "r" | "fld" => {
                self.in_run = true;
                self.marks = Marks::default();
            }
            "rPr" if self.in_run => {
                let on = |name: &str| tag.attribute(name).is_some_and(|value| value == "1" || value == "true");
                self.marks.bold = on("b");
                self.marks.italic = on("i");
            }
            "br" => self.inline.push(&Marks::default(), "\n"),
            "t" => {
                let text = xml.text();
                let marks = if self.is_title() { Marks::default() } else { self.marks.clone() };
                self.inline.push(&marks, &text);
            }
            "cNvPr" => {
                let words = tag.attribute("descr").unwrap_or_default();
                if !words.trim().is_empty() && !self.notes {
                    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
                    out.paragraph(&format!("[picture: {words}]"));
                }
            }
            _ => {}
        }
    }

    fn is_title(&self) -> bool {
        matches!(self.placeholder.as_str(), "title" | "ctrTitle")
    }

    fn close(&mut self, name: &str, out: &mut Out) {
        match name {
            "r" | "fld" => self.in_run = false,
            "p" => self.write(out),
            "tc" => {
                if let Some((table, text, span)) = &mut self.table
                    && *span > 0
                {
                    table.push(std::mem::take(text), *span);
                }
            }
            "tbl" => {
                if let Some((table, ..)) = self.table.take() {
                    out.table(&table.rows);
                }
            }
            _ => {}
        }
    }

    fn write(&mut self, out: &mut Out) {
        if self.inline.is_blank() {
            self.inline.finish_plain();
            return;
        }
        let placeholder = self.placeholder.as_str();
        // Numbers and dates of all slides, and the slide on its page of notes.
        if matches!(placeholder, "sldNum" | "dt" | "hdr" | "sldImg") || self.notes && placeholder != "body" {
            self.inline.finish_plain();
            return;
        }
        let text = self.inline.finish(out.style());
        if let Some((_, cell, _)) = &mut self.table {
            if !cell.is_empty() {
                cell.push('\n');
            }
            cell.push_str(&text);
        } else if self.is_title() {
            if !self.title.is_empty() {
                self.title.push(' ');
            }
            self.title.push_str(&text);
        } else if self.bullet && !self.notes && !placeholder.is_empty() {
            out.item(self.level, "-", &text);
        } else if self.level > 0 {
            out.item(self.level - 1, "-", &text);
        } else {
            out.paragraph(&text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::package::tests::zip;

    #[test]
    fn slides_come_in_their_order() {
        let shape = |kind: &str, text: &str| {
            format!(
                "<p:sp><p:nvSpPr><p:cNvPr id='1'/><p:nvPr><p:ph {kind}/></p:nvPr></p:nvSpPr><p:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"
            )
        };
        let first = format!("<p:sld>{}{}</p:sld>", shape("type='title'", "Costs"), shape("idx='1'", "Bread"));
        let table = "<p:sld><a:tbl><a:tr><a:tc gridSpan='2'><a:p><a:r><a:t>x</a:t></a:r></a:p></a:tc><a:tc hMerge='1'/></a:tr><a:tr><a:tc><a:p><a:r><a:t>1</a:t></a:r></a:p></a:tc><a:tc><a:p><a:r><a:t>2</a:t></a:r></a:p></a:tc></a:tr></a:tbl></p:sld>";
        let notes = format!("<n>{}</n>", shape("type='body'", "Say hello"));
        let bytes = zip(&[
            ("[Content_Types].xml", "presentationml."),
            ("_rels/.rels", "<r><Relationship Type='x/officeDocument' Target='ppt/presentation.xml'/></r>"),
            ("ppt/presentation.xml", "<p><p:sldId id='1' r:id='b'/><p:sldId r:id='a'/></p>"),
            (
                "ppt/_rels/presentation.xml.rels",
                "<r><Relationship Id='a' Target='slides/s2.xml'/><Relationship Id='b' Target='slides/s1.xml'/></r>",
            ),
            ("ppt/slides/s1.xml", &first),
            ("ppt/slides/s2.xml", table),
            ("ppt/slides/_rels/s1.xml.rels", "<r><Relationship Id='n' Type='x/notesSlide' Target='../notes.xml'/></r>"),
            ("ppt/notes.xml", &notes),
        ]);
        let document = read(&bytes, &Reading::default()).unwrap();
        assert_eq!(document.parts[0].title, "Costs");
        assert_eq!(document.parts[0].text, "- Bread\n\n> Notes: Say hello");
        assert_eq!(document.parts[1].text, "| x |  |\n| --- | --- |\n| 1 | 2 |");
        assert_eq!(document.label(&document.parts[0]), "Slide 1: Costs");
    }
}
