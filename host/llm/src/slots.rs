//! LLM slots: how many calls are under way at once, and who is next.
//!
//! A slot that gets free goes to the first of the highest kind that waits: interactive before subagent before background,
//! first come first served within a kind. So that a busy day does not leave a kind waiting for ever, a kind of which somebody
//! waits and that has seen [`AGING`] slots go to higher kinds gets the next one, and counts anew. That is counted in slots
//! and not in time: an hour in which nothing got free changes nothing.
//!
//! A call in flight is never interrupted. Whoever waits may go away at any time, and so may whoever holds a slot.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::oneshot;

use super::{Priority, home_slots};
use kiso_base::home::{Home, HomeLock};

/// Slots that go to higher kinds before a kind gets one: one call in five is enough to go on, and delays a person by one
/// call at most.
pub const AGING: u32 = 4;

/// From the highest to the lowest.
const KINDS: [Priority; 3] = [Priority::Interactive, Priority::Subagent, Priority::Background];

/// The slots of this process. Cheap to clone; clones share them.
#[derive(Debug, Clone)]
pub struct Slots(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    /// Whose other processes have the same slots.
    home: OnceLock<Home>,
}

#[derive(Debug)]
struct State {
    free: usize,
    /// How many there are to be.
    count: usize,
    /// How many of those that are held are one too many: they are not passed on.
    surplus: usize,
    next_id: u64,
    /// In the order of [`KINDS`].
    queues: [Queue; 3],
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Waiter>,
    /// Slots that went to higher kinds while somebody waited here, since the last that went to this one.
    passed: u32,
}

#[derive(Debug)]
struct Waiter {
    id: u64,
    granted: oneshot::Sender<Slot>,
}

/// Permission for one call. Dropping it passes it on.
#[derive(Debug)]
pub struct Slot {
    /// `None` once it was given back.
    slots: Option<Slots>,
    /// The slot of the home.
    lock: Option<HomeLock>,
}

impl Slots {
    /// `count` slots, at least one.
    pub fn new(count: usize) -> Self {
        let count = count.max(1);
        let state = State { free: count, count, surplus: 0, next_id: 0, queues: Default::default() };
        Self(Arc::new(Inner { state: Mutex::new(state), home: OnceLock::new() }))
    }

    /// From now on as many calls are under way at once in all processes of this home.
    pub fn share(&self, home: &Home) {
        let _ = self.0.home.set(home.clone());
    }

    /// Has `count` slots from now on, at least one. A call in flight is not interrupted: where there are fewer than
    /// before, those that are too many end with their calls.
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
        // As if each had been held until now: whoever waits gets it.
        (0..added).for_each(|_| self.release());
    }

    /// Waits for a slot. Dropping the future gives up the place in the queue.
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
            // While somebody waits nothing is free, so nobody is overtaken here.
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
        // Dropped in reverse order: the place is given up first, then a slot that came at the last moment is passed on.
        let _place = QueueTicket { slots: self, kind, id };
        match (&mut granted).await {
            Ok(slot) => slot,
            // The sender lives in the queue until it has sent.
            Err(_) => unreachable!("a waiter was dropped from the queue"),
        }
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.lock().queues.iter().map(|queue| queue.waiting.len()).sum()
    }

    /// How many of this kind wait.
    #[cfg(test)]
    pub fn waiting_as(&self, priority: Priority) -> usize {
        self.lock().queues[index(priority)].waiting.len()
    }

    /// How many slots nobody holds.
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
                // Who goes away gives up its place first, so this is the second line of defence. The slot must not pass
                // itself on: the queue is locked.
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
    /// Takes out who is next.
    fn next(&mut self) -> Option<Waiter> {
        let is_waiting = |kind: &usize| !self.queues[*kind].waiting.is_empty();
        // Of several that have waited long enough, the lowest: the others pass it too.
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
        // Whoever is next here finds it free.
        drop(self.lock.take());
        if let Some(slots) = self.slots.take() {
            slots.release();
        }
    }
}

/// A place in a queue, given up when its owner goes away.
struct QueueTicket<'a> {
    slots: &'a Slots,
    kind: usize,
    id: u64,
}

impl Drop for QueueTicket<'_> {
    fn drop(&mut self) {
        let mut state = self.slots.lock();
        let queue = &mut state.queues[self.kind];
        // Absent when the slot was granted, which is the rule.
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
