//! Accepts the tracked changes of a DOCX: what was inserted stays, what was deleted goes, and nothing else changes.

use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, Writer};
use std::io::Cursor;

use crate::error::{Error, Result};
use crate::limits;
use crate::make::docx::Zip;
use crate::package::Package;

/// The file with all changes accepted.
pub fn accept(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut package = Package::open(bytes)?;
    let mut zip = Zip(zip::ZipWriter::new(Cursor::new(Vec::new())));
    for name in package.names().to_vec() {
        if name.ends_with('/') {
            continue;
        }
        let part = package.read(&name)?;
        let is_text = name.starts_with("word/") && name.ends_with(".xml") && crate::kind::contains(&part, b"<w:");
        let part = if is_text { accepted(&crate::xml::decode(&part))? } else { part };
        zip.add(&name, &part)?;
    }
    zip.finish()
}

/// An element with what is in it, or something between elements.
enum Item {
    Element(Element),
    Other(Event<'static>),
}

struct Element {
    tag: BytesStart<'static>,
    items: Vec<Item>,
    is_empty: bool,
}

impl Element {
    fn name(&self) -> &str {
        self.tag.name().into_inner()
    }

    fn child(&self, name: &str) -> Option<&Element> {
        self.items.iter().filter_map(Item::element).find(|element| element.name() == name)
    }

    fn has(&self, path: &[&str]) -> bool {
        path.iter().try_fold(self, |element, name| element.child(name)).is_some()
    }
}

impl Item {
    fn element(&self) -> Option<&Element> {
        match self {
            Self::Element(element) => Some(element),
            Self::Other(_) => None,
        }
    }
}

/// Whether an element only marks a change.
fn is_mark(name: &str) -> bool {
    let of_range = name.ends_with("RangeStart") || name.ends_with("RangeEnd");
    name.strip_prefix("w:").is_some_and(|name| {
        name.ends_with("PrChange")
            || matches!(name, "tblGridChange" | "numberingChange" | "cellIns" | "cellMerge" | "tblPrExChange")
            || of_range && (name.starts_with("move") || name.starts_with("customXml"))
    })
}

fn accepted(text: &str) -> Result<Vec<u8>> {
    let items = clean(read(text)?);
    let mut writer = Writer::new(Vec::with_capacity(text.len()));
    write(&items, &mut writer)?;
    Ok(writer.into_inner())
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::damaged("a part with text", error)
}

fn read(text: &str) -> Result<Vec<Item>> {
    let mut reader = Reader::from_str(text);
    let mut open: Vec<Element> = Vec::new();
    let mut items = Vec::new();
    loop {
        let item = match reader.read_event().map_err(failed)? {
            Event::Eof if open.is_empty() => return Ok(items),
            Event::Eof => return Err(failed("it ends too early")),
            Event::Start(tag) => {
                if open.len() >= limits::DEPTH {
                    return Err(Error::limit("its elements are nested too deep", limits::DEPTH));
                }
                open.push(Element { tag: tag.into_owned(), items: Vec::new(), is_empty: false });
                continue;
            }
            Event::End(_) => Item::Element(open.pop().ok_or_else(|| failed("an element ends that has not begun"))?),
            Event::Empty(tag) => Item::Element(Element { tag: tag.into_owned(), items: Vec::new(), is_empty: true }),
            event => Item::Other(event.into_owned()),
        };
        open.last_mut().map_or(&mut items, |element| &mut element.items).push(item);
    }
}

fn clean(items: Vec<Item>) -> Vec<Item> {
    let mut kept = Vec::with_capacity(items.len());
    // The rest of paragraphs whose end was deleted, for the next paragraph.
    let mut carried: Vec<Item> = Vec::new();
    for item in items {
        let Item::Element(mut element) = item else {
            kept.push(item);
            continue;
        };
        let deleted_row = element.name() == "w:tr" && element.has(&["w:trPr", "w:del"]);
        let deleted_cell = element.name() == "w:tc" && element.has(&["w:tcPr", "w:cellDel"]);
        match element.name() {
            "w:del" | "w:moveFrom" => {}
            "w:ins" | "w:moveTo" => kept.extend(clean(element.items)),
            name if is_mark(name) || deleted_row || deleted_cell => {}
            "w:p" => {
                let gone = [["w:pPr", "w:rPr", "w:del"], ["w:pPr", "w:rPr", "w:moveFrom"]];
                let end_is_gone = gone.iter().any(|path| element.has(path));
                element.items = clean(element.items);
                let is_properties = |item: &Item| item.element().is_some_and(|element| element.name() == "w:pPr");
                if end_is_gone {
                    carried.extend(element.items.into_iter().filter(|item| !is_properties(item)));
                    continue;
                }
                if !carried.is_empty() {
                    let at = element.items.iter().position(is_properties).map_or(0, |at| at + 1);
                    element.items.splice(at..at, carried.drain(..));
                    element.is_empty = false;
                }
                kept.push(Item::Element(element));
            }
            _ => {
                if !carried.is_empty() && says_something(&carried) {
                    kept.push(paragraph(std::mem::take(&mut carried)));
                }
                element.items = clean(element.items);
                // A cell has a paragraph at least.
                if element.name() == "w:tc" && element.child("w:p").is_none() {
                    element.items.push(paragraph(Vec::new()));
                }
                kept.push(Item::Element(element));
            }
        }
    }
    if says_something(&carried) {
        kept.push(paragraph(carried));
    }
    kept
}

fn says_something(items: &[Item]) -> bool {
    items.iter().filter_map(Item::element).any(|element| element.name() == "w:r" || says_something(&element.items))
}

fn paragraph(items: Vec<Item>) -> Item {
    let is_empty = items.is_empty();
    Item::Element(Element { tag: BytesStart::new("w:p"), items, is_empty })
}

fn write(items: &[Item], writer: &mut Writer<Vec<u8>>) -> Result<()> {
    for item in items {
        match item {
            Item::Other(event) => writer.write_event(event.borrow()).map_err(failed)?,
            Item::Element(element) if element.is_empty => {
                writer.write_event(Event::Empty(element.tag.borrow())).map_err(failed)?;
            }
            Item::Element(element) => {
                writer.write_event(Event::Start(element.tag.borrow())).map_err(failed)?;
                write(&element.items, writer)?;
                writer.write_event(Event::End(element.tag.to_end())).map_err(failed)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_accepted() {
        let part =
            |body: &str| String::from_utf8(accepted(&format!("<w:document>{body}</w:document>")).unwrap()).unwrap();
        for (body, expected) in [
            (
                "<w:p><w:r><w:t>a &amp; </w:t></w:r><w:del w:id='1'><w:r><w:delText>30</w:delText></w:r></w:del><w:ins w:id='2'><w:r><w:t>60</w:t></w:r></w:ins></w:p>",
                "<w:p><w:r><w:t>a &amp; </w:t></w:r><w:r><w:t>60</w:t></w:r></w:p>",
            ),
            (
                "<w:p><w:pPr><w:jc w:val='left'/><w:rPr><w:del w:id='1'/></w:rPr></w:pPr><w:del><w:r/></w:del></w:p><w:p><w:r/></w:p>",
                "<w:p><w:r/></w:p>",
            ),
            (
                "<w:p><w:pPr><w:rPr><w:del w:id='1'/></w:rPr></w:pPr><w:r>1</w:r></w:p><w:p><w:pPr/><w:r>2</w:r></w:p>",
                "<w:p><w:pPr/><w:r>1</w:r><w:r>2</w:r></w:p>",
            ),
            (
                "<w:p><w:pPr><w:rPr><w:ins w:id='1'/><w:b/></w:rPr><w:pPrChange><w:pPr/></w:pPrChange></w:pPr></w:p>",
                "<w:p><w:pPr><w:rPr><w:b/></w:rPr></w:pPr></w:p>",
            ),
            (
                "<w:tbl><w:tr><w:trPr><w:del/></w:trPr><w:tc/></w:tr><w:tr><w:trPr><w:ins/></w:trPr><w:tc><w:p/></w:tc></w:tr></w:tbl>",
                "<w:tbl><w:tr><w:trPr></w:trPr><w:tc><w:p/></w:tc></w:tr></w:tbl>",
            ),
            (
                "<w:p><w:moveFromRangeStart/><w:moveFrom><w:r/></w:moveFrom><w:moveFromRangeEnd/><w:moveTo><w:r>m</w:r></w:moveTo></w:p>",
                "<w:p><w:r>m</w:r></w:p>",
            ),
            ("<w:ins><w:del><w:r/></w:del></w:ins>", ""),
        ] {
            assert_eq!(part(body), format!("<w:document>{expected}</w:document>"), "{body}");
        }
        assert!(accepted("<w:p><w:r>").is_err() && accepted(&"<w:p>".repeat(limits::DEPTH + 1)).is_err());
    }
}
