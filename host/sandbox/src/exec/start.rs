//! Starts a process, runs it, and returns its exit code.

use super::channel::{Channel, TaskEnded};
use super::commands::{Program, plain_name};
use super::engine::STACK_BYTES;
use super::instance::{Components, ProcessCtx, Streams, store};
use super::process::{CANNOT_RUN, CRASHED, KILLED, Process, ProcessSpec};
use super::programs::NotRun;
use super::requests::{ChildRequests, Parent, StartRefusal};
use super::streams::WriteError;
use super::task::{ExecTask, SHELL};
use super::wit::exports::kiso::exec::shell::Ended;
use crate::engine::limits::{Limit, LimitHit};
use crate::skill::BrokenPipe;
use crate::skill::trap;
use rustix::io::Errno;
use std::os::fd::AsFd;
use std::sync::Arc;
use tokio::sync::oneshot;
use wasmtime::Trap;
use wasmtime::component::ResourceTableError;
use wasmtime_wasi::I32Exit;
use wasmtime_wasi::p2::bindings::CommandPre;

/// The work of a shell.
#[derive(Debug)]
pub(super) enum ShellWork {
    /// Run a line.
    Line { source: String, state: Vec<u8>, args: Vec<String>, partial: bool },
    /// Go on as a child.
    Fork { state: Vec<u8> },
}

/// Most bytes of arguments and environment together, with a pointer for each as on Linux: each process holds them a second time.
const MAX_ARGUMENTS: usize = 2 << 20;

/// The variable with the working directory, for programs that cannot get it from WASI.
const PWD: &str = "PWD";

/// Directories of `PATH` that are searched, at most.
const MAX_PLACES: usize = 64;

/// Starts the command that the first word names, as a child of `parent`.
pub(super) fn start(parent: Parent<'_>, mut spec: ProcessSpec) -> Result<Result<Arc<Process>, StartRefusal>, LimitHit> {
    let program = match spec.program.take() {
        Some(path) => Program::File(path),
        None => {
            let name = plain_name(spec.argv.first().map_or("", String::as_str)).to_owned();
            match parent.task.commands.find(&name) {
                Some(program) => {
                    spec.argv[0] = name;
                    program
                }
                None if !parent.is_shell && leads_to_file(parent, &spec) => {
                    return start_by_shell(parent, spec).map(Ok);
                }
                None => return Ok(Err(StartRefusal::Unknown(parent.task.commands.instead(&name)))),
            }
        }
    };
    let size = |word: &String| word.len() + size_of::<u64>();
    let words: usize = spec.argv.iter().map(size).sum();
    if words + spec.env.iter().map(|(name, value)| size(name) + size(value)).sum::<usize>() > MAX_ARGUMENTS {
        return Ok(Err(StartRefusal::Failed("Argument list too long")));
    }
    match program {
        Program::Shell => {
            // The shell reads its own options: `sh -c`, `sh FILE`.
            let (source, args) = (format!("{} \"$@\"", spec.argv[0]), spec.argv[1..].to_vec());
            let work = ShellWork::Line { source, state: Vec::new(), args, partial: false };
            let Parent { components, task, process, .. } = parent;
            Ok(Ok(start_shell(components, task, Some(process), work, spec)?.0))
        }
        Program::Coreutils | Program::Curl | Program::Image | Program::Js | Program::Skill(_) | Program::File(_) => {
            start_program(parent, program, spec).map(Ok)
        }
    }
}

/// Whether the first word is a file, as in a shell: by its path, or along `PATH`.
fn leads_to_file(parent: Parent<'_>, spec: &ProcessSpec) -> bool {
    let Parent { task, process, .. } = parent;
    let is_there = |path: &str| task.dirs.permissions((path, true), &task.quota, &process.label).is_ok();
    let absolute = |path: &str| match path.starts_with('/') {
        true => path.to_owned(),
        false => format!("{}/{path}", spec.cwd),
    };
    let Some(name) = spec.argv.first().filter(|name| !name.is_empty()) else { return false };
    if name.contains('/') {
        return is_there(&absolute(name));
    }
    let path = spec.env.iter().find(|(variable, _)| variable == "PATH").map_or("", |(_, path)| path);
    path.split(':').take(MAX_PLACES).any(|place| match place {
        "" => is_there(&absolute(name)),
        place => is_there(&absolute(&format!("{place}/{name}"))),
    })
}

/// Starts a shell that replaces itself with a script or a program: the shell finds out which of them a file is.
fn start_by_shell(parent: Parent<'_>, spec: ProcessSpec) -> Result<Arc<Process>, LimitHit> {
    let (source, args) = ("exec \"$@\"".to_owned(), spec.argv.clone());
    let work = ShellWork::Line { source, state: Vec::new(), args, partial: false };
    let Parent { components, task, process, .. } = parent;
    Ok(start_shell(components, task, Some(process), work, spec)?.0)
}

fn start_program(parent: Parent<'_>, program: Program, spec: ProcessSpec) -> Result<Arc<Process>, LimitHit> {
    let process = parent.task.admit(Some(parent.process), spec.title())?;
    spec.channels.values().for_each(|channel| channel.held_by(&process.label));
    // Made here, not in the block: if the future is dropped before it was polled, nothing in the block runs.
    let running = EndGuard::new(parent.task.clone(), process.clone());
    let components = parent.components.clone();
    parent.task.spawn(&process, async move {
        // Moves the whole guard: otherwise the block would capture only the fields that it uses.
        let mut running = running;
        let task = running.task.clone();
        let stderr = spec.channel(2);
        let title = running.process.title.clone();
        let result = match program {
            Program::Coreutils => command(&running, &components, components.coreutils(), spec).await,
            Program::Curl => command(&running, &components, components.curl(), spec).await,
            Program::Image => command(&running, &components, components.image(), spec).await,
            Program::Js => command(&running, &components, components.js(), spec).await,
            Program::File(path) => file(&running, &components, &path, spec).await,
            Program::Shell => unreachable!("a shell is started as one"),
            Program::Skill(skill) => {
                let process = &running.process;
                let parent = Parent { components: &components, task: &task, process, is_shell: false };
                let own = [0, 1, 2].map(|number| spec.channel(number));
                let requests = Box::new(ChildRequests::new(parent, &spec.argv, own, self::start));
                let (dirs, label) = (&task.dirs, &running.process.label);
                let ran = task.commands.run_skill(&skill, spec, dirs, (&stderr, label), requests).await;
                ran.map_err(|hit| task.hit_with(hit).into())
            }
        };
        running.code = close(&task, &title, &stderr, result).await;
    });
    Ok(process)
}

/// Starts a shell. If it was given a line, the result is sent to the receiver.
pub(super) fn start_shell(
    components: &Arc<Components>,
    task: &Arc<ExecTask>,
    parent: Option<&Process>,
    work: ShellWork,
    spec: ProcessSpec,
) -> Result<(Arc<Process>, oneshot::Receiver<Ended>), LimitHit> {
    let process = task.admit(parent, SHELL.to_owned())?;
    spec.channels.values().for_each(|channel| channel.held_by(&process.label));
    let running = EndGuard::new(task.clone(), process.clone());
    let components = components.clone();
    let (sender, receiver) = oneshot::channel();
    task.spawn(&process, async move {
        let mut running = running;
        let task = running.task.clone();
        let stderr = spec.channel(2);
        let result = shell(&running, &components, work, spec).await;
        let result = result.map(|(code, ended)| {
            if let Some(ended) = ended {
                // Nobody may be waiting any more.
                let _ = sender.send(ended);
            }
            code
        });
        running.code = close(&task, SHELL, &stderr, result).await;
    });
    Ok((process, receiver))
}

async fn command(
    running: &EndGuard,
    components: &Arc<Components>,
    pre: wasmtime::Result<&CommandPre<ProcessCtx>>,
    spec: ProcessSpec,
) -> wasmtime::Result<u8> {
    instance(running, components, pre?, spec, Streams::Command).await
}

async fn instance(
    running: &EndGuard,
    components: &Arc<Components>,
    pre: &CommandPre<ProcessCtx>,
    spec: ProcessSpec,
    streams: Streams,
) -> wasmtime::Result<u8> {
    check_descriptors()?;
    let mut store = store(components, &running.task, &running.process, spec, streams)?;
    let instance = pre.instantiate_async(&mut store).await?;
    match instance.wasi_cli_run().call_run(&mut store).await? {
        Ok(()) => Ok(0),
        Err(()) => Ok(1),
    }
}

/// Runs a file of the session. A file that cannot be run has the exit code that a shell gives it.
async fn file(
    running: &EndGuard,
    components: &Arc<Components>,
    path: &str,
    mut spec: ProcessSpec,
) -> wasmtime::Result<u8> {
    spec.env.retain(|(name, _)| name != PWD);
    spec.env.push((PWD.to_owned(), spec.cwd.clone()));
    let (name, stderr) = (spec.argv.first().cloned().unwrap_or_default(), spec.channel(2));
    let ran = match components.programs().load(&running.task, &running.process, path).await {
        Ok(program) => instance(running, components, &program, spec, Streams::Program).await,
        Err(NotRun::Refused(why)) => {
            let _ = stderr.write(format!("{name}: {why}\n").as_bytes()).await;
            return Ok(CANNOT_RUN);
        }
        Err(NotRun::Ended(error)) => Err(error),
    };
    // Unlike a bundled command that panicked, the program has not printed a reason.
    if ran.as_ref().is_err_and(|error| matches!(error.downcast_ref(), Some(Trap::UnreachableCodeReached))) {
        let _ = stderr.write(format!("{name}: aborted\n").as_bytes()).await;
    }
    ran
}

async fn shell(
    running: &EndGuard,
    components: &Arc<Components>,
    work: ShellWork,
    spec: ProcessSpec,
) -> wasmtime::Result<(u8, Option<Ended>)> {
    check_descriptors()?;
    let (env, cwd) = (spec.env.clone(), spec.cwd.clone());
    let mut store = store(components, &running.task, &running.process, spec, Streams::Shell)?;
    let instance = components.shell()?.instantiate_async(&mut store).await?;
    let shell = instance.kiso_exec_shell();
    match work {
        ShellWork::Fork { state } => Ok((shell.call_resume(&mut store, &state).await?, None)),
        ShellWork::Line { source, state, args, partial } => {
            let ended = shell.call_run(&mut store, &source, &state, &cwd, &env, &args, partial).await?;
            Ok((ended.code, Some(ended)))
        }
    }
}

/// The exit code of a process's result. The first process that reached a limit is blamed.
async fn close(task: &ExecTask, title: &str, stderr: &Channel, result: wasmtime::Result<u8>) -> u8 {
    // Processes that wait for it, read from it or write to it end, too.
    let blamed = result.as_ref().is_err_and(|error| {
        error.downcast_ref::<BrokenPipe>().is_none() && error.downcast_ref::<TaskEnded>().is_none()
    });
    let code = exit_code(task, title, stderr, result).await;
    if blamed && task.limit().is_some() {
        task.blame_command(title);
    }
    code
}

/// The exit code of a process's result. Prints the reason on its standard error if the process has not.
async fn exit_code(task: &ExecTask, title: &str, stderr: &Channel, result: wasmtime::Result<u8>) -> u8 {
    let error = match result {
        Ok(code) => return code,
        Err(error) => error,
    };
    if let Some(exit) = error.downcast_ref::<I32Exit>() {
        return u8::try_from(exit.0 & 0xff).unwrap_or(CRASHED);
    }
    if error.downcast_ref::<BrokenPipe>().is_some() {
        return BrokenPipe::CODE;
    }
    if task.limit().is_some() {
        return KILLED;
    }
    if error.root_cause().to_string().contains("fuel allocated for hostcalls") {
        task.hit(Limit::Transfer);
        return KILLED;
    }
    if is_out_of_files(&error) {
        // The process never began. Others of the line would take its missing output for an empty one.
        task.hit_with(LimitHit {
            limit: Limit::OpenFiles,
            value: "limit for all of kiso".to_owned(),
            setting: "LimitNOFILE of the unit, or `ulimit -n`".to_owned(),
        });
        return KILLED;
    }
    let name = title.split(' ').next().unwrap_or_default();
    if let Some(WriteError(errno)) = error.downcast_ref() {
        let _ = stderr.write(format!("{name}: write error: {}\n", errno.in_words()).as_bytes()).await;
        return 1;
    }
    let (message, code) = match error.downcast_ref::<Trap>() {
        Some(Trap::StackOverflow) => {
            (format!("it recursed deeper than its stack of {} KiB", STACK_BYTES >> 10), CRASHED)
        }
        // A bundled command panicked; it has printed the reason.
        Some(Trap::UnreachableCodeReached) => return CRASHED,
        Some(trap) => (trap::in_words(*trap).to_owned(), CRASHED),
        _ if matches!(error.downcast_ref(), Some(ResourceTableError::Full)) => {
            task.hit(Limit::OpenFiles);
            return KILLED;
        }
        _ => (error.root_cause().to_string(), CRASHED),
    };
    let _ = stderr.write(format!("{name}: crashed: {message}\n").as_bytes()).await;
    code
}

/// Descriptors that a process and its first steps need, mostly for directories.
const DESCRIPTORS: usize = 16;

/// Fails if kiso has fewer descriptors left: without them, a process cannot even report the error, and others would take its
/// missing output for an empty one.
fn check_descriptors() -> std::io::Result<()> {
    let stdin = std::io::stdin();
    let spare = (0..DESCRIPTORS).map(|_| stdin.as_fd().try_clone_to_owned());
    spare.collect::<Result<Vec<_>, _>>().map(drop)
}

/// Whether kiso itself had no descriptor left to open something.
fn is_out_of_files(error: &wasmtime::Error) -> bool {
    let code = error.root_cause().downcast_ref::<std::io::Error>().and_then(std::io::Error::raw_os_error);
    code.is_some_and(|code| [Errno::MFILE, Errno::NFILE].iter().any(|errno| errno.raw_os_error() == code))
}

/// Marks a process as ended when its future is dropped, for whatever reason.
struct EndGuard {
    task: Arc<ExecTask>,
    process: Arc<Process>,
    code: u8,
}

impl EndGuard {
    fn new(task: Arc<ExecTask>, process: Arc<Process>) -> Self {
        Self { task, process, code: KILLED }
    }
}

impl Drop for EndGuard {
    fn drop(&mut self) {
        self.process.ended(self.code);
        self.task.gone(&self.process);
    }
}
