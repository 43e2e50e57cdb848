//! Telling clients that the tools have changed.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::era::SUBSCRIPTION;
use super::server::Server;
use kiso_base::rpc::{self, RequestId, RpcError};

/// How often it is looked whether the tools are still the same, while somebody wants to hear of that: who installs a skill may be
/// another process.
pub(super) const LOOK: Duration = Duration::from_secs(1);

/// Waits until the tools are others than those of a revision; the new one.
pub(super) async fn changed(server: &Server, known: u64) -> u64 {
    loop {
        tokio::time::sleep(LOOK).await;
        let now = server.revision().await;
        if now != known {
            return now;
        }
    }
}

/// What a client of the older era is told.
pub(super) fn list_changed() -> Value {
    rpc::notification("notifications/tools/list_changed", json!({}))
}

/// Changes of the tools that a client of the newer era listens to.
pub(super) struct Changes {
    id: Value,
    /// Whether it wants to hear of the tools; there is nothing else to hear of.
    tools: bool,
    known: u64,
}

impl Changes {
    /// `id` is of the request that listens.
    pub(super) async fn new(server: &Server, id: &RequestId, params: &Map<String, Value>) -> Result<Changes, RpcError> {
        let Some(Value::Object(wanted)) = params.get("notifications") else {
            return Err(RpcError::params("`notifications` must be an object that says what is wanted"));
        };
        let tools = wanted.get("toolsListChanged") == Some(&Value::Bool(true));
        Ok(Changes { id: id.into(), tools, known: server.revision().await })
    }

    /// What is said first: what the client will hear of.
    pub(super) fn acknowledged(&self) -> Value {
        let honoured = if self.tools { json!({ "toolsListChanged": true }) } else { json!({}) };
        let params = json!({ "_meta": { SUBSCRIPTION: self.id }, "notifications": honoured });
        rpc::notification("notifications/subscriptions/acknowledged", params)
    }

    /// What is said last, where the stream ends on this side.
    pub(super) fn closed(&self, id: &RequestId) -> Value {
        rpc::response(id, Ok(json!({ "resultType": "complete", "_meta": { SUBSCRIPTION: self.id } })))
    }

    /// Waits for the next change.
    pub(super) async fn next(&mut self, server: &Server) -> Value {
        if !self.tools {
            std::future::pending::<()>().await;
        }
        self.known = changed(server, self.known).await;
        rpc::notification("notifications/tools/list_changed", json!({ "_meta": { SUBSCRIPTION: self.id } }))
    }
}
