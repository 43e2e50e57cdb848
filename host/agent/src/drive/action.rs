//! The action loop: the actor, its tools, the output guard and compression.

use super::approve::Clearance;
use super::run_context::RunContext;
use super::voice::{Listener, Voice};
use super::{DriveError, rights};
use crate::context;
use crate::node::{actor, retrieval, summarizer};
use crate::tool::ToolUses;
use crate::tool::builtin::{self, Builtins};
use kiso_base::json;
use kiso_base::role::Role;
use kiso_graph::lane::KEPT_EXCHANGES;
use kiso_graph::reflection::Status;
use kiso_graph::run::Run;
use kiso_graph::step::{ActAsk, Call, CompressAsk, StepResult, ToolResult};
use kiso_graph::summary;
use kiso_llm::{Sink, ToolSpec};
use kiso_plan::call::ToolCall;
use kiso_plan::estimate;
use kiso_plan::label::Label;
use kiso_plan::prompt::{ChatMessage, Piece, Pieces, TABLE};
use kiso_plan::report::{TaskError, TaskReport};
use kiso_sandbox::exec::Watch;
use kiso_sandbox::skill::Caller;
use kiso_store::scratchpad;
use kiso_store::store::View;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use tokio::sync::Semaphore;

/// Maximum size in tokens of the text for one call of the summarizer; a longer text is split into parts first.
const PART_TOKENS: usize = 6_000;

/// Maximum number of parts of a text, as long as the larger parts still fit into the summarizer's prompt.
const MAX_PARTS: usize = 16;

/// Maximum number of calls for one compression. The lane of a model with a million tokens of context takes half of them; more
/// indicates a summarizer that is far too small, or one that makes texts longer.
const MAX_CALLS: usize = 96;

/// Minimum size of a part in tokens, so that a context that is too small leads to an error instead of endless parts.
const LEAST_PART: usize = 64;

/// Tokens for the frame of a part and for rounding errors of the estimate.
const AROUND: usize = 64;

/// Minimum size of a result in tokens: enough for a meaningful preview.
const LEAST_RESULT: usize = 64;

impl RunContext<'_> {
    pub(super) async fn act(
        &self,
        run: &Run,
        ask: &ActAsk,
        listener: &mut dyn Listener,
    ) -> Result<StepResult, DriveError> {
        let system = self.drive.system_prompt(Role::Actor)?;
        let tools = self.specs(run, &ask.categories).await?;
        let (known, message) = (self.shown_to_actor(run, ask).await?, self.new_message(run));
        let request = actor::request(&system, &known, message, ask, tools, &self.boundary);
        let completion = if ask.direct {
            let mut voice = Voice::new(Role::Actor, &self.secrets, listener);
            let completion = self.complete_by(run, request, actor::model_role(ask), &mut voice).await?;
            if let Ok(answer) = &completion {
                voice.text(&actor::notes(answer, run.attached()));
            }
            voice.finish();
            completion
        } else {
            self.complete_by(run, request, actor::model_role(ask), &mut |_: &str| {}).await?
        };
        Ok(match completion {
            Ok(completion) => actor::read(completion, run.attached()),
            Err(none) => none.result(),
        })
    }

    /// Returns the tools of a run's actor.
    async fn specs(&self, run: &Run, categories: &[String]) -> Result<Vec<ToolSpec>, DriveError> {
        let (session, id) = (self.session.clone(), self.run.clone());
        let read = async move || {
            let read = move |view: &View<'_>| {
                let has_refs = view.has_refs(&session, scratchpad::LEDGER)?;
                let (has_past, has_schedules) = (view.has_past(&id)?, view.has_schedules()?);
                Ok(ToolUses { has_refs, has_past, has_schedules, has_plan: false })
            };
            self.drive.store.read(read).await
        };
        let uses = ToolUses { has_plan: run.has_plan(), ..*self.tool_uses.get_or_try_init(read).await? };
        let folders = self.drive.config.visible_folders(&self.drive.home, &self.session, self.caller);
        let folder = folders.unwrap_or_default().into_iter().next().map(|folder| folder.at);
        Ok(self.drive.tools.specs(categories, &self.agent_skills_in_use(run), uses, folder.as_deref()))
    }

    /// Returns the pieces of the actor's prompt. The files are those at the beginning of its task, so that each request begins
    /// like the previous one.
    async fn shown_to_actor(&self, run: &Run, ask: &ActAsk) -> Result<Pieces, DriveError> {
        let kept = self.files_of_task.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let files = match kept.filter(|_| ask.round > 0) {
            Some(files) => files,
            None => {
                let files = retrieval::environment(self.files(run).await?);
                *self.files_of_task.lock().unwrap_or_else(PoisonError::into_inner) = Some(files.clone());
                files
            }
        };
        Ok(Pieces { environment: Some(files), ..self.known_to_actor(run, ask.direct) })
    }

    pub(super) async fn assess(&self, run: &Run, ask: &ActAsk) -> Result<StepResult, DriveError> {
        let system = self.drive.system_prompt(Role::Actor)?;
        let tools = self.specs(run, &ask.categories).await?;
        let (known, message) = (self.shown_to_actor(run, ask).await?, self.new_message(run));
        let request = actor::assessment(&system, &known, message, ask, tools, &self.boundary);
        Ok(match self.complete_by(run, request, actor::model_role(ask), &mut |_: &str| {}).await? {
            Ok(completion) => {
                let call = Call { model: completion.model, usage: completion.usage };
                StepResult::Assessed { text: completion.text, call }
            }
            Err(none) => none.result(),
        })
    }

    /// Runs the calls of one answer concurrently, but in order if they share something that one of them changes.
    pub(super) async fn call_tools(
        &self,
        run: &Run,
        calls: &[ToolCall],
        listener: &mut dyn Listener,
    ) -> Result<StepResult, DriveError> {
        let categories = run.routing().map(|routing| routing.categories.clone()).unwrap_or_default();
        let allowed = self.specs(run, &categories).await?;
        let label = run.label();
        // The last exchanges stay in the lane unchanged, so each gets an equal share of it.
        let share = run.spec().policy.lane_tokens / (KEPT_EXCHANGES * calls.len().max(1));
        let limit = run.spec().limits.tool_output_limit_tokens.min(share.max(LEAST_RESULT));
        let mut at = Vec::with_capacity(calls.len());
        for (place, call) in calls.iter().enumerate() {
            let mut of = self.call_context(place, label.clone(), limit);
            if let Some(question) = builtin::question(call)
                && let Some(meaning) = self.meaning(&question).await?
            {
                if builtin::asks_documentation(call) {
                    self.drive.embed_documentation(Some(&self.session)).await?;
                }
                of.meanings.push((question, meaning));
            }
            at.push(of);
        }
        let mut clearances = Vec::with_capacity(calls.len());
        for call in calls {
            clearances.push(self.clear_call(run, call).await?);
        }
        // Values from the plan have the label of the plan.
        for (call, at) in calls.iter().zip(&mut at) {
            if run.named(call).is_some() {
                at.label = self.labels_of_call(run, call).await?.all();
            }
        }
        // Values that a person has accepted have the label of the person.
        for ((clearance, _), at) in clearances.iter().zip(&mut at) {
            if clearance.accepted_by_person().is_some() {
                at.label.integrity = at.label.integrity.min(Label::default().integrity);
            }
        }
        let mut networks = Vec::with_capacity(calls.len());
        for _ in calls {
            networks.push(self.network(run).await?);
        }
        let transactions: Vec<_> = (0..calls.len()).map(|place| self.transaction(run, place)).collect();
        let caller = |place: usize| Caller {
            session: &self.session,
            locale: &self.locale,
            secrets: &self.secrets,
            shared: rights::sees_shared(run),
            transaction: transactions[place].as_ref(),
            accepted: clearances[place].0.accepted(),
            permit: Some(&clearances[place].1),
            network: Some(&networks[place]),
        };
        let calling = calls.iter().zip(&at).enumerate();
        let uses: Vec<_> = calls.iter().map(|call| self.drive.tools.shared_use(call)).collect();
        // Effects of a card are executed in the order of the card, as the person has read it.
        let on_card: Vec<_> = clearances.iter().map(|(clearance, _)| clearance.accepted().is_some()).collect();
        let waits_for = |place: usize, earlier: usize| {
            on_card[place] && on_card[earlier] || uses[place].conflicts_with(uses[earlier])
        };
        // Each is closed when its call has ended.
        let ended: Vec<_> = calls.iter().map(|_| Semaphore::new(0)).collect();
        // All calls share the same listener.
        let listener = Mutex::new(listener);
        let heard = || listener.lock().unwrap_or_else(PoisonError::into_inner);
        let running = calling.map(async |(place, (call, at))| {
            let _ending = CloseAtEnd(&ended[place]);
            if let Clearance::Denied(error) = &clearances[place].0 {
                // Its arguments also appear in later prompts.
                let (sinks, label) = (clearances[place].1.take_log(), at.label.clone());
                return ToolResult { sinks, label, ..denied(call, error) };
            }
            for earlier in (0..place).filter(|earlier| waits_for(place, *earlier)) {
                drop(ended[earlier].acquire().await);
            }
            let (watch, began) = (Watch::default(), Instant::now());
            let mut tell = |stream: &'static str, text: &str| heard().output(place, stream, text);
            let mut result = tokio::select! {
                result = self.drive.tools.call_tool(call, &allowed, self.caller, caller(place), at, &watch) => result,
                () = watch.follow(&self.secrets, &mut tell) => unreachable!("it goes on until it is dropped"),
            };
            result.millis = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            heard().call_ended(place, &result);
            result
        });
        let mut results = futures_util::future::join_all(running).await;
        // Only for a single call, because concurrent calls would be repeated.
        if let ([call], [network], [(_, permit)], [result]) = (calls, &*networks, &*clearances, &*results)
            && result.status != Status::Ok
        {
            let task = self.drive.tools.as_task(call, json::parse(call.args.trim().as_bytes()).unwrap_or_default());
            if let Some(card) = self.card_for_wanted(run, (network, permit), &task).await? {
                return Ok(StepResult::ApprovalWanted { card });
            }
        }
        for (network, result) in networks.iter().zip(&mut results) {
            if network.is_wanting() && calls.len() > 1 {
                let hosts: Vec<_> = network.wanted().into_iter().map(|wanted| wanted.host).collect();
                result.hint = Some(format!("make this call alone; the user is then asked about {}", hosts.join(", ")));
            }
            self.guard(run, result, limit).await;
        }
        Ok(StepResult::Called { results })
    }

    /// The output guard: a result that is too large is archived, and replaced by a preview.
    async fn guard(&self, run: &Run, result: &mut ToolResult, limit: usize) {
        result.text = self.secrets.redact(&result.text);
        result.hint = result.hint.as_deref().map(|hint| self.secrets.redact(hint));
        let label = run.label().joined(&result.label);
        if Builtins::shows_scratchpad(&result.name) {
            // The end of the output is at its limit; only redaction can have made it longer.
            result.text = scratchpad::truncate_middle(&result.text, limit.saturating_mul(2));
            return;
        }
        match self.preview(&result.text, limit, &label).await {
            Preview::Whole => {}
            Preview::Archived { text, key } => (result.text, result.archived) = (text, Some(key)),
            Preview::Cut { text } => {
                result.text = text;
                result.status = if result.status == Status::Ok { Status::Partial } else { result.status };
            }
        }
    }

    /// The output guard for a task of a plan: handles each output of a command line or a skill. If there is no text, the data is
    /// what models read, and stays beside its preview for programs.
    pub(super) async fn guard_report(&self, run: &Run, report: &mut TaskReport) {
        let label = run.label().joined(&report.label);
        let limit = run.spec().limits.tool_output_limit_tokens;
        let data = report.data.as_ref().filter(|_| report.text.is_empty()).map(ToString::to_string);
        if let Some(text) = self.preview(data.as_deref().unwrap_or(&report.text), limit, &label).await.text() {
            let whole = std::mem::replace(&mut report.text, text);
            // A person has no tool for reading a ref.
            report.whole = Some(whole).filter(|whole| report.task.notify && !whole.is_empty());
        }
        if let Some(text) = self.preview(&report.stderr, limit, &label).await.text() {
            report.stderr = text;
        }
    }

    /// Archives a text that is too large for a prompt; returns its replacement.
    async fn preview(&self, text: &str, limit: usize, label: &Label) -> Preview {
        if !scratchpad::is_too_large(text, limit) {
            return Preview::Whole;
        }
        match self.put_away("tool", text.to_owned(), label).await {
            Ok(key) => Preview::Archived { text: scratchpad::preview(text, &key, limit), key },
            // A full scratchpad must not end the run: the part that fits is still useful.
            Err(error) => Preview::Cut { text: format!("{}\n[{error}]", scratchpad::truncate_middle(text, limit)) },
        }
    }

    /// Archives the source, then summarizes it: first in parts, then the summaries together (map and reduce).
    pub(super) async fn compress(&self, run: &Run, ask: &CompressAsk) -> Result<StepResult, DriveError> {
        let reference = self.put_away("context", ask.source.join("\n\n"), &run.label()).await?;
        let mut calls = Vec::new();
        // Without a summarizer, head and tail replace the whole, with the size of the gap; the archive has the rest.
        let text = self.reduce(run, ask, &mut calls).await?.unwrap_or_else(|| ask.source.join("\n\n"));
        Ok(StepResult::Compressed { reference, summary: scratchpad::truncate_middle(&text, ask.tokens), calls })
    }

    /// Summarizes the source to about `ask.tokens`; the summarizer reads every part of it. `None` if that is not possible.
    async fn reduce(&self, run: &Run, ask: &CompressAsk, calls: &mut Vec<Call>) -> Result<Option<String>, DriveError> {
        let most = self.largest_part()?;
        let (mut texts, mut left) = (ask.source.clone(), MAX_CALLS);
        loop {
            let total: usize = texts.iter().map(|text| estimate::tokens(text)).sum();
            let size = part_tokens(total, most);
            let parts = summary::chunks(texts.iter().map(String::as_str), size, &estimate::tokens);
            let Some(rest) = left.checked_sub(parts.len()) else { return Ok(None) };
            left = rest;
            let (mut said, last) = (Vec::new(), parts.len() == 1);
            for part in parts {
                match self.summarize(run, part, ask.tokens, calls).await? {
                    Some(text) => said.push(text),
                    None => return Ok(None),
                }
            }
            let Some(joined) = (if last { said.pop() } else { summary::join(&said) }) else { return Ok(None) };
            if last || estimate::tokens(&joined) <= ask.tokens {
                return Ok(Some(joined));
            }
            texts = vec![joined];
        }
    }

    /// Returns the size in tokens of the largest part that fits completely into a prompt of the summarizer.
    fn largest_part(&self) -> Result<usize, DriveError> {
        let system = self.drive.system_prompt(Role::Summarizer)?;
        let empty = ChatMessage::new("transcript", String::new());
        let request = summarizer::messages(&system, None, vec![empty], &self.boundary);
        let settings = self.drive.models.settings(Role::Summarizer);
        let around = estimate::tokens(&request.user) + AROUND;
        let cap = TABLE.iter().find(|row| row.piece == Piece::Compress).map_or(0, |row| row.cap);
        Ok(context::room(settings.context_budget, &request).min(cap).saturating_sub(around))
    }

    async fn summarize(
        &self,
        run: &Run,
        text: String,
        tokens: usize,
        calls: &mut Vec<Call>,
    ) -> Result<Option<String>, DriveError> {
        let system = self.drive.system_prompt(Role::Summarizer)?;
        let message = ChatMessage::new("transcript", text);
        let mut request = summarizer::messages(&system, None, vec![message], &self.boundary);
        request.max_tokens = request.max_tokens.min(u32::try_from(tokens).unwrap_or(u32::MAX));
        match self.complete(run, request, &mut |_: &str| {}).await? {
            Ok(completion) => {
                calls.push(Call { model: completion.model, usage: completion.usage });
                // Redacted before it is cut, because half of a secret would not be found.
                let text = self.secrets.redact(completion.text.trim());
                Ok((!text.is_empty()).then_some(text))
            }
            Err(_) => Ok(None),
        }
    }
}

/// Closes a semaphore when it is dropped, which wakes those who wait for it.
struct CloseAtEnd<'a>(&'a Semaphore);

impl Drop for CloseAtEnd<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Returns the result of a refused call.
fn denied(call: &ToolCall, error: &TaskError) -> ToolResult {
    ToolResult {
        status: Status::Blocked,
        text: error.message.clone(),
        code: Some(error.code.clone()),
        hint: Some("go on without it, or say what could not be done".to_owned()),
        ..ToolResult::blank(call)
    }
}

/// The output guard's replacement for a text.
enum Preview {
    /// The text is small enough.
    Whole,
    Archived {
        text: String,
        key: String,
    },
    /// The text could not be archived.
    Cut {
        text: String,
    },
}

impl Preview {
    /// Returns the replacement text.
    fn text(self) -> Option<String> {
        match self {
            Self::Whole => None,
            Self::Archived { text, .. } | Self::Cut { text } => Some(text),
        }
    }
}

/// Returns the size in tokens of each part of a text of `total` tokens, if a part may have at most `most`.
fn part_tokens(total: usize, most: usize) -> usize {
    PART_TOKENS.max(total.div_ceil(MAX_PARTS)).min(most).max(LEAST_PART)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_grow_with_the_text_as_far_as_the_summarizer_can_read_them() {
        for (total, most, part) in [
            (1_000, 11_000, 6_000),
            (96_000, 11_000, 6_000),
            (160_000, 11_000, 10_000),
            (450_000, 11_000, 11_000),
            (96_000, 2_000, 2_000),
            (96_000, 0, LEAST_PART),
        ] {
            assert_eq!(part_tokens(total, most), part, "{total} {most}");
        }
    }
}
