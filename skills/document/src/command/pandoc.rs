//! `pandoc`: documents as Markdown, plain text or HTML.

use std::io::Write;

use super::words::{Word, Words, unknown};
use super::{at, load, save};
use crate::document::Document;
use crate::error::{Error, Result};
use crate::kind::{self, Kind, extension};
use crate::markup;
use crate::out::Style;
use crate::read::{self, Reading};

pub const USAGE: &str = "Usage: pandoc [OPTION]... [FILE]...
Convert DOCX, ODT, HTML, EPUB, RTF or Markdown (also PDF, PPTX, XLSX, CSV) to Markdown, plain text or HTML.

  -f FORMAT, --from    docx, odt, html, epub, rtf, markdown, …; else the files tell
  -t FORMAT, --to      markdown, gfm, commonmark, plain or html; else the end of the output's name tells, or html
  -o FILE, --output    the output
  -s, --standalone     a whole HTML page
  --extract-media DIR  save pictures into DIR
  --wrap, --columns    accepted; lines are not wrapped
";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Markdown,
    Plain,
    Html,
}

#[derive(Default)]
struct Options {
    from: Option<String>,
    to: Option<String>,
    output: Option<String>,
    standalone: bool,
    media: Option<String>,
    files: Vec<String>,
}

pub fn run(arguments: &[String], out: &mut dyn Write) -> Result<()> {
    let options = parse(arguments)?;
    let output = options.output.as_deref().unwrap_or("-");
    let target = target(options.to.as_deref(), output)?;
    let from = options.from.as_deref().map(source).transpose()?;
    let style = if target == Target::Plain { Style::Text } else { Style::Markdown };
    let reading = Reading { style, paged: false, attachments: options.media.is_some(), ..Reading::default() };
    let mut texts = Vec::new();
    let mut title = String::new();
    for path in &options.files {
        let bytes = load(path)?;
        let kind = match from {
            // A format that the bytes cannot have is a mistake of the caller, which the bytes mend.
            Some(kind) if is_text(kind) => kind,
            _ => kind::find(&bytes, path).map_err(at(path))?,
        };
        let kind = if path == "-" && kind == Kind::Text { Kind::Markdown } else { kind };
        let is_markdown = matches!(kind, Kind::Markdown | Kind::Text);
        let document = read::read_as(kind, bytes, &reading).map_err(at(path))?;
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
        Target::Markdown | Target::Plain => format!("{}\n", text.trim_end()),
    };
    save(output, converted.as_bytes(), out)
}

fn parse(arguments: &[String]) -> Result<Options> {
    let mut options = Options::default();
    let mut words = Words::new(arguments);
    while let Some(word) = words.next() {
        match word {
            Word::Option("-f" | "-r" | "--from" | "--read") => options.from = Some(words.value("--from")?.to_owned()),
            Word::Option("-t" | "-w" | "--to" | "--write") => options.to = Some(words.value("--to")?.to_owned()),
            Word::Option("-o" | "--output") => options.output = Some(words.value("--output")?.to_owned()),
            Word::Option("-s" | "--standalone") => options.standalone = true,
            Word::Option("--extract-media") => options.media = Some(words.value("--extract-media")?.to_owned()),
            Word::Option("--wrap" | "--columns" | "--markdown-headings" | "--track-changes" | "--metadata" | "-M") => {
                words.value("--wrap")?;
            }
            Word::Option(
                "--atx-headers" | "--quiet" | "--embed-resources" | "--self-contained" | "--reference-links",
            ) => {}
            Word::Option(option) if !option.starts_with("--") && option.is_char_boundary(2) => {
                let (letter, value) = option.split_at(2);
                match letter {
                    "-f" | "-r" => options.from = Some(value.to_owned()),
                    "-t" | "-w" => options.to = Some(value.to_owned()),
                    "-o" => options.output = Some(value.to_owned()),
                    _ => return Err(unknown(option)),
                }
            }
            Word::Option(option) => return Err(unknown(option)),
            Word::Operand(file) => options.files.push(file.to_owned()),
        }
    }
    if options.files.is_empty() {
        options.files.push("-".to_owned());
    }
    Ok(options)
}

/// The name of a format without its extensions (`markdown+smart`).
fn base(format: &str) -> &str {
    format.split(['+', '-']).next().unwrap_or_default()
}

fn target(to: Option<&str>, output: &str) -> Result<Target> {
    let end = extension(output);
    let name = to.map_or(end.as_str(), base);
    match name {
        "markdown" | "gfm" | "commonmark" | "commonmark_x" | "markdown_strict" | "markdown_github" | "markdown_mmd"
        | "markdown_phpextra" | "md" => Ok(Target::Markdown),
        "plain" | "txt" | "text" => Ok(Target::Plain),
        "html" | "html5" | "html4" | "htm" | "xhtml" => Ok(Target::Html),
        "" => Ok(Target::Html),
        _ if to.is_none() && output == "-" => Ok(Target::Html),
        other => {
            Err(Error::new(format!("cannot write `{other}` here; there are markdown, gfm, commonmark, plain and html")))
        }
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
