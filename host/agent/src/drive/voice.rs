//! The live output of a run for observers: steps, tokens, events, and the thought stream.

use crate::tool::{EXEC, Tools};
use kiso_base::role::Role;
use kiso_graph::banner::Stripper;
use kiso_graph::run::Run;
use kiso_graph::step::{Event, Step, StepResult, ToolResult};
use kiso_llm::Sink;
use kiso_plan::call::ToolCall;
use kiso_plan::plan::Task;
use kiso_store::secret::Secrets;
use kiso_store::store::RunId;
use serde_json::Value;

/// Maximum length in characters of a line of thought.
const MAX_LINE: usize = 240;

/// Maximum length in characters of a command line in a run's activity.
const MAX_COMMAND: usize = 80;

/// Maximum size in bytes of an incomplete line of thought.
const MAX_HELD: usize = 4_000;

/// Receives the progress of a run. Methods must return at once.
pub trait Listener: Send {
    /// The run has an id; nothing else has happened.
    fn begun(&mut self, _run: &RunId) {}

    /// A step is about to be performed; its event will have the number `seq`.
    fn step(&mut self, _seq: u32, _step: &Step) {}

    /// The run's current activity, for a person.
    fn thought(&mut self, _thought: &Thought) {}

    /// Text as it arrives: from the planner beside its plan, from the worker, from the actor. Without secrets.
    fn token(&mut self, _role: Role, _text: &str) {}

    /// A piece of the thoughts of this role's model before its answer. Without secrets.
    fn reasoning(&mut self, _role: Role, _text: &str) {}

    /// The text of this role since the beginning of the step is void, because the role starts again.
    fn restart(&mut self, _role: Role) {}

    /// Output of a command line on "stdout" or "stderr", without secrets. `call` is its index among the concurrent calls of the
    /// action loop; 0 for a task of a plan.
    fn output(&mut self, _call: usize, _stream: &'static str, _text: &str) {}

    /// One of the calls of the action loop has ended; others may still be running.
    fn call_ended(&mut self, _call: usize, _result: &ToolResult) {}

    /// An event was accepted. It is stored; if all models are built in, it is stored before the next effect and the reply.
    fn event(&mut self, _seq: u32, _event: &Event, _run: &Run) {}
}

/// A status of the thought stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Thought {
    Analyzing,
    Routing,
    /// The tools of these categories were selected.
    Routed {
        categories: Vec<String>,
    },
    Planning {
        attempt: u32,
    },
    Briefing {
        task: String,
    },
    /// Deciding about the next call.
    Thinking,
    /// A line of the model's thoughts before its answer.
    Reasoning {
        text: String,
    },
    /// A task, or the tools of a round.
    Working {
        what: Vec<String>,
    },
    /// Hosts that a skill contacts, and MCP servers.
    Interrogating {
        sources: Vec<String>,
    },
    Compressing,
    Reviewing {
        task: String,
    },
    Synthesizing,
}

impl Thought {
    /// Returns a stable identifier for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Analyzing => "analyzing",
            Self::Routing | Self::Routed { .. } => "routing",
            Self::Planning { .. } => "planning",
            Self::Briefing { .. } => "briefing",
            Self::Thinking => "thinking",
            Self::Reasoning { .. } => "reasoning",
            Self::Working { .. } => "working",
            Self::Interrogating { .. } => "interrogating",
            Self::Compressing => "compressing",
            Self::Reviewing { .. } => "reviewing",
            Self::Synthesizing => "synthesizing",
        }
    }

    /// Returns the text for a person.
    pub fn text(&self) -> String {
        match self {
            Self::Analyzing => "looking at the request".to_owned(),
            Self::Routing => "finding out what it needs".to_owned(),
            Self::Routed { categories } => format!("Routing intent to [{}]", categories.join(", ")),
            Self::Planning { attempt: 1 } => "planning".to_owned(),
            Self::Planning { attempt } => format!("planning, attempt {attempt}"),
            Self::Briefing { task } => format!("preparing {task}"),
            Self::Thinking => "deciding what to do next".to_owned(),
            Self::Reasoning { text } => text.clone(),
            Self::Working { what } => what.join(", "),
            Self::Interrogating { sources } => format!("Interrogating [{}]", sources.join(", ")),
            Self::Compressing => "condensing what was found so far".to_owned(),
            Self::Reviewing { task } => format!("reviewing {task}"),
            Self::Synthesizing => "writing the answer".to_owned(),
        }
    }
}

/// Reports the thoughts of a step.
pub(super) fn think(step: &Step, tools: &Tools, listener: &mut dyn Listener) {
    let thought = match step {
        Step::Admit { .. } => Thought::Analyzing,
        Step::Route { .. } => Thought::Routing,
        Step::Plan(ask) => Thought::Planning { attempt: ask.attempt },
        Step::Reason(ask) => Thought::Briefing { task: ask.task.label() },
        Step::Execute { brief, .. } if brief.task.kind == kiso_plan::plan::TaskKind::Msg => Thought::Synthesizing,
        Step::Execute { brief, .. } => {
            Thought::Working { what: vec![format!("{}/{} {}", brief.number, brief.of, brief.task.label())] }
        }
        Step::Call { calls } => Thought::Working { what: calls.iter().map(doing).collect() },
        Step::Compress(_) => Thought::Compressing,
        Step::Review(ask) => Thought::Reviewing { task: ask.report.task.label() },
        Step::Act(_) => Thought::Thinking,
        Step::Assess(_) | Step::Converse { .. } => Thought::Synthesizing,
        _ => return,
    };
    listener.thought(&thought);
    let mut sources: Vec<String> = match step {
        Step::Execute { brief, .. } => {
            let Task { skill, args, .. } = &brief.task;
            skill.iter().flat_map(|skill| tools.sources(skill, args.as_ref().unwrap_or(&Value::Null))).collect()
        }
        Step::Call { calls } => {
            let of_call =
                |call: &ToolCall| tools.sources(&call.name, &serde_json::from_str(&call.args).unwrap_or_default());
            calls.iter().flat_map(of_call).collect()
        }
        _ => return,
    };
    sources.sort_unstable();
    sources.dedup();
    if !sources.is_empty() {
        listener.thought(&Thought::Interrogating { sources });
    }
}

/// Returns a short description of a call: the first line of a command line, or the name of the tool.
fn doing(call: &ToolCall) -> String {
    let args: Value = serde_json::from_str(&call.args).unwrap_or_default();
    let command = args["command"].as_str().filter(|_| call.name == EXEC);
    match command.map(|command| command.trim().lines().next().unwrap_or_default()) {
        Some(line) if line.chars().count() > MAX_COMMAND => {
            format!("$ {}…", line.chars().take(MAX_COMMAND).collect::<String>())
        }
        Some(line) if !line.is_empty() => format!("$ {line}"),
        _ => call.name.clone(),
    }
}

/// Reports the results of an event, before the next step starts.
pub(super) fn conclude(event: &Event, listener: &mut dyn Listener) {
    if let StepResult::Routed { routing, .. } = &event.result
        && !routing.categories.is_empty()
    {
        listener.thought(&Thought::Routed { categories: routing.categories.clone() });
    }
}

/// Filters a model's text for the listener: removes secrets and banners, wherever the text is split. A self-assessment, which has
/// a banner, is not streamed.
pub(super) struct Voice<'a> {
    role: Role,
    secrets: &'a Secrets,
    /// `None` once the text has ended.
    filters: Option<(kiso_store::secret::RedactionStream, Stripper)>,
    /// The incomplete line of thought.
    line: String,
    /// The filter that removes secrets from thoughts; `None` between them.
    reasoning: Option<kiso_store::secret::RedactionStream>,
    listener: &'a mut dyn Listener,
}

impl<'a> Voice<'a> {
    pub(super) fn new(role: Role, secrets: &'a Secrets, listener: &'a mut dyn Listener) -> Self {
        let filters = Some((secrets.streaming(), Stripper::default()));
        Self { role, secrets, filters, line: String::new(), reasoning: None, listener }
    }

    /// Passes on text that was held back.
    pub(super) fn finish(&mut self) {
        self.end_reasoning();
        self.end_line();
        if let Some((stream, mut stripper)) = self.filters.take() {
            let rest = stripper.push(&stream.finish()) + &stripper.finish();
            self.tell(&rest);
        }
    }

    /// Passes on the rest of the thoughts.
    fn end_reasoning(&mut self) {
        if let Some(stream) = self.reasoning.take() {
            let rest = stream.finish();
            if !rest.is_empty() {
                self.listener.reasoning(self.role, &rest);
            }
        }
    }

    /// Passes on the incomplete line of thought.
    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let line = self.secrets.redact(&line);
        let mut text: String = line.trim().chars().take(MAX_LINE).collect();
        if !text.is_empty() {
            if text.len() < line.trim().len() {
                text.push('…');
            }
            self.listener.thought(&Thought::Reasoning { text });
        }
    }

    fn tell(&mut self, text: &str) {
        if !text.is_empty() {
            self.listener.token(self.role, text);
        }
    }
}

impl Sink for Voice<'_> {
    fn text(&mut self, piece: &str) {
        self.end_reasoning();
        self.end_line();
        let begin = || (self.secrets.streaming(), Stripper::default());
        let (stream, stripper) = self.filters.get_or_insert_with(begin);
        let shown = stripper.push(&stream.push(piece));
        self.tell(&shown);
    }

    /// Passes on thoughts as they arrive, and also line by line, because a status line is read as a whole.
    fn thought(&mut self, piece: &str) {
        let shown = self.reasoning.get_or_insert_with(|| self.secrets.streaming()).push(piece);
        if !shown.is_empty() {
            self.listener.reasoning(self.role, &shown);
        }
        for part in piece.split_inclusive('\n') {
            if self.line.len() < MAX_HELD {
                self.line.push_str(part);
            }
            if part.ends_with('\n') {
                self.end_line();
            }
        }
    }

    fn restart(&mut self) {
        self.filters = Some((self.secrets.streaming(), Stripper::default()));
        self.listener.restart(self.role);
    }
}
