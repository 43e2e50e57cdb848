//! One home on several machines, over NATS JetStream: one member owns and serves it, the others are standbys, one of which takes
//! over if the owner fails.
//!
//! ```text
//!  client ─▶ any member ──tunnel──▶ owner ─▶ gateway … store ──commit──▶ log (JetStream) ─▶ whoever takes over
//!                                                      files ──pieces──▶ chunks
//! ```
//!
//! The log makes it safe: a commit is valid once JetStream has appended it, and JetStream appends a message only at the expected
//! end of the log. A new owner first appends its epoch, after which no commit of the previous owner can be appended ([`log`]).
//! The lease ([`lease`]) determines when to take over, and prevents a former owner from starting irreversible actions.

pub mod blob;
pub mod bus;
pub mod control;
mod home_files;
pub mod lease;
pub mod log;
pub mod member;
pub mod owner;
pub mod seal;
pub mod standby;
pub mod status;
pub mod tree;
pub mod tunnel;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use self::blob::BlobDigest;
use self::bus::AppendError;
use kiso_store::store::StoreError;

/// Delay between two attempts.
const PAUSE: Duration = Duration::from_millis(200);

/// Why a member failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FleetError {
    #[error("fleet.url = {url:?}: NATS cannot be reached: {detail}")]
    Connect { url: String, detail: String },
    #[error("fleet.url = {url:?}: NATS refuses what fleet.credentials says, or that it says nothing")]
    Refused { url: String },
    #[error("fleet.credentials: {} cannot be read: {detail}", path.display())]
    Credentials { path: PathBuf, detail: String },
    #[error("JetStream: {0}")]
    Jetstream(String),
    #[error(
        "what is in this fleet was sealed with another key: every member needs the same `key` in its home, copied by hand from the first"
    )]
    OtherKey,
    #[error("the fleet's log cannot be read: {0}")]
    Log(&'static str),
    #[error("the fleet's log does not go back that far any more")]
    Gap,
    #[error("another member has taken the home over meanwhile")]
    Superseded,
    #[error("the log of the fleet: {0}")]
    Append(AppendError),
    #[error("a piece of a file is missing in the fleet: {digest}")]
    Missing { digest: BlobDigest },
    #[error("a piece of a file is damaged in the fleet: {digest}")]
    Damaged { digest: BlobDigest },
    #[error("{} is too large for a fleet", path.display())]
    TooLarge { path: PathBuf },
    #[error("{}: {error}", path.display())]
    File { path: PathBuf, error: io::Error },
    #[error(
        "there is nothing in this fleet yet: run `kiso fleet begin` once on the machine whose home the others are to have"
    )]
    Empty,
    #[error("this fleet has a home already: start `kiso serve` to join it")]
    Begun,
    #[error("there is no member {name:?}: `kiso fleet status` lists them")]
    NoMember { name: String },
    #[error("no member owns the home at the moment, or it does not answer")]
    NoOwner,
    #[error("files could not be kept for the other members: {0}")]
    Files(String),
    #[error("the threads for the fleet cannot be started: {0}")]
    Threads(io::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl FleetError {
    fn jetstream(error: impl std::error::Error) -> FleetError {
        // Errors of the client library are one word; only the cause contains details.
        let mut text = error.to_string();
        if let Some(cause) = error.source().map(ToString::to_string).filter(|cause| !text.contains(cause.as_str())) {
            text = format!("{text}: {cause}");
        }
        FleetError::Jetstream(text)
    }

    fn file(path: &Path, error: io::Error) -> FleetError {
        FleetError::File { path: path.to_path_buf(), error }
    }
}
