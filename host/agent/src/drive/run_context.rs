//! State that the steps of a run share, and the preparation of its requests.

use super::clean::clean;
use super::dialog::Dialogs;
use super::log::Log;
use super::prompt::as_text;
use super::spent::{Meter, MeteredModel};
use super::subagent;
use super::window::{CALL, Earlier, hop, slots_of};
use super::{DriveError, RunExecutor, boundary};
use crate::node;
use crate::tool::ToolUses;
use crate::tool::builtin::{CallContext, ReadLabel};
use kiso_base::clock::now_ms;
use kiso_base::clock::timing::say;
use kiso_base::home::SessionName;
use kiso_base::role::Role;
use kiso_graph::lane::{Entry, SharedKind};
use kiso_graph::run::{Run, RunSpec};
use kiso_graph::step::StepResult;
use kiso_llm as llm;
use kiso_llm::{Completion, LlmError, Model, Priority, Request, Sink};
use kiso_plan::label::Label;
use kiso_plan::limits::LimitReached;
use kiso_plan::plan::CallerScope;
use kiso_plan::prompt::{ChatMessage, FileCard, Pieces};
use kiso_store::memory::Meaning;
use kiso_store::scratchpad;
use kiso_store::secret::Secrets;
use kiso_store::store::RunId;
use std::sync::{Mutex, PoisonError};
use tokio::sync::OnceCell;

/// Maximum number of facts in each request of the actor; those with the highest confidence are chosen.
const STATED: usize = 20;

/// A run that is being performed.
pub(super) struct RunContext<'a> {
    pub drive: &'a RunExecutor,
    pub run: RunId,
    pub session: SessionName,
    pub caller: CallerScope,
    pub subagent: bool,
    /// Number of the last event before the step.
    pub seq: u32,
    pub secrets: Secrets,
    pub earlier: Earlier,
    /// The boundary that fences foreign text in its prompts.
    pub boundary: String,
    /// The conversations with its roles.
    pub dialogs: Dialogs,
    /// The files that retrieval found; reset when something runs.
    pub environment: Option<Vec<FileCard>>,
    /// Label of the files that the reviewer has read.
    pub looked_at: Label,
    /// The files for the actor, from its task's first round on.
    pub files_of_task: Mutex<Option<Vec<FileCard>>>,
    /// The offered tools, determined at the first call of the run's actor.
    pub tool_uses: OnceCell<ToolUses>,
    /// Time when the run started or was resumed, in the user's format, and the user's location.
    pub now: String,
    /// BCP 47 tag of the user.
    pub locale: String,
    /// The task whose transcript was archived last, and the key.
    pub transcript: Option<(usize, String)>,
    /// Messages that become the run's with the next event.
    pub taking: Vec<i64>,
    /// Number of slots that this run takes in the window of later runs.
    pub slots: usize,
    /// Prompts of models since the last event.
    asked: Mutex<Vec<(Role, String)>>,
    /// Usage of models since the last event.
    pub meter: Meter,
    /// Milliseconds that models thought before they answered.
    pub thought_ms: u64,
}

/// The outcome of a call without an answer.
pub(super) enum ModelFailure {
    Limit(LimitReached),
    Failed(LlmError),
}

impl ModelFailure {
    pub(super) fn result(self) -> StepResult {
        match self {
            Self::Limit(limit) => StepResult::Stopped { limit },
            Self::Failed(error) => StepResult::ModelFailed { message: error.to_string() },
        }
    }
}

impl<'a> RunContext<'a> {
    pub(super) fn new(drive: &'a RunExecutor, log: &Log, spec: &RunSpec, secrets: Secrets, earlier: Earlier) -> Self {
        let (run, session) = (log.id.clone(), log.session.clone());
        // A run from before the boundary was stored gets a new one in each process that resumes it.
        let locale = drive.config.locale();
        let boundary = Some(spec.segment.boundary.clone()).filter(|kept| !kept.is_empty()).unwrap_or_else(boundary);
        Self {
            drive,
            run,
            session,
            caller: spec.caller,
            subagent: spec.policy.subagent,
            seq: log.seq,
            secrets,
            earlier,
            meter: Meter::new(boundary.clone()),
            thought_ms: 0,
            boundary,
            dialogs: Dialogs::default(),
            environment: None,
            looked_at: Label::default(),
            files_of_task: Mutex::default(),
            tool_uses: OnceCell::new(),
            now: format!("{}, locale {locale}", say(now_ms(), &drive.config.zone())),
            locale,
            transcript: None,
            taking: Vec::new(),
            slots: 0,
            asked: Mutex::default(),
        }
    }

    /// Returns the session's knowledge: the part of every prompt that is for talking to the user.
    pub(super) fn known(&self, run: &Run) -> Pieces {
        let Earlier { summary, core, facts, .. } = &self.earlier;
        let memory = run.lane().shared(SharedKind::ObservationalMemory);
        Pieces {
            messages: Some(self.talk(run, &[])),
            summary: summary.clone(),
            memory: memory.map(|text| text.lines().map(str::to_owned).collect()),
            guidance: self.guidance(),
            core: core.clone(),
            facts: (!facts.is_empty()).then(|| facts.iter().map(|fact| fact.line.clone()).collect()),
            agent_skills: self.agent_skill_cards(),
            instructions: self.instructions(run),
            now: Some(self.now.clone()),
            ..Pieces::default()
        }
    }

    /// [`RunContext::known`] for the actor: only the facts that the user has stated, because its text may be the reply. After a
    /// plan, the parts of the conversation that its planner did not see are data.
    pub(super) fn known_to_actor(&self, run: &Run, direct: bool) -> Pieces {
        let mut known = self.known(run);
        let stated: Vec<_> = self.earlier.facts.iter().filter(|fact| fact.is_stated).take(STATED).collect();
        known.facts = (!stated.is_empty()).then(|| stated.into_iter().map(|fact| fact.line.clone()).collect());
        if !direct && !run.spec().policy.shows_all {
            for (message, label) in known.messages.iter_mut().flatten().zip(&self.earlier.labels) {
                if !label.is_shown_to_planners() {
                    message.from = format!("{}, with text from outside", message.from);
                }
            }
        }
        known
    }

    /// [`RunContext::known`] for planner and router: text that anybody else may have influenced is replaced by a note.
    pub(super) fn trusted_known(&self, run: &Run) -> Pieces {
        let Earlier { summary_label, core_label, .. } = &self.earlier;
        let mut known = self.known(run);
        if run.spec().policy.shows_all {
            return known;
        }
        known.messages = Some(self.trusted_talk(run, &[]));
        known.summary = known.summary.map(|text| withheld("summary", summary_label).unwrap_or(text));
        known.core = known.core.map(|text| withheld("core memory", core_label).unwrap_or(text));
        known
    }

    /// [`RunContext::talk`] for planner and router.
    pub(super) fn trusted_talk(&self, run: &Run, replies: &[String]) -> Vec<ChatMessage> {
        let mut messages = self.talk(run, replies);
        if !run.spec().policy.shows_all {
            for (message, label) in messages.iter_mut().zip(&self.earlier.labels) {
                let what = match message.from.as_str() {
                    "assistant" => "reply",
                    CALL => "call",
                    _ => "message",
                };
                if let Some(text) = withheld(what, label) {
                    message.text = text;
                }
            }
        }
        messages
    }

    /// Returns the messages before the run's current message: from before the run, and from earlier cycles of it, except for the
    /// `replies` that are elsewhere in the prompt.
    pub(super) fn talk(&self, run: &Run, replies: &[String]) -> Vec<ChatMessage> {
        let mut messages = self.earlier.messages.clone();
        let said = |from: &str, text: &String| Some(ChatMessage::new(from, text.clone()));
        messages.extend(run.lane().earlier_cycles().filter_map(|entry| match entry {
            Entry::User(text) => said("user", text),
            Entry::Assistant(text) if !replies.contains(text) => said("assistant", text),
            _ => None,
        }));
        messages
    }

    /// Returns whether messages leave the window after this run. A subagent's window and small windows slide by single messages.
    pub(super) fn window_is_full(&self) -> bool {
        let most = usize::try_from(self.drive.window()).unwrap_or(usize::MAX);
        !self.subagent && hop(most) > 0 && slots_of(&self.earlier.messages) + self.slots > most
    }

    pub(super) async fn put_away(&self, stem: &'static str, text: String, label: &Label) -> Result<String, DriveError> {
        let text = self.secrets.redact(&text);
        Ok(scratchpad::put_away(&self.drive.store, &self.session, stem, text, label, now_ms()).await?)
    }

    /// Returns the embedding of a query to memory, if the model answers in time.
    pub(super) async fn meaning(&self, question: &str) -> Result<Option<Meaning>, DriveError> {
        let (session, run, used) = (Some(&self.session), Some(&self.run), self.meter.used());
        self.drive.meaning(question, &self.secrets, session, run, used).await
    }

    /// Returns the model of a role, with metering.
    pub(super) fn model(&self, role: Role) -> MeteredModel<'_> {
        self.meter.wrap(self.drive.models.for_role(role))
    }

    /// Calls the model of the request's role.
    pub(super) async fn complete(
        &self,
        run: &Run,
        request: Request,
        sink: &mut dyn Sink,
    ) -> Result<Result<Completion, ModelFailure>, DriveError> {
        let by = request.role;
        self.complete_by(run, request, by, sink).await
    }

    /// [`RunContext::complete`] with the model of another role than the prompt's.
    pub(super) async fn complete_by(
        &self,
        run: &Run,
        request: Request,
        by: Role,
        sink: &mut dyn Sink,
    ) -> Result<Result<Completion, ModelFailure>, DriveError> {
        let request = match self.ready_for(run, request, by).await? {
            Ok(request) => request,
            Err(limit) => return Ok(Err(ModelFailure::Limit(limit))),
        };
        Ok(self.model(by).complete(&request, sink).await.map_err(ModelFailure::Failed))
    }

    /// Prepares a request for sending: removes secrets, fits it into its model's context, and checks the remaining limits.
    pub(super) async fn ready(&self, run: &Run, request: Request) -> Result<Result<Request, LimitReached>, DriveError> {
        let by = request.role;
        self.ready_for(run, request, by).await
    }

    /// [`RunContext::ready`] for the model of another role than the prompt's.
    pub(super) async fn ready_for(
        &self,
        run: &Run,
        request: Request,
        by: Role,
    ) -> Result<Result<Request, LimitReached>, DriveError> {
        let (settings, boundary) = (self.drive.models.settings(by), self.boundary.as_str());
        let mut request = clean(&self.secrets, request, boundary)?;
        request.cache_key = cache_key(boundary, by);
        if self.subagent {
            request.priority = Priority::Subagent;
            request.system += subagent::note(by);
        }
        request.max_tokens = settings.answer(request.role, request.max_tokens);
        let reads_schemas = self.drive.models.read_schemas(by);
        let max_tasks = run.spec().limits.max_tasks;
        if reads_schemas {
            let short = settings.is_short(request.max_tokens);
            request = node::formed(request, max_tasks, short);
        }
        // A conversation without remaining space is restarted.
        let next = self.dialogs.next(&request, &self.secrets, boundary);
        let request = next.filter(|next| node::fits(next, settings.context_budget)).unwrap_or(request);
        let mut request = node::fit(request, boundary, settings.context_budget);
        let asked = llm::estimate::request_tokens(&request);
        if let Some(mut limit) = self.drive.models.too_small_for(by, asked) {
            if matches!(request.role, Role::Planner | Role::Actor) {
                limit.because = self.drive.tools.crowding(settings.context_budget);
            }
            return Ok(Err(limit));
        }
        // Includes the calls that this step has already made; one step may make many.
        let unwritten = self.meter.used();
        if let Some(limit) = self.drive.over_limit(&self.session, unwritten).await? {
            return Ok(Err(limit));
        }
        let limits = &run.spec().limits;
        let mut used = run.usage();
        used += unwritten;
        if let Some(limit) = limits.reached(used) {
            return Ok(Err(limit));
        }
        let asked = self.drive.models.counted(by, asked) as u64;
        let left = limits.max_tokens_per_run.saturating_sub(used.total());
        if asked >= left {
            return Ok(Err(LimitReached::new("max_tokens_per_run", limits.max_tokens_per_run)));
        }
        request.max_tokens = request.max_tokens.min(u32::try_from(left - asked).unwrap_or(u32::MAX));
        if reads_schemas && settings.is_short(request.max_tokens) {
            request = node::bounded(node::formed(request, max_tasks, true));
        }
        self.load_pictures(run, &mut request, by).await?;
        self.note_asked(request.role, as_text(&request));
        self.dialogs.sent(&request, boundary);
        Ok(Ok(request))
    }

    /// Records a role's answer, in the form in which it may be shown to the role again.
    pub(super) fn answered(&self, text: Option<String>) {
        if let Some(text) = text {
            self.dialogs.answered(&self.secrets.redact(&text), &self.boundary);
        }
    }

    pub(super) fn note_asked(&self, role: Role, prompt: String) {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push((role, prompt));
    }

    /// Returns the prompts of models since the last call of this function.
    pub(super) fn take_asked(&self) -> Vec<(Role, String)> {
        std::mem::take(&mut *self.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the context of the call at this index among concurrent calls.
    pub(super) fn call_context(&self, place: usize, label: Label, result_tokens: usize) -> CallContext {
        CallContext {
            context_budget: self.shown_budget(),
            result_tokens,
            session: self.session.clone(),
            run: Some(self.run.clone()),
            subagent: self.subagent,
            caller: self.caller,
            call: (self.seq, place),
            meanings: Vec::new(),
            label,
            read: ReadLabel::default(),
        }
    }
}

/// Returns a note that replaces a text that is neither from the user nor from a file that they attached; `None` for other texts.
/// The note contains nothing that outsiders could choose: no host name, and not the length of the text.
fn withheld(what: &str, label: &Label) -> Option<String> {
    let note = "with text from outside, withheld from plans: act and msg tasks are shown it, so let one read it";
    (!label.is_shown_to_planners()).then(|| format!("[{what} {note}]"))
}

/// Returns the same key for all requests of a role in a segment, which begin alike, and for no others. The boundary itself is
/// used only in prompts.
fn cache_key(boundary: &str, role: Role) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, format!("{role} {boundary}").as_bytes());
    data_encoding::HEXLOWER.encode(&digest.as_ref()[..8])
}
