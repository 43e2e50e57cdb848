//! What each member says of itself.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::FleetError;
use super::bus::Bus;
use crate::clock::now_ms;

/// How often it says it.
const EVERY: Duration = Duration::from_secs(5);

const KEYS: &str = "member.";

/// A member, as it was when it last said so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberState {
    pub name: String,
    /// Of kiso.
    pub version: String,
    /// Milliseconds since 1970 (UTC), by the member's own clock.
    pub at_ms: i64,
    pub owns: bool,
    /// Whether it may take over.
    pub stands_by: bool,
}

impl MemberState {
    /// This process.
    pub fn now(bus: &Bus, owns: bool, stands_by: bool) -> MemberState {
        let name = bus.settings().member.clone();
        MemberState { name, version: env!("CARGO_PKG_VERSION").to_owned(), at_ms: now_ms(), owns, stands_by }
    }

    /// Says it again and again.
    pub async fn keep_saying(bus: Bus, owns: bool, stands_by: bool) {
        loop {
            let state = MemberState::now(&bus, owns, stands_by);
            let value = serde_json::to_vec(&state).expect("it has a JSON form");
            if let Err(error) = bus.set(&format!("{KEYS}{}", state.name), &value).await {
                tracing::debug!("the other members could not be told of this one: {error}");
            }
            tokio::time::sleep(EVERY).await;
        }
    }

    /// All members that ever said something, by name.
    pub async fn all(bus: &Bus) -> Result<Vec<MemberState>, FleetError> {
        let mut all = Vec::new();
        for key in bus.keys(KEYS).await? {
            let Some(value) = bus.value(&key).await? else { continue };
            all.extend(serde_json::from_slice::<MemberState>(&value.value).ok());
        }
        all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }
}
