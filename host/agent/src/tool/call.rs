//! Tools of the action loop: skills, command lines and built-in ones in one list of names.

use super::address::bare;
use super::builtin::{self, Builtins, CallContext, ToolFault};
use super::editor::{self, FileCall};
use super::work::ToolWork;
use super::{CallerScope, EXEC, Tools, exec_spec, narrow, start};
use kiso_base::{config, json};
use kiso_graph::reflection::Status;
use kiso_graph::step::{STDERR, ToolResult};
use kiso_llm::ToolSpec;
use kiso_plan::call::ToolCall;
use kiso_plan::code::ErrorCode;
use kiso_plan::plan::{Task, TaskKind};
use kiso_plan::prompt::SkillCard;
use kiso_plan::report::{TaskReport, TaskStatus};
use kiso_sandbox::effect::label::LabelId;
use kiso_sandbox::effect::sink::Permit;
use kiso_sandbox::exec::Watch;
use kiso_sandbox::package::Package;
use kiso_sandbox::skill::{AgentSkill, Caller, Limit, near_names, wire_name};
use kiso_store::scratchpad;
use kiso_store::store::StoreError;
use serde_json::Value;
use std::sync::Arc;

/// The category of command lines and of the tools for files.
pub(super) const SHELL: &str = "shell";

/// Maximum number of hosts of a call that are reported to a person.
const MAX_HOSTS: usize = 3;

/// Maximum number of unknown arguments that are named.
const MAX_NAMES: usize = 8;

/// Maximum number of files of a result that are listed for a model.
const MAX_FILES: usize = 20;

/// Maximum size of a call's arguments in bytes. Larger data is passed as `ref:KEY` or as a file.
const MAX_ARGS: usize = 256 << 10;

/// Hint about a call whose end is missing.
const SHORTER: &str = "write less at once: the first part of a text to a file, then append the others";

/// Conditions under which some tools are offered. They stay the same for all rounds, because tools come first in each request.
#[derive(Debug, Clone, Copy, Default)]
pub struct ToolUses {
    /// The session has archived texts.
    pub has_refs: bool,
    /// The run has a plan, whose tasks have a state.
    pub has_plan: bool,
    /// There is memory, or there are earlier messages.
    pub has_past: bool,
    pub has_schedules: bool,
}

impl ToolUses {
    /// Returns whether a tool has something to work with.
    fn has_use(self, tool: &str) -> bool {
        match tool {
            builtin::TASK_STATUS => self.has_plan,
            builtin::MEMORY_SEARCH | builtin::MESSAGE_SEARCH | builtin::MESSAGE_READ | builtin::CORE_GET => {
                self.has_past
            }
            builtin::SCHEDULE_LIST | builtin::SCHEDULE_REMOVE => self.has_schedules,
            _ => true,
        }
    }
}

impl Tools {
    /// Returns the names of the tools of skills, each with its category.
    pub fn by_name(&self) -> Vec<(String, String)> {
        self.index().cards.iter().map(|card| (card.name.clone(), card.category.clone())).collect()
    }

    /// Returns the tools of these categories; of all, if none is named. Tools with nothing to work on are left out. The tool that
    /// reads Agent Skills is always offered if there are some. Those `in_use` may exclude tools. `folder` is the initial
    /// directory of command lines, if a folder is open.
    pub fn specs(
        &self,
        categories: &[String],
        in_use: &[Arc<AgentSkill>],
        uses: ToolUses,
        folder: Option<&str>,
    ) -> Vec<ToolSpec> {
        let reads_skills = !in_use.is_empty() || !self.skills.told_agent_skills().is_empty();
        let is_offered = |name: &str, category: &str| {
            let of_category = categories.is_empty() || categories.iter().any(|named| named == category);
            of_category && narrow::allows(in_use, name, category)
        };
        // Skills read files and draw charts, too; the host's own tools do not.
        let of_host = |name: &String| name != SHELL && self.builtins.specs().iter().any(|(_, of)| of == name);
        let may_look =
            (categories.is_empty() || !categories.iter().all(of_host)) && narrow::allows(in_use, editor::LOOK, SHELL);
        // Without these, nothing else can read archived texts.
        let reads_refs = is_offered(editor::READ, SHELL);
        let wanted = |(spec, category): &&(ToolSpec, String)| {
            let is_named = categories.contains(category);
            match category.as_str() {
                builtin::SCRATCHPAD => {
                    let passes_on = uses.has_plan && categories.is_empty();
                    uses.has_refs || passes_on || is_named || !reads_refs
                }
                _ if spec.name == editor::LOOK => may_look,
                _ if reads_skills && spec.name == builtin::SKILL_READ => true,
                // For other skills, the definitions contain the same information.
                builtin::SKILLS if !reads_skills && !is_named => false,
                category => is_offered(&spec.name, category) && (is_named || uses.has_use(&spec.name)),
            }
        };
        let index = self.index();
        let specs = index.catalog.iter().filter(wanted).map(|(spec, _)| spec.clone()).collect();
        match folder {
            Some(folder) => start::in_folder(specs, folder),
            None => specs,
        }
    }

    /// Returns the external sources of a call, as far as they are known: the MCP server of a tool; for a skill, the granted hosts
    /// of the addresses in its arguments, or else those that its grant names.
    pub fn sources(&self, tool: &str, args: &Value) -> Vec<String> {
        let index = self.index();
        if let Some(outside) = index.outside.get(index.tool(tool)) {
            return vec![outside.server.clone()];
        }
        let Ok((skill, _)) = self.skills.find_tool(self.index().tool(tool)) else { return Vec::new() };
        let Ok(allowed) = self.skills.allowed(&skill) else { return Vec::new() };
        let granted: Vec<&str> = allowed.http.iter().map(|(need, _)| bare(&need.host)).collect();
        let reaches = |host: &String| granted.iter().any(|granted| covers(granted, host));
        let mut hosts: Vec<String> = texts(args).filter_map(host_of).filter(reaches).take(MAX_HOSTS).collect();
        if hosts.is_empty() {
            let named = granted.iter().filter(|host| !host.contains('*')).take(MAX_HOSTS);
            hosts = named.map(|host| (*host).to_owned()).collect();
        }
        hosts
    }

    /// Returns the machine label that a tool requires and this machine lacks.
    pub fn missing_label(&self, tool: &str) -> Option<String> {
        self.skills.label_missing_for(self.index().tool(tool))
    }

    /// Calls one tool. Every failure is a result: an unknown tool, invalid JSON and a wrong argument are returned as errors with
    /// a hint. `allowed` are the tools that the model was offered. `watch` receives the output of a command line while it runs.
    pub async fn call_tool(
        &self,
        call: &ToolCall,
        allowed: &[ToolSpec],
        role: CallerScope,
        caller: Caller<'_>,
        at: &CallContext,
        watch: &Watch,
    ) -> ToolResult {
        let permit = caller.permit.cloned();
        let mut result = match self.perform(call, allowed, role, caller, at, Some(watch)).await {
            Ok(ToolAnswer::Text(text)) => {
                ToolResult { status: Status::Ok, text, code: None, ..ToolResult::blank(call) }
            }
            Ok(ToolAnswer::Task(report)) => result(call, *report),
            Err(fault) => {
                let code = Some(fault.code);
                ToolResult { text: fault.message, code, hint: fault.hint, ..ToolResult::blank(call) }
            }
        };
        result.label.join(&at.read.get());
        // Set before the label of the call's own arguments is joined.
        result.outside = result.label.is_from_outside();
        result.label.join(&at.label);
        if let Some(permit) = permit {
            result.sinks.extend(permit.take_log());
        }
        result
    }

    /// Calls one of the allowed tools, and returns the complete result. If it fails with another code than `Failed`, nothing was
    /// tried.
    pub async fn perform(
        &self,
        call: &ToolCall,
        allowed: &[ToolSpec],
        role: CallerScope,
        caller: Caller<'_>,
        at: &CallContext,
        watch: Option<&Watch>,
    ) -> Result<ToolAnswer, ToolFault> {
        if let Some(why) = &call.cut {
            let message = format!("this call was not made, nor any behind it: {why}");
            return Err(ToolFault { code: ErrorCode::CutOff, message, hint: Some(SHORTER.to_owned()) });
        }
        let ready = self.ready(call, allowed, at).await?;
        if let Some(permit) = caller.permit {
            permit.read().join(LabelId::from_label(&at.read.get()));
        }
        let of_skill = |name: &str| Task { skill: Some(name.to_owned()), ..Task::new(TaskKind::Skill, "") };
        let (task, work) = match ready {
            Ready::Builtin(args) => {
                self.admit_builtin(&call.name, &args, caller.permit, at)?;
                let delivery = self.builtins.delivery(&call.name, &args, at);
                if let Some((request, _)) = delivery.filter(|(request, _)| request.is_shared()) {
                    return self.share_file(request, &caller, at).await.map(ToolAnswer::Text);
                }
                return self.builtins.call(&call.name, &args, at).await.map(ToolAnswer::Text);
            }
            Ready::Work(ToolWork::Exec(command)) => {
                (Task::new(TaskKind::Exec, command.clone()), ToolWork::Exec(command))
            }
            Ready::Work(ToolWork::Outside(tool, args)) => (of_skill(&tool.name), ToolWork::Outside(tool, args)),
            Ready::Work(ToolWork::Skill(checked)) => (of_skill(checked.name()), ToolWork::Skill(checked)),
            Ready::Work(work @ ToolWork::File(..)) => (Task::new(TaskKind::Exec, call.name.as_str()), work),
        };
        Ok(ToolAnswer::Task(Box::new(self.execute(&task, work, role, caller, watch).await)))
    }

    /// Checks whether a built-in tool with lasting effects may be called.
    fn admit_builtin(
        &self,
        name: &str,
        args: &Value,
        permit: Option<&Permit>,
        at: &CallContext,
    ) -> Result<(), ToolFault> {
        let admitted = match (self.builtins.delivery(name, args, at), name) {
            (Some((request, label)), _) => {
                at.read.join(&label);
                permit.map_or(Ok(()), |permit| {
                    permit.read().join(LabelId::from_label(&label));
                    // Shared files have labels: the file does not leave kiso.
                    if request.is_shared() {
                        return Ok(());
                    }
                    permit.leave("folder", &builtin::folder_destination(&request.folder), true, true)
                })
            }
            (None, builtin::SCHEDULE_ADD | builtin::SCHEDULE_REMOVE) => {
                permit.map_or(Ok(()), |permit| permit.call("the schedule", true))
            }
            (None, builtin::CORE_UPDATE) => permit.map_or(Ok(()), |permit| permit.call("core memory", true)),
            _ => return Ok(()),
        };
        admitted.map_err(|why| {
            let error = super::mcp::effect_denied(name, &why);
            ToolFault { code: ErrorCode::EffectDenied, message: error.message, hint: None }
        })
    }

    /// Returns the tools that programs may call outside of a run: command lines, tools of skills, and the search in memory. Tools
    /// of other MCP servers are left out, because clients can use those servers directly.
    pub fn outward(&self) -> Vec<ToolSpec> {
        let index = self.index();
        let all = index.catalog.iter().map(|(spec, _)| spec);
        let is_ours =
            |spec: &&ToolSpec| !index.outside.contains_key(index.tool(&spec.name)) && !editor::has(&spec.name);
        all.filter(|spec| !self.builtins.has(&spec.name) || spec.name == builtin::MEMORY_SEARCH)
            .filter(is_ours)
            .cloned()
            .collect()
    }

    /// Returns a number that changes whenever a skill is installed or removed.
    pub fn revision(&self) -> u64 {
        self.index().revision
    }

    /// Returns the call of an allowed tool, with refs in its arguments resolved.
    async fn ready<'a>(
        &self,
        call: &ToolCall,
        allowed: &[ToolSpec],
        at: &'a CallContext,
    ) -> Result<Ready<'a>, ToolFault> {
        let refuse = |code, message: String, hint: &str| ToolFault { code, message, hint: Some(hint.to_owned()) };
        let Some(spec) = allowed.iter().find(|spec| spec.name == call.name) else {
            let near = near_names(&call.name, allowed.iter().map(|spec| spec.name.as_str())).join(", ");
            let names: Vec<_> = allowed.iter().map(|spec| spec.name.as_str()).collect();
            let hint = match near.is_empty() {
                true => format!("the tools are {}", names.join(", ")),
                false => format!("near: {near}"),
            };
            let name: String = call.name.chars().take(64).collect();
            let message = format!("there is no tool {name:?} here");
            return Err(ToolFault { code: ErrorCode::UnknownTool, message, hint: Some(hint) });
        };
        if call.args.len() > MAX_ARGS {
            let message = format!("the arguments have {} bytes, at most {MAX_ARGS} are taken", call.args.len());
            return Err(refuse(ErrorCode::BadArgs, message, "write the data to a file in parts, and name that"));
        }
        let text = if call.args.trim().is_empty() { "{}" } else { &call.args };
        let args: Value = json::parse(text.as_bytes()).map_err(|error| {
            refuse(
                ErrorCode::BadJson,
                format!("the arguments are not JSON: {error}"),
                "call it again with a JSON object",
            )
        })?;
        if !args.is_object() {
            return Err(refuse(ErrorCode::BadJson, "the arguments are no JSON object".to_owned(), "give an object"));
        }
        // An argument that names an entry is not replaced by the entry's text.
        let entry = Builtins::names_entry(&call.name).or(editor::names_entry(&call.name));
        let mut args = args;
        let kept = entry.and_then(|name| Some((name, args.as_object_mut()?.remove(name)?)));
        let resolved = scratchpad::resolve(&self.store, &at.session, args).await;
        let resolved = resolved.map_err(|error: StoreError| {
            refuse(ErrorCode::Unavailable, error.to_string(), "try again, or go on without")
        })?;
        let (mut args, label) = resolved.map_err(|wrong| ToolFault {
            code: ErrorCode::BadArgs,
            message: super::describe_violations(&wrong),
            hint: None,
        })?;
        at.read.join(&label);
        if let (Some((name, value)), Some(args)) = (kept, args.as_object_mut()) {
            args.insert(name.to_owned(), value);
        }
        if call.name == EXEC {
            let command = args.get("command").and_then(Value::as_str).filter(|command| !command.trim().is_empty());
            let others = args.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
            let others: Vec<_> = others.filter(|name| *name != "command").take(MAX_NAMES).collect();
            let hint = "call it again with {\"command\": \"…\"}";
            return match command {
                Some(command) if others.is_empty() => Ok(Ready::Work(ToolWork::Exec(command.to_owned()))),
                Some(_) => {
                    let message = format!("exec has no argument {}: it takes command alone", others.join(", "));
                    Err(refuse(ErrorCode::BadArgs, message, hint))
                }
                None => {
                    let message = "exec takes one argument, command: a string that is not empty".to_owned();
                    Err(refuse(ErrorCode::BadArgs, message, hint))
                }
            };
        }
        if editor::has(&call.name) {
            return FileCall::parse(&call.name, &args).map(|call| Ready::Work(ToolWork::File(call, at)));
        }
        if call.name == builtin::MEMORY_SAVE
            && let Some(path) = args["file"].as_str()
            && !at.subagent
        {
            return FileCall::remember(path).map(|call| Ready::Work(ToolWork::File(call, at)));
        }
        if self.builtins.has(&call.name) {
            return Ok(Ready::Builtin(args));
        }
        let index = self.index();
        let name = index.tool(&spec.name);
        if let Some(tool) = index.outside.get(name) {
            let checked = tool.args.check(&args).map(|args| Ready::Work(ToolWork::Outside(tool.clone(), args)));
            return checked
                .map_err(|wrong| refuse(ErrorCode::BadArgs, super::describe_violations(&wrong), super::FITTING));
        }
        let checked = self.skills.check(name, &args);
        checked
            .map(|call| Ready::Work(ToolWork::Skill(call)))
            .map_err(|error| refuse(ErrorCode::BadArgs, error.message, super::FITTING))
    }
}

/// Returns everything that the action loop may call, each with its category.
pub(super) fn catalog(
    cards: &[Arc<SkillCard>],
    builtins: &Builtins,
    packages: &[Arc<Package>],
    limits: &config::Exec,
) -> Vec<(ToolSpec, String)> {
    let skills = cards.iter().map(|card| {
        let (name, description) = (wire_name(&card.name), card.summary.clone());
        (ToolSpec { name, description, parameters: card.args.clone() }, card.category.clone())
    });
    let builtins = builtins.specs().into_iter().map(|(spec, category)| (spec, category.to_owned()));
    let own =
        std::iter::once(exec_spec::spec(packages, limits)).chain(editor::specs()).map(|spec| (spec, SHELL.to_owned()));
    own.chain(skills).chain(builtins).collect()
}

/// The result of a call.
#[derive(Debug)]
pub enum ToolAnswer {
    /// Text of a built-in tool.
    Text(String),
    /// Report of a skill or a command line.
    Task(Box<TaskReport>),
}

/// A prepared call.
enum Ready<'a> {
    /// A built-in tool, which has no task of its own.
    Builtin(Value),
    Work(ToolWork<'a>),
}

/// Returns the result of a call that ran like a task of a plan.
fn result(call: &ToolCall, report: TaskReport) -> ToolResult {
    let mut text = match &report.data {
        Some(data) if report.text.is_empty() => data.to_string(),
        _ => report.text,
    };
    if let Some(code) = report.exit_code {
        text = format!("exit code: {code}\n{text}");
        if !report.stderr.is_empty() {
            text.push_str(&format!("\n{STDERR}\n{}", report.stderr));
        }
    }
    // A call of a file tool names its file.
    let told = if editor::has(&call.name) { &[] } else { &report.files[..] };
    for file in told.iter().take(MAX_FILES) {
        text.push_str(&format!("\nfile: {} ({}{} bytes)", file.path, file.kind(), file.bytes));
    }
    let more = report.files.len().saturating_sub(MAX_FILES) as u64 + report.more_files;
    if more > 0 {
        text.push_str(&format!("\n… and {more} more files"));
    }
    let (status, code, hint) = match report.error {
        Some(error) => {
            text = if text.is_empty() { error.message } else { format!("{}\n{text}", error.message) };
            let is_late = error.limit.as_deref() == Some(Limit::Time.name());
            let blocked = error.policy || error.limit.is_some() && !is_late;
            let hint = error.retryable.then(|| "the same call may succeed later".to_owned());
            let code = if is_late { ErrorCode::Timeout } else { error.code };
            (if blocked { Status::Blocked } else { Status::Error }, Some(code), hint)
        }
        // A completed command line is not an error, whatever its exit code: the code may be the wanted answer.
        None if report.status == TaskStatus::Done || report.exit_code.is_some() => (Status::Ok, None, None),
        None => (Status::Error, Some(ErrorCode::Failed), None),
    };
    ToolResult {
        status,
        text,
        code,
        hint,
        exit_code: report.exit_code,
        files: report.files,
        more_files: report.more_files,
        changed: report.changed,
        more_changed: report.more_changed,
        outside: report.outside,
        pictures: report.pictures,
        millis: report.used.map_or(0, |used| used.millis),
        used: report.used,
        skill_digest: report.skill_digest,
        grant: report.grant,
        limits: report.limits,
        label: report.label,
        sinks: report.sinks,
        ..ToolResult::blank(call)
    }
}

/// Returns whether a grant such as "api.example.org", "*.example.org" or "*" covers this host.
pub(super) fn covers(granted: &str, host: &str) -> bool {
    match granted.strip_prefix('*') {
        Some(suffix) => host.ends_with(suffix) && host.len() > suffix.len(),
        None => granted == host,
    }
}

/// Returns the texts in arguments, including those in lists.
fn texts(args: &Value) -> impl Iterator<Item = &str> {
    let values = args.as_object().into_iter().flat_map(|args| args.values());
    values
        .flat_map(|value| value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice))
        .filter_map(Value::as_str)
}

/// Returns the host of an address.
fn host_of(text: &str) -> Option<String> {
    let uri: http::Uri = text.trim().parse().ok()?;
    matches!(uri.scheme_str(), Some("http" | "https")).then(|| uri.host().map(str::to_lowercase)).flatten()
}
