//! Shared by the commands that make documents: from files to a text, from a text to a file.

use std::io::Write;

use super::pandoc::join_parts;
use super::{load, save, with_path};
use crate::error::{Error, Result};
use crate::kind::{self, Kind};
use crate::make::{self, Setup, Source};
use crate::read::{self, Reading};
use crate::{charset, kind::extension};

/// A text that a document is made from.
#[derive(Debug, Default)]
pub struct Text {
    pub text: String,
    pub is_html: bool,
    /// The title that the file has.
    pub title: String,
    /// Whether the text is another document's, whose marks are right already.
    pub is_exact: bool,
    /// A sentence about what the text does not have.
    pub note: Option<String>,
}

/// How plain text is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plain {
    /// As Markdown.
    Markdown,
    /// Line by line.
    Lines,
}

/// Reads a file of any kind as HTML or Markdown.
pub fn read(path: &str, from: Option<Kind>, plain: Plain) -> Result<Text> {
    let bytes = load(path)?;
    let kind = match from {
        Some(kind) if matches!(kind, Kind::Markdown | Kind::Text | Kind::Html | Kind::Csv) => kind,
        _ => kind::find(&bytes, path).map_err(with_path(path))?,
    };
    let kind = if path == "-" && kind == Kind::Text { Kind::Markdown } else { kind };
    let is_plain =
        kind == Kind::Text && plain == Plain::Lines && !matches!(extension(path).as_str(), "md" | "markdown");
    match kind {
        Kind::Html => {
            let label = charset::html_label(&bytes);
            Ok(Text { text: charset::decode(&bytes, label.as_deref()), is_html: true, ..Text::default() })
        }
        Kind::Text if is_plain => {
            let text = make::markdown::escape(&charset::decode(&bytes, None));
            Ok(Text { text: format!("<pre>{}</pre>", text.replace('\u{c}', "")), is_html: true, ..Text::default() })
        }
        Kind::Markdown | Kind::Text => {
            Ok(Text { text: charset::decode(&bytes, None).replace("\r\n", "\n"), ..Text::default() })
        }
        _ => {
            let passwords = super::passwords(None);
            let reading = Reading { paged: false, passwords: &passwords, ..Reading::default() };
            let document = read::read_as(kind, bytes, &reading).map_err(with_path(path))?;
            let pictures = document.attachments.iter().filter(|file| is_picture(&file.name)).count();
            let note = (pictures > 0)
                .then(|| format!("{path}: its {pictures} pictures are left out, since only its text is read"));
            let title = document.find_fact("title").unwrap_or_default().to_owned();
            Ok(Text { text: join_parts(&document), is_html: false, title, is_exact: true, note })
        }
    }
}

fn is_picture(name: &str) -> bool {
    matches!(
        extension(name).as_str(),
        "png" | "jpg" | "jpeg" | "gif" | "bmp" | "tif" | "tiff" | "emf" | "wmf" | "svg" | "webp"
    )
}

/// Makes a PDF or DOCX file from texts, and says on standard error what is left out.
pub fn write(name: &str, texts: &[Text], setup: &Setup, output: &str, is_pdf: bool, out: &mut dyn Write) -> Result<()> {
    let is_html = texts.iter().any(|text| text.is_html);
    let parts: Vec<String> = texts
        .iter()
        .map(|text| {
            if is_html && !text.is_html {
                make::markdown::to_html(&text.text, !text.is_exact).0
            } else {
                text.text.clone()
            }
        })
        .collect();
    let joined = parts.join("\n\n");
    let source = if is_html { Source::Html(&joined) } else { Source::Markdown(&joined) };
    let mut setup = setup.clone();
    setup.is_exact |= texts.iter().any(|text| text.is_exact);
    if let Some(text) = texts.iter().find(|text| !text.title.is_empty()) {
        // It is a property of the file, which a heading of the text mostly repeats.
        setup.facts.insert(0, ("file-title".to_owned(), text.title.clone()));
    }
    let made = if is_pdf { make::to_pdf(source, &setup)? } else { make::to_docx(source, &setup)? };
    let notes = texts.iter().filter_map(|text| text.note.clone()).chain(made.notes);
    notes.for_each(|note| {
        let _ = writeln!(std::io::stderr(), "{name}: {note}");
    });
    save(output, &made.bytes, out)
}

/// The error for a file that standard output must not get.
pub fn needs_file(name: &str) -> Error {
    Error::new(format!("a file for the result is needed (see {name} --help)"))
}
