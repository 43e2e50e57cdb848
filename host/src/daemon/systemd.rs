//! What systemd, or whatever else stands behind `NOTIFY_SOCKET`, is told. Without such a socket nothing is said.

use std::time::Duration;

use sd_notify::NotifyState;
use tokio::sync::watch;

use kiso_agent::session::intake::Intake;
use kiso_store::store::{Store, StoreError};

/// Requests are answered. `status` is for people.
pub fn ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// The configuration is being read anew; [`ready`] says that it is over.
pub fn reloading() {
    // With Type=notify-reload the time says which signal this answers.
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(_) => tell(&[NotifyState::Reloading]),
    }
}

/// The end has begun, and waits at most `grace` for what is under way, whatever the unit allows.
pub fn stopping(grace: Duration) {
    let micros = u32::try_from((grace + CLOSING).as_micros()).unwrap_or(u32::MAX);
    tell(&[NotifyState::Stopping, NotifyState::ExtendTimeoutUsec(micros), NotifyState::Status("ending")]);
}

/// For the store to move its log into the file, on a slow card.
const CLOSING: Duration = Duration::from_secs(15);

/// Says that the daemon is alive, as often as it is asked to and as long as it is true: the queue answers, and the
/// store's writer gets through a transaction. One that is silent is killed and started again.
pub async fn watch(intake: Intake, store: Store, ending: watch::Receiver<bool>) {
    let Some(limit) = sd_notify::watchdog_enabled().filter(|limit| !limit.is_zero()) else { return };
    // As sd_watchdog_enabled(3) advises, so that one message may be late.
    let mut beat = tokio::time::interval(limit / 2);
    beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        beat.tick().await;
        // At the end the queue is gone before the store is.
        let queue = async { *ending.borrow() || intake.is_alive().await || *ending.borrow() };
        // A disk that is full or a file that is locked is an answer: starting again would mend neither.
        let store = async { !matches!(store.write(|_| Ok(())).await, Err(StoreError::Closed)) };
        let alive = async { tokio::join!(queue, store) };
        match tokio::time::timeout(limit, alive).await {
            Ok((true, true)) => tell(&[NotifyState::Watchdog]),
            // The store was closed in good order.
            Ok((_, false)) if *ending.borrow() => return,
            Ok((queue, store)) => tracing::error!(queue, store, "a part of the daemon is gone"),
            Err(_) => tracing::error!("queue or store did not answer within {limit:?}"),
        }
    }
}

fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!("NOTIFY_SOCKET cannot be written to: {error}");
    }
}
