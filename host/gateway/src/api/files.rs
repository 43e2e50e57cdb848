//! Serves files, whole or in part: published files under ids that nobody can guess, and files of workspaces.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::IntoResponse;
use futures_util::stream::unfold;

use crate::App;
use crate::document::routes;
use crate::error::ApiError;
use crate::wire::{Path, SentFile};
use kiso_agent::session::workspace::{CHANGED_SINCE, is_as_published, open_published};
use kiso_sandbox::effect::sink::Enforcement;

use super::range::{self, BodyRange};
use axum::http::StatusCode;

routes! {
    // Everybody who knows the id may read the file.
    /// A published file, for everybody who knows its id
    GET "/pub/{id}" Open => published, 200 "The file", 404 "Nothing is published there";
}

/// Bytes per read.
const CHUNK: usize = 64 << 10;

/// Media types that a browser may show; all other files are downloads. SVG is shown under a policy that forbids scripts and
/// requests.
const SHOWN: [&str; 9] = [
    "image/png",
    "image/jpeg",
    "image/gif",
    "image/webp",
    "image/svg+xml",
    "text/plain",
    "text/csv",
    "application/json",
    "application/pdf",
];

/// Policy of a shown file: it may do nothing. Media files must be allowed to load themselves, because browsers wrap them in a
/// page.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox";
const PLAYED_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; media-src 'self'";

/// Media types that a browser plays. They cannot contain scripts.
const PLAYED: [&str; 6] = ["audio/mpeg", "audio/ogg", "audio/wav", "video/mp4", "video/ogg", "video/webm"];

/// Serves the file whole or in part, as `Range` requests (RFC 9110, section 14).
pub(super) async fn published(
    State(app): State<App>,
    Path(id): Path<String>,
    asked: axum::http::HeaderMap,
) -> Result<SentFile, ApiError> {
    let missing = || ApiError::not_found("nothing is published under this link");
    let found = app.0.drive.store.read(move |view| view.published(&id)).await?.ok_or_else(missing)?;
    let home = app.0.drive.home.clone();
    let is_kept = Enforcement::named(&app.0.drive.config.policy.effects).refuses();
    let (path, media_type) = (found.path.clone(), found.media_type.clone());
    let opened = tokio::task::spawn_blocking(move || {
        let opened = open_published(&home, &found.session, &found.path)?;
        Some((opened, !is_kept || is_as_published(&home, &found)))
    });
    let ((file, meta), is_as_published) = opened.await.ok().flatten().ok_or_else(missing)?;
    if !is_as_published {
        return Err(ApiError::new(StatusCode::FORBIDDEN, "not_admitted", CHANGED_SINCE).hint("publish it again"));
    }
    Ok(answer(Download { file, meta, path, media_type }, &asked))
}

/// A file to send.
pub(super) struct Download {
    pub file: std::fs::File,
    pub meta: std::fs::Metadata,
    /// The last part is the file name of the download.
    pub path: String,
    pub media_type: String,
}

/// Returns the file whole or in part, as the headers of the request demand. The policy forbids the shown file everything.
pub(super) fn answer(opened: Download, asked: &axum::http::HeaderMap) -> SentFile {
    let Download { file, meta, path, media_type } = opened;
    let tag = range::tag(&meta);
    let (status, first, length) = match range::wanted(asked, &tag, meta.len()) {
        BodyRange::Whole => (StatusCode::OK, 0, meta.len()),
        BodyRange::Part { first, last } => (StatusCode::PARTIAL_CONTENT, first, last - first + 1),
        BodyRange::Nothing => (StatusCode::NOT_MODIFIED, 0, 0),
        BodyRange::Beyond => (StatusCode::RANGE_NOT_SATISFIABLE, 0, 0),
    };
    let mut response = Body::from_stream(stream(file, first, length)).into_response();
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let media_type = media_type.as_str();
    let shown = SHOWN.contains(&media_type) || PLAYED.contains(&media_type);
    let text = |text: &str, otherwise| HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(otherwise));
    headers.insert(header::ETAG, text(&tag, "\"\""));
    // Browsers may cache the file but must revalidate it, because it can be unpublished.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    if status == StatusCode::NOT_MODIFIED {
        return SentFile(response);
    }
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    match status {
        StatusCode::PARTIAL_CONTENT => {
            let part = format!("bytes {first}-{}/{}", first + length - 1, meta.len());
            headers.insert(header::CONTENT_RANGE, text(&part, ""));
        }
        StatusCode::RANGE_NOT_SATISFIABLE => {
            headers.insert(header::CONTENT_RANGE, text(&format!("bytes */{}", meta.len()), ""));
            return SentFile(response);
        }
        _ => {}
    }
    let played = PLAYED.contains(&media_type);
    let is_text = media_type.starts_with("text/");
    let media_type = match (shown, is_text) {
        (false, _) => "application/octet-stream".to_owned(),
        (true, true) => format!("{media_type}; charset=utf-8"),
        (true, false) => media_type.to_owned(),
    };
    headers.insert(header::CONTENT_TYPE, text(&media_type, "application/octet-stream"));
    let disposition = disposition(&path, shown);
    headers.insert(header::CONTENT_DISPOSITION, text(&disposition, "attachment"));
    let policy = if played { PLAYED_POLICY } else { POLICY };
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    SentFile(response)
}

/// Streams `length` bytes of a file from the offset `first`.
fn stream(
    file: std::fs::File,
    first: u64,
    length: u64,
) -> impl futures_util::Stream<Item = Result<Vec<u8>, std::io::Error>> + Send {
    unfold((file, first, length), |(file, at, left)| async move {
        if left == 0 {
            return None;
        }
        let read = tokio::task::spawn_blocking(move || {
            let mut chunk = vec![0; CHUNK.min(usize::try_from(left).unwrap_or(CHUNK))];
            let read = std::os::unix::fs::FileExt::read_at(&file, &mut chunk, at);
            read.map(|read| {
                chunk.truncate(read);
                (chunk, file)
            })
        });
        match read.await.unwrap_or_else(|panic| Err(std::io::Error::other(panic))) {
            // The file has become shorter. The response then breaks off before its announced length, and the client notices that.
            Ok((chunk, _)) if chunk.is_empty() => {
                Some((Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof)), (empty()?, 0, 0)))
            }
            Ok((chunk, file)) => {
                let read = chunk.len() as u64;
                Some((Ok(chunk), (file, at + read, left - read)))
            }
            Err(error) => Some((Err(error), (empty()?, 0, 0))),
        }
    })
}

/// Returns the header with the file name in two forms: plain ASCII for old clients, and the full name for others (RFC 6266).
fn disposition(path: &str, shown: bool) -> String {
    let name = path.rsplit('/').next().unwrap_or("file");
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let simple: String = name.chars().map(|c| if plain(c) { c } else { '_' }).collect();
    let kind = if shown { "inline" } else { "attachment" };
    if simple == name {
        return format!("{kind}; filename=\"{name}\"");
    }
    let encoded: String = name
        .bytes()
        .map(|byte| if plain(char::from(byte)) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect();
    format!("{kind}; filename=\"{simple}\"; filename*=UTF-8''{encoded}")
}

/// Returns an empty file, for a stream that has ended.
fn empty() -> Option<std::fs::File> {
    std::fs::File::open("/dev/null").ok()
}
