//! What a person asks of a member: to give the home up, for another one or for anybody.

use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};

use super::FleetError;
use super::bus::Bus;

/// How long an answer is waited for: a step that is under way is finished first.
const PATIENCE: Duration = Duration::from_secs(10);

/// A request to the owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GiveUp {
    /// The epoch of the ownership that is meant: an old request does nothing to a later owner.
    pub epoch: u64,
    /// Who is to have it; anybody else where it is not said.
    pub to: Option<String>,
}

impl GiveUp {
    const SUBJECT: &str = "control";

    /// Asks the owner, and returns when it has heard it.
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

    /// The next request to the owner of that epoch.
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
