//! The dispatcher: the only task that empties the outbox.
//!
//! It reads the outbox after an event, when an attempt is due, and every other second, because other processes write to the
//! outbox as well. Only the dispatcher knows which deliveries are in progress: after a crash, each delivery without a
//! recorded result is sent again, with the same key.

use std::collections::{HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, sleep_until};

use super::retry::{NotDelivered, Trouble, after, dice, until_due};
use super::{Channel, letter};
use kiso_agent::drive::RunExecutor;
use kiso_base::clock::now_ms;
use kiso_sandbox::effect::member::{FleetMember, may_act};
use kiso_store::secret::Vault;
use kiso_store::store::{Delivery, Store, StoreError};

/// Parallel attempts for one channel. A slow receiver delays only itself.
const AT_ONCE: usize = 4;

/// Polling interval of the outbox.
const LOOK: Duration = Duration::from_secs(2);

/// How long the dispatcher waits after an event before it reads the outbox, because more may follow at once.
const CALM: Duration = Duration::from_millis(20);

/// Pause after an error of the store. Without it, deliveries whose result cannot be recorded would be sent again and again.
const STORE_PAUSE: Duration = Duration::from_secs(30);

/// How often old deliveries are deleted.
const TRIM: Duration = Duration::from_secs(3_600);

/// Shared by all deliveries.
#[derive(Debug, Clone)]
struct Post {
    store: Store,
    vault: Vault,
    member: Option<Arc<dyn FleetMember>>,
}

/// A running dispatcher.
#[derive(Debug)]
pub(super) struct Dispatcher {
    store: Store,
    channels: watch::Sender<Vec<Arc<dyn Channel>>>,
    task: JoinHandle<()>,
}

impl Dispatcher {
    /// Starts to deliver through these channels. From now on, events are written to the outbox for them. Ends soon after
    /// `ending` is true; deliveries in progress are then repeated later, unless their result is recorded in time.
    pub(super) async fn start(
        drive: &RunExecutor,
        channels: Vec<Arc<dyn Channel>>,
        ending: watch::Receiver<bool>,
    ) -> Result<Dispatcher, StoreError> {
        let (sender, receiver) = watch::channel(Vec::new());
        let store = drive.store.clone();
        let post = Post { store: store.clone(), vault: drive.vault.clone(), member: drive.member.clone() };
        let task = tokio::spawn(work(post, receiver, ending));
        let dispatcher = Dispatcher { store, channels: sender, task };
        dispatcher.replace(channels).await?;
        Ok(dispatcher)
    }

    /// Replaces the channels. Deliveries that wait for a removed channel are given up, and that is recorded.
    pub(super) async fn replace(&self, channels: Vec<Arc<dyn Channel>>) -> Result<(), StoreError> {
        let channels: Vec<_> = channels.into_iter().filter(|channel| channel.subscription().is_some()).collect();
        let all: Vec<_> = channels.iter().filter_map(|channel| channel.subscription()).collect();
        for (channel, count) in self.store.write(move |tx| tx.set_webhooks(&all, now_ms())).await? {
            tracing::warn!(channel, "the channel is gone from config.toml; {count} deliveries were given up");
        }
        self.channels.send_replace(channels);
        Ok(())
    }

    /// Waits until the dispatcher has ended.
    pub(super) async fn ended(self) {
        let Dispatcher { store: _, channels, task } = self;
        let _ = task.await;
        drop(channels);
    }
}

/// The dispatcher's state of one channel.
#[derive(Debug, Default)]
struct Receiver {
    /// Deliveries in progress.
    busy: HashSet<i64>,
    /// Whether the last attempt failed. Then there is one attempt at a time instead of four.
    ailing: bool,
}

/// The result of a delivery.
struct Done {
    channel: String,
    id: i64,
    arrived: bool,
}

#[expect(clippy::expect_used, reason = "a delivery catches what goes wrong in it")]
async fn work(post: Post, mut channels: watch::Receiver<Vec<Arc<dyn Channel>>>, mut ending: watch::Receiver<bool>) {
    let mut feed = post.store.feed_changes();
    let mut receivers: HashMap<String, Receiver> = HashMap::new();
    let mut under_way: JoinSet<Done> = JoinSet::new();
    let mut trim_at = Instant::now();
    loop {
        let known = channels.borrow_and_update().clone();
        let mut next = Instant::now() + LOOK;
        if !known.is_empty() && trim_at <= Instant::now() {
            trim_at = Instant::now() + TRIM;
            trim(&post.store).await;
        }
        for channel in &known {
            let receiver = receivers.entry(channel.name().to_owned()).or_default();
            match due(&post.store, channel.as_ref(), receiver).await {
                Ok(found) => {
                    for delivery in found.now {
                        receiver.busy.insert(delivery.id);
                        under_way.spawn(deliver(post.clone(), channel.clone(), delivery));
                    }
                    next = found.next.map_or(next, |at| at.min(next));
                }
                Err(error) => {
                    tracing::warn!("the outbox cannot be read: {error}");
                    next = Instant::now() + STORE_PAUSE;
                    break;
                }
            }
        }
        let mut stirred = false;
        tokio::select! {
            _ = ending.wait_for(|ending| *ending) => break,
            Some(done) = under_way.join_next(), if !under_way.is_empty() => {
                let Done { channel, id, arrived } = done.expect("a delivery catches what goes wrong in it");
                let receiver = receivers.entry(channel).or_default();
                receiver.busy.remove(&id);
                receiver.ailing = !arrived;
            }
            changed = channels.changed() => {
                if changed.is_err() {
                    break;
                }
            }
            // Without channels, there is nothing to deliver.
            Ok(()) = feed.changed(), if !known.is_empty() => stirred = true,
            () = sleep_until(next), if !known.is_empty() => {}
        }
        if stirred {
            sleep(CALM).await;
            feed.mark_unchanged();
        }
    }
    // Deliveries in progress may finish; the daemon limits how long it waits.
    while under_way.join_next().await.is_some() {}
}

/// Deliveries that are due for a channel, and the time of the next one.
struct DueDeliveries {
    now: Vec<Delivery>,
    next: Option<Instant>,
}

async fn due(store: &Store, channel: &dyn Channel, receiver: &Receiver) -> Result<DueDeliveries, StoreError> {
    let mut found = DueDeliveries { now: Vec::new(), next: None };
    let at_once = if receiver.ailing { 1 } else { AT_ONCE };
    let mut free = at_once.saturating_sub(receiver.busy.len());
    if free == 0 {
        return Ok(found);
    }
    // Deliveries in progress are among the first.
    let (name, limit) = (channel.name().to_owned(), u32::try_from(2 * AT_ONCE).unwrap_or(u32::MAX));
    let waiting = store.read(move |view| view.pending_deliveries(&name, limit)).await?;
    let now = now_ms();
    for delivery in waiting.into_iter().filter(|delivery| !receiver.busy.contains(&delivery.id)) {
        match until_due(delivery.due_ms, now, channel.retry_policy().max_ms) {
            _ if free == 0 => break,
            None => {
                free -= 1;
                found.now.push(delivery);
            }
            Some(wait) => {
                found.next = Some(Instant::now() + wait);
                break;
            }
        }
    }
    Ok(found)
}

/// Makes one attempt and records its result.
#[tracing::instrument(name = "channel.deliver", level = "debug", skip_all, fields(channel = channel.name(), id = delivery.id))]
async fn deliver(post: Post, channel: Arc<dyn Channel>, delivery: Delivery) -> Done {
    let attempt = AssertUnwindSafe(attempt(&post, channel.as_ref(), &delivery)).catch_unwind().await;
    let result = attempt.unwrap_or_else(|_| {
        tracing::error!(channel = channel.name(), "a delivery failed because of a bug in kiso");
        Ok(Err(NotDelivered::passing("a bug in kiso")))
    });
    let (id, now) = (delivery.id, now_ms());
    let mut done = Done { channel: channel.name().to_owned(), id, arrived: false };
    let recorded = match result {
        Ok(Ok(())) => {
            done.arrived = true;
            tracing::debug!(attempts = delivery.attempts + 1, "delivered");
            post.store.write(move |tx| tx.delivered(id, now)).await
        }
        Ok(Err(failed)) => {
            let text = failed.text();
            match after(channel.retry_policy(), &delivery, &failed, now, dice()) {
                Some(due_ms) => {
                    tracing::debug!(
                        channel = channel.name(),
                        place = channel.place(),
                        "a delivery failed: {}",
                        failed.why
                    );
                    post.store.write(move |tx| tx.put_off_delivery(id, due_ms, &text)).await
                }
                None => {
                    let (name, place, attempts) = (channel.name(), channel.place(), delivery.attempts + 1);
                    tracing::warn!(channel = name, place, "given up after {attempts} attempts: {}", failed.why);
                    post.store.write(move |tx| tx.give_up(id, true, now, &text)).await
                }
            }
        }
        Err(error) => Err(error),
    };
    if let Err(error) = recorded {
        tracing::warn!(channel = channel.name(), "a delivery could not be recorded and will be repeated: {error}");
        sleep(STORE_PAUSE).await;
    }
    done
}

/// Returns the result of one attempt. The outer error is the store's.
async fn attempt(
    post: &Post,
    channel: &dyn Channel,
    delivery: &Delivery,
) -> Result<Result<(), NotDelivered>, StoreError> {
    let (vault, row, sink) = (post.vault.clone(), delivery.clone(), channel.sink().cloned());
    let Some(mut letter) = post.store.read(move |view| letter::read(view, &vault, &row, sink.as_ref())).await? else {
        let trouble = Trouble::Gone;
        return Ok(Err(NotDelivered { trouble, ..NotDelivered::passing("what it was about was deleted") }));
    };
    may_act(post.member.as_ref()).await;
    letter.epoch = post.member.as_ref().map(|member| member.epoch());
    Ok(channel.deliver(&letter, now_ms()).await)
}

/// Deletes deliveries that ended long ago.
async fn trim(store: &Store) {
    loop {
        match store.write(|tx| tx.trim_outbox(now_ms())).await {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) => return tracing::warn!("old deliveries could not be forgotten: {error}"),
        }
    }
}
