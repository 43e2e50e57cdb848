//! A file that a client sends: written to disk as it comes, and gone again when it was looked at.

use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::body::HttpBody;
use axum::extract::Request;
use axum::http::StatusCode;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use crate::gateway::App;
use crate::gateway::error::ApiError;
use crate::skill::{MAX_WASM_BYTES, SkillError};

/// A directory of the home with the one file in it. There is one at a time.
#[derive(Debug)]
pub struct Upload {
    dir: PathBuf,
    _one: OwnedSemaphorePermit,
}

/// Seconds that a file may take as a whole.
const WHOLE: Duration = Duration::from_secs(600);

impl Upload {
    /// Receives the body of a request. Each piece of it must come within `gateway.request_timeout_s`.
    pub async fn receive(app: &App, request: Request, one: OwnedSemaphorePermit) -> Result<Upload, ApiError> {
        let dir = app.0.drive.home.cache_dir().join("upload");
        // A crash may have left it.
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir(&dir).map_err(failed)?;
        let upload = Upload { dir, _one: one };
        let piece = Duration::from_secs(app.0.drive.config_now().gateway.request_timeout_s);
        let late = |_| {
            let message = "the file did not come in time";
            ApiError::new(StatusCode::REQUEST_TIMEOUT, "timeout", message)
        };
        timeout(WHOLE, write(request, upload.path(), piece)).await.map_err(late)??;
        Ok(upload)
    }

    pub fn path(&self) -> PathBuf {
        self.dir.join("skill.wasm")
    }

    /// What is said of the file, without where it stood for a moment.
    pub fn name(&self, mut error: SkillError) -> SkillError {
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

fn failed(error: std::io::Error) -> ApiError {
    match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => ApiError::disk_full(),
        _ => ApiError::internal(&error),
    }
}

async fn write(request: Request, path: impl AsRef<Path>, piece: Duration) -> Result<(), ApiError> {
    let mut file = std::fs::File::create_new(path).map_err(failed)?;
    let (mut body, mut bytes) = (request.into_body(), 0_u64);
    loop {
        let next = std::future::poll_fn(|cx| std::pin::Pin::new(&mut body).poll_frame(cx));
        let late = |_| ApiError::new(StatusCode::REQUEST_TIMEOUT, "timeout", "the file did not come in time");
        let Some(frame) = timeout(piece, next).await.map_err(late)? else { break };
        let frame = frame.map_err(|_| ApiError::bad_request("the body broke off"))?;
        let Ok(data) = frame.into_data() else { continue };
        bytes += data.len() as u64;
        if bytes > MAX_WASM_BYTES {
            let message = format!("a skill has at most {} MiB", MAX_WASM_BYTES >> 20);
            return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message));
        }
        // A piece is what the connection had; the next is not asked for before this one stands.
        file = tokio::task::spawn_blocking(move || std::io::Write::write_all(&mut file, &data).map(|()| file))
            .await
            .map_err(|panic| ApiError::internal(&panic))?
            .map_err(failed)?;
    }
    match bytes {
        0 => Err(ApiError::bad_request("the body is empty; it must be a .wasm file")),
        _ => Ok(()),
    }
}
