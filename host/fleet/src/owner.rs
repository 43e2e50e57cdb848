//! The owner's duties towards the other members: it stores the files of sessions and of the home for them, and hands over the
//! home.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::blob::{BlobDigest, Blobs};
use super::bus::Bus;
use super::control::GiveUp;
use super::home_files::{HomeFiles, files_of, is_own, is_shared};
use super::lease::Lease;
use super::log::Base;
use super::status;
use super::tree::{self, FileStamps};
use super::{FleetError, PAUSE};
use kiso_base::home::{Home, SessionName};
use kiso_sandbox::effect::member::{FleetMember, FleetStatus};
use kiso_store::store::Store;

/// Stores an owner's files for the other members.
#[derive(Debug)]
pub struct MemberFiles {
    blobs: Blobs,
    lease: Lease,
    home: Home,
    /// Stamps of the sessions with the most recent work.
    seen: Mutex<HashMap<SessionName, FileStamps>>,
    /// Time of the takeover.
    since: Instant,
}

/// How long a member keeps the home at least before it hands it over to one with a label: two sessions with different labels must
/// not prevent each other's work.
const SETTLED: Duration = Duration::from_secs(5);

/// How often the owner's daemon is asked to release ownership.
const TRIES: u32 = 5;

/// How often the shared files of the home are checked.
const LOOK: Duration = Duration::from_secs(5);

/// How often to delete pieces of files that are no longer needed.
const SPARE: Duration = Duration::from_secs(3_600);

/// Maximum number of sessions whose stamps are kept.
const MAX_SEEN: usize = 200;

impl FleetMember for MemberFiles {
    fn epoch(&self) -> u64 {
        self.lease.epoch()
    }

    fn may_act(&self) -> bool {
        self.lease.is_good()
    }

    fn keep_files(&self, session: &SessionName) -> Result<[u8; 32], String> {
        let mut seen = self.seen().remove(session).unwrap_or_default();
        let dir = self.home.session_dir(session);
        let kept = loop {
            match tree::keep(&self.blobs, &dir, &mut seen, is_own) {
                Err(FleetError::Jetstream(error)) if self.lease.is_held() => {
                    tracing::warn!(%session, "its files could not be kept yet: {error}");
                    std::thread::sleep(PAUSE);
                }
                done => break done.map_err(|error| error.to_string())?,
            }
        };
        let mut all = self.seen();
        if all.len() >= MAX_SEEN {
            all.clear();
        }
        all.insert(session.clone(), seen);
        Ok(*kept.as_bytes())
    }

    fn hand_over(&self, label: &str) -> Result<bool, String> {
        let bus = self.blobs.bus();
        let handed = bus.runtime().block_on(async {
            // Waiting work for this member must have started before the home moves on.
            tokio::time::sleep_until(self.since + SETTLED).await;
            let members = status::read(bus).await?.members;
            let Some(to) = members.into_iter().find(|member| member.can_take(label)) else { return Ok(false) };
            tracing::info!("the home goes to {}, because something asks for the label {label}", to.name);
            let asks = GiveUp { epoch: self.lease.epoch(), to: Some(to.name) };
            // The daemon may not be listening yet, or only temporarily.
            let mut tries = 1;
            while let Err(error) = asks.ask(bus).await {
                if tries == TRIES {
                    return Err(error);
                }
                tries += 1;
                tokio::time::sleep(PAUSE).await;
            }
            Ok(true)
        });
        handed.map_err(|error: FleetError| error.to_string())
    }

    fn fleet(&self) -> String {
        self.blobs.bus().settings().fleet.clone()
    }

    fn status(&self) -> Result<FleetStatus, String> {
        let bus = self.blobs.bus();
        bus.runtime().block_on(status::read(bus)).map_err(|error| error.to_string())
    }
}

impl MemberFiles {
    pub(super) fn new(blobs: Blobs, lease: Lease, home: Home) -> MemberFiles {
        MemberFiles { blobs, lease, home, seen: Mutex::default(), since: Instant::now() }
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, HashMap<SessionName, FileStamps>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the shared files of the home.
    pub fn keep_home(&self, bus: &Bus) -> Result<(), FleetError> {
        self.keep_home_once(bus, &mut FileStamps::default(), None).map(drop)
    }

    /// Stores the files whenever they change, and deletes unneeded pieces, until the lease is lost. Blocks the calling thread.
    pub fn follow_home(&self, bus: &Bus, store: &Store) {
        let (mut seen, mut last) = (FileStamps::default(), None);
        let (mut spare, mut looked) = (Vec::new(), Instant::now());
        while self.lease.is_held() {
            match self.keep_home_once(bus, &mut seen, last) {
                Ok(kept) => last = Some(kept),
                Err(error) => tracing::warn!("the home's own files could not be kept for the other members: {error}"),
            }
            if looked.elapsed() >= SPARE {
                looked = Instant::now();
                match self.tidy(bus, store, std::mem::take(&mut spare)) {
                    Ok(found) => spare = found,
                    Err(error) => tracing::warn!("what the fleet does not need any more could not be found: {error}"),
                }
            }
            bus.runtime().block_on(async { tokio::time::timeout(LOOK, self.lease.lost()).await.ok() });
        }
    }

    /// Deletes the pieces that were unneeded an hour ago and still are; returns those that are unneeded now.
    fn tidy(
        &self,
        bus: &Bus,
        store: &Store,
        spare: Vec<(BlobDigest, u64)>,
    ) -> Result<Vec<(BlobDigest, u64)>, FleetError> {
        // If a list cannot be read, it may need any of the pieces.
        let base = bus.runtime().block_on(Base::read(bus))?.0.ok_or(FleetError::Empty)?;
        let mut lists: Vec<BlobDigest> = HomeFiles::read(bus)?.0.iter().map(|home| home.files).collect();
        for (_, root) in store.read_blocking(|view| view.trees())? {
            lists.push(files_of(&root)?);
        }
        let mut blobs = HashSet::from([base.store]);
        for list in lists {
            blobs.insert(list);
            blobs.extend(tree::blobs_of(&tree::load(&self.blobs, list)?));
        }
        let needed = self.blobs.needed(&blobs)?;
        let forgotten = self.blobs.forget(spare, &needed);
        tracing::debug!(forgotten, "pieces of files were forgotten");
        self.blobs.spare(&needed)
    }

    /// Stores the files if they differ from the last stored ones; returns the name of the stored ones. Does not replace files of
    /// a newer owner.
    fn keep_home_once(
        &self,
        bus: &Bus,
        seen: &mut FileStamps,
        last: Option<BlobDigest>,
    ) -> Result<BlobDigest, FleetError> {
        let kept = tree::keep(&self.blobs, self.home.path(), seen, |name| !is_shared(name))?;
        if last == Some(kept) {
            return Ok(kept);
        }
        let value = HomeFiles { epoch: self.lease.epoch(), files: kept };
        let bytes = kiso_base::json::bytes(&value);
        loop {
            let (before, revision) = HomeFiles::read(bus)?;
            if before.is_some_and(|before| before.epoch > value.epoch) {
                return Err(FleetError::Superseded);
            }
            if bus.runtime().block_on(bus.swap(HomeFiles::KEY, &bytes, revision))?.is_some() {
                return Ok(kept);
            }
        }
    }
}
