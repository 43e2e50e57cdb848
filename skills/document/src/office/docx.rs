//! DOCX: paragraphs, headings, lists, tables, notes, comments and text boxes.

use std::collections::HashMap;

use super::numbering::{Look, Numbering};
use super::properties::describe;
use super::table::Table;
use crate::document::Document;
use crate::error::Result;
use crate::inline::{Inline, Marks};
use crate::kind::{Kind, contains};
use crate::out::{Out, Style};
use crate::package::Package;
use crate::read::{Changes, Reading};
use crate::xml::{Node, Tag, Xml};

/// Headers and footers that are read. A book has one for each chapter, which says nothing new.
const HEADERS: usize = 3;

/// Reads a text.
pub fn read(bytes: &[u8], reading: &Reading) -> Result<Document> {
    let mut package = Package::open(bytes)?;
    let mut main = package.main_part();
    if !package.has(&main) {
        main = "word/document.xml".to_owned();
    }
    let body = package.read(&main)?;
    let relationships = package.relationships(&main);
    let target =
        |kind: &str| relationships.iter().filter(|r| r.kind == kind).map(|r| r.target.clone()).collect::<Vec<_>>();
    let first = |kind: &str, default: &str| target(kind).first().cloned().unwrap_or_else(|| default.to_owned());
    let styles = first("styles", "word/styles.xml");
    let numbering = Numbering::read(&mut package, &styles, &first("numbering", "word/numbering.xml"));
    let links = relationships.iter().map(|r| (r.id.clone(), r.target.clone())).collect();

    let paged = reading.paged && (contains(&body, b"lastRenderedPageBreak") || contains(&body, b"type=\"page\""));
    let mut out = Out::new(reading.style, reading.pages.clone(), reading.limit);
    if paged {
        out.shift_headings(2);
        out.part("");
    }
    let mut walk = Walk::new(numbering, links, paged);
    walk.changes = reading.changes;
    if reading.changes == Changes::Shown {
        for part in target("comments") {
            walk.comments.extend(comments(&package.read_text(&part).unwrap_or_default()));
        }
    }
    // A letterhead is often only in the header.
    for header in distinct(&mut package, &target("header")) {
        walk.read(&header, &mut out);
    }
    walk.read(&crate::xml::decode(&body), &mut out);
    walk.paged = false;
    for kind in ["footnotes", "endnotes"] {
        for part in target(kind) {
            if let Ok(text) = package.read_text(&part) {
                walk.read_notes(&text, kind, &mut out);
            }
        }
    }
    for part in target("comments").into_iter().filter(|_| reading.changes != Changes::Shown) {
        if let Ok(text) = package.read_text(&part) {
            walk.read_notes(&text, "comments", &mut out);
        }
    }
    for footer in distinct(&mut package, &target("footer")) {
        walk.read(&footer, &mut out);
    }
    let mut document = Document::new(Kind::Docx, out);
    describe(&mut package, &mut document, &["word/media/", "word/embeddings/"], reading);
    Ok(document)
}

/// The comments of a part by their numbers, each with the mark of its beginning.
fn comments(text: &str) -> HashMap<String, String> {
    let mut found = HashMap::new();
    let mut xml = Xml::new(text);
    let mut current: Option<(String, String, String)> = None;
    while let Some(node) = xml.next() {
        match node {
            Node::Open(tag) if tag.name() == "comment" => {
                let value = |name: &str| tag.attribute(name).unwrap_or_default().replace(['"', '\\', '\n'], " ");
                let id = value("id");
                let mark =
                    format!(".comment-start id=\"{id}\" author=\"{}\" date=\"{}\"", value("author"), value("date"));
                current = Some((id, mark, String::new()));
            }
            Node::Open(tag) if tag.name() == "t" => {
                let more = xml.text();
                if let Some((_, _, words)) = &mut current {
                    words.push_str(&more);
                }
            }
            Node::Close(name) if name == "comment" => {
                if let Some((id, mark, words)) = current.take() {
                    found.insert(id, format!("[{words}]{{{mark}}}"));
                }
            }
            _ => {}
        }
    }
    found
}

/// Parts that say something, each text once, and not more of them than a letter has.
fn distinct(package: &mut Package, parts: &[String]) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    let mut found = Vec::new();
    for part in parts.iter().take(100) {
        let Ok(text) = package.read_text(part) else { continue };
        let mut words = String::new();
        let mut xml = Xml::new(&text);
        while let Some(node) = xml.next() {
            if let Node::Text(more) = node {
                words.push_str(more.trim());
            }
        }
        // Numbers of pages alone say nothing.
        if words.chars().any(char::is_alphabetic) && !seen.contains(&words) && found.len() < HEADERS {
            seen.push(words);
            found.push(text);
        }
    }
    found
}

/// A paragraph while it is read.
#[derive(Default)]
struct Paragraph {
    inline: Inline,
    look: Look,
    marks: Marks,
    hidden: bool,
    /// Changes of its end.
    end: Vec<String>,
}

/// A cell while it is read.
#[derive(Default)]
struct Cell {
    text: String,
    span: usize,
}

struct Walk {
    numbering: Numbering,
    links: HashMap<String, String>,
    paged: bool,
    break_pending: bool,
    paragraphs: Vec<Paragraph>,
    tables: Vec<(Table, Cell)>,
    in_run: bool,
    in_properties: bool,
    link: Option<String>,
    changes: Changes,
    /// The change that the text belongs to, and those around it.
    change: Vec<String>,
    /// By their numbers, as pandoc writes their beginning.
    comments: HashMap<String, String>,
}

impl Walk {
    fn new(numbering: Numbering, links: HashMap<String, String>, paged: bool) -> Self {
        Self {
            numbering,
            links,
            paged,
            break_pending: false,
            paragraphs: Vec::new(),
            tables: Vec::new(),
            in_run: false,
            in_properties: false,
            link: None,
            changes: Changes::default(),
            change: Vec::new(),
            comments: HashMap::new(),
        }
    }

    fn read(&mut self, text: &str, out: &mut Out) {
        let mut xml = Xml::new(text);
        while let Some(node) = xml.next() {
            if out.is_done() {
                break;
            }
            match node {
                Node::Open(tag) => self.open(&tag, &mut xml, out),
                Node::Close(name) => self.close(&name, out),
                Node::Text(_) => {}
            }
        }
        self.finish(out);
    }

    /// Ends what a cut file left open.
    fn finish(&mut self, out: &mut Out) {
        while !self.paragraphs.is_empty() {
            self.close("p", out);
        }
        while !self.tables.is_empty() {
            self.close("tc", out);
            self.close("tbl", out);
        }
        (self.in_run, self.in_properties, self.link) = (false, false, None);
        self.change.clear();
    }

    /// Footnotes, endnotes or comments, each with its mark.
    fn read_notes(&mut self, text: &str, kind: &str, out: &mut Out) {
        let mut xml = Xml::new(text);
        let mut mark: Option<String> = None;
        let mut seen = false;
        let mut inner = Out::new(out.style(), None, out.limit());
        while let Some(node) = xml.next() {
            match node {
                Node::Open(tag) if matches!(tag.name(), "footnote" | "endnote" | "comment") => {
                    let id = tag.attribute("id").unwrap_or_default();
                    // Separators, not notes.
                    let plain = tag.attribute("type").is_none_or(|kind| kind == "normal");
                    mark = plain.then(|| match kind {
                        "footnotes" => format!("[^{id}]:"),
                        "endnotes" => format!("[^e{id}]:"),
                        _ => format!("Comment by {}:", tag.attribute("author").unwrap_or_default()),
                    });
                }
                Node::Open(tag) => self.open(&tag, &mut xml, &mut inner),
                Node::Close(name) if matches!(name.as_str(), "footnote" | "endnote" | "comment") => {
                    self.finish(&mut inner);
                    let whole = std::mem::replace(&mut inner, Out::new(out.style(), None, out.limit()));
                    let text = whole.finish().1.into_iter().map(|part| part.text).collect::<Vec<_>>().join(" ");
                    if let Some(mark) = mark.take()
                        && !text.is_empty()
                    {
                        let line = format!("{mark} {}", text.replace("\n\n", " "));
                        if seen {
                            out.line(&line)
                        } else {
                            out.raw(&line)
                        }
                        seen = true;
                    }
                }
                Node::Close(name) => self.close(&name, &mut inner),
                Node::Text(_) => {}
            }
        }
    }

    fn open(&mut self, tag: &Tag, xml: &mut Xml, out: &mut Out) {
        match tag.name() {
            "p" => {
                if self.paragraphs.len() < 32 {
                    self.paragraphs.push(Paragraph::default());
                }
            }
            "tbl" => self.tables.push(Default::default()),
            "tr" => {
                if let Some((table, _)) = self.tables.last_mut() {
                    table.begin_row();
                }
            }
            "gridSpan" => {
                if let Some((_, cell)) = self.tables.last_mut() {
                    cell.span = tag.attribute("val").and_then(|span| span.parse().ok()).unwrap_or(1);
                }
            }
            "r" => {
                self.in_run = true;
                let (link, change) = (self.link.clone(), self.change.last().cloned());
                if let Some(paragraph) = self.paragraphs.last_mut() {
                    paragraph.marks = Marks { link, change, ..Marks::default() };
                    paragraph.hidden = false;
                }
            }
            "hyperlink" => self.link = tag.prefixed("r:id").and_then(|id| self.links.get(&id).cloned()),
            "pPr" => self.in_properties = true,
            "ins" | "del" | "moveTo" | "moveFrom" if self.changes != Changes::Accepted => self.open_change(tag, xml),
            "commentRangeStart" if self.changes == Changes::Shown => {
                let comment = tag.attribute("id").and_then(|id| self.comments.get(&id)).cloned();
                self.push_raw(&comment.unwrap_or_default());
            }
            "commentRangeEnd" if self.changes == Changes::Shown => {
                let id = tag.attribute("id").filter(|id| self.comments.contains_key(id));
                self.push_raw(&id.map_or(String::new(), |id| format!("[]{{.comment-end id=\"{id}\"}}")));
            }
            // The same once more for older programs, text that was moved away, and formulas of fields.
            "Fallback" | "moveFrom" | "instrText" | "delInstrText" | "del" => xml.skip(),
            "delText" if self.changes == Changes::Accepted => xml.skip(),
            "lastRenderedPageBreak" => self.break_page(out),
            "t" | "delText" => {
                let text = xml.text();
                self.push(&text);
            }
            name => self.open_detail(name, tag, out),
        }
    }

    /// Begins what was inserted or deleted. In the properties of a paragraph, it is about the paragraph's end.
    fn open_change(&mut self, tag: &Tag, xml: &mut Xml) {
        let is_new = matches!(tag.name(), "ins" | "moveTo");
        let shown = |class: &str| {
            let value = |name: &str| tag.attribute(name).unwrap_or_default().replace(['"', '\\', '\n'], " ");
            format!(".{class} author=\"{}\" date=\"{}\"", value("author"), value("date"))
        };
        if self.in_properties {
            if let Some(paragraph) = self.paragraphs.last_mut().filter(|_| self.changes == Changes::Shown) {
                paragraph.end.push(shown(if is_new { "paragraph-insertion" } else { "paragraph-deletion" }));
            }
        } else if self.changes == Changes::Shown {
            self.change.push(shown(if is_new { "insertion" } else { "deletion" }));
        } else if is_new {
            xml.skip();
        }
    }

    fn open_detail(&mut self, name: &str, tag: &Tag, out: &mut Out) {
        let in_run = self.in_run;
        match name {
            "br" | "cr" => match tag.attribute("type").as_deref() {
                Some("page") => self.break_page(out),
                Some("column") => {}
                _ => self.push("\n"),
            },
            // In properties, this is a place of tab stops.
            "tab" if in_run => self.push("\t"),
            "noBreakHyphen" => self.push("-"),
            "sym" => {
                let code = tag.attribute("char").and_then(|code| u32::from_str_radix(&code, 16).ok());
                if let Some(c) = code.and_then(char::from_u32) {
                    let symbol = matches!(c, '\u{f000}'..='\u{f0ff}');
                    self.push(&if symbol { "•".to_owned() } else { c.to_string() });
                }
            }
            "footnoteReference" => self.push_raw(&format!("[^{}]", tag.attribute("id").unwrap_or_default())),
            "endnoteReference" => self.push_raw(&format!("[^e{}]", tag.attribute("id").unwrap_or_default())),
            "docPr" if in_run => {
                let words = tag.attribute("descr").unwrap_or_default();
                if !words.trim().is_empty() && out.style() == Style::Markdown {
                    self.push_raw(&format!("[picture: {}]", words.split_whitespace().collect::<Vec<_>>().join(" ")));
                }
            }
            _ => {
                let Some(paragraph) = self.paragraphs.last_mut() else { return };
                match name {
                    "pStyle" => {
                        let style = tag.attribute("val").unwrap_or_default();
                        let look = self.numbering.look(&style);
                        let own = std::mem::take(&mut paragraph.look);
                        paragraph.look = Look { list: own.list.or(look.list), ..look };
                    }
                    "outlineLvl" => {
                        let level = tag.attribute("val").and_then(|level| level.parse::<usize>().ok());
                        paragraph.look.heading = level.filter(|level| *level < 9).map(|level| level + 1);
                    }
                    "numId" => {
                        let level = paragraph.look.list.take().map_or(0, |(_, level)| level);
                        // 0 takes the list of the style away.
                        paragraph.look.list = tag.attribute("val").filter(|list| list != "0").map(|list| (list, level));
                    }
                    "ilvl" => {
                        let level = tag.attribute("val").and_then(|level| level.parse().ok()).unwrap_or(0);
                        let list = paragraph.look.list.take().map_or(String::new(), |(list, _)| list);
                        paragraph.look.list = Some((list, level));
                    }
                    "b" if in_run => paragraph.marks.bold = tag.is_on(),
                    "i" if in_run => paragraph.marks.italic = tag.is_on(),
                    "strike" | "dstrike" if in_run => paragraph.marks.strike = tag.is_on(),
                    "vanish" if in_run => paragraph.hidden = tag.is_on(),
                    _ => {}
                }
            }
        }
    }

    fn push(&mut self, text: &str) {
        if let Some(paragraph) = self.paragraphs.last_mut()
            && !paragraph.hidden
        {
            let marks = if paragraph.look.heading.is_some() { Marks::default() } else { paragraph.marks.clone() };
            paragraph.inline.push(&marks, text);
        }
    }

    /// Text without marks.
    fn push_raw(&mut self, text: &str) {
        if let Some(paragraph) = self.paragraphs.last_mut() {
            paragraph.inline.push(&Marks::default(), text);
        }
    }

    /// A page begins with the next block, since a part cannot begin within one.
    fn break_page(&mut self, out: &mut Out) {
        let at_start = self.paragraphs.len() == 1 && self.paragraphs[0].inline.is_blank();
        if !self.paged {
            return;
        }
        if self.tables.is_empty() && (at_start || self.paragraphs.is_empty()) {
            out.part("");
            self.break_pending = false;
        } else {
            self.break_pending = true;
        }
    }

    fn close(&mut self, name: &str, out: &mut Out) {
        match name {
            "p" => {
                self.in_properties = false;
                if let Some(mut paragraph) = self.paragraphs.pop() {
                    for end in std::mem::take(&mut paragraph.end) {
                        paragraph.inline.push(&Marks::default(), &format!("[]{{{end}}}"));
                    }
                    self.write(paragraph, out);
                }
            }
            "r" => self.in_run = false,
            "pPr" => self.in_properties = false,
            "ins" | "del" | "moveTo" | "moveFrom" if !self.in_properties => drop(self.change.pop()),
            "hyperlink" => self.link = None,
            "tc" => {
                if let Some((table, cell)) = self.tables.last_mut() {
                    let cell = std::mem::take(cell);
                    table.push(cell.text, cell.span);
                }
            }
            "tbl" => {
                let Some((table, _)) = self.tables.pop() else { return };
                match self.tables.last_mut() {
                    Some((_, cell)) => append(&mut cell.text, &table.into_text()),
                    None if table.is_frame() => out.paragraph(&table.into_text()),
                    None => out.table(&table.rows),
                }
                self.start_pending(out);
            }
            _ => {}
        }
    }

    fn start_pending(&mut self, out: &mut Out) {
        if self.break_pending && self.tables.is_empty() && self.paragraphs.is_empty() {
            self.break_pending = false;
            out.part("");
        }
    }

    fn write(&mut self, mut paragraph: Paragraph, out: &mut Out) {
        let blank = paragraph.inline.is_blank();
        let list = paragraph.look.list.take().filter(|_| !blank);
        let mark = list.and_then(|(list, level)| Some((self.numbering.mark(&list, level)?, level)));
        let code = paragraph.look.code;
        let mut text = match code {
            true => paragraph.inline.finish_plain(),
            false => paragraph.inline.finish(out.style()),
        };
        if let Some((_, cell)) = self.tables.last_mut() {
            if let Some((mark, _)) = mark {
                text = format!("{mark} {text}");
            }
            append(&mut cell.text, &text);
            return;
        }
        match (paragraph.look.heading, mark) {
            _ if blank => {}
            (Some(level), Some((mark, _))) if mark != "-" => out.heading(level, &format!("{mark} {text}")),
            (Some(level), _) => out.heading(level, &text),
            (None, Some((mark, level))) => out.item(level, &mark, &text),
            (None, None) if code => out.code(&text),
            (None, None) if paragraph.look.quote => out.quote(&text),
            (None, None) => out.paragraph(&text),
        }
        self.start_pending(out);
    }
}

fn append(text: &mut String, more: &str) {
    if !text.is_empty() && !more.is_empty() {
        text.push('\n');
    }
    text.push_str(more);
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::package::tests::zip;

    pub fn docx(body: &str) -> Vec<u8> {
        // Word writes the notes that are mentioned.
        let notes = if body.contains("footnoteReference") {
            "<f><w:footnote w:id='0' w:type='separator'/><w:footnote w:id='2'><w:p><w:r><w:t>The note.</w:t></w:r></w:p></w:footnote></f>"
        } else {
            "<f/>"
        };
        let document = format!("<w:document><w:body>{body}</w:body></w:document>");
        zip(&[
            (
                "[Content_Types].xml",
                "<Types><Override ContentType='application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml'/></Types>",
            ),
            (
                "_rels/.rels",
                "<r><Relationship Id='a' Type='x/officeDocument' Target='word/document.xml'/><Relationship Type='x/core-properties' Target='c.xml'/></r>",
            ),
            ("c.xml", "<c><dc:title>A report</dc:title><dc:creator>Ada</dc:creator></c>"),
            ("word/document.xml", &document),
            (
                "word/_rels/document.xml.rels",
                "<r><Relationship Id='l' Type='x/hyperlink' Target='https://example.org' TargetMode='External'/><Relationship Id='s' Type='x/styles' Target='styles.xml'/><Relationship Id='f' Type='x/footnotes' Target='footnotes.xml'/></r>",
            ),
            (
                "word/styles.xml",
                "<s><w:style w:styleId='H'><w:name w:val='heading 2'/></w:style><w:style w:styleId='K'><w:name w:val='x'/><w:basedOn w:val='H'/></w:style></s>",
            ),
            (
                "word/numbering.xml",
                "<n><w:abstractNum w:abstractNumId='1'><w:lvl w:ilvl='0'><w:numFmt w:val='bullet'/></w:lvl></w:abstractNum><w:num w:numId='3'><w:abstractNumId w:val='1'/></w:num></n>",
            ),
            ("word/footnotes.xml", notes),
            ("word/media/a.png", "png"),
        ])
    }

    fn markdown(body: &str) -> String {
        let document = read(&docx(body), &Reading::default()).unwrap();
        document.parts.iter().map(|part| part.text.as_str()).collect::<Vec<_>>().join("\n--\n")
    }

    #[test]
    fn paragraphs_lists_and_tables_are_read() {
        let body = "<w:p><w:pPr><w:pStyle w:val='K'/></w:pPr><w:r><w:rPr><w:b/></w:rPr><w:t>Title</w:t></w:r></w:p>\
            <w:p><w:r><w:t xml:space='preserve'>Some </w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>bold</w:t></w:r><w:hyperlink r:id='l'><w:r><w:t> link</w:t></w:r></w:hyperlink>\
            <w:r><w:footnoteReference w:id='2'/></w:r><w:del><w:r><w:delText>gone</w:delText></w:r></w:del></w:p>\
            <w:p><w:pPr><w:numPr><w:ilvl w:val='0'/><w:numId w:val='3'/></w:numPr></w:pPr><w:r><w:t>item</w:t></w:r></w:p>\
            <w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val='2'/></w:tcPr><w:p><w:r><w:t>head</w:t></w:r></w:p></w:tc></w:tr>\
            <w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>b</w:t></w:r></w:p></w:tc></w:tr></w:tbl>";
        assert_eq!(
            markdown(body),
            "## Title\n\nSome **bold** [link](https://example.org)[^2]\n\n- item\n\n| head |  |\n| --- | --- |\n| a | b |\n\n[^2]: The note."
        );
    }

    #[test]
    fn pages_are_told_apart() {
        let body = "<w:p><w:r><w:t>one</w:t></w:r></w:p><w:p><w:r><w:lastRenderedPageBreak/><w:t>two</w:t></w:r></w:p>\
            <w:p><w:r><w:t>three</w:t><w:br w:type=\"page\"/></w:r></w:p><w:p><w:r><w:t>four</w:t></w:r></w:p>";
        assert_eq!(markdown(body), "one\n--\ntwo\n\nthree\n--\nfour");
        let document = read(&docx(body), &Reading { paged: false, ..Reading::default() }).unwrap();
        assert_eq!(document.parts.len(), 1);
        assert_eq!(document.find_fact("author"), Some("Ada"));
        assert_eq!(document.attachments[0].name, "a.png");
    }

    #[test]
    fn tracked_changes_are_accepted_rejected_or_shown() {
        let body = "<w:document><w:body><w:p><w:r><w:t>Term: </w:t></w:r>\
            <w:del w:id='1' w:author='Ada' w:date='D'><w:r><w:delText>30</w:delText></w:r></w:del>\
            <w:ins w:id='2' w:author='Ada' w:date='D'><w:r><w:t>60</w:t></w:r></w:ins>\
            <w:commentRangeStart w:id='0'/><w:r><w:t> days</w:t></w:r><w:commentRangeEnd w:id='0'/></w:p>\
            <w:p><w:pPr><w:rPr><w:ins w:author='B\"' w:date='E'/></w:rPr></w:pPr><w:ins w:author='C'><w:r><w:t>new</w:t></w:r></w:ins></w:p></w:body></w:document>";
        let bytes = zip(&[
            (
                "_rels/.rels",
                "<Relationships><Relationship Id='1' Type='x/officeDocument' Target='word/document.xml'/></Relationships>",
            ),
            ("word/document.xml", body),
            (
                "word/_rels/document.xml.rels",
                "<Relationships><Relationship Id='1' Type='x/comments' Target='comments.xml'/></Relationships>",
            ),
            (
                "word/comments.xml",
                "<w:comments><w:comment w:id='0' w:author='Eve' w:date='F'><w:p><w:r><w:t>Why?</w:t></w:r></w:p></w:comment></w:comments>",
            ),
        ]);
        let text = |changes| {
            let reading = Reading { paged: false, changes, ..Reading::default() };
            read(&bytes, &reading).unwrap().parts.into_iter().map(|part| part.text).collect::<String>()
        };
        assert_eq!(text(Changes::Accepted), "Term: 60 days\n\nnew\n\nComment by Eve: Why?");
        assert_eq!(text(Changes::Rejected), "Term: 30 days\n\nComment by Eve: Why?");
        assert_eq!(
            text(Changes::Shown),
            "Term: [30]{.deletion author=\"Ada\" date=\"D\"}[60]{.insertion author=\"Ada\" date=\"D\"}\
             [Why?]{.comment-start id=\"0\" author=\"Eve\" date=\"F\"} days[]{.comment-end id=\"0\"}\n\n\
             [new]{.insertion author=\"C\" date=\"\"}[]{.paragraph-insertion author=\"B \" date=\"E\"}"
        );
    }

    #[test]
    fn a_cut_text_is_read_as_far_as_it_goes() {
        assert_eq!(markdown("<w:tbl><w:tr><w:tc><w:p><w:r><w:t>one</w:t></w:r></w:p><w:p><w:r><w:t>tw"), "one\ntw");
    }
}
