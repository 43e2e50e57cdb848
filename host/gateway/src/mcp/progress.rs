//! Progress of a request, before its result.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use tokio::sync::mpsc;

use kiso_base::rpc::notification;

/// Maximum length in characters of a progress message.
const MAX_SAID: usize = 1_000;

/// Sends progress messages, if the client wants them.
#[derive(Debug, Default)]
pub(super) struct ProgressTeller {
    to: Option<(Value, mpsc::Sender<Value>)>,
    told: AtomicU64,
}

impl ProgressTeller {
    /// `token` identifies the request for the client; without it, nothing is sent.
    pub(super) fn new(token: Option<Value>, out: mpsc::Sender<Value>) -> ProgressTeller {
        ProgressTeller { to: token.map(|token| (token, out)), told: AtomicU64::new(0) }
    }

    /// Sends a progress message. A slow client misses some of them, because only the result matters.
    pub(super) fn tell(&self, said: &str) {
        let Some((token, out)) = &self.to else { return };
        let message: String = said.trim().chars().take(MAX_SAID).collect();
        let progress = self.told.fetch_add(1, Ordering::Relaxed) + 1;
        let params = json!({ "progressToken": token, "progress": progress, "message": message });
        let _ = out.try_send(notification("notifications/progress", params));
    }
}
