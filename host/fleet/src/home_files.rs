//! Files of a home that belong to the fleet, and their names in the bucket.

use std::ffi::OsStr;

use super::FleetError;
use super::blob::{BlobDigest, Blobs};
use super::bus::Bus;
use super::tree;
use kiso_base::home::Home;

/// The shared files of a home, as recorded in the bucket.
#[derive(Debug, Clone, Copy, serde::Serialize, serde::Deserialize)]
pub(super) struct HomeFiles {
    /// Epoch of the owner that stored them.
    pub(super) epoch: u64,
    /// Name of their list.
    pub(super) files: BlobDigest,
}

impl HomeFiles {
    pub(super) const KEY: &str = "home";

    /// Returns the value with the revision that a change must name; 0 if there is none yet.
    pub(super) fn read(bus: &Bus) -> Result<(Option<HomeFiles>, u64), FleetError> {
        let Some(found) = bus.runtime().block_on(bus.value(HomeFiles::KEY))? else { return Ok((None, 0)) };
        let files = serde_json::from_slice(&found.value);
        let files = files.map_err(|_| FleetError::Log("the value of the home's files is of another form"))?;
        Ok((Some(files), found.revision))
    }
}

/// Names in a home that all members share, besides the store and the sessions. The configuration and the key belong to each
/// machine.
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

/// Names in a session's directory that are specific to one machine.
const OWN: [&str; 2] = ["lock", "tmp"];

/// Restores the shared files of the home from a list.
pub(super) fn restore_listed(blobs: &Blobs, files: BlobDigest, home: &Home) -> Result<(), FleetError> {
    let tree = tree::load(blobs, files)?;
    tree::restore(blobs, &tree, home.path(), |name| !is_shared(name))
}

/// Returns whether an entry of the home's directory is shared.
pub(super) fn is_shared(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| SHARED.contains(&name))
}

/// Returns whether an entry of a session's directory belongs only to this machine.
pub(super) fn is_own(name: &OsStr) -> bool {
    // Names of incomplete files begin with a dot.
    name.to_str().is_some_and(|name| OWN.contains(&name) || name.starts_with('.'))
}

/// Returns the name of the list of a session's files, from its form in the store.
pub(super) fn files_of(root: &[u8]) -> Result<BlobDigest, FleetError> {
    BlobDigest::try_from(root).map_err(|_| FleetError::Log("a session's files are of another form"))
}
