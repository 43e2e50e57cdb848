//! Slots for model calls: they limit how many run at once, and decide who is next.
//!
//! A free slot goes to the first waiter of the highest priority: interactive before subagent before background, first come first
//! served within a priority. To prevent starvation, a priority with waiters gets the next slot after [`AGING`] slots have gone to
//! higher ones; then the count restarts. This counts slots instead of time, so an hour without a free slot changes nothing.
//!
//! A running call is never interrupted. Waiters and holders of a slot may be dropped at any time.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::oneshot;

use super::{Priority, home_slots};
use kiso_base::home::{Home, HomeLock};

/// Slots that go to higher priorities before a lower one gets one: one call in five is enough for progress, and delays a person
/// by at most one call.
pub const AGING: u32 = 4;

/// From the highest to the lowest.
const KINDS: [Priority; 3] = [Priority::Interactive, Priority::Subagent, Priority::Background];

/// The slots of this process. Cheap to clone; clones share them.
#[derive(Debug, Clone)]
pub struct Slots(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    /// The home whose processes share the slots.
    home: OnceLock<Home>,
}

#[derive(Debug)]
struct State {
    free: usize,
    /// The configured number.
    count: usize,
    /// Number of held slots above the configured number; they are not passed on.
    surplus: usize,
    next_id: u64,
    /// In the order of [`KINDS`].
    queues: [Queue; 3],
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Waiter>,
    /// Number of slots that went to higher priorities while somebody waited here, since the last one that went to this priority.
    passed: u32,
}

#[derive(Debug)]
struct Waiter {
    id: u64,
    granted: oneshot::Sender<Slot>,
}

/// Permission for one call. Dropping it releases the slot.
#[derive(Debug)]
pub struct Slot {
    /// `None` after the release.
    slots: Option<Slots>,
    /// The slot of the home.
    lock: Option<HomeLock>,
}

impl Slots {
    /// Creates `count` slots, at least one.
    pub fn new(count: usize) -> Self {
        let count = count.max(1);
        let state = State { free: count, count, surplus: 0, next_id: 0, queues: Default::default() };
        Self(Arc::new(Inner { state: Mutex::new(state), home: OnceLock::new() }))
    }

    /// From now on, limits the calls of all processes of this home together.
    pub fn share(&self, home: &Home) {
        let _ = self.0.home.set(home.clone());
    }

    /// Changes the number of slots to `count`, at least one. Running calls are not interrupted: if the number shrinks, surplus
    /// slots disappear when their calls end.
    pub fn resize(&self, count: usize) {
        let added = {
            let mut state = self.lock();
            let (count, old) = (count.max(1), state.count);
            state.count = count;
            if count < old {
                let idle = state.free.min(old - count);
                state.free -= idle;
                state.surplus += old - count - idle;
                return;
            }
            let kept = state.surplus.min(count - old);
            state.surplus -= kept;
            count - old - kept
        };
        // As if each had been held until now: waiters get them.
        (0..added).for_each(|_| self.release());
    }

    /// Waits for a slot. Dropping the future leaves the queue.
    pub async fn acquire(&self, priority: Priority) -> Slot {
        let mut slot = self.acquire_here(priority).await;
        if let Some(home) = self.0.home.get() {
            let count = self.lock().count;
            slot.lock = home_slots::acquire(home, count).await;
        }
        slot
    }

    /// Waits for a slot of this process.
    async fn acquire_here(&self, priority: Priority) -> Slot {
        let kind = index(priority);
        let (id, mut granted) = {
            let mut state = self.lock();
            // No slot is free while somebody waits, so nobody is overtaken here.
            if state.free > 0 {
                state.free -= 1;
                return self.slot();
            }
            let id = state.next_id;
            state.next_id += 1;
            let (sender, receiver) = oneshot::channel();
            state.queues[kind].waiting.push_back(Waiter { id, granted: sender });
            (id, receiver)
        };
        // Dropped in reverse order: first the place in the queue, then a slot that was granted at the last moment, which is
        // passed on.
        let _place = QueueTicket { slots: self, kind, id };
        match (&mut granted).await {
            Ok(slot) => slot,
            // The sender stays in the queue until it has sent.
            Err(_) => unreachable!("a waiter was dropped from the queue"),
        }
    }

    /// Number of waiters.
    pub fn waiting(&self) -> usize {
        self.lock().queues.iter().map(|queue| queue.waiting.len()).sum()
    }

    /// Number of waiters with this priority.
    #[cfg(test)]
    pub fn waiting_as(&self, priority: Priority) -> usize {
        self.lock().queues[index(priority)].waiting.len()
    }

    /// Number of free slots.
    pub fn free(&self) -> usize {
        self.lock().free
    }

    fn slot(&self) -> Slot {
        Slot { slots: Some(self.clone()), lock: None }
    }

    fn release(&self) {
        let mut state = self.lock();
        if state.surplus > 0 {
            state.surplus -= 1;
            return;
        }
        while let Some(waiter) = state.next() {
            match waiter.granted.send(self.slot()) {
                Ok(()) => return,
                // A waiter that is dropped leaves the queue first, so this is a second safeguard. The slot must not release
                // itself: the queue is locked.
                Err(mut slot) => drop(slot.slots.take()),
            }
        }
        state.free += 1;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Removes and returns the next waiter.
    fn next(&mut self) -> Option<Waiter> {
        let is_waiting = |kind: &usize| !self.queues[*kind].waiting.is_empty();
        // Of several that have waited long enough, the lowest: the others are counted again when it gets its slot.
        let aged = (0..KINDS.len()).rev().find(|kind| is_waiting(kind) && self.queues[*kind].passed >= AGING);
        let kind = aged.or_else(|| (0..KINDS.len()).find(is_waiting))?;
        self.queues[kind].passed = 0;
        for lower in self.queues[kind + 1..].iter_mut().filter(|queue| !queue.waiting.is_empty()) {
            lower.passed += 1;
        }
        self.queues[kind].waiting.pop_front()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // Released first, so that the next one in this process finds it free.
        drop(self.lock.take());
        if let Some(slots) = self.slots.take() {
            slots.release();
        }
    }
}

/// A place in a queue, which is left on drop.
struct QueueTicket<'a> {
    slots: &'a Slots,
    kind: usize,
    id: u64,
}

impl Drop for QueueTicket<'_> {
    fn drop(&mut self) {
        let mut state = self.slots.lock();
        let queue = &mut state.queues[self.kind];
        // Usually absent, because the slot was granted.
        if let Ok(at) = queue.waiting.binary_search_by_key(&self.id, |waiter| waiter.id) {
            queue.waiting.remove(at);
            if queue.waiting.is_empty() {
                queue.passed = 0;
            }
        }
    }
}

fn index(priority: Priority) -> usize {
    match priority {
        Priority::Interactive => 0,
        Priority::Subagent => 1,
        Priority::Background => 2,
    }
}

#[cfg(test)]
mod tests;
