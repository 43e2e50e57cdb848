//! One call: a fresh instance with its limits, run to its end, and its result in words.

use super::capability::{Capabilities, EffectiveGrant, Grant, RefusedRequest};
use super::command_entry::CommandEntry;
use super::ctx::Ctx;
use super::engine::{GuestPool, Sandbox};
use super::error::SkillError;
use super::fair::GuestTurn;
use super::function_call::{Function, FunctionCall};
use super::guest_stop::GuestStop;
use super::input::CallInput;
use super::usage::CallUse;
use super::wit::SkillPre;
use super::wit::since_v0_1::kiso::skill::types;
use super::workspace::note;
use crate::engine::guest::{self, Guest};
use crate::engine::limits::{Budget, HitCell, Limit, cut};
use crate::engine::meter::Meter;
use crate::engine::output::OutputBuffer;
use futures_util::future::BoxFuture;
use kiso_base::json::{self, JsonError};
use kiso_plan::code::{Blame, ErrorCode};
use kiso_plan::report::{Allowance, FileNote, LimitUse, LogLine};
use kiso_store::secret::Secrets;
use serde_json::Value;
use std::sync::{Arc, PoisonError};
use std::time::Instant;
use wasmtime::component::{ComponentExportIndex, InstancePre};
use wasmtime::{CallHook, Engine, Store as Instances, UpdateDeadline};
use wasmtime_wasi::p2::pipe::MemoryInputPipe;
use wasmtime_wasi::{I32Exit, WasiCtx, WasiCtxBuilder};

/// The entry point of a component.
#[derive(Clone)]
pub(super) enum EntryPoint {
    Skill(SkillPre<Ctx>),
    Command(CommandEntry),
    Functions { pre: InstancePre<Ctx>, functions: Vec<Function> },
    SelfTest { pre: InstancePre<Ctx>, index: ComponentExportIndex },
}

impl EntryPoint {
    /// The engine that it was compiled for.
    fn engine(&self) -> &Engine {
        match self {
            Self::Skill(pre) => pre.instance_pre().engine(),
            Self::Command(pre) => pre.engine(),
            Self::Functions { pre, .. } | Self::SelfTest { pre, .. } => pre.engine(),
        }
    }
}

/// The results of a call, successful or not.
#[derive(Debug)]
pub struct CallEnd {
    pub result: Result<SkillAnswer, SkillError>,
    pub log: Vec<LogLine>,
    /// The guest's output on its standard streams, if that is not the answer itself.
    pub stdout: String,
    pub stderr: String,
    pub used: LimitUse,
    /// The limits that it had; `None` if it was never instantiated.
    pub allowed: Option<Allowance>,
    /// The skill's grant at the time of the call.
    pub grant: Option<Grant>,
    /// The use that it made of the grant; `None` if it was never instantiated.
    pub did: Option<CallUse>,
}

/// An answer whose files the host has checked.
#[derive(Debug, Clone, Default)]
pub struct SkillAnswer {
    pub text: String,
    pub data: Option<Value>,
    pub files: Vec<FileNote>,
}

/// Most files that a reply may name.
const MAX_FILES: usize = 100;

/// Runs one call to its end. If the future is dropped, the instance is dropped, too. Its type is not visible outside: for each caller, the
/// compiler would have to look through the types of a store, which are nested too deeply for it.
pub(super) fn call<'a>(
    sandbox: &'a Sandbox,
    entry: &'a EntryPoint,
    given: CallInput<'a>,
    allowed: &'a EffectiveGrant,
) -> BoxFuture<'a, CallEnd> {
    Box::pin(call_to_end(sandbox, entry, given, allowed))
}

#[tracing::instrument(name = "skill.call", level = "debug", skip_all, fields(session = %given.session, skill = %given.skill, tool = given.tool))]
async fn call_to_end(sandbox: &Sandbox, entry: &EntryPoint, given: CallInput<'_>, allowed: &EffectiveGrant) -> CallEnd {
    let pool = sandbox.pool(entry.engine());
    let _slot = pool.enter().await;
    let started = Instant::now();
    let hit = HitCell::default();
    let budget = given.budget.clone();
    let (skill, tool, args) = (given.skill.to_string(), given.tool.clone(), given.args.clone());
    let request = types::Call {
        tool: tool.clone(),
        args: args.to_string(),
        session: given.session.to_string(),
        locale: given.locale.clone(),
    };
    let work = given.visible.then(|| given.work.clone());
    let mut capabilities = match Capabilities::prepare(&given, allowed, &hit) {
        Ok(capabilities) => capabilities,
        Err(error) => return CallEnd::early(error),
    };
    let stdout = OutputBuffer::whole(budget.clone(), hit.clone());
    let stderr = OutputBuffer::whole(budget.clone(), hit.clone());
    let stdin = match entry {
        EntryPoint::Command(_) => {
            capabilities.secrets.hand_over();
            stdin_json(&given, &capabilities)
        }
        _ => String::new(),
    };
    let mut wasi = WasiCtx::builder();
    wasi.stdin(MemoryInputPipe::new(stdin)).stdout(stdout.clone()).stderr(stderr.clone()).arg(given.skill.as_str());
    let ctx = match context(given, capabilities, wasi, &hit) {
        Ok(ctx) => ctx,
        Err(error) => return CallEnd::early(error),
    };
    let mut store = limited(pool, ctx);

    let run = async {
        match entry {
            EntryPoint::Skill(pre) => run_skill(&mut store, pre, &request).await,
            EntryPoint::Command(pre) => run_command(&mut store, pre, &stdout).await,
            EntryPoint::Functions { pre, functions } => {
                let call = FunctionCall { functions, tool: &tool, args: &args, budget: &budget, hit: &hit };
                call.run(&mut store, pre, pool.is_concurrent()).await
            }
            EntryPoint::SelfTest { pre, index } => run_self_test(&mut store, pre, *index).await,
        }
    };
    let result = match tokio::time::timeout(budget.timeout, run).await {
        Ok(result) => result,
        Err(_) => {
            hit.set(budget.hit(Limit::Time));
            Err(GuestStop::Trap(wasmtime::format_err!("deadline")))
        }
    };
    let operations = store.data().capabilities.workspace.operations.clone();
    operations.ended().await;
    let ctx = store.data_mut();
    let used = LimitUse {
        millis: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        memory_bytes: ctx.guest.meter.peak_bytes(),
        written_bytes: ctx.capabilities.workspace.quota.written(),
        host_calls: ctx.guest.meter.host_calls(),
        ..LimitUse::default()
    };
    let did = CallUse { limits: used, grant: ctx.capabilities.used() };
    let Capabilities { http, log, publish, secrets, .. } = &mut ctx.capabilities;
    let not_granted =
        [publish.refusal(), secrets.refusal()].into_iter().flatten().map(str::to_owned).collect::<Vec<_>>();
    let refused: Option<RefusedRequest> = http.gate.refused.lock().unwrap_or_else(PoisonError::into_inner).take();
    let (log, published) = (log.take(), publish.take());
    drop(store);
    let (stdout, stderr) = (lossy(stdout.take()), lossy(stderr.take()));
    let result = match hit.get() {
        // Even if the guest caught the error and answered: a call over its limits has no answer.
        Some(hit) => Err(SkillError::limit(&skill, hit)),
        None => result
            .map_err(|stopped| stopped.explain(&skill, &budget, &stderr))
            .and_then(|reply| accept(&skill, reply, work.as_deref(), published, &budget)),
    };
    let result = result.map_err(|error| match refused {
        Some(refused) if error.limit.is_none() && refused.is_told_by(&error.message) => {
            let message = format!("{}; {}", error.message, refused.hint(&skill));
            let (blame, code) = refused.blame(error.code);
            // The same call would be refused again.
            SkillError { blame, code, message, retryable: false, ..error }
        }
        // The guest repeats the host's message.
        None if error.limit.is_none() && not_granted.iter().any(|told| error.message.contains(told)) => {
            SkillError { blame: Blame::Policy, retryable: false, ..error }
        }
        _ => error,
    });
    tracing::debug!(ok = result.is_ok(), millis = used.millis, "the call has ended");
    CallEnd { result, log, stdout, stderr, used, allowed: Some(budget.allowance()), grant: None, did: Some(did) }
}

/// A store with the limits that every call has.
pub(super) fn limited(pool: &GuestPool, ctx: Ctx) -> Instances<Ctx> {
    let mut store = guest::store(pool.engine(), ctx, |ctx| &mut ctx.guest);
    // A guest that spins yields its thread at every tick, so that the timeout of the call takes effect.
    let (turn, turns) = (Arc::new(GuestTurn::default()), pool.turns().here());
    let of_guest = turn.clone();
    store.epoch_deadline_callback(move |_| {
        Ok(UpdateDeadline::YieldCustom(1, Box::pin(of_guest.clone().next(turns.clone()))))
    });
    store.call_hook(move |mut ctx, hook| match hook {
        CallHook::CallingHost => {
            turn.end();
            Ok(ctx.data_mut().guest.meter.host_call()?)
        }
        _ => Ok(()),
    });
    store
}

impl CallEnd {
    /// Removes known secrets: the text goes to terminals, prompts, replies and logs.
    pub fn redact(mut self, secrets: &Secrets) -> Self {
        let clean = |text: &mut String| *text = secrets.redact(text);
        clean(&mut self.stdout);
        clean(&mut self.stderr);
        self.log.iter_mut().for_each(|line| clean(&mut line.message));
        match &mut self.result {
            Err(error) => clean(&mut error.message),
            Ok(answer) => {
                clean(&mut answer.text);
                if let Some(data) = &mut answer.data {
                    secrets.redact_value(data);
                }
                answer.files.iter_mut().filter_map(|file| file.title.as_mut()).for_each(clean);
            }
        }
        self
    }

    /// The end of a call that was never instantiated.
    pub fn early(error: SkillError) -> Self {
        Self {
            result: Err(error),
            log: Vec::new(),
            stdout: String::new(),
            stderr: String::new(),
            used: LimitUse::default(),
            allowed: None,
            grant: None,
            did: None,
        }
    }
}

/// Completes the context of a guest, beginning with its streams and arguments.
pub(super) fn context(
    given: CallInput<'_>,
    capabilities: Capabilities,
    mut wasi: WasiCtxBuilder,
    hit: &HitCell,
) -> Result<Ctx, SkillError> {
    capabilities.show(&mut wasi).map_err(|why| SkillError::host(given.skill.as_str(), why))?;
    let meter = Meter::new(given.budget, hit.clone(), Arc::default());
    Ok(Ctx { guest: Guest::new(&mut wasi, meter), capabilities })
}

/// The standard input of a command: the original `run.py` contract.
fn stdin_json(given: &CallInput<'_>, capabilities: &Capabilities) -> String {
    let secrets = capabilities.secrets.values();
    let secrets: serde_json::Map<_, _> =
        secrets.iter().map(|(name, value)| (name.clone(), Value::String(value.expose().to_owned()))).collect();
    serde_json::json!({
        "args": given.args,
        "session": given.session.to_string(),
        "workspace": "/work",
        "secrets": secrets,
    })
    .to_string()
}

async fn run_skill(
    store: &mut Instances<Ctx>,
    pre: &SkillPre<Ctx>,
    call: &types::Call,
) -> Result<types::Reply, GuestStop> {
    let result = pre.call(store, call).await?;
    result.map_err(|failure| GuestStop::Failure {
        code: ErrorCode::from_guest(&failure.code),
        message: failure.message,
        retryable: failure.retryable,
    })
}

async fn run_command(
    store: &mut Instances<Ctx>,
    pre: &CommandEntry,
    stdout: &OutputBuffer,
) -> Result<types::Reply, GuestStop> {
    let code = match pre.run(store).await {
        Ok(Ok(())) => 0,
        Ok(Err(())) => 1,
        Err(error) => match error.downcast_ref::<I32Exit>() {
            Some(exit) => exit.0,
            None => return Err(error.into()),
        },
    };
    let text = lossy(stdout.take());
    if code != 0 {
        return Err(GuestStop::Exit(code, text));
    }
    // A command that answers with JSON returns data, even if it does not know about data.
    let data = text.trim_start().starts_with(['{', '[']).then(|| text.trim().to_owned());
    let data = data.filter(|d| json::parse::<Value>(d.as_bytes()).is_ok());
    Ok(types::Reply { text, data, files: Vec::new() })
}

async fn run_self_test(
    store: &mut Instances<Ctx>,
    pre: &InstancePre<Ctx>,
    index: ComponentExportIndex,
) -> Result<types::Reply, GuestStop> {
    let instance = pre.instantiate_async(&mut *store).await?;
    let run = instance.get_typed_func::<(), (Result<(), String>,)>(&mut *store, index)?;
    let (result,) = run.call_async(store, ()).await?;
    result.map_err(|message| GuestStop::failure(ErrorCode::SelfTest, message))?;
    Ok(types::Reply { text: String::new(), data: None, files: Vec::new() })
}

/// Checks everything in a guest's reply.
fn accept(
    skill: &str,
    reply: types::Reply,
    work: Option<&std::path::Path>,
    published: Vec<(String, String)>,
    budget: &Budget,
) -> Result<SkillAnswer, SkillError> {
    let bad = |message: String| SkillError::new(skill, Blame::Skill, ErrorCode::BadReply, message);
    let of_files: usize = reply.files.iter().map(|f| f.path.len() + f.title.as_ref().map_or(0, String::len)).sum();
    let size = reply.text.len() + reply.data.as_ref().map_or(0, String::len) + of_files;
    if size as u64 > budget.output_kib << 10 {
        return Err(SkillError::limit(skill, budget.hit(Limit::Output)));
    }
    // The depth is limited, too: an event contains this value some levels deep, and must be readable again.
    let data = reply.data.map(|d| json::parse(d.as_bytes())).transpose();
    let data = data.map_err(|error| {
        bad(match error {
            JsonError::Syntax(error) => format!("the data of its reply is not JSON: {error}"),
            JsonError::Depth => format!("the data of its reply cannot be taken: {error}"),
        })
    })?;
    if reply.files.len() > MAX_FILES {
        return Err(bad(format!("its reply names {} files; {MAX_FILES} are allowed", reply.files.len())));
    }
    let mut files = Vec::new();
    for file in reply.files {
        let work =
            work.ok_or_else(|| bad(format!("its reply names the file {}, but it has no workspace", file.path)))?;
        let mut noted = note(work, &file.path)
            .map_err(|e| bad(format!("its reply names the file {}: {e}", cut(&file.path, 200))))?;
        noted.title = file.title.map(|t| cut(&t, 200).to_owned());
        if let Some(media_type) = file
            .media_type
            .filter(|m| m.len() <= 100 && m.contains('/') && m.bytes().all(|b| (0x21..0x7f).contains(&b)))
        {
            noted.media_type = media_type;
        }
        noted.link = published.iter().find(|(path, _)| *path == noted.path).map(|(_, link)| link.clone());
        files.push(noted);
    }
    Ok(SkillAnswer { text: reply.text, data, files })
}

fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}
