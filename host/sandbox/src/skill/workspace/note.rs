//! The host's own access to files that a guest names.

use super::structure::enter;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use kiso_plan::report::{FileNote, UNKNOWN_TYPE};
use std::io;
use std::path::{Component, Path, PathBuf};

/// The reason why a guest's path cannot be shown to a person.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoteError {
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

/// Examines a file that a guest named, "/work/pub/a.svg" or "pub/a.svg", without leaving the workspace or following a link: its
/// target could be another file when somebody opens it.
pub(crate) fn note(work: &Path, named: &str) -> Result<FileNote, NoteError> {
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

/// The media type for a file's name.
pub fn media_type(path: &str) -> &'static str {
    let extension = Path::new(path).extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
    match extension.as_str() {
        "atom" => "application/atom+xml",
        "bz2" => "application/x-bzip2",
        "c" | "h" => "text/x-c",
        "cc" | "cpp" | "cxx" | "hpp" => "text/x-c++",
        "css" => "text/css",
        "csv" => "text/csv",
        "db" | "sqlite" | "sqlite3" => "application/vnd.sqlite3",
        "diff" | "patch" => "text/x-diff",
        "docx" => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "eml" => "message/rfc822",
        "epub" => "application/epub+zip",
        "geojson" => "application/geo+json",
        "gif" => "image/gif",
        "go" => "text/x-go",
        "gz" | "tgz" => "application/gzip",
        "htm" | "html" => "text/html",
        "ics" => "text/calendar",
        "ipynb" => "application/x-ipynb+json",
        "java" => "text/x-java",
        "jpeg" | "jpg" => "image/jpeg",
        "js" | "mjs" => "text/javascript",
        "json" => "application/json",
        "jsonl" | "ndjson" => "application/jsonl",
        "kml" => "application/vnd.google-earth.kml+xml",
        "log" | "txt" | "text" | "ini" | "cfg" | "conf" => "text/plain",
        "markdown" | "md" => "text/markdown",
        "mp3" => "audio/mpeg",
        "mp4" => "video/mp4",
        "odp" => "application/vnd.oasis.opendocument.presentation",
        "ods" => "application/vnd.oasis.opendocument.spreadsheet",
        "odt" => "application/vnd.oasis.opendocument.text",
        "oga" | "ogg" => "audio/ogg",
        "ogv" => "video/ogg",
        "parquet" => "application/vnd.apache.parquet",
        "pdf" => "application/pdf",
        "pl" => "text/x-perl",
        "png" => "image/png",
        "pptx" => "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "ps" => "application/postscript",
        "py" => "text/x-python",
        "rb" => "text/x-ruby",
        "rs" => "text/x-rust",
        "rst" => "text/x-rst",
        "rtf" => "application/rtf",
        "sh" | "bash" => "text/x-shellscript",
        "sql" => "application/sql",
        "srt" => "application/x-subrip",
        "svg" => "image/svg+xml",
        "tar" => "application/x-tar",
        "tex" => "text/x-tex",
        "toml" => "application/toml",
        "ts" => "text/x-typescript",
        "tsv" => "text/tab-separated-values",
        "vcf" => "text/vcard",
        "vtt" => "text/vtt",
        "wasm" => "application/wasm",
        "wav" => "audio/wav",
        "webm" => "video/webm",
        "webp" => "image/webp",
        "xlsx" => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "xml" => "application/xml",
        "xz" => "application/x-xz",
        "yaml" | "yml" => "application/yaml",
        "zip" => "application/zip",
        "zst" => "application/zstd",
        _ => UNKNOWN_TYPE,
    }
}

#[cfg(test)]
mod tests {
    use super::media_type;

    #[test]
    fn the_files_that_people_ask_for_have_a_media_type() {
        for name in ["a.py", "b/a.SH", "a.toml", "a.c", "a.diff", "a.md", "a.ics", "a.json", "a.yaml", "a.csv", "a.sql"]
        {
            assert_ne!(media_type(name), "application/octet-stream", "{name}");
        }
        assert_eq!(media_type("a.ics"), "text/calendar");
        assert!(media_type("a.xlsx").ends_with("spreadsheetml.sheet"));
        assert!(media_type("a.docx").ends_with("wordprocessingml.document"));
        assert!(media_type("a.pptx").ends_with("presentationml.presentation"));
        assert_eq!(["Makefile", "a.unknown", ".py"].map(media_type), ["application/octet-stream"; 3]);
    }
}
