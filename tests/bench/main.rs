//! `just bench`: the cost of kiso as ratios to a reference, measured in one run on one machine.
//!
//! - a skill call against bare wasmtime: the same component, instantiated and called by an engine with the same
//!   settings but without limits, quota, log, and outcome
//! - the same for an asynchronous function of a component of WASI 0.3
//! - a skill call against starting Python (`python3 -c pass`)
//! - a start of `kiso` that compiles (cold) against one that finds its cache (warm), against starting `/bin/true`
//! - command lines in the sandbox against the host's own `sh -c`
//! - `curl` in a command line against the host's own
//! - a folder of 100,000 files against a small one, reading in one against reading in the workspace, and accepting changes
//! - resident memory of a process that has called 20 skills and waits
//! - a model's first token through `kiso run` against a copy from socket to pipe; the host's own work between two calls
//!   of a model against one commit; building a context in a large store against a small one
//! - a search of the memory when it is full against one with a thousand passages
//!
//! - the daemon's start, its status and its listings with a million messages and ten thousand sessions against a few; whole runs a
//!   second against the commits that the disk allows; what a run writes, and what of it stays; the daemon's resident memory at
//!   the end of steady load against the beginning of it
//! - the input that a model has to process again during some work, in bytes, against its longest request
//! - a skill's call over the Model Context Protocol, on standard streams and over HTTP, against the same call in process; with
//!   eight in flight, and beside ten calls that never end
//! - the program's size and start, the first call of a bundled skill, and the memory of an idle daemon
//! - Python as a package against the host's own
//! - extracting the text of a PDF and shrinking a photo against the host's `pdftotext` and `convert`, and the start of `document`
//! - a home in a fleet of one, two and three members against the same home on one machine, and against its NATS server's
//!   confirmations
//! - the tasks of the page's main thread while a long answer streams into it
//!
//! `cargo bench --package kiso --bench bench -- NAME…` prints only some: `calls`, `exec`, `network`, `folder`, `run`, `memory`, `flat`, `runs`, `writes`,
//! `steady`, `prefix`, `mcp`, `page`, `program`, `python`, `files`, `fleet`.
//! `KISO_BENCH_TOKENS` is the length of that answer, by default 20,000; `KISO_BENCH_MESSAGES` is the size of the large store, by
//! default 1,000,000; `KISO_BENCH_STEADY_S` is the duration of steady load in seconds, by default 60.
//!
//! Each figure is the minimum and the median of many repetitions. Nothing here is a limit: the machine is shared.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a benchmark that panics has failed")]

use kiso_base::config::Config;
use kiso_base::home::{Home, SessionName};
use kiso_sandbox::skill::{Caller, GrantChoice, Quiet, Skills};
use kiso_store::secret::Secrets;
use kiso_store::store::Store;
use kiso_tests::guest;
use serde_json::json;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use wasmtime::component::{Component, Linker, ResourceTable};
use wasmtime::{Engine, InstanceAllocationStrategy, PoolingAllocationConfig};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

mod async_calls;
mod exec;
mod files;
mod fleet;
mod folder;
#[path = "../all/harness.rs"]
#[allow(dead_code, unused_imports, reason = "the integration tests use all of it")]
mod harness;
mod mcp;
mod memory;
mod network;
mod page;
mod prefix;
mod program;
mod python;
mod run;
mod runs;
mod store;
#[path = "../all/wal.rs"]
mod wal;

mod bare {
    wasmtime::component::bindgen!({
        path: "../wit/since_v0_1",
        inline: "
            package kiso:bench;
            world bare {
                import kiso:skill/types@0.1.0;
                export kiso:skill/skill@0.1.0;
            }
        ",
        world: "kiso:bench/bare",
        exports: { default: async },
    });
}

fn main() {
    // `cargo test --benches` runs this too; it measures only with `--bench`.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    if let Some(home) = std::env::var_os("KISO_BENCH_IDLE") {
        return idle(Path::new(&home));
    }
    if let Ok(address) = std::env::var(run::RELAY) {
        return run::relay(&address);
    }
    let names: Vec<_> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let wanted = |name: &str| names.is_empty() || names.iter().any(|wanted| wanted == name);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads start");
    println!("| what | minimum | median | ratio (medians) |");
    println!("|---|---|---|---|");
    if wanted("calls") {
        skill_rows(&runtime);
        runtime.block_on(async_calls::rows());
    }
    if wanted("exec") {
        runtime.block_on(exec::rows());
    }
    if wanted("network") {
        runtime.block_on(network::rows());
    }
    if wanted("folder") {
        runtime.block_on(folder::rows());
    }
    if wanted("run") {
        runtime.block_on(run::rows());
    }
    if wanted("memory") {
        runtime.block_on(memory::rows());
    }
    if wanted("program") {
        program::rows();
    }
    if wanted("flat") {
        store::flat_rows();
    }
    if wanted("runs") {
        runs::rows();
    }
    if wanted("writes") {
        store::write_rows();
    }
    if wanted("steady") {
        store::steady_rows();
    }
    if wanted("prefix") {
        prefix::rows();
    }
    if wanted("mcp") {
        mcp::rows(&runtime);
    }
    if wanted("fleet") {
        fleet::rows();
    }
    if wanted("python") {
        runtime.block_on(python::rows());
    }
    if wanted("files") {
        runtime.block_on(files::rows());
    }
    if wanted("page") {
        page::rows();
    }
}

/// Skills: a call, a start of the program, and resident memory.
fn skill_rows(runtime: &tokio::runtime::Runtime) {
    let (bare, kiso, resident) = runtime.block_on(calls());
    let (python, quick) = (starts("python3", &["-c", "pass"], 60), starts("/bin/true", &[], 200));
    let (cold, warm) = process_starts();
    row("bare wasmtime: instantiate and call `echo`", bare, None);
    row("kiso: call `echo`", kiso, Some((bare, "× bare wasmtime")));
    if let Some(python) = python {
        row("python3 -c pass", python, Some((kiso, "× a call of kiso")));
    }
    if let Some(quick) = quick {
        row("/bin/true", quick, None);
        row("kiso, warm: start, call `echo`, end", warm, Some((quick, "× /bin/true")));
    }
    row("kiso, cold: the same, compiling `echo`", cold, Some((warm, "× warm")));
    println!("| resident memory, 20 skills loaded and called, idle | {} MiB | | |", resident >> 20);
}

/// Minimum and median.
type Times = (Duration, Duration);

fn summary(mut times: Vec<Duration>) -> Times {
    times.sort();
    (times[0], times[times.len() / 2])
}

fn row(what: &str, times: Times, against: Option<(Times, &str)>) {
    let ratio = against
        .map(|(other, unit)| format!("{:.2} {unit}", times.1.as_secs_f64() / other.1.as_secs_f64()))
        .unwrap_or_default();
    println!("| {what} | {} | {} | {ratio} |", show(times.0), show(times.1));
}

fn show(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    if micros < 1_000.0 { format!("{micros:.0} µs") } else { format!("{:.1} ms", micros / 1_000.0) }
}

const TURNS: usize = 30;
const CALLS: usize = 200;

struct Bare {
    wasi: WasiCtx,
    table: ResourceTable,
}

impl WasiView for Bare {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

/// The minimum for an embedder: the same engine settings, a store with WASI, instantiate, call.
struct BareEngine {
    engine: Engine,
    pre: bare::BarePre<Bare>,
}

impl BareEngine {
    fn new() -> Self {
        let mut pool = PoolingAllocationConfig::new();
        pool.max_memory_size(512 << 20)
            .total_memories(64)
            .total_stacks(8)
            .total_core_instances(512)
            .linear_memory_keep_resident(64 << 10);
        let mut config = wasmtime::Config::new();
        config
            .epoch_interruption(true)
            .concurrency_support(false)
            .memory_reservation(512 << 20)
            .memory_reservation_for_growth(0)
            .memory_guard_size(64 << 10)
            .max_wasm_stack(512 << 10)
            .async_stack_size(1 << 20)
            .allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
        let engine = Engine::new(&config).expect("the engine starts");
        let component = Component::from_file(&engine, guest("echo")).expect("the guest compiles");
        let mut linker = Linker::<Bare>::new(&engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker).expect("WASI is defined");
        linker.instance("kiso:skill/types@0.1.0").expect("types only");
        let pre =
            bare::BarePre::new(linker.instantiate_pre(&component).expect("it links")).expect("it exports skill.run");
        Self { engine, pre }
    }

    async fn call(&self) -> Duration {
        let started = Instant::now();
        let data = Bare { wasi: WasiCtx::builder().build(), table: ResourceTable::new() };
        let mut store = wasmtime::Store::new(&self.engine, data);
        store.set_epoch_deadline(1_000_000);
        let instance = self.pre.instantiate_async(&mut store).await.expect("it starts");
        let call = bare::kiso::skill::types::Call {
            tool: "echo".into(),
            args: json!({ "text": "hello" }).to_string(),
            session: "bench".into(),
            locale: "en".into(),
        };
        let reply =
            instance.kiso_skill_skill().call_run(&mut store, &call).await.expect("it runs").expect("it answers");
        assert_eq!(reply.text, "hello");
        drop(store);
        started.elapsed()
    }
}

/// Alternating calls of the bare engine and of kiso, so that other load on the machine affects both equally; and the resident
/// memory of a process with 20 skills loaded.
async fn calls() -> (Times, Times, u64) {
    let dir = TempDir::new().expect("there is room");
    let skills = skills(&dir.path().join("home"));
    for i in 0..20 {
        let candidate = skills.examine(&guest("echo"), None, Some(&format!("echo-{i}"))).expect("the guest is right");
        skills.install(candidate, GrantChoice::All).await.expect("it is installed");
    }
    // A process that only calls, without the memory for compiling.
    drop(skills);
    let resident = child_resident(&dir.path().join("home"));
    let (bare, skills) = (BareEngine::new(), self::skills(&dir.path().join("home")));
    let (session, secrets) = (SessionName::parse("bench").expect("a plain name"), Secrets::default());
    let args = json!({ "text": "hello" });
    let (mut of_bare, mut of_kiso) = (Vec::new(), Vec::new());
    for turn in 0..=TURNS {
        for _ in 0..CALLS {
            let bare = bare.call().await;
            // The first turn is a warm-up.
            of_bare.extend((turn > 0).then_some(bare));
        }
        for _ in 0..CALLS {
            let started = Instant::now();
            let caller = Caller::by_hand(&session, &secrets);
            let ended = skills.call("echo-0", &args, caller).await;
            let kiso = started.elapsed();
            assert_eq!(ended.result.expect("it answers").text, "hello");
            of_kiso.extend((turn > 0).then_some(kiso));
        }
    }
    (summary(of_bare), summary(of_kiso), resident)
}

fn skills(path: &Path) -> Skills {
    let home = Home::open(path).expect("a home");
    let config = Config::load(&home).expect("a configuration");
    let store = Store::open(&home.store_path()).expect("a store");
    Skills::with_compiler(home, config, store, Arc::new(Quiet), env!("CARGO_BIN_EXE_kiso").into())
}

/// Starts this program again to call each skill once and wait, and reads its resident memory.
fn child_resident(home: &Path) -> u64 {
    let exe = std::env::current_exe().expect("it has a path");
    let output = Command::new(exe).arg("--bench").env("KISO_BENCH_IDLE", home).output().expect("it starts again");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.trim().parse().unwrap_or_else(|_| panic!("{text:?} {}", String::from_utf8_lossy(&output.stderr)))
}

/// The process that [`child_resident`] starts.
fn idle(home: &Path) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads start");
    runtime.block_on(async {
        let skills = skills(home);
        let (session, secrets) = (SessionName::parse("bench").expect("a plain name"), Secrets::default());
        for i in 0..20 {
            let caller = Caller::by_hand(&session, &secrets);
            let ended = skills.call(&format!("echo-{i}"), &json!({ "text": "hello" }), caller).await;
            ended.result.expect("it answers");
        }
        let status = std::fs::read_to_string("/proc/self/status").expect("this is Linux");
        let line = status.lines().find(|l| l.starts_with("VmRSS:")).expect("it is there");
        let kib: u64 = line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("it is a number");
        println!("{}", kib << 10);
    });
}

/// Duration of a program from start to end.
fn starts(program: &str, args: &[&str], times: usize) -> Option<Times> {
    let run = || Command::new(program).args(args).stdout(Stdio::null()).stderr(Stdio::null()).status();
    run().ok().filter(|s| s.success())?;
    let measure = |_| {
        let started = Instant::now();
        run().expect("it started before");
        started.elapsed()
    };
    Some(summary((0..times).map(measure).collect()))
}

/// `kiso skill run echo`, with and without its compiled code in the cache.
fn process_starts() -> (Times, Times) {
    let dir = TempDir::new().expect("there is room");
    let home = dir.path().join("home");
    let kiso = |args: &[&str]| {
        let status = Command::new(env!("CARGO_BIN_EXE_kiso"))
            .args(args)
            .env("KISO_HOME", &home)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        assert!(status.expect("kiso starts").success());
    };
    kiso(&["skill", "add", guest("echo").to_str().expect("a plain path")]);
    let call = |clear: bool| {
        if clear {
            for entry in std::fs::read_dir(home.join("cache")).expect("the cache is there").flatten() {
                std::fs::remove_file(entry.path()).expect("it can be removed");
            }
        }
        let started = Instant::now();
        kiso(&["skill", "run", "echo", "text=hello"]);
        started.elapsed()
    };
    let cold = summary((0..10).map(|_| call(true)).collect());
    let warm = summary((0..60).map(|_| call(false)).collect());
    (cold, warm)
}
