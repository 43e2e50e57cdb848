//! Sends a file to a session's workspace, over a separate connection.

use super::wire::{PROTOCOL, Say, ServerLine};
use super::{MAX_LINE, STALLED, next, write};
use data_encoding::BASE64;
use kiso_base::home::SessionName;
use kiso_gateway::Lines;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use tokio::net::UnixStream;

/// Bytes of a piece, unless the daemon accepts only shorter lines.
const PIECE: usize = 512 << 10;

/// Bytes of a line beside its piece.
const AROUND: usize = 4 << 10;

/// An uploaded file in the workspace.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UploadReceipt {
    /// Relative to `/work`.
    pub path: String,
    pub bytes: u64,
    pub media_type: String,
}

/// Sends the regular file at `path` to the daemon that listens at `socket` and accepts lines of at most `max_line` bytes.
/// The error says why the file was not stored.
pub(crate) async fn upload(
    socket: &Path,
    max_line: usize,
    session: &SessionName,
    path: &Path,
) -> Result<UploadReceipt, String> {
    let broken = |error: &dyn std::fmt::Display| format!("{} was not attached: {error}", path.display());
    let gone = || broken(&"kiso is offline; try again when it is back");
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut file = File::open(path).map_err(|error| broken(&error))?;
    // The path may refer to another file by now.
    if !file.metadata().is_ok_and(|found| found.is_file()) {
        return Err(broken(&"it is not a regular file"));
    }
    let stream = UnixStream::connect(socket).await.map_err(|_| gone())?;
    let mut lines = Lines::new(stream, MAX_LINE, STALLED);
    let session = session.to_string();
    let register = Say::Register { client: "upload", protocol: PROTOCOL, session, after: None, live: false };
    write(&lines, &register).await.map_err(|_| gone())?;
    let size = PIECE.min(max_line.saturating_sub(AROUND) / 4 * 3).max(1);
    let mut piece = read(&mut file, size).map_err(|error| broken(&error))?;
    loop {
        let after = read(&mut file, size).map_err(|error| broken(&error))?;
        let (name, data, more) = (name.clone(), BASE64.encode(&piece), !after.is_empty());
        let line = Say::File { name, data, more };
        write(&lines, &line).await.map_err(|_| gone())?;
        loop {
            match next(&mut lines).await.ok_or_else(gone)? {
                ServerLine::Error { message, .. } => return Err(broken(&message)),
                ServerLine::File { path: Some(path), bytes, media_type, .. } => {
                    return Ok(UploadReceipt { path, bytes, media_type });
                }
                ServerLine::File { .. } => break,
                // This connection also receives the session's events.
                _ => {}
            }
        }
        piece = after;
    }
}

/// Reads the next bytes of a file, up to `size`.
fn read(file: &mut File, size: usize) -> std::io::Result<Vec<u8>> {
    let mut piece = Vec::new();
    file.take(size as u64).read_to_end(&mut piece).map(|_| piece)
}
