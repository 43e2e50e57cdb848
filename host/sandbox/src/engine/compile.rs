//! The settings for compiling components.
//!
//! `host/sandbox/build.rs` includes this file too: what it compiles is only accepted by an engine with the very same settings.

use wasmtime::{Collector, Config, Strategy};

/// Address space of a memory of an exec process, and so the most that one can have.
pub(crate) const EXEC_RESERVATION: u64 = 1 << 30;

/// Address space of a memory of a skill, while `[engine] max_memory_mib` has its default.
#[allow(dead_code, reason = "the build script uses it, which includes this file")]
pub(crate) const SKILL_RESERVATION: u64 = 512 << 20;

/// The settings that compiled code depends on.
pub(crate) fn settings(memory_reservation: u64) -> Config {
    let mut engine = Config::new();
    engine
        .strategy(Strategy::Cranelift)
        .wasm_component_model(true)
        .concurrency_support(false)
        .epoch_interruption(true)
        // Programs in C++ throw, and programs in C jump, with exceptions. Each stays in memory until its instance ends and counts
        // as the instance's memory. So no collector is needed, and no other feature that needs one is enabled.
        .wasm_exceptions(true)
        .collector(Collector::Null)
        .wasm_gc(false)
        .memory_init_cow(true)
        // Backtraces need the first table and other programs' unwinders the second. Nobody reads either, and together they are a
        // third of the compiled code.
        .generate_address_map(false)
        .native_unwind_info(false)
        .memory_reservation(memory_reservation)
        .memory_reservation_for_growth(0)
        .memory_guard_size(64 << 10);
    engine
}

/// The settings for components of WASI 0.3, whose functions may wait for several things at once. The other components have an engine
/// without concurrency: their calls are faster there, and the code that was compiled for it stays valid.
#[allow(dead_code, reason = "the build script includes this file too, and compiles none of them")]
pub(crate) fn concurrent_settings(memory_reservation: u64) -> Config {
    let mut engine = settings(memory_reservation);
    engine.concurrency_support(true);
    engine
}

#[cfg(test)]
mod tests {
    #[test]
    fn bundled_skills_are_compiled_for_the_default_configuration() {
        assert_eq!(kiso_base::config::Config::default().engine.max_memory_mib << 20, super::SKILL_RESERVATION);
    }
}
