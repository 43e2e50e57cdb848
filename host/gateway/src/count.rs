//! Counters for `/metrics` since the start of the daemon.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Counters and gauges of the gateway.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Completed requests, including refused ones.
    pub requests: AtomicU64,
    /// Open connections.
    pub connections: AtomicU64,
    /// Open connections to the unix socket.
    pub sockets: AtomicU64,
    /// Open event streams, on every channel.
    pub streams: AtomicU64,
    /// Open event streams over HTTP.
    pub http_streams: AtomicU64,
    /// Refusals by error code. Codes are constants of the program, so there are few.
    refused: Mutex<BTreeMap<&'static str, u64>>,
}

impl Counters {
    /// Counts a refusal with this code.
    pub(crate) fn refused(&self, code: &'static str) {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner).entry(code).or_default() += 1;
    }

    /// Returns the number of refusals by code.
    pub(crate) fn refusals(&self) -> BTreeMap<&'static str, u64> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Decrements the counter when it is dropped.
#[derive(Debug)]
pub(crate) struct CountGuard<F: Fn() + Send>(F);

/// Increments a counter, and decrements it again when the returned guard is dropped.
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
