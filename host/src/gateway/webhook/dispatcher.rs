//! The dispatcher: the one task that empties the outbox.
//!
//! It looks when something happened, when an attempt is due, and every other second, because other processes write into
//! the outbox as well. What is under way is known to the dispatcher alone: after a crash, whatever has no end on record is
//! sent again, with the same key.

use std::collections::{HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use ring::rand::{SecureRandom, SystemRandom};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, sleep_until};

use super::send::{NotDelivered, Trouble, send};
use super::{Webhook, letter};
use crate::clock::now_ms;
use crate::secret::Vault;
use crate::store::{Delivery, Store, StoreError};

/// Attempts at once for one webhook. A slow receiver holds up nobody but itself.
const AT_ONCE: usize = 4;

/// How often the outbox is looked at without a reason.
const LOOK: Duration = Duration::from_secs(2);

/// How long the dispatcher waits after something happened before it looks: more may follow at once.
const CALM: Duration = Duration::from_millis(20);

/// How long it waits where the store cannot be read or written. What could not be recorded would else be sent again and
/// again.
const STORE_PAUSE: Duration = Duration::from_secs(30);

/// Attempts before age alone ends a delivery: the clock of a small computer jumps by months when it finds a time server.
const LEAST_ATTEMPTS: u32 = 5;

/// How often old deliveries are forgotten.
const TRIM: Duration = Duration::from_secs(3_600);

/// What every delivery needs.
#[derive(Debug, Clone)]
struct Post {
    store: Store,
    vault: Vault,
}

/// A dispatcher at work.
#[derive(Debug)]
pub struct WebhookDispatcher {
    store: Store,
    webhooks: watch::Sender<Vec<Arc<Webhook>>>,
    task: JoinHandle<()>,
}

impl WebhookDispatcher {
    /// Begins to deliver to these webhooks. From now on, what happens is written into the outbox for them. Ends soon after
    /// `ending` is true; what is under way then has no end on record, unless it has one in time.
    pub async fn start(
        store: Store,
        vault: Vault,
        webhooks: Vec<Webhook>,
        ending: watch::Receiver<bool>,
    ) -> Result<WebhookDispatcher, StoreError> {
        let (sender, receiver) = watch::channel(Vec::new());
        let post = Post { store: store.clone(), vault };
        let task = tokio::spawn(work(post, receiver, ending));
        let dispatcher = WebhookDispatcher { store, webhooks: sender, task };
        dispatcher.replace(webhooks).await?;
        Ok(dispatcher)
    }

    /// Delivers to these webhooks instead. What waits for one that is gone is given up, and that is on record.
    pub async fn replace(&self, webhooks: Vec<Webhook>) -> Result<(), StoreError> {
        let all: Vec<_> = webhooks.iter().map(Webhook::subscription).collect();
        for (webhook, count) in self.store.write(move |tx| tx.set_webhooks(&all, now_ms())).await? {
            tracing::warn!(webhook, "the webhook is gone from config.toml; {count} deliveries were given up");
        }
        self.webhooks.send_replace(webhooks.into_iter().map(Arc::new).collect());
        Ok(())
    }

    /// Waits until the dispatcher has ended.
    pub async fn ended(self) {
        let WebhookDispatcher { store: _, webhooks, task } = self;
        let _ = task.await;
        drop(webhooks);
    }
}

/// One webhook as the dispatcher knows it.
#[derive(Debug, Default)]
struct Receiver {
    /// Deliveries that are under way.
    busy: HashSet<i64>,
    /// Whether the last attempt failed. It is not asked four times at once whether it is well again.
    ailing: bool,
}

/// How a delivery went.
struct Done {
    webhook: String,
    id: i64,
    arrived: bool,
}

async fn work(post: Post, mut webhooks: watch::Receiver<Vec<Arc<Webhook>>>, mut ending: watch::Receiver<bool>) {
    let mut feed = post.store.feed_changes();
    let mut receivers: HashMap<String, Receiver> = HashMap::new();
    let mut under_way: JoinSet<Done> = JoinSet::new();
    let mut trim_at = Instant::now();
    loop {
        let known = webhooks.borrow_and_update().clone();
        let mut next = Instant::now() + LOOK;
        if !known.is_empty() && trim_at <= Instant::now() {
            trim_at = Instant::now() + TRIM;
            trim(&post.store).await;
        }
        for webhook in &known {
            let receiver = receivers.entry(webhook.name.clone()).or_default();
            match due(&post.store, webhook, receiver).await {
                Ok(found) => {
                    for delivery in found.now {
                        receiver.busy.insert(delivery.id);
                        under_way.spawn(deliver(post.clone(), webhook.clone(), delivery));
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
                let Done { webhook, id, arrived } = done.expect("a delivery catches what goes wrong in it");
                let receiver = receivers.entry(webhook).or_default();
                receiver.busy.remove(&id);
                receiver.ailing = !arrived;
            }
            changed = webhooks.changed() => {
                if changed.is_err() {
                    break;
                }
            }
            // Without webhooks there is nothing to look for.
            Ok(()) = feed.changed(), if !known.is_empty() => stirred = true,
            () = sleep_until(next), if !known.is_empty() => {}
        }
        if stirred {
            sleep(CALM).await;
            feed.mark_unchanged();
        }
    }
    // What is under way may end; the daemon waits only so long.
    while under_way.join_next().await.is_some() {}
}

/// What is due for a webhook, and when the next is.
struct DueDeliveries {
    now: Vec<Delivery>,
    next: Option<Instant>,
}

async fn due(store: &Store, webhook: &Webhook, receiver: &Receiver) -> Result<DueDeliveries, StoreError> {
    let mut found = DueDeliveries { now: Vec::new(), next: None };
    let at_once = if receiver.ailing { 1 } else { AT_ONCE };
    let mut free = at_once.saturating_sub(receiver.busy.len());
    if free == 0 {
        return Ok(found);
    }
    // Those that are under way are among the first.
    let (name, limit) = (webhook.name.clone(), u32::try_from(2 * AT_ONCE).unwrap_or(u32::MAX));
    let waiting = store.read(move |view| view.pending_deliveries(&name, limit)).await?;
    let now = now_ms();
    for delivery in waiting.into_iter().filter(|delivery| !receiver.busy.contains(&delivery.id)) {
        match until_due(delivery.due_ms, now, webhook.retry_max_ms) {
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

/// How long until an attempt is due; `None` if it is now. Nothing is ever put off for longer than `max_ms`, so what seems
/// to be was put off before the clock was set back.
fn until_due(due_ms: i64, now_ms: i64, max_ms: u64) -> Option<Duration> {
    let wait = u64::try_from(due_ms.saturating_sub(now_ms)).unwrap_or(0);
    (1..=max_ms).contains(&wait).then(|| Duration::from_millis(wait))
}

/// Makes one attempt and records how it went.
async fn deliver(post: Post, webhook: Arc<Webhook>, delivery: Delivery) -> Done {
    let attempt = AssertUnwindSafe(attempt(&post, &webhook, &delivery)).catch_unwind().await;
    let result = attempt.unwrap_or_else(|_| {
        tracing::error!(webhook = webhook.name, "a delivery failed because of a bug in kiso");
        Ok(Err(NotDelivered::passing("a bug in kiso")))
    });
    let (id, now) = (delivery.id, now_ms());
    let mut done = Done { webhook: webhook.name.clone(), id, arrived: false };
    let recorded = match result {
        Ok(Ok(())) => {
            done.arrived = true;
            post.store.write(move |tx| tx.delivered(id, now)).await
        }
        Ok(Err(failed)) => {
            let text = failed.text();
            match after(&webhook, &delivery, &failed, now, dice()) {
                Some(due_ms) => {
                    tracing::debug!(webhook = webhook.name, host = webhook.host, "a delivery failed: {}", failed.why);
                    post.store.write(move |tx| tx.put_off_delivery(id, due_ms, &text)).await
                }
                None => {
                    let (name, host, attempts) = (&webhook.name, &webhook.host, delivery.attempts + 1);
                    tracing::warn!(webhook = name, host, "given up after {attempts} attempts: {}", failed.why);
                    post.store.write(move |tx| tx.give_up(id, true, now, &text)).await
                }
            }
        }
        Err(error) => Err(error),
    };
    if let Err(error) = recorded {
        tracing::warn!(webhook = webhook.name, "a delivery could not be recorded and will be repeated: {error}");
        sleep(STORE_PAUSE).await;
    }
    done
}

/// What became of one attempt. The outer error is the store's.
async fn attempt(post: &Post, webhook: &Webhook, delivery: &Delivery) -> Result<Result<(), NotDelivered>, StoreError> {
    let (vault, row) = (post.vault.clone(), delivery.clone());
    let Some(body) = post.store.read(move |view| letter::of(view, &vault, &row)).await? else {
        let trouble = Trouble::Gone;
        return Ok(Err(NotDelivered { trouble, ..NotDelivered::passing("what it was about was deleted") }));
    };
    Ok(send(webhook, delivery.event.as_str(), &delivery.key, body, now_ms()).await.map(drop))
}

/// When the next attempt after one that failed is due; `None` if there is to be none. `dice` is a random number.
fn after(webhook: &Webhook, delivery: &Delivery, failed: &NotDelivered, now_ms: i64, dice: u32) -> Option<i64> {
    let attempts = delivery.attempts + 1;
    let too_old = now_ms.saturating_sub(delivery.since_ms) >= webhook.max_age_ms && attempts >= LEAST_ATTEMPTS;
    if failed.trouble == Trouble::Gone || attempts >= webhook.max_attempts || too_old {
        return None;
    }
    // Twice as long each time; of that, something between a half and all, so that what failed together does not come
    // back together.
    let doubled = webhook.retry_base_ms.saturating_mul(1_u64.checked_shl(attempts - 1).unwrap_or(u64::MAX));
    let most = doubled.min(webhook.retry_max_ms);
    let wait = most / 2 + (most / 2) * u64::from(dice) / u64::from(u32::MAX);
    let asked = failed.wait.map_or(0, |wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
    let wait = wait.max(asked.min(webhook.retry_max_ms));
    Some(now_ms.saturating_add_unsigned(wait))
}

fn dice() -> u32 {
    let mut bytes = [0; 4];
    // Without random numbers the waits are the shortest: still right, only less spread.
    let _ = SystemRandom::new().fill(&mut bytes);
    u32::from_ne_bytes(bytes)
}

/// Forgets deliveries that ended long ago.
async fn trim(store: &Store) {
    loop {
        match store.write(|tx| tx.trim_outbox(now_ms())).await {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) => return tracing::warn!("old deliveries could not be forgotten: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::home::Home;
    use crate::store::WebhookEvent;

    fn webhook() -> Webhook {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(&dir.path().join("home")).unwrap();
        let toml =
            b"[webhooks.a]\nurl = \"https://example.org\"\nretry_base_ms = 1000\nretry_max_s = 60\nmax_attempts = 10\n\
                     max_age_h = 1\n";
        Webhook::open_all(&home, &Config::parse(toml).unwrap(), |_| None).unwrap().remove(0)
    }

    fn delivery(attempts: u32) -> Delivery {
        Delivery {
            id: 1,
            key: "k".to_owned(),
            webhook: "a".to_owned(),
            event: WebhookEvent::Reply,
            message: Some(1),
            run: None,
            seq: None,
            at_ms: 0,
            since_ms: 0,
            attempts,
            due_ms: 0,
            ended_ms: None,
            error: None,
        }
    }

    #[test]
    fn waits_double_up_to_the_most_and_are_spread() {
        let (webhook, failed) = (webhook(), NotDelivered::passing("x"));
        let wait = |attempts, dice| after(&webhook, &delivery(attempts), &failed, 0, dice);
        for (attempts, most) in [(0, 1_000), (1, 2_000), (2, 4_000), (5, 32_000), (6, 60_000), (8, 60_000)] {
            assert_eq!((wait(attempts, 0), wait(attempts, u32::MAX)), (Some(most / 2), Some(most)), "{attempts}");
            let between = wait(attempts, u32::MAX / 2).unwrap();
            assert!((most / 2..=most).contains(&between), "{between}");
        }
    }

    #[test]
    fn a_receiver_may_ask_for_more_time_but_not_for_any() {
        let webhook = webhook();
        let asks = |wait| NotDelivered { wait: Some(Duration::from_secs(wait)), ..NotDelivered::passing("x") };
        let wait = |asked| after(&webhook, &delivery(0), &asks(asked), 0, u32::MAX);
        assert_eq!(
            [wait(0), wait(1), wait(7), wait(60), wait(86_400)],
            [1_000, 1_000, 7_000, 60_000, 60_000].map(Some)
        );
    }

    #[test]
    fn a_delivery_is_given_up_in_the_end() {
        let (webhook, failed) = (webhook(), NotDelivered::passing("x"));
        let next = |attempts, now| after(&webhook, &delivery(attempts), &failed, now, 0);
        assert!(next(8, 0).is_some());
        assert_eq!(next(9, 0), None, "that was the tenth");
        let hour = 3_600_000;
        assert!(next(4, hour - 1).is_some());
        assert_eq!(next(4, hour), None, "too old");
        assert!(next(3, i64::MAX).is_some(), "or the clock was wrong");
        // A clock that was set back makes nothing old.
        assert!(next(0, -hour).is_some());
        let gone = NotDelivered { trouble: Trouble::Gone, ..failed.clone() };
        assert_eq!(after(&webhook, &delivery(0), &gone, 0, 0), None);
    }

    #[test]
    fn a_clock_that_jumps_holds_nothing_up() {
        let wait = |due, now| until_due(due, now, 60_000).map(|wait| wait.as_millis());
        assert_eq!([wait(5, 5), wait(5, 9), wait(0, i64::MAX), wait(i64::MAX, i64::MIN)], [None; 4]);
        assert_eq!([wait(6, 5), wait(60_005, 5), wait(60_006, 5)], [Some(1), Some(60_000), None]);
    }
}
