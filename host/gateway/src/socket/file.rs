//! A file that a client of the socket sends in pieces, one piece per line.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use ring::digest::{Context, SHA256};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::spawn_blocking;

use crate::App;
use crate::attachment;
use crate::error::ApiError;
use kiso_agent::session::workspace::{FileError, Incoming, attached_label};
use kiso_base::clock::now_ms;
use kiso_base::home::SessionName;
use kiso_sandbox::engine::limits::{Budget, HitCell};
use kiso_sandbox::skill::Quota;

/// An incomplete file. It is deleted when it is dropped.
pub(super) struct PartialFile {
    session: SessionName,
    name: String,
    incoming: Incoming,
    quota: Arc<Quota>,
    bytes: u64,
    digest: Context,
    _place: OwnedSemaphorePermit,
}

/// A file in the workspace.
pub(super) struct StoredFile {
    pub path: String,
    pub bytes: u64,
}

impl PartialFile {
    pub(super) async fn begin(app: &App, session: SessionName, name: &str) -> Result<PartialFile, ApiError> {
        let name = attachment::plain_name(name)?;
        let wait = Duration::from_secs(app.0.drive.newest_config().gateway.request_timeout_s);
        let place = tokio::time::timeout(wait, app.0.uploads.clone().acquire_owned()).await;
        let place = place.ok().and_then(Result::ok).ok_or_else(|| {
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "busy", "too many files are being uploaded")
        })?;
        let (drive, of) = (app.0.drive.newest(), session.clone());
        let most = drive.config.limits.max_sessions;
        drive.store.read(move |view| view.may_open(&of, most)).await?;
        let budget = Budget::upload(&drive.config.engine);
        let quota = drive.tools.skills().exec_quota(&session, &budget, HitCell::default(), None);
        let (of, charged) = (session.clone(), quota.clone());
        let incoming = blocking(move || Incoming::begin(&drive.home, &of, charged)).await?;
        Ok(PartialFile { session, name, incoming, quota, bytes: 0, digest: Context::new(&SHA256), _place: place })
    }

    /// Returns whether the next piece of the file with this name belongs to this file.
    pub(super) fn is_of(&self, session: &SessionName, name: &str) -> bool {
        self.session == *session && attachment::plain_name(name).is_ok_and(|name| name == self.name)
    }

    pub(super) async fn add(mut self, app: &App, piece: Vec<u8>) -> Result<PartialFile, ApiError> {
        self.bytes += piece.len() as u64;
        let max = app.0.drive.newest_config().gateway.max_upload_mib;
        if self.bytes > max << 20 {
            let message = format!("a file has at most {max} MiB");
            return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
                .hint("gateway.max_upload_mib in config.toml raises this limit"));
        }
        blocking(move || {
            self.digest.update(&piece);
            self.incoming.write(&piece)?;
            Ok(self)
        })
        .await
    }

    /// Moves the file to its place. If the same file is already there, that one stays; if another file has its name, the name
    /// gets a suffix.
    pub(super) async fn finish(self, app: &App) -> Result<StoredFile, ApiError> {
        let drive = app.0.drive.newest();
        let PartialFile { session, name, incoming, quota, bytes, digest, _place } = self;
        let (home, of) = (drive.home.clone(), session.clone());
        let finishing = tokio::spawn(async move {
            let path = blocking(move || {
                let (path, is_there) = attachment::place(&home, &of, &name, bytes, digest.finish())?;
                if !is_there {
                    incoming.finish(&path, path.as_str() != name, attached_label(&path))?;
                }
                Ok(String::from(path))
            });
            let path = path.await?;
            let opened = session.clone();
            drive.store.write(move |tx| tx.open_session(&opened, now_ms())).await?;
            // The quota of the workspace is stored in the session, which exists only now.
            drop(quota);
            drive.keep_files(&session).await?;
            tracing::info!(%session, path, bytes, "a file was attached at the socket");
            Ok(StoredFile { path, bytes })
        });
        finishing.await.map_err(|panic| ApiError::internal(&panic))?
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, FileError> + Send + 'static,
) -> Result<T, ApiError> {
    Ok(spawn_blocking(work).await.map_err(|panic| ApiError::internal(&panic))??)
}
