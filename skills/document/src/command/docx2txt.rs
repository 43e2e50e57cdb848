//! `docx2txt`: DOCX, and ODT, RTF and PPTX, as plain text.

use std::io::Write;

use super::words::{Word, Words, unexpected, unknown};
use super::{load, save, with_path};
use crate::error::{Error, Result};
use crate::kind::{self, Kind};
use crate::out::Style;
use crate::read::{self, Reading};

pub const USAGE: &str = "Usage: docx2txt FILE [TEXT-FILE]
Convert a DOCX, DOC, ODT, RTF or PPTX file to plain text, to standard output without TEXT-FILE or with -.

  -i DIR         save pictures into DIR
";

pub fn run(arguments: &[String], out: &mut dyn Write) -> Result<()> {
    let mut pictures = None;
    let mut files: Vec<&str> = Vec::new();
    let mut words = Words::new(arguments);
    while let Some(word) = words.next() {
        match word {
            Word::Option("-i" | "--img_dir") => pictures = Some(words.value("-i")?),
            Word::Option(option) => return Err(unknown(option)),
            Word::Operand(file) if files.len() < 2 => files.push(file),
            Word::Operand(file) => return Err(unexpected(file)),
        }
    }
    let path = *files.first().ok_or("a file is needed (see docx2txt --help)")?;
    let bytes = load(path)?;
    let kind = kind::find(&bytes, path).map_err(with_path(path))?;
    if !matches!(kind, Kind::Docx | Kind::Doc | Kind::Odt | Kind::Rtf | Kind::Pptx | Kind::Ppt | Kind::Odp) {
        return Err(Error::new(format!("{path}: it is not DOCX but {}: use `document`", kind.name())));
    }
    let reading = Reading { style: Style::Text, paged: false, attachments: pictures.is_some(), ..Reading::default() };
    let document = read::read_as(kind, bytes, &reading).map_err(with_path(path))?;
    if let Some(directory) = pictures {
        crate::answer::save_attachments(&document, directory)?;
    }
    let mut text = super::pandoc::join_parts(&document);
    text.push('\n');
    save(files.get(1).copied().unwrap_or("-"), text.as_bytes(), out)
}
