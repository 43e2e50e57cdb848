//! A call of an asynchronous function of a component of WASI 0.3, against the same call in bare wasmtime.

use super::{Bare, CALLS, TURNS, Times, row, skills, summary};
use kiso_base::home::SessionName;
use kiso_sandbox::skill::{Caller, GrantChoice};
use kiso_store::secret::Secrets;
use kiso_tests::guest;
use serde_json::json;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use wasmtime::component::{Component, InstancePre, Linker, ResourceTable};
use wasmtime::{Engine, InstanceAllocationStrategy, PoolingAllocationConfig};
use wasmtime_wasi::WasiCtx;

pub(super) async fn rows() {
    let (bare, kiso) = calls().await;
    row("bare wasmtime: instantiate and call an asynchronous function of WASI 0.3", bare, None);
    row("kiso: call the same", kiso, Some((bare, "× bare wasmtime")));
}

/// The minimum for an embedder: the same engine settings, a store with WASI, instantiate, call.
struct BareEngine {
    engine: Engine,
    pre: InstancePre<Bare>,
}

impl BareEngine {
    fn new() -> Self {
        let mut pool = PoolingAllocationConfig::new();
        pool.max_memory_size(512 << 20)
            .total_memories(64)
            .total_stacks(64)
            .total_core_instances(512)
            .linear_memory_keep_resident(64 << 10);
        let mut config = wasmtime::Config::new();
        config
            .epoch_interruption(true)
            .wasm_component_model_async(true)
            .memory_reservation(512 << 20)
            .memory_reservation_for_growth(0)
            .memory_guard_size(64 << 10)
            .max_wasm_stack(512 << 10)
            .async_stack_size(1 << 20)
            .allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
        let engine = Engine::new(&config).expect("the engine starts");
        let component = Component::from_file(&engine, guest("flow")).expect("the guest compiles");
        let mut linker = Linker::<Bare>::new(&engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker).expect("WASI 0.2 is defined");
        wasmtime_wasi::p3::add_to_linker(&mut linker).expect("WASI 0.3 is defined");
        let pre = linker.instantiate_pre(&component).expect("it links");
        Self { engine, pre }
    }

    async fn call(&self) -> Duration {
        let started = Instant::now();
        let data = Bare { wasi: WasiCtx::builder().build(), table: ResourceTable::new() };
        let mut store = wasmtime::Store::new(&self.engine, data);
        store.set_epoch_deadline(1_000_000);
        let instance = self.pre.instantiate_async(&mut store).await.expect("it starts");
        let later = instance.get_typed_func::<(String,), (String,)>(&mut store, "later").expect("it has the function");
        let called = store.run_concurrent(async |guest| later.call_concurrent(guest, ("hello".to_owned(),)).await);
        let (text,) = called.await.expect("it runs").expect("it answers");
        assert_eq!(text, "hello, later");
        drop(store);
        started.elapsed()
    }
}

/// Alternating calls, so that other load on the machine affects both equally.
async fn calls() -> (Times, Times) {
    let dir = TempDir::new().expect("there is room");
    let skills = skills(&dir.path().join("home"));
    let candidate = skills.examine(&guest("flow"), None, None).expect("the guest is valid");
    skills.install(candidate, GrantChoice::All).await.expect("it is installed");
    let bare = BareEngine::new();
    let (session, secrets) = (SessionName::parse("bench").expect("a plain name"), Secrets::default());
    let args = json!({ "text": "hello" });
    let (mut of_bare, mut of_kiso) = (Vec::new(), Vec::new());
    for turn in 0..=TURNS {
        for _ in 0..CALLS {
            let time = bare.call().await;
            // The first turn is a warm-up.
            of_bare.extend((turn > 0).then_some(time));
        }
        for _ in 0..CALLS {
            let started = Instant::now();
            let ended = skills.call("flow.later", &args, Caller::by_hand(&session, &secrets)).await;
            let time = started.elapsed();
            assert_eq!(ended.result.expect("it answers").data, Some(json!("hello, later")));
            of_kiso.extend((turn > 0).then_some(time));
        }
    }
    (summary(of_bare), summary(of_kiso))
}
