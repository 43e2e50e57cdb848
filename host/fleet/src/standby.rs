//! What a member has ready while it stands by, so that a takeover need not wait for it: the home's own files.

use super::FleetError;
use super::blob::{BlobDigest, Blobs};
use super::bus::Bus;
use super::home_files::{self, HomeFiles};
use super::member;
use kiso_base::home::Home;

/// The home's own files on a machine that stands by.
#[derive(Debug)]
pub struct StandbyFiles {
    bus: Bus,
    blobs: Blobs,
    home: Home,
    /// What was restored last.
    known: Option<BlobDigest>,
}

impl StandbyFiles {
    /// None where the home has what is not the fleet's: a takeover keeps that, and nobody else touches it.
    pub fn new(bus: &Bus, home: &Home) -> Option<Self> {
        let files = || Self { bus: bus.clone(), blobs: Blobs::new(bus.clone()), home: home.clone(), known: None };
        member::is_the_fleets(home).then(files)
    }

    /// Makes them what the owner has kept last, and says whether that is new. Waits on the caller's thread.
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
