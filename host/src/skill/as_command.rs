//! A skill of the command shape as a command of a command line: words as arguments, the line's streams, an exit code.

use super::engine::Sandbox;
use super::error::{Blame, SkillError};
use super::instance::{Entry, Given, Stopped, context, limited, permissions};
use super::limits::{HitCell, Limit, LimitHit};
use wasmtime_wasi::cli::{StdinStream, StdoutStream};
use wasmtime_wasi::{I32Exit, WasiCtx};

/// What ends a process that writes to a pipe that nobody reads.
#[derive(Debug, thiserror::Error)]
#[error("nobody reads its output any more")]
pub struct BrokenPipe;

impl BrokenPipe {
    /// 128 + SIGPIPE.
    pub const CODE: u8 = 141;
}

/// The streams and words of a skill that runs as a command of a command line.
#[derive(Debug)]
pub struct CommandStreams<I, O> {
    pub argv: Vec<String>,
    /// Absolute, as the shell has it.
    pub cwd: String,
    pub stdin: I,
    pub stdout: O,
    pub stderr: O,
}

/// Runs a skill of the command shape as a command, and returns its exit code.
pub async fn call<I, O>(
    sandbox: &Sandbox,
    entry: &Entry,
    given: Given,
    streams: CommandStreams<I, O>,
    waits: bool,
) -> Result<u8, SkillError>
where
    I: StdinStream + 'static,
    O: StdoutStream + 'static,
{
    let Entry::Command(pre) = entry else { unreachable!("the shell starts commands only") };
    let _slot = match waits {
        true => sandbox.enter().await,
        false => sandbox.try_enter().ok_or_else(|| {
            let message = "it cannot run beside the other skills of this line: all places are taken; the setting is [engine] max_calls in config.toml";
            SkillError::new(given.skill.as_str(), Blame::Caller, "busy", message)
        })?,
    };
    let (skill, budget, hit) = (given.skill.to_string(), given.budget.clone(), HitCell::default());
    let mut wasi = WasiCtx::builder();
    wasi.stdin(streams.stdin)
        .stdout(streams.stdout)
        .stderr(streams.stderr)
        .args(&streams.argv)
        .env("PWD", &streams.cwd)
        .initial_cwd(&streams.cwd);
    if let Some(perms) = permissions(given.workspace).filter(|_| streams.cwd == "/work") {
        // A program that was not written for kiso resolves relative names against this. Not for a directory below: its
        // name comes from the guest and may be a link by now.
        let _ = wasi.preopened_dir(&given.work, ".", perms);
    }
    let mut store = limited(sandbox, context(given, wasi, &hit)?);
    let run = async {
        let instance = pre.instantiate_async(&mut store).await?;
        instance.wasi_cli_run().call_run(&mut store).await
    };
    let result = match tokio::time::timeout(budget.timeout, run).await {
        Ok(result) => result,
        Err(_) => return Err(SkillError::limit(&skill, budget.hit(Limit::Time))),
    };
    if let Some(hit) = hit.get() {
        return Err(SkillError::limit(&skill, hit));
    }
    match result {
        Ok(Ok(())) => Ok(0),
        Ok(Err(())) => Ok(1),
        Err(error) => match error.downcast_ref::<I32Exit>() {
            Some(exit) => Ok(u8::try_from(exit.0 & 0xff).unwrap_or(1)),
            None if error.downcast_ref::<LimitHit>().is_some() => {
                let hit = error.downcast::<LimitHit>().expect("it was looked at");
                Err(SkillError::limit(&skill, hit))
            }
            None if error.downcast_ref::<BrokenPipe>().is_some() => Ok(BrokenPipe::CODE),
            None => Err(Stopped::Trap(error).explain(&skill, &budget, "")),
        },
    }
}
