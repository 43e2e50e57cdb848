//! The status that each member publishes, and the status of the fleet.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::FleetError;
use super::bus::Bus;
use super::lease::Ownership;
use super::log::Base;
use kiso_base::clock::now_ms;
use kiso_sandbox::effect::member::{FleetStatus, MemberStatus};

/// How often a member publishes its status.
const EVERY: Duration = Duration::from_secs(5);

/// Time limit for reading all statuses.
const PATIENCE: Duration = Duration::from_secs(4);

const KEYS: &str = "member.";

/// A member's last published status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberState {
    pub name: String,
    /// Version of kiso.
    pub version: String,
    /// Milliseconds since 1970 (UTC), by the member's own clock.
    pub at_ms: i64,
    /// Whether it may take over.
    pub stands_by: bool,
    /// Absent from older versions of kiso.
    #[serde(default)]
    pub labels: Vec<String>,
}

impl MemberState {
    /// Returns the status of this process.
    pub fn now(bus: &Bus, stands_by: bool) -> MemberState {
        let (name, labels) = (bus.settings().member.clone(), bus.settings().labels.clone());
        MemberState { name, version: env!("CARGO_PKG_VERSION").to_owned(), at_ms: now_ms(), stands_by, labels }
    }

    /// Publishes the status periodically.
    pub async fn keep_saying(bus: Bus, stands_by: bool) {
        loop {
            let state = MemberState::now(&bus, stands_by);
            let value = kiso_base::json::bytes(&state);
            if let Err(error) = bus.set(&format!("{KEYS}{}", state.name), &value).await {
                tracing::debug!("the other members could not be told of this one: {error}");
            }
            tokio::time::sleep(EVERY).await;
        }
    }

    /// `now_ms` and `said_ms`, the time of publication, are by the server's clock, so that different clocks of members do not
    /// matter. The current owner is known better than from the status of a member that is gone.
    fn seen(self, owner: Option<&str>, said_ms: i64, now_ms: i64) -> MemberStatus {
        let MemberState { name, version, at_ms, stands_by, labels } = self;
        let owns = owner == Some(&name);
        let ago_ms = u64::try_from(now_ms.saturating_sub(said_ms)).unwrap_or(0);
        MemberStatus { name, version, owns, stands_by, labels, ago_ms, ahead_ms: at_ms.saturating_sub(said_ms) }
    }
}

/// Returns the current status of the fleet.
pub async fn read(bus: &Bus) -> Result<FleetStatus, FleetError> {
    let read = tokio::time::timeout(PATIENCE, read_all(bus)).await;
    read.unwrap_or_else(|_| Err(FleetError::Jetstream("it does not answer in time".to_owned())))
}

async fn read_all(bus: &Bus) -> Result<FleetStatus, FleetError> {
    let owner = Ownership::read(bus).await?.0;
    let base = Base::read(bus).await?.0;
    let (mut said, mut other_keys) = (Vec::new(), Vec::new());
    for key in bus.keys(KEYS).await? {
        let value = match bus.value(&key).await {
            // A member with another key must not hide the others.
            Err(FleetError::OtherKey) => {
                other_keys.push(key.trim_start_matches(KEYS).to_owned());
                continue;
            }
            value => value?,
        };
        let Some(value) = value else { continue };
        // Another version may use another format.
        let state = serde_json::from_slice::<MemberState>(&value.value).ok();
        said.extend(state.map(|state| (state, value.at_ms)));
    }
    let log = bus.log_state().await?;
    let mut members: Vec<_> =
        said.into_iter().map(|(state, said_ms)| state.seen(owner.member.as_deref(), said_ms, log.at_ms)).collect();
    members.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(FleetStatus {
        fleet: bus.settings().fleet.clone(),
        begun: base.is_some(),
        owner: owner.member,
        epoch: owner.epoch,
        log_messages: log.end.saturating_sub(base.map_or(0, |base| base.sequence)),
        log_bytes: log.bytes,
        members,
        other_keys,
    })
}
