//! What a client hears of a request before its result.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use tokio::sync::mpsc;

use kiso_base::rpc::notification;

/// Characters of what is said at once.
const MAX_SAID: usize = 1_000;

/// Tells progress, where the client wants to hear of it.
#[derive(Debug, Default)]
pub(super) struct ProgressTeller {
    to: Option<(Value, mpsc::Sender<Value>)>,
    told: AtomicU64,
}

impl ProgressTeller {
    /// `token` is what the client calls the request by; without one, nothing is told.
    pub(super) fn new(token: Option<Value>, out: mpsc::Sender<Value>) -> ProgressTeller {
        ProgressTeller { to: token.map(|token| (token, out)), told: AtomicU64::new(0) }
    }

    /// Says what is being done. A client that reads slowly misses some of it: the result is what counts.
    pub(super) fn tell(&self, said: &str) {
        let Some((token, out)) = &self.to else { return };
        let message: String = said.trim().chars().take(MAX_SAID).collect();
        let progress = self.told.fetch_add(1, Ordering::Relaxed) + 1;
        let params = json!({ "progressToken": token, "progress": progress, "message": message });
        let _ = out.try_send(notification("notifications/progress", params));
    }
}
