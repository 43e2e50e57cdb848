//! An uploaded file: written to disk while it is received, and deleted after it was examined.

use std::path::PathBuf;
use std::time::Duration;

use axum::body::HttpBody;
use axum::extract::Request;
use axum::http::StatusCode;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use crate::App;
use crate::error::ApiError;
use kiso_sandbox::skill::{MAX_WASM_BYTES, SkillError};

/// A directory in the home with the one uploaded file. Only one exists at a time.
#[derive(Debug)]
pub(super) struct Upload {
    dir: PathBuf,
    _one: OwnedSemaphorePermit,
}

/// Time limit for a whole upload.
const WHOLE: Duration = Duration::from_secs(600);

impl Upload {
    /// Receives the body of a request. Each piece must arrive within `gateway.request_timeout_s`.
    pub(super) async fn receive(app: &App, request: Request, one: OwnedSemaphorePermit) -> Result<Upload, ApiError> {
        let dir = app.0.drive.home.cache_dir().join("upload");
        let begin = move || {
            // A crash may have left the directory.
            let _ = std::fs::remove_dir_all(&dir);
            std::fs::create_dir(&dir)?;
            let upload = Upload { dir, _one: one };
            std::fs::File::create_new(upload.path()).map(|file| (upload, file))
        };
        let begun = tokio::task::spawn_blocking(begin).await.map_err(|panic| ApiError::internal(&panic))?;
        let (upload, file) = begun.map_err(failed)?;
        let write = |file: &mut std::fs::File, piece: &[u8]| std::io::Write::write_all(file, piece).map_err(failed);
        let message = format!("a skill has at most {} MiB", MAX_WASM_BYTES >> 20);
        let too_large = ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message);
        match pour(app, request, file, write, (MAX_WASM_BYTES, too_large)).await? {
            (_, 0) => {
                Err(ApiError::bad_request("the body is empty; it must be a .wasm file, a zip archive or a SKILL.md"))
            }
            _ => Ok(upload),
        }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.dir.join("skill")
    }

    /// Removes the temporary path from an error about the file.
    pub(super) fn name(&self, mut error: SkillError) -> SkillError {
        let path = self.path().display().to_string();
        if error.skill == path {
            error.skill = "the file".to_owned();
        }
        error.message = error.message.replace(&path, "the file").replace("--name", "?name=NAME");
        error
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Waits for a place among the concurrent uploads, up to the time limit of a request.
pub(super) async fn place(app: &App) -> Result<OwnedSemaphorePermit, ApiError> {
    let wait = Duration::from_secs(app.0.drive.newest_config().gateway.request_timeout_s);
    let place = timeout(wait, app.0.uploads.clone().acquire_owned()).await.ok().and_then(Result::ok);
    place.ok_or_else(|| ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "busy", "too many files are being uploaded"))
}

/// Returns the maximum size of a file, and the error for larger ones.
pub(super) fn limit(app: &App) -> (u64, ApiError) {
    let max = app.0.drive.newest_config().gateway.max_upload_mib;
    let too_large = ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", format!("a file has at most {max} MiB"))
        .hint("gateway.max_upload_mib in config.toml raises this limit");
    (max << 20, too_large)
}

pub(super) fn failed(error: std::io::Error) -> ApiError {
    match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => ApiError::disk_full(),
        _ => ApiError::internal(&error),
    }
}

/// Writes a body to `sink` piece by piece, on a thread that may block; returns the sink and the number of received bytes. Each
/// piece must arrive within `gateway.request_timeout_s`, and the whole body within ten minutes.
pub(super) async fn pour<S: Send + 'static>(
    app: &App,
    request: Request,
    mut sink: S,
    write: fn(&mut S, &[u8]) -> Result<(), ApiError>,
    most: (u64, ApiError),
) -> Result<(S, u64), ApiError> {
    let piece = Duration::from_secs(app.0.drive.newest_config().gateway.request_timeout_s);
    let late = |_| ApiError::new(StatusCode::REQUEST_TIMEOUT, "timeout", "the file did not arrive in time");
    let poured = async {
        let (mut body, mut bytes) = (request.into_body(), 0_u64);
        // A body that announces an excessive size is refused before it is received.
        if body.size_hint().lower() > most.0 {
            return Err(most.1);
        }
        loop {
            let next = std::future::poll_fn(|cx| std::pin::Pin::new(&mut body).poll_frame(cx));
            let Some(frame) = timeout(piece, next).await.map_err(late)? else { break };
            let frame = frame.map_err(|_| ApiError::bad_request("the body is incomplete"))?;
            let Ok(data) = frame.into_data() else { continue };
            bytes += data.len() as u64;
            if bytes > most.0 {
                return Err(most.1);
            }
            // The next piece is requested only after this one is written, so that memory stays bounded.
            sink = tokio::task::spawn_blocking(move || write(&mut sink, &data).map(|()| sink))
                .await
                .map_err(|panic| ApiError::internal(&panic))??;
        }
        Ok((sink, bytes))
    };
    timeout(WHOLE, poured).await.map_err(late)?
}
