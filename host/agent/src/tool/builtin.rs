//! Tools that are part of the host: the scratchpad, memory and messages, the documentation, skills, where the run stands,
//! subagents, and the schedule.
//!
//! They read and write the store, read what is installed, and nothing else. A subagent may read what is remembered and not change it: it works for
//! somebody who did not ask for that. Nor may it change the schedule: nobody reads along.

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

/// The category of the tools that read what was put away.
pub const SCRATCHPAD: &str = scratchpad::CATEGORY;

/// The category of the tools that tell of skills.
pub const SKILLS: &str = skills::CATEGORY;

/// The categories of the built-in tools, with what each is for in a few words: the router chooses by these.
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

/// The purpose of a category of built-in tools; `None` for any other.
pub fn purpose(category: &str) -> Option<&'static str> {
    CATEGORIES.iter().find(|(name, _)| *name == category).map(|(_, purpose)| *purpose)
}

/// Tools that are of use only where there is something for them to read.
pub const TASK_STATUS: &str = status::STATUS;
pub const MESSAGE_SEARCH: &str = messages::SEARCH;
pub const MESSAGE_READ: &str = messages::READ;
pub const CORE_GET: &str = memory::CORE_GET;
pub const SCHEDULE_LIST: &str = schedule::LIST;

/// The tool that searches what is remembered.
pub const MEMORY_SEARCH: &str = memory::SEARCH;

/// Remembers a text or a document.
pub const MEMORY_SAVE: &str = memory::SAVE;

/// The tool that changes what is in every prompt.
pub const CORE_UPDATE: &str = memory::CORE_UPDATE;

/// The tools that change what comes by itself.
pub const SCHEDULE_ADD: &str = schedule::ADD;
pub const SCHEDULE_REMOVE: &str = schedule::REMOVE;

/// The tool that puts a file into a folder of the user.
pub const SAVE_TO_FOLDER: &str = folders::SAVE;

/// The tool that reads skills, Agent Skills among them.
pub const SKILL_READ: &str = skills::READ;

pub use docs::{DocSection, documentation};

/// Text that a tool gives at once, in bytes, whatever it is asked for; the output guard has a limit of its own below it.
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

/// Who calls a tool, and from where.
#[derive(Debug, Clone, PartialEq)]
pub struct CallContext {
    pub session: SessionName,
    /// The run that is under way.
    pub run: Option<RunId>,
    /// Whether a subagent calls.
    pub subagent: bool,
    /// With whose rights.
    pub caller: CallerScope,
    /// Which call of the run it is: the event that it comes after, and its place among those that come with it.
    pub call: (u32, usize),
    /// What the questions mean that are asked of memory and of the documentation, as far as somebody could tell.
    pub meanings: Vec<(String, Meaning)>,
    /// Tokens of the context of the model that is shown its result.
    pub context_budget: usize,
    /// Tokens that its result may have.
    pub result_tokens: usize,
    /// Of the words of the call: of what it was decided from.
    pub label: Label,
    /// Of what the tool has read.
    pub read: ReadLabel,
}

/// The label of what a tool reads; clones share it.
#[derive(Debug, Clone, Default)]
pub struct ReadLabel(Arc<Mutex<Label>>);

impl ReadLabel {
    /// It has read something with this label.
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
    /// The label of what the tool keeps: of the words of the call, and of what stands in the place of refs among them.
    pub fn written(&self) -> Label {
        self.label.clone().joined(&self.read.get())
    }

    /// The session that a model means, where it names one that is told something: "self" is the one that it is in. Other
    /// sessions are for administrators, except those above and below this one.
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

/// What is asked of memory or of the documentation, if that is what the call does.
pub fn question(call: &ToolCall) -> Option<String> {
    if call.name != memory::SEARCH && call.name != docs::SEARCH {
        return None;
    }
    let args: Value = serde_json::from_str(&call.args).ok()?;
    Some(text(&args, memory::QUERY).to_owned()).filter(|question| !question.is_empty())
}

/// Whether the call is one that the documentation is searched by.
pub fn asks_documentation(call: &ToolCall) -> bool {
    call.name == docs::SEARCH
}

/// Why a tool gave nothing. Meant for the model that called it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolFault {
    /// `Failed`, or `BadArgs` where nothing was tried.
    pub code: ErrorCode,
    pub message: String,
    /// The next step for whoever reads the error.
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

    /// Every tool as a model sees it, and its category, one of [`CATEGORIES`].
    pub fn specs(&self) -> Vec<(ToolSpec, &'static str)> {
        let spec = |tool: &Tool| ToolSpec {
            name: tool.name.to_owned(),
            description: tool.description.to_owned(),
            parameters: tool.args.schema().clone(),
        };
        self.tools.iter().map(|tool| (spec(tool), tool.category)).collect()
    }

    /// Whether there is a built-in tool of that name.
    pub fn has(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.name == name)
    }

    /// The category of the tool of that name.
    pub fn category(&self, name: &str) -> Option<&'static str> {
        self.tools.iter().find(|tool| tool.name == name).map(|tool| tool.category)
    }

    /// The arguments of the tool of that name.
    pub fn args(&self, name: &str) -> Option<&ArgsSchema> {
        self.tools.iter().find(|tool| tool.name == name).map(|tool| &tool.args)
    }

    /// The argument of a tool in which `ref:KEY` does not stand for the text, but says which entry of the scratchpad is meant.
    pub fn names_entry(name: &str) -> Option<&'static str> {
        (name == scratchpad::SCRATCHPAD).then_some(scratchpad::KEY)
    }

    /// The file of the session that a call puts elsewhere, with its label; `None` for other tools.
    pub fn delivery(&self, name: &str, args: &Value, at: &CallContext) -> Option<(DeliveryRequest, Label)> {
        let request = (name == folders::SAVE).then(|| folders::request(args, at))?;
        let label = request.label(self.skills.home(), &at.session);
        Some((request, label))
    }

    /// Whether a tool shows what is in the scratchpad already, so that what it shows is not put there again.
    pub fn shows_scratchpad(name: &str) -> bool {
        name == scratchpad::SCRATCHPAD
    }

    /// Calls a tool. The arguments are checked against its schema first, and defaults filled in.
    pub async fn call(&self, name: &str, args: &Value, at: &CallContext) -> Result<String, ToolFault> {
        let Some(tool) = self.tools.iter().find(|tool| tool.name == name) else {
            let names = self.tools.iter().map(|tool| tool.name);
            let near = kiso_sandbox::skill::near_names(name, names).join(", ");
            let fault =
                ToolFault::new(format!("there is no built-in tool {:?}", &name[..name.floor_char_boundary(64)]));
            return Err(if near.is_empty() { fault } else { fault.hint(format!("near: {near}")) });
        };
        let args = tool.args.check(args).map_err(|violations| {
            let fault = ToolFault::new(super::told(&violations)).hint(super::FITTING);
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
        // What an Agent Skill says is nothing that the session has.
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

/// A folder as the place that an effect goes to.
pub fn folder_destination(folder: &str) -> String {
    format!("folder:{folder}")
}

/// A tool whose arguments are the given properties, of which `required` must be there.
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

/// A string argument; the schema has seen to it that it is one.
fn text<'a>(args: &'a Value, name: &str) -> &'a str {
    args.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// A whole number; the schema gave it a default and bounds.
fn number(args: &Value, name: &str) -> usize {
    args.get(name).and_then(Value::as_u64).and_then(|number| usize::try_from(number).ok()).unwrap_or_default()
}

/// What the line above a part of a text takes, in tokens.
const PAGE_LINE: usize = 24;

/// A part of a text, counted in characters, under a line that says which part it is and how to get the next. It has at most `limit`
/// characters, and `tokens` with the line.
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

/// The lines that have room in so many tokens, with how many have none.
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
