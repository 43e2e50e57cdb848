//! Notifications for systemd, or another service manager behind `NOTIFY_SOCKET`. Without such a socket, nothing is sent.

use std::time::Duration;

use sd_notify::NotifyState;
use tokio::sync::watch;

use kiso_agent::session::intake::Intake;
use kiso_store::store::{Store, StoreError};

/// Reports that the daemon answers requests. `status` is for people.
pub fn ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// Reports that the configuration is being reloaded; [`ready`] reports the end.
pub fn reloading() {
    // With Type=notify-reload, the time identifies the signal that this answers.
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(_) => tell(&[NotifyState::Reloading]),
    }
}

/// Reports that shutdown has begun, and asks for enough time to wait `grace` for running work, regardless of the unit's
/// timeout.
pub fn stopping(grace: Duration) {
    let micros = u32::try_from((grace + CLOSING).as_micros()).unwrap_or(u32::MAX);
    tell(&[NotifyState::Stopping, NotifyState::ExtendTimeoutUsec(micros), NotifyState::Status("ending")]);
}

/// Time for the store to move its log into the file on a slow card.
const CLOSING: Duration = Duration::from_secs(15);

/// Sends watchdog messages while the daemon is alive: the queue answers, and the store's writer completes a transaction.
/// systemd kills and restarts a daemon that sends none.
pub async fn watch(intake: Intake, store: Store, ending: watch::Receiver<bool>) {
    let Some(limit) = sd_notify::watchdog_enabled().filter(|limit| !limit.is_zero()) else { return };
    // Half of the limit, as sd_watchdog_enabled(3) recommends: one message may be late.
    let mut beat = tokio::time::interval(limit / 2);
    beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        beat.tick().await;
        // At shutdown, the queue ends before the store.
        let queue = async { *ending.borrow() || intake.is_alive().await || *ending.borrow() };
        // A full disk or a locked file counts as an answer: a restart would not help.
        let store = async { !matches!(store.write(|_| Ok(())).await, Err(StoreError::Closed)) };
        let alive = async { tokio::join!(queue, store) };
        match tokio::time::timeout(limit, alive).await {
            Ok((true, true)) => tell(&[NotifyState::Watchdog]),
            // The store was closed by the shutdown.
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
