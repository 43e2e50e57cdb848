//! Compiles untrusted components in a separate process, within limits of time and memory.
//!
//! A component of some hundred kilobytes can keep a compiler busy for minutes and take gigabytes, because parts of the work
//! grow with the square of a function's size. Nothing of that may hold up the program, or take it along.
//!
//! ```text
//! this process                            kiso compile-component ([`child`])
//!   component, through standard input ──▶   limits itself, then compiles
//!   ◀── code, through standard output       says on standard error why it could not
//!   holds standard input open               ends when that ends
//! ```
//!
//! The other process is ended when the future that waits for it is dropped, and ends by itself when this one dies, however
//! it does. It has no environment, so no secret of it, and leaves no file. Its answer is as trusted as if this process had
//! compiled: it is the same program. `cache.rs` signs it.

pub mod child;

use crate::engine::limits::{Limit, LimitHit};
use kiso_base::config::Engine as EngineConfig;
use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::time::{MissedTickBehavior, interval};

/// Name of the hidden command.
pub const COMMAND: &str = "compile-component";

/// Compilers that run at once. Each uses all cores anyway, and needs memory.
const AT_ONCE: usize = 2;

/// The factor by which a compiler may take longer than its processor time, because others use the processor, too.
const PATIENCE: u32 = 5;

/// The interval of reports to somebody who waits.
const REPORT: Duration = Duration::from_secs(5);

/// Most bytes of compiled code that are taken.
const MAX_CODE: u64 = 1 << 30;

/// Most bytes of standard error that are read.
const MAX_SAID: u64 = 8 << 10;

/// Starts compilers.
#[derive(Debug)]
pub struct Compiler {
    program: PathBuf,
    limits: child::CompileLimits,
    slots: Arc<Semaphore>,
}

/// The reason why a component was not compiled.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// A limit ended it.
    #[error("{0}")]
    Limit(LimitHit),
    /// The component is invalid.
    #[error("it cannot be compiled: {0}")]
    Invalid(String),
    /// The compiler crashed without a message for people.
    #[error("it cannot be compiled: the compiler ended with {status}{}", in_brackets(.said))]
    Crashed { status: ExitStatus, said: String },
    /// The cause is the machine.
    #[error("the compiler {} could not be run: {error}", program.display())]
    Host { program: PathBuf, error: io::Error },
}

fn in_brackets(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(" ({text})") }
}

impl Compiler {
    pub fn new(program: PathBuf, config: &EngineConfig) -> Self {
        let limits = child::CompileLimits {
            reservation_mib: config.max_memory_mib,
            seconds: config.compile_timeout_s,
            memory_mib: config.compile_memory_mib,
            concurrent: false,
        };
        Self { program, limits, slots: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// A compiler for an engine whose memories have this much address space.
    pub(crate) fn with_reservation(&self, mib: u64) -> Self {
        let limits = child::CompileLimits { reservation_mib: mib, ..self.limits.clone() };
        Self { program: self.program.clone(), limits, slots: self.slots.clone() }
    }

    /// A compiler for the engine of WASI 0.3.
    pub(super) fn concurrent(&self) -> Self {
        let limits = child::CompileLimits { concurrent: true, ..self.limits.clone() };
        Self { program: self.program.clone(), limits, slots: self.slots.clone() }
    }

    /// Compiles a component, or a core module for WASI preview 1. `waiting` is called every few seconds with the time so far.
    /// When the future is dropped, the compiler ends.
    pub async fn compile(&self, wasm: Vec<u8>, mut waiting: impl FnMut(Duration)) -> Result<Vec<u8>, CompileError> {
        let _slot = kiso_base::compute::permit(&self.slots).await;
        let host = |error: io::Error| CompileError::Host { program: self.program.clone(), error };
        let started = Instant::now();
        let running = Running(Arc::new(Process::start(&self.program, &self.limits).map_err(host)?));
        let process = running.0.clone();
        let mut talk = tokio::task::spawn_blocking(move || process.talk(&wasm));
        let longest = Duration::from_secs(self.limits.seconds) * PATIENCE;
        let mut reports = interval(REPORT);
        reports.set_missed_tick_behavior(MissedTickBehavior::Delay);
        reports.tick().await;
        let ended = loop {
            tokio::select! {
                ended = &mut talk => break ended.map_err(|panic| host(io::Error::other(panic)))?.map_err(host)?,
                _ = reports.tick() => match started.elapsed() {
                    late if late > longest => return Err(self.hit(Limit::CompileTime)),
                    elapsed => waiting(elapsed),
                }
            }
        };
        self.code(ended)
    }

    fn code(&self, ended: Ended) -> Result<Vec<u8>, CompileError> {
        let Ended { status, code, said } = ended;
        const OUT_OF_TIME: i32 = rustix::process::Signal::XCPU.as_raw();
        match (status.code(), status.signal()) {
            (Some(0), _) if code.len() as u64 <= MAX_CODE => Ok(code),
            (Some(0), _) => Err(CompileError::Invalid(format!("its code has more than {} MiB", MAX_CODE >> 20))),
            (_, Some(OUT_OF_TIME)) => Err(self.hit(Limit::CompileTime)),
            // The message of the allocator, or of the system if a mapping was refused.
            _ if said.contains("memory allocation of") || said.contains("os error 12") => {
                Err(self.hit(Limit::CompileMemory))
            }
            (Some(child::REFUSED), _) => Err(CompileError::Invalid(said)),
            _ => Err(CompileError::Crashed { status, said }),
        }
    }

    fn hit(&self, limit: Limit) -> CompileError {
        let (value, setting) = match limit {
            Limit::CompileMemory => {
                (format!("{} MiB", self.limits.memory_mib), "[engine] compile_memory_mib in config.toml")
            }
            _ => (format!("{} s", self.limits.seconds), "[engine] compile_timeout_s in config.toml"),
        };
        CompileError::Limit(LimitHit { limit, value, setting: setting.to_owned() })
    }
}

/// The end of a compiler.
struct Ended {
    status: ExitStatus,
    code: Vec<u8>,
    said: String,
}

/// A running compiler.
struct Process {
    child: Mutex<Child>,
    streams: Mutex<Option<(ChildStdin, ChildStdout, ChildStderr)>>,
}

/// Ends a compiler when nobody waits for it any more.
struct Running(Arc<Process>);

impl Drop for Running {
    fn drop(&mut self) {
        // A compiler that has ended already was waited for, so its process does not exist any more.
        let _ = self.0.child.lock().unwrap_or_else(PoisonError::into_inner).kill();
    }
}

impl Process {
    fn start(program: &PathBuf, limits: &child::CompileLimits) -> io::Result<Self> {
        let mut command = Command::new(program);
        command
            .arg0("kiso")
            .arg(COMMAND)
            .args(limits.to_args())
            .env_clear()
            // Arenas of the allocator for each thread would count as memory long before they are used.
            .env("MALLOC_ARENA_MAX", "4")
            .env("RAYON_NUM_THREADS", threads().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // This process handles Ctrl-C and then ends the compiler.
            .process_group(0)
            .current_dir("/");
        let mut child = command.spawn()?;
        let streams = child.stdin.take().zip(child.stdout.take()).zip(child.stderr.take());
        let streams = streams.map(|((stdin, stdout), stderr)| (stdin, stdout, stderr));
        Ok(Self { child: Mutex::new(child), streams: Mutex::new(streams) })
    }

    /// Sends the component, receives the code, and waits for the end.
    fn talk(&self, wasm: &[u8]) -> io::Result<Ended> {
        let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (mut stdin, stdout, stderr) = streams.ok_or_else(|| io::Error::other("its streams are taken"))?;
        // If the compiler is dead already, its status shows why.
        let _ = child::send(&mut stdin, wasm);
        let mut code = Vec::new();
        stdout.take(MAX_CODE + 1).read_to_end(&mut code)?;
        let mut said = Vec::new();
        stderr.take(MAX_SAID).read_to_end(&mut said)?;
        // Closed only now, because the compiler ends when its input is closed.
        drop(stdin);
        let status = self.child.lock().unwrap_or_else(PoisonError::into_inner).wait()?;
        Ok(Ended { status, code, said: String::from_utf8_lossy(&said).trim().to_owned() })
    }
}

/// More threads than this hardly help, and each has a stack that counts as memory.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(2, std::num::NonZero::get).min(8)
}
