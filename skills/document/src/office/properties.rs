//! Properties of a package, and the pictures and files in it.

use crate::document::{Attachment, Document};
use crate::limits;
use crate::package::Package;
use crate::read::Reading;
use crate::xml::{Node, Xml};

/// Adds title, author and dates, and the files below `folders` as attachments.
pub fn describe(package: &mut Package, document: &mut Document, folders: &[&str], reading: &Reading) {
    let core = package.relationships("").into_iter().find(|relationship| relationship.kind == "core-properties");
    let core = core.map_or("docProps/core.xml".to_owned(), |relationship| relationship.target);
    if let Ok(text) = package.read_text(&core) {
        let mut xml = Xml::new(&text);
        while let Some(node) = xml.next() {
            let Node::Open(tag) = node else { continue };
            let fact = match tag.name() {
                "title" => "title",
                "creator" => "author",
                "subject" => "subject",
                "keywords" => "keywords",
                "description" => "comment",
                "language" => "language",
                "created" => "created",
                "modified" => "modified",
                _ => continue,
            };
            let value = xml.text();
            document.fact(fact, value);
        }
    }
    attach(package, document, folders, reading);
}

/// Adds the files below folders of a package as attachments.
pub fn attach(package: &mut Package, document: &mut Document, folders: &[&str], reading: &Reading) {
    let inside = |name: &&String| !name.ends_with('/') && folders.iter().any(|folder| name.starts_with(folder));
    let names: Vec<String> = package.names().iter().filter(inside).take(limits::ATTACHMENTS).cloned().collect();
    let mut room = limits::ATTACHMENT_BYTES;
    for name in names {
        let size = package.size(&name);
        let bytes = if reading.attachments && size <= room { package.read(&name).ok() } else { None };
        room = room.saturating_sub(bytes.as_ref().map_or(0, Vec::len));
        let name = name.rsplit('/').next().unwrap_or_default().to_owned();
        document.attachments.push(Attachment { name, size, bytes });
    }
}
