//! How the bundled commands are compiled.
//!
//! `host/build.rs` includes this file too: what it compiles is only accepted by an engine with the very same settings, so
//! nothing here may depend on `config.toml`.

use wasmtime::{Config, Strategy};

/// Address space of a memory, and so the most that one process can have. Compiled code depends on it.
pub const MEMORY_RESERVATION: u64 = 1 << 30;

/// The settings that compiled code depends on.
pub fn settings() -> Config {
    let mut engine = Config::new();
    engine
        .strategy(Strategy::Cranelift)
        .wasm_component_model(true)
        .concurrency_support(false)
        .epoch_interruption(true)
        .memory_init_cow(true)
        .memory_reservation(MEMORY_RESERVATION)
        .memory_reservation_for_growth(0)
        .memory_guard_size(64 << 10);
    engine
}
