//! The unix socket `kiso.sock` of the home: JSON lines in both directions, for programs of the home's owner. docs/socket.md
//! describes the protocol.
//!
//! ```text
//! accept ─▶ owner or root? ─▶ register ─▶ ┌ a line of the client ─▶ done ─▶ its answer
//!                                         └ something happened ─▶ told
//! ```
//!
//! A connection is one task that waits for the client and for the feed; an idle connection costs nothing.

mod file;
pub(crate) mod lines;
mod talk;
mod wire;

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use self::lines::Lines;
use super::App;
use super::error::ApiError;
use axum::http::StatusCode;

/// Delay after the system ran out of descriptors.
const BREATH: Duration = Duration::from_millis(100);

/// A listening socket. Its file is removed together with it.
#[derive(Debug)]
pub struct Socket {
    listener: UnixListener,
    file: SocketFile,
}

/// Why the socket cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    #[error("{path} is too long for a socket, with {} bytes; choose a home with a shorter path (--home)", path.as_os_str().len())]
    PathTooLong { path: PathBuf },
    #[error("{path} is not a socket, so it is left alone; move it away")]
    NotASocket { path: PathBuf },
    #[error("the socket {path} cannot be made: {error}")]
    Io { path: PathBuf, error: io::Error },
}

/// Removes the file when it is dropped, unless a later daemon has created a new one at the path.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    /// Device and inode of the file.
    made: (u64, u64),
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|found| (found.dev(), found.ino()) == self.made) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Socket {
    /// Creates the socket, accessible only to its owner. Replaces a socket that a killed daemon left: the caller holds the lock
    /// of the home's daemon, so nobody listens on the old one.
    pub fn bind(path: &Path) -> Result<Socket, SocketError> {
        let named = || path.to_path_buf();
        if std::os::unix::net::SocketAddr::from_pathname(path).is_err() {
            return Err(SocketError::PathTooLong { path: named() });
        }
        let failed = |error| SocketError::Io { path: named(), error };
        match fs::symlink_metadata(path) {
            Ok(found) if !found.file_type().is_socket() => return Err(SocketError::NotASocket { path: named() }),
            Ok(_) => fs::remove_file(path).map_err(failed)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
        let listener = UnixListener::bind(path).map_err(failed)?;
        let made = fs::symlink_metadata(path).map_err(failed)?;
        let file = SocketFile { path: named(), made: (made.dev(), made.ino()) };
        // The home is closed to other users, so nobody can have connected before this.
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(failed)?;
        Ok(Socket { listener, file })
    }

    /// Serves until `ending` is true, and then until every connection was notified.
    pub async fn serve(self, app: App, mut ending: watch::Receiver<bool>) {
        let Socket { listener, file } = self;
        let gateway = &app.0.drive.config.gateway;
        // The same number as for the port, but counted separately: clients that fill the port must not lock the owner out.
        let places = Arc::new(Semaphore::new(usize::try_from(gateway.max_connections).unwrap_or(usize::MAX >> 4)));
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                _ = ending.wait_for(|ending| *ending) => break,
                Some(_) = connections.join_next(), if !connections.is_empty() => continue,
                accepted = listener.accept() => accepted,
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!("a connection to the socket could not be accepted: {error}");
                    tokio::time::sleep(BREATH).await;
                    continue;
                }
            };
            let Ok(place) = places.clone().try_acquire_owned() else {
                app.0.counters.refused("too_many_connections");
                refuse(&stream, &too_many(gateway.max_connections));
                continue;
            };
            app.0.counters.sockets.fetch_add(1, Ordering::Relaxed);
            let app = app.clone();
            let now = &app.0.drive.newest_config().gateway;
            let max_line = usize::try_from(now.max_body_kib << 10).unwrap_or(usize::MAX >> 1);
            let stalled = Duration::from_secs(now.stalled_timeout_s);
            connections.spawn(async move {
                serve_one(&app, stream, max_line, stalled).await;
                app.0.counters.sockets.fetch_sub(1, Ordering::Relaxed);
                drop(place);
            });
        }
        drop(listener);
        while connections.join_next().await.is_some() {}
        drop(file);
    }
}

async fn serve_one(app: &App, stream: UnixStream, max_line: usize, stalled: Duration) {
    // The file's mode has the same effect, but some file systems do not support modes.
    let allowed = [rustix::process::geteuid().as_raw(), 0];
    match stream.peer_cred() {
        Ok(peer) if allowed.contains(&peer.uid()) => {}
        Ok(peer) => {
            tracing::warn!(uid = peer.uid(), "a program of another user was refused at the socket");
            let message = "the socket is for programs of the home's owner";
            return refuse(&stream, &ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", message));
        }
        Err(error) => return tracing::warn!("a connection to the socket has no known user: {error}"),
    }
    // An error on a connection concerns only its client, which has received it if possible.
    let _ = talk::converse(app, Lines::new(stream, max_line, stalled)).await;
}

fn too_many(max: u64) -> ApiError {
    let message = format!("{max} connections are already open");
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "too_many_connections", message)
        .hint("gateway.max_connections in config.toml raises this limit")
}

/// Sends the reason why a connection is closed, without waiting: the buffer of a new connection has room for one line.
fn refuse(stream: &UnixStream, error: &ApiError) {
    let _ = stream.try_write(format!("{}\n", wire::error(None, error)).as_bytes());
}
