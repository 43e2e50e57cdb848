//! A member: waits as a standby, takes over, and owns the home until it releases it or is replaced.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::blob::Blobs;
use super::bus::{AppendError, Bus};
use super::home_files::{HomeFiles, files_of, is_own, restore_listed};
use super::lease::{Lease, OwnerWatch, Ownership};
use super::log::{self, Base, LogChange, OwnedLog, Replay};
use super::owner::MemberFiles;
use super::tree;
use super::{FleetError, PAUSE};
use kiso_base::home::Home;
use kiso_sandbox::effect::member::FleetMember;
use kiso_store::store::{CommittedPages, Store};

/// Waits until the home can be taken, and takes it; with `any` false, never takes it. `seen` is called with each new owner.
pub async fn stand_by(
    bus: &Bus,
    lasts: Duration,
    any: bool,
    mut seen: impl FnMut(Option<&str>),
) -> Result<Lease, FleetError> {
    let name = bus.settings().member.clone();
    let mut observed: Option<OwnerWatch> = None;
    let mut known = None;
    loop {
        match Ownership::read(bus).await {
            Ok((owner, revision)) => {
                if known.as_ref() != Some(&owner.member) {
                    known = Some(owner.member.clone());
                    seen(owner.member.as_deref());
                }
                let observed = observed.get_or_insert_with(|| OwnerWatch::new(revision));
                if any && observed.may_take(&owner, revision, &name, lasts) {
                    match Lease::take(bus, &owner, revision, lasts).await {
                        Some(lease) => return Ok(lease),
                        None => continue,
                    }
                }
            }
            Err(error @ FleetError::OtherKey) => return Err(error),
            Err(error) => tracing::warn!("who owns the home is not known: {error}"),
        }
        tokio::time::sleep(lasts / 6).await;
    }
}

/// An owned home.
#[derive(Debug)]
pub struct OwnedHome {
    pub store: Store,
    pub files: Arc<MemberFiles>,
}

/// Restores the home from the log, and starts an epoch. `begins`: the fleet is new, and starts with the content of this home.
pub fn take_over(bus: &Bus, home: &Home, lease: &Lease, begins: bool) -> Result<OwnedHome, FleetError> {
    let blobs = Blobs::new(bus.clone());
    let path = home.store_path();
    let (end, base) = loop {
        let (base, revision) = insist(lease, || bus.runtime().block_on(Base::read(bus)))?;
        let end = insist(lease, || match (&base, begins) {
            (None, false) => Err(FleetError::Empty),
            (Some(_), true) => Err(FleetError::Begun),
            (Some(base), false) => restore_store(bus, &blobs, lease, base, home),
            (None, true) => begin_epoch(bus, lease, 0, &mut Replay::default(), |_| Ok(())),
        });
        match end {
            // A newer base has replaced the messages to be read.
            Err(FleetError::Gap) if lease.is_held() => {}
            end => break (end?, revision),
        }
    };
    let mut log = OwnedLog::new(bus.clone(), blobs.clone(), lease.clone(), end, base);
    if begins {
        // Closing the last connection moves the content of the write-ahead log into the file.
        Store::open(&path)?.close();
        log.rebase(&path)?;
        let mark = mark(home);
        std::fs::write(&mark, &bus.settings().fleet).map_err(|error| FleetError::file(&mark, error))?;
    } else {
        insist(lease, || restore_home(&blobs, bus, home))?;
    }
    let store = Store::open_logged(&path, Box::new(log))?;
    remove(&mark_of_standby(home))?;
    let files = MemberFiles::new(blobs.clone(), lease.clone(), home.clone());
    if begins {
        for session in store.read_blocking(|view| view.session_names())? {
            // An imported session, or one without runs, has no directory yet.
            home.create_session(&session).map_err(|error| FleetError::Files(error.to_string()))?;
            let root = files.keep_files(&session).map_err(FleetError::Files)?;
            store.write_blocking(move |tx| tx.set_tree(&session, &root))?;
        }
    } else {
        insist(lease, || restore_sessions(&blobs, &store, home))?;
    }
    Ok(OwnedHome { store, files: Arc::new(files) })
}

/// Retries until NATS responds, for the duration of a lease: until then, this member is the only one that may serve the home.
fn insist<T>(lease: &Lease, mut work: impl FnMut() -> Result<T, FleetError>) -> Result<T, FleetError> {
    let began = Instant::now();
    loop {
        match work() {
            Err(FleetError::Jetstream(error)) if lease.is_held() && began.elapsed() < lease.lasts() => {
                tracing::warn!("the home cannot be taken over yet: {error}");
                std::thread::sleep(PAUSE);
            }
            done => return done,
        }
    }
}

/// Replays the log after the message `read`, and appends this owner's epoch at its end; returns the new end. Fails if there is a
/// newer epoch: this member was away too long and is not the owner any more.
fn begin_epoch(
    bus: &Bus,
    lease: &Lease,
    mut read: u64,
    replay: &mut Replay,
    mut each: impl FnMut(LogChange) -> Result<(), FleetError>,
) -> Result<u64, FleetError> {
    loop {
        let end = bus.runtime().block_on(bus.log_end())?;
        let take = |_, message: &[u8]| replay.take(message)?.map_or(Ok(()), &mut each);
        bus.runtime().block_on(bus.read_log(read + 1, end, take))?;
        read = end;
        if replay.epoch == lease.epoch() && replay.number == 0 {
            // No other member has this epoch, so an earlier attempt has appended it.
            return Ok(end);
        }
        if replay.epoch >= lease.epoch() || !lease.is_held() {
            return Err(FleetError::Superseded);
        }
        match bus.runtime().block_on(log::begin_epoch(bus, lease.epoch(), end, lease.deadline())) {
            Ok(end) => return Ok(end),
            // The previous owner has appended a message in the meantime.
            Err(AppendError::Elsewhere) => {}
            Err(error) => return Err(FleetError::Append(error)),
        }
    }
}

/// Restores the store from its base and the log; returns the end of the log.
fn restore_store(bus: &Bus, blobs: &Blobs, lease: &Lease, base: &Base, home: &Home) -> Result<u64, FleetError> {
    let (path, temp) = (home.store_path(), home.temp_path());
    let failed = |error| FleetError::file(&temp, error);
    let made = OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o600).open(&temp);
    let mut file = made.map_err(failed)?;
    blobs.write(base.store, &mut file, File::open(&path).ok(), &temp)?;
    let mut replay = Replay::after(base.epoch, base.number);
    let end = begin_epoch(bus, lease, base.sequence, &mut replay, |replayed| match replayed {
        LogChange::Commit(commit) => apply(&file, &commit).map_err(failed),
        LogChange::Base(store) => {
            let mut file = &file;
            file.set_len(0).and_then(|()| file.rewind()).map_err(failed)?;
            blobs.write(store, &mut file, None, &temp)
        }
    })?;
    file.sync_all().map_err(failed)?;
    keep_aside(home, &path)?;
    for ending in ["-wal", "-shm"] {
        let mut beside = path.clone().into_os_string();
        beside.push(ending);
        remove(Path::new(&beside))?;
    }
    std::fs::rename(&temp, &path).map_err(failed)?;
    std::fs::write(mark(home), &bus.settings().fleet).map_err(failed)?;
    Ok(end)
}

/// Returns the marker file for a home whose content may be outdated: another member owns it, or did when this member was last
/// running.
fn mark_of_standby(home: &Home) -> PathBuf {
    home.cache_dir().join("stands-by")
}

/// Returns whether only a member that takes over may use this home. A fleet's home without a running owner may be outdated, and a
/// home that was never taken over is empty.
pub fn is_a_copy(home: &Home) -> bool {
    let stands_by = mark_of_standby(home).exists();
    if !mark(home).exists() {
        return stands_by && !home.store_path().exists();
    }
    stands_by || !matches!(home.daemon(), Ok(Some(_)))
}

/// Marks the home, so that from now on only a member that takes over may use it.
pub fn begin_standby(home: &Home) -> Result<(), FleetError> {
    let mark = mark_of_standby(home);
    std::fs::write(&mark, "").map_err(|error| FleetError::file(&mark, error))
}

/// Returns whether everything in the home belongs to the fleet.
pub(super) fn is_the_fleets(home: &Home) -> bool {
    mark(home).exists() || !home.store_path().exists()
}

/// Returns the marker file for a home whose store belongs to the fleet.
fn mark(home: &Home) -> PathBuf {
    home.cache_dir().join("fleet")
}

/// Renames a store from before this home joined the fleet, instead of deleting it.
fn keep_aside(home: &Home, path: &Path) -> Result<(), FleetError> {
    if mark(home).exists() || !path.exists() {
        return Ok(());
    }
    let now = kiso_base::clock::now_ms();
    for path in [path.to_path_buf(), home.path().join("sessions")] {
        let mut kept = path.clone().into_os_string();
        kept.push(format!("{}{now}", kiso_base::home::KEPT));
        match std::fs::rename(&path, &kept) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(FleetError::file(&path, error)),
            _ => tracing::warn!(
                "{} was kept as {}: the home is the fleet's now",
                path.display(),
                Path::new(&kept).display()
            ),
        }
    }
    Home::open(home.path()).map(drop).map_err(|error| FleetError::Files(error.to_string()))
}

fn remove(path: &Path) -> Result<(), FleetError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(FleetError::file(path, error)),
        _ => Ok(()),
    }
}

/// Writes a commit's pages.
fn apply(file: &File, commit: &CommittedPages) -> io::Result<()> {
    let bytes = u64::from(commit.page_bytes);
    for (number, page) in &commit.changed {
        file.write_all_at(page, u64::from(number - 1) * bytes)?;
    }
    file.set_len(u64::from(commit.pages) * bytes)
}

/// Restores the shared files of the home: skills, grants, roles.
fn restore_home(blobs: &Blobs, bus: &Bus, home: &Home) -> Result<(), FleetError> {
    let Some(kept) = HomeFiles::read(bus)?.0 else { return Ok(()) };
    restore_listed(blobs, kept.files, home)
}

/// Restores every session's directory.
fn restore_sessions(blobs: &Blobs, store: &Store, home: &Home) -> Result<(), FleetError> {
    let trees = store.read_blocking(|view| view.trees())?;
    let known: HashSet<&str> = trees.iter().map(|(session, _)| session.as_str()).collect();
    let sessions = home.path().join("sessions");
    for entry in std::fs::read_dir(&sessions).map_err(|error| FleetError::file(&sessions, error))? {
        let entry = entry.map_err(|error| FleetError::file(&sessions, error))?;
        if entry.file_name().to_str().is_none_or(|name| !known.contains(name)) {
            home.remove_tree(&entry.path()).map_err(|error| FleetError::file(&entry.path(), error))?;
        }
    }
    for (session, root) in &trees {
        home.create_session(session).map_err(|error| FleetError::Files(error.to_string()))?;
        let dir = home.session_dir(session);
        tree::restore(blobs, &tree::load(blobs, files_of(root)?)?, &dir, is_own)?;
        forget_inodes(&dir.join("labels")).map_err(|error| FleetError::file(&dir, error))?;
    }
    Ok(())
}

/// Labels of files refer to inodes, which differ on this machine: with this line, the labels apply to everything in the
/// workspace.
fn forget_inodes(labels: &Path) -> io::Result<()> {
    match OpenOptions::new().append(true).open(labels) {
        Ok(mut file) => file.write_all(b"of 0\n"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}
