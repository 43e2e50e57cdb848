//! Memory of a task: one budget over all its processes.

use crate::skill::limits::{Budget, HitCell, Limit};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use wasmtime::ResourceLimiter;

/// What all processes of a task hold together.
#[derive(Debug, Default)]
pub(super) struct MemoryUse {
    held: AtomicU64,
    peak: AtomicU64,
}

impl MemoryUse {
    /// The most bytes that were held at once.
    pub(super) fn peak(&self) -> u64 {
        self.peak.load(Relaxed)
    }

    fn take(&self, bytes: u64, most: u64) -> bool {
        let held = self.held.fetch_add(bytes, Relaxed).saturating_add(bytes);
        if held > most {
            self.held.fetch_sub(bytes, Relaxed);
            return false;
        }
        self.peak.fetch_max(held, Relaxed);
        true
    }
}

/// The share of one process; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Share {
    memory: Arc<MemoryUse>,
    held: u64,
    budget: Budget,
    hit: HitCell,
}

impl Share {
    pub(super) fn new(memory: Arc<MemoryUse>, budget: Budget, hit: HitCell) -> Self {
        Self { memory, held: 0, budget, hit }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.memory.held.fetch_sub(self.held, Relaxed);
    }
}

impl ResourceLimiter for Share {
    fn memory_growing(&mut self, current: usize, desired: usize, _max: Option<usize>) -> wasmtime::Result<bool> {
        let more = desired.saturating_sub(current) as u64;
        if !self.memory.take(more, self.budget.memory_mib << 20) {
            // Ends the task: a guest that is told "no" would only turn it into an abort that says nothing.
            return Err(self.hit.set(self.budget.hit(Limit::Memory)).into());
        }
        self.held += more;
        Ok(true)
    }

    fn table_growing(&mut self, _current: usize, _desired: usize, _max: Option<usize>) -> wasmtime::Result<bool> {
        // Bounded by the pool, and the bundled components do not grow theirs.
        Ok(true)
    }
}
