//! The window of a session: the last messages of the segment, with what was called for them.
//!
//! "User messages, assistant responses, tool calls, and tool results all count as individual messages; a single tool call +
//! result pair uses two window slots." Calls are those of the action loop, and the command lines and skills of a plan.

use super::arrival::WAITING;
use super::perform::RunContext;
use super::{DriveError, RunExecutor, SEALED_RUN};
use crate::graph::lane::{Entry, SharedKind, ToolCall};
use crate::graph::plan::{Task, TaskKind};
use crate::graph::report::TaskReport;
use crate::graph::run::Run;
use crate::graph::step::{Event, StepResult};
use crate::home::SessionName;
use crate::llm::prompt::{ChatMessage, Pieces};
use crate::scratchpad::truncate_middle;
use crate::store::{self, MAX_JOINED, Message, MessageRole, RunId, StoreError, View};
use std::collections::HashMap;

/// Facts that a prompt is made from; the context shows those that fit.
const MAX_FACTS: u32 = 100;

/// Who "says" a call with its result.
pub(super) const CALL: &str = "call";

/// Tokens of a call's arguments, and of its result, that the window shows: of a result that is larger the head and the tail,
/// with the ref under which the whole is to be had if it was archived.
const ARGS: usize = 250;
const RESULT: usize = 1_000;

/// Slots of the window that a call takes with its result, which are never separated.
const PAIR: usize = 2;

/// Events that tell of calls.
const KINDS: [&str; 4] = ["acted", "called", "executed", "finished"];

/// What the session knows before a run.
#[derive(Debug, Clone)]
pub(super) struct Earlier {
    pub messages: Vec<ChatMessage>,
    pub summary: Option<String>,
    /// Core memory as text; `None` where it is empty.
    pub core: Option<String>,
    pub facts: Vec<String>,
}

impl RunExecutor {
    /// What the session knows before this run.
    pub(super) async fn earlier(
        &self,
        session: &SessionName,
        run: Option<&RunId>,
        subagent: bool,
    ) -> Result<Earlier, DriveError> {
        let context = &self.config.context;
        let slots = if subagent { context.subagent_window } else { context.sliding_window };
        let slots = u32::try_from(slots).unwrap_or(u32::MAX);
        let (session, run) = (session.clone(), run.cloned());
        let read = self.store.read(move |view| {
            let mut messages = view.last_of_segment(&session, slots.saturating_add(MAX_JOINED + WAITING))?;
            // Nobody has heard yet what waits for a run of its own. Of the run itself, its lane knows what was said.
            messages.retain(|message| match &message.run {
                Some(of) => run.as_ref() != Some(of),
                None => message.role != MessageRole::User,
            });
            messages.drain(..messages.len().saturating_sub(slots as usize));
            let calls = events_of_calls(view, &messages, slots)?;
            let facts = view.facts(MAX_FACTS)?.into_iter().map(|fact| fact.text).collect();
            Ok((messages, calls, view.summary(&session)?, facts))
        });
        let (messages, calls, summary, facts) = read.await?;
        let core = crate::memory::render_core(&crate::memory::core(&self.store).await?);
        let core = (!core.is_empty()).then_some(core);
        let summary = summary.map(|summary| crate::graph::summary::render_parts(&summary.sources, &summary.text));
        let messages = self.with_calls(messages, calls, slots as usize).await?;
        Ok(Earlier { messages, summary, core, facts })
    }

    /// The last `slots` of the messages and of the calls that were made for them, oldest first.
    async fn with_calls(
        &self,
        messages: Vec<Message>,
        mut events: HashMap<RunId, Vec<store::Event>>,
        slots: usize,
    ) -> Result<Vec<ChatMessage>, DriveError> {
        // Behind the message that stands first: from the end, the calls of each cycle go before its reply, and what no reply
        // follows goes behind the last message of its run.
        let mut calls: HashMap<RunId, Vec<Vec<ChatMessage>>> = HashMap::new();
        let mut window: Vec<Vec<ChatMessage>> = Vec::new();
        let places: Vec<_> = messages.iter().map(|message| (message.role, message.run.clone())).collect();
        for ((role, run), said) in places.into_iter().zip(self.said(messages).await?).rev() {
            if let Some(run) = &run
                && let Some(events) = events.remove(run)
            {
                let mut cycles = self.cycles(&events);
                window.push(cycles.pop().unwrap_or_default());
                calls.insert(run.clone(), cycles);
            }
            window.push(vec![said]);
            if role == MessageRole::Assistant
                && let Some(cycles) = run.as_ref().and_then(|run| calls.get_mut(run))
            {
                window.push(cycles.pop().unwrap_or_default());
            }
        }
        let mut left = slots;
        let newest_first = window.into_iter().flat_map(|part| part.into_iter().rev());
        let fit = newest_first.map_while(|message| {
            let takes = if message.from == CALL { PAIR } else { 1 };
            left = left.checked_sub(takes)?;
            Some(message)
        });
        let mut fit: Vec<_> = fit.collect();
        fit.reverse();
        Ok(fit)
    }

    /// The calls of a run with their results, a list for each of its cycles and one for what no reply followed. What cannot be read
    /// is left out: the messages matter more.
    fn cycles(&self, events: &[store::Event]) -> Vec<Vec<ChatMessage>> {
        let (mut cycles, mut wanted) = (vec![Vec::new()], Vec::new());
        for event in events {
            let Ok(body) = self.vault.open_text(SEALED_RUN, &event.body) else { continue };
            let Ok(event) = serde_json::from_str::<Event>(&body) else { continue };
            let cycle = cycles.last_mut().expect("there is one from the beginning");
            match event.result {
                StepResult::Acted { calls, .. } => wanted = calls,
                StepResult::Called { results } => cycle.extend(results.iter().filter_map(|result| {
                    let call: &ToolCall = wanted.iter().find(|call| call.id == result.id)?;
                    Some(pair(&format!("{} {}", call.name, call.args), result.status.name(), &result.text))
                })),
                StepResult::Executed { report, .. } => cycle.extend(of_task(&report)),
                StepResult::Finished { .. } => cycles.push(Vec::new()),
                _ => {}
            }
        }
        cycles
    }
}

impl RunContext<'_> {
    /// What the session knows: the part of every prompt that talks to the user.
    pub fn known(&self, run: &Run) -> Pieces {
        let Earlier { summary, core, facts, .. } = &self.earlier;
        let memory = run.lane().shared(SharedKind::ObservationalMemory);
        Pieces {
            messages: Some(self.talk(run, &[])),
            summary: summary.clone(),
            memory: memory.map(|text| text.lines().map(str::to_owned).collect()),
            guidance: self.guidance(),
            core: core.clone(),
            facts: (!facts.is_empty()).then(|| facts.clone()),
            ..Pieces::default()
        }
    }

    /// What was said before the message that the run is at: before the run, and in earlier cycles of it, but for the
    /// `replies` that stand elsewhere in the prompt.
    pub fn talk(&self, run: &Run, replies: &[String]) -> Vec<ChatMessage> {
        let mut messages = self.earlier.messages.clone();
        let said = |from: &str, text: &String| Some(ChatMessage { from: from.to_owned(), text: text.clone() });
        messages.extend(run.lane().earlier_cycles().filter_map(|entry| match entry {
            Entry::User(text) => said("user", text),
            Entry::Assistant(text) if !replies.contains(text) => said("assistant", text),
            _ => None,
        }));
        messages
    }
}

/// The events that tell of calls of the runs that the messages are of, each in order: of the newest runs, until the window is full.
fn events_of_calls(
    view: &View<'_>,
    messages: &[Message],
    slots: u32,
) -> Result<HashMap<RunId, Vec<store::Event>>, StoreError> {
    let (mut events, mut used) = (HashMap::new(), 0);
    for message in messages.iter().rev() {
        if used >= slots as usize {
            break;
        }
        used += 1;
        let Some(run) = message.run.as_ref().filter(|run| !events.contains_key(*run)) else { continue };
        // For each call at most: what was wanted, what came of it, and the end of its cycle.
        let mut last = view.last_events(run, &KINDS, slots.saturating_mul(3))?;
        last.reverse();
        used += PAIR * last.iter().filter(|event| event.kind == "called" || event.kind == "executed").count();
        events.insert(run.clone(), last);
    }
    Ok(events)
}

/// A command line or a skill of a plan. A message of a plan is not a call.
fn of_task(report: &TaskReport) -> Option<ChatMessage> {
    let Task { kind, detail, args, .. } = &report.task;
    let call = match kind {
        TaskKind::Exec => format!("$ {}", detail.trim()),
        TaskKind::Skill => {
            let args = args.as_ref().map(ToString::to_string).unwrap_or_default();
            format!("{} {args}", report.task.skill.as_deref().unwrap_or(detail))
        }
        TaskKind::Msg | TaskKind::Act => return None,
    };
    let trouble = report.trouble();
    let parts = [trouble.as_deref(), Some(report.text.as_str()), Some(report.stderr.as_str())];
    let text: Vec<_> = parts.into_iter().flatten().map(str::trim_end).filter(|part| !part.is_empty()).collect();
    Some(pair(&call, if trouble.is_some() { "error" } else { "ok" }, &text.join("\n")))
}

/// A call and its result in one, so that nothing can come between them.
fn pair(call: &str, status: &str, result: &str) -> ChatMessage {
    let text = format!(
        "{}\nresult [{status}]: {}",
        truncate_middle(call.trim(), ARGS),
        truncate_middle(result.trim_end(), RESULT)
    );
    ChatMessage { from: CALL.to_owned(), text }
}

pub(super) fn chat(role: MessageRole, text: &str) -> ChatMessage {
    let from = match role {
        MessageRole::User => "user",
        MessageRole::Assistant => "assistant",
    };
    ChatMessage { from: from.to_owned(), text: text.to_owned() }
}
