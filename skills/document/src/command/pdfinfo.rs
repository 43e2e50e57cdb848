//! `pdfinfo` of poppler.

use std::io::Write;

use super::pdftotext::load_pdf;
use super::with_path;
use super::words::{Word, Words, unexpected, unknown};
use crate::error::Result;
use crate::{kind, pdf};

pub const USAGE: &str = "Usage: pdfinfo [OPTION]... PDF-FILE
Print what a PDF file says about itself.

  -f N, -l N     print the sizes of these pages
  -isodates      accepted; dates are ISO 8601
  -opw, -upw PW  the password
";

pub fn run(arguments: &[String], out: &mut dyn Write) -> Result<()> {
    let (mut first, mut last) = (None, None);
    let mut password = None;
    let mut file = None;
    let mut words = Words::new(arguments);
    while let Some(word) = words.next() {
        match word {
            Word::Option("-f") => first = Some(words.number::<usize>("-f")?.max(1)),
            Word::Option("-l") => last = Some(words.number::<usize>("-l")?),
            Word::Option("-opw" | "-upw") => password = Some(words.value("-upw")?.to_owned()),
            Word::Option("-isodates" | "-rawdates") => {}
            Word::Option("-enc") => drop(words.value("-enc")?),
            Word::Option(option) => return Err(unknown(option)),
            Word::Operand(path) if file.is_none() => file = Some(path),
            Word::Operand(path) => return Err(unexpected(path)),
        }
    }
    let path = file.ok_or("a PDF file is needed (see pdfinfo --help)")?;
    let bytes = load_pdf(path)?;
    let size = bytes.len();
    let encrypted = kind::contains(&bytes, b"/Encrypt");
    let linear = kind::contains(&bytes[..size.min(1_024)], b"/Linearized");
    let pdf = pdf::open(bytes, &super::passwords(password)).map_err(with_path(path))?;
    let details = pdf::details(&pdf);
    let mut line = |name: &str, value: &str| writeln!(out, "{:<16} {value}", format!("{name}:"));
    for (name, value) in [
        ("Title", &details.title),
        ("Subject", &details.subject),
        ("Keywords", &details.keywords),
        ("Author", &details.author),
        ("Creator", &details.creator),
        ("Producer", &details.producer),
        ("CreationDate", &details.created),
        ("ModDate", &details.modified),
    ] {
        if !value.is_empty() {
            line(name, value)?;
        }
    }
    let yes = |is: bool| if is { "yes" } else { "no" };
    line("Tagged", yes(details.tagged))?;
    line("Form", if details.form { "AcroForm" } else { "none" })?;
    line("JavaScript", yes(details.script))?;
    let pages = pdf.pages();
    line("Pages", &pages.len().to_string())?;
    line("Encrypted", yes(encrypted))?;
    let several = first.is_some() || last.is_some();
    let from = first.unwrap_or(1);
    let to = last.unwrap_or(if several { pages.len() } else { 1 }).min(pages.len());
    for number in from..=to {
        let Some(page) = pages.get(number - 1) else { break };
        let (width, height) = page.base_dimensions();
        let size = format!("{} x {} pts{}", points(width), points(height), paper(width, height));
        let turn = match page.rotation() {
            hayro::hayro_syntax::page::Rotation::None => 0,
            hayro::hayro_syntax::page::Rotation::Horizontal => 90,
            hayro::hayro_syntax::page::Rotation::Flipped => 180,
            hayro::hayro_syntax::page::Rotation::FlippedHorizontal => 270,
        };
        if several {
            line(&format!("Page {number:>4} size"), &size)?;
            line(&format!("Page {number:>4} rot"), &turn.to_string())?;
        } else {
            line("Page size", &size)?;
            line("Page rot", &turn.to_string())?;
        }
    }
    line("File size", &format!("{size} bytes"))?;
    line("Optimized", yes(linear))?;
    line("PDF version", details.version)?;
    Ok(())
}

/// Six digits, as `%g` prints them.
fn points(value: f32) -> String {
    let value = f64::from(value);
    let digits = value.abs().max(1.0).log10().floor() as usize + 1;
    let text = format!("{value:.*}", 6_usize.saturating_sub(digits));
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn paper(width: f32, height: f32) -> &'static str {
    let near = |a: f32, b: f32| {
        (width - a).abs() < 1.0 && (height - b).abs() < 1.0 || (width - b).abs() < 1.0 && (height - a).abs() < 1.0
    };
    if near(595.28, 841.89) {
        " (A4)"
    } else if near(612.0, 792.0) {
        " (letter)"
    } else if near(841.89, 1_190.55) {
        " (A3)"
    } else if near(419.53, 595.28) {
        " (A5)"
    } else {
        ""
    }
}
