//! Tools as the action loop sees them: skills, command lines and built-ins under one list of names.

use super::builtin::{Builtins, CallContext};
use super::{CallerScope, Tools, task_error};
use crate::exec::{Channel, Line};
use crate::graph::plan::Violation;
use crate::graph::reflection::Status;
use crate::graph::report::TaskError;
use crate::graph::step::ToolResult;
use crate::json;
use crate::llm::{ToolCall, ToolSpec};
use crate::scratchpad;
use crate::skill::grant::Grant;
use crate::skill::manifest::Workspace;
use crate::skill::{Caller, near_names, wire_name};
use crate::store::StoreError;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The tool that runs a command line.
pub const EXEC: &str = "exec";

/// Its category.
const SHELL: &str = "shell";

/// Hosts of a call that a person is told.
const MAX_HOSTS: usize = 3;

/// Longest arguments of a call, in bytes. Larger data goes by `ref:KEY` or by a file.
const MAX_ARGS: usize = 256 << 10;

/// What a call does with the session's workspace, which decides what may run beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Touches {
    Nothing,
    Reads,
    Writes,
}

impl Tools {
    /// The categories that the router chooses from, each with its tools: "web: fetch, feed".
    pub fn category_lines(&self) -> Vec<String> {
        self.by_category().into_iter().map(|(category, names)| format!("{category}: {}", names.join(", "))).collect()
    }

    /// The categories, each with the names of its tools.
    pub fn by_category(&self) -> Vec<(String, Vec<String>)> {
        let mut categories: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (spec, category) in self.catalog() {
            categories.entry(category).or_default().push(spec.name);
        }
        categories.into_iter().collect()
    }

    /// The names of the tools of skills, each with its category.
    pub fn by_name(&self) -> Vec<(String, String)> {
        self.cards().into_iter().map(|card| (card.name, card.category)).collect()
    }

    /// The names of the categories.
    pub fn categories(&self) -> Vec<String> {
        let mut categories: Vec<_> = self.catalog().into_iter().map(|(_, category)| category).collect();
        categories.sort_unstable();
        categories.dedup();
        categories
    }

    /// The tools of these categories; of all, where none is named. The scratchpad is always there, because results that
    /// were put away are read with it.
    pub fn specs(&self, categories: &[String]) -> Vec<ToolSpec> {
        let wanted = |category: &String| {
            categories.is_empty() || categories.contains(category) || category == super::builtin::SCRATCHPAD
        };
        self.catalog().into_iter().filter(|(_, category)| wanted(category)).map(|(spec, _)| spec).collect()
    }

    fn catalog(&self) -> Vec<(ToolSpec, String)> {
        let exec = ToolSpec {
            name: EXEC.to_owned(),
            description: format!(
                "Run a command line in the language of bash with the usual commands, in /work, without network. {}",
                crate::exec::hint::MISSING
            ),
            parameters: json!({
                "type": "object",
                "properties": { "command": { "type": "string", "minLength": 1, "maxLength": 65536 } },
                "required": ["command"],
                "additionalProperties": false,
            }),
        };
        let skills = self.cards().into_iter().map(|card| {
            let spec = ToolSpec { name: wire_name(&card.name), description: card.summary, parameters: card.args };
            (spec, card.category)
        });
        let builtins = self.builtins.specs().into_iter().map(|(spec, category)| (spec, category.to_owned()));
        std::iter::once((exec, SHELL.to_owned())).chain(skills).chain(builtins).collect()
    }

    /// The hosts that a call of a skill reaches, as far as it can be told: those of the addresses among its arguments that it was
    /// granted, else those that it was granted by name.
    pub fn hosts(&self, tool: &str, args: &Value) -> Vec<String> {
        let Ok((skill, _)) = self.skills.find_tool(&self.skill_name(tool)) else { return Vec::new() };
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

    /// Calls one tool. Whatever happens is a result: an unknown tool, broken JSON and a wrong argument come back as errors
    /// with a hint. `allowed` are the tools that the model was shown.
    pub async fn call_tool(
        &self,
        call: &ToolCall,
        allowed: &[ToolSpec],
        role: CallerScope,
        caller: Caller<'_>,
        at: &CallContext,
    ) -> ToolResult {
        let blank = ToolResult {
            id: call.id.clone(),
            name: call.name.clone(),
            status: Status::Ok,
            text: String::new(),
            code: None,
            hint: None,
            archived: None,
            files: Vec::new(),
            millis: 0,
            used: None,
            skill_digest: None,
            grant: None,
            limits: None,
        };
        let args = match self.arguments(call, allowed, at).await {
            Ok(args) => args,
            Err(Refused { code, message, hint }) => {
                return ToolResult {
                    status: Status::Error,
                    text: message,
                    code: Some(code.to_owned()),
                    hint: Some(hint),
                    ..blank
                };
            }
        };
        // Held while it runs: what writes to the workspace runs alone in it.
        let lock = self.workspaces.of(&at.session);
        let _held = match self.touches(&call.name) {
            Touches::Nothing => (None, None),
            Touches::Reads => (Some(lock.read_owned().await), None),
            Touches::Writes => (None, Some(lock.write_owned().await)),
        };
        if call.name == EXEC {
            self.exec_call(args, role, caller, blank).await
        } else if self.builtins.has(&call.name) {
            match self.builtins.call(&call.name, &args, at).await {
                Ok(text) => ToolResult { text, ..blank },
                Err(fault) => {
                    let code = Some("failed".to_owned());
                    ToolResult { status: Status::Error, text: fault.message, code, hint: fault.hint, ..blank }
                }
            }
        } else {
            self.skill_call(args, caller, blank).await
        }
    }

    /// The arguments, with refs resolved and checked for a tool that may be called.
    async fn arguments(&self, call: &ToolCall, allowed: &[ToolSpec], at: &CallContext) -> Result<Value, Refused> {
        let refuse = |code, message: String, hint: &str| Refused { code, message, hint: hint.to_owned() };
        let Some(spec) = allowed.iter().find(|spec| spec.name == call.name) else {
            let near = near_names(&call.name, allowed.iter().map(|spec| spec.name.as_str())).join(", ");
            let names: Vec<_> = allowed.iter().map(|spec| spec.name.as_str()).collect();
            let hint = match near.is_empty() {
                true => format!("the tools are {}", names.join(", ")),
                false => format!("near: {near}"),
            };
            let name: String = call.name.chars().take(64).collect();
            return Err(Refused { code: "unknown_tool", message: format!("there is no tool {name:?} here"), hint });
        };
        if call.args.len() > MAX_ARGS {
            let message = format!("the arguments have {} bytes, at most {MAX_ARGS} are taken", call.args.len());
            return Err(refuse("bad_arguments", message, "save the data with scratchpad_save and give ref:KEY"));
        }
        let text = if call.args.trim().is_empty() { "{}" } else { &call.args };
        let args: Value = json::parse(text.as_bytes()).map_err(|error| {
            refuse("bad_json", format!("the arguments are not JSON: {error}"), "call it again with a JSON object")
        })?;
        if !args.is_object() {
            return Err(refuse("bad_json", "the arguments are no JSON object".to_owned(), "give an object"));
        }
        let args = match Builtins::resolves_refs(&call.name) {
            false => args,
            true => {
                let resolved = scratchpad::resolve(&self.store, &at.session, args).await;
                let resolved = resolved.map_err(|error: StoreError| {
                    refuse("unavailable", error.to_string(), "try again, or go on without")
                })?;
                resolved.map_err(|wrong| {
                    refuse("bad_arguments", told(&wrong), "scratchpad_list shows which refs there are")
                })?
            }
        };
        if call.name == EXEC {
            let command = args.get("command").and_then(Value::as_str).map(str::trim);
            if command.is_none_or(str::is_empty) || args.as_object().is_some_and(|map| map.len() > 1) {
                let message = "exec takes one argument, command: a string that is not empty".to_owned();
                return Err(refuse("bad_arguments", message, "call it again with {\"command\": \"…\"}"));
            }
            return Ok(args);
        }
        let checked = match self.builtins.has(&call.name) {
            true => self.builtins.check(&call.name, &args),
            false => self.skills.check(&self.skill_name(&spec.name), &args),
        };
        checked
            .map_err(|wrong| refuse("bad_arguments", told(&wrong), "call it again with arguments that fit its schema"))
    }

    async fn exec_call(&self, args: Value, role: CallerScope, caller: Caller<'_>, blank: ToolResult) -> ToolResult {
        let source = args.get("command").and_then(Value::as_str).unwrap_or_default();
        let done = match self.scratch(caller.session, source).await {
            Ok(scratch) => {
                let run = self.exec.run(Line::of_task(source, &caller, role, &scratch));
                run.await.map_err(|error| TaskError::of_host(error.to_string()))
            }
            Err(error) => Err(error),
        };
        let failed = |code: &str, text: String| ToolResult {
            status: Status::Error,
            text,
            code: Some(code.to_owned()),
            ..blank.clone()
        };
        match done {
            Err(error) => failed(&error.code, error.message),
            Ok(done) => {
                let mut text = format!("exit code: {}\n{}", done.code, done.stdout);
                if !done.stderr.is_empty() {
                    text.push_str(&format!("\n[standard error]\n{}", done.stderr));
                }
                let result = match &done.limit {
                    Some(hit) => ToolResult {
                        status: Status::Blocked,
                        text: format!("{hit}\n{text}"),
                        code: Some("limit".to_owned()),
                        ..blank.clone()
                    },
                    None if done.code != 0 && !done.is_negative_answer(source) => failed("exit_code", text),
                    None => ToolResult { text, ..blank.clone() },
                };
                let (millis, used, limits) = (done.used.millis, Some(done.used), Some(done.allowed));
                ToolResult { millis, used, limits, ..result }
            }
        }
    }

    async fn skill_call(&self, args: Value, caller: Caller<'_>, blank: ToolResult) -> ToolResult {
        let name = self.skill_name(&blank.name);
        let ended = self.skills.call(&name, &args, caller).await;
        let skill_digest = self.skills.find_tool(&name).ok().map(|(skill, _)| self.skills.digest(&skill));
        let (grant, limits) = (ended.grant.as_ref().map(Grant::shown), ended.allowed);
        let result = match ended.result {
            Ok(answer) => {
                let mut text = answer.text;
                if let Some(data) = &answer.data
                    && text.is_empty()
                {
                    text = data.to_string();
                }
                for file in &answer.files {
                    text.push_str(&format!("\nfile: {} ({}, {} bytes)", file.path, file.media_type, file.bytes));
                }
                ToolResult { text, files: answer.files, ..blank }
            }
            Err(error) => {
                let error = task_error(&error);
                let blocked = error.policy || error.limit.is_some();
                let status = if blocked { Status::Blocked } else { Status::Error };
                let hint = error.retryable.then(|| "the same call may succeed later".to_owned());
                ToolResult { status, text: error.message, code: Some(error.code), hint, ..blank }
            }
        };
        let (millis, used) = (ended.used.millis, Some(ended.used));
        ToolResult { millis, used, skill_digest, grant, limits, ..result }
    }

    fn touches(&self, tool: &str) -> Touches {
        if tool == EXEC {
            return Touches::Writes;
        }
        if self.builtins.has(tool) {
            return Touches::Nothing;
        }
        match self.skills.find_tool(&self.skill_name(tool)) {
            Ok((skill, _)) => match skill.manifest.needs.workspace {
                Workspace::None => Touches::Nothing,
                Workspace::Read => Touches::Reads,
                Workspace::Write => Touches::Writes,
            },
            Err(_) => Touches::Nothing,
        }
    }

    /// The tool of a skill behind the name that models know it by.
    fn skill_name(&self, name: &str) -> String {
        let skills = self.cards().into_iter().map(|card| card.name);
        skills.into_iter().find(|skill| wire_name(skill) == name).unwrap_or_else(|| name.to_owned())
    }
}

/// A host as a grant names it, without its port.
fn bare(host: &str) -> &str {
    host.rsplit_once(':').map_or(host, |(host, _)| host)
}

/// Whether a grant that says "api.example.org", "*.example.org" or "*" is about this host.
fn covers(granted: &str, host: &str) -> bool {
    match granted.strip_prefix('*') {
        Some(suffix) => host.ends_with(suffix) && host.len() > suffix.len(),
        None => granted == host,
    }
}

/// The texts of arguments, those in lists too.
fn texts(args: &Value) -> impl Iterator<Item = &str> {
    let values = args.as_object().into_iter().flat_map(|args| args.values());
    values
        .flat_map(|value| value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice))
        .filter_map(Value::as_str)
}

/// The host of an address.
fn host_of(text: &str) -> Option<String> {
    let uri: http::Uri = text.trim().parse().ok()?;
    matches!(uri.scheme_str(), Some("http" | "https")).then(|| uri.host().map(str::to_lowercase)).flatten()
}

/// Why a call is not made.
struct Refused {
    code: &'static str,
    message: String,
    hint: String,
}

fn told(violations: &[Violation]) -> String {
    violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl<'a> Line<'a> {
    /// The command line of a task or a call, as it was written.
    pub(super) fn of_task(
        source: &'a str,
        caller: &Caller<'a>,
        role: CallerScope,
        scratch: &'a crate::exec::Scratch,
    ) -> Line<'a> {
        Line {
            source,
            session: caller.session,
            role,
            locale: caller.locale,
            secrets: caller.secrets,
            stdin: Channel::Null,
            args: Vec::new(),
            state: Vec::new(),
            partial: false,
            outputs: None,
            watch: None,
            scratch,
        }
    }
}
