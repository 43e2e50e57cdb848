//! The options of `pandoc`.

use super::super::words::{Word, Words, unknown};
use crate::error::{Error, Result};
use crate::make::Setup;
use crate::make::paper::{named, points};
use crate::make::prepare::take_geometry;
use crate::read::Changes;

#[derive(Default)]
pub struct Options {
    pub from: Option<String>,
    pub to: Option<String>,
    pub output: Option<String>,
    pub standalone: bool,
    pub media: Option<String>,
    pub folder: Option<String>,
    pub setup: Setup,
    pub changes: Changes,
    pub files: Vec<String>,
}

pub fn parse(arguments: &[String]) -> Result<Options> {
    let mut options = Options::default();
    let mut words = Words::new(arguments);
    while let Some(word) = words.next() {
        match word {
            Word::Option(option) => take_option(&mut options, option, &mut words)?,
            Word::Operand(file) => options.files.push(file.to_owned()),
        }
    }
    if options.files.is_empty() {
        options.files.push("-".to_owned());
    }
    Ok(options)
}

fn take_option(options: &mut Options, option: &str, words: &mut Words) -> Result<()> {
    match option {
        "-f" | "-r" | "--from" | "--read" => options.from = Some(words.value(option)?.to_owned()),
        "-t" | "-w" | "--to" | "--write" => options.to = Some(words.value(option)?.to_owned()),
        "-o" | "--output" => options.output = Some(words.value(option)?.to_owned()),
        "-s" | "--standalone" | "--self-contained" | "--embed-resources" => options.standalone = true,
        "--extract-media" => options.media = Some(words.value(option)?.to_owned()),
        "--resource-path" => options.folder = Some(words.value(option)?.to_owned()),
        "-V" | "--variable" => variable(&mut options.setup, words.value(option)?)?,
        "-M" | "--metadata" => fact(&mut options.setup, words.value(option)?),
        "--toc" | "--table-of-contents" => options.setup.has_contents = true,
        "--toc-depth" => options.setup.contents_depth = Some(words.number(option)?),
        "-N" | "--number-sections" => options.setup.is_numbered = true,
        "-c" | "--css" => {
            let path = words.value(option)?;
            let bytes = super::super::load(path)?;
            options.setup.sheets.push(crate::charset::decode(&bytes, Some("utf-8")));
        }
        "--track-changes" => {
            options.changes = match words.value(option)? {
                "accept" => Changes::Accepted,
                "reject" => Changes::Rejected,
                "all" => Changes::Shown,
                other => return Err(Error::new(format!("--track-changes is accept, reject or all, not `{other}`"))),
            };
        }
        "--wrap"
        | "--columns"
        | "--markdown-headings"
        | "--pdf-engine"
        | "--pdf-engine-opt"
        | "--highlight-style"
        | "--dpi"
        | "--tab-stop"
        | "--eol"
        | "--syntax-highlighting" => {
            words.value(option)?;
        }
        "--atx-headers" | "--quiet" | "--reference-links" | "--no-highlight" | "--listings" | "--mathjax" => {}
        _ if !option.starts_with("--") && option.is_char_boundary(2) && option.len() > 2 => {
            let (letter, value) = option.split_at(2);
            match letter {
                "-f" | "-r" => options.from = Some(value.to_owned()),
                "-t" | "-w" => options.to = Some(value.to_owned()),
                "-o" => options.output = Some(value.to_owned()),
                "-V" => variable(&mut options.setup, value)?,
                "-M" => fact(&mut options.setup, value),
                _ => return Err(unknown(option)),
            }
        }
        _ => return Err(unknown(option)),
    }
    Ok(())
}

fn pair(text: &str) -> (&str, &str) {
    let (name, value) = text.split_once(['=', ':']).unwrap_or((text, "true"));
    (name.trim(), value.trim())
}

fn fact(setup: &mut Setup, text: &str) {
    let (name, value) = pair(text);
    setup.facts.push((name.to_ascii_lowercase(), value.to_owned()));
}

/// Variables of templates: those that say how pages look. Others have no template here that knows them.
fn variable(setup: &mut Setup, text: &str) -> Result<()> {
    let (name, value) = pair(text);
    let wrong = |what: &str| Error::new(format!("the variable {name}: `{value}` is not {what}"));
    let length = || points(value, "pt").filter(|points| *points >= 0.0).ok_or_else(|| wrong("a length such as 2cm"));
    match name {
        "geometry" => take_geometry(setup, value, true)?,
        "papersize" => setup.size = Some(named(value).ok_or_else(|| wrong("a size such as a4 or letter"))?),
        "fontsize" => setup.font_size = Some(length()?.clamp(3.0, 100.0)),
        "mainfont" | "sansfont" => setup.main_font = Some(value.to_owned()),
        "linestretch" => {
            let factor: f32 = value.parse().map_err(|_| wrong("a number"))?;
            setup.line_height = Some(factor.clamp(0.5, 5.0) * 1.25);
        }
        "margin-top" => setup.margin[0] = Some(length()?),
        "margin-right" => setup.margin[1] = Some(length()?),
        "margin-bottom" => setup.margin[2] = Some(length()?),
        "margin-left" => setup.margin[3] = Some(length()?),
        "landscape" => setup.is_landscape = true,
        "classoption" if value == "landscape" => setup.is_landscape = true,
        "toc" => setup.has_contents = value != "false",
        "pagestyle" => setup.is_unnumbered = value == "empty",
        "title" | "subtitle" | "author" | "date" | "lang" | "toc-title" => fact(setup, text),
        _ => {}
    }
    Ok(())
}
