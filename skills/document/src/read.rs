//! Reads a file of any kind.

use crate::document::Document;
use crate::error::{Error, Result};
use crate::kind::{self, Kind};
use crate::out::Style;
use crate::pages::Pages;
use crate::{limits, mail, odf, office, pdf, sheet, text};

/// How a document is read.
#[derive(Debug, Clone)]
pub struct Reading<'a> {
    pub style: Style,
    /// Parts that are wanted; all if `None`.
    pub pages: Option<Pages>,
    /// Name or number of the only sheet that is wanted.
    pub sheet: Option<&'a str>,
    /// Passwords that an encrypted file is tried with.
    pub passwords: &'a [String],
    /// Bytes of text after which reading ends.
    pub limit: usize,
    /// Whether the bytes of attachments are kept.
    pub attachments: bool,
    /// Whether the text of PDF pages keeps its places.
    pub layout: bool,
    /// Whether headings are counted below those of pages, and pages are told apart in DOCX and ODT at all.
    pub paged: bool,
    /// Whether each cell of a merged range has its value.
    pub fill_merged: bool,
    pub changes: Changes,
}

/// How the tracked changes of a text are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Changes {
    /// As if they were accepted.
    #[default]
    Accepted,
    /// As if they were rejected.
    Rejected,
    /// Both what was inserted and what was deleted, each with who did it and when; and comments at their places.
    Shown,
}

impl Default for Reading<'_> {
    fn default() -> Self {
        Self {
            style: Style::Markdown,
            pages: None,
            sheet: None,
            passwords: &[],
            limit: limits::TEXT_BYTES,
            attachments: false,
            layout: false,
            paged: true,
            fill_merged: true,
            changes: Changes::default(),
        }
    }
}

/// Reads a file; `name` decides only where its bytes fit several kinds.
pub fn read(bytes: Vec<u8>, name: &str, reading: &Reading) -> Result<Document> {
    let kind = kind::find(&bytes, name)?;
    read_as(kind, bytes, reading)
}

/// Reads a file of a known kind.
pub fn read_as(kind: Kind, bytes: Vec<u8>, reading: &Reading) -> Result<Document> {
    if bytes.len() as u64 > limits::FILE_BYTES {
        return Err(Error::limit(&format!("it has {} bytes", bytes.len()), limits::FILE_BYTES));
    }
    match kind {
        Kind::Pdf => pdf::read(bytes, reading),
        Kind::Docx => office::docx::read(&bytes, reading),
        Kind::Doc => office::doc::read(&bytes, reading),
        Kind::Ppt => office::ppt::read(&bytes, reading),
        Kind::Pptx => office::pptx::read(&bytes, reading),
        Kind::Xlsx | Kind::Xlsb | Kind::Xls => sheet::excel::read(kind, &bytes, reading),
        Kind::Odt | Kind::Odp => odf::text::read(kind, &bytes, reading),
        Kind::Ods => odf::sheet::read(&bytes, reading),
        Kind::Epub => text::epub::read(&bytes, reading),
        Kind::Rtf => text::rtf::read(&bytes, reading),
        Kind::Html => text::html::read(&bytes, reading),
        Kind::Eml => mail::message::read(&bytes, reading),
        Kind::Mbox => mail::mbox::read(&bytes, reading),
        Kind::Msg => mail::outlook::read(&bytes, reading),
        Kind::Vcard | Kind::Calendar => mail::card::read(kind, &bytes, reading),
        Kind::Csv | Kind::Markdown | Kind::Text => text::plain::read(kind, &bytes, reading),
    }
}
