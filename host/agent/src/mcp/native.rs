//! A server that is a program of this machine. It runs outside of the sandbox, so only `config.toml` can name one; [`confine`]
//! restricts it nevertheless.
//!
//! It is started with the first call and keeps running, because such servers have state and start slowly. After it has ended, it
//! is started again. A dedicated thread starts it and waits for its end, because the system kills the program when that thread
//! ends.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use futures_util::future::BoxFuture;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::net::unix::pipe;
use tokio::sync::{oneshot, watch};

use super::confine::{self, Confinement};
use super::stdio::{ServerInput, ServerLife, ServerOutput, StdioServer};
use super::{McpFault, shown};
use kiso_base::config::CommandPlace;
use kiso_base::home::{Home, HomeError};
use kiso_base::system::this_program;
use kiso_store::secret::SecretValue;

/// Maximum size in bytes of standard error that is kept for the reason of a failure; the end is kept.
const MAX_SAID: usize = 4 << 10;

/// How long to wait for the rest of standard error of a program that has ended.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// A program that can be started as a server.
#[derive(Debug)]
pub(super) struct NativeServer {
    name: String,
    place: CommandPlace,
    home: Home,
    /// kiso's port from `config.toml`.
    gateway_port: u64,
    env: Vec<(String, SecretValue)>,
}

impl NativeServer {
    pub(super) fn new(
        name: &str,
        place: &CommandPlace,
        home: &Home,
        gateway_port: u64,
        env: Vec<(String, SecretValue)>,
    ) -> NativeServer {
        NativeServer { name: name.to_owned(), place: place.clone(), home: home.clone(), gateway_port, env }
    }

    /// Returns the only directory that it can write to.
    pub(super) fn dir(&self) -> PathBuf {
        self.home.server_dir(&self.name)
    }

    /// Returns whether it would be confined, or why it cannot be started at all.
    pub(super) fn check(&self) -> Result<bool, McpFault> {
        // Both would bypass the confinement.
        if let Some(path) = self.place.read.iter().find(|path| self.home.overlaps(Path::new(path))) {
            return Err(McpFault::Start(format!("read = {path:?} has kiso's own home in it, or is in it")));
        }
        // The daemon may have been started with another port than in config.toml.
        let listening = self.home.daemon_port().map_err(|error| McpFault::Start(error.to_string()))?;
        let is_own = |port: &&u16| u64::from(**port) == self.gateway_port || Some(**port) == listening;
        if let Some(port) = self.place.connect_ports.iter().find(is_own) {
            return Err(McpFault::Start(format!("connect_ports names {port}, which is kiso's own port")));
        }
        match confine::support(!self.place.connect_ports.is_empty()) {
            Ok(()) => Ok(true),
            Err(_) if self.place.unconfined => Ok(false),
            Err(why) => Err(McpFault::Unconfined(why)),
        }
    }

    fn command(&self) -> Result<Command, McpFault> {
        let confined = self.check()?;
        let dir =
            self.home.create_server_dir(&self.name).map_err(|error: HomeError| McpFault::Start(error.to_string()))?;
        let confinement = Confinement {
            dir: dir.clone(),
            read: self.place.read.iter().map(PathBuf::from).collect(),
            port: self.place.connect_ports.clone(),
            parent: std::process::id(),
            unconfined: !confined,
            command: self.place.command.iter().map(OsString::from).collect(),
        };
        let mut command = Command::new(this_program());
        command.arg0("kiso").arg(confine::COMMAND).args(confinement.to_args()).env_clear();
        command.envs(self.env.iter().map(|(name, value)| (name, value.expose())));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.current_dir(dir).process_group(0);
        Ok(command)
    }
}

/// A running program, with its child processes.
#[derive(Debug)]
struct NativeProcess {
    group: Group,
    ended: watch::Receiver<Option<McpFault>>,
}

/// The process group of a program. The id can be reused as soon as the program was waited for.
#[derive(Debug, Clone)]
struct Group(Arc<Mutex<Option<Pid>>>);

impl Group {
    fn signal(&self, signal: Signal) {
        if let Some(pid) = *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = kill_process_group(pid, signal);
        }
    }

    /// Waits for the program, kills its remaining child processes, and records its end.
    fn wait(&self, child: &mut Child, pid: Pid) -> io::Result<std::process::ExitStatus> {
        // The id stays reserved until it is waited for below.
        let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
        let mut group = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = kill_process_group(pid, Signal::KILL);
        *group = None;
        child.wait()
    }
}

/// Streams of a started program.
struct Started {
    input: OwnedFd,
    output: OwnedFd,
    process: NativeProcess,
}

/// Starts the program.
pub(super) async fn start(server: &NativeServer) -> Result<StdioServer, McpFault> {
    let command = server.command()?;
    let (sender, receiver) = oneshot::channel();
    let (name, env) = (format!("kiso-mcp-{}", server.name), server.env.clone());
    let spawned = thread::Builder::new().name(name).spawn(move || live(command, &env, sender));
    spawned.map_err(|error| McpFault::Start(error.to_string()))?;
    let started = receiver.await.map_err(|_| McpFault::Start("its thread has ended".to_owned()))?;
    let Started { input, output, process } = started.map_err(|error| McpFault::Start(error.to_string()))?;
    let pipes =
        pipe::Sender::from_owned_fd(input).and_then(|input| Ok((input, pipe::Receiver::from_owned_fd(output)?)));
    let (input, output) = pipes.map_err(|error| {
        process.end();
        McpFault::Start(error.to_string())
    })?;
    Ok(StdioServer::new(Box::new(process), ServerInput::Process(input), ServerOutput::Process(output)))
}

/// Starts the program, and waits until it has ended.
fn live(mut command: Command, env: &[(String, SecretValue)], started: oneshot::Sender<io::Result<Started>>) {
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return drop(started.send(Err(error))),
    };
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let streams = child.stdin.take().zip(child.stdout.take()).zip(child.stderr.take());
    let (Some(pid), Some(((input, output), stderr))) = (pid, streams) else {
        let _ = child.kill();
        return drop(started.send(Err(io::Error::other("it has no streams"))));
    };
    let group = Group(Arc::new(Mutex::new(Some(pid))));
    let (told, ended) = watch::channel(None);
    let said = Tail::read(stderr);
    let process = NativeProcess { group: group.clone(), ended };
    let begun = Started { input: input.into(), output: output.into(), process };
    if started.send(Ok(begun)).is_err() {
        // Nobody waits for it any more.
        group.signal(Signal::KILL);
    }
    let status = group.wait(&mut child, pid);
    let last = shown(redact(env, &said.last_line()).trim());
    let how = status.map_or_else(|error| error.to_string(), |status| status.to_string());
    let why = if last.is_empty() { format!("it ended with {how}") } else { format!("it ended with {how}: {last}") };
    told.send_replace(Some(McpFault::Broken(why)));
}

/// The end of a program's standard error.
struct Tail {
    bytes: Arc<Mutex<Vec<u8>>>,
    ended: mpsc::Receiver<()>,
}

impl Tail {
    fn read(mut stderr: ChildStderr) -> Tail {
        let (bytes, (told, ended)) = (Arc::new(Mutex::new(Vec::new())), mpsc::channel());
        let kept: Arc<Mutex<Vec<u8>>> = bytes.clone();
        let read = move || {
            let mut more = [0; 4096];
            while let Ok(count @ 1..) = stderr.read(&mut more) {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend_from_slice(&more[..count]);
                let from = kept.len().saturating_sub(MAX_SAID);
                kept.drain(..from);
            }
            let _ = told.send(());
        };
        if let Err(error) = thread::Builder::new().name("kiso-mcp-stderr".to_owned()).spawn(read) {
            tracing::warn!("what an MCP server says on standard error cannot be read: {error}");
        }
        Tail { bytes, ended }
    }

    /// Returns the last non-empty line of a program that has ended.
    fn last_line(&self) -> String {
        // Its child processes may keep the stream open for longer.
        let _ = self.ended.recv_timeout(LAST_WORDS);
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&bytes);
        text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned()
    }
}

/// Returns a text without the values of variables.
fn redact(env: &[(String, SecretValue)], text: &str) -> String {
    let values = env.iter().map(|(name, value)| (name, value.expose())).filter(|(_, value)| value.len() >= 8);
    values.fold(text.to_owned(), |text, (name, value)| text.replace(value, &format!("[secret {name}]")))
}

impl ServerLife for NativeProcess {
    fn end(&self) {
        self.group.signal(Signal::KILL);
    }

    fn ask_to_end(&self) {
        self.group.signal(Signal::TERM);
    }

    fn is_over(&self) -> bool {
        self.ended.borrow().is_some()
    }

    fn ended(&self) -> BoxFuture<'_, McpFault> {
        let mut ended = self.ended.clone();
        Box::pin(async move {
            let fault = ended.wait_for(Option::is_some).await.ok().and_then(|fault| fault.clone());
            fault.unwrap_or_else(|| McpFault::Broken("it was ended".to_owned()))
        })
    }
}
