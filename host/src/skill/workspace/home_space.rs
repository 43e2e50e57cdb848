//! Bytes that all sessions of a home and its store hold together, counted without looking at more than one session.
//!
//! What each workspace held when it was last measured stands in its session's row. To the sum of those, this process adds
//! what the sessions that are at work in it have written since; what other processes add is seen with the next sum.

use crate::home::SessionName;
use crate::skill::limits::{Limit, LimitHit};
use crate::store::Store;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A change that is not worth a commit of its own.
const ROUGHLY: u64 = 1 << 20;

/// What all sessions hold together.
#[derive(Debug)]
pub struct HomeSpace {
    store: Store,
    max_mib: AtomicU64,
    /// As the store says: its own size, and the workspaces when they were measured.
    known: AtomicU64,
    /// What sessions at work in this process hold beyond that; less, where they have deleted something.
    growth: AtomicI64,
}

impl HomeSpace {
    pub fn new(store: Store, max_mib: u64) -> Arc<HomeSpace> {
        let (known, growth) = (AtomicU64::new(0), AtomicI64::new(0));
        Arc::new(HomeSpace { store, max_mib: AtomicU64::new(max_mib), known, growth })
    }

    /// Sets another limit.
    pub fn limit(&self, max_mib: u64) {
        self.max_mib.store(max_mib, Relaxed);
    }

    /// The hit of the limit, if there is no room for anything more. Reads the store.
    pub fn full(&self) -> Option<LimitHit> {
        self.refresh();
        (self.total(0) >= self.max_bytes()).then(|| self.hit())
    }

    fn hit(&self) -> LimitHit {
        let value = format!("{} MiB", self.max_mib.load(Relaxed));
        LimitHit { limit: Limit::Home, value, setting: "[limits] home_mib in config.toml".to_owned() }
    }

    fn max_bytes(&self) -> u64 {
        self.max_mib.load(Relaxed) << 20
    }

    /// Where the store cannot be read, the sum stays as it was.
    fn refresh(&self) {
        match self.store.read_blocking(|view| view.home_bytes()) {
            Ok(bytes) => self.known.store(bytes, Relaxed),
            Err(error) => tracing::warn!(%error, "what the home holds cannot be told"),
        }
    }

    /// With so much more than what sessions at work hold now.
    fn total(&self, more: i64) -> u64 {
        self.known.load(Relaxed).saturating_add_signed(self.growth.load(Relaxed).saturating_add(more))
    }
}

/// The part of one session while it is at work.
#[derive(Debug)]
pub struct SessionSpace {
    all: Arc<HomeSpace>,
    session: SessionName,
    own: Mutex<Share>,
}

#[derive(Debug, Default)]
struct Share {
    /// What the session's row says, once that was read.
    kept: Option<u64>,
    /// What it has added to the growth of all.
    grown: i64,
}

impl SessionSpace {
    pub fn new(all: Arc<HomeSpace>, session: SessionName) -> SessionSpace {
        SessionSpace { all, session, own: Mutex::default() }
    }

    pub(super) fn hit(&self) -> LimitHit {
        self.all.hit()
    }

    /// Bytes that all sessions together have room for.
    pub(super) fn left(&self) -> u64 {
        self.all.max_bytes().saturating_sub(self.all.total(0))
    }

    /// Adds bytes, if all sessions together have room for them.
    pub(super) fn take(&self, bytes: u64) -> bool {
        let more = i64::try_from(bytes).unwrap_or(i64::MAX);
        let mut own = self.lock();
        if self.all.total(more) > self.all.max_bytes() {
            return false;
        }
        self.all.growth.fetch_add(more, Relaxed);
        own.grown = own.grown.saturating_add(more);
        true
    }

    /// The session was measured and holds this much.
    pub(super) fn measured(&self, held: u64) {
        self.all.refresh();
        let mut own = self.lock();
        if own.kept.is_none() {
            own.kept = self.all.store.read_blocking(|view| view.workspace_bytes(&self.session)).ok();
        }
        self.keep(&mut own, held);
    }

    /// The session holds less than it did.
    pub(super) fn shrunk(&self, bytes: u64) {
        let less = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.all.growth.fetch_sub(less, Relaxed);
        let mut own = self.lock();
        own.grown = own.grown.saturating_sub(less);
    }

    /// The session rests and holds this much.
    pub(super) fn rests(&self, held: u64) {
        let mut own = self.lock();
        self.keep(&mut own, held);
        self.all.growth.fetch_sub(std::mem::take(&mut own.grown), Relaxed);
    }

    /// Counts what it holds, and writes that down where it has changed by much.
    fn keep(&self, own: &mut Share, held: u64) {
        let kept = own.kept.unwrap_or(0);
        let beyond = |kept: u64| i64::try_from(held).unwrap_or(i64::MAX).saturating_sub_unsigned(kept);
        let (mut known, mut grown) = (0, beyond(kept));
        if held.abs_diff(kept) >= ROUGHLY {
            let session = self.session.clone();
            self.all.store.post(move |tx| tx.set_workspace_bytes(&session, held));
            own.kept = Some(held);
            (known, grown) = (grown, 0);
        }
        self.all.growth.fetch_add(grown - own.grown, Relaxed);
        own.grown = grown;
        let add = |now: u64| Some(now.saturating_add_signed(known));
        let _ = self.all.known.fetch_update(Relaxed, Relaxed, add);
    }

    fn lock(&self) -> MutexGuard<'_, Share> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
