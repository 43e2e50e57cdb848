//! Writes DOCX: paragraphs with the styles that Word knows by name, so that what was made can be changed there.

mod body;
mod parts;
mod run;
mod styles;
mod table;

use std::io::{Cursor, Write};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::layout::Layout;
use super::paginate::paginate;
use super::prepare::Prepared;
use crate::error::{Error, Result};
use crate::limits;
use body::Body;

/// The bytes of a DOCX file.
pub fn write(prepared: &mut Prepared) -> Result<Vec<u8>> {
    let paper = prepared.paper.clone();
    let mut layout = Layout::new(&mut prepared.fonts, &prepared.pictures, paper.inner_height());
    // Where headings are in a PDF file is about where they are here.
    let pages = match &prepared.contents {
        Some(_) => {
            let root = layout.root(&prepared.tree.root, paper.inner_width());
            let pages = paginate(&root, &[], paper.inner_height());
            pages.anchors.iter().map(|(id, (page, _))| (id.to_string(), page + 1)).collect()
        }
        None => std::collections::HashMap::new(),
    };
    let styles = styles::Styles::new(prepared.root_style.clone(), &prepared.tree.root, prepared.font_name.as_deref());
    let mut body = Body::new(&mut layout, &prepared.pictures, &styles, paper.inner_width());
    body.document(&prepared.tree, prepared.contents.as_ref(), &pages);
    if body.is_full() {
        return Err(Error::limit("the document is too long for DOCX", limits::DOCX_BYTES));
    }
    let parts = body.finish();
    let (head, foot) = parts::document(&paper, &prepared.texts, prepared.background);

    let mut zip = Zip(ZipWriter::new(Cursor::new(Vec::new())));
    zip.add("[Content_Types].xml", parts::CONTENT_TYPES.as_bytes())?;
    zip.add("_rels/.rels", parts::RELATIONS.as_bytes())?;
    let core = parts::core(&prepared.title, &prepared.author, &prepared.language);
    zip.add("docProps/core.xml", core.as_bytes())?;
    zip.add_parts("word/document.xml", &[head.as_bytes(), parts.xml.as_bytes(), foot.as_bytes()])?;
    zip.add("word/styles.xml", styles.to_xml(&prepared.language).as_bytes())?;
    zip.add("word/numbering.xml", parts::numbering(&parts.lists).as_bytes())?;
    zip.add("word/settings.xml", parts::settings(prepared.background.is_some()).as_bytes())?;
    zip.add("word/header1.xml", parts::margin("hdr", &prepared.texts.head, &paper).as_bytes())?;
    zip.add("word/footer1.xml", parts::margin("ftr", &prepared.texts.foot, &paper).as_bytes())?;
    zip.add("word/_rels/document.xml.rels", parts.relations(&prepared.pictures).as_bytes())?;
    for number in &parts.pictures {
        if let Some(picture) = prepared.pictures.all.get(*number) {
            zip.add(&format!("word/media/image{number}.{}", picture.end), &picture.file)?;
        }
    }
    zip.finish()
}

/// A package whose entries have no time, so that the same input makes the same file.
pub struct Zip(pub ZipWriter<Cursor<Vec<u8>>>);

impl Zip {
    pub fn add(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        self.add_parts(name, &[bytes])
    }

    fn add_parts(&mut self, name: &str, parts: &[&[u8]]) -> Result<()> {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .last_modified_time(zip::DateTime::default());
        self.0.start_file(name, options).map_err(failed)?;
        for part in parts {
            self.0.write_all(part)?;
        }
        Ok(())
    }

    pub fn finish(self) -> Result<Vec<u8>> {
        Ok(self.0.finish().map_err(failed)?.into_inner())
    }
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::new(format!("the package cannot be written: {error}"))
}

/// Text as XML has it, without what XML cannot have.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => {}
            c if c.is_control() && !matches!(c, '\t' | '\n') => {}
            c => out.push(c),
        }
    }
    out
}

/// Twentieths of points.
pub fn twips(points: f32) -> i32 {
    (points * 20.0).round() as i32
}
