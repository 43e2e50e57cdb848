//! Guests that compute for long take turns, so that a thread of their runtime is always free for whoever asks next.
//!
//! A guest yields its thread at every tick. If as many guests compute as a runtime has threads, that is not enough: other work
//! waits for a tick or more, and a runtime whose threads are never idle rarely polls for input. So a guest that computes longer
//! than a tick needs a turn for each further tick, and there is one turn less than threads. While a guest is in the host, it has
//! no turn.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::runtime::{Handle, Id};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The turns of each runtime in which guests are called.
#[derive(Debug, Default)]
pub(super) struct GuestTurns(Mutex<HashMap<Id, Arc<Semaphore>>>);

impl GuestTurns {
    /// The turns of the caller's runtime.
    pub(super) fn here(&self) -> Option<Arc<Semaphore>> {
        let runtime = Handle::try_current().ok()?;
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_new = || Arc::new(Semaphore::new(runtime.metrics().num_workers().saturating_sub(1).max(1)));
        Some(turns.entry(runtime.id()).or_insert_with(of_new).clone())
    }
}

/// The turn of a guest, if it has one.
#[derive(Debug, Default)]
pub(super) struct GuestTurn(Mutex<Option<OwnedSemaphorePermit>>);

impl GuestTurn {
    /// Ends the turn: the guest does not compute for now.
    pub(super) fn end(&self) {
        self.set(None);
    }

    /// Lets others go first, and waits for the next turn.
    pub(super) async fn next(self: Arc<Self>, turns: Option<Arc<Semaphore>>) {
        self.end();
        tokio::task::yield_now().await;
        if let Some(turns) = turns {
            self.set(turns.acquire_owned().await.ok());
        }
    }

    fn set(&self, turn: Option<OwnedSemaphorePermit>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = turn;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use tokio::task::JoinSet;

    #[tokio::test(flavor = "multi_thread", worker_threads = 3)]
    async fn one_thread_is_left_to_others_and_each_guest_has_its_turns() {
        let turns = GuestTurns::default().here().unwrap();
        assert_eq!(turns.available_permits(), 2);
        let (computing, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let mut guests = JoinSet::new();
        for _ in 0..10 {
            let (turns, computing, most) = (turns.clone(), computing.clone(), most.clone());
            guests.spawn(async move {
                let turn = Arc::new(GuestTurn::default());
                for _ in 0..50 {
                    turn.clone().next(Some(turns.clone())).await;
                    most.fetch_max(computing.fetch_add(1, SeqCst) + 1, SeqCst);
                    std::thread::yield_now();
                    computing.fetch_sub(1, SeqCst);
                }
            });
        }
        while let Some(guest) = guests.join_next().await {
            guest.unwrap();
        }
        assert!((1..=2).contains(&most.load(SeqCst)), "{most:?}");
        assert_eq!(turns.available_permits(), 2, "a guest that is gone has no turn");
    }

    #[tokio::test]
    async fn a_guest_in_the_host_keeps_nobody_waiting() {
        let turns = GuestTurns::default().here().unwrap();
        let (one, other) = (Arc::new(GuestTurn::default()), Arc::new(GuestTurn::default()));
        one.clone().next(Some(turns.clone())).await;
        assert_eq!(turns.available_permits(), 0, "the only thread has one turn all the same");
        one.end();
        other.clone().next(Some(turns.clone())).await;
        drop(other);
        assert_eq!(turns.available_permits(), 1);
    }
}
