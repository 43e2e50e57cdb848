//! `soffice`: from one kind of file to another, and a macro over a file.

use std::io::Write;
use std::path::Path;

use super::macros;
use super::made::{self, Plain};
use super::words::{Word, Words, unknown};
use super::{check, sheets, with_end};
use crate::error::{Error, Result};
use crate::kind::{Kind, extension};
use crate::make::Setup;
use crate::make::picture::folder_of;
use crate::markup;

pub const USAGE: &str = "Usage: soffice --headless --convert-to FORMAT [--outdir DIR] FILE...
       soffice --headless vnd.sun.star.script:LIBRARY.MODULE.NAME FILE
Convert documents: FORMAT is pdf, docx, xlsx, csv, txt, html or md.

  --convert-to FORMAT[:FILTER]  the filter is not looked at
  --outdir DIR                  where the results go; else the working directory
  --headless, --norestore, --nologo, --invisible, -env:… and others of their kind are accepted

A macro is read from user/basic/LIBRARY/MODULE.xba in the profile (~/.config/libreoffice/4, or -env:UserInstallation=file://DIR). It can
calculate a workbook (calculateAll), accept the changes of a document (.uno:AcceptAllTrackedChanges), and store it.

To pdf and docx: Markdown, HTML and text with their look; other documents as their text, without pictures.
To xlsx and csv: CSV, TSV, JSON and workbooks. `libreoffice` is the same command.
";

pub fn run(arguments: &[String], out: &mut dyn Write) -> Result<()> {
    let mut format = None;
    let mut folder = None;
    let mut files: Vec<&str> = Vec::new();
    let (mut address, mut ends_at_once) = (None, false);
    let mut profile = format!("{}/.config/libreoffice/4", std::env::var("HOME").unwrap_or_default());
    let mut words = Words::new(arguments);
    while let Some(word) = words.next() {
        match word {
            Word::Option("--convert-to" | "-convert-to") => format = Some(words.value("--convert-to")?.to_owned()),
            Word::Option("--outdir" | "-outdir") => folder = Some(words.value("--outdir")?.to_owned()),
            Word::Option("--infilter") => drop(words.value("--infilter")?),
            Word::Option(
                "--headless"
                | "-headless"
                | "--invisible"
                | "--norestore"
                | "--nologo"
                | "--nofirststartwizard"
                | "--nodefault"
                | "--nolockcheck"
                | "--writer"
                | "--calc"
                | "--safe-mode",
            ) => {}
            Word::Option("--terminate_after_init") => ends_at_once = true,
            Word::Option(option) if option.starts_with("-env:") => {
                if let Some(folder) = option.strip_prefix("-env:UserInstallation=file://") {
                    folder.trim_end_matches('/').clone_into(&mut profile);
                }
            }
            Word::Option(option) => return Err(unknown(option)),
            Word::Operand(word) if word.starts_with("vnd.sun.star.script:") || word.starts_with("macro:///") => {
                address = Some(word);
            }
            Word::Operand(file) => files.push(file),
        }
    }
    if ends_at_once && files.is_empty() {
        return Ok(());
    }
    if files.is_empty() {
        return Err(Error::new("a file is needed (see soffice --help)"));
    }
    for file in &files {
        check(file)?;
    }
    if let Some(address) = address {
        return files.into_iter().try_for_each(|file| macros::run(address, &profile, file, out));
    }
    let format =
        format.ok_or_else(|| Error::new("there is no window here: --convert-to FORMAT or a macro is needed"))?;
    let format = format.split(':').next().unwrap_or_default().to_ascii_lowercase();
    if let Some(folder) = &folder {
        std::fs::create_dir_all(folder).map_err(|e| Error::new(format!("{folder}: {e}")))?;
    }
    for file in files {
        let name = Path::new(file).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let target = with_end(&name, &format);
        let target =
            folder.as_ref().map_or(target.clone(), |folder| format!("{}/{target}", folder.trim_end_matches('/')));
        if same(file, &target) {
            return Err(Error::new(format!("{file}: it would be overwritten by its result: give --outdir")));
        }
        convert(file, &format, &target, out)?;
        writeln!(out, "convert {file} -> {target}")?;
    }
    Ok(())
}

fn same(first: &str, second: &str) -> bool {
    let full = |path: &str| std::fs::canonicalize(path).ok();
    full(first).is_some() && full(first) == full(second)
}

fn convert(file: &str, format: &str, target: &str, out: &mut dyn Write) -> Result<()> {
    match format {
        "pdf" | "docx" => {
            let text = made::read(file, None, Plain::Lines)?;
            let mut setup = Setup { folder: folder_of(file), ..Setup::default() };
            // Wide tables need wide paper.
            let is_sheet = matches!(extension(file).as_str(), "csv" | "tsv" | "xlsx" | "xls" | "ods" | "xlsb");
            let columns = text.text.lines().take(200).map(|line| line.matches(" | ").count() + 1).max().unwrap_or(0);
            setup.is_landscape = is_sheet && columns > 7;
            setup.is_unnumbered = !is_sheet && text.is_html;
            made::write("soffice", &[text], &setup, target, format == "pdf", out)
        }
        "xlsx" => sheets::to_workbook(&[file], target, &sheets::Options::default(), out),
        "csv" => sheets::to_csv(file, target, ',', None, out),
        "tsv" => sheets::to_csv(file, target, '\t', None, out),
        "txt" | "text" | "html" | "htm" | "md" | "markdown" => {
            let text = made::read(file, None, Plain::Markdown)?;
            let markdown = if text.is_html { html_to_markdown(&text.text)? } else { text.text };
            let converted = match format {
                "html" | "htm" => markup::to_page(&markdown, &text.title),
                "txt" | "text" => markup::to_plain(&markdown),
                _ => format!("{}\n", markdown.trim_end()),
            };
            super::save(target, converted.as_bytes(), out)
        }
        other => {
            Err(Error::new(format!("cannot write `{other}` here; there are pdf, docx, xlsx, csv, txt, html and md")))
        }
    }
}

fn html_to_markdown(html: &str) -> Result<String> {
    let reading = crate::read::Reading { paged: false, ..crate::read::Reading::default() };
    let document = crate::read::read_as(Kind::Html, html.as_bytes().to_vec(), &reading)?;
    Ok(super::pandoc::join_parts(&document))
}
