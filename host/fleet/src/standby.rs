//! Files that a standby keeps up to date, so that a takeover need not wait for them: the shared files of the home.

use super::FleetError;
use super::blob::{BlobDigest, Blobs};
use super::bus::Bus;
use super::home_files::{self, HomeFiles};
use super::member;
use kiso_base::home::Home;

/// The shared files of the home on a standby.
#[derive(Debug)]
pub struct StandbyFiles {
    bus: Bus,
    blobs: Blobs,
    home: Home,
    /// The version that was restored last.
    known: Option<BlobDigest>,
}

impl StandbyFiles {
    /// Returns `None` if the home has files from before it joined the fleet: only a takeover moves those away.
    pub fn new(bus: &Bus, home: &Home) -> Option<Self> {
        let files = || Self { bus: bus.clone(), blobs: Blobs::new(bus.clone()), home: home.clone(), known: None };
        member::is_the_fleets(home).then(files)
    }

    /// Restores the files that the owner has stored last; returns whether they are new. Blocks the calling thread.
    pub fn refresh(&mut self) -> Result<bool, FleetError> {
        let Some(HomeFiles { files, .. }) = HomeFiles::read(&self.bus)?.0 else { return Ok(false) };
        if self.known == Some(files) {
            return Ok(false);
        }
        home_files::restore_listed(&self.blobs, files, &self.home)?;
        self.known = Some(files);
        Ok(true)
    }
}
