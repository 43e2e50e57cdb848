//! The tools of a plan: those of installed skills and of MCP servers, and command lines. The planner gets skills as cards, the
//! graph checks plans against them, and the driver runs tasks through them.

pub(crate) mod address;
mod approval;
pub(crate) mod author;
pub mod builtin;
mod call;
mod categories;
pub mod deliver;
mod editor;
mod exec_spec;
pub mod files;
mod mcp;
mod narrow;
pub(crate) mod network;
pub mod pills;
mod refs;
pub mod schedules;
mod shared;
mod shared_use;
mod sinks;
mod start;
mod undo;
mod work;

pub use self::call::{ToolAnswer, ToolUses};
pub use self::editor::{DocumentPart, DocumentPreview, PagePreview, text_room};
pub use self::narrow::allows;
pub use self::sinks::{AcceptedHosts, CallLabels};

use self::builtin::Builtins;
use crate::mcp::{AllowedTool, McpServers};
use kiso_base::config::{self, Config};
use kiso_base::home::SessionName;
use kiso_llm::ToolSpec;
use kiso_plan::code::{Blame, ErrorCode};
use kiso_plan::estimate::tokens;
use kiso_plan::plan::{CallerScope, Catalog, Task, Violation};
use kiso_plan::prompt::SkillCard;
use kiso_plan::report::{TaskError, TaskReport, TaskStatus};
use kiso_sandbox::effect::sink::Permit;
use kiso_sandbox::exec::{CommandResult, Exec, Line, Watch, hint};
use kiso_sandbox::package::Package;
use kiso_sandbox::skill::manifest::validator;
use kiso_sandbox::skill::{CallEnd, Caller, CheckedCall, InstalledSkill, SkillError, Skills, wire_name};
use kiso_store::secret::Secrets;
use kiso_store::secret::vault::Vault;
use kiso_store::store::Store;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::RwLock;

/// The tool that runs a command line.
pub const EXEC: &str = "exec";

/// The tools of a home.
#[derive(Debug, Clone)]
pub struct Tools {
    skills: Skills,
    exec: Exec,
    store: Store,
    servers: McpServers,
    builtins: Arc<Builtins>,
    workspaces: Arc<Workspaces>,
    index: Arc<Mutex<Arc<Index>>>,
    /// Unusable skills that were already reported.
    unusable: Arc<Mutex<HashSet<String>>>,
}

/// The installed skills in their form for models. Kept until a skill is installed or removed.
#[derive(Debug, Default)]
struct Index {
    /// Unique in the process.
    revision: u64,
    skills: Vec<Arc<InstalledSkill>>,
    /// Allowed tools of MCP servers.
    allowed: Arc<Vec<Arc<AllowedTool>>>,
    /// The callable tools of MCP servers, by name. A skill with the name of a server takes precedence.
    outside: HashMap<String, Arc<AllowedTool>>,
    /// The packages among the skills.
    packages: Vec<Arc<Package>>,
    /// One card for each tool.
    cards: Vec<Arc<SkillCard>>,
    /// The name of each tool, by its name for models.
    names: HashMap<String, String>,
    /// Everything that the action loop may call, with categories: command lines, skills and built-in tools.
    catalog: Vec<(ToolSpec, String)>,
    /// The categories of the catalog, each with the names of its tools.
    categories: Vec<(String, Vec<String>)>,
}

impl Index {
    fn new(
        skills: Vec<Arc<InstalledSkill>>,
        allowed: Arc<Vec<Arc<AllowedTool>>>,
        builtins: &Builtins,
        limits: &config::Exec,
    ) -> Self {
        static MADE: AtomicU64 = AtomicU64::new(0);
        // A package is only a command.
        let packages: Vec<_> = skills.iter().filter_map(|skill| skill.package().cloned()).collect();
        let is_tool = |skill: &&Arc<InstalledSkill>| skill.package().is_none();
        let mut cards: Vec<_> = skills.iter().filter(is_tool).flat_map(|skill| cards(skill)).map(Arc::new).collect();
        let is_skill = |name: &str| skills.iter().any(|skill| skill.name().as_str() == name);
        let outside: Vec<_> = allowed.iter().filter(|tool| !is_skill(&tool.server)).cloned().collect();
        cards.extend(outside.iter().map(|tool| Arc::new(mcp::card(tool))));
        let outside = outside.into_iter().map(|tool| (tool.name.clone(), tool)).collect();
        let names = cards.iter().map(|card| (wire_name(&card.name), card.name.clone())).collect();
        let catalog = call::catalog(&cards, builtins, &packages, limits);
        let mut categories: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (spec, category) in &catalog {
            categories.entry(category.clone()).or_default().push(spec.name.clone());
        }
        let (revision, categories) = (MADE.fetch_add(1, Ordering::Relaxed) + 1, categories.into_iter().collect());
        Self { revision, skills, packages, allowed, outside, cards, names, catalog, categories }
    }

    fn is_of(&self, skills: &[Arc<InstalledSkill>], allowed: &Arc<Vec<Arc<AllowedTool>>>) -> bool {
        let same = Arc::ptr_eq(&self.allowed, allowed) || self.allowed.is_empty() && allowed.is_empty();
        same && self.skills.len() == skills.len()
            && self.skills.iter().zip(skills).all(|(old, new)| Arc::ptr_eq(old, new))
    }

    /// Returns the tool behind a name for models.
    fn tool<'n>(&'n self, name: &'n str) -> &'n str {
        self.names.get(name).map_or(name, String::as_str)
    }
}

/// One lock for each session's workspace: calls that read share it, a call that writes has it exclusively.
#[derive(Debug, Default)]
struct Workspaces(Mutex<HashMap<SessionName, Weak<RwLock<()>>>>);

impl Workspaces {
    fn get_lock(&self, session: &SessionName) -> Arc<RwLock<()>> {
        let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = locks.get(session).and_then(Weak::upgrade) {
            return lock;
        }
        // Removes locks that nobody holds any more.
        locks.retain(|_, lock| lock.strong_count() > 0);
        let lock = Arc::new(RwLock::new(()));
        locks.insert(session.clone(), Arc::downgrade(&lock));
        lock
    }
}

impl Tools {
    pub fn new(skills: Skills, exec: Exec, store: Store, servers: McpServers) -> Self {
        let vault = Vault::open(skills.home());
        let builtins = Arc::new(Builtins::new(store.clone(), skills.config().clone(), vault, skills.clone()));
        let (workspaces, index, unusable) = (Arc::default(), Arc::default(), Arc::default());
        Self { skills, exec, store, servers, builtins, workspaces, index, unusable }
    }

    /// Returns the same tools for a reloaded configuration, with the same sandbox.
    pub fn under(&self, config: &Config) -> Self {
        let vault = Vault::open(self.skills.home());
        let builtins = Builtins::new(self.store.clone(), config.clone(), vault, self.skills.clone());
        Self { builtins: Arc::new(builtins), servers: self.servers.reopened(config, &self.skills), ..self.clone() }
    }

    /// Returns the installed skills.
    pub fn skills(&self) -> &Skills {
        &self.skills
    }

    /// Returns the MCP servers.
    pub fn servers(&self) -> &McpServers {
        &self.servers
    }

    /// Returns one card for each callable tool. An unusable skill has none, and is reported once.
    pub fn cards(&self) -> Vec<Arc<SkillCard>> {
        self.index().cards.clone()
    }

    fn index(&self) -> Arc<Index> {
        let usable = |skill: Result<Arc<InstalledSkill>, SkillError>| match skill {
            Ok(skill) => Some(skill),
            Err(error) => {
                let mut known = self.unusable.lock().unwrap_or_else(PoisonError::into_inner);
                if known.insert(error.skill.clone()) {
                    tracing::warn!(skill = error.skill, "a skill is left out: {}", error.message);
                }
                None
            }
        };
        let skills: Vec<_> = self.skills.list().into_iter().filter_map(usable).collect();
        let allowed = self.servers.allowed();
        let mut kept = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        if !kept.is_of(&skills, &allowed) {
            *kept = Arc::new(Index::new(skills, allowed, &self.builtins, self.exec.limits()));
        }
        kept.clone()
    }

    /// Names the skills that take most of a context of this size, if all together take more than a third of it.
    pub fn crowding(&self, context: usize) -> Option<String> {
        let mut by_skill: BTreeMap<String, usize> = BTreeMap::new();
        for card in &self.index().cards {
            let skill = card.name.split('.').next().unwrap_or_default().to_owned();
            let told = [&card.name, &card.summary, &card.args.to_string()].map(|text| tokens(text));
            let examples = card.examples.iter().map(|example| tokens(example));
            *by_skill.entry(skill).or_default() += told.into_iter().chain(examples).sum::<usize>();
        }
        let all: usize = by_skill.values().sum();
        if all <= context / 3 {
            return None;
        }
        let mut largest: Vec<_> = by_skill.into_iter().collect();
        largest.sort_by_key(|(_, tokens)| std::cmp::Reverse(*tokens));
        let largest: Vec<String> = largest.iter().take(3).map(|(name, tokens)| format!("{name} ({tokens})")).collect();
        Some(format!(
            "What models are told of the skills takes about {all} tokens of it, most of them for {}; `kiso skill remove` takes \
             one away.",
            largest.join(", ")
        ))
    }

    /// Lists additional commands, and unavailable ones.
    pub fn commands(&self) -> String {
        format!("commands: {}", hint::commands(&self.index().packages))
    }

    /// Describes the skills of a plan and their requirements, one line each.
    pub fn environment<'a>(&self, skills: impl Iterator<Item = &'a str>, secrets: &Secrets) -> Vec<String> {
        let mut names: Vec<_> = skills.collect();
        names.sort_unstable();
        names.dedup();
        let line = |name: &str| {
            let (skill, _) = self.skills.find_tool(name).ok()?;
            let manifest = &skill.manifest;
            let mut line = format!("{name} ({}): workspace {:?}", manifest.category, manifest.needs.workspace);
            for (key, required) in &manifest.env {
                let there = secrets.environment(skill.name(), key).is_some();
                let state = if there { "set" } else { "not set" };
                let must = if *required { ", required" } else { "" };
                line.push_str(&format!("; secret {key}: {state}{must}"));
            }
            Some(line.to_lowercase())
        };
        names.into_iter().filter_map(line).collect()
    }

    /// Calls a skill and returns its report.
    async fn call_skill(&self, task: &Task, call: CheckedCall, caller: Caller<'_>) -> TaskReport {
        let permit = caller.permit;
        let mut report = report(task, self.skills.call_checked(call, caller).await);
        label(&mut report, permit);
        let found = task.skill.as_deref().and_then(|name| self.skills.find_tool(name).ok());
        report.skill_digest = found.map(|(skill, _)| skill.digest().to_owned());
        report
    }

    async fn exec(
        &self,
        task: &Task,
        command: &str,
        role: CallerScope,
        caller: Caller<'_>,
        watch: Option<&Watch>,
    ) -> TaskReport {
        let done = match self.scratch(caller.session, command, caller.permit).await {
            Ok(scratch) => {
                let line = Line::for_caller(command, &caller, role, &scratch);
                let run = self.exec.run(Line { watch: watch.cloned(), ..line });
                run.await.map_err(|error| TaskError::of_host(error.to_string()))
            }
            Err(error) => Err(error),
        };
        match done {
            Ok(done) => {
                let read = done.label;
                let mut report = exec_report(task, done, caller.secrets);
                label(&mut report, caller.permit);
                report.label.join(&read.label());
                report
            }
            Err(error) => {
                let mut report = TaskReport::failed(task.clone(), error);
                label(&mut report, caller.permit);
                report
            }
        }
    }
}

impl Catalog for Tools {
    fn check(&self, skill: &str, args: &Value) -> Result<Value, Vec<Violation>> {
        match self.index().outside.get(skill) {
            Some(tool) => tool.args.check_planned(args),
            None => self.skills.check_planned(skill, args),
        }
    }

    fn check_some(&self, tool: &str, args: &Value) -> Result<(), Vec<Violation>> {
        let index = self.index();
        match (index.outside.get(tool), self.builtins.args(tool).or(editor::args(tool))) {
            (Some(outside), _) => outside.args.check_some(args),
            (None, Some(own)) => own.check_some(args),
            (None, None) => self.skills.check_some(tool, args),
        }
    }

    fn check_schema(&self, schema: &Value) -> Result<(), String> {
        validator(schema).map(drop).map_err(|error| error.to_string())
    }
}

fn cards(skill: &InstalledSkill) -> Vec<SkillCard> {
    let manifest = &skill.manifest;
    let card = |tool: &kiso_sandbox::skill::Tool| SkillCard {
        name: tool.name.clone(),
        summary: match skill.tools.len() {
            1 => manifest.summary.clone(),
            _ => format!("{} ({})", tool.inner, manifest.summary),
        },
        category: manifest.category.clone(),
        examples: manifest.examples.clone(),
        secrets: manifest.secrets.to_vec(),
        chosen: false,
        args: tool.args.schema().clone(),
    };
    skill.tools.iter().map(card).collect()
}

fn report(task: &Task, ended: CallEnd) -> TaskReport {
    let mut report = match ended.result {
        Ok(answer) => {
            let mut report = TaskReport::new(task.clone(), TaskStatus::Done, answer.text);
            report.data = answer.data;
            report.files = answer.files;
            report
        }
        Err(error) => TaskReport::failed(task.clone(), task_error(&error)),
    };
    report.grant = ended.grant.as_ref().map(|grant| json!(grant.shown()));
    report.limits = ended.allowed;
    report.log = ended.log;
    report.millis = ended.used.millis;
    report.used = Some(ended.used);
    report
}

/// Adds the label of everything that a call has read to its report.
fn label(report: &mut TaskReport, permit: Option<&Permit>) {
    if let Some(permit) = permit {
        report.label = (*permit.read().get().label()).clone();
        report.sinks = permit.take_log();
    }
}

fn exec_report(task: &Task, done: CommandResult, secrets: &Secrets) -> TaskReport {
    let status = if done.code == 0 { TaskStatus::Done } else { TaskStatus::Failed };
    let mut report = TaskReport::new(task.clone(), status, secrets.redact(&done.stdout));
    report.stderr = secrets.redact(&done.stderr);
    report.exit_code = Some(i32::from(done.code));
    report.error = done.limit.map(|hit| {
        let command = done.failed.as_ref().map(|failed| format!("`{}` stopped: ", failed.command)).unwrap_or_default();
        TaskError {
            code: ErrorCode::Limit,
            message: format!("{command}{hit}"),
            limit: Some(hit.limit.name().to_owned()),
            retryable: false,
            policy: false,
        }
    });
    report.failed_command = done.failed;
    if report.is_negative_answer() {
        report.status = TaskStatus::Done;
    }
    report.millis = done.used.millis;
    report.limits = Some(done.allowed);
    report.used = Some(done.used);
    report
}

/// Hint for a model about invalid arguments.
const FITTING: &str = "call it again with arguments that fit its schema";

fn describe_violations(violations: &[Violation]) -> String {
    violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn task_error(error: &SkillError) -> TaskError {
    TaskError {
        code: error.code.clone(),
        message: error.to_string(),
        limit: error.limit.as_ref().map(|hit| hit.limit.name().to_owned()),
        retryable: error.retryable,
        policy: error.blame == Blame::Policy,
    }
}
