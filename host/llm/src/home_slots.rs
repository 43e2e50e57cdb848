//! The slots of a home: they limit the calls that run at once in all of its processes, such as a daemon and several `kiso run`.
//!
//! A slot is a file that is locked during a call. The system releases the locks of a killed process. The process that waits locks
//! the file `turn`, so that a process with many calls does not block one with a single call.

use std::time::Duration;

use kiso_base::home::{Home, HomeError, HomeLock};

/// The interval for checking whether a slot is free. Calls take seconds.
const LOOK: Duration = Duration::from_millis(40);

/// Waits for one of `count` slots. `None` if the home does not support locks: the call is made anyway.
pub(super) async fn acquire(home: &Home, count: usize) -> Option<HomeLock> {
    match wait(home, count).await {
        Ok(lock) => Some(lock),
        Err(error) => {
            tracing::warn!("max_concurrent_llm counts for this process alone: {error}");
            None
        }
    }
}

async fn wait(home: &Home, count: usize) -> Result<HomeLock, HomeError> {
    let turn = loop {
        match home.lock_call_turn()? {
            Some(turn) => break turn,
            None => tokio::time::sleep(LOOK).await,
        }
    };
    loop {
        if let Some(slot) = home.lock_call(count)? {
            drop(turn);
            return Ok(slot);
        }
        tokio::time::sleep(LOOK).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Priority;
    use crate::slots::Slots;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    /// Each task has its own slots, like a process.
    #[tokio::test(start_paused = true)]
    async fn processes_of_one_home_share_its_slots() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(&dir.path().join("home")).unwrap();
        let (now, most, done) =
            (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let mut calls = Vec::new();
        for _ in 0..4 {
            let slots = Slots::new(2);
            slots.share(&home);
            for _ in 0..3 {
                let (slots, now, most, done) = (slots.clone(), now.clone(), most.clone(), done.clone());
                calls.push(tokio::spawn(async move {
                    let slot = slots.acquire(Priority::Interactive).await;
                    most.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
                    tokio::time::sleep(Duration::from_millis(200)).await;
                    now.fetch_sub(1, SeqCst);
                    done.fetch_add(1, SeqCst);
                    drop(slot);
                }));
            }
        }
        for call in calls {
            call.await.unwrap();
        }
        assert_eq!((most.load(SeqCst), done.load(SeqCst)), (2, 12));
    }

    #[tokio::test(start_paused = true)]
    async fn who_stops_waiting_leaves_nothing_locked() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(&dir.path().join("home")).unwrap();
        let [one, other] = [1, 1].map(Slots::new);
        one.share(&home);
        other.share(&home);
        let held = one.acquire(Priority::Interactive).await;
        let waits = tokio::time::timeout(Duration::from_secs(1), other.acquire(Priority::Interactive));
        assert!(waits.await.is_err());
        drop(held);
        drop(one.acquire(Priority::Interactive).await);
        drop(other.acquire(Priority::Interactive).await);
        assert_eq!((one.free(), other.free()), (1, 1));
    }
}
