//! Confinement of an MCP server that is a program of this machine.
//!
//! Such a program is not in the sandbox: it is not a component, and its memory and time are not limited. It runs as kiso's user
//! and could otherwise access everything of that user. So kiso starts itself once more; that process confines itself and then
//! executes the program:
//!
//! ```text
//! kiso                                  kiso confine-server            the program
//!   no environment, pipes, own group ──▶  Landlock: files, TCP      ──▶  with what is left
//!                                         seccomp: system calls
//!                                         ends with kiso
//! ```
//!
//! Landlock allows writing to one directory, reading the files that it needs to start and those in `read`, and connecting to the
//! TCP ports of `connect_ports` at any host. seccomp blocks what Landlock does not cover ([`filter`]): above all other kinds of
//! sockets, so that it can reach neither `kiso.sock` nor the session bus. Both apply to all its child processes and are
//! permanent.

#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod ruleset;

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// Name of the hidden command.
pub const COMMAND: &str = "confine-server";

/// Exit code if the program was not started; standard error contains the reason.
pub const NOT_STARTED: u8 = 126;

/// The program to start, and its permissions.
#[derive(Debug, Clone, clap::Args)]
pub struct Confinement {
    /// The only directory that can be written to
    #[arg(long)]
    pub dir: PathBuf,
    /// Paths that can be read
    #[arg(long)]
    pub read: Vec<PathBuf>,
    /// TCP ports that can be connected to
    #[arg(long)]
    pub port: Vec<u16>,
    /// The id of the parent process; this process ends with it
    #[arg(long)]
    pub parent: u32,
    /// Do not confine the program
    #[arg(long)]
    pub unconfined: bool,
    /// The program and its arguments
    #[arg(last = true, required = true)]
    pub command: Vec<OsString>,
}

impl Confinement {
    /// Returns the arguments of the command.
    pub fn to_args(&self) -> Vec<OsString> {
        let mut args: Vec<OsString> = vec!["--parent".into(), self.parent.to_string().into()];
        args.extend(["--dir".into(), self.dir.clone().into()]);
        args.extend(self.read.iter().flat_map(|path| ["--read".into(), path.clone().into()]));
        args.extend(self.port.iter().flat_map(|port| ["--port".into(), port.to_string().into()]));
        args.extend(self.unconfined.then(|| "--unconfined".into()));
        args.push("--".into());
        args.extend(self.command.iter().cloned());
        args
    }
}

/// Confines this process, and executes the program. Returns only on failure, with the reason.
#[expect(clippy::expect_used, reason = "the command line needs one")]
pub fn serve(confinement: &Confinement) -> String {
    if let Err(why) = prepare(confinement) {
        return why;
    }
    let (program, args) = confinement.command.split_first().expect("the command line needs one");
    let error = Command::new(program).args(args).exec();
    format!("{} cannot be started: {error}", program.to_string_lossy())
}

#[cfg(target_os = "linux")]
fn prepare(confinement: &Confinement) -> Result<(), String> {
    use rustix::process::{Resource, Rlimit, Signal, getppid, set_parent_process_death_signal, setrlimit};
    let failed = |what: &'static str| move |error: rustix::io::Errno| format!("{what}: {error}");
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(failed("it cannot be made to end with kiso"))?;
    // If the parent has ended before this, its end goes unnoticed.
    if getppid().is_none_or(|parent| parent.as_raw_nonzero().get().unsigned_abs() != confinement.parent) {
        return Err("kiso has ended".to_owned());
    }
    // A core dump would write its memory to a file.
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) }).map_err(failed("no limit can be set"))?;
    close_others()?;
    if confinement.unconfined {
        return Ok(());
    }
    let signals_are_scoped = ruleset::enforce(confinement)?;
    filter::enforce(&filter::FilterRules {
        tcp: !confinement.port.is_empty(),
        signals_are_scoped,
        pid: std::process::id(),
    })
}

/// Marks all open files except the standard streams to be closed when the program starts.
#[cfg(target_os = "linux")]
fn close_others() -> Result<(), String> {
    const CLOEXEC: libc::c_uint = 4;
    // SAFETY: the call takes three numbers. Descriptors stay open until the program starts, so nothing in this process loses one.
    let done = unsafe { libc::syscall(libc::SYS_close_range, 3 as libc::c_uint, libc::c_uint::MAX, CLOEXEC) };
    match done {
        0 => Ok(()),
        _ => Err(format!("open files cannot be closed: {}", std::io::Error::last_os_error())),
    }
}

#[cfg(not(target_os = "linux"))]
fn prepare(confinement: &Confinement) -> Result<(), String> {
    match confinement.unconfined {
        true => Ok(()),
        false => support(false),
    }
}

/// Checks that this machine can confine a program, with or without `tcp` ports. The error names what is missing.
#[cfg(target_os = "linux")]
pub fn support(tcp: bool) -> Result<(), String> {
    ruleset::support(tcp)?;
    filter::support()
}

/// Checks that this machine can confine a program. The error names what is missing.
#[cfg(not(target_os = "linux"))]
pub fn support(_: bool) -> Result<(), String> {
    Err("kiso can confine programs on Linux only".to_owned())
}
