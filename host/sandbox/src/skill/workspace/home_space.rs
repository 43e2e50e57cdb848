//! Bytes that all sessions of a home and its store hold together, counted without looking at more than one session.
//!
//! A session's row has the size of its workspace when it was last measured. To the sum of the rows, this process adds the bytes
//! that its own active sessions have written since. Bytes that other processes add are counted with the next sum.

use crate::engine::limits::{Limit, LimitHit};
use kiso_base::home::SessionName;
use kiso_store::store::Store;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A smaller change is not written in a separate commit.
const ROUGHLY: u64 = 1 << 20;

/// The size of all sessions together.
#[derive(Debug)]
pub struct HomeSpace {
    store: Store,
    max_mib: AtomicU64,
    sums: Mutex<Sums>,
}

#[derive(Debug, Default)]
struct Sums {
    /// The sum in the store: its own size, and the last measured sizes of the workspaces.
    known: u64,
    /// The bytes that this process's active sessions hold beyond that; negative if they have deleted more.
    growth: i64,
    /// The number of times that this process has moved bytes between the two.
    moved: u64,
    /// The size of each session that this process has last posted to the store, which may not be written yet.
    posted: HashMap<SessionName, u64>,
}

impl Sums {
    /// The total with `more` bytes for active sessions.
    fn total(&self, more: i64) -> u64 {
        self.known.saturating_add_signed(self.growth.saturating_add(more))
    }
}

/// Sessions whose posted sizes are remembered. The store writes them within a moment, so older ones are there.
const MAX_POSTED: usize = 1_000;

/// How often the store is read again if a session has changed the sum meanwhile.
const READS: usize = 3;

impl HomeSpace {
    pub fn new(store: Store, max_mib: u64) -> Arc<HomeSpace> {
        Arc::new(HomeSpace { store, max_mib: AtomicU64::new(max_mib), sums: Mutex::default() })
    }

    /// Changes the limit.
    pub fn limit(&self, max_mib: u64) {
        self.max_mib.store(max_mib, Relaxed);
    }

    /// The hit of the limit, if the home is full. Reads the store.
    pub fn full(&self) -> Option<LimitHit> {
        self.refresh();
        (self.total() >= self.max_bytes()).then(|| self.hit())
    }

    fn hit(&self) -> LimitHit {
        let value = format!("{} MiB", self.max_mib.load(Relaxed));
        LimitHit { limit: Limit::Home, value, setting: "[limits] home_mib in config.toml".to_owned() }
    }

    fn max_bytes(&self) -> u64 {
        self.max_mib.load(Relaxed) << 20
    }

    /// If the store cannot be read, the sum stays as it was.
    fn refresh(&self) {
        for _ in 0..READS {
            let moved = self.sums().moved;
            match self.store.read_blocking(|view| view.home_bytes()) {
                Ok(bytes) if self.learn(bytes, moved) => return,
                Ok(_) => {}
                Err(error) => return tracing::warn!(%error, "what the home holds cannot be told"),
            }
        }
    }

    /// Sets the store's sum, unless bytes were moved since `moved`: the sum may contain them already, and they would count twice.
    fn learn(&self, bytes: u64, moved: u64) -> bool {
        let mut sums = self.sums();
        let is_new = sums.moved == moved;
        if is_new {
            sums.known = bytes;
        }
        is_new
    }

    /// The counted size of a session that is not active: its row, or the posted value that will replace it.
    fn kept(&self, session: &SessionName) -> Option<u64> {
        let written = self.store.read_blocking(|view| view.workspace_bytes(session)).ok();
        let mut sums = self.sums();
        let posted = sums.posted.get(session).copied();
        if posted == written {
            sums.posted.remove(session);
        }
        posted.or(written)
    }

    fn total(&self) -> u64 {
        self.sums().total(0)
    }

    fn sums(&self) -> MutexGuard<'_, Sums> {
        self.sums.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The share of one active session.
#[derive(Debug)]
pub struct SessionSpace {
    all: Arc<HomeSpace>,
    session: SessionName,
    own: Mutex<Share>,
}

#[derive(Debug, Default)]
struct Share {
    /// The size in the session's row, once that was read.
    kept: Option<u64>,
    /// The bytes that it has added to the growth of all.
    grown: i64,
}

impl SessionSpace {
    pub fn new(all: Arc<HomeSpace>, session: SessionName) -> SessionSpace {
        SessionSpace { all, session, own: Mutex::default() }
    }

    pub(super) fn hit(&self) -> LimitHit {
        self.all.hit()
    }

    /// Bytes that all sessions together may still add.
    pub(super) fn left(&self) -> u64 {
        self.all.max_bytes().saturating_sub(self.all.total())
    }

    /// Adds bytes, if all sessions together have room for them.
    pub(super) fn take(&self, bytes: u64) -> bool {
        let more = i64::try_from(bytes).unwrap_or(i64::MAX);
        let mut own = self.lock();
        let mut sums = self.all.sums();
        if sums.total(more) > self.all.max_bytes() {
            return false;
        }
        sums.growth = sums.growth.saturating_add(more);
        own.grown = own.grown.saturating_add(more);
        true
    }

    /// Sets the measured size of the session.
    pub(super) fn measured(&self, held: u64) {
        self.all.refresh();
        let mut own = self.lock();
        if own.kept.is_none() {
            own.kept = self.all.kept(&self.session);
        }
        self.keep(&mut own, held);
    }

    /// Subtracts bytes that the session has freed.
    pub(super) fn shrunk(&self, bytes: u64) {
        let less = i64::try_from(bytes).unwrap_or(i64::MAX);
        let mut own = self.lock();
        let mut sums = self.all.sums();
        sums.growth = sums.growth.saturating_sub(less);
        own.grown = own.grown.saturating_sub(less);
    }

    /// Sets the size of the session at its end.
    pub(super) fn rests(&self, held: u64) {
        let mut own = self.lock();
        self.keep(&mut own, held);
        let mut sums = self.all.sums();
        sums.growth = sums.growth.saturating_sub(std::mem::take(&mut own.grown));
    }

    /// Sets the size, and posts it to the store if it has changed by much.
    fn keep(&self, own: &mut Share, held: u64) {
        let kept = own.kept.unwrap_or(0);
        let beyond = |kept: u64| i64::try_from(held).unwrap_or(i64::MAX).saturating_sub_unsigned(kept);
        let (mut known, mut grown) = (0, beyond(kept));
        let mut sums = self.all.sums();
        if held.abs_diff(kept) >= ROUGHLY {
            let session = self.session.clone();
            if sums.posted.len() >= MAX_POSTED {
                sums.posted.clear();
            }
            sums.posted.insert(session.clone(), held);
            self.all.store.post(move |tx| tx.set_workspace_bytes(&session, held));
            own.kept = Some(held);
            (known, grown) = (grown, 0);
            sums.moved += 1;
        }
        sums.growth = sums.growth.saturating_add(grown - own.grown);
        own.grown = grown;
        sums.known = sums.known.saturating_add_signed(known);
    }

    fn lock(&self) -> MutexGuard<'_, Share> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiso_base::clock::now_ms;

    /// A store with one session.
    fn opened() -> (tempfile::TempDir, Store, SessionName) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("store.db")).unwrap();
        let session = SessionName::parse("main").unwrap();
        let name = session.clone();
        store.write_blocking(move |tx| tx.open_session(&name, now_ms())).unwrap();
        (dir, store, session)
    }

    /// The store's sum was read, with a session's size in it, before that session reported the size here.
    #[test]
    fn what_a_session_holds_counts_once_while_it_comes_to_rest() {
        let (_dir, store, session) = opened();
        let all = HomeSpace::new(store.clone(), 64);
        let own = SessionSpace::new(all.clone(), session);
        own.measured(0);
        assert!(own.take(40 << 20));
        let moved = all.sums().moved;
        own.rests(40 << 20);
        store.write_blocking(|_| Ok(())).unwrap();
        let bytes = store.read_blocking(|view| view.home_bytes()).unwrap();
        assert!(bytes >= 40 << 20);
        assert!(!all.learn(bytes, moved), "what was read before says nothing");
        assert!(all.total() < 64 << 20, "{}", all.total());
        assert!(all.full().is_none());
    }

    /// Another call begins in the session before the store has written the size that the last one posted.
    #[test]
    fn what_is_on_its_way_to_the_store_counts_once() {
        let (_dir, store, session) = opened();
        let all = HomeSpace::new(store.clone(), 64);
        let one = SessionSpace::new(all.clone(), session.clone());
        one.measured(0);
        assert!(one.take(40 << 20));
        // The writer is busy with something else.
        let (hold, held) = std::sync::mpsc::channel::<()>();
        store.post(move |_| {
            let _ = held.recv();
            Ok(())
        });
        one.rests(40 << 20);
        let two = SessionSpace::new(all.clone(), session);
        two.measured(40 << 20);
        drop(hold);
        store.write_blocking(|_| Ok(())).unwrap();
        assert!(all.total() < 64 << 20, "{}", all.total());
        two.rests(40 << 20);
        store.write_blocking(|_| Ok(())).unwrap();
        assert!(all.full().is_none());
        assert!(all.total() < 64 << 20, "{}", all.total());
    }
}
