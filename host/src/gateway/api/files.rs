//! Published files, under ids that nobody can guess.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;

use crate::gateway::App;
use crate::gateway::error::ApiError;
use crate::gateway::wire::Path;

/// Bytes that are read at once.
const CHUNK: usize = 64 << 10;

/// Media types that a browser may show; everything else is a download. SVG is shown under a policy that lets nothing in it
/// run or load.
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

/// `GET /pub/{id}`
pub async fn published(State(app): State<App>, Path(id): Path<String>) -> Result<Response, ApiError> {
    let missing = || ApiError::not_found("nothing is published under this link");
    let found = app.0.drive.store.read(move |view| view.published(&id)).await?.ok_or_else(missing)?;
    let home = app.0.drive.home.clone();
    let path = found.path.clone();
    // Opened below the workspace, whatever links a task has left there since.
    let opened = tokio::task::spawn_blocking(move || {
        let file = home.open_work(&found.session).ok()?.open(&path).ok()?;
        let meta = file.metadata().ok()?;
        meta.is_file().then_some((file.into_std(), meta.len()))
    });
    let (file, length) = opened.await.ok().flatten().ok_or_else(missing)?;
    let stream = unfold((file, length), |(mut file, left)| async move {
        if left == 0 {
            return None;
        }
        let read = tokio::task::spawn_blocking(move || {
            let mut chunk = vec![0; CHUNK.min(usize::try_from(left).unwrap_or(CHUNK))];
            let read = std::io::Read::read(&mut file, &mut chunk);
            read.map(|read| {
                chunk.truncate(read);
                (chunk, file)
            })
        });
        match read.await.unwrap_or_else(|panic| Err(std::io::Error::other(panic))) {
            // Shorter than it was: the length that was promised is missed, and the client sees that.
            Ok((chunk, _)) if chunk.is_empty() => {
                Some((Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof)), (empty()?, 0)))
            }
            Ok((chunk, file)) => {
                let left = left - chunk.len() as u64;
                Some((Ok(chunk), (file, left)))
            }
            Err(error) => Some((Err(error), (empty()?, 0))),
        }
    });
    let mut response = Body::from_stream(stream).into_response();
    let headers = response.headers_mut();
    let shown = SHOWN.contains(&found.media_type.as_str());
    let media_type = if shown { found.media_type.as_str() } else { "application/octet-stream" };
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_str(media_type).unwrap_or(HeaderValue::from_static("application/octet-stream")),
    );
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    let name: String = found
        .path
        .rsplit('/')
        .next()
        .unwrap_or("file")
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' })
        .collect();
    let disposition = format!("{}; filename=\"{name}\"", if shown { "inline" } else { "attachment" });
    headers.insert(
        header::CONTENT_DISPOSITION,
        HeaderValue::from_str(&disposition).unwrap_or(HeaderValue::from_static("attachment")),
    );
    let policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox";
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    Ok(response)
}

/// A file without bytes, for a stream that is over.
fn empty() -> Option<std::fs::File> {
    std::fs::File::open("/dev/null").ok()
}
