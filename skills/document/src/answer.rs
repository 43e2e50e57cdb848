//! Answers a request: the text of a document, its outline, passages, or pages as pictures.

mod outline;
mod save;
mod show;

use std::path::{Path, PathBuf};

use crate::document::Document;
use crate::error::{Error, Result};
use crate::out::Style;
use crate::read::{self, Reading};
use crate::request::{Format, Request};
use crate::{kind, limits, search};

pub use save::safe_name;

/// Answers a request. `base` is the directory that relative paths begin at.
pub fn answer(request: &Request, base: &Path) -> Result<String> {
    let bytes = load(&base.join(&request.file)).map_err(|error| name_file(request, &error))?;
    answer_bytes(request, base, bytes)
}

fn name_file(request: &Request, error: &Error) -> Error {
    Error::new(format!("{}: {error}", request.file))
}

/// Answers a request for a file that was read already.
pub fn answer_bytes(request: &Request, base: &Path, bytes: Vec<u8>) -> Result<String> {
    let path = base.join(&request.file);
    let named = |error: Error| name_file(request, &error);
    if let Some(pages) = &request.render {
        return save::render(request, pages, bytes, &path, base).map_err(named);
    }
    let whole = request.outline || request.search.is_some();
    let reading = Reading {
        style: if request.format == Format::Text { Style::Text } else { Style::Markdown },
        pages: request.pages.clone(),
        sheet: request.sheet.as_deref(),
        passwords: &request.passwords,
        // Four bytes are the most that a character has.
        limit: if whole { limits::TEXT_BYTES } else { request.max.saturating_add(request.from).saturating_mul(4) },
        attachments: request.attachments.is_some(),
        ..Reading::default()
    };
    let document = read::read(bytes, &request.file, &reading).map_err(named)?;
    let saved = match &request.attachments {
        Some(directory) => save::attachments(&document, &base.join(directory), directory).map_err(named)?,
        None => Vec::new(),
    };
    if let Some(words) = &request.search {
        return Ok(show::passages(&document, words, &search::find(&document, words), request));
    }
    if request.outline {
        return Ok(outline::write(&document, &saved, request));
    }
    Ok(show::text(&document, &saved, request))
}

/// Saves attachments into a directory that a command names.
pub fn save_attachments(document: &Document, directory: &str) -> Result<()> {
    save::attachments(document, Path::new(directory), directory)?;
    Ok(())
}

/// Reads a file as a whole.
pub fn load(path: &Path) -> Result<Vec<u8>> {
    let reason = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::new("there is no such file"),
        _ => Error::from(error),
    };
    let metadata = std::fs::metadata(path).map_err(reason)?;
    if metadata.is_dir() {
        return Err("it is a directory".into());
    }
    if metadata.len() > limits::FILE_BYTES {
        return Err(Error::limit(&format!("it has {} bytes", metadata.len()), limits::FILE_BYTES));
    }
    std::fs::read(path).map_err(reason)
}

/// The name of a file without its folders and its end.
fn stem(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The folder that a file is in.
fn folder(path: &Path) -> PathBuf {
    path.parent().map(Path::to_path_buf).unwrap_or_default()
}

/// The count of the parts, such as `3 pages`; empty for documents of one.
fn extent(document: &Document) -> Option<(&'static str, usize)> {
    let unit = document.kind.unit();
    let plural = match unit {
        "page" => "pages",
        "slide" => "slides",
        "sheet" => "sheets",
        "chapter" => "chapters",
        "message" => "messages",
        _ => return None,
    };
    let told = document.total > 1 || document.kind.is_always_labelled() || document.kind == kind::Kind::Mbox;
    told.then_some((plural, document.total))
}
