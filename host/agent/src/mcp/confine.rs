//! What is kept from an MCP server that is a program of this machine.
//!
//! Such a program is not in the sandbox: it is no component, and its memory and time are not limited. It runs as the user who runs
//! kiso, and everything of that user's would be its own. So kiso starts itself once more, which confines itself and then becomes the
//! program:
//!
//! ```text
//! kiso                                  kiso confine-server            the program
//!   no environment, pipes, own group ──▶  Landlock: files, TCP      ──▶  with what is left
//!                                         seccomp: system calls
//!                                         ends with kiso
//! ```
//!
//! Landlock leaves it one directory to write to, what it needs to start and what `read` names to read, and the TCP ports of
//! `connect_ports`, at whatever host. seccomp keeps from it what Landlock knows nothing of ([`filter`]): above all sockets of other
//! kinds, so that it reaches neither `kiso.sock` nor the session bus. Both hold for all that it starts, and cannot be taken back.

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

/// Exit code where the program was not started; standard error says why.
pub const NOT_STARTED: u8 = 126;

/// What is started, and what it is left.
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
    /// The process with which it ends
    #[arg(long)]
    pub parent: u32,
    /// Keep nothing from it
    #[arg(long)]
    pub unconfined: bool,
    /// The program and its arguments
    #[arg(last = true, required = true)]
    pub command: Vec<OsString>,
}

impl Confinement {
    /// As the command takes them.
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

/// Confines this process, and becomes the program. Comes back where it cannot, with the reason.
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
    // Whose end comes before that is not noticed any more.
    if getppid().is_none_or(|parent| parent.as_raw_nonzero().get().unsigned_abs() != confinement.parent) {
        return Err("kiso has ended".to_owned());
    }
    // What it had in memory would lie in a file.
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

/// Has all files that are open here, but for the standard streams, closed when the program begins.
#[cfg(target_os = "linux")]
fn close_others() -> Result<(), String> {
    const CLOEXEC: libc::c_uint = 4;
    // SAFETY: the call takes three numbers. Descriptors stay open until the program begins, so nothing here loses one that it has.
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

/// Whether this machine can confine a program, one that may connect to `tcp` ports or none. Otherwise what is missing.
#[cfg(target_os = "linux")]
pub fn support(tcp: bool) -> Result<(), String> {
    ruleset::support(tcp)?;
    filter::support()
}

/// Whether this machine can confine a program. Otherwise what is missing.
#[cfg(not(target_os = "linux"))]
pub fn support(_: bool) -> Result<(), String> {
    Err("kiso can confine programs on Linux only".to_owned())
}
