//! `pdftotext` of poppler.

use std::io::Write;

use super::words::{Word, Words, unexpected, unknown};
use super::{load, save, with_end, with_path};
use crate::error::{Error, Result};
use crate::kind::{self, Kind};
use crate::out::Style;
use crate::pages::Pages;
use crate::read::{self, Reading};

pub const USAGE: &str = "Usage: pdftotext [OPTION]... PDF-FILE [TEXT-FILE]
Convert a PDF file to plain text. TEXT-FILE is PDF-FILE with .txt, or - for standard output.

  -f N, -l N     first and last page
  -layout        keep the places of the text on the page
  -raw           accepted; the order is that of reading
  -nopgbrk       no form feed after each page
  -enc UTF-8     the only encoding
  -opw, -upw PW  the password
  -q             no messages
";

pub fn run(arguments: &[String], out: &mut dyn Write) -> Result<()> {
    let (mut first, mut last) = (1, usize::MAX);
    let mut reading = Reading { style: Style::Text, ..Reading::default() };
    let (mut breaks, mut password) = (true, None);
    let mut files: Vec<&str> = Vec::new();
    let mut words = Words::new(arguments);
    while let Some(word) = words.next() {
        match word {
            Word::Option("-f") => first = words.number::<usize>("-f")?.max(1),
            Word::Option("-l") => last = words.number("-l")?,
            Word::Option("-layout" | "-table" | "-fixed" | "-simple" | "-lineprinter") => reading.layout = true,
            Word::Option("-raw" | "-q" | "-nodiag" | "-clip") => {}
            Word::Option("-nopgbrk") => breaks = false,
            Word::Option("-opw" | "-upw") => password = Some(words.value("-upw")?.to_owned()),
            Word::Option("-enc") => {
                let name = words.value("-enc")?;
                if !matches!(name.to_ascii_uppercase().as_str(), "UTF-8" | "UTF8" | "ASCII7") {
                    return Err(Error::new(format!("-enc {name}: only UTF-8 is supported here (use `iconv`)")));
                }
            }
            Word::Option("-eol") => {
                let name = words.value("-eol")?;
                if name != "unix" {
                    return Err(Error::new(format!("-eol {name}: only unix is supported here")));
                }
            }
            Word::Option(option) => return Err(unknown(option)),
            Word::Operand(file) if files.len() < 2 => files.push(file),
            Word::Operand(file) => return Err(unexpected(file)),
        }
    }
    let passwords = super::passwords(password);
    reading.passwords = &passwords;
    let path = *files.first().ok_or("a PDF file is needed (see pdftotext --help)")?;
    let target = match files.get(1) {
        Some(target) => (*target).to_owned(),
        None if path == "-" => "-".to_owned(),
        None => with_end(path, "txt"),
    };
    if first > last {
        return Err(Error::new(format!("the first page ({first}) is after the last ({last})")));
    }
    reading.pages = Some(Pages::between(first, last));
    let bytes = load_pdf(path)?;
    let document = read::read_as(Kind::Pdf, bytes, &reading).map_err(with_path(path))?;
    if document.total < first {
        return Err(Error::new(format!("{path}: the first page ({first}) is after the last ({})", document.total)));
    }
    let mut text = String::new();
    for part in &document.parts {
        text.push_str(&part.text);
        if !part.text.is_empty() {
            text.push('\n');
        }
        if breaks {
            text.push('\u{c}');
        }
    }
    save(&target, text.as_bytes(), out)
}

/// Reads a PDF file, and says what another is.
pub fn load_pdf(path: &str) -> Result<Vec<u8>> {
    let bytes = load(path)?;
    match kind::find(&bytes, path).map_err(with_path(path))? {
        Kind::Pdf => Ok(bytes),
        other => Err(Error::new(format!("{path}: it is not a PDF file but {}: use `document`", other.name()))),
    }
}
