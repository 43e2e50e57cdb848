//! OpenDocument: texts, slides and workbooks.

pub mod sheet;
pub mod text;

use crate::document::Document;
use crate::error::{Error, Result};
use crate::office;
use crate::package::Package;
use crate::read::Reading;
use crate::xml::{Node, Xml};

/// Opens a package, unless its content is encrypted.
fn open(bytes: &[u8]) -> Result<Package<'_>> {
    let mut package = Package::open(bytes)?;
    let manifest = package.read("META-INF/manifest.xml").unwrap_or_default();
    if crate::kind::contains(&manifest, b"encryption-data") {
        return Err(Error::new("it is encrypted with a password; here only PDF files can be opened with one"));
    }
    Ok(package)
}

/// Adds title, author, dates and pictures.
fn describe(package: &mut Package, document: &mut Document, reading: &Reading) {
    if let Ok(text) = package.read_text("meta.xml") {
        let mut xml = Xml::new(&text);
        while let Some(node) = xml.next() {
            let Node::Open(tag) = node else { continue };
            let fact = match tag.name() {
                "title" => "title",
                "initial-creator" => "author",
                "creator" => "changed by",
                "subject" => "subject",
                "keyword" => "keywords",
                "description" => "comment",
                "language" => "language",
                "creation-date" => "created",
                "date" => "modified",
                _ => continue,
            };
            let value = xml.text();
            document.fact(fact, value);
        }
    }
    office::attach(package, document, &["Pictures/"], reading);
}
