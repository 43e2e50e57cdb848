//! The engines of skills: their sizes, the number of calls at once, and the linkers with a guest's imports.
//!
//! Components of WASI 0.3 have an engine of their own, which is made when the first one is loaded.

use super::cache::CodeCache;
use super::capability::Capabilities;
use super::ctx::Ctx;
use super::fair::GuestTurns;
use crate::engine::limits::{Budget, MEMORIES};
use crate::engine::ticker::Ticker;
use crate::engine::{compile, pooled};
use kiso_base::config::Engine as EngineConfig;
use kiso_base::home::Home;
use std::sync::{Arc, OnceLock};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wasmtime::component::Linker;
use wasmtime::{Config, Engine, PoolingAllocationConfig};

/// The engines, and what they share.
#[derive(Debug)]
pub(super) struct Sandbox {
    plain: GuestPool,
    concurrent: OnceLock<GuestPool>,
    config: EngineConfig,
    home: Home,
}

impl Sandbox {
    /// Starts the engine of WASI 0.2.
    pub(super) fn new(config: &EngineConfig, home: &Home) -> anyhow::Result<Self> {
        let plain = GuestPool::new(config, home, Concurrency::Off, Arc::default())?;
        Ok(Self { plain, concurrent: OnceLock::new(), config: config.clone(), home: home.clone() })
    }

    /// The pool of components of WASI 0.2.
    pub(super) fn plain(&self) -> &GuestPool {
        &self.plain
    }

    /// The pool of components of WASI 0.3; `None` if the configuration turns them off.
    pub(super) fn concurrent(&self) -> anyhow::Result<Option<&GuestPool>> {
        if !self.config.wasi_0_3 {
            return Ok(None);
        }
        if let Some(pool) = self.concurrent.get() {
            return Ok(Some(pool));
        }
        let pool = GuestPool::new(&self.config, &self.home, Concurrency::On, self.plain.turns.clone())?;
        Ok(Some(self.concurrent.get_or_init(|| pool)))
    }

    /// The pool with this engine.
    pub(super) fn pool(&self, engine: &Engine) -> &GuestPool {
        let concurrent = self.concurrent.get().filter(|pool| Engine::same(&pool.engine, engine));
        concurrent.unwrap_or(&self.plain)
    }
}

/// Whether the engine has the concurrency of WASI 0.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Concurrency {
    Off,
    On,
}

/// An engine, its linker and the number of calls at once.
pub(super) struct GuestPool {
    engine: Engine,
    linker: Linker<Ctx>,
    concurrency: Concurrency,
    calls: Arc<Semaphore>,
    turns: Arc<GuestTurns>,
    ticker: Arc<Ticker>,
    code: CodeCache,
}

impl std::fmt::Debug for GuestPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GuestPool").field("calls", &self.calls.available_permits()).finish_non_exhaustive()
    }
}

impl GuestPool {
    /// Reserves the pool and starts the ticker. Address space is reserved here, memory is not.
    fn new(
        config: &EngineConfig,
        home: &Home,
        concurrency: Concurrency,
        turns: Arc<GuestTurns>,
    ) -> anyhow::Result<Self> {
        let calls = match concurrency {
            Concurrency::Off => config.max_calls,
            Concurrency::On => config.max_calls.min(CONCURRENT_CALLS),
        };
        let engine = Engine::new(&settings(config, concurrency, calls)?).map_err(|e| {
            anyhow::anyhow!("failed to start the wasm engine (lower [engine] max_calls or max_memory_mib?): {e:#}")
        })?;
        let linker = linker(&engine, concurrency)?;
        let code = CodeCache::of_skills(&engine, home);
        let ticker = Ticker::start(&engine)?;
        let calls = Arc::new(Semaphore::new(usize::try_from(calls)?));
        Ok(Self { engine, linker, concurrency, calls, turns, ticker, code })
    }

    /// Whether its components may be of WASI 0.3.
    pub(super) fn is_concurrent(&self) -> bool {
        self.concurrency == Concurrency::On
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

/// Calls of components of WASI 0.3 that run at once, at most. Each may need hundreds of stacks.
const CONCURRENT_CALLS: u64 = 8;

/// Every reservation is explicit: wasmtime's defaults (4 GiB of address space for a memory, a thousand slots) have
/// failed on boards with 47 bits of address space.
fn settings(config: &EngineConfig, concurrency: Concurrency, calls: u64) -> anyhow::Result<Config> {
    let calls = u32::try_from(calls)?;
    let instances = u32::try_from(config.instances)?;
    let memory_bytes = usize::try_from(config.max_memory_mib << 20)?;
    let stack_bytes = usize::try_from(config.stack_kib << 10)?;
    let memories = u32::try_from(MEMORIES)?;
    let tables = u32::try_from(config.tables)?;
    let elements = usize::try_from(config.table_elements)?;

    let (settings, stacks) = match concurrency {
        Concurrency::Off => (compile::settings(config.max_memory_mib << 20), 1),
        // Each call inside the component that waits has a stack.
        Concurrency::On => {
            let entries = Budget::new(config, 0, 0).concurrent_entries();
            (compile::concurrent_settings(config.max_memory_mib << 20), u32::try_from(entries / 2)? + 1)
        }
    };

    // Sized for `calls` components of the largest shape, so that a call that got its slot never finds the pool empty.
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
        .total_stacks(calls * stacks)
        // A used slot keeps this much memory, so that the next call of a small skill causes no page faults.
        .linear_memory_keep_resident(64 << 10)
        .table_keep_resident(4 << 10)
        .async_stack_keep_resident(16 << 10)
        .max_unused_warm_slots(calls);

    Ok(pooled(settings, stack_bytes, pool))
}

fn linker(engine: &Engine, concurrency: Concurrency) -> anyhow::Result<Linker<Ctx>> {
    let mut linker = Linker::new(engine);
    let wrong = |e: wasmtime::Error| anyhow::anyhow!("failed to define the host's functions: {e:#}");
    Capabilities::link(&mut linker).map_err(wrong)?;
    if concurrency == Concurrency::On {
        Capabilities::link_wasi_0_3(&mut linker).map_err(wrong)?;
    }
    Ok(linker)
}

impl Drop for GuestPool {
    fn drop(&mut self) {
        self.ticker.end();
    }
}
