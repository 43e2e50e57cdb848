//! Skills: components that are installed, and the sandbox that runs them.
//!
//! In reading order: [`manifest`] and [`grant`] say what a skill asks for and what it was given, [`loader`] and
//! [`install`] turn a file into a skill, [`engine`], [`limits`], [`ctx`] and [`host`] are the sandbox, [`instance`] is
//! one call. This file ties them together: find a tool, check its arguments, load it once, call it.

mod args;
mod as_command;
mod cache;
pub mod compile;
pub mod compiler;
mod ctx;
mod engine;
mod entry;
mod error;
pub mod grant;
mod host;
mod install;
mod installed;
mod instance;
pub mod limits;
mod load;
mod loader;
pub mod manifest;
pub mod pack;
mod shown;
mod source;
mod surface;
pub mod trap;
mod values;
mod wit;

pub use self::args::{ArgsSchema, from_words, near_names};
pub use self::as_command::{BrokenPipe, CommandEnded, CommandStreams};
pub use self::ctx::{Observer, Quiet};
pub use self::error::{Blame, SkillError};
pub use self::host::media_type;
pub use self::install::{Candidate, GrantChoice};
pub use self::installed::{ComponentLocation, Installed, Tool, is_bundled};
pub use self::instance::{Answer, Ended};
pub use self::limits::{Limit, LimitHit};
pub use self::loader::{MAX_WASM_BYTES, Shape};
pub use self::surface::{is_kept_free, wire_name};

/// What the sandbox of exec tasks has in common with that of skills.
pub mod sandbox {
    pub use super::compile::{EXEC_RESERVATION, settings};
    pub use super::engine::Ticker;
    pub use super::host::{Charge, ChargedFiles, DirId, Quota, Room, Roots, charge_files};
}

use self::compiler::Compiler;
use self::ctx::ReadableSecrets;
use self::engine::Sandbox;
use self::grant::Allowed;
use self::host::{HomeSpace, HttpRule, HttpRules, Injection, Keep, Quota, SessionSpace, Usage};
use self::installed::BUNDLED;
use self::instance::{CallInput, Entry};
use self::limits::{Budget, HitCell};
use self::manifest::{Manifest, Workspace};
use crate::config::Config;
use crate::graph::plan::Violation;
use crate::home::{Home, SessionName, SkillName};
use crate::secret::Secrets;
use crate::store::Store;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, SystemTime};
use wasmtime_wasi::cli::{StdinStream, StdoutStream};

/// All skills of a home. Cheap to clone.
#[derive(Clone)]
pub struct Skills(Arc<Inner>);

struct Inner {
    home: Home,
    config: Config,
    store: Store,
    observer: Arc<dyn Observer>,
    /// Made by the first call: a listing needs no engine.
    sandbox: OnceLock<Sandbox>,
    compiler: Compiler,
    bundled: OnceLock<Vec<Arc<Installed>>>,
    /// What was read from the home, with the time stamp of its record.
    known: Mutex<HashMap<SkillName, (SystemTime, Arc<Installed>)>>,
    /// What was loaded, by digest.
    loaded: Mutex<HashMap<String, Arc<tokio::sync::OnceCell<Entry>>>>,
    /// What workspaces hold, for sessions with a call that runs.
    usages: Mutex<HashMap<SessionName, Weak<Usage>>>,
    space: Arc<HomeSpace>,
}

impl std::fmt::Debug for Skills {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Skills").field("home", &self.0.home.path()).finish_non_exhaustive()
    }
}

/// Who calls, and for which session.
#[derive(Debug, Clone)]
pub struct Caller<'a> {
    pub session: &'a SessionName,
    /// BCP 47 tag, such as "en".
    pub locale: &'a str,
    /// The run's secrets; environment secrets are found through it too.
    pub secrets: &'a Secrets,
}

/// The state behind a mutex; a panic elsewhere does not spoil it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Skills {
    /// The skills of a home. Reads and starts nothing yet.
    pub fn new(home: Home, config: Config, store: Store, observer: Arc<dyn Observer>) -> Self {
        Self::with_compiler(home, config, store, observer, compiler::this_program())
    }

    /// The same in a program that is not `kiso`: `program` is, and compiles.
    pub fn with_compiler(
        home: Home,
        config: Config,
        store: Store,
        observer: Arc<dyn Observer>,
        program: PathBuf,
    ) -> Self {
        let space = HomeSpace::new(store.clone(), config.limits.home_mib);
        Self(Arc::new(Inner {
            space,
            compiler: Compiler::new(program, &config.engine),
            home,
            config,
            store,
            observer,
            sandbox: OnceLock::new(),
            bundled: OnceLock::new(),
            known: Mutex::default(),
            loaded: Mutex::default(),
            usages: Mutex::default(),
        }))
    }

    pub(crate) fn home(&self) -> &Home {
        &self.0.home
    }

    pub(crate) fn config(&self) -> &Config {
        &self.0.config
    }

    fn observer(&self) -> &Arc<dyn Observer> {
        &self.0.observer
    }

    fn sandbox(&self) -> anyhow::Result<&Sandbox> {
        if let Some(sandbox) = self.0.sandbox.get() {
            return Ok(sandbox);
        }
        let sandbox = Sandbox::new(&self.0.config.engine)?;
        Ok(self.0.sandbox.get_or_init(|| sandbox))
    }

    /// Every skill, bundled ones first, each group by name. A damaged one is an error in its place.
    pub fn list(&self) -> Vec<Result<Arc<Installed>, SkillError>> {
        let mut list: Vec<_> = self.all_bundled().iter().cloned().map(Ok).collect();
        let entries = std::fs::read_dir(self.home().skills_dir()).into_iter().flatten().flatten();
        let mut names: Vec<SkillName> =
            entries.filter_map(|e| SkillName::parse(e.file_name().to_str()?).ok()).collect();
        names.sort();
        list.extend(names.iter().filter_map(|name| self.read_known(name).transpose()));
        list
    }

    /// A skill by name, or an error that names the near ones.
    pub fn find(&self, name: &str) -> Result<Arc<Installed>, SkillError> {
        let Ok(parsed) = SkillName::parse(name) else { return Err(self.unknown(name)) };
        if let Some(bundled) = self.bundled(&parsed) {
            return Ok(bundled);
        }
        self.read_known(&parsed)?.ok_or_else(|| self.unknown(name))
    }

    /// A tool by the name that plans use: "search" or "calc.add".
    pub fn find_tool(&self, name: &str) -> Result<(Arc<Installed>, usize), SkillError> {
        let skill = self.find(name.split('.').next().unwrap_or(name))?;
        if let Some(index) = skill.tools.iter().position(|t| t.name == name) {
            return Ok((skill, index));
        }
        let tools: Vec<&str> = skill.tools.iter().map(|t| t.name.as_str()).collect();
        let message = format!("there is no tool `{name}`; this skill has {}", tools.join(", "));
        Err(SkillError::new(name, Blame::Caller, "unknown-skill", message))
    }

    /// The arguments with defaults filled in, or every violation.
    pub fn check(&self, tool: &str, args: &Value) -> Result<Value, Vec<Violation>> {
        let found = self.find_tool(tool);
        let (skill, index) = found.map_err(|e| vec![Violation { path: "skill".to_owned(), message: e.to_string() }])?;
        skill.tools[index].args.check(args)
    }

    /// Calls a tool. Every way in which a call can end is in [`Ended`].
    pub async fn call(&self, tool: &str, args: &Value, caller: Caller<'_>) -> Ended {
        let found = self.find_tool(tool).and_then(|(skill, index)| {
            let args = skill.tools[index].args.check(args).map_err(|violations| {
                SkillError::bad_args(skill.name().as_str(), &violations).version(&skill.manifest.version)
            })?;
            Ok((skill, index, args))
        });
        let (skill, index, args) = match found {
            Ok(found) => found,
            Err(error) => return Ended::early(error),
        };
        let version = |error: SkillError| error.version(&skill.manifest.version);
        let given = self.grant(&skill).and_then(|grant| {
            let allowed = self.allowed_under(&skill, &grant);
            let inner = &skill.tools[index].inner;
            Ok((self.given(&skill.manifest, inner, &allowed, args, &caller, skill.keep())?, grant))
        });
        let (given, grant) = match given {
            Ok(given) => given,
            Err(error) => return Ended::early(version(error)),
        };
        let entry = match self.load(&skill).await {
            Ok(entry) => entry,
            Err(error) => {
                // An update that came in between must not look like a damaged file to the next call.
                lock(&self.0.known).remove(skill.name());
                return Ended::early(version(error));
            }
        };
        let sandbox = match self.sandbox() {
            Ok(sandbox) => sandbox,
            Err(error) => return Ended::early(version(SkillError::host(tool, error))),
        };
        let ended = instance::call(sandbox, &entry, given).await;
        let ended = Ended { result: ended.result.map_err(version), grant: Some(grant), ..ended };
        ended.redact(caller.secrets)
    }

    /// Runs a skill of the command shape with words as arguments and the given streams, within its own grant. An error is what no command can tell: it is not granted, does not load, or reached a limit.
    /// Where all places of `[engine] max_calls` are taken, it `waits` or fails.
    pub async fn run_as_command<I, O>(
        &self,
        skill: &Arc<Installed>,
        mut streams: CommandStreams<I, O>,
        caller: Caller<'_>,
        waits: bool,
    ) -> Result<CommandEnded, SkillError>
    where
        I: StdinStream + 'static,
        O: StdoutStream + 'static,
    {
        let allowed = self.allowed(skill)?;
        let tool = skill.name().as_str();
        let given = self.given(&skill.manifest, tool, &allowed, Value::Null, &caller, skill.keep())?;
        let entry = self.load(skill).await?;
        let sandbox = self.sandbox().map_err(|e| SkillError::host(tool, e))?;
        streams.env.retain(|(_, value)| caller.secrets.redact(value) == *value);
        as_command::call(sandbox, &entry, given, streams, waits).await
    }

    /// The quota of an exec task, or an upload, in a session's workspace.
    pub fn exec_quota(&self, session: &SessionName, budget: &Budget, hit: HitCell) -> Arc<Quota> {
        Arc::new(Quota::new(budget.clone(), hit, self.usage(session)))
    }

    /// The limit of what all sessions and the store hold together, if it is reached. Reads the store.
    pub fn home_is_full(&self) -> Option<LimitHit> {
        self.0.space.full()
    }

    /// Sets how much they may hold.
    pub fn limit_home(&self, max_mib: u64) {
        self.0.space.limit(max_mib);
    }

    /// Compiles what is not compiled yet, so that the first call does not wait.
    pub async fn warm(&self, skill: &Arc<Installed>) -> Result<(), SkillError> {
        self.load(skill).await.map(|_| ())
    }

    /// SHA-256 of the component, in hexadecimal.
    pub fn digest(&self, skill: &Installed) -> String {
        match &skill.place {
            ComponentLocation::Binary(bundled) => cache::Digest::of(bundled.wasm).to_string(),
            ComponentLocation::Home { digest, .. } => digest.clone(),
        }
    }

    fn all_bundled(&self) -> &[Arc<Installed>] {
        self.0.bundled.get_or_init(|| BUNDLED.iter().map(|b| Arc::new(Installed::bundled(b))).collect())
    }

    fn bundled(&self, name: &SkillName) -> Option<Arc<Installed>> {
        self.all_bundled().iter().find(|b| b.name() == name).cloned()
    }

    /// A skill of the home, read again only when its record changed on disk.
    fn read_known(&self, name: &SkillName) -> Result<Option<Arc<Installed>>, SkillError> {
        let record = self.home().skill_dir(name).join(installed::RECORD);
        let Ok(stamp) = std::fs::metadata(&record).and_then(|m| m.modified()) else { return Ok(None) };
        if let Some((known, skill)) = lock(&self.0.known).get(name)
            && *known == stamp
        {
            return Ok(Some(skill.clone()));
        }
        let Some(skill) = self.read_installed(name)?.map(Arc::new) else { return Ok(None) };
        lock(&self.0.known).insert(name.clone(), (stamp, skill.clone()));
        Ok(Some(skill))
    }

    fn read_installed(&self, name: &SkillName) -> Result<Option<Installed>, SkillError> {
        Installed::read(self.home(), name)
    }

    fn unknown(&self, name: &str) -> SkillError {
        let names: Vec<String> = self.list().into_iter().flatten().map(|s| s.name().to_string()).collect();
        let near = near_names(name, names.iter().map(String::as_str));
        let hint = match near.first() {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are {}", names.join(", ")),
        };
        SkillError::new(name, Blame::Caller, "unknown-skill", format!("there is no such skill; {hint}"))
    }

    /// Puts together what a call gets: limits, workspace, secrets and hosts, as granted.
    fn given(
        &self,
        manifest: &Manifest,
        tool: &str,
        allowed: &Allowed,
        args: Value,
        caller: &Caller<'_>,
        keep: Keep,
    ) -> Result<CallInput, SkillError> {
        let name = manifest.name.as_str();
        let budget = Budget::new(&self.config().engine, allowed.memory_mib, allowed.timeout_s);
        let work = self.home().work_dir(caller.session);
        if allowed.workspace != Workspace::None {
            self.home().create_session(caller.session).map_err(|e| SkillError::host(name, e))?;
        }
        let usage = self.usage(caller.session);
        let (secrets, env, injected) = self.secrets(manifest, allowed, caller.secrets)?;
        let mut rules = Vec::new();
        for (need, private) in &allowed.http {
            let inject = match &need.inject {
                None => None,
                Some(inject) => {
                    let header = http::HeaderName::from_bytes(inject.header.as_bytes())
                        .map_err(|e| SkillError::host(name, e))?;
                    let value = injected.get(&inject.secret).or_else(|| secrets.values.get(&inject.secret));
                    Some(match value {
                        Some(value) => Injection::Header(header, value.clone()),
                        // Without its secret the request could only fail, and in a way that nobody understands.
                        None => {
                            let unset = secrets.unset.iter().find(|(unset, _)| *unset == inject.secret);
                            let how = unset.map_or_else(|| "it is not granted".to_owned(), |(_, how)| how.clone());
                            Injection::Unset { secret: inject.secret.clone(), how }
                        }
                    })
                }
            };
            rules.push(HttpRule { host: need.host.clone(), methods: need.methods.clone(), private: *private, inject });
        }
        let http = &self.config().http;
        let http = HttpRules {
            rules,
            max_response: usize::try_from(http.max_response_mib << 20).unwrap_or(usize::MAX),
            connect_timeout: Duration::from_secs(http.connect_timeout_s),
        };
        Ok(CallInput {
            skill: manifest.name.clone(),
            tool: tool.to_owned(),
            args,
            session: caller.session.clone(),
            locale: caller.locale.to_owned(),
            budget,
            workspace: allowed.workspace,
            work,
            usage,
            env,
            secrets,
            http: Arc::new(http),
            store: self.0.store.clone(),
            observer: self.observer().clone(),
            keep,
        })
    }

    /// Splits a skill's secrets: what the guest may read, what stands in its environment, and what is only injected
    /// into requests and never enters the guest.
    #[expect(clippy::type_complexity, reason = "three results of one pass over the declarations")]
    fn secrets(
        &self,
        manifest: &Manifest,
        allowed: &Allowed,
        secrets: &Secrets,
    ) -> Result<(ReadableSecrets, Vec<(String, String)>, BTreeMap<String, crate::secret::SecretValue>), SkillError>
    {
        let name = manifest.name.as_str();
        let (mut readable, mut env, mut injected) = (ReadableSecrets::default(), Vec::new(), BTreeMap::new());
        // Granted with the host that it goes to.
        let injectable = |secret: &str| {
            allowed.http.iter().any(|(need, _)| need.inject.as_ref().is_some_and(|inject| inject.secret == secret))
        };
        let declared = manifest.secrets.iter().map(|s| (s, false, false));
        let declared = declared.chain(manifest.env.iter().map(|(s, required)| (s, true, *required)));
        for (secret, from_env, required) in declared {
            let injected_only = manifest.is_injected(secret);
            if injected_only {
                readable.injected.push(secret.clone());
            }
            if !(allowed.secrets.contains(secret) || injected_only && injectable(secret)) {
                readable.denied.push(secret.clone());
                continue;
            }
            let value = if from_env { secrets.environment(&manifest.name, secret) } else { secrets.session(secret) };
            let value = value.cloned();
            let variable = crate::secret::variable(&manifest.name, secret);
            let Some(value) = value else {
                let how = if from_env {
                    format!("set {variable} where kiso runs")
                } else {
                    "give it in the conversation".to_owned()
                };
                if required {
                    let message = format!("it needs the secret `{secret}`, which is not set; {how}");
                    return Err(SkillError::new(name, Blame::Caller, "secret-missing", message));
                }
                readable.unset.push((secret.clone(), how));
                continue;
            };
            if injected_only {
                injected.insert(secret.clone(), value);
            } else {
                if from_env {
                    env.push((variable, value.expose().to_owned()));
                }
                readable.values.insert(secret.clone(), value);
            }
        }
        Ok((readable, env, injected))
    }

    /// What the session's workspace holds, shared by all calls of the session that run.
    fn usage(&self, session: &SessionName) -> Arc<Usage> {
        let mut usages = lock(&self.0.usages);
        if let Some(usage) = usages.get(session).and_then(Weak::upgrade) {
            return usage;
        }
        usages.retain(|_, usage| usage.strong_count() > 0);
        let dirs = vec![self.home().work_dir(session), self.home().scratch_dir(session)];
        let space = SessionSpace::new(self.0.space.clone(), session.clone());
        let usage = Arc::new(Usage::of(dirs, Some(space)));
        usages.insert(session.clone(), Arc::downgrade(&usage));
        usage
    }

    /// What a self-test gets: its manifest's memory and time, an empty workspace, and nothing else.
    fn test_given(&self, manifest: &Manifest, work: PathBuf) -> CallInput {
        let allowed = Allowed::new(manifest, None, &self.config().engine, true);
        CallInput {
            skill: manifest.name.clone(),
            tool: manifest.name.to_string(),
            args: Value::Null,
            session: SessionName::parse("self-test").expect("the name follows the rules"),
            locale: "en".to_owned(),
            budget: Budget::new(&self.config().engine, allowed.memory_mib, allowed.timeout_s),
            workspace: manifest.needs.workspace,
            usage: Arc::new(Usage::of(vec![work.clone()], None)),
            work,
            env: Vec::new(),
            secrets: ReadableSecrets::default(),
            http: Arc::default(),
            store: self.0.store.clone(),
            observer: self.observer().clone(),
            keep: Keep::Nothing,
        }
    }
}
