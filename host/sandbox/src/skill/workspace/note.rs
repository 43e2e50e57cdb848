//! The host's own look at files that a guest names.

use super::structure::enter;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use kiso_plan::report::FileNote;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Why a path that a guest named cannot be shown to a person.
#[derive(Debug, thiserror::Error)]
pub enum NoteError {
    #[error("there is no such file in the workspace")]
    NotFound,
    #[error("it leads out of the workspace")]
    Outside,
    #[error("it is not a regular file")]
    NotRegular,
    #[error("a link stands in its path")]
    Link,
    #[error("{0}")]
    Io(io::Error),
}

/// Looks at a file that a guest named, "/work/pub/a.svg" or "pub/a.svg", without ever leaving the workspace or
/// following a link: what it leads to could be another file by the time that somebody opens it.
pub fn note(work: &Path, named: &str) -> Result<FileNote, NoteError> {
    let named = Path::new(named);
    let relative = named.strip_prefix("/work").unwrap_or(named);
    if relative.components().any(|c| !matches!(c, Component::Normal(_) | Component::CurDir)) {
        return Err(NoteError::Outside);
    }
    let relative: PathBuf = relative.components().filter(|c| matches!(c, Component::Normal(_))).collect();
    let io = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => NoteError::NotFound,
        io::ErrorKind::PermissionDenied => NoteError::Outside,
        _ => NoteError::Io(error),
    };
    let mut dir = Dir::open_ambient_dir(work, ambient_authority()).map_err(io)?;
    let (parent, name) = (relative.parent().unwrap_or(Path::new("")), relative.file_name().unwrap_or_default());
    for part in parent {
        dir = match enter(&dir, part) {
            Err(_) if dir.symlink_metadata(part).is_ok_and(|there| there.is_symlink()) => return Err(NoteError::Link),
            opened => opened.map_err(io)?,
        };
    }
    let metadata = dir.symlink_metadata(name).map_err(io)?;
    if !metadata.is_file() {
        return Err(NoteError::NotRegular);
    }
    let path = relative.to_str().ok_or(NoteError::NotRegular)?.to_owned();
    let media_type = media_type(&path).to_owned();
    Ok(FileNote { path, media_type, bytes: metadata.len(), title: None, link: None })
}

/// The media type that a file's name tells.
pub fn media_type(path: &str) -> &'static str {
    let extension = Path::new(path).extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
    match extension.as_str() {
        "csv" => "text/csv",
        "gif" => "image/gif",
        "gz" => "application/gzip",
        "htm" | "html" => "text/html",
        "jpeg" | "jpg" => "image/jpeg",
        "json" => "application/json",
        "jsonl" => "application/jsonl",
        "md" => "text/markdown",
        "mp3" => "audio/mpeg",
        "mp4" => "video/mp4",
        "oga" | "ogg" => "audio/ogg",
        "ogv" => "video/ogg",
        "pdf" => "application/pdf",
        "png" => "image/png",
        "svg" => "image/svg+xml",
        "tar" => "application/x-tar",
        "tsv" => "text/tab-separated-values",
        "txt" | "log" => "text/plain",
        "wav" => "audio/wav",
        "webm" => "video/webm",
        "webp" => "image/webp",
        "xml" => "application/xml",
        "zip" => "application/zip",
        _ => "application/octet-stream",
    }
}
