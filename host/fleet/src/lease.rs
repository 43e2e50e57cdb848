//! Ownership of the home: a value in the bucket that its owner renews periodically.
//!
//! A member that has seen no change for the duration of the lease takes over. It measures this with its own monotonic clock, so
//! the clocks of two machines need not agree; an owner also counts the time during which its machine slept. Safety does not
//! depend on the lease: the log refuses commits of a former owner ([`super::log`]). The lease prevents a former owner from
//! starting irreversible actions.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::Instant;

use super::FleetError;
use super::bus::Bus;
use kiso_base::clock::since_boot;

/// Delay between two attempts to take the home.
const AGAIN: Duration = Duration::from_millis(200);

/// The value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ownership {
    /// `None` after a release: the first member to do so may take it.
    pub member: Option<String>,
    /// Increases with each owner.
    pub epoch: u64,
    /// Increases with each renewal.
    pub beat: u64,
    /// For the duration of a lease, only this member may take it.
    pub meant_for: Option<String>,
}

impl Ownership {
    pub const KEY: &'static str = "owner";

    /// Returns the current value with the revision that a change must name; 0 and no member if there never was an owner.
    pub async fn read(bus: &Bus) -> Result<(Ownership, u64), FleetError> {
        let Some(found) = bus.value(Ownership::KEY).await? else {
            return Ok((Ownership { member: None, epoch: 0, beat: 0, meant_for: None }, 0));
        };
        let owner = serde_json::from_slice(&found.value)
            .map_err(|_| FleetError::Log("the owner's value is of another form"))?;
        Ok((owner, found.revision))
    }

    async fn write(&self, bus: &Bus, revision: u64) -> Result<Option<u64>, FleetError> {
        bus.swap(Ownership::KEY, &kiso_base::json::bytes(self), revision).await
    }
}

/// A standby member's observations of the owner.
#[derive(Debug)]
pub struct OwnerWatch {
    revision: u64,
    since: Instant,
}

impl OwnerWatch {
    pub fn new(revision: u64) -> OwnerWatch {
        OwnerWatch { revision, since: Instant::now() }
    }

    /// Records the current value; returns whether a member of this name may take over.
    pub fn may_take(&mut self, owner: &Ownership, revision: u64, name: &str, lease: Duration) -> bool {
        if revision != self.revision {
            *self = OwnerWatch::new(revision);
        }
        let is_over = self.since.elapsed() >= lease;
        match (&owner.member, &owner.meant_for) {
            (Some(_), _) => is_over,
            (None, Some(wanted)) => wanted == name || is_over,
            (None, None) => true,
        }
    }
}

/// An owner's lease. Clones are cheap.
#[derive(Debug, Clone)]
pub struct Lease(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    lasts: Duration,
    held: Mutex<Held>,
    lost: watch::Sender<Option<String>>,
}

#[derive(Debug)]
struct Held {
    owner: Ownership,
    revision: u64,
    /// Time since boot at which the last confirmed renewal was sent.
    renewed: Duration,
}

impl Held {
    fn age(&self) -> Duration {
        since_boot().saturating_sub(self.renewed)
    }
}

impl Lease {
    /// Takes over the home from the value `owner` at `revision`; returns `None` if somebody else was faster. Waits for NATS,
    /// because the outcome must be known.
    pub async fn take(bus: &Bus, owner: &Ownership, revision: u64, lasts: Duration) -> Option<Lease> {
        let renewed = since_boot();
        let member = Some(bus.settings().member.clone());
        let owner = Ownership { member, epoch: owner.epoch + 1, beat: 0, meant_for: None };
        let mut unconfirmed = false;
        let revision = loop {
            let error = match owner.write(bus, revision).await {
                Ok(Some(revision)) => break revision,
                Ok(None) if !unconfirmed => return None,
                Ok(None) => match Ownership::read(bus).await {
                    Ok((found, revision)) if found == owner => break revision,
                    Ok(_) => return None,
                    Err(error) => error,
                },
                Err(error) => error,
            };
            tracing::warn!("whether this member has taken the home is not known: {error}");
            unconfirmed = true;
            tokio::time::sleep(AGAIN).await;
        };
        let held = Mutex::new(Held { owner, revision, renewed });
        Some(Lease(Arc::new(Inner { lasts, held, lost: watch::Sender::new(None) })))
    }

    pub fn epoch(&self) -> u64 {
        self.held().owner.epoch
    }

    pub fn lasts(&self) -> Duration {
        self.0.lasts
    }

    /// Returns whether an irreversible action may be started: at least a third of the lease remains, so the action starts before
    /// anybody else can own the home.
    pub fn is_good(&self) -> bool {
        self.0.lost.borrow().is_none() && self.held().age() < self.0.lasts * 2 / 3
    }

    /// Returns whether the lease was not declared lost.
    pub fn is_held(&self) -> bool {
        self.0.lost.borrow().is_none()
    }

    /// Returns the time until which an append may be retried.
    pub fn deadline(&self) -> Instant {
        // A renewal during the wait counts only for the next append.
        Instant::now() + self.0.lasts.saturating_sub(self.held().age())
    }

    /// Declares the lease lost; returns the reason that was given first.
    pub fn lose(&self, why: String) -> String {
        self.0.lost.send_if_modified(|lost| lost.is_none().then(|| *lost = Some(why.clone())).is_some());
        why
    }

    /// Completes when the lease is lost.
    pub async fn lost(&self) -> String {
        let mut lost = self.0.lost.subscribe();
        let why = lost.wait_for(Option::is_some).await.ok().and_then(|why| why.clone());
        why.unwrap_or_default()
    }

    /// Renews the lease three times within its duration, until it is lost.
    pub async fn renew(self, bus: Bus) {
        let mut beat = tokio::time::interval(self.0.lasts / 3);
        beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while self.0.lost.borrow().is_none() {
            beat.tick().await;
            let began = since_boot();
            let (owner, revision) = {
                let held = self.held();
                (Ownership { beat: held.owner.beat + 1, ..held.owner.clone() }, held.revision)
            };
            match owner.write(&bus, revision).await {
                Ok(Some(revision)) => *self.held() = Held { owner, revision, renewed: began },
                Ok(None) => match Ownership::read(&bus).await {
                    // The renewal was stored, but its confirmation was lost.
                    Ok((found, revision)) if found == owner => *self.held() = Held { owner, revision, renewed: began },
                    Ok((found, _)) => {
                        let by = found.member.unwrap_or_else(|| "somebody".to_owned());
                        self.lose(format!("{by} has taken over"));
                    }
                    Err(error) => tracing::warn!("whether this member still owns the home is not known: {error}"),
                },
                Err(error) => tracing::warn!("the lease could not be renewed: {error}"),
            }
            if self.held().age() >= self.0.lasts {
                self.lose("NATS was out of reach for longer than fleet.lease_s".to_owned());
            }
        }
    }

    /// Releases ownership, for `to` if it is meant for one member.
    pub async fn give_up(&self, bus: &Bus, to: Option<String>) -> Result<(), FleetError> {
        self.lose("it was given up".to_owned());
        // A last renewal may still have been in transit.
        loop {
            let (found, revision) = Ownership::read(bus).await?;
            let held = self.held().owner.clone();
            if found.epoch != held.epoch || found.member != held.member {
                return Ok(());
            }
            let given = Ownership { member: None, meant_for: to.clone(), beat: found.beat + 1, ..found };
            if given.write(bus, revision).await?.is_some() {
                return Ok(());
            }
        }
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Held> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(6);

    fn owned(member: Option<&str>, meant_for: Option<&str>) -> Ownership {
        let name = |name: &str| name.to_owned();
        Ownership { member: member.map(name), epoch: 3, beat: 9, meant_for: meant_for.map(name) }
    }

    #[tokio::test(start_paused = true)]
    async fn one_who_stands_by_waits_for_a_whole_lease_without_a_change() {
        let mut observed = OwnerWatch::new(10);
        let pi = owned(Some("pi"), None);
        assert!(!observed.may_take(&pi, 10, "laptop", LEASE));
        tokio::time::advance(LEASE - Duration::from_millis(1)).await;
        assert!(!observed.may_take(&pi, 10, "laptop", LEASE));
        // The owner has renewed in between.
        assert!(!observed.may_take(&pi, 11, "laptop", LEASE));
        tokio::time::advance(LEASE - Duration::from_millis(1)).await;
        assert!(!observed.may_take(&pi, 11, "laptop", LEASE));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(observed.may_take(&pi, 11, "laptop", LEASE));
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_given_up_is_free_or_kept_for_somebody_for_a_while() {
        let mut observed = OwnerWatch::new(1);
        assert!(observed.may_take(&owned(None, None), 1, "laptop", LEASE));
        let meant = owned(None, Some("desk"));
        assert!(observed.may_take(&meant, 2, "desk", LEASE));
        assert!(!observed.may_take(&meant, 2, "laptop", LEASE));
        tokio::time::advance(LEASE).await;
        assert!(observed.may_take(&meant, 2, "laptop", LEASE));
    }
}
