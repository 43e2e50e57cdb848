//! What is counted for `/metrics` since the daemon began.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Counters and gauges of the gateway.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Requests that were answered, refusals included.
    pub requests: AtomicU64,
    /// Connections that are open.
    pub connections: AtomicU64,
    /// Connections to the unix socket that are open.
    pub sockets: AtomicU64,
    /// Event streams that are open, on every channel.
    pub streams: AtomicU64,
    /// Those of HTTP.
    pub http_streams: AtomicU64,
    /// What was refused, by the code of the error. Codes are words of the program, so there are few.
    refused: Mutex<BTreeMap<&'static str, u64>>,
}

impl Counters {
    /// Something was refused for this reason.
    pub(crate) fn refused(&self, code: &'static str) {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner).entry(code).or_default() += 1;
    }

    /// How often something was refused, by reason.
    pub(crate) fn refusals(&self) -> BTreeMap<&'static str, u64> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Counts as long as it lives.
#[derive(Debug)]
pub(crate) struct CountGuard<F: Fn() + Send>(F);

/// Counts one up now, and down again when what is returned is dropped.
pub(crate) fn counted(app: &super::App, of: fn(&Counters) -> &AtomicU64) -> CountGuard<impl Fn() + Send + use<>> {
    let app = app.clone();
    of(&app.0.counters).fetch_add(1, Ordering::Relaxed);
    CountGuard(move || {
        of(&app.0.counters).fetch_sub(1, Ordering::Relaxed);
    })
}

impl<F: Fn() + Send> Drop for CountGuard<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
