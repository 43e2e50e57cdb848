//! Skills: components that are installed, and the sandbox that runs them.
//!
//! In reading order: [`capability`] lists the capabilities of skills, [`manifest`] and [`grant`] have a skill's needs and its
//! grant, [`loader`] and [`install`] turn a file into a skill, [`engine`], [`ctx`] and [`workspace`] are the sandbox,
//! [`instance`] is one call. [`agent`] has the other kind of skills: instructions for models. This file ties them together: find
//! a tool, check its arguments, load it once, call it.

mod agent;
mod args;
mod as_command;
mod audit;
mod cache;
mod caller;
mod capability;
pub mod channel;
mod checked_call;
mod command_entry;
pub mod compiler;
mod concurrency;
mod ctx;
pub mod deflated;
mod digest;
mod engine;
mod entry;
mod error;
mod fair;
mod fetched;
mod file_version;
mod function_call;
pub mod grant;
mod guest_stop;
mod http_need;
mod index;
mod input;
mod install;
mod installed;
mod instance;
mod latest;
mod listing;
mod load;
mod loader;
mod lockfile;
mod machine;
pub mod manifest;
mod oci;
pub mod pack;
mod placing;
mod preview1;
mod publisher;
mod removal;
mod reserve;
pub mod server;
mod shown;
pub mod signature;
mod source;
mod streamed;
mod surface;
mod surface_change;
pub mod trap;
mod usage;
mod values;
mod web;
mod wit;
mod workspace;

pub use self::agent::{
    AgentCandidate, AgentFile, AgentSkill, FolderError, ProjectSkill, ProjectSkillState, SKILLS_MOUNT,
};
pub use self::args::{ArgsSchema, from_words, near_names};
pub use self::as_command::{BrokenPipe, CommandEnded, CommandStreams};
pub use self::audit::AuditView;
pub use self::caller::Caller;
pub(crate) use self::capability::{HttpGate, HttpRules, OpenNetwork, RefusedRequest, TellRefused};
pub use self::checked_call::CheckedCall;
pub use self::error::SkillError;
pub use self::fetched::FetchedFile;
pub use self::index::{
    BUILT_IN, CATALOGUE, FoundSkill, IndexError, IndexPlace, IndexSearch, IndexSettings, IndexedSkill, MadeIndex,
    SkillIndex, index_statement, is_index_source,
};
pub use self::input::{Observer, Quiet};
pub use self::install::{GrantChoice, InstallCandidate, PackageCandidate, PackageOrigin};
pub use self::installed::{ComponentLocation, InstalledSkill, Provenance, Tool, bundled_names, is_bundled};
pub use self::instance::{CallEnd, SkillAnswer};
pub use self::latest::LatestVersion;
pub use self::loader::{MAX_WASM_BYTES, Shape};
pub use self::lockfile::{LockedSkill, read_lock};
pub use self::oci::{OciDescription, OciError, OciReference, RegistryCredentials};
pub use self::publisher::{TrustedKey, local_name, signature_of};
pub use self::shown::{
    AgentSkillView, EndedView, GrantView, SkillForm, SkillInfo, SkillLine, SkillOrigin, effect_sentences,
};
pub use self::surface::{is_kept_free, wire_name};
pub use self::surface_change::SurfaceChange;
pub use self::web::{WebError, WebPlace};
pub use self::workspace::{Charge, Quota, media_type};
pub use crate::engine::limits::{Limit, LimitHit};

/// The parts of the sandbox that exec tasks and skills share.
pub(crate) mod sandbox {
    pub(crate) use super::cache::CodeCache;
    pub(crate) use super::concurrency::needs_concurrency;
    pub(crate) use super::digest::Digest;
    pub(crate) use super::workspace::{
        ChargedFiles, CommandRequests, DirId, Listings, OverlayError, Quota, Room, Root, Roots,
        add_to_linker as charge_files, from_root, target,
    };
}

use self::compiler::Compiler;
use self::ctx::Ctx;
use self::engine::Sandbox;
use self::file_version::FileVersion;
use self::grant::{EffectiveGrant, Grant};
use self::input::{CallInput, Keep};
use self::installed::BUNDLED;
use self::instance::EntryPoint;
use self::listing::Listing;
use self::manifest::{Manifest, Workspace};
use self::reserve::SpaceLimits;
use self::usage::UseLedger;
use self::workspace::{HomeSpace, SessionSpace, SpaceUsage};
use crate::effect::files::FileLabels;
use crate::effect::undo::Transaction;
use crate::engine::limits::{Budget, HitCell};
use kiso_base::config::Config;
use kiso_base::home::{Home, SHARED, SessionName, SkillName};
use kiso_plan::code::{Blame, ErrorCode};
use kiso_store::store::Store;
use serde_json::Value;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use tokio::runtime::{Handle, RuntimeFlavor};
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
    bundled: OnceLock<Vec<Arc<InstalledSkill>>>,
    /// The skills that were read from the home, with the version of their record.
    known: Mutex<HashMap<SkillName, (FileVersion, Arc<InstalledSkill>)>>,
    /// The names in the directory of skills, and in that of Agent Skills.
    names: Listing,
    agent_names: Listing,
    /// The Agent Skills that were read, with the version of their record.
    agents: Mutex<HashMap<SkillName, (FileVersion, Arc<AgentSkill>)>>,
    /// The grants that were read, with the version of each file.
    grants: Mutex<HashMap<SkillName, (FileVersion, Grant)>>,
    /// The components that were loaded, by digest.
    loaded: Mutex<HashMap<String, Arc<tokio::sync::OnceCell<EntryPoint>>>>,
    /// The size of workspaces, for sessions with a running call.
    usages: Mutex<HashMap<SessionName, Weak<SpaceUsage>>>,
    space: Arc<HomeSpace>,
    limits: SpaceLimits,
    /// The use by calls that is not in the store yet.
    uses: UseLedger,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.uses.write(&self.store);
    }
}

impl std::fmt::Debug for Skills {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Skills").field("home", &self.0.home.path()).finish_non_exhaustive()
    }
}

/// Locks a mutex. A panic elsewhere does not make its state invalid.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Skills {
    /// Makes the skills of a home. Reads and starts nothing yet.
    pub fn new(home: Home, config: Config, store: Store, observer: Arc<dyn Observer>) -> Self {
        Self::with_compiler(home, config, store, observer, kiso_base::system::this_program())
    }

    /// The same in a program that is not `kiso`: `program` is the one that compiles.
    pub fn with_compiler(
        home: Home,
        config: Config,
        store: Store,
        observer: Arc<dyn Observer>,
        program: PathBuf,
    ) -> Self {
        let space = HomeSpace::new(store.clone(), config.limits.home_mib);
        let limits = SpaceLimits::new(&config.limits);
        Self(Arc::new(Inner {
            space,
            limits,
            compiler: Compiler::new(program, &config.engine),
            home,
            config,
            store,
            observer,
            sandbox: OnceLock::new(),
            bundled: OnceLock::new(),
            known: Mutex::default(),
            names: Listing::default(),
            agent_names: Listing::default(),
            agents: Mutex::default(),
            grants: Mutex::default(),
            loaded: Mutex::default(),
            usages: Mutex::default(),
            uses: UseLedger::default(),
        }))
    }

    /// Whether both share one sandbox.
    pub fn is_same(&self, other: &Skills) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub fn home(&self) -> &Home {
        &self.0.home
    }

    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// The compiler, for an engine whose memories have this much address space.
    pub(crate) fn compiler(&self, reservation_mib: u64) -> Compiler {
        self.0.compiler.with_reservation(reservation_mib)
    }

    fn observer(&self) -> &Arc<dyn Observer> {
        &self.0.observer
    }

    fn sandbox(&self) -> anyhow::Result<&Sandbox> {
        if let Some(sandbox) = self.0.sandbox.get() {
            return Ok(sandbox);
        }
        let sandbox = Sandbox::new(&self.0.config.engine, self.home())?;
        Ok(self.0.sandbox.get_or_init(|| sandbox))
    }

    /// Every skill, bundled ones first, each group by name. A damaged one is an error in its place.
    pub fn list(&self) -> Vec<Result<Arc<InstalledSkill>, SkillError>> {
        let mut list: Vec<_> = self.all_bundled().iter().cloned().map(Ok).collect();
        let names = self.0.names.read_names(&self.home().skills_dir(), |file| SkillName::parse(file).ok());
        // An older kiso may have installed a skill under the name of a bundled one. It is never called.
        let others = names.iter().filter(|name| self.bundled(name).is_none());
        list.extend(others.filter_map(|name| self.read_known(name).transpose()));
        list
    }

    /// A skill by name, or an error that names the near ones.
    pub fn find(&self, name: &str) -> Result<Arc<InstalledSkill>, SkillError> {
        let Ok(parsed) = SkillName::parse(name) else { return Err(self.unknown(name)) };
        if let Some(bundled) = self.bundled(&parsed) {
            return Ok(bundled);
        }
        if let Some(skill) = self.read_known(&parsed)? {
            return Ok(skill);
        }
        Err(self.agent_skill(name)?.map_or_else(|| self.unknown(name), |skill| agent::not_callable(&skill)))
    }

    /// A tool by the name that plans use: "search" or "calc.add".
    pub fn find_tool(&self, name: &str) -> Result<(Arc<InstalledSkill>, usize), SkillError> {
        let skill = self.find(name.split('.').next().unwrap_or(name))?;
        if let Some(index) = skill.tools.iter().position(|t| t.name == name) {
            return Ok((skill, index));
        }
        let tools: Vec<&str> = skill.tools.iter().map(|t| t.name.as_str()).collect();
        let message = format!("there is no tool `{name}`; this skill has {}", tools.join(", "));
        Err(SkillError::new(name, Blame::Caller, ErrorCode::UnknownSkill, message))
    }

    /// Calls a tool. Every way in which a call can end is in [`CallEnd`].
    pub async fn call(&self, tool: &str, args: &Value, caller: Caller<'_>) -> CallEnd {
        match self.check(tool, args) {
            Ok(call) => self.call_checked(call, caller).await,
            Err(error) => CallEnd::early(error),
        }
    }

    /// [`Skills::call`] with checked arguments.
    pub async fn call_checked(&self, call: CheckedCall, caller: Caller<'_>) -> CallEnd {
        let CheckedCall { skill, tool, args } = call;
        let tool = &skill.tools[tool];
        let version = |error: SkillError| error.version(&skill.manifest.version);
        let given = self.grant(&skill).and_then(|grant| {
            let allowed = self.allowed_under(&skill, &grant).with_accepted(skill.name().as_str(), caller.accepted);
            let inner = &tool.inner;
            Ok((self.make_input(&skill.manifest, inner, &allowed, args, &caller, skill.keep())?, allowed, grant))
        });
        let (given, allowed, grant) = match given {
            Ok(given) => given,
            Err(error) => return CallEnd::early(version(error)),
        };
        let entry = match self.load(&skill).await {
            Ok(entry) => entry,
            Err(error) => {
                // If an update came in between, the next call must not see a damaged file.
                lock(&self.0.known).remove(skill.name());
                return CallEnd::early(version(error));
            }
        };
        let sandbox = match self.sandbox() {
            Ok(sandbox) => sandbox,
            Err(error) => return CallEnd::early(version(SkillError::host(&tool.name, error))),
        };
        let ended = instance::call(sandbox, &entry, given, &allowed).await;
        if let Some(did) = &ended.did {
            self.record_use(skill.name().as_str(), skill.digest(), did, ended.result.is_err(), caller.secrets);
        }
        let ended = CallEnd { result: ended.result.map_err(version), grant: Some(grant), ..ended };
        ended.redact(caller.secrets)
    }

    /// Runs a skill of the command shape with words as arguments and the given streams, within its own grant. Returns an error if
    /// it is not granted, does not load, or reached a limit. If all places of `[engine] max_calls` are taken, it `waits` or
    /// fails.
    pub async fn run_as_command<I, O>(
        &self,
        skill: &Arc<InstalledSkill>,
        mut streams: CommandStreams<I, O>,
        caller: Caller<'_>,
        waits: bool,
    ) -> Result<CommandEnded, SkillError>
    where
        I: StdinStream + 'static,
        O: StdoutStream + 'static,
    {
        let allowed = self.allowed(skill)?.with_accepted(skill.name().as_str(), caller.accepted);
        let tool = skill.name().as_str();
        let given = self.make_input(&skill.manifest, tool, &allowed, Value::Null, &caller, skill.keep())?;
        let entry = self.load(skill).await?;
        let sandbox = self.sandbox().map_err(|e| SkillError::host(tool, e))?;
        streams.env.retain(|(_, value)| caller.secrets.redact(value) == *value);
        let (mut did, secrets) = (None, caller.secrets);
        let ended = as_command::call(sandbox, &entry, given, &allowed, streams, waits, &mut did).await;
        if let Some(did) = &did {
            let failed = !ended.as_ref().is_ok_and(|ended| ended.code == 0);
            self.record_use(tool, skill.digest(), did, failed, secrets);
        }
        ended
    }

    /// The quota of an exec task, or an upload, in a session's workspace.
    pub fn exec_quota(
        &self,
        session: &SessionName,
        budget: &Budget,
        hit: HitCell,
        transaction: Option<Arc<Transaction>>,
    ) -> Arc<Quota> {
        let labels = FileLabels::of_session(self.home(), session);
        Arc::new(Quota::new(budget.clone(), hit, self.usage(session)).within(transaction).labelled(labels))
    }

    /// Measures the session's workspace again after a change by something else than a call or an upload.
    pub fn measure_anew(&self, session: &SessionName) {
        let usage = self.usage(session);
        let measure = || usage.measure_again();
        // Measuring may read thousands of files.
        match Handle::try_current().map(|handle| handle.runtime_flavor()) {
            Ok(RuntimeFlavor::MultiThread) if !usage.is_small() => tokio::task::block_in_place(measure),
            _ => measure(),
        }
    }

    /// Compiles the skill, unless that was done, so that the first call need not wait.
    pub async fn warm(&self, skill: &Arc<InstalledSkill>) -> Result<(), SkillError> {
        self.load(skill).await.map(|_| ())
    }

    fn all_bundled(&self) -> &[Arc<InstalledSkill>] {
        self.0.bundled.get_or_init(|| BUNDLED.iter().map(|b| Arc::new(InstalledSkill::bundled(b))).collect())
    }

    fn bundled(&self, name: &SkillName) -> Option<Arc<InstalledSkill>> {
        self.all_bundled().iter().find(|b| b.name() == name).cloned()
    }

    /// A skill of the home. It is read again only when its record has changed on disk.
    fn read_known(&self, name: &SkillName) -> Result<Option<Arc<InstalledSkill>>, SkillError> {
        let record = self.home().skill_dir(name).join(installed::RECORD);
        let version = FileVersion::read(&record);
        if let Some(version) = version
            && let Some((known, skill)) = lock(&self.0.known).get(name)
            && *known == version
        {
            return Ok(Some(skill.clone()));
        }
        let Some(skill) = self.read_installed(name)?.map(Arc::new) else { return Ok(None) };
        if let Some(version) = version {
            lock(&self.0.known).insert(name.clone(), (version, skill.clone()));
        }
        Ok(Some(skill))
    }

    fn read_installed(&self, name: &SkillName) -> Result<Option<InstalledSkill>, SkillError> {
        InstalledSkill::read(self.home(), name)
    }

    fn unknown(&self, name: &str) -> SkillError {
        let mut names: Vec<String> = self.list().into_iter().flatten().map(|s| s.name().to_string()).collect();
        names.extend(self.agent_skills().into_iter().flatten().map(|skill| skill.name.to_string()));
        let near = near_names(name, names.iter().map(String::as_str));
        let hint = match near.first() {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are {}", names.join(", ")),
        };
        SkillError::new(name, Blame::Caller, ErrorCode::UnknownSkill, format!("there is no such skill; {hint}"))
    }

    /// Makes the input of a call, without its grant.
    fn make_input<'a>(
        &self,
        manifest: &Manifest,
        tool: &str,
        allowed: &EffectiveGrant,
        args: Value,
        caller: &Caller<'a>,
        keep: Keep,
    ) -> Result<CallInput<'a>, SkillError> {
        if let Some(label) = self.missing_label(manifest) {
            return Err(self.wrong_machine(manifest, label));
        }
        let visible = allowed.workspace != Workspace::None;
        if visible {
            let made = self.home().create_session(caller.session);
            made.map_err(|e| SkillError::host(manifest.name.as_str(), e))?;
        }
        Ok(CallInput {
            skill: manifest.name.clone(),
            tool: tool.to_owned(),
            args,
            session: caller.session.clone(),
            locale: caller.locale.to_owned(),
            budget: Budget::new(&self.config().engine, allowed.memory_mib, allowed.timeout_s),
            work: self.home().work_dir(caller.session),
            visible,
            usage: self.usage(caller.session),
            transaction: caller.transaction.cloned(),
            permit: caller.permit.cloned().unwrap_or_default(),
            labels: visible.then(|| FileLabels::of_session(self.home(), caller.session)),
            declared: manifest.declared_secrets(),
            secrets: caller.secrets,
            http: self.config().http.clone(),
            network: caller
                .network
                .filter(|_| is_bundled(&manifest.name))
                .map(|network| (network.clone(), manifest.needs.http.clone())),
            store: self.0.store.clone(),
            observer: self.observer().clone(),
            keep,
        })
    }

    /// The size of the session's workspace, shared by all running calls of the session.
    fn usage(&self, session: &SessionName) -> Arc<SpaceUsage> {
        self.leave_reserve();
        let mut usages = lock(&self.0.usages);
        if let Some(usage) = usages.get(session).and_then(Weak::upgrade) {
            return usage;
        }
        usages.retain(|_, usage| usage.strong_count() > 0);
        let folders = self.home().session_dir(session).join("folders");
        let shared = self.home().folder_dir(session, SHARED).join("upper");
        let dirs = vec![self.home().work_dir(session), self.home().scratch_dir(session), shared];
        let space = SessionSpace::new(self.0.space.clone(), session.clone());
        let usage = Arc::new(SpaceUsage::new(dirs, Some(space)).with_folders(folders));
        usages.insert(session.clone(), Arc::downgrade(&usage));
        usage
    }
}
