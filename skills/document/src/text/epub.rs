//! EPUB: the chapters of a book in their order.

use super::html;
use crate::charset;
use crate::charset::unescaped;
use crate::document::Document;
use crate::error::{Error, Result};
use crate::kind::Kind;
use crate::office;
use crate::out::Out;
use crate::package::{Package, resolve};
use crate::read::Reading;
use crate::xml::{Node, Xml};

/// Files of a book.
const CHAPTERS: usize = 5_000;

/// Reads a book.
pub fn read(bytes: &[u8], reading: &Reading) -> Result<Document> {
    let mut package = Package::open(bytes)?;
    let root = root(&mut package).ok_or("it is damaged: it does not say where its list of chapters is")?;
    let text = package.read_text(&root)?;
    let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
    let book = Book::parse(&text);
    let mut out = Out::new(reading.style, reading.pages.clone(), reading.limit);
    out.shift_headings(if reading.paged { 2 } else { 0 });
    let mut total = 0;
    for id in book.spine.iter().take(CHAPTERS) {
        let Some((_, target)) = book.files.iter().find(|(known, _)| known == id) else { continue };
        total += 1;
        if out.is_done() {
            continue;
        }
        let path = resolve(folder, &String::from_utf8_lossy(&unescaped(target, b'%')));
        if out.part("") {
            let Ok(bytes) = package.read(&path) else { continue };
            let before = out.headings();
            let facts = html::write(&charset::decode(&bytes, charset::html_label(&bytes).as_deref()), &mut out);
            // Titles of files are often that of the book.
            let title = out.first_heading_since(before).unwrap_or(facts.title);
            if Some(title.trim()) != book.facts.iter().find(|(name, _)| *name == "title").map(|(_, title)| title.trim())
            {
                out.title(&title);
            }
        }
    }
    if total == 0 {
        return Err(Error::new("it is damaged: its list of chapters is empty"));
    }
    out.set_total(total);
    let mut document = Document::new(Kind::Epub, out);
    for (name, value) in book.facts {
        document.fact(name, value);
    }
    if reading.attachments {
        office::attach(
            &mut package,
            &mut document,
            &["images/", "OEBPS/images/", "OEBPS/Images/", "EPUB/images/"],
            reading,
        );
    }
    Ok(document)
}

fn root(package: &mut Package) -> Option<String> {
    if let Ok(text) = package.read_text("META-INF/container.xml") {
        let mut xml = Xml::new(&text);
        while let Some(node) = xml.next() {
            if let Node::Open(tag) = node
                && tag.name() == "rootfile"
            {
                let path = tag.attribute("full-path").map(|path| resolve("", &path));
                if let Some(path) = path.filter(|path| package.has(path)) {
                    return Some(path);
                }
            }
        }
    }
    package.names().iter().find(|name| name.ends_with(".opf")).cloned()
}

#[derive(Default)]
struct Book {
    facts: Vec<(&'static str, String)>,
    files: Vec<(String, String)>,
    spine: Vec<String>,
}

impl Book {
    fn parse(text: &str) -> Self {
        let mut book = Self::default();
        let mut xml = Xml::new(text);
        while let Some(node) = xml.next() {
            let Node::Open(tag) = node else { continue };
            let fact = match tag.name() {
                "item" => {
                    let attribute = |name| tag.attribute(name).unwrap_or_default();
                    if book.files.len() < 20_000 {
                        book.files.push((attribute("id"), attribute("href")));
                    }
                    continue;
                }
                "itemref" => {
                    book.spine.extend(tag.attribute("idref"));
                    continue;
                }
                "title" => "title",
                "creator" => "author",
                "language" => "language",
                "publisher" => "publisher",
                "date" => "created",
                "subject" => "subject",
                "description" => "comment",
                _ => continue,
            };
            let value = xml.text();
            book.facts.push((fact, value));
        }
        book
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::package::tests::{zip, zip_bytes};

    const CONTAINER: &str = "<c><rootfile full-path='OEBPS/a.opf'/></c>";
    const OPF: &str = "<package><metadata><dc:title>Book</dc:title><dc:creator>Ada</dc:creator></metadata><manifest><item id='a' href='one%201.xhtml'/>\
        <item id='b' href='two.xhtml'/></manifest><spine><itemref idref='b'/><itemref idref='a'/></spine></package>";

    #[test]
    fn chapters_come_in_their_order() {
        let bytes = zip(&[
            ("mimetype", "application/epub+zip"),
            ("META-INF/container.xml", CONTAINER),
            ("OEBPS/a.opf", OPF),
            ("OEBPS/one 1.xhtml", "<html><title>Book</title><p>end"),
            ("OEBPS/two.xhtml", "<html><h1>Start</h1><p>text"),
        ]);
        let document = read(&bytes, &Reading::default()).unwrap();
        assert_eq!(document.find_fact("author"), Some("Ada"));
        let labels: Vec<String> = document.parts.iter().map(|part| document.label(part)).collect();
        assert_eq!(labels, ["Chapter 1: Start", "Chapter 2"]);
        assert_eq!(document.parts[0].text, "### Start\n\ntext");
    }

    #[test]
    fn a_list_of_chapters_may_be_utf_16() {
        let wide: Vec<u8> = [0xfeff].into_iter().chain(OPF.encode_utf16()).flat_map(u16::to_le_bytes).collect();
        let bytes = zip_bytes(&[
            ("META-INF/container.xml", CONTAINER.as_bytes()),
            ("OEBPS/a.opf", &wide),
            ("OEBPS/two.xhtml", b"<p>x"),
        ]);
        assert_eq!(read(&bytes, &Reading::default()).unwrap().total, 2);
    }
}
