//! Requests of a person to a member: to release ownership, for another member or for any.

use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};

use super::FleetError;
use super::bus::Bus;

/// Time limit for the response: an active step is finished first.
const PATIENCE: Duration = Duration::from_secs(10);

/// A request to the owner to release ownership.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GiveUp {
    /// The epoch of the ownership: an old request does not affect a later owner.
    pub epoch: u64,
    /// The next owner; any other member if `None`.
    pub to: Option<String>,
}

impl GiveUp {
    const SUBJECT: &str = "control";

    /// Sends the request, and returns when the owner has received it.
    pub async fn ask(&self, bus: &Bus) -> Result<(), FleetError> {
        let subject = bus.subject(GiveUp::SUBJECT);
        let sealed = bus.seal().seal(&subject, &kiso_base::json::bytes(self));
        let asked = bus.client().request(subject, Bytes::from(sealed));
        match tokio::time::timeout(PATIENCE, asked).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(FleetError::jetstream(error)),
            Err(_) => Err(FleetError::NoOwner),
        }
    }

    /// Waits for the next request to the owner of this epoch.
    pub async fn asked(bus: &Bus, epoch: u64) -> Result<GiveUp, FleetError> {
        let subject = bus.subject(GiveUp::SUBJECT);
        let mut requests = bus.client().subscribe(subject.clone()).await.map_err(FleetError::jetstream)?;
        while let Some(request) = requests.next().await {
            let plain = bus.seal().open(&subject, &request.payload);
            let asked = plain.and_then(|plain| serde_json::from_slice::<GiveUp>(&plain).ok());
            let (Some(asked), Some(reply)) = (asked.filter(|asked| asked.epoch == epoch), request.reply) else {
                continue;
            };
            bus.client().publish(reply, Bytes::new()).await.map_err(FleetError::jetstream)?;
            return Ok(asked);
        }
        Err(FleetError::NoOwner)
    }
}
