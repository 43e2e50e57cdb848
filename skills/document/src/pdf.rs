//! PDF: text by pages, metadata, bookmarks, attachments, and pages as pictures.

mod glyphs;
mod guard;
mod info;
mod layout;
mod order;
mod render;
mod table;
mod words;
mod write;

use std::time::Instant;

use hayro::hayro_interpret::{InterpreterCache, InterpreterSettings};
use hayro::hayro_syntax::{DecryptionError, LoadPdfError, Pdf, PdfData};

use crate::document::Document;
use crate::error::{Error, Result};
use crate::kind::Kind;
use crate::limits;
use crate::out::Out;
use crate::read::Reading;

pub use info::{Details, details};
pub use render::{Picture, Scaling, render};

/// Pages that share what was read of fonts. It is thrown away then, so that a long document does not fill the memory.
const PAGES_TOGETHER: usize = 32;

/// Opens a file. An encrypted one is tried with each of the passwords.
pub fn open(bytes: Vec<u8>, passwords: &[String]) -> Result<Pdf> {
    let bytes = PdfData::from(bytes);
    let mut opened = Pdf::new_with_password(bytes.clone(), "");
    for password in passwords.iter().take(limits::PASSWORDS) {
        if !matches!(opened, Err(LoadPdfError::Decryption(DecryptionError::PasswordProtected))) {
            break;
        }
        opened = Pdf::new_with_password(bytes.clone(), password);
    }
    opened.map_err(|error| match error {
        LoadPdfError::Decryption(DecryptionError::PasswordProtected) if passwords.is_empty() => {
            Error::new("it is encrypted: give its password in the conversation")
        }
        LoadPdfError::Decryption(DecryptionError::PasswordProtected) => {
            Error::new("it is encrypted, and no password that was given opens it")
        }
        LoadPdfError::Decryption(DecryptionError::UnsupportedAlgorithm) => {
            Error::new("it is encrypted in a way that cannot be read here")
        }
        LoadPdfError::Decryption(_) => Error::new("it is damaged: its encryption is invalid"),
        LoadPdfError::Invalid => Error::new("it is damaged: it has no pages of a PDF file that can be found"),
    })
}

/// Reads the text of the wanted pages.
pub fn read(bytes: Vec<u8>, reading: &Reading) -> Result<Document> {
    let pdf = open(bytes, reading.passwords)?;
    let pages = pdf.pages();
    let total = pages.len();
    if total == 0 {
        return Err("it is damaged: it has no pages".into());
    }
    let mut out = Out::new(reading.style, reading.pages.clone(), reading.limit);
    let settings = InterpreterSettings::default();
    let mut cache = InterpreterCache::new();
    let mut sizes = write::Sizes::new();
    let mut arranged = Vec::new();
    let mut held = 0;
    let mut cut = Vec::new();
    let mut refused = Vec::new();
    let started = Instant::now();
    let mut unread = None;
    for (index, page) in pages.iter().enumerate() {
        let number = index + 1;
        let wanted = reading.pages.as_ref().is_none_or(|pages| pages.contains(number));
        if reading.pages.as_ref().is_some_and(|pages| pages.end_before(number)) {
            break;
        }
        if held > out.limit() || started.elapsed() > limits::PDF_TIME {
            unread = Some(number);
            break;
        }
        if !wanted {
            arranged.push(None);
            continue;
        }
        if number % PAGES_TOGETHER == 0 {
            cache = InterpreterCache::new();
        }
        if let Err(error) = guard::check(page, number) {
            refused.push(error.to_string());
            arranged.push(Some(write::PageText::default()));
            continue;
        }
        let found = glyphs::collect(page, &cache, &settings);
        if found.cut {
            cut.push(number);
        }
        held += found.glyphs.len();
        arranged.push(Some(write::arrange(&found, reading.layout, &mut sizes)));
    }
    let scale = write::Scale::new(&sizes);
    out.shift_headings(2);
    for page in &arranged {
        if out.part("")
            && let Some(page) = page
        {
            write::write(page, &scale, &mut out);
        }
        if out.is_done() {
            break;
        }
    }
    out.set_total(total);
    let mut document = Document::new(Kind::Pdf, out);
    info::describe(&pdf, &mut document, reading);
    document.notes.extend(refused.into_iter().take(20));
    if let Some(number) = unread {
        document
            .notes
            .push(format!("only the first {} of {total} pages were read: pages=\"{number}-\" goes on", number - 1));
    }
    if !cut.is_empty() {
        let limit = limits::GLYPHS;
        document
            .notes
            .push(format!("only the first {limit} characters of page {} were read", crate::pages::join(&cut)));
    }
    Ok(document)
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::pages::Pages;

    /// Makes a file with a line of Helvetica on each page.
    pub fn pdf(pages: &[&str]) -> Vec<u8> {
        let contents: Vec<String> = pages.iter().map(|line| format!("BT /F 12 Tf 72 700 Td ({line}) Tj ET")).collect();
        pdf_of(&contents)
    }

    /// Makes a file of contents of pages. The font `F` is Helvetica.
    pub fn pdf_of(contents: &[String]) -> Vec<u8> {
        let mut objects = vec![
            "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
            String::new(),
            "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
            "<< /Title (A file) /CreationDate (D:20240501100000Z) >>".to_owned(),
        ];
        let mut kids = String::new();
        for content in contents {
            let number = objects.len() + 1;
            kids.push_str(&format!("{number} 0 R "));
            objects.push(format!("<< /Type /Page /Parent 2 0 R /Contents {} 0 R >>", number + 1));
            objects.push(format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()));
        }
        objects[1] = format!(
            "<< /Type /Pages /Count {} /Kids [{kids}] /MediaBox [0 0 595 842] /Resources << /Font << /F 3 0 R >> >> >>",
            contents.len()
        );
        let mut bytes = b"%PDF-1.4\n".to_vec();
        let mut places = Vec::new();
        for (index, object) in objects.iter().enumerate() {
            places.push(bytes.len());
            bytes.extend(format!("{} 0 obj\n{object}\nendobj\n", index + 1).into_bytes());
        }
        let start = bytes.len();
        bytes.extend(format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).into_bytes());
        for place in places {
            bytes.extend(format!("{place:010} 00000 n \n").into_bytes());
        }
        let size = objects.len() + 1;
        bytes.extend(
            format!("trailer << /Size {size} /Root 1 0 R /Info 4 0 R >>\nstartxref\n{start}\n%%EOF").into_bytes(),
        );
        bytes
    }

    fn text(content: &str) -> String {
        let document = read(pdf_of(&[content.to_owned()]), &Reading::default()).unwrap();
        document.parts[0].text.clone()
    }

    #[test]
    fn pages_are_read() {
        let document =
            read(pdf(&["One", "Two", "Three"]), &Reading { pages: Some(Pages::between(2, 2)), ..Reading::default() })
                .unwrap();
        assert_eq!((document.total, document.parts.len()), (3, 1));
        assert_eq!(document.parts[0].text, "Two");
        assert_eq!(document.label(&document.parts[0]), "Page 2");
        assert_eq!(document.find_fact("created"), Some("2024-05-01T10:00:00Z"));
    }

    #[test]
    fn headings_paragraphs_and_tables_are_told_apart() {
        let content = "BT /F 20 Tf 72 780 Td (Report) Tj ET BT /F 10 Tf 12 TL 72 740 Td (This is a para-) Tj T* (graph of two lines.) Tj \
            0 -40 Td (\\225 an item) Tj T* (\\225 another item) Tj ET \
            BT /F 10 Tf 72 600 Td (Item) Tj 150 0 Td (Number) Tj 100 0 Td (Price) Tj ET BT /F 10 Tf 72 588 Td (Bread) Tj 150 0 Td (2) Tj 100 0 Td (3.50) Tj ET";
        assert_eq!(
            text(content),
            "### Report\n\nThis is a paragraph of two lines.\n\n- an item\n- another item\n\n| Item | Number | Price |\n| --- | --- | --- |\n| Bread | 2 | 3.50 |"
        );
    }

    #[test]
    fn a_page_of_a_picture_is_told() {
        let image = "q 595 0 0 842 0 0 cm BI /W 2 /H 2 /BPC 8 /CS /G ID xxxx EI Q";
        let document = read(pdf_of(&[image.to_owned(), String::new()]), &Reading::default()).unwrap();
        assert_eq!(document.parts.iter().map(|part| part.picture).collect::<Vec<_>>(), [true, false]);
    }

    #[test]
    fn a_page_is_drawn() {
        let pdf = open(pdf(&["Hello"]), &[]).unwrap();
        let picture = render(&pdf, 1, Scaling::Dpi(72.0, 72.0)).unwrap();
        assert_eq!((picture.width, picture.height), (595, 842));
        assert!(picture.pixels.contains(&0) && picture.to_png().unwrap().starts_with(b"\x89PNG"));
        let error = render(&pdf, 1, Scaling::Longer(1e6)).unwrap_err().to_string();
        assert!(error.contains("limit is 25000000 pixels"), "{error}");
        assert!(render(&pdf, 2, Scaling::Longer(10.0)).is_err());
    }

    #[test]
    fn cut_and_mixed_up_files_end() {
        let whole = pdf(&["Hello", "world"]);
        for end in (0..whole.len()).step_by(23) {
            let _ = read(whole[..end].to_vec(), &Reading::default());
        }
        for place in 0..whole.len() {
            let mut changed = whole.clone();
            changed[place] = changed[place].wrapping_add(13);
            let _ = read(changed, &Reading::default());
        }
    }
}
