//! Notifies clients of changes of the tools.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::era::SUBSCRIPTION;
use super::server::Server;
use kiso_base::rpc::{self, RequestId, RpcError};

/// How often to poll for changes of the tools while a client listens: another process may install a skill.
pub(super) const LOOK: Duration = Duration::from_secs(1);

/// Waits until the tools differ from those of a revision; returns the new revision.
pub(super) async fn changed(server: &Server, known: u64) -> u64 {
    loop {
        tokio::time::sleep(LOOK).await;
        let now = server.revision().await;
        if now != known {
            return now;
        }
    }
}

/// The notification for a client of the older era.
pub(super) fn list_changed() -> Value {
    rpc::notification("notifications/tools/list_changed", json!({}))
}

/// A subscription of a client of the newer era to changes of the tools.
pub(super) struct Changes {
    id: Value,
    /// Whether the client wants changes of the tools, the only kind of change.
    tools: bool,
    known: u64,
}

impl Changes {
    /// `id` is the id of the request that subscribes.
    pub(super) async fn new(server: &Server, id: &RequestId, params: &Map<String, Value>) -> Result<Changes, RpcError> {
        let Some(Value::Object(wanted)) = params.get("notifications") else {
            return Err(RpcError::params("`notifications` must be an object that says what is wanted"));
        };
        let tools = wanted.get("toolsListChanged") == Some(&Value::Bool(true));
        Ok(Changes { id: id.into(), tools, known: server.revision().await })
    }

    /// Returns the first message: which changes the client will receive.
    pub(super) fn acknowledged(&self) -> Value {
        let honoured = if self.tools { json!({ "toolsListChanged": true }) } else { json!({}) };
        let params = json!({ "_meta": { SUBSCRIPTION: self.id }, "notifications": honoured });
        rpc::notification("notifications/subscriptions/acknowledged", params)
    }

    /// Returns the last message, if the server ends the stream.
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
