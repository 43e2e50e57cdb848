//! Which files of a home are the fleet's, and how the bucket names them.

use std::ffi::OsStr;

use super::FleetError;
use super::blob::{BlobDigest, Blobs};
use super::bus::Bus;
use super::tree;
use kiso_base::home::Home;

/// The home's own files, as the bucket says it.
#[derive(Debug, Clone, Copy, serde::Serialize, serde::Deserialize)]
pub(super) struct HomeFiles {
    /// Of the owner that kept them.
    pub(super) epoch: u64,
    /// The name of their list.
    pub(super) files: BlobDigest,
}

impl HomeFiles {
    pub(super) const KEY: &str = "home";

    /// With the number that a change must name; 0 where there are none yet.
    pub(super) fn read(bus: &Bus) -> Result<(Option<HomeFiles>, u64), FleetError> {
        let Some(found) = bus.runtime().block_on(bus.value(HomeFiles::KEY))? else { return Ok((None, 0)) };
        let files = serde_json::from_slice(&found.value);
        let files = files.map_err(|_| FleetError::Log("the value of the home's files is of another form"))?;
        Ok((Some(files), found.revision))
    }
}

/// What of a home is the same for all members, besides the store and the sessions. The configuration and the key are each
/// machine's own.
const SHARED: [&str; 10] = [
    "roles",
    "skills",
    "agent-skills",
    "grants",
    "packages",
    "skills.lock",
    "trusted-keys",
    "SOUL.md",
    "IDENTITY.md",
    "AGENTS.md",
];

/// What of a session's directory means nothing elsewhere.
const OWN: [&str; 2] = ["lock", "tmp"];

/// Makes the home's own files what a list says.
pub(super) fn restore_listed(blobs: &Blobs, files: BlobDigest, home: &Home) -> Result<(), FleetError> {
    let tree = tree::load(blobs, files)?;
    tree::restore(blobs, &tree, home.path(), |name| !is_shared(name))
}

/// Of a home's directory.
pub(super) fn is_shared(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| SHARED.contains(&name))
}

/// Of a session's directory.
pub(super) fn is_own(name: &OsStr) -> bool {
    // Files that are not whole yet begin with a dot.
    name.to_str().is_some_and(|name| OWN.contains(&name) || name.starts_with('.'))
}

/// The name of the list of a session's files, as the store has it.
pub(super) fn files_of(root: &[u8]) -> Result<BlobDigest, FleetError> {
    BlobDigest::try_from(root).map_err(|_| FleetError::Log("a session's files are of another form"))
}
