//! A process as an instance of a component: the data of its store, and its component.

use super::channel::Channel;
use super::embedded;
use super::engine::Engine;
use super::http;
use super::process::{Process, ProcessSpec};
use super::programs::Programs;
use super::streams::Stdio;
use super::task::ExecTask;
use super::wit::ShPre;
use super::wit::kiso::exec::spawn;
use crate::effect::label::LabelCell;
use crate::effect::overlay::Overlays;
use crate::effect::published::PublishedFiles;
use crate::effect::sink::MountSink;
use crate::engine::guest::{self, Guest};
use crate::engine::limits::{HEADER_BYTES, Limit, LimitHit};
use crate::skill::sandbox::{ChargedFiles, Listings, Quota, Roots, charge_files};
use crate::skill::{HttpGate, Skills};
use kiso_base::config::Exec as ExecConfig;
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use wasmtime::Store;
use wasmtime::component::{HasSelf, Linker};
use wasmtime_wasi::p2::bindings::CommandPre;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

/// The bundled components, each compiled code that is ready to be instantiated.
pub(super) struct Components {
    pub engine: Arc<Engine>,
    linker: Linker<ProcessCtx>,
    shell: Loaded<ShPre<ProcessCtx>>,
    coreutils: Loaded<CommandPre<ProcessCtx>>,
    curl: Loaded<CommandPre<ProcessCtx>>,
    image: Loaded<CommandPre<ProcessCtx>>,
    js: Loaded<CommandPre<ProcessCtx>>,
    programs: Programs<ProcessCtx>,
}

impl std::fmt::Debug for Components {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Components").field("engine", &self.engine).finish_non_exhaustive()
    }
}

impl Components {
    /// Starts an engine for them. Each is loaded when it is first used.
    pub(super) fn new(config: &ExecConfig, skills: &Skills) -> anyhow::Result<Self> {
        let engine = Arc::new(Engine::new(config)?);
        let wrong = |e: wasmtime::Error| anyhow::anyhow!("failed to define the host's functions: {e:#}");
        let mut linker = Linker::new(engine.wasmtime());
        link(&mut linker).map_err(wrong)?;
        let programs = Programs::new(linker.clone(), skills);
        spawn::add_to_linker::<ProcessCtx, HasSelf<ProcessCtx>>(&mut linker, |ctx| ctx).map_err(wrong)?;
        let (shell, coreutils) = (Loaded::default(), Loaded::default());
        let (curl, image, js) = (Loaded::default(), Loaded::default(), Loaded::default());
        Ok(Self { engine, linker, shell, coreutils, curl, image, js, programs })
    }

    pub(super) fn shell(&self) -> wasmtime::Result<&ShPre<ProcessCtx>> {
        self.shell.get(|| ShPre::new(self.linker.instantiate_pre(&self.engine.embedded(embedded::SHELL)?)?))
    }

    pub(super) fn coreutils(&self) -> wasmtime::Result<&CommandPre<ProcessCtx>> {
        self.coreutils
            .get(|| CommandPre::new(self.linker.instantiate_pre(&self.engine.embedded(embedded::COREUTILS)?)?))
    }

    pub(super) fn curl(&self) -> wasmtime::Result<&CommandPre<ProcessCtx>> {
        self.curl.get(|| CommandPre::new(self.linker.instantiate_pre(&self.engine.unpacked(&embedded::CURL)?)?))
    }

    pub(super) fn image(&self) -> wasmtime::Result<&CommandPre<ProcessCtx>> {
        self.image.get(|| CommandPre::new(self.linker.instantiate_pre(&self.engine.unpacked(&embedded::IMAGE)?)?))
    }

    pub(super) fn js(&self) -> wasmtime::Result<&CommandPre<ProcessCtx>> {
        self.js.get(|| CommandPre::new(self.linker.instantiate_pre(&self.engine.unpacked(&embedded::JS)?)?))
    }

    /// The programs that sessions have in files.
    pub(super) fn programs(&self) -> &Programs<ProcessCtx> {
        &self.programs
    }
}

/// A value that its first user makes, while others wait.
struct Loaded<T> {
    value: OnceLock<T>,
    making: Mutex<()>,
}

impl<T> Default for Loaded<T> {
    fn default() -> Self {
        Self { value: OnceLock::new(), making: Mutex::new(()) }
    }
}

impl<T> Loaded<T> {
    fn get(&self, make: impl FnOnce() -> wasmtime::Result<T>) -> wasmtime::Result<&T> {
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        let made = make()?;
        Ok(self.value.get_or_init(|| made))
    }
}

/// Defines what every process may import. The bundled components import `kiso:exec/spawn` as well.
fn link(linker: &mut Linker<ProcessCtx>) -> wasmtime::Result<()> {
    wasmtime_wasi::p2::add_to_linker_async(linker)?;
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(linker)?;
    charge_files(linker)
}

/// The data of a process's store.
pub(super) struct ProcessCtx {
    pub guest: Guest,
    pub task: Arc<ExecTask>,
    pub process: Arc<Process>,
    pub components: Arc<Components>,
    http: WasiHttpCtx,
    gate: HttpGate,
    /// The channels that `inherited` returns.
    channels: BTreeMap<u32, Channel>,
    /// Whether `inherited` hands channels over, so that a pipe ends when the process closes its end.
    hands_over: bool,
    listings: Listings,
    plain_dirs: HashSet<u32>,
}

impl ProcessCtx {
    /// The channels that it was started with. A shell takes them over; a command's standard streams keep them anyway.
    pub(super) fn inherited(&mut self) -> BTreeMap<u32, Channel> {
        match self.hands_over {
            true => std::mem::take(&mut self.channels),
            false => self.channels.clone(),
        }
    }

    /// Whether it is a shell.
    pub(super) fn is_shell(&self) -> bool {
        self.hands_over
    }
}

impl WasiView for ProcessCtx {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        self.guest.wasi()
    }
}

impl WasiHttpView for ProcessCtx {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView { ctx: &mut self.http, table: &mut self.guest.table, hooks: &mut self.gate }
    }
}

impl ChargedFiles for ProcessCtx {
    fn quota(&self) -> &Arc<Quota> {
        &self.task.quota
    }

    fn label(&self) -> &LabelCell {
        &self.process.label
    }

    fn plain_dirs(&mut self) -> &mut HashSet<u32> {
        &mut self.plain_dirs
    }

    fn listings(&self) -> &Listings {
        &self.listings
    }

    fn listings_hit(&self) -> LimitHit {
        self.task.hit(Limit::Listings)
    }

    fn may_change(&self, at: &File) -> bool {
        let label = self.process.label.get();
        let permit = &self.task.commands.permit;
        if label.is_ordinary() && permit.decision().is_trusted() && !permit.asks_always() {
            return true;
        }
        self.machine(at).is_none_or(|machine| machine.admits(label))
    }

    fn machine(&self, at: &File) -> Option<MountSink> {
        let at = self.task.dirs.machine(at)?;
        Some(MountSink::new(at, self.task.commands.permit.clone()))
    }

    fn published(&self) -> Option<&PublishedFiles> {
        self.task.dirs.skills().map(|_| self.task.dirs.published())
    }

    fn overlays(&self) -> Option<&Overlays> {
        Some(self.task.dirs.overlays())
    }

    fn blocks(&self) -> bool {
        true
    }

    fn roots(&self) -> &Roots {
        self.task.dirs.roots()
    }
}

/// The way in which a process accesses its channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Streams {
    /// Through `kiso:exec` alone.
    Shell,
    /// As standard streams.
    Command,
    /// The same, of a program that takes its working directory from WASI preview 1 or from `PWD`.
    Program,
}

/// A store with the process's limits.
pub(super) fn store(
    components: &Arc<Components>,
    task: &Arc<ExecTask>,
    process: &Arc<Process>,
    given: ProcessSpec,
    streams: Streams,
) -> wasmtime::Result<Store<ProcessCtx>> {
    let mut wasi = WasiCtx::builder();
    match streams {
        // This would keep the ends of pipes open that the shell closes itself. A panic is still printed.
        Streams::Shell => wasi.stderr(Stdio::new(given.channel(2), process.label.clone())),
        Streams::Command | Streams::Program => wasi
            .stdin(Stdio::new(given.channel(0), process.label.clone()))
            .stdout(Stdio::new(given.channel(1), process.label.clone()))
            .stderr(Stdio::new(given.channel(2), process.label.clone())),
    };
    wasi.args(&given.argv)
        .envs(&given.env)
        .initial_cwd(&given.cwd)
        // Four times faster than a hop to another thread, and these threads run nothing else.
        .allow_blocking_current_thread(true);
    task.dirs.give(&mut wasi)?;
    if streams == Streams::Program {
        task.dirs.give_cwd(&mut wasi, &given.cwd);
    }
    let mut http = WasiHttpCtx::new();
    http.set_field_size_limit(HEADER_BYTES);
    let gate = http::gate(task, process, &given.argv, given.channel(2));
    let ctx = ProcessCtx {
        guest: Guest::new(&mut wasi, task.meter()),
        task: task.clone(),
        process: process.clone(),
        components: components.clone(),
        http,
        gate,
        channels: given.channels,
        hands_over: streams == Streams::Shell,
        listings: Listings::default(),
        plain_dirs: HashSet::new(),
    };
    let mut store = guest::store(task.engine.wasmtime(), ctx, |ctx| &mut ctx.guest);
    // A process that spins yields its thread at every tick. Kills and deadlines take effect then.
    store.epoch_deadline_async_yield_and_update(1);
    Ok(store)
}
