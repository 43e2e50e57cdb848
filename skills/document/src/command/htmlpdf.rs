//! `wkhtmltopdf` and `weasyprint`: HTML to PDF.

use std::io::Write;

use super::made::{self, Plain};
use super::words::{Word, Words, unknown};
use super::{check, load};
use crate::charset;
use crate::error::{Error, Result};
use crate::kind::Kind;
use crate::make::Setup;
use crate::make::paper::{PAGE, TOTAL, named, points};
use crate::make::picture::folder_of;

pub const USAGE: &str = "Usage: wkhtmltopdf [OPTION]... IN.html... OUT.pdf
Make a PDF file of HTML with the part of CSS that documents use; scripts do not run, and nothing is fetched.

  -s SIZE, --page-size    A4, Letter, …; --page-width, --page-height
  -O Landscape, --orientation
  -T, -R, -B, -L LENGTH   margins: --margin-top, --margin-right, --margin-bottom, --margin-left; else 10mm, or those of @page
  --title TEXT, --user-style-sheet FILE, toc
  --header-left, --header-center, --header-right, --footer-left, --footer-center, --footer-right TEXT
                          with [page], [topage] and [title]
  -q, --encoding, --dpi, --zoom, --enable-local-file-access and others of their kind are accepted
";

pub const WEASY_USAGE: &str = "Usage: weasyprint [OPTION]... IN.html OUT.pdf
Make a PDF file of HTML with the part of CSS that documents use; nothing is fetched from the network.

  -s FILE, --stylesheet  one more style sheet
  -u DIR, --base-url     where pictures are
  -e, --encoding, -m, --media-type, -q, -v, -p, --optimize-images, --full-fonts, -D, -j  accepted
";

pub fn run(arguments: &[String], out: &mut dyn Write) -> Result<()> {
    let mut setup = Setup { default_margin: Some(28.35), is_unnumbered: true, ..Setup::default() };
    let (mut width, mut height) = (None, None);
    let mut files: Vec<&str> = Vec::new();
    let mut words = Words::new(arguments);
    while let Some(word) = words.next() {
        let option = match word {
            Word::Operand("toc") => {
                setup.has_contents = true;
                continue;
            }
            Word::Operand("page") => continue,
            Word::Operand("cover") => return Err(Error::new("a cover is not supported here: give its file first")),
            Word::Operand(file) => {
                files.push(file);
                continue;
            }
            Word::Option(option) => option,
        };
        let side = match option {
            "-T" | "--margin-top" => Some(0),
            "-R" | "--margin-right" => Some(1),
            "-B" | "--margin-bottom" => Some(2),
            "-L" | "--margin-left" => Some(3),
            _ => None,
        };
        if let Some(side) = side {
            setup.margin[side] = Some(length(option, words.value(option)?)?);
            continue;
        }
        match option {
            "-s" | "--page-size" => {
                let value = words.value(option)?;
                setup.size =
                    Some(named(value).ok_or_else(|| {
                        Error::new(format!("the option {option}: `{value}` is not a size such as A4"))
                    })?);
            }
            "--page-width" => width = Some(length(option, words.value(option)?)?),
            "--page-height" => height = Some(length(option, words.value(option)?)?),
            "-O" | "--orientation" => setup.is_landscape = words.value(option)?.eq_ignore_ascii_case("landscape"),
            "--title" => {
                let title = words.value(option)?.to_owned();
                setup.facts.push(("file-title".to_owned(), title));
            }
            "--user-style-sheet" => setup.sheets.push(charset::decode(&load(words.value(option)?)?, Some("utf-8"))),
            "--encoding"
            | "--dpi"
            | "-d"
            | "--zoom"
            | "--image-dpi"
            | "--image-quality"
            | "--log-level"
            | "--javascript-delay"
            | "--minimum-font-size"
            | "--load-error-handling"
            | "--load-media-error-handling"
            | "--viewport-size"
            | "--footer-font-size"
            | "--footer-font-name"
            | "--footer-spacing"
            | "--header-font-size"
            | "--header-font-name"
            | "--header-spacing"
            | "--allow"
            | "--outline-depth"
            | "--toc-header-text" => {
                let value = words.value(option)?;
                if option == "--toc-header-text" {
                    setup.facts.push(("toc-title".to_owned(), value.to_owned()));
                }
            }
            "-q"
            | "--quiet"
            | "--enable-local-file-access"
            | "--disable-local-file-access"
            | "--print-media-type"
            | "--no-print-media-type"
            | "--disable-smart-shrinking"
            | "--enable-smart-shrinking"
            | "--disable-javascript"
            | "--enable-javascript"
            | "-n"
            | "--background"
            | "--no-stop-slow-scripts"
            | "--outline"
            | "--footer-line"
            | "--header-line"
            | "--enable-internal-links"
            | "--enable-external-links"
            | "--no-footer-line"
            | "--no-header-line"
            | "--disable-dotted-lines"
            | "--no-pdf-compression"
            | "--lowquality"
            | "-l" => {}
            _ => margin_text(&mut setup, option, &mut words)?,
        }
    }
    if let (Some(width), Some(height)) = (width, height) {
        setup.size = Some((width, height));
    }
    if let [file] = files.as_slice() {
        check(file)?;
    }
    let output = files.pop().filter(|_| !files.is_empty()).ok_or_else(|| made::needs_file("wkhtmltopdf"))?;
    write("wkhtmltopdf", &files, setup, output, out)
}

fn margin_text(setup: &mut Setup, option: &str, words: &mut Words) -> Result<()> {
    let (row, column) = option.trim_start_matches('-').split_once('-').unwrap_or_default();
    let column = ["left", "center", "right"].iter().position(|name| *name == column);
    let rows = match row {
        "header" => &mut setup.texts.head,
        "footer" => &mut setup.texts.foot,
        _ => return Err(unknown(option)),
    };
    let column = column.ok_or_else(|| unknown(option))?;
    let text = words.value(option)?;
    let text = text.replace("[page]", &PAGE.to_string()).replace("[frompage]", "1");
    rows[column] = text.replace("[topage]", &TOTAL.to_string()).replace("[toPage]", &TOTAL.to_string());
    Ok(())
}

fn length(option: &str, value: &str) -> Result<f32> {
    let found = points(value, "mm").filter(|points| *points >= 0.0);
    found.ok_or_else(|| Error::new(format!("the option {option}: `{value}` is not a length such as 10mm")))
}

pub fn weasy(arguments: &[String], out: &mut dyn Write) -> Result<()> {
    let mut setup = Setup { is_unnumbered: true, ..Setup::default() };
    let mut folder = None;
    let mut files: Vec<&str> = Vec::new();
    let mut words = Words::new(arguments);
    while let Some(word) = words.next() {
        match word {
            Word::Option(option @ ("-s" | "--stylesheet")) => {
                setup.sheets.push(charset::decode(&load(words.value(option)?)?, Some("utf-8")));
            }
            Word::Option(option @ ("-u" | "--base-url")) => folder = Some(words.value(option)?),
            Word::Option(
                option @ ("-e" | "--encoding" | "-m" | "--media-type" | "-D" | "--dpi" | "-j" | "--jpeg-quality"
                | "--pdf-version" | "-t" | "--timeout" | "-c" | "--cache-folder"),
            ) => {
                words.value(option)?;
            }
            Word::Option(
                "-q"
                | "--quiet"
                | "-v"
                | "--verbose"
                | "-d"
                | "--debug"
                | "-p"
                | "--presentational-hints"
                | "-O"
                | "--optimize-images"
                | "--full-fonts"
                | "--hinting"
                | "--uncompressed-pdf"
                | "--custom-metadata"
                | "--pdf-identifier",
            ) => {}
            Word::Option(option) => return Err(unknown(option)),
            Word::Operand(file) => files.push(file),
        }
    }
    let (file, output) = match files.as_slice() {
        [file, output] => (*file, *output),
        [file] => {
            check(file)?;
            return Err(made::needs_file("weasyprint"));
        }
        [_, _, more, ..] => return Err(super::words::unexpected(more)),
        [] => return Err(Error::new("a file is needed (see weasyprint --help)")),
    };
    if let Some(folder) = folder {
        setup.folder = folder.strip_prefix("file://").unwrap_or(folder).into();
    }
    write("weasyprint", &[file], setup, output, out)
}

fn write(name: &str, files: &[&str], mut setup: Setup, output: &str, out: &mut dyn Write) -> Result<()> {
    let mut texts = Vec::new();
    for file in files {
        if file.starts_with("http:") || file.starts_with("https:") {
            return Err(Error::new(format!("{file}: pages are not fetched here: download it first")));
        }
        // `-` and files of any name are HTML to these commands.
        let mut text = made::read(file, Some(Kind::Html), Plain::Lines)?;
        if texts.is_empty() && setup.folder.as_os_str().is_empty() {
            setup.folder = folder_of(file);
        }
        if !texts.is_empty() {
            text.text = format!("<div style=\"page-break-before: always\"></div>{}", text.text);
        }
        texts.push(text);
    }
    let title = texts.first().and_then(|text| {
        let start = text.text.find("<title>")? + 7;
        let end = start + text.text[start..].find("</title>")?;
        Some(text.text[start..end].trim().to_owned())
    });
    for text in setup.texts.head.iter_mut().chain(&mut setup.texts.foot) {
        *text = text
            .replace("[title]", title.as_deref().unwrap_or_default())
            .replace("[doctitle]", title.as_deref().unwrap_or_default());
    }
    made::write(name, &texts, &setup, output, true, out)
}
