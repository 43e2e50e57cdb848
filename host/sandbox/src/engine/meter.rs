//! Counts the resources that instances use: memory, tables, and calls into the host.

use super::limits::{Budget, HitCell, Limit, LimitHit, MEMORIES};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use wasmtime::ResourceLimiter;

/// Memory that the instances of one budget hold together.
#[derive(Debug, Default)]
pub(crate) struct MemoryUse {
    held: AtomicU64,
    peak: AtomicU64,
}

impl MemoryUse {
    /// The most bytes that were held at once.
    pub(crate) fn peak(&self) -> u64 {
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

/// Counts the resources that one instance uses. Growth over a cap ends the call: a guest whose growth failed would only abort
/// without a message. The instance's memory is given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Meter {
    budget: Budget,
    hit: HitCell,
    memory: Arc<MemoryUse>,
    held: u64,
    elements: usize,
    host_calls: u64,
}

impl Meter {
    /// Makes the meter of an instance that shares `memory` with others of the same budget.
    pub(crate) fn new(budget: Budget, hit: HitCell, memory: Arc<MemoryUse>) -> Self {
        Self { budget, hit, memory, held: 0, elements: 0, host_calls: 0 }
    }

    /// The limits of the instance.
    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// The most bytes that all memories of the budget held at once.
    pub(crate) fn peak_bytes(&self) -> u64 {
        self.memory.peak()
    }

    /// Calls into the host so far.
    pub(crate) fn host_calls(&self) -> u64 {
        self.host_calls
    }

    /// Counts one call into the host.
    pub(crate) fn host_call(&mut self) -> Result<(), LimitHit> {
        self.host_calls += 1;
        if self.host_calls > self.budget.host_calls {
            return Err(self.reached(Limit::HostCalls));
        }
        Ok(())
    }

    fn reached(&self, limit: Limit) -> LimitHit {
        self.hit.set(self.budget.hit(limit))
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.memory.held.fetch_sub(self.held, Relaxed);
    }
}

impl ResourceLimiter for Meter {
    fn memory_growing(&mut self, current: usize, desired: usize, _max: Option<usize>) -> wasmtime::Result<bool> {
        let more = desired.saturating_sub(current) as u64;
        if !self.memory.take(more, self.budget.memory_mib << 20) {
            return Err(self.reached(Limit::Memory).into());
        }
        self.held += more;
        Ok(true)
    }

    fn table_growing(&mut self, current: usize, desired: usize, _max: Option<usize>) -> wasmtime::Result<bool> {
        let elements = self.elements.saturating_add(desired.saturating_sub(current));
        if elements as u64 > self.budget.table_elements {
            return Err(self.reached(Limit::Tables).into());
        }
        self.elements = elements;
        Ok(true)
    }

    fn instances(&self) -> usize {
        // Bounded by the pool: `max_core_instances_per_component`.
        10_000
    }

    fn tables(&self) -> usize {
        usize::try_from(self.budget.tables).unwrap_or(usize::MAX)
    }

    fn memories(&self) -> usize {
        MEMORIES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiso_base::config::Config;

    const MIB: usize = 1 << 20;

    fn meter(memory: &Arc<MemoryUse>, hit: &HitCell) -> Meter {
        let budget = Budget { memory_mib: 2, ..Budget::new(&Config::default().engine, 2, 1) };
        Meter::new(budget, hit.clone(), memory.clone())
    }

    #[test]
    fn instances_share_their_memory_and_give_it_back() {
        let (memory, hit) = (Arc::default(), HitCell::default());
        let (mut one, mut two) = (meter(&memory, &hit), meter(&memory, &hit));
        assert!(one.memory_growing(0, MIB, None).unwrap());
        assert!(two.memory_growing(0, MIB, None).unwrap());
        drop(one);
        assert!(two.memory_growing(MIB, 2 * MIB, None).unwrap());
        assert_eq!((memory.peak(), hit.get()), (2 * MIB as u64, None));
        two.memory_growing(2 * MIB, 2 * MIB + 1, None).unwrap_err();
        assert_eq!(hit.get().unwrap().limit, Limit::Memory);
        drop(two);
        assert_eq!(memory.held.load(Relaxed), 0, "what was refused was not taken");
    }

    #[test]
    fn what_a_budget_does_not_allow_ends_the_call() {
        let budget = |limit: Limit| {
            let (hit, mut of) = (HitCell::default(), Budget::new(&Config::default().engine, 1, 1));
            (of.host_calls, of.table_elements) = (1, 10);
            let mut meter = Meter::new(of, hit.clone(), Arc::default());
            meter.host_call().unwrap();
            meter.table_growing(0, 10, None).unwrap();
            match limit {
                Limit::Tables => drop(meter.table_growing(10, 11, None).unwrap_err()),
                _ => drop(meter.host_call().unwrap_err()),
            }
            hit.get().unwrap().limit
        };
        assert_eq!([Limit::Tables, Limit::HostCalls].map(budget), [Limit::Tables, Limit::HostCalls]);
    }
}
