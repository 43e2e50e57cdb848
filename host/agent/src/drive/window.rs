//! The window of a session: the last messages of the segment, with their calls.
//!
//! "User messages, assistant responses, tool calls, and tool results all count as individual messages; a single tool call +
//! result pair uses two window slots." Calls are those of the action loop, and the command lines and skills of a plan.

use super::{DriveError, RunExecutor, SEALED_RUN, boundary};
use kiso_base::home::SessionName;
use kiso_base::role::Role;
use kiso_graph::run::{RunSpec, Segment};
use kiso_graph::step::{Event, StepResult};
use kiso_plan::call::ToolCall;
use kiso_plan::label::{Integrity, Label};
use kiso_plan::plan::{Task, TaskKind};
use kiso_plan::prompt::{ATTACHED, ChatMessage, UNTYPED};
use kiso_plan::report::TaskReport;
use kiso_store::memory::with_day;
use kiso_store::scratchpad::truncate_middle;
use kiso_store::store::{self, Fact, LabelledRow, MAX_JOINED, Message, MessageRole, RunId, StoreError, USER, View};
use std::collections::{BTreeSet, HashMap};
use std::ops::RangeInclusive;

/// Number of waiting messages that are examined when a turn may continue.
pub(super) const WAITING: u32 = 20;

/// Maximum number of facts for a prompt; the context shows those that fit.
const MAX_FACTS: u32 = 100;

/// Author of a call with its result.
pub(super) const CALL: &str = "call";

/// Tokens of a call's arguments that the window shows in any context, and the share of a larger context: arguments are scripts
/// and texts of files, to which the next message refers.
const ARGS: usize = 250;
const ARGS_SHARE: u64 = 64;

/// Tokens of its result. Of a larger one, head and tail are shown, with the ref of the archived whole if there is one. The reply
/// has the important parts.
const RESULT: usize = 400;

/// Separates a call from its result.
const RESULT_MARK: &str = "\nresult [";

/// Number of window slots for a call and its result, which are never separated.
const PAIR: usize = 2;

/// Part of a full window that is dropped at once, as a divisor, instead of one message for each new one: the rest then begins
/// with the same messages for a while, so models need not read it again. A summary contains the dropped messages.
const HOP: usize = 2;

/// A window with a smaller hop slides by single messages.
const LEAST_HOP: usize = 4;

/// A full window grows to this multiple of its slots while no summary contains the messages to be dropped. Even without a working
/// summarizer, prompts do not get longer than that.
const STRETCH: usize = 2;

/// Events that contain calls.
const KINDS: [&str; 5] = ["retrieved", "acted", "called", "executed", "finished"];

/// A message of the window: its number if it is stored, its content, and its label.
type WindowMessage = (Option<i64>, ChatMessage, Label);

/// The session's knowledge before a run.
#[derive(Debug, Clone)]
pub(super) struct Earlier {
    pub messages: Vec<ChatMessage>,
    pub summary: Option<String>,
    /// Core memory as text; `None` if it is empty.
    pub core: Option<String>,
    pub facts: Vec<KnownFact>,
    /// Times of the messages in the window or the summary.
    pub told: Vec<RangeInclusive<i64>>,
    /// The parts that its prompts share with earlier ones.
    pub segment: Segment,
    /// The message with which the window begins as soon as a summary contains those before it; 0 for the first of the segment.
    pub leaves: i64,
    /// Label of each message.
    pub labels: Vec<Label>,
    pub summary_label: Label,
    pub core_label: Label,
}

/// A fact in the form for prompts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KnownFact {
    /// With its day.
    pub line: String,
    /// Whether the user has stated it.
    pub is_stated: bool,
}

impl KnownFact {
    /// Returns the fact without its day.
    pub(super) fn text(&self) -> &str {
        self.line.rsplit_once(" (").map_or(self.line.as_str(), |(text, _)| text)
    }
}

impl From<Fact> for KnownFact {
    fn from(fact: Fact) -> Self {
        Self { line: with_day(&fact.text, fact.at_ms), is_stated: fact.source == USER }
    }
}

impl Earlier {
    /// Returns the lowest integrity of what router and planner see.
    pub(super) fn shown(&self) -> Integrity {
        let all = self.labels.iter().chain([&self.summary_label, &self.core_label]);
        all.filter(|label| label.is_shown_to_planners()).map(|label| label.integrity).max().unwrap_or_default()
    }

    /// Returns the joined label of everything.
    pub(super) fn label(&self) -> Label {
        let mut label = Label::join_all(&self.labels);
        if self.summary.is_some() {
            label.join(&self.summary_label);
        }
        if self.core.is_some() {
            label.join(&self.core_label);
        }
        if !self.facts.is_empty() {
            label.join(&Label::session());
        }
        label
    }
}

impl RunExecutor {
    /// Returns the session's knowledge before this run.
    pub(super) async fn earlier(
        &self,
        session: &SessionName,
        run: Option<&RunId>,
        subagent: bool,
    ) -> Result<Earlier, DriveError> {
        let slots = if subagent { self.config.context.subagent_window } else { self.window() };
        let slots = u32::try_from(slots).unwrap_or(u32::MAX);
        let (session, run) = (session.clone(), run.cloned());
        let read = self.store.read(move |view| {
            let most = slots.saturating_mul(if hop(slots as usize) > 0 { STRETCH as u32 } else { 1 });
            let mut messages = view.last_of_segment(&session, most.saturating_add(MAX_JOINED + WAITING))?;
            // Excludes messages that wait for their own run, and those of the run itself, which its lane already contains.
            messages.retain(|message| match &message.run {
                Some(of) => run.as_ref() != Some(of),
                None => message.role != MessageRole::User,
            });
            messages.drain(..messages.len().saturating_sub(most as usize));
            let calls = events_of_calls(view, &messages, most)?;
            let untyped = if subagent { BTreeSet::new() } else { view.untyped(&messages)? };
            let facts = view.trusted_facts(MAX_FACTS)?.into_iter().map(KnownFact::from).collect();
            let summary = view.summary(&session)?;
            let mut told = Vec::new();
            if let Some(summary) = &summary
                && let Some((_, last)) = view.message(summary.to)?
            {
                let begun = view.segments(&session)?.last().map_or(i64::MIN, |(_, at_ms)| *at_ms);
                told.push(begun..=last.at_ms);
            }
            let last = messages.iter().rev().find_map(|message| message.run.as_ref());
            let spec = last.map(|run| view.event(run, 0)).transpose()?.flatten();
            let mut labels = HashMap::new();
            if view.has_labels()? {
                for message in &messages {
                    labels.insert(message.id, view.label(LabelledRow::Message, message.id)?);
                }
            }
            let of_rows = (labels, view.summary_label(&session)?, view.core_label()?);
            Ok((messages, calls, untyped, (summary, told), facts, spec, of_rows))
        });
        let (messages, calls, untyped, (summary, mut told), facts, spec, of_rows) = read.await?;
        let (of_messages, summary_label, core_label) = of_rows;
        let mut segment = spec.and_then(|spec| self.segment_of(&spec)).unwrap_or_default();
        if segment.boundary.is_empty() {
            segment.boundary = boundary();
        }
        let core = kiso_store::memory::render_core(&kiso_store::memory::core(&self.store).await?);
        let core = (!core.is_empty()).then_some(core);
        let summarized = summary.as_ref().map_or(0, |summary| summary.to);
        let summary = summary.map(|summary| kiso_graph::summary::render_parts(&summary.sources, &summary.text));
        let times: HashMap<i64, i64> = messages.iter().map(|message| (message.id, message.at_ms)).collect();
        let mut messages = self.with_calls(messages, calls).await?;
        for (_, message, _) in messages.iter_mut().filter(|(id, ..)| id.is_some_and(|id| untyped.contains(&id))) {
            message.from = UNTYPED.to_owned();
        }
        for (id, _, label) in &mut messages {
            if let Some(known) = id.and_then(|id| of_messages.get(&id)) {
                label.join(known);
            }
        }
        let window = last_of(messages, slots as usize, segment.window, summarized);
        segment.window = window.begins;
        let (messages, labels) = window.messages.into_iter().unzip();
        let leaves = window.leaves;
        told.extend(times.get(&window.begins).map(|begins| *begins..=i64::MAX));
        Ok(Earlier { messages, summary, core, facts, told, segment, leaves, labels, summary_label, core_label })
    }

    /// Returns the number of slots in the window of a session.
    pub(super) fn window(&self) -> u64 {
        self.config.window_at(self.models.settings(Role::Actor).context)
    }

    /// Returns the maximum size in tokens of a call's arguments in the window.
    fn args_tokens(&self) -> usize {
        let share = self.models.settings(Role::Actor).context / ARGS_SHARE;
        usize::try_from(share).unwrap_or(usize::MAX).max(ARGS)
    }

    /// Returns the parts that the prompts of this run, given by its first event, shared with earlier ones.
    fn segment_of(&self, spec: &store::Event) -> Option<Segment> {
        let body = self.vault.open_text(SEALED_RUN, &spec.body).ok()?;
        Some(serde_json::from_str::<RunSpec>(&body).ok()?.segment)
    }

    /// Returns the messages with their numbers, and their calls, oldest first.
    async fn with_calls(
        &self,
        messages: Vec<Message>,
        mut events: HashMap<RunId, Vec<store::Event>>,
    ) -> Result<Vec<WindowMessage>, DriveError> {
        // Calls come after the first message of their run. Assigned from the end: the calls of each cycle precede its reply, and
        // calls without a reply follow the last message of their run.
        let mut calls: HashMap<RunId, Vec<Vec<(ChatMessage, Label)>>> = HashMap::new();
        let mut window: Vec<Vec<WindowMessage>> = Vec::new();
        let called = |calls: Vec<_>| calls.into_iter().map(|(call, label)| (None, call, label)).collect();
        let places: Vec<_> = messages.iter().map(|message| (message.id, message.role, message.run.clone())).collect();
        for ((id, role, run), said) in places.into_iter().zip(self.to_chat_messages(messages).await?).rev() {
            if let Some(run) = &run
                && let Some(events) = events.remove(run)
            {
                let mut cycles = self.cycles(&events);
                window.push(called(cycles.pop().unwrap_or_default()));
                calls.insert(run.clone(), cycles);
            }
            window.push(vec![(Some(id), said, Label::default())]);
            if role == MessageRole::Assistant
                && let Some(cycles) = run.as_ref().and_then(|run| calls.get_mut(run))
            {
                window.push(called(cycles.pop().unwrap_or_default()));
            }
        }
        Ok(window.into_iter().rev().flatten().collect())
    }

    /// Returns the calls of a run with their results: a list for each cycle, and one for calls without a reply. Unreadable events
    /// are left out, because the messages matter more.
    #[expect(clippy::expect_used, reason = "there is one from the beginning")]
    fn cycles(&self, events: &[store::Event]) -> Vec<Vec<(ChatMessage, Label)>> {
        let (mut cycles, mut wanted, most) = (vec![Vec::new()], Vec::new(), self.args_tokens());
        // Later calls were decided from earlier results.
        let mut seen = Label::default();
        for event in events {
            let Ok(body) = self.vault.open_text(SEALED_RUN, &event.body) else { continue };
            let Ok(event) = serde_json::from_str::<Event>(&body) else { continue };
            let cycle = cycles.last_mut().expect("there is one from the beginning");
            match event.result {
                StepResult::Retrieved { attached, .. } if attached.shows_any() => {
                    seen.join(&attached.label);
                    cycle.push((ChatMessage::attached(attached.text(), &attached.pictures), seen.clone()));
                }
                StepResult::Acted { calls, .. } => wanted = calls,
                StepResult::Called { results } => {
                    results.iter().for_each(|result| seen.join(&result.label));
                    cycle.extend(results.iter().filter_map(|result| {
                        let call: &ToolCall = wanted.iter().find(|call| call.id == result.id)?;
                        let (called, status) = (format!("{} {}", call.name, call.args), result.status.name());
                        let pair = pair(&called, most, status, &result.text);
                        Some((pair, seen.clone()))
                    }));
                    let pictures: Vec<_> = results.into_iter().flat_map(|result| result.pictures).collect();
                    if !pictures.is_empty() {
                        cycle.push((ChatMessage::attached(String::new(), &pictures), seen.clone()));
                    }
                }
                StepResult::Executed { report, .. } => {
                    seen.join(&report.label);
                    cycle.extend(of_task(&report, most).map(|call| (call, seen.clone())));
                }
                StepResult::Finished { .. } => cycles.push(Vec::new()),
                _ => {}
            }
        }
        cycles
    }
}

/// Returns the number of window slots that messages take.
pub(super) fn slots_of(messages: &[ChatMessage]) -> usize {
    messages.iter().map(slots_of_message).sum()
}

fn slots_of_message(message: &ChatMessage) -> usize {
    match message.from.as_str() {
        CALL => PAIR,
        ATTACHED => 0,
        _ => 1,
    }
}

/// Returns the number of slots that a step of a run takes in the window of later runs.
pub(super) fn slots_of_result(result: &StepResult) -> usize {
    match result {
        // The message, and the reply to it.
        StepResult::Admitted { .. } | StepResult::Finished { .. } => 1,
        StepResult::Called { results } => PAIR * results.len(),
        StepResult::Executed { report, .. } if !matches!(report.task.kind, TaskKind::Msg | TaskKind::Act) => PAIR,
        _ => 0,
    }
}

/// Returns the number of slots that a full window of this size drops; 0 if it slides by single messages.
pub(super) fn hop(slots: usize) -> usize {
    if slots / HOP < LEAST_HOP { 0 } else { slots / HOP }
}

/// The part of a conversation that prompts show.
#[derive(Debug, PartialEq)]
struct Window {
    messages: Vec<(ChatMessage, Label)>,
    /// The first message with a number.
    begins: i64,
    /// As in [`Earlier::leaves`].
    leaves: i64,
}

/// Returns the window of `said` with this number of slots, which began with the message `from`. It grows until it is full; then
/// it begins with a later question, as soon as a summary up to the message `summarized` contains everything before that.
fn last_of(mut said: Vec<WindowMessage>, slots: usize, from: i64, summarized: i64) -> Window {
    let newest = |said: &[WindowMessage], slots: usize| {
        let mut left = slots;
        let fit = said.iter().rev().map_while(|(_, message, _)| {
            left = left.checked_sub(slots_of_message(message))?;
            Some(())
        });
        said.len() - fit.count()
    };
    let number = |said: &[WindowMessage]| said.iter().find_map(|(id, ..)| *id).unwrap_or(0);
    let asks = |at: &usize| said.get(*at).is_some_and(|(id, message, _)| id.is_some() && message.from == "user");
    // If more messages arrived than the window has slots, its former beginning is not among them.
    let began = if from == 0 { Some(0) } else { said.iter().position(|(id, ..)| *id == Some(from)) };
    let hop = hop(slots);
    let mut first = newest(&said, slots).max(began.unwrap_or(0));
    let longest = newest(&said, slots.saturating_mul(STRETCH));
    let kept = longest.max(began.unwrap_or(0));
    if began != Some(first) && hop > 0 && !said.is_empty() {
        let later = newest(&said, slots - hop);
        let question = (first..=later.min(said.len() - 1)).rfind(asks);
        // A single turn with many calls can fill the window: it is dropped together with its question, or as a whole.
        let question = question.or_else(|| (kept..first).rfind(asks)).or_else(|| (first..said.len()).find(asks));
        first = question.unwrap_or(first);
    }
    let leaves = number(&said[first..]);
    let is_overdue = began.is_none_or(|began| began < longest);
    let unsummarized = said.iter().position(|(id, ..)| id.is_some_and(|id| id > summarized)).unwrap_or(said.len());
    if hop > 0 && kept < first && unsummarized < first && (unsummarized > kept || !is_overdue) {
        first = (kept..=unsummarized).rfind(asks).unwrap_or(kept);
    }
    let said = said.split_off(first);
    let begins = number(&said);
    Window { messages: said.into_iter().map(|(_, message, label)| (message, label)).collect(), begins, leaves }
}

/// Returns the events with calls of these messages' runs, each in order: of the newest runs, until the window is full.
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
        // At most four events per call: its message, the request, the result, and the end of its cycle.
        let mut last = view.last_events(run, &KINDS, slots.saturating_mul(4))?;
        last.reverse();
        used += PAIR * last.iter().filter(|event| event.kind == "called" || event.kind == "executed").count();
        events.insert(run.clone(), last);
    }
    Ok(events)
}

/// Returns a command line or a skill of a plan; `None` for a message of a plan, which is not a call.
fn of_task(report: &TaskReport, most: usize) -> Option<ChatMessage> {
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
    Some(pair(&call, most, if trouble.is_some() { "error" } else { "ok" }, &text.join("\n")))
}

/// Joins a call and its result, so that nothing can come between them. At most `most` tokens of the call are shown.
fn pair(call: &str, most: usize, status: &str, result: &str) -> ChatMessage {
    let text = format!(
        "{}{RESULT_MARK}{status}]: {}",
        truncate_middle(call.trim(), most),
        truncate_middle(result.trim_end(), RESULT)
    );
    ChatMessage::new(CALL, text)
}

/// Returns a call with its status, but without its result.
pub(super) fn without_result(message: ChatMessage) -> ChatMessage {
    if message.from != CALL {
        return message;
    }
    let Some((call, result)) = message.text.split_once(RESULT_MARK) else { return message };
    let status = result.split_once(']').map_or("", |(status, _)| status);
    ChatMessage { text: format!("{}{RESULT_MARK}{status}]", truncate_middle(call, ARGS)), ..message }
}

pub(super) fn chat(role: MessageRole, text: &str) -> ChatMessage {
    let from = match role {
        MessageRole::User => "user",
        MessageRole::Assistant => "assistant",
    };
    ChatMessage::new(from, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(count: i64) -> Vec<WindowMessage> {
        let message = |id: i64| {
            (
                Some(id),
                chat([MessageRole::Assistant, MessageRole::User][id as usize % 2], &id.to_string()),
                Label::session(),
            )
        };
        (1..=count).map(message).collect()
    }

    fn texts(window: &Window) -> Vec<&str> {
        window.messages.iter().map(|(message, _)| message.text.as_str()).collect()
    }

    /// A window that is full at every message would force the model to read all of it again each time.
    #[test]
    fn a_full_window_begins_later_and_stays_there() {
        let (mut from, mut begins, mut summarized) = (0, Vec::new(), 0);
        for turns in 1..=40 {
            // Only this many are read.
            let read = messages(turns * 2).split_off((turns as usize * 2).saturating_sub(20));
            let window = last_of(read, 20, from, summarized);
            let shown = texts(&window);
            assert!(shown.len() <= 20 && shown.len() >= 10.min(turns as usize * 2), "{} of turn {turns}", shown.len());
            assert_eq!(*shown.last().unwrap(), (turns * 2).to_string());
            assert_eq!(window.messages[0].0.from, "user", "it begins with a question");
            from = window.begins;
            begins.push(window.begins);
            // The next reply makes it full.
            summarized = last_of(messages(turns * 2 + 2), 20, from, 0).leaves - 1;
        }
        begins.dedup();
        assert!(begins.len() <= 8, "{begins:?}");
        // A small window is too small for that.
        let window = last_of(messages(9), 5, 1, 0);
        assert_eq!((window.messages.len(), window.begins, window.leaves), (5, 5, 5));
    }

    /// Rule: "after queue completion, if raw messages > summarize_threshold" and "sliding window last N messages": no message is
    /// outside both.
    #[test]
    fn a_message_stays_in_the_window_until_a_summary_holds_it() {
        for slots in [8, 20, 33] {
            // A summary that is made at once, late, in parts, or never.
            for (late, part) in [(0, i64::MAX), (3, i64::MAX), (0, 3), (i64::MAX, 0)] {
                let (mut from, mut summarized, mut full_since, mut longest) = (0, 0, None, 0);
                for turns in 1..=60_i64 {
                    let read = messages(turns * 2).split_off((turns as usize * 2).saturating_sub(slots * STRETCH));
                    let window = last_of(read, slots, from, summarized);
                    assert!(window.begins >= from, "it never goes back");
                    from = window.begins;
                    longest = longest.max(window.messages.len());
                    if late < i64::MAX {
                        assert!(from <= summarized + 1, "{} to {from} are nowhere", summarized + 1);
                    }
                    // Background work after the reply.
                    if window.leaves > summarized + 1 {
                        let since = *full_since.get_or_insert(turns);
                        if turns - since >= late {
                            summarized = (window.leaves - 1).min(summarized.saturating_add(part));
                            full_since = None;
                        }
                    }
                }
                assert!(longest <= slots * STRETCH, "{longest} of {slots}");
                assert!(late > 0 || part < i64::MAX || longest <= slots + 2, "{longest} of {slots}");
            }
        }
    }

    /// A turn with more calls than window slots keeps its question, as long as there is space for both.
    #[test]
    fn a_turn_with_many_calls_keeps_its_question() {
        let with_calls = |calls: usize, turns: i64| {
            let mut said = messages(turns * 2);
            let call = (None, pair("ls", ARGS, "ok", "a"), Label::session());
            said.splice(1..1, std::iter::repeat_n(call, calls));
            said
        };
        for (calls, turns, begins) in [(16, 1, 1), (16, 4, 1), (19, 1, 1), (19, 2, 3), (30, 2, 3), (30, 1, 2)] {
            let window = last_of(with_calls(calls, turns), 20, 0, 0);
            assert_eq!((window.begins, window.leaves), (begins, begins), "{calls} calls, {turns} turns");
        }
    }

    /// The planner sees the replies, which contain the important parts of the results.
    #[test]
    fn a_call_can_be_told_without_its_result() {
        let script = "x".repeat(6_000);
        let call = pair(&script, 2_000, "error", &"a line\n".repeat(1_000));
        assert!(call.text.starts_with(&script) && call.text.contains("lines left out"), "{}", call.text);
        let bare = without_result(call).text;
        assert!(bare.ends_with("\nresult [error]") && !bare.contains("a line") && bare.len() < 1_200, "{bare}");
        let withheld = ChatMessage::new(CALL, "[call of 9 characters]");
        assert_eq!(without_result(withheld.clone()), withheld);
        let said = chat(MessageRole::User, "a\nresult [ok]: b");
        assert_eq!(without_result(said.clone()), said);
    }

    /// Entries between two messages have no number and stay with their message.
    #[test]
    fn a_call_goes_with_its_message() {
        let mut with_calls = messages(24);
        for at in [22, 20, 9, 5] {
            with_calls.insert(at, (None, pair("ls", ARGS, "ok", "a"), Label::session()));
        }
        let window = last_of(with_calls.clone(), 20, 0, 24);
        assert_eq!(window.messages[0].0.text, window.begins.to_string());
        assert_eq!(last_of(with_calls, 20, window.begins, 24), window);
    }
}
