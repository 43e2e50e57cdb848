use super::*;
use proptest::prelude::*;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

type Waiting = Pin<Box<dyn Future<Output = Slot>>>;

/// Begins to wait; returns a free slot at once.
fn wait(slots: &Slots, priority: Priority) -> Result<Slot, Waiting> {
    let slots = slots.clone();
    let mut waiting: Waiting = Box::pin(async move { slots.acquire(priority).await });
    match poll(&mut waiting) {
        Some(slot) => Ok(slot),
        None => Err(waiting),
    }
}

fn poll(waiting: &mut Waiting) -> Option<Slot> {
    match waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(slot) => Some(slot),
        Poll::Pending => None,
    }
}

/// The waiters, each with a name, in the order in which they began.
struct Crowd {
    slots: Slots,
    waiting: Vec<(String, Waiting)>,
}

impl Crowd {
    fn new(slots: &Slots) -> Self {
        Self { slots: slots.clone(), waiting: Vec::new() }
    }

    fn join(&mut self, name: &str, priority: Priority) {
        let Err(waiting) = wait(&self.slots, priority) else { panic!("a slot is free") };
        self.waiting.push((name.to_owned(), waiting));
    }

    /// Returns the waiter that got a slot.
    fn granted(&mut self) -> Option<(String, Slot)> {
        let (at, slot) = self.waiting.iter_mut().enumerate().find_map(|(at, (_, w))| Some((at, poll(w)?)))?;
        Some((self.waiting.remove(at).0, slot))
    }

    /// Passes one slot on until nobody waits; returns its holders in order.
    fn drain(&mut self, held: Slot) -> String {
        drop(held);
        let mut order = Vec::new();
        while let Some((name, slot)) = self.granted() {
            order.push(name);
            drop(slot);
        }
        order.join(" ")
    }
}

#[test]
fn a_slot_goes_to_the_highest_kind_and_there_to_the_first() {
    let slots = Slots::new(1);
    let held = wait(&slots, Priority::Background).ok().expect("one is free");
    let mut crowd = Crowd::new(&slots);
    crowd.join("b1", Priority::Background);
    crowd.join("s1", Priority::Subagent);
    crowd.join("i1", Priority::Interactive);
    crowd.join("s2", Priority::Subagent);
    crowd.join("i2", Priority::Interactive);
    assert_eq!((slots.waiting(), slots.waiting_as(Priority::Subagent), slots.free()), (5, 2, 0));
    assert!(crowd.granted().is_none(), "a call in flight is not interrupted");
    assert_eq!(crowd.drain(held), "i1 i2 s1 s2 b1");
    assert_eq!((slots.waiting(), slots.free()), (0, 1));
}

#[test]
fn who_was_passed_often_enough_is_next() {
    let slots = Slots::new(1);
    let held = wait(&slots, Priority::Interactive).ok().expect("one is free");
    let mut crowd = Crowd::new(&slots);
    crowd.join("b1", Priority::Background);
    crowd.join("b2", Priority::Background);
    for i in 1..=10 {
        crowd.join(&format!("i{i}"), Priority::Interactive);
    }
    assert_eq!(crowd.drain(held), "i1 i2 i3 i4 b1 i5 i6 i7 i8 b2 i9 i10");
}

#[test]
fn who_goes_away_leaves_no_hole() {
    let slots = Slots::new(1);
    let held = wait(&slots, Priority::Interactive).ok().expect("one is free");
    let mut crowd = Crowd::new(&slots);
    for name in ["i1", "i2", "i3"] {
        crowd.join(name, Priority::Interactive);
    }
    drop(crowd.waiting.remove(1));
    assert_eq!(slots.waiting(), 2);
    drop(held);
    // i1 has been granted a slot, but is dropped before it takes it.
    drop(crowd.waiting.remove(0));
    let (name, slot) = crowd.granted().expect("i3 is next");
    assert_eq!((name.as_str(), slots.free(), slots.waiting()), ("i3", 0, 0));
    drop(slot);
    assert_eq!(slots.free(), 1);
}

/// The same with wakers and threads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn never_more_than_allowed_are_under_way() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let slots = Slots::new(2);
    let (busy, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let calls = (0..60).map(|n| {
        let (slots, busy, most) = (slots.clone(), busy.clone(), most.clone());
        tokio::spawn(async move {
            let slot = slots.acquire(KINDS[n % 3]).await;
            most.fetch_max(busy.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            busy.fetch_sub(1, Ordering::SeqCst);
            drop(slot);
        })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap();
    }
    assert_eq!((most.load(Ordering::SeqCst), slots.free(), slots.waiting()), (2, 2, 0));
}

#[derive(Debug, Clone)]
enum Do {
    Join(usize),
    /// A waiter is dropped, perhaps one that was granted a slot and has not taken it.
    Leave(usize),
    /// A slot is released.
    Release(usize),
    /// All waiters are polled.
    Look,
}

fn steps() -> impl Strategy<Value = Vec<Do>> {
    let step = prop_oneof![
        4 => (0usize..3).prop_map(Do::Join),
        1 => (0usize..64).prop_map(Do::Leave),
        3 => (0usize..64).prop_map(Do::Release),
        2 => Just(Do::Look),
    ];
    prop::collection::vec(step, 1..200)
}

proptest! {
    #[test]
    fn no_slot_is_lost_and_no_kind_starves(count in 1usize..4, steps in steps()) {
        let slots = Slots::new(count);
        let mut held: Vec<Slot> = Vec::new();
        let mut waiting: Vec<(usize, Waiting)> = Vec::new();
        for step in steps {
            match step {
                Do::Join(kind) => match wait(&slots, KINDS[kind]) {
                    Ok(slot) => held.push(slot),
                    Err(future) => waiting.push((kind, future)),
                },
                Do::Leave(n) if !waiting.is_empty() => drop(waiting.remove(n % waiting.len())),
                Do::Release(n) if !held.is_empty() => drop(held.remove(n % held.len())),
                Do::Look => {
                    let mut still = Vec::new();
                    for (kind, mut future) in waiting {
                        match poll(&mut future) {
                            Some(slot) => held.push(slot),
                            None => still.push((kind, future)),
                        }
                    }
                    waiting = still;
                }
                _ => {}
            }
            let state = slots.lock();
            let queued: usize = state.queues.iter().map(|queue| queue.waiting.len()).sum();
            // Waiters with a granted slot that they have not taken: they are in `waiting`, but no longer in a queue.
            let granted = waiting.len() - queued;
            prop_assert_eq!(held.len() + granted + state.free, count);
            prop_assert!(state.free == 0 || queued == 0, "something is free and somebody waits");
            for queue in &state.queues {
                prop_assert!(queue.passed <= AGING, "a kind starves: {}", queue.passed);
                prop_assert!(queue.passed == 0 || !queue.waiting.is_empty());
            }
        }
        drop(waiting);
        drop(held);
        prop_assert_eq!((slots.free(), slots.waiting()), (count, 0));
    }
}

/// Fewer slots: running calls continue, and their slots are not passed on until the number is reached.
#[test]
fn the_number_follows_the_configuration() {
    let slots = Slots::new(3);
    let mut held: Vec<_> = (0..2).map(|_| wait(&slots, Priority::Interactive).ok().unwrap()).collect();
    slots.resize(1);
    assert_eq!(slots.free(), 0);
    let mut waiting = wait(&slots, Priority::Interactive).err().unwrap();
    held.pop();
    assert!(poll(&mut waiting).is_none(), "one is held, and one is all there are");
    slots.resize(2);
    let second = poll(&mut waiting).expect("there is another one now");
    drop(held);
    drop(second);
    assert_eq!(slots.free(), 2);
    // The number shrinks and grows again before a release.
    let held: Vec<_> = (0..2).map(|_| wait(&slots, Priority::Interactive).ok().unwrap()).collect();
    slots.resize(1);
    slots.resize(2);
    assert_eq!(slots.free(), 0);
    drop(held);
    assert_eq!(slots.free(), 2);
}
