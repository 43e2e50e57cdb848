//! Built-in tools: the scratchpad, memory and messages, the documentation, skills, the state of the run, subagents, and
//! schedules.
//!
//! They access only the store and the installed skills. A subagent may read memory but not change it, because it works for
//! somebody who did not ask for that. Nor may it change schedules, because no person is watching.

mod docs;
pub(crate) mod folders;
mod memory;
mod messages;
mod schedule;
mod scratchpad;
mod skills;
mod status;
mod subagents;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use super::deliver::DeliveryRequest;
use kiso_base::config::Config;
use kiso_base::home::SessionName;
use kiso_llm::ToolSpec;
use kiso_plan::call::ToolCall;
use kiso_plan::code::ErrorCode;
use kiso_plan::estimate;
use kiso_plan::label::Label;
use kiso_plan::plan::CallerScope;
use kiso_sandbox::skill::{ArgsSchema, Skills};
use kiso_store::memory::Meaning;
use kiso_store::secret::vault::Vault;
use kiso_store::store::{RunId, Store, StoreError};

/// The category of the tools that read archived texts.
pub const SCRATCHPAD: &str = scratchpad::CATEGORY;

/// The category of the tools about skills.
pub const SKILLS: &str = skills::CATEGORY;

/// The categories of the built-in tools, each with a short purpose: the router chooses by these.
const CATEGORIES: [(&str, &str); 8] = [
    (docs::CATEGORY, "kiso's own manual"),
    (folders::CATEGORY, "save files for the user"),
    (memory::CATEGORY, "what was said, what to keep"),
    (schedule::CATEGORY, "reminders, jobs at set times"),
    (scratchpad::CATEGORY, "texts put aside"),
    (skills::CATEGORY, "list of skills"),
    (status::CATEGORY, "of this plan"),
    (subagents::CATEGORY, "side work"),
];

/// Returns the purpose of a category of built-in tools; `None` for any other.
pub fn purpose(category: &str) -> Option<&'static str> {
    CATEGORIES.iter().find(|(name, _)| *name == category).map(|(_, purpose)| *purpose)
}

/// Tools that are useful only if there is something to read.
pub const TASK_STATUS: &str = status::STATUS;
pub const MESSAGE_SEARCH: &str = messages::SEARCH;
pub const MESSAGE_READ: &str = messages::READ;
pub const CORE_GET: &str = memory::CORE_GET;
pub const SCHEDULE_LIST: &str = schedule::LIST;

/// The tool that searches memory.
pub const MEMORY_SEARCH: &str = memory::SEARCH;

/// Saves a text or a document to memory.
pub const MEMORY_SAVE: &str = memory::SAVE;

/// The tool that changes core memory, which is part of every prompt.
pub const CORE_UPDATE: &str = memory::CORE_UPDATE;

/// The tools that change schedules.
pub const SCHEDULE_ADD: &str = schedule::ADD;
pub const SCHEDULE_REMOVE: &str = schedule::REMOVE;

/// The tool that copies a file to a folder of the user.
pub const SAVE_TO_FOLDER: &str = folders::SAVE;

/// The tool that reads skills, including Agent Skills.
pub const SKILL_READ: &str = skills::READ;

pub use docs::{DocSection, documentation};

/// Maximum size in bytes of a tool's text; the output guard has a smaller limit.
const MAX_ANSWER: usize = 256 << 10;

/// The built-in tools of a home.
#[derive(Debug)]
pub struct Builtins {
    store: Store,
    config: Config,
    vault: Vault,
    skills: Skills,
    tools: Vec<Tool>,
    docs: docs::Library,
}

#[derive(Debug)]
struct Tool {
    name: &'static str,
    category: &'static str,
    description: &'static str,
    args: ArgsSchema,
}

/// The caller of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct CallContext {
    pub session: SessionName,
    /// The active run.
    pub run: Option<RunId>,
    /// Whether the caller is a subagent.
    pub subagent: bool,
    /// The caller's rights.
    pub caller: CallerScope,
    /// Identifies the call in the run: the preceding event, and the index among concurrent calls.
    pub call: (u32, usize),
    /// Embeddings of the queries to memory and to the documentation, if available.
    pub meanings: Vec<(String, Meaning)>,
    /// Context in tokens of the model that gets its result.
    pub context_budget: usize,
    /// Maximum size of its result in tokens.
    pub result_tokens: usize,
    /// Label of the call's arguments: the label of all data that decided them.
    pub label: Label,
    /// Label of everything that the tool has read.
    pub read: ReadLabel,
}

/// The label of everything that a tool reads; clones share it.
#[derive(Debug, Clone, Default)]
pub struct ReadLabel(Arc<Mutex<Label>>);

impl ReadLabel {
    /// Joins the label of data that was read.
    pub fn join(&self, label: &Label) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).join(label);
    }

    pub fn get(&self) -> Label {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl PartialEq for ReadLabel {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl CallContext {
    /// Returns the label of data that the tool stores: of the call's arguments, and of texts that replace refs in them.
    pub fn written(&self) -> Label {
        self.label.clone().joined(&self.read.get())
    }

    /// Resolves the session that a model names as a receiver: "self" is the current one. Other sessions require an administrator,
    /// except those above and below this one.
    async fn addressed(&self, store: &Store, name: &str) -> Result<SessionName, ToolFault> {
        if name == "self" {
            return Ok(self.session.clone());
        }
        let wanted = SessionName::parse(name).map_err(|error| ToolFault::new(error.to_string()))?;
        let (here, there) = (self.session.clone(), wanted.clone());
        let read = store.read(move |view| Ok((view.line_of(&here)?, view.line_of(&there)?, view.has_session(&there)?)));
        let (here, there, exists) = read.await?;
        if self.caller != CallerScope::Admin && here.last() != there.last() {
            return Err(ToolFault::new(format!("the session {wanted} is not of this conversation"))
                .hint("\"self\" is this conversation; an administrator may name any"));
        }
        if !exists && wanted != self.session {
            return Err(ToolFault::new(format!("there is no session {wanted}")).hint("\"self\" is this conversation"));
        }
        Ok(wanted)
    }
}

/// Returns the query of a call to memory or the documentation; `None` for other calls.
pub fn question(call: &ToolCall) -> Option<String> {
    if call.name != memory::SEARCH && call.name != docs::SEARCH {
        return None;
    }
    let args: Value = serde_json::from_str(&call.args).ok()?;
    Some(text(&args, memory::QUERY).to_owned()).filter(|question| !question.is_empty())
}

/// Returns whether the call searches the documentation.
pub fn asks_documentation(call: &ToolCall) -> bool {
    call.name == docs::SEARCH
}

/// Why a tool failed. Meant for the model that called it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolFault {
    /// `Failed`, or `BadArgs` if nothing was tried.
    pub code: ErrorCode,
    pub message: String,
    /// The next step for the reader of the error.
    pub hint: Option<String>,
}

impl ToolFault {
    pub(crate) fn new(message: impl Into<String>) -> ToolFault {
        ToolFault { code: ErrorCode::Failed, message: message.into(), hint: None }
    }

    fn hint(mut self, hint: impl Into<String>) -> ToolFault {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for ToolFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.hint {
            Some(hint) => write!(f, "{}; {hint}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for ToolFault {}

impl From<StoreError> for ToolFault {
    fn from(error: StoreError) -> ToolFault {
        ToolFault::new(error.to_string())
    }
}

impl Builtins {
    pub fn new(store: Store, config: Config, vault: Vault, skills: Skills) -> Builtins {
        let families = [
            scratchpad::tools(),
            memory::tools(),
            messages::tools(),
            docs::tools(),
            skills::tools(),
            status::tools(),
            subagents::tools(),
            schedule::tools(),
            folders::tools(&config),
        ];
        Builtins {
            store,
            config,
            vault,
            skills,
            tools: families.into_iter().flatten().collect(),
            docs: docs::Library::default(),
        }
    }

    /// Returns every tool in its form for models, and its category, one of [`CATEGORIES`].
    pub fn specs(&self) -> Vec<(ToolSpec, &'static str)> {
        let spec = |tool: &Tool| ToolSpec {
            name: tool.name.to_owned(),
            description: tool.description.to_owned(),
            parameters: tool.args.schema().clone(),
        };
        self.tools.iter().map(|tool| (spec(tool), tool.category)).collect()
    }

    /// Returns whether there is a built-in tool of that name.
    pub fn has(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.name == name)
    }

    /// Returns the category of the tool of that name.
    pub fn category(&self, name: &str) -> Option<&'static str> {
        self.tools.iter().find(|tool| tool.name == name).map(|tool| tool.category)
    }

    /// Returns the arguments of the tool of that name.
    pub fn args(&self, name: &str) -> Option<&ArgsSchema> {
        self.tools.iter().find(|tool| tool.name == name).map(|tool| &tool.args)
    }

    /// Returns the argument of a tool in which `ref:KEY` is not replaced by the text, but names the entry of the scratchpad.
    pub fn names_entry(name: &str) -> Option<&'static str> {
        (name == scratchpad::SCRATCHPAD).then_some(scratchpad::KEY)
    }

    /// Returns the file of the session that a call copies elsewhere, with its label; `None` for other tools.
    pub fn delivery(&self, name: &str, args: &Value, at: &CallContext) -> Option<(DeliveryRequest, Label)> {
        let request = (name == folders::SAVE).then(|| folders::request(args, at))?;
        let label = request.label(self.skills.home(), &at.session);
        Some((request, label))
    }

    /// Returns whether a tool shows content of the scratchpad, which must not be archived there again.
    pub fn shows_scratchpad(name: &str) -> bool {
        name == scratchpad::SCRATCHPAD
    }

    /// Calls a tool. Arguments are first checked against its schema and completed with defaults.
    pub async fn call(&self, name: &str, args: &Value, at: &CallContext) -> Result<String, ToolFault> {
        let Some(tool) = self.tools.iter().find(|tool| tool.name == name) else {
            let names = self.tools.iter().map(|tool| tool.name);
            let near = kiso_sandbox::skill::near_names(name, names).join(", ");
            let fault =
                ToolFault::new(format!("there is no built-in tool {:?}", &name[..name.floor_char_boundary(64)]));
            return Err(if near.is_empty() { fault } else { fault.hint(format!("near: {near}")) });
        };
        let args = tool.args.check(args).map_err(|violations| {
            let fault = ToolFault::new(super::describe_violations(&violations)).hint(super::FITTING);
            ToolFault { code: ErrorCode::BadArgs, ..fault }
        })?;
        if at.subagent && matches!(name, memory::SAVE | memory::CORE_UPDATE) {
            return Err(ToolFault::new(format!("{name} is not for subagents: they may read memory and not change it"))
                .hint("put what should be remembered into your answer"));
        }
        if at.subagent && matches!(name, schedule::ADD | schedule::REMOVE) {
            return Err(ToolFault::new(format!("{name} is not for subagents: nobody reads along"))
                .hint("say in your answer what should be scheduled"));
        }
        // The text of an Agent Skill is not data of the session.
        if tool.category != skills::CATEGORY {
            at.read.join(&Label::session());
        }
        let mut answer = match tool.category {
            scratchpad::CATEGORY => scratchpad::call(&self.store, &args, at).await,
            memory::CATEGORY if matches!(name, messages::SEARCH | messages::READ) => {
                messages::call(&self.store, name, &args, at).await
            }
            memory::CATEGORY => memory::call(&self.store, name, args, at).await,
            docs::CATEGORY => self.docs.call(&self.store, name, &args, at).await,
            skills::CATEGORY => {
                let (skills, name, tokens) = (self.skills.clone(), tool.name, at.result_tokens);
                let read = tokio::task::spawn_blocking(move || skills::call(&skills, name, &args, tokens)).await;
                let (answer, label) =
                    read.unwrap_or_else(|error| (Err(ToolFault::new(error.to_string())), Label::session()));
                at.read.join(&label);
                answer
            }
            subagents::CATEGORY => subagents::call(self, name, &args, at).await,
            schedule::CATEGORY => schedule::call(self, name, &args, at).await,
            folders::CATEGORY => folders::call(self, &args, at).await,
            _ => status::call(&self.store, at).await,
        }?;
        if answer.len() > MAX_ANSWER {
            answer.truncate(answer.floor_char_boundary(MAX_ANSWER));
            answer.push_str("\n[… the rest is left out; ask for less at once …]");
        }
        Ok(answer)
    }
}

/// Returns a folder as the destination of an effect.
pub fn folder_destination(folder: &str) -> String {
    format!("folder:{folder}")
}

/// Creates a tool with these properties as arguments, of which those in `required` are mandatory.
fn tool(
    name: &'static str,
    category: &'static str,
    description: &'static str,
    properties: Value,
    required: &[&str],
) -> Tool {
    let schema =
        json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false });
    Tool { name, category, description, args: ArgsSchema::checked(schema) }
}

/// Returns a string argument, whose type the schema has checked.
fn text<'a>(args: &'a Value, name: &str) -> &'a str {
    args.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Returns an integer argument, for which the schema has a default and bounds.
fn number(args: &Value, name: &str) -> usize {
    args.get(name).and_then(Value::as_u64).and_then(|number| usize::try_from(number).ok()).unwrap_or_default()
}

/// Tokens of the line above a part of a text.
const PAGE_LINE: usize = 24;

/// Returns a part of a text, counted in characters, below a line with its position and how to get the next part. It has at most
/// `limit` characters, and at most `tokens` including the line.
fn page(text: &str, offset: usize, limit: usize, tokens: usize) -> String {
    let length = text.chars().count();
    let start = text.char_indices().nth(offset).map_or(text.len(), |(at, _)| at);
    let whole = start == 0 && length <= limit && estimate::tokens(text) <= tokens;
    let room = if whole { usize::MAX } else { tokens.saturating_sub(PAGE_LINE).max(1).saturating_mul(4) };
    let mut used = 0_usize;
    let fits = |c: &char| {
        used = used.saturating_add(estimate::quarters(*c));
        used <= room
    };
    let end = start + text[start..].chars().take(limit).take_while(fits).map(char::len_utf8).sum::<usize>();
    let shown = text[start..end].chars().count();
    match (shown == length, offset + shown < length) {
        (true, _) => text.to_owned(),
        (false, true) => {
            let next = offset + shown;
            format!("[characters {offset} to {next} of {length}; go on with offset {next}]\n{}", &text[start..end])
        }
        (false, false) if shown == 0 => format!("[there are {length} characters, none from {offset} on]"),
        (false, false) => format!("[characters {offset} to {length} of {length}, the end]\n{}", &text[start..end]),
    }
}

/// Returns the lines that fit into this number of tokens, and the number of omitted ones.
fn lines_within(lines: impl Iterator<Item = String>, tokens: usize) -> String {
    let lines: Vec<_> = lines.collect();
    let mut left = tokens.saturating_sub(PAGE_LINE);
    let fits = |line: &&String| {
        let size = estimate::tokens(line) + 1;
        let room = size <= left;
        left = left.saturating_sub(size);
        room
    };
    let shown = lines.iter().take_while(fits).count().max(1).min(lines.len());
    let mut text = lines[..shown].join("\n");
    if shown < lines.len() {
        text.push_str(&format!("\n[{} more lines left out: ask for less]", lines.len() - shown));
    }
    text
}

#[cfg(test)]
mod tests;
