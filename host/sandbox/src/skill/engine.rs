//! The engine of skills: its sizes, the number of calls at once, and the linker with a guest's imports.

use super::cache::CodeCache;
use super::capability::Capabilities;
use super::ctx::Ctx;
use super::fair::GuestTurns;
use crate::engine::limits::MEMORIES;
use crate::engine::pooled;
use crate::engine::ticker::Ticker;
use kiso_base::config::Engine as EngineConfig;
use kiso_base::home::Home;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wasmtime::component::Linker;
use wasmtime::{Config, Engine, PoolingAllocationConfig};

/// Engine, linker and the number of calls at once.
pub(super) struct Sandbox {
    engine: Engine,
    linker: Linker<Ctx>,
    calls: Arc<Semaphore>,
    turns: GuestTurns,
    ticker: Arc<Ticker>,
    code: CodeCache,
}

impl std::fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sandbox").field("calls", &self.calls.available_permits()).finish_non_exhaustive()
    }
}

impl Sandbox {
    /// Reserves the pool and starts the ticker. Address space is reserved here, memory is not.
    pub(super) fn new(config: &EngineConfig, home: &Home) -> anyhow::Result<Self> {
        let engine = Engine::new(&settings(config)?).map_err(|e| {
            anyhow::anyhow!("failed to start the wasm engine (lower [engine] max_calls or max_memory_mib?): {e:#}")
        })?;
        let linker = linker(&engine)?;
        let code = CodeCache::of_skills(&engine, home);
        let ticker = Ticker::start(&engine)?;
        let calls = usize::try_from(config.max_calls)?;
        let calls = Arc::new(Semaphore::new(calls));
        Ok(Self { engine, linker, calls, turns: GuestTurns::default(), ticker, code })
    }

    /// The engine.
    pub(super) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The linker of the interfaces that guests may import.
    pub(super) fn linker(&self) -> &Linker<Ctx> {
        &self.linker
    }

    /// The turns of guests that compute for long.
    pub(super) fn turns(&self) -> &GuestTurns {
        &self.turns
    }

    /// The compiled code that the home keeps for this engine.
    pub(super) fn code(&self) -> &CodeCache {
        &self.code
    }

    /// Waits for a free slot of the pool. Guests are interrupted only while somebody holds one, so that an idle daemon
    /// wakes no core.
    pub(super) async fn enter(&self) -> CallSlot<'_> {
        let permit = kiso_base::compute::permit(&self.calls).await;
        self.ticker.enter();
        CallSlot { _permit: permit, ticker: &self.ticker }
    }

    /// A free slot of the pool, if there is one now.
    pub(super) fn try_enter(&self) -> Option<CallSlot<'_>> {
        let permit = self.calls.clone().try_acquire_owned().ok()?;
        self.ticker.enter();
        Some(CallSlot { _permit: permit, ticker: &self.ticker })
    }
}

/// One call of the pool; given back when dropped.
#[derive(Debug)]
pub(super) struct CallSlot<'a> {
    _permit: OwnedSemaphorePermit,
    ticker: &'a Ticker,
}

impl Drop for CallSlot<'_> {
    fn drop(&mut self) {
        self.ticker.leave();
    }
}

/// Every reservation is explicit: wasmtime's defaults (4 GiB of address space for a memory, a thousand slots) have
/// failed on boards with 47 bits of address space.
fn settings(config: &EngineConfig) -> anyhow::Result<Config> {
    let calls = u32::try_from(config.max_calls)?;
    let instances = u32::try_from(config.instances)?;
    let memory_bytes = usize::try_from(config.max_memory_mib << 20)?;
    let stack_bytes = usize::try_from(config.stack_kib << 10)?;
    let memories = u32::try_from(MEMORIES)?;
    let tables = u32::try_from(config.tables)?;
    let elements = usize::try_from(config.table_elements)?;

    // Sized for `max_calls` components of the largest shape, so that a call that got its slot never finds the pool empty.
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(calls)
        .total_core_instances(calls * instances)
        .max_core_instances_per_component(instances)
        .max_component_instance_size(4 << 20)
        .max_core_instance_size(4 << 20)
        // A second memory, for exceptions that the guest throws.
        .total_memories(calls * (memories + 1))
        .total_gc_heaps(calls)
        .max_memories_per_component(memories)
        .max_memories_per_module(2)
        .max_memory_size(memory_bytes)
        .total_tables(calls * tables)
        .max_tables_per_component(tables)
        .max_tables_per_module(16)
        .table_elements(elements)
        .total_stacks(calls)
        // A used slot keeps this much memory, so that the next call of a small skill causes no page faults.
        .linear_memory_keep_resident(64 << 10)
        .table_keep_resident(4 << 10)
        .async_stack_keep_resident(16 << 10)
        .max_unused_warm_slots(calls);

    Ok(pooled(config.max_memory_mib << 20, stack_bytes, pool))
}

fn linker(engine: &Engine) -> anyhow::Result<Linker<Ctx>> {
    let mut linker = Linker::new(engine);
    Capabilities::link(&mut linker).map_err(|e| anyhow::anyhow!("failed to define the host's functions: {e:#}"))?;
    Ok(linker)
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.ticker.end();
    }
}
