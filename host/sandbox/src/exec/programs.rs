//! WebAssembly programs that a session has in files, as `./hello`: a component of the world `wasi:cli/command`, or a core module for WASI
//! preview 1.
//!
//! A program is a process like any other of its line, in the same engine and with the same limits, files and network. It imports WASI and
//! nothing else: starting commands (`kiso:exec/spawn`) is for the bundled components. A file is a stranger's bytes, so it is only compiled
//! in the compiler's own process, and the code is found again by the file's digest.

use super::channel::{Channel, IoError, TaskEnded};
use super::process::Process;
use super::task::ExecTask;
use super::wit::kiso::exec::spawn::Mode;
use crate::engine::compile::EXEC_RESERVATION;
use crate::skill::Skills;
use crate::skill::compiler::{CompileError, Compiler};
use crate::skill::sandbox::{CodeCache, Digest, needs_concurrency};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OnceCell, Semaphore};
use wasmtime::component::{Component, Linker};
use wasmtime_wasi::p2::bindings::CommandPre;

/// Most bytes of a program. Each start reads all of them.
const MAX_PROGRAM: u64 = 32 << 20;

/// Bytes of compiled programs that a home keeps. Each build of each session leaves one; skills have a separate cache, which these
/// cannot empty.
const MAX_CODE: u64 = 128 << 20;

/// Programs that are compiled at the same time. Each of them is in memory until it is ready.
const MAX_COMPILES: usize = 2;

/// Programs whose code stays loaded: those of a build or a test that start again and again.
const MAX_LOADED: usize = 16;

/// The first bytes of WebAssembly modules and components.
const MAGIC: &[u8] = b"\0asm";

/// A program that is ready to be instantiated. Its first user makes it, while others wait.
type Program<T> = Arc<OnceCell<CommandPre<T>>>;

/// Compiles programs and keeps their code. `T` is the data of a process's store.
pub(super) struct Programs<T: 'static> {
    linker: Linker<T>,
    compiler: Compiler,
    code: Arc<CodeCache>,
    compiles: Semaphore,
    /// The most recently used comes first.
    loaded: Mutex<Vec<(Digest, Program<T>)>>,
}

/// The reason why a file was not run.
pub(super) enum NotRun {
    /// The reason, for standard error.
    Refused(String),
    /// The error that ends the process.
    Ended(wasmtime::Error),
}

impl From<IoError> for NotRun {
    fn from(error: IoError) -> Self {
        match error {
            IoError::Errno(errno) => Self::Refused(errno.in_words().to_owned()),
            IoError::Limit(hit) => Self::Ended(hit.into()),
            IoError::Ended => Self::Ended(TaskEnded.into()),
        }
    }
}

impl<T: 'static> Programs<T> {
    /// Makes it with the functions that programs may import.
    pub(super) fn new(linker: Linker<T>, skills: &Skills) -> Self {
        let dir = skills.home().cache_dir().join("programs");
        let code = CodeCache::new(linker.engine(), skills.home(), dir, MAX_CODE);
        let compiler = skills.compiler(EXEC_RESERVATION >> 20);
        Self {
            linker,
            compiler,
            code: Arc::new(code),
            compiles: Semaphore::new(MAX_COMPILES),
            loaded: Mutex::default(),
        }
    }

    /// The program in a file, for a process of the task that is to run it.
    pub(super) async fn load(&self, task: &ExecTask, process: &Process, path: &str) -> Result<CommandPre<T>, NotRun> {
        let digest = Digest::compute(&read(task, process, path)?);
        let program = self.find(digest);
        let made = program.get_or_try_init(|| self.make(&digest, || read(task, process, path))).await;
        made.cloned()
    }

    fn find(&self, digest: Digest) -> Program<T> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let known = loaded.iter().position(|(known, _)| *known == digest);
        let program = known.map_or_else(|| (digest, Program::default()), |at| loaded.remove(at));
        loaded.insert(0, program.clone());
        loaded.truncate(MAX_LOADED);
        program.1
    }

    /// `read` returns the program's bytes. They are read again, so that programs that wait to be compiled take no memory.
    async fn make(
        &self,
        digest: &Digest,
        read: impl FnOnce() -> Result<Vec<u8>, NotRun>,
    ) -> Result<CommandPre<T>, NotRun> {
        let (code, wanted) = (self.code.clone(), *digest);
        let component = match blocking(move || Ok(code.read(&wanted))).await? {
            Some(component) => component,
            None => {
                // The semaphore is never closed.
                let _compile = self.compiles.acquire().await.ok();
                let wasm = read()?;
                if Digest::compute(&wasm) != *digest {
                    return Err(cannot_run(&"it was changed while it was started"));
                }
                if needs_concurrency(&wasm) {
                    return Err(cannot_run(&NEEDS_0_2));
                }
                let compiled = self.compiler.compile(wasm, |_| ()).await.map_err(|error| match error {
                    CompileError::Limit(hit) => NotRun::Refused(hit.to_string()),
                    error => cannot_run(&error),
                })?;
                let (code, wanted) = (self.code.clone(), *digest);
                blocking(move || code.keep(&wanted, compiled).map_err(|error| cannot_run(&format!("{error:#}"))))
                    .await?
            }
        };
        self.instantiable(&component).map_err(|error| cannot_run(&format!("{error:#}")))
    }

    fn instantiable(&self, component: &Component) -> wasmtime::Result<CommandPre<T>> {
        CommandPre::new(self.linker.instantiate_pre(component)?)
    }
}

/// The reason why a program of WASI 0.3 is refused: processes have no engine for it.
const NEEDS_0_2: &str =
    "it is built for WASI 0.3, and a program must be built for 0.2; `kiso skill add` installs it as a command";

/// The file's bytes. A process that runs a program has read it.
fn read(task: &ExecTask, process: &Process, path: &str) -> Result<Vec<u8>, NotRun> {
    let opened = task.dirs.open_file(path, Mode::Read, &task.quota, (&process.label, &task.commands.permit))?;
    let wasm = content(&opened);
    // A refusal says something about the file, too.
    process.label.join(opened.label());
    wasm
}

fn content(opened: &Channel) -> Result<Vec<u8>, NotRun> {
    let Channel::File(file) = opened else { return Err(cannot_run(&"it is a device")) };
    let refused = |error: std::io::Error| NotRun::from(IoError::from(error));
    let size = file.file.metadata().map_err(refused)?.len();
    if size > MAX_PROGRAM {
        return Err(cannot_run(&format!("a program has at most {} MiB", MAX_PROGRAM >> 20)));
    }
    let mut wasm = vec![0; size as usize];
    // The file was cut short meanwhile, so it is not a program any more.
    file.file.read_exact_at(&mut wasm, 0).map_err(refused)?;
    match wasm.starts_with(MAGIC) {
        true => Ok(wasm),
        false => Err(cannot_run(&"it is not a WebAssembly program")),
    }
}

fn cannot_run(why: &dyn std::fmt::Display) -> NotRun {
    NotRun::Refused(format!("cannot execute binary file: {why}"))
}

/// Runs work that must not block the threads of processes.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, NotRun> + Send + 'static) -> Result<T, NotRun> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|panic| Err(NotRun::Refused(panic.to_string())))
}
