//! The engine of exec tasks: apart from that of skills, because compiled commands only fit one set of settings and a
//! task needs many small instances where a call of a skill needs one large one.

use super::embedded::{InPlace, PageAligned};
use crate::engine::compile::{self, EXEC_RESERVATION};
use crate::engine::pooled;
use crate::engine::ticker::Ticker;
use crate::skill::deflated::DeflatedBytes;
use kiso_base::config::Exec as ExecConfig;
use kiso_base::system::OWN_DATA_CAN_RUN;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use wasmtime::PoolingAllocationConfig;
use wasmtime::component::Component;

/// Stack of a process. Larger than a skill's: parsers and `sort` recurse.
pub(super) const STACK_BYTES: usize = 4 << 20;
/// Core modules in a component: the program, and the ones that connect it to its imports.
const MODULES: u32 = 8;
/// Elements of a table: the functions whose address is taken, some ten thousand in `coreutils`.
const TABLE_ELEMENTS: usize = 64 << 10;

/// The engine, and the threads that run its instances.
pub(super) struct Engine {
    engine: wasmtime::Engine,
    in_place: bool,
    pub ticker: Arc<Ticker>,
    /// Tasks at once.
    pub tasks: Arc<Semaphore>,
    /// A separate runtime, because file access of guests blocks its threads: a slow disk must not hold up anything else.
    runtime: Option<Runtime>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("tasks", &self.tasks.available_permits()).finish_non_exhaustive()
    }
}

impl Engine {
    /// Reserves address space for all processes and starts the threads.
    pub(super) fn new(config: &ExecConfig) -> anyhow::Result<Self> {
        let engine = wasmtime::Engine::new(&settings(config)?).map_err(|e| {
            anyhow::anyhow!(
                "failed to start the engine of exec tasks (lower [exec] max_tasks or max_processes?): {e:#}"
            )
        })?;
        let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .thread_name("kiso-exec")
            // Two more than cores, because some of them wait for files.
            .worker_threads(cores + 2)
            // Installed commands send requests, if that was granted.
            .enable_all()
            .build()?;
        let ticker = Ticker::start(&engine)?;
        let tasks = Arc::new(Semaphore::new(usize::try_from(config.max_tasks)?));
        Ok(Self {
            engine,
            // Code can be registered once in a process; a second engine, as tests have it, makes copies.
            in_place: OWN_DATA_CAN_RUN && !IN_PLACE.swap(true, Relaxed),
            ticker,
            tasks,
            runtime: Some(runtime),
        })
    }

    pub(super) fn wasmtime(&self) -> &wasmtime::Engine {
        &self.engine
    }

    /// The runtime of processes.
    #[expect(clippy::expect_used, reason = "the runtime ends with the engine")]
    pub(super) fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("the runtime ends with the engine")
    }

    /// One of the embedded components that is unpacked when it is used.
    pub(super) fn unpacked(&self, code: &DeflatedBytes) -> wasmtime::Result<Component> {
        // SAFETY: as below; wasmtime makes its own copy.
        unsafe { Component::deserialize(&self.engine, code.unpack()) }
    }

    /// One of the embedded components that lie in the program as they are mapped.
    pub(super) fn embedded(&self, code: &'static PageAligned<[u8]>) -> wasmtime::Result<Component> {
        // SAFETY: `build.rs` made these bytes with `Engine::precompile_component`, so they are what wasmtime wrote itself.
        // They lie in the program's own read-only memory, aligned to any page size, and stay there as long as the process.
        // In place nothing is copied: pages are read from the program's file when they are used.
        unsafe {
            match self.in_place {
                true => Component::deserialize_raw(&self.engine, NonNull::from(&code.code)),
                false => Component::deserialize(&self.engine, &code.code),
            }
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.ticker.end();
        if let Some(runtime) = self.runtime.take() {
            // The last owner may be a task, and a task cannot wait for its own runtime.
            runtime.shutdown_background();
        }
    }
}

/// Whether some engine of this process uses the embedded code in place.
static IN_PLACE: AtomicBool = AtomicBool::new(false);

/// Sized for all processes of all tasks, so that a process that may be started never finds the pool empty.
fn settings(config: &ExecConfig) -> anyhow::Result<wasmtime::Config> {
    let processes = u32::try_from(config.max_tasks * config.max_processes)?;
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(processes)
        .total_core_instances(processes * MODULES)
        .max_core_instances_per_component(MODULES)
        .max_component_instance_size(1 << 20)
        .max_core_instance_size(1 << 20)
        // A second memory each, for the exceptions of programs that do not come with kiso.
        .total_memories(processes * 2)
        .total_gc_heaps(processes)
        .max_memories_per_component(1)
        .max_memories_per_module(1)
        .max_memory_size(usize::try_from(EXEC_RESERVATION)?)
        .total_tables(processes * 2)
        .max_tables_per_component(2)
        .max_tables_per_module(2)
        .table_elements(TABLE_ELEMENTS)
        .total_stacks(processes)
        .linear_memory_keep_resident(256 << 10)
        .table_keep_resident(64 << 10)
        .async_stack_keep_resident(64 << 10)
        .max_unused_warm_slots(16);
    let mut engine = pooled(compile::settings(EXEC_RESERVATION), STACK_BYTES, pool);
    engine.with_custom_code_memory(Some(Arc::new(InPlace)));
    Ok(engine)
}
