//! The steps of a run, performed.

use super::clean::clean;
use super::log::Log;
use super::prompt::as_text;
use super::spent::{Meter, Metered};
use super::subagent;
use super::voice::{Listener, Voice};
use super::window::{CALL, Earlier};
use super::{DriveError, RunExecutor, boundary};
use crate::clock::now_ms;
use crate::exec::Watch;
use crate::graph::brief::Brief;
use crate::graph::limits::LimitReached;
use crate::graph::plan::{CallerScope, Task, TaskKind};
use crate::graph::run::{Run, RunSpec};
use crate::graph::step::{PlanAsk, ReasonAsk, Step, StepResult};
use crate::home::SessionName;
use crate::llm::prompt::{FileCard, Pieces};
use crate::llm::{Completion, LlmError, Model, Priority, Request, Role, Sink};
use crate::memory::Meaning;
use crate::node::{self, output, planner, reasoner, retrieval, router, worker};
use crate::secret::Secrets;
use crate::store::RunId;
use crate::tool::builtin::CallContext;
use crate::{context, memory, scratchpad, skill};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Lines of observational memory.
const DIGEST: u32 = 8;

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
    /// What retrieval found, until something ran.
    environment: Option<Vec<FileCard>>,
    /// The task whose transcript was archived last, and the key.
    pub transcript: Option<(usize, String)>,
    /// Messages that become the run's with the next event.
    pub taking: Vec<i64>,
    /// What models were asked since the last event.
    asked: Mutex<Vec<(Role, String)>>,
    /// What models used since the last event.
    pub meter: Meter,
}

/// What a call came to, where it is not an answer.
pub(super) enum NoAnswer {
    Limit(LimitReached),
    Failed(LlmError),
}

impl NoAnswer {
    pub fn result(self) -> StepResult {
        match self {
            Self::Limit(limit) => StepResult::Stopped { limit },
            Self::Failed(error) => StepResult::ModelFailed { message: error.to_string() },
        }
    }
}

impl<'a> RunContext<'a> {
    pub fn new(drive: &'a RunExecutor, log: &Log, spec: &RunSpec, secrets: Secrets, earlier: Earlier) -> Self {
        let (run, session) = (log.id.clone(), log.session.clone());
        Self {
            drive,
            run,
            session,
            caller: spec.caller,
            subagent: spec.policy.subagent,
            seq: log.seq,
            secrets,
            earlier,
            environment: None,
            transcript: None,
            taking: Vec::new(),
            asked: Mutex::default(),
            meter: Meter::default(),
        }
    }

    pub async fn perform(
        &mut self,
        run: &Run,
        step: Step,
        listener: &mut dyn Listener,
    ) -> Result<StepResult, DriveError> {
        let result = match step {
            Step::Admit { texts } => self.admit(&texts).await?,
            Step::Retrieve { goal } => self.retrieve(goal.as_deref()).await?,
            Step::Route { message } => self.route(run, &message).await?,
            Step::Plan(ask) => self.plan(run, &ask, listener).await?,
            Step::Reason(ask) => self.reason(run, &ask).await?,
            Step::Start { task, .. } => StepResult::Started { task },
            Step::Execute { task, brief } => self.execute(run, task, &brief, listener).await?,
            Step::Act(ask) => self.act(run, &ask, listener).await?,
            Step::Assess(ask) => self.assess(run, &ask).await?,
            Step::Compress(ask) => self.compress(run, &ask).await?,
            Step::StartCalls { .. } => StepResult::CallsStarted,
            Step::Call { calls } => self.call_tools(run, &calls).await?,
            Step::Review(ask) => {
                let result = self.review(run, &ask).await?;
                self.learn(&result);
                result
            }
            Step::Converse { message } => self.converse(run, &message, listener).await?,
            Step::Tell { text } => StepResult::Told { text },
            Step::Finish(outcome) => {
                StepResult::Finished { reply: output::reply(&outcome), arrived: self.arrived().await? }
            }
            Step::Ended => unreachable!("the loop ends before"),
        };
        self.without_secrets(result)
    }

    /// What a model says goes into prompts, to the terminal and into the log, and what is replayed must be what was done.
    /// So it is cleaned before anything is made of it; a report was cleaned already and keeps its task as it was planned.
    fn without_secrets(&self, result: StepResult) -> Result<StepResult, DriveError> {
        if matches!(result, StepResult::Executed { .. }) {
            return Ok(result);
        }
        Ok(self.secrets.redact_document(&result)?)
    }

    pub async fn put_away(&self, stem: &'static str, text: String) -> Result<String, DriveError> {
        let text = self.secrets.redact(&text);
        Ok(scratchpad::put_away(&self.drive.store, &self.session, stem, text, now_ms()).await?)
    }

    async fn retrieve(&mut self, goal: Option<&str>) -> Result<StepResult, DriveError> {
        let memory = match goal {
            Some(goal) => self.remembered(goal).await?,
            None => Vec::new(),
        };
        let credentials = self.secrets.session_names().map(str::to_owned).collect();
        let found = retrieval::retrieve(self.files().await?, memory, credentials);
        self.environment = Some(found.environment);
        Ok(found.result)
    }

    /// What memory holds that bears on a goal.
    async fn remembered(&self, goal: &str) -> Result<Vec<String>, DriveError> {
        let meaning = self.meaning(goal).await?;
        Ok(memory::digest(&self.drive.store, goal, meaning, DIGEST).await?)
    }

    /// What a question to memory means, if a model says so in time.
    pub async fn meaning(&self, question: &str) -> Result<Option<Meaning>, DriveError> {
        let (session, run, used) = (Some(&self.session), Some(&self.run), self.meter.used());
        self.drive.meaning(question, &self.secrets, session, run, used).await
    }

    async fn route(&mut self, run: &Run, message: &str) -> Result<StepResult, DriveError> {
        let boundary = boundary();
        let system = self.drive.system_prompt(Role::Router)?;
        let lines = self.drive.tools.category_lines();
        let tail: Vec<_> = self.talk(run, &[]).into_iter().filter(|message| message.from != CALL).collect();
        let request = router::request(&system, message, &tail, lines, &boundary);
        let request = match self.ready(run, request, &boundary).await? {
            Ok(request) => request,
            Err(limit) => return Ok(StepResult::Stopped { limit }),
        };
        let categories = self.drive.tools.categories();
        let mut found = router::call(&self.model(Role::Router), &request, message, &categories).await;
        self.keep(run, found.secrets).await?;
        if let StepResult::Routed { routing, memory, .. } = &mut found.result {
            *memory = Some(self.remembered(&routing.goal).await?);
        }
        Ok(found.result)
    }

    async fn plan(&mut self, run: &Run, ask: &PlanAsk, listener: &mut dyn Listener) -> Result<StepResult, DriveError> {
        let environment = match self.environment.take() {
            Some(environment) => environment,
            None => retrieval::environment(self.files().await?),
        };
        let mut skills = self.drive.tools.cards();
        skills.retain(|card| ask.categories.is_empty() || ask.categories.contains(&card.category));
        // Before the planner is asked: of every skill that it may choose. The plan puts those of its own in that place.
        let names = skills.iter().map(|card| card.name.as_str());
        let skill_environment = self.drive.tools.environment(names, &self.secrets);
        let given = Pieces {
            skills: Some(skills),
            environment: Some(environment),
            skill_environment: (!skill_environment.is_empty()).then_some(skill_environment),
            // What its lane was seeded with stands there.
            messages: Some(self.talk(run, &ask.replies)),
            ..self.known(run)
        };
        let boundary = boundary();
        let system = self.drive.system_prompt(Role::Planner)?;
        let request = planner::request(&system, &given, run, ask, &boundary);
        let request = match self.ready(run, request, &boundary).await? {
            Ok(request) => request,
            Err(limit) => return Ok(StepResult::Stopped { limit }),
        };
        let model = self.model(Role::Planner);
        let mut voice = Voice::new(Role::Planner, &self.secrets, listener);
        let planning = planner::call(&model, &request, &self.drive.tools, &run.spec().limits, &mut voice).await;
        voice.finish();
        // Before the event, so that nothing that follows can write a secret down.
        self.keep(run, planning.secrets).await?;
        Ok(match planning.result {
            StepResult::Planned { plan, chatter, secrets, call, .. } => {
                let names = plan.tasks.iter().filter_map(|task| task.skill.as_deref());
                let skill_environment = self.drive.tools.environment(names, &self.secrets);
                StepResult::Planned { plan, chatter, secrets, skill_environment, call }
            }
            other => other,
        })
    }

    async fn reason(&self, run: &Run, ask: &ReasonAsk) -> Result<StepResult, DriveError> {
        let boundary = boundary();
        let system = self.drive.system_prompt(Role::Reasoner)?;
        let mut readiness: Vec<_> =
            retrieval::environment(self.files().await?).iter().map(|file| format!("file {}", file.path)).collect();
        readiness.extend(self.secrets.session_names().map(|name| format!("credential {name}")));
        readiness.extend(self.drive.tools.category_lines().into_iter().map(|line| format!("tools of {line}")));
        let request = reasoner::request(&system, ask, readiness, &boundary);
        Ok(match self.complete(run, request, &boundary, &mut |_: &str| {}).await? {
            Ok(completion) => reasoner::read(&completion),
            Err(none) => none.result(),
        })
    }

    async fn execute(
        &self,
        run: &Run,
        task: usize,
        brief: &Brief,
        listener: &mut dyn Listener,
    ) -> Result<StepResult, DriveError> {
        let started = Instant::now();
        let (mut report, call) = match brief.task.kind {
            TaskKind::Msg => {
                let boundary = boundary();
                let system = self.drive.system_prompt(Role::Worker)?;
                let request = worker::request(&system, &self.known(run), brief, &boundary);
                let by = worker::model_role(&brief.task);
                let request = match self.ready_for(run, request, by, &boundary).await? {
                    Ok(request) => request,
                    Err(limit) => return Ok(StepResult::Stopped { limit }),
                };
                let model = self.model(by);
                if brief.task.notify {
                    let mut voice = Voice::new(Role::Worker, &self.secrets, listener);
                    let written = worker::call(&model, &request, &brief.task, &mut voice).await;
                    voice.finish();
                    written
                } else {
                    worker::call(&model, &request, &brief.task, &mut |_: &str| {}).await
                }
            }
            _ => {
                let caller = skill::Caller { session: &self.session, locale: "en", secrets: &self.secrets };
                let watch = Watch::default();
                let mut tell = |stream: &'static str, text: &str| listener.output(stream, text);
                let report = tokio::select! {
                    report = self.drive.tools.run(&brief.task, self.caller, caller, &watch) => report,
                    () = watch.follow(&self.secrets, &mut tell) => unreachable!("it goes on until it is dropped"),
                };
                (report, None)
            }
        };
        report.millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        // Here, because from here it goes into prompts, the reply, the terminal and the log.
        let task_as_planned = report.task.clone();
        report = self.secrets.redact_document(&report)?;
        report.task = task_as_planned;
        if report.task.kind != TaskKind::Msg {
            self.guard_report(&mut report).await;
        }
        Ok(StepResult::Executed { task, report: Box::new(report), call })
    }

    /// An answer without tools: the worker writes, and what it writes about is the message itself.
    async fn converse(&self, run: &Run, message: &str, listener: &mut dyn Listener) -> Result<StepResult, DriveError> {
        let boundary = boundary();
        let system = self.drive.system_prompt(Role::Worker)?;
        let task = Task {
            kind: TaskKind::Msg,
            detail: format!("Answer the user, who wrote: {message}"),
            expect: None,
            model: None,
            skill: None,
            args: None,
            notify: true,
            review: false,
        };
        let brief = Brief { goal: String::new(), expect: None, evidence: Vec::new(), task, number: 1, of: 1 };
        let mut request = worker::request(&system, &self.known(run), &brief, &boundary);
        (request.pieces.goal, request.pieces.evidence) = (None, None);
        request.user = context::render(&request.pieces, &boundary, usize::MAX);
        let mut voice = Voice::new(Role::Worker, &self.secrets, listener);
        let completion = self.complete(run, request, &boundary, &mut voice).await?;
        let note = completion.as_ref().ok().and_then(node::cut_off).unwrap_or_default();
        voice.text(&note);
        voice.finish();
        Ok(match completion {
            Ok(completion) => {
                let text = self.secrets.redact(&(completion.text + &note));
                let call = crate::graph::step::Call { model: completion.model, usage: completion.usage };
                StepResult::Conversed { text, call }
            }
            Err(none) => none.result(),
        })
    }

    /// The model of a role, with what it uses counted.
    fn model(&self, role: Role) -> Metered<'_> {
        self.meter.of(self.drive.models.of(role))
    }

    /// Calls the model of the request's role.
    pub async fn complete(
        &self,
        run: &Run,
        request: Request,
        boundary: &str,
        sink: &mut dyn crate::llm::Sink,
    ) -> Result<Result<Completion, NoAnswer>, DriveError> {
        let by = request.role;
        self.complete_by(run, request, by, boundary, sink).await
    }

    /// [`RunContext::complete`] with the model of another role than the one that the prompt is of.
    pub async fn complete_by(
        &self,
        run: &Run,
        request: Request,
        by: Role,
        boundary: &str,
        sink: &mut dyn crate::llm::Sink,
    ) -> Result<Result<Completion, NoAnswer>, DriveError> {
        let request = match self.ready_for(run, request, by, boundary).await? {
            Ok(request) => request,
            Err(limit) => return Ok(Err(NoAnswer::Limit(limit))),
        };
        Ok(self.model(by).complete(&request, sink).await.map_err(NoAnswer::Failed))
    }

    /// The request as it may be sent: without secrets, in its model's context, and within what is left of every limit.
    pub async fn ready(
        &self,
        run: &Run,
        request: Request,
        boundary: &str,
    ) -> Result<Result<Request, LimitReached>, DriveError> {
        let by = request.role;
        self.ready_for(run, request, by, boundary).await
    }

    /// [`RunContext::ready`] for the model of another role than the one that the prompt is of.
    async fn ready_for(
        &self,
        run: &Run,
        request: Request,
        by: Role,
        boundary: &str,
    ) -> Result<Result<Request, LimitReached>, DriveError> {
        let settings = self.drive.models.settings(by);
        let mut request = clean(&self.secrets, request, boundary)?;
        if self.subagent {
            request.priority = Priority::Subagent;
            request.system += subagent::note(by);
        }
        request.max_tokens = settings.answer(request.max_tokens);
        let mut request = node::fit(request, boundary, settings.context_budget);
        if let Some(mut limit) = self.drive.models.too_small_for(by, &request) {
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
        let asked = crate::llm::estimate::request_tokens(&request);
        let asked = self.drive.models.counted(by, asked) as u64;
        let left = limits.max_tokens_per_run.saturating_sub(used.total());
        if asked >= left {
            return Ok(Err(LimitReached::new("max_tokens_per_run", limits.max_tokens_per_run)));
        }
        request.max_tokens = request.max_tokens.min(u32::try_from(left - asked).unwrap_or(u32::MAX));
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push((request.role, as_text(&request)));
        Ok(Ok(request))
    }

    /// What models were asked since this was last called.
    pub fn take_asked(&self) -> Vec<(Role, String)> {
        std::mem::take(&mut *self.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Where the call at this place among those that are made together comes from.
    pub fn at(&self, place: usize) -> CallContext {
        CallContext {
            session: self.session.clone(),
            run: Some(self.run.clone()),
            subagent: self.subagent,
            caller: self.caller,
            call: (self.seq, place),
            meanings: Vec::new(),
        }
    }
}
