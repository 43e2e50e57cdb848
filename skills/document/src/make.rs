//! Makes documents: PDF and DOCX from HTML and Markdown, XLSX from tables.
//!
//! ```text
//! Markdown ──▶ HTML ──▶ dom ── css ──▶ tree ──▶ layout ──▶ paginate ──▶ pdf
//!                                        └─────▶ docx
//! ```

pub mod css;
pub mod docx;
pub mod dom;
pub mod font;
pub mod layout;
pub mod markdown;
pub mod paginate;
pub mod paper;
pub mod pdf;
pub mod picture;
pub mod prepare;
pub mod setup;
pub mod tree;
pub mod xlsx;

use crate::error::Result;

pub use setup::{Setup, Source};

/// A document that was made.
#[derive(Debug)]
pub struct Made {
    pub bytes: Vec<u8>,
    /// Sentences about what is left out.
    pub notes: Vec<String>,
}

/// Makes a PDF file.
pub fn to_pdf(source: Source, setup: &Setup) -> Result<Made> {
    let mut prepared = prepare::prepare(source, setup, true)?;
    let paper = prepared.paper.clone();
    let mut layout = layout::Layout::new(&mut prepared.fonts, &prepared.pictures, paper.inner_height());
    let root = layout.root(&prepared.tree.root, paper.inner_width());
    let is_full = layout.is_full();
    let fixed = layout.fixed(&prepared.tree.fixed, paper.inner_width());
    let pages = paginate::paginate(&root, &fixed, paper.inner_height());
    let margins = paper::margin_lines(&mut layout, &prepared.texts, &paper, pages.count, &prepared.root_style);
    let job = pdf::Job {
        paper: &paper,
        pictures: &prepared.pictures,
        headings: &prepared.tree.headings,
        background: prepared.background,
        title: &prepared.title,
        author: &prepared.author,
        language: &prepared.language,
        fonts: &mut prepared.fonts,
        margins,
    };
    let bytes = pdf::write(&pages, job);
    let mut notes = std::mem::take(&mut prepared.pictures.notes);
    notes.append(&mut prepared.notes);
    if is_full || pages.is_cut {
        notes.push(format!("the document is too long: it ends after {} pages", pages.count));
    }
    if !prepared.fonts.missing.is_empty() {
        let shown: String = prepared.fonts.missing.iter().take(20).collect();
        notes.push(format!(
            "no font here has the characters {shown}: put a font file (.ttf, .otf) that has them beside the document, or name it"
        ));
    }
    Ok(Made { bytes, notes })
}

/// Makes a DOCX file.
pub fn to_docx(source: Source, setup: &Setup) -> Result<Made> {
    let mut prepared = prepare::prepare(source, setup, false)?;
    let bytes = docx::write(&mut prepared)?;
    let mut notes = std::mem::take(&mut prepared.pictures.notes);
    notes.append(&mut prepared.notes);
    Ok(Made { bytes, notes })
}

#[cfg(test)]
mod tests;
