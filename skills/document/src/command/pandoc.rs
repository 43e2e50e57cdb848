//! `pandoc`: documents as Markdown, plain text, HTML, PDF or DOCX.

mod options;

use std::io::Write;

use super::made::{self, Plain};
use super::{load, save, with_path};
use crate::document::Document;
use crate::error::{Error, Result};
use crate::kind::{self, Kind, extension};
use crate::make::Setup;
use crate::make::picture::folder_of;
use crate::markup;
use crate::out::Style;
use crate::read::{self, Reading};
use options::Options;

pub const USAGE: &str = "Usage: pandoc [OPTION]... [FILE]...
Convert DOCX, ODT, HTML, EPUB, RTF or Markdown (also PDF, PPTX, XLSX, CSV) to Markdown, plain text, HTML, PDF or DOCX.

  -f FORMAT, --from    docx, odt, html, epub, rtf, markdown, …; else the files tell
  -t FORMAT, --to      markdown, gfm, commonmark, plain, html, pdf or docx; else the end of the output's name tells, or html
  -o FILE, --output    the output
  -s, --standalone     a whole HTML page
  --extract-media DIR  save pictures into DIR
  --track-changes=WAY  of DOCX: accept, reject, or all, which shows insertions, deletions and comments with their authors
  --wrap, --columns    accepted; lines are not wrapped

For PDF and DOCX:
  -M NAME=VALUE        title, subtitle, author, date, lang; also in a head of YAML (---)
  -V NAME=VALUE        geometry:margin=2cm (top, right, bottom, left, landscape), papersize=a4, fontsize=11pt,
                       mainfont=FILE.ttf, linestretch=1.2, toc, pagestyle=empty (no page numbers)
  --toc, --toc-depth N contents with page numbers
  -N                   number headings
  -c FILE, --css       a style sheet
  --resource-path DIR  where pictures are
  --pdf-engine, --highlight-style, --dpi  accepted; there is one way to make pages here, and code has no colours

In Markdown, \\newpage begins a page, and ![](a.png){width=50%} sets the width of a picture. Pictures on the network are left out.
";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Markdown,
    Plain,
    Html,
    Pdf,
    Docx,
}

pub fn run(arguments: &[String], out: &mut dyn Write) -> Result<()> {
    let options = options::parse(arguments)?;
    let output = options.output.as_deref().unwrap_or("-");
    let target = target(options.to.as_deref(), output)?;
    let from = options.from.as_deref().map(source).transpose()?;
    if matches!(target, Target::Pdf | Target::Docx) {
        return make(&options, from, output, target == Target::Pdf, out);
    }
    let style = if target == Target::Plain { Style::Text } else { Style::Markdown };
    let passwords = super::passwords(None);
    let attachments = options.media.is_some();
    let changes = options.changes;
    let reading = Reading { style, paged: false, attachments, passwords: &passwords, changes, ..Reading::default() };
    let mut texts = Vec::new();
    let mut title = String::new();
    for path in &options.files {
        let bytes = load(path)?;
        let kind = match from {
            // A format that the bytes cannot have is a mistake of the caller, which the bytes mend.
            Some(kind) if is_text(kind) => kind,
            _ => kind::find(&bytes, path).map_err(with_path(path))?,
        };
        let kind = if path == "-" && kind == Kind::Text { Kind::Markdown } else { kind };
        let is_markdown = matches!(kind, Kind::Markdown | Kind::Text);
        let document = read::read_as(kind, bytes, &reading).map_err(with_path(path))?;
        if let Some(directory) = &options.media {
            crate::answer::save_attachments(&document, directory)?;
        }
        title = document.find_fact("title").unwrap_or(&title).to_owned();
        let text = join_parts(&document);
        texts.push(if is_markdown && target == Target::Plain { markup::to_plain(&text) } else { text });
    }
    let text = texts.join("\n\n");
    let converted = match target {
        Target::Html if options.standalone => markup::to_page(&text, &title),
        Target::Html => markup::to_html(&text),
        _ => format!("{}\n", text.trim_end()),
    };
    save(output, converted.as_bytes(), out)
}

fn make(options: &Options, from: Option<Kind>, output: &str, is_pdf: bool, out: &mut dyn Write) -> Result<()> {
    if output == "-" && options.to.is_none() {
        return Err(made::needs_file("pandoc"));
    }
    let mut texts = Vec::new();
    for path in &options.files {
        texts.push(made::read(path, from, Plain::Markdown)?);
    }
    let folder =
        options.folder.as_deref().map(|folder| folder.split(':').find(|part| !part.is_empty()).unwrap_or(".").into());
    let folder = folder.unwrap_or_else(|| folder_of(&options.files[0]));
    let setup = Setup { folder, ..options.setup.clone() };
    made::write("pandoc", &texts, &setup, output, is_pdf, out)
}

/// The name of a format without its extensions (`markdown+smart`).
fn base(format: &str) -> &str {
    format.split(['+', '-']).next().unwrap_or_default()
}

fn target(to: Option<&str>, output: &str) -> Result<Target> {
    let end = extension(output);
    let name = to.map_or(end.as_str(), base);
    match name {
        "html" | "html5" | "latex" if end == "pdf" => Ok(Target::Pdf),
        "markdown" | "gfm" | "commonmark" | "commonmark_x" | "markdown_strict" | "markdown_github" | "markdown_mmd"
        | "markdown_phpextra" | "md" => Ok(Target::Markdown),
        "plain" | "txt" | "text" => Ok(Target::Plain),
        "html" | "html5" | "html4" | "htm" | "xhtml" => Ok(Target::Html),
        "pdf" => Ok(Target::Pdf),
        "docx" => Ok(Target::Docx),
        "" => Ok(Target::Html),
        _ if to.is_none() && output == "-" => Ok(Target::Html),
        other => Err(Error::new(format!(
            "cannot write `{other}` here; there are markdown, gfm, commonmark, plain, html, pdf and docx"
        ))),
    }
}

fn source(from: &str) -> Result<Kind> {
    Ok(match base(from) {
        "markdown" | "gfm" | "commonmark" | "commonmark_x" | "markdown_strict" | "markdown_github" | "markdown_mmd"
        | "md" => Kind::Markdown,
        "plain" | "text" => Kind::Text,
        "html" | "html5" | "html4" => Kind::Html,
        "csv" | "tsv" => Kind::Csv,
        "docx" => Kind::Docx,
        "doc" => Kind::Doc,
        "odt" => Kind::Odt,
        "epub" | "epub2" | "epub3" => Kind::Epub,
        "rtf" => Kind::Rtf,
        "pdf" => Kind::Pdf,
        "pptx" => Kind::Pptx,
        "xlsx" => Kind::Xlsx,
        other => {
            return Err(Error::new(format!(
                "cannot read `{other}` here; there are docx, odt, epub, html, rtf, markdown, csv, pdf, pptx and xlsx"
            )));
        }
    })
}

fn is_text(kind: Kind) -> bool {
    matches!(kind, Kind::Markdown | Kind::Text | Kind::Html | Kind::Csv)
}

/// The text of all parts, with titles of slides and sheets as headings.
pub fn join_parts(document: &Document) -> String {
    let parts = document.parts.iter().map(|part| match document.kind {
        Kind::Pptx | Kind::Ppt | Kind::Odp if !part.title.is_empty() => format!("## {}\n\n{}", part.title, part.text),
        _ if document.kind.unit() == "sheet" => format!("## {}\n\n{}", part.title, part.text),
        _ => part.text.clone(),
    });
    parts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
}
