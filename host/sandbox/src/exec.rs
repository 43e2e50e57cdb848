//! Exec: command lines without a host shell.
//!
//! A line is run by a shell that is a component, and every command it starts is an instance of a component too. This is
//! the host's side of it:
//!
//! ```text
//!             Exec::run                          one task: deadline, memory, processes, output
//!                 │
//!        ┌────────▼────────┐  kiso:exec/spawn   ┌───────────┐
//!        │ shell (process) │ ─────start───────▶ │ coreutils │ ──┐
//!        │                 │ ─────fork────────▶ │ shell     │ ──┤  pipes of 64 KiB,
//!        └─────────────────┘                    │ a skill   │ ──┘  files, the task's output
//!                                               └───────────┘
//! ```
//!
//! In reading order, each above those that follow: [`spawn`] has the functions that guests call ([`wit`]), [`start`] starts a
//! process, [`requests`] has the requests of guests that know only WASI, [`instance`] is a process as an instance of a component
//! ([`embedded`]), [`task`] has the state that all processes of a line share ([`dirs`]), [`engine`] the threads that they run on,
//! [`commands`] finds the implementation of a name, [`process`] is a process as others see it, [`channel`] and [`streams`] are
//! its inputs and outputs, and [`watch`] reports output while a line runs.

mod channel;
mod commands;
mod dirs;
mod embedded;
mod engine;
mod errno;
pub mod hint;
mod http;
mod http_requests;
mod http_upload;
mod instance;
mod line;
mod line_network;
mod permissions;
mod process;
mod programs;
mod requests;
mod scratch;
mod spawn;
mod start;
mod streams;
mod task;
mod watch;
mod wit;

pub use self::channel::{Channel, PipeWriter, pipe};
pub use self::commands::{installed_package, refuse_commands};
pub use self::scratch::Scratch;
pub use self::streams::Stdio;
pub use self::watch::Watch;

use self::commands::Commands;
use self::dirs::{Dirs, MountPoint, unusable};
use self::instance::Components;
use self::line_network::LineNetwork;
use self::process::ProcessSpec;
use self::start::{ShellWork, start_shell};
use self::task::{ExecTask, Parts};
use self::wit::exports::kiso::exec::shell::Ended;
use crate::effect::label::LabelId;
use crate::effect::network::Network;
use crate::effect::overlay::Overlay;
use crate::effect::sink::Permit;
use crate::effect::undo::Transaction;
use crate::engine::limits::{Budget, HitCell, Limit, LimitHit};
use crate::engine::output::OutputBuffer;
use crate::skill::{SKILLS_MOUNT, Skills};
use kiso_base::config::Config;
use kiso_base::home::{Home, SHARED, SessionName};
use kiso_plan::approval::CardAccess;
use kiso_plan::plan::CallerScope;
use kiso_plan::report::{Allowance, FailedCommand, LimitUse};
use kiso_store::secret::Secrets;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Runs command lines for a home. Cheap to clone; the engine starts with the first line.
#[derive(Debug, Clone)]
pub struct Exec(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    home: Home,
    config: Config,
    skills: Skills,
    components: OnceLock<Arc<Components>>,
}

/// A command line and its environment.
pub struct Line<'a> {
    /// One or more lines of shell.
    pub source: &'a str,
    pub session: &'a SessionName,
    /// The role of its caller: an administrator's line sees the mounts of `config.toml` for administrators.
    pub role: CallerScope,
    /// Whether it sees the files that all sessions share.
    pub shared: bool,
    /// BCP 47 tag, for skills that run as commands.
    pub locale: &'a str,
    pub secrets: &'a Secrets,
    pub stdin: Channel,
    /// Arguments, as `$1` and so on.
    pub args: Vec<String>,
    /// The state that an earlier line left; empty for a fresh shell.
    pub state: Vec<u8>,
    /// The channels for standard output and standard error. `None` keeps the output.
    pub partial: bool,
    /// Where standard output and standard error go instead of being kept.
    pub outputs: Option<(Channel, Channel)>,
    /// Receives the output while the line runs, if the output is kept.
    pub watch: Option<Watch>,
    /// The line's `/tmp`.
    pub scratch: &'a Scratch,
    /// The transaction that it belongs to, if it can be undone.
    pub transaction: Option<Arc<Transaction>>,
    /// The access that a person has approved for the skills that it calls.
    pub accepted: Option<Arc<[CardAccess]>>,
    /// Effects outside of the sandbox that the rules of labels allow it.
    pub permit: Permit,
    /// The network that it may use.
    pub network: Network,
}

/// The result of a line.
#[derive(Debug)]
pub struct CommandResult {
    /// The beginning and the end, if it was longer than `[exec] output_kib`.
    pub stdout: String,
    pub stderr: String,
    /// 0 to 255. 137 when a limit ended it.
    pub code: u8,
    /// The command that the code came from, if it is not 0.
    pub failed: Option<FailedCommand>,
    /// The limit that ended it.
    pub limit: Option<LimitHit>,
    pub used: LimitUse,
    /// The limits that it had.
    pub allowed: Allowance,
    /// The state for the next line.
    pub state: Vec<u8>,
    /// Nothing was run: the line ends in the middle of a command.
    pub incomplete: bool,
    /// The line said `exit`.
    pub exited: bool,
    /// The working directory after it.
    pub cwd: String,
    /// The label of its output and exit code.
    pub label: LabelId,
}

impl std::fmt::Debug for Line<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Line").field("session", self.session).finish_non_exhaustive()
    }
}

/// Why a line could not be run at all: the machine's fault, not the line's.
#[derive(Debug, thiserror::Error)]
#[error("the line could not be run: {0}")]
pub struct ExecError(String);

impl ExecError {
    pub fn new(error: impl std::fmt::Display) -> Self {
        Self(error.to_string())
    }
}

impl Exec {
    /// Makes one for the home of these skills. Starts nothing yet.
    pub fn new(home: Home, config: Config, skills: Skills) -> Self {
        Self(Arc::new(Inner { home, config, skills, components: OnceLock::new() }))
    }

    /// An empty `/tmp`.
    pub fn scratch(&self, session: &SessionName) -> Result<Scratch, ExecError> {
        Scratch::new(&self.0.home, session).map_err(|e| ExecError(e.to_string()))
    }

    /// Runs a line to its end. When the future is dropped, every process ends with it.
    #[tracing::instrument(name = "exec.run", level = "debug", skip_all, fields(session = %line.session))]
    pub async fn run(&self, line: Line<'_>) -> Result<CommandResult, ExecError> {
        let scratch = line.scratch;
        scratch.enter();
        let components = self.components().map_err(|e| ExecError(format!("{e:#}")))?;
        let engine = components.engine.clone();
        let place = kiso_base::compute::permit(&engine.tasks).await;
        let started = Instant::now();
        let config = &self.0.config;
        let (budget, hit) = (Budget::exec(&config.exec, &config.engine), HitCell::default());
        let cap = usize::try_from(config.exec.output_kib << 10).unwrap_or(usize::MAX);
        let output = || OutputBuffer::new(cap, budget.clone(), hit.clone(), line.watch.as_ref().map(Watch::came));
        let (stdout, stderr) = (output(), output());
        if let Some(watch) = &line.watch {
            watch.begin(&stdout, &stderr);
        }
        let kept = || (Channel::Output(stdout.clone()), Channel::Output(stderr.clone()));
        let (to_out, to_err) = line.outputs.unwrap_or_else(kept);
        if let Some(work) = &line.transaction {
            let stderr = stderr.clone();
            work.tell(move |note| drop(stderr.push(note.as_bytes())));
        }
        let quota = self.0.skills.exec_quota(line.session, &budget, hit.clone(), line.transaction.clone());
        let dirs = self.dirs(line.session, (line.role, line.shared), line.scratch)?;
        let commands = Commands {
            home: self.0.home.clone(),
            skills: self.0.skills.clone(),
            session: line.session.clone(),
            locale: line.locale.to_owned(),
            secrets: line.secrets.clone(),
            transaction: line.transaction,
            accepted: line.accepted,
            running: AtomicUsize::new(0),
            skill_ran: AtomicBool::new(false),
            permit: line.permit.clone(),
            network: line.network.clone(),
        };
        let network = LineNetwork::new(line.network, &config.network);
        let (timeout, allowed) = (budget.timeout, budget.allowance());
        let task = ExecTask::new(Parts { engine, budget, hit, quota, dirs, commands, network, place });
        let words_to = to_err.clone();
        let channels = [(0, line.stdin), (1, to_out), (2, to_err)];
        let spec = ProcessSpec {
            argv: vec!["sh".to_owned()],
            program: None,
            env: environment(&config.zone()),
            cwd: task.dirs.start().to_owned(),
            channels: BTreeMap::from(channels),
        };
        let work = ShellWork::Line {
            source: line.source.to_owned(),
            state: line.state,
            args: line.args,
            partial: line.partial,
        };
        let mut shell = None;
        let ended = match start_shell(components, &task, None, work, spec) {
            Ok((process, receiver)) => {
                shell = Some(process);
                let guard = Guard(&task);
                let all = async {
                    let ended = receiver.await.ok();
                    // Background processes belong to the task. They could not go on after its end.
                    task.idle().await;
                    ended
                };
                let ended = tokio::select! {
                    biased;
                    _ = task.stopped() => None,
                    ended = all => ended,
                    before = busy_at_the_end(&task, timeout) => {
                        task.blame(&before);
                        task.hit(Limit::Time);
                        None
                    }
                };
                drop(guard);
                task.idle().await;
                ended
            }
            Err(_) => None,
        };
        for words in task.dirs.take_refusals() {
            let _ = words_to.write(words.as_bytes()).await;
        }
        drop(words_to);
        // Programs that are not bundled write on threads of their own, which may go on after the program was cut off.
        if ended.is_some() && task.limit().is_none() && !task.commands.has_run_skill() {
            scratch.leave();
        }
        let (processes, processes_at_once) = task.counts();
        let used = LimitUse {
            millis: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            memory_bytes: task.peak_memory(),
            written_bytes: task.quota.written(),
            processes,
            processes_at_once,
            output_bytes: stdout.total() + stderr.total(),
            ..LimitUse::default()
        };
        // The shell chose the exit code, so its label applies.
        let label = shell.map_or(line.permit.read().get(), |shell| shell.label.get());
        let label = label.join(stdout.label().get()).join(stderr.label().get()).join(task.cut_off());
        let result = CommandResult { allowed, label, ..done(&task, ended, (&stdout, &stderr), used) };
        tracing::debug!(code = result.code, processes, millis = used.millis, "the line has ended");
        Ok(result)
    }

    /// Loads the shell and all bundled commands, and returns the number of commands.
    pub fn check(&self) -> Result<usize, ExecError> {
        let load = || {
            let components = self.components()?;
            components
                .shell()
                .map(drop)
                .and_then(|()| components.coreutils().map(drop))
                .and_then(|()| components.js().map(drop))
                .map_err(|e| anyhow::anyhow!("{e:#}"))?;
            anyhow::Ok(self.commands().len())
        };
        load().map_err(|e| ExecError(format!("{e:#}")))
    }

    /// The limits of a command line.
    pub fn limits(&self) -> &kiso_base::config::Exec {
        &self.0.config.exec
    }

    /// The names of all commands, for completion.
    pub fn commands(&self) -> Vec<String> {
        commands::names(&self.0.skills)
    }

    fn components(&self) -> anyhow::Result<&Arc<Components>> {
        if let Some(components) = self.0.components.get() {
            return Ok(components);
        }
        let components = Arc::new(Components::new(&self.0.config.exec, &self.0.skills)?);
        Ok(self.0.components.get_or_init(|| components))
    }

    fn dirs(
        &self,
        session: &SessionName,
        (role, shared): (CallerScope, bool),
        scratch: &Scratch,
    ) -> Result<Dirs, ExecError> {
        let own = [("/work", self.0.home.work_dir(session), true), ("/tmp", scratch.path().to_owned(), true)];
        let mounts = self.0.config.mounts.iter().filter(|mount| !mount.admin_only || role == CallerScope::Admin);
        let mounts = mounts.map(|mount| (mount.at.as_str(), mount.path.clone(), mount.write));
        let folders = self.0.config.visible_folders(&self.0.home, session, role);
        let folders = folders.map_err(|error| ExecError(error.to_string()))?;
        // Checked here too: a link in the path may have changed since the configuration was read.
        let opened = folders.iter().map(|folder| (folder.at.as_str(), folder.path.clone(), folder.write));
        let mut given = mounts.clone().chain(opened);
        if let Some((at, path, _)) = given.find(|(_, path, _)| self.0.home.overlaps(path)) {
            let error = std::io::Error::other("it has kiso's own home in it, or is in it");
            return Err(ExecError(unusable(at, &path, &error, false)));
        }
        let open = |(at, path, write): (&str, PathBuf, bool)| {
            MountPoint::open(at, path.clone(), write).map_err(|e| ExecError(unusable(at, &path, &e, false)))
        };
        let agent_skills = self.0.home.agent_skill_folders();
        let some = std::fs::read_dir(&agent_skills).is_ok_and(|mut entries| entries.next().is_some());
        // As above.
        let skills = some && self.0.config.mounts.iter().all(|mount| mount.at != SKILLS_MOUNT);
        let skills = skills.then_some((SKILLS_MOUNT, agent_skills, false));
        let mut all: Vec<_> = own.into_iter().chain(mounts).chain(skills).map(open).collect::<Result<_, _>>()?;
        for folder in &folders {
            let overlay = Overlay::open(&self.0.home, session, folder)
                .and_then(|overlay| MountPoint::open_folder(overlay, folder.write));
            all.push(overlay.map_err(|error| ExecError(unusable(&folder.at, &folder.path, &error, true)))?);
        }
        if shared {
            let overlay = Overlay::open_shared(&self.0.home, session);
            let mounted = overlay.and_then(|overlay| MountPoint::open_folder(overlay, true));
            all.push(mounted.map_err(|error| ExecError(unusable(SHARED, &self.0.home.shared_dir(), &error, false)))?);
        }
        let root = self.0.home.exec_root(all.iter().map(|mounted| mounted.at.as_str()));
        let dev = self.0.home.exec_root(std::iter::empty());
        Dirs::new((root.clone(), dev), all, self.0.skills.published_files())
            .map_err(|e| ExecError(unusable("/", &root, &e, false)))
    }
}

/// Waits for the deadline. Returns how long threads had worked for each process shortly before it.
async fn busy_at_the_end(task: &ExecTask, timeout: Duration) -> BTreeMap<u32, Duration> {
    let look = task::LAST_LOOK.min(timeout / 2);
    tokio::time::sleep(timeout - look).await;
    let before = task.busy();
    tokio::time::sleep(look).await;
    before
}

/// Ends a task when it goes away.
struct Guard<'a>(&'a ExecTask);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The environment of a fresh shell: short, and nothing of the host's but the user's time zone.
fn environment(zone: &str) -> Vec<(String, String)> {
    let fixed = [
        ("HOME", "/work"),
        ("LANG", "C.UTF-8"),
        ("LOGNAME", "kiso"),
        ("PATH", "/usr/bin:/bin:/work/.python/bin"),
        ("SHELL", "/bin/sh"),
        ("TERM", "dumb"),
        ("TMPDIR", "/tmp"),
        ("TZ", zone),
        ("USER", "kiso"),
    ];
    fixed.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn done(
    task: &ExecTask,
    ended: Option<Ended>,
    (stdout, stderr): (&OutputBuffer, &OutputBuffer),
    used: LimitUse,
) -> CommandResult {
    let limit = task.limit();
    let mut done = CommandResult {
        stdout: stdout.text(),
        stderr: stderr.text(),
        code: 137,
        failed: None,
        limit,
        used,
        allowed: Allowance::default(),
        state: Vec::new(),
        incomplete: false,
        exited: false,
        cwd: String::new(),
        label: LabelId::default(),
    };
    match ended {
        Some(ended) if done.limit.is_none() => {
            done.code = ended.code;
            done.failed = ended.failed.map(|f| FailedCommand { command: f.command, line: f.line, code: f.code });
            done.state = ended.state;
            done.incomplete = ended.incomplete;
            done.exited = ended.exited;
            done.cwd = ended.cwd;
        }
        _ => {
            let command = task.culprit().map(str::to_owned);
            done.failed = command.map(|command| FailedCommand { command, line: 1, code: 137 });
            if done.limit.is_none() {
                done.code = 134;
            }
        }
    }
    done
}
