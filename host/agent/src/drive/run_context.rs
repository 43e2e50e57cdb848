//! What the steps of a run have in common: what the run knows, and how a request of it becomes one that may be sent.

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

/// Facts that the actor is told, the surest first: they stand in every one of its requests.
const STATED: usize = 20;

/// A run that is being performed.
pub(super) struct RunContext<'a> {
    pub drive: &'a RunExecutor,
    pub run: RunId,
    pub session: SessionName,
    pub caller: CallerScope,
    pub subagent: bool,
    /// The last event before the step.
    pub seq: u32,
    pub secrets: Secrets,
    pub earlier: Earlier,
    /// What fences foreign text in its prompts.
    pub boundary: String,
    /// What its roles were sent and answered.
    pub dialogs: Dialogs,
    /// What retrieval found, until something ran.
    pub environment: Option<Vec<FileCard>>,
    /// Of the files that the reviewer was shown.
    pub looked_at: Label,
    /// The files that the actor is shown, from its task's first round on.
    pub files_of_task: Mutex<Option<Vec<FileCard>>>,
    /// Which tools are offered, decided when the run's actor is asked first.
    pub tool_uses: OnceCell<ToolUses>,
    /// When the run began or was taken up, as the user says it, and where the user is.
    pub now: String,
    /// BCP 47 tag of the user.
    pub locale: String,
    /// The task whose transcript was archived last, and the key.
    pub transcript: Option<(usize, String)>,
    /// Messages that become the run's with the next event.
    pub taking: Vec<i64>,
    /// Slots that this run takes of the window of the runs after it.
    pub slots: usize,
    /// What models were asked since the last event.
    asked: Mutex<Vec<(Role, String)>>,
    /// What models used since the last event.
    pub meter: Meter,
    /// Milliseconds that models thought before they answered.
    pub thought_ms: u64,
}

/// What a call came to, where it is not an answer.
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
        // A run from before it was kept has one for each process that takes it up.
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

    /// What the session knows: the part of every prompt that talks to the user.
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

    /// [`RunContext::known`] for the actor: of the facts, those that the user has stated, as its text may be the reply. Behind a plan,
    /// what its planner was not shown of the conversation is data.
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

    /// [`RunContext::known`] for who plans and routes: of what anybody else than the user may have written, only that it is there.
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

    /// [`RunContext::talk`] for them.
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

    /// What was said before the message that the run is at: before the run, and in earlier cycles of it, but for the
    /// `replies` that stand elsewhere in the prompt.
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

    /// Whether messages leave the window after this run. A subagent's window slides by the message, and so do small ones.
    pub(super) fn window_is_full(&self) -> bool {
        let most = usize::try_from(self.drive.window()).unwrap_or(usize::MAX);
        !self.subagent && hop(most) > 0 && slots_of(&self.earlier.messages) + self.slots > most
    }

    pub(super) async fn put_away(&self, stem: &'static str, text: String, label: &Label) -> Result<String, DriveError> {
        let text = self.secrets.redact(&text);
        Ok(scratchpad::put_away(&self.drive.store, &self.session, stem, text, label, now_ms()).await?)
    }

    /// What a question to memory means, if a model says so in time.
    pub(super) async fn meaning(&self, question: &str) -> Result<Option<Meaning>, DriveError> {
        let (session, run, used) = (Some(&self.session), Some(&self.run), self.meter.used());
        self.drive.meaning(question, &self.secrets, session, run, used).await
    }

    /// The model of a role, with what it uses counted.
    pub(super) fn model(&self, role: Role) -> MeteredModel<'_> {
        self.meter.of(self.drive.models.of(role))
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

    /// [`RunContext::complete`] with the model of another role than the one that the prompt is of.
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

    /// The request as it may be sent: without secrets, in its model's context, and within what is left of every limit.
    pub(super) async fn ready(&self, run: &Run, request: Request) -> Result<Result<Request, LimitReached>, DriveError> {
        let by = request.role;
        self.ready_for(run, request, by).await
    }

    /// [`RunContext::ready`] for the model of another role than the one that the prompt is of.
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
        // A conversation that has no room any more begins anew.
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
        // Of the calls that this step has made already; one step may make many.
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

    /// What a role that was asked said, as it may be shown to it again.
    pub(super) fn answered(&self, text: Option<String>) {
        if let Some(text) = text {
            self.dialogs.answered(&self.secrets.redact(&text), &self.boundary);
        }
    }

    pub(super) fn note_asked(&self, role: Role, prompt: String) {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push((role, prompt));
    }

    /// What models were asked since this was last called.
    pub(super) fn take_asked(&self) -> Vec<(Role, String)> {
        std::mem::take(&mut *self.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Where the call at this place among those that are made together comes from.
    pub(super) fn at(&self, place: usize, label: Label, result_tokens: usize) -> CallContext {
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

/// A note in place of a text that is neither the user's nor of a file that they attached; `None` where it is. It has nothing that those outside could choose: no name of a host, and
/// not how long the text is.
fn withheld(what: &str, label: &Label) -> Option<String> {
    let note = "with text from outside, withheld from plans: act and msg tasks are shown it, so let one read it";
    (!label.is_shown_to_planners()).then(|| format!("[{what} {note}]"))
}

/// The same for all requests of a role in a segment, which begin alike, and for no others. The boundary itself goes nowhere but into
/// prompts.
fn cache_key(boundary: &str, role: Role) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, format!("{role} {boundary}").as_bytes());
    data_encoding::HEXLOWER.encode(&digest.as_ref()[..8])
}
