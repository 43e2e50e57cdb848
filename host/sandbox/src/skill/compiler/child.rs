//! The process that compiles: reads a component, writes its code, and ends.

use crate::engine::compile;
use crate::skill::preview1;
use crate::skill::surface::brief;
use kiso_base::system::limit_memory;
use rustix::process::{Resource, Rlimit, setrlimit};
use std::io::{self, Read, Write};
use std::process::ExitCode;
use wasmparser::Parser;
use wasmtime::Engine;

/// The limits of the process, and the settings that the code depends on besides the component.
#[derive(Debug, Clone, clap::Args)]
pub struct CompileLimits {
    /// Address space of a memory, in MiB
    #[arg(long)]
    pub reservation_mib: u64,
    /// Seconds of processor time, all threads together
    #[arg(long)]
    pub seconds: u64,
    /// Memory in MiB
    #[arg(long)]
    pub memory_mib: u64,
    /// Compile for the engine of WASI 0.3
    #[arg(long)]
    pub concurrent: bool,
}

/// Exit code for a component that cannot be compiled; standard error says why.
pub const REFUSED: i32 = 65;

/// Address space beyond the memory: the program itself, and what is reserved and never used.
const ADDRESS_SPACE_MIB: u64 = 2 << 10;

impl CompileLimits {
    /// The arguments for the command.
    pub fn to_args(&self) -> Vec<String> {
        let Self { reservation_mib, seconds, memory_mib, concurrent } = self;
        let mut args = vec![
            format!("--reservation-mib={reservation_mib}"),
            format!("--seconds={seconds}"),
            format!("--memory-mib={memory_mib}"),
        ];
        args.extend(concurrent.then(|| "--concurrent".to_owned()));
        args
    }

    /// Asks the system to enforce the limits on this process.
    fn enforce(&self) -> io::Result<()> {
        let none = Rlimit { current: Some(0), maximum: Some(0) };
        // With a core dump, the component could fill the disk.
        setrlimit(Resource::Core, none)?;
        // The process writes only to pipes, and no files.
        setrlimit(Resource::Fsize, none)?;
        // The soft limit ends the process with its own signal, which identifies the limit.
        setrlimit(
            Resource::Cpu,
            Rlimit { current: Some(self.seconds), maximum: Some(self.seconds.saturating_add(1)) },
        )?;
        limit_memory(self.memory_mib << 20, self.memory_mib.saturating_add(ADDRESS_SPACE_MIB) << 20)
    }
}

/// Compiles the component from standard input.
pub fn serve(limits: &CompileLimits) -> ExitCode {
    match compile(limits) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            // A pipe takes this much at once, even if nobody reads.
            eprintln!("{}", brief(&why, 2_000));
            ExitCode::from(REFUSED as u8)
        }
    }
}

fn compile(limits: &CompileLimits) -> Result<(), String> {
    limits.enforce().map_err(|e| format!("the limits cannot be set: {e}"))?;
    let wasm = receive(&mut io::stdin().lock()).map_err(|e| format!("no component arrived: {e}"))?;
    // The other process keeps the stream open as long as it lives and wants the code.
    std::thread::spawn(|| {
        let _ = io::stdin().lock().read(&mut [0]);
        std::process::exit(1);
    });
    let wasm = match Parser::is_core_wasm(&wasm) {
        true => preview1::wrap(&wasm)?,
        false => wasm,
    };
    let settings = if limits.concurrent { compile::concurrent_settings } else { compile::settings };
    let engine = Engine::new(&settings(limits.reservation_mib << 20)).map_err(|e| format!("{e:#}"))?;
    let code = engine.precompile_component(&wasm).map_err(|e| format!("{e:#}"))?;
    io::stdout().lock().write_all(&code).map_err(|e| format!("the code could not be written: {e}"))
}

/// Sends the component after its length, because the stream stays open.
pub fn send(stdin: &mut impl Write, wasm: &[u8]) -> io::Result<()> {
    stdin.write_all(&(wasm.len() as u64).to_le_bytes())?;
    stdin.write_all(wasm)
}

fn receive(stdin: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 8];
    stdin.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    let mut wasm = Vec::new();
    stdin.take(length).read_to_end(&mut wasm)?;
    match wasm.len() as u64 == length {
        true => Ok(wasm),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
