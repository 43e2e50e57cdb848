//! Code shared by the engines of skills and of command lines. Each engine has its own pool.
//!
//! [`compile`] has the settings that compiled code depends on, [`limits`] says what a guest may use, [`meter`] counts it, [`guest`] makes
//! the store of an instance, [`output`] keeps what it writes, and [`ticker`] interrupts it. [`stream`] and [`stdio`] are the streams of
//! WASI 0.3.

pub(crate) mod compile;
pub(crate) mod guest;
pub mod limits;
pub(crate) mod meter;
pub(crate) mod output;
pub(crate) mod stdio;
pub(crate) mod stream;
pub(crate) mod ticker;

use std::num::NonZeroUsize;
use wasmtime::{Config, InstanceAllocationStrategy, PoolingAllocationConfig};

/// The settings of an engine whose instances come from a pool, beside those that its compiled code depends on.
pub(crate) fn pooled(mut engine: Config, stack_bytes: usize, pool: PoolingAllocationConfig) -> Config {
    engine
        .max_wasm_stack(stack_bytes)
        // Host functions run on the same stack; they need room of their own.
        .async_stack_size(stack_bytes + (512 << 10))
        .wasm_backtrace_max_frames(NonZeroUsize::new(16))
        .allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    engine
}
