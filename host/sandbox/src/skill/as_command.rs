//! Runs a skill of the command shape as a command of a line: words as arguments, the line's streams, an exit code.

use super::agent::SKILLS_MOUNT;
use super::capability::{Capabilities, EffectiveGrant};
use super::engine::Sandbox;
use super::error::SkillError;
use super::guest_stop::GuestStop;
use super::input::CallInput;
use super::instance::{EntryPoint, context, limited};
use super::usage::CallUse;
use super::workspace::{CommandRequests, ControlFile, DirId, Root};
use crate::effect::overlay::Overlays;
use crate::effect::published::PublishedFiles;
use crate::engine::limits::{HitCell, Limit, LimitHit};
use crate::package::CONTROL_FILE;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use futures_util::future::BoxFuture;
use kiso_base::home::SHARED;
use kiso_base::system::path_to_open;
use kiso_plan::code::{Blame, ErrorCode};
use kiso_plan::report::LimitUse;
use std::path::PathBuf;
use std::sync::PoisonError;
use std::time::Instant;
use wasmtime_wasi::cli::{StdinStream, StdoutStream};
use wasmtime_wasi::{FsPerms, I32Exit, WasiCtx, WasiCtxBuilder};

/// Ends a process that writes to a pipe without a reader.
#[derive(Debug, thiserror::Error)]
#[error("nobody reads its output any more")]
pub struct BrokenPipe;

impl BrokenPipe {
    /// 128 + SIGPIPE.
    pub const CODE: u8 = 141;
}

/// The streams and words of a skill that runs as a command.
#[derive(Debug)]
pub struct CommandStreams<I, O> {
    pub argv: Vec<String>,
    /// The line's environment, without variables that contain a secret.
    pub env: Vec<(String, String)>,
    /// The absolute working directory, as the shell sees it.
    pub cwd: String,
    /// The path of the line's `/tmp` on this machine.
    pub tmp: PathBuf,
    /// Directories of this machine that it may read, and their paths for it.
    pub support: Vec<(PathBuf, String)>,
    /// The path of the folders of Agent Skills on this machine, if the line sees them, and the labels of their files.
    pub skills: Option<(PathBuf, PublishedFiles)>,
    /// The folders that the session has open: its path for the command, its upper layer on this machine, and whether it may
    /// change it.
    pub folders: Vec<(String, PathBuf, bool)>,
    /// The session's layer of the shared files, and whether it may change them; or an empty directory in its place.
    pub shared: Option<(PathBuf, bool)>,
    pub overlays: Overlays,
    /// Starts the commands that it requests through the control file among its support files.
    pub requests: Option<Box<dyn CommandRequests>>,
    /// Whether it continues in the kept interpreter, which knows its directories by number.
    pub goes_on: bool,
    /// The words that start a new interpreter, if `argv` continues in the kept one.
    pub unkept: Option<Vec<String>>,
    pub stdin: I,
    pub stdout: O,
    pub stderr: O,
}

/// The end of a skill that ran as a command.
#[derive(Debug)]
pub struct CommandEnded {
    pub code: u8,
    /// The refused request and how to allow it, if the skill failed after one.
    pub refused: Option<String>,
}

/// Runs a skill of the command shape as a command. `did` gets the use of its grant, also after an error, if it was instantiated. The type
/// of the future is not visible outside, as in [`call`](super::instance::call).
pub(super) fn call<'a, I, O>(
    sandbox: &'a Sandbox,
    entry: &'a EntryPoint,
    given: CallInput<'a>,
    allowed: &'a EffectiveGrant,
    streams: CommandStreams<I, O>,
    waits: bool,
    did: &'a mut Option<CallUse>,
) -> BoxFuture<'a, Result<CommandEnded, SkillError>>
where
    I: StdinStream + 'static,
    O: StdoutStream + 'static,
{
    Box::pin(call_to_end(sandbox, entry, given, allowed, streams, waits, did))
}

#[expect(clippy::expect_used, reason = "it was looked at")]
async fn call_to_end<I, O>(
    sandbox: &Sandbox,
    entry: &EntryPoint,
    given: CallInput<'_>,
    allowed: &EffectiveGrant,
    mut streams: CommandStreams<I, O>,
    waits: bool,
    did: &mut Option<CallUse>,
) -> Result<CommandEnded, SkillError>
where
    I: StdinStream + 'static,
    O: StdoutStream + 'static,
{
    let EntryPoint::Command(pre) = entry else { unreachable!("the shell starts commands only") };
    let pool = sandbox.pool(pre.engine());
    let _slot = match waits {
        true => pool.enter().await,
        false => pool.try_enter().ok_or_else(|| {
            let message = "it cannot run beside the other skills of this line: all places are taken; the setting is [engine] max_calls in config.toml";
            SkillError::new(given.skill.as_str(), Blame::Caller, ErrorCode::Busy, message)
        })?,
    };
    let (skill, budget, hit) = (given.skill.to_string(), given.budget.clone(), HitCell::default());
    let mut capabilities = Capabilities::prepare(&given, allowed, &hit)?;
    capabilities.secrets.hand_over_in_environment(&given.skill);
    if capabilities.workspace.permissions().is_none()
        && let Some(words) = streams.unkept
    {
        // The kept interpreter was recorded with its directories.
        streams.argv = words;
    }
    let mut wasi = WasiCtx::builder();
    // Faster than a hop to another thread for each operation on files. Commands run on threads that do nothing else.
    wasi.allow_blocking_current_thread(true);
    capabilities.workspace.blocks = true;
    wasi.stdin(streams.stdin).stdout(streams.stdout).stderr(streams.stderr).args(&streams.argv);
    // Variables that were granted to the skill are not replaced by those of the line.
    let own = |name: &str| name == "PWD" || capabilities.secrets.is_variable(name);
    for (name, value) in streams.env.iter().filter(|(name, _)| !own(name)) {
        wasi.env(name, value);
    }
    wasi.env("PWD", &streams.cwd).initial_cwd(&streams.cwd);
    if let Some(perms) = capabilities.workspace.permissions() {
        // A program that was not written for kiso resolves relative names against this.
        if !streams.goes_on {
            give_cwd(&mut wasi, &streams.cwd, &[("/work", &given.work), ("/tmp", &streams.tmp)], perms);
        }
        let unusable = |e: &dyn std::fmt::Display| SkillError::host(&skill, format!("/tmp cannot be opened: {e}"));
        wasi.preopened_dir(&streams.tmp, "/tmp", perms).map_err(|e| unusable(&e))?;
        capabilities.workspace.roots.push(Root::new(DirId::at(&streams.tmp).map_err(|e| unusable(&e))?, "/tmp"));
        capabilities.workspace.touches(&streams.tmp, "/tmp");
        if !streams.goes_on {
            give_folder_cwd(&mut wasi, (&streams.overlays, &streams.cwd), perms);
        }
        let shared = streams.shared.iter().map(|(layer, write)| (SHARED.to_owned(), layer.clone(), *write));
        for (at, upper, write) in shared.chain(streams.folders.iter().cloned()) {
            let perms = if write { perms } else { FsPerms::ReadOnly };
            let unusable = |e: &dyn std::fmt::Display| SkillError::host(&skill, format!("{at} cannot be opened: {e}"));
            wasi.preopened_dir(&upper, &at, perms).map_err(|e| unusable(&e))?;
            capabilities
                .workspace
                .roots
                .push(Root { is_folder: true, ..Root::new(DirId::at(&upper).map_err(|e| unusable(&e))?, at.clone()) });
        }
        capabilities.workspace.overlays = match perms {
            FsPerms::ReadWrite => streams.overlays.clone(),
            FsPerms::ReadOnly => streams.overlays.read_only(),
        };
        // An interpreter runs the scripts of Agent Skills.
        if let Some((skills, published)) = &streams.skills {
            capabilities.workspace.published = Some(published.clone());
            if !streams.goes_on {
                give_cwd(&mut wasi, &streams.cwd, &[(SKILLS_MOUNT, skills)], FsPerms::ReadOnly);
            }
            let unusable =
                |e: &dyn std::fmt::Display| SkillError::host(&skill, format!("{SKILLS_MOUNT} cannot be opened: {e}"));
            wasi.preopened_dir(skills, SKILLS_MOUNT, FsPerms::ReadOnly).map_err(|e| unusable(&e))?;
            capabilities.workspace.roots.push(Root::new(DirId::at(skills).map_err(|e| unusable(&e))?, SKILLS_MOUNT));
            capabilities.workspace.touches(skills, SKILLS_MOUNT);
        }
    }
    for (path, at) in &streams.support {
        let unusable = |e: &dyn std::fmt::Display| SkillError::host(&skill, format!("{at} cannot be opened: {e}"));
        wasi.preopened_dir(path, at, FsPerms::ReadOnly).map_err(|e| unusable(&e))?;
        capabilities.workspace.roots.push(Root::new(DirId::at(path).map_err(|e| unusable(&e))?, at.as_str()));
    }
    // Commands that it starts may write to the workspace, so it must have that permission itself.
    let writes = capabilities.workspace.permissions() == Some(FsPerms::ReadWrite);
    if let (Some(requests), Some((dir, _)), true) = (streams.requests, streams.support.first(), writes) {
        let unusable = |e| SkillError::host(&skill, format!("{CONTROL_FILE} cannot be used: {e}"));
        capabilities.workspace.control = Some(ControlFile::new(dir, requests).map_err(unusable)?);
    }
    let refused = capabilities.http.gate.refused.clone();
    let ctx = context(given, capabilities, wasi, &hit)?;
    let mut store = limited(pool, ctx);
    let started = Instant::now();
    let result = tokio::time::timeout(budget.timeout, pre.run(&mut store)).await;
    let operations = store.data().capabilities.workspace.operations.clone();
    operations.ended().await;
    let used = LimitUse {
        millis: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        memory_bytes: store.data().guest.meter.peak_bytes(),
        written_bytes: store.data().capabilities.workspace.quota.written(),
        host_calls: store.data().guest.meter.host_calls(),
        ..LimitUse::default()
    };
    *did = Some(CallUse { limits: used, grant: store.data().capabilities.used() });
    let result = match result {
        Ok(result) => result,
        Err(_) => return Err(SkillError::limit(&skill, budget.hit(Limit::Time))),
    };
    if let Some(hit) = hit.get() {
        return Err(SkillError::limit(&skill, hit));
    }
    let hint = || {
        let refused = refused.lock().unwrap_or_else(PoisonError::into_inner).take();
        refused.map(|refused| refused.hint(&skill))
    };
    let ended = |code: u8| Ok(CommandEnded { code, refused: (code != 0).then(hint).flatten() });
    match result {
        Ok(Ok(())) => ended(0),
        Ok(Err(())) => ended(1),
        Err(error) => match error.downcast_ref::<I32Exit>() {
            Some(exit) => ended(u8::try_from(exit.0 & 0xff).unwrap_or(1)),
            None if error.downcast_ref::<LimitHit>().is_some() => {
                let hit = error.downcast::<LimitHit>().expect("it was looked at");
                Err(SkillError::limit(&skill, hit))
            }
            None if error.downcast_ref::<BrokenPipe>().is_some() => ended(BrokenPipe::CODE),
            None => {
                let error = GuestStop::Trap(error).explain(&skill, &budget, "");
                Err(match hint() {
                    Some(hint) => SkillError { message: format!("{}; {hint}", error.message), ..error },
                    None => error,
                })
            }
        },
    }
}

/// The same if the command was started in a folder.
fn give_folder_cwd(wasi: &mut WasiCtxBuilder, (overlays, cwd): (&Overlays, &str), perms: FsPerms) {
    let Some(dir) = overlays.open_dir(cwd) else { return };
    if let Some(path) = path_to_open(&dir) {
        let _ = wasi.preopened_dir(path, ".", perms);
    }
}

/// Mounts the directory that the command was started in as `.`, if it is in one of `roots`. The name comes from a guest and may
/// be a link by now. So the directory is opened without leaving its root, and the opened directory is mounted.
fn give_cwd(wasi: &mut WasiCtxBuilder, cwd: &str, roots: &[(&str, &PathBuf)], perms: FsPerms) {
    let below = |at: &str| {
        let rest = cwd.strip_prefix(at)?;
        (rest.is_empty() || rest.starts_with('/')).then(|| rest.trim_start_matches('/'))
    };
    let Some((path, rest)) = roots.iter().find_map(|(at, path)| Some((*path, below(at)?))) else { return };
    if rest.is_empty() {
        let _ = wasi.preopened_dir(path, ".", perms);
        return;
    }
    let found = Dir::open_ambient_dir(path, ambient_authority()).and_then(|root| root.open_dir(rest));
    // If the system has no path for it, the command has no `.`.
    let Ok(dir) = found else { return };
    if let Some(path) = path_to_open(&dir) {
        let _ = wasi.preopened_dir(path, ".", perms);
    }
}
