//! The only code that performs the steps of a run and records what happened.
//!
//! ```text
//! Run::next_step ──▶ perform ──▶ Run::accept ──▶ commit the event ──▶ tell the listener ──▶ next step
//! ```
//!
//! An event is committed before the next step is performed, and the start of an effect is an event of its own, so a run
//! that was cut off can be told from its log.

mod models;

pub use self::models::{ModelError, ModelSettings, Models, Opened};

use crate::clock::now_ms;
use crate::config::Config;
use crate::graph::brief::Brief;
use crate::graph::limits::Limits;
use crate::graph::outcome::{Ending, Outcome};
use crate::graph::plan::{Caller, TaskKind};
use crate::graph::run::{Run, RunSpec};
use crate::graph::step::{Event, IllegalResult, PlanAsk, ReviewAsk, Step, StepResult};
use crate::home::{Home, SessionName};
use crate::llm::prompt::{ChatMessage, Pieces};
use crate::llm::{Request, Role};
use crate::node::role::check_prompts;
use crate::node::{RoleError, output, planner, prompt_of, retrieval, reviewer, worker};
use crate::secret::{SecretValue, Secrets};
use crate::skill;
use crate::store::{MessageRole, RunId, RunStatus, Store, StoreError};
use crate::tool::{Tools, files};
use std::time::Instant;

/// Everything that a run needs from its surroundings.
#[derive(Debug, Clone)]
pub struct Drive {
    pub home: Home,
    pub config: Config,
    pub store: Store,
    pub tools: Tools,
    pub models: Models,
}

/// Why a run could not go on. What goes wrong inside the work is no such error but an ending of the run.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Home(#[from] crate::home::HomeError),
    #[error(transparent)]
    Role(#[from] RoleError),
    #[error("the run took a step that its graph does not allow; this is a mistake in kiso: {0}")]
    Illegal(#[from] IllegalResult),
    #[error("an event could not be written down: {0}")]
    Json(#[from] serde_json::Error),
}

/// Hears what a run does, while it does it. Must return at once.
pub trait Listener: Send {
    /// The run has an id; nothing else has happened.
    fn begun(&mut self, _run: &RunId) {}

    /// A step is about to be performed.
    fn step(&mut self, _step: &Step) {}

    /// Text of the planner beside its plan, or of the worker, as it arrives.
    fn token(&mut self, _role: Role, _text: &str) {}

    /// An event was committed.
    fn event(&mut self, _seq: u32, _event: &Event, _run: &Run) {}
}

/// The `kind` of the first event: what the run was given. All others are kinds of [`StepResult`].
pub const SPEC: &str = "spec";

/// Messages of the session that the planner and the worker see.
const WINDOW: u32 = 20;

impl Drive {
    /// Performs a run from its message to its reply. `secrets` are those of the environment; the planner may add more.
    pub async fn run(
        &self,
        session: &SessionName,
        message: &str,
        caller: Caller,
        secrets: Secrets,
        listener: &mut dyn Listener,
    ) -> Result<(RunId, Outcome), DriveError> {
        check_prompts(&self.home)?;
        let (mut run, mut log, earlier) = self.begin(session, message, caller).await?;
        listener.begun(&log.id);
        let mut at_work =
            AtWork { drive: self, run: log.id.clone(), session, caller, secrets, earlier, environment: None };
        loop {
            let step = run.next_step();
            if let Step::Ended = step {
                break;
            }
            listener.step(&step);
            let result = at_work.perform(&run, step, listener).await?;
            let event = run.accept(result)?;
            log.append(&event, &at_work.secrets).await?;
            listener.event(log.seq, &event, &run);
        }
        let outcome = run.outcome().cloned().expect("a run that has ended has an outcome");
        log.finish(session, &outcome, &at_work.secrets).await?;
        Ok((log.id, outcome))
    }

    /// Writes down that a run was stopped by its user.
    pub async fn cancel(&self, run: &RunId) -> Result<(), StoreError> {
        let run = run.clone();
        self.store.write(move |tx| tx.finish_run(&run, RunStatus::Cancelled, now_ms(), "{}")).await
    }

    /// Creates the run, its message and its first event in one transaction.
    async fn begin(
        &self,
        session: &SessionName,
        message: &str,
        caller: Caller,
    ) -> Result<(Run, Log, Vec<ChatMessage>), DriveError> {
        let limits = limits(&self.config);
        let (name, text) = (session.clone(), message.to_owned());
        let begun = self.store.write(move |tx| {
            let earlier = tx.last_messages(&name, WINDOW)?;
            let id = tx.create_run(&name, &text, now_ms())?;
            let spec = RunSpec { id: id.to_string(), session: name.to_string(), message: text, caller, limits };
            let body = serde_json::to_string(&spec).expect("a spec has a JSON form");
            tx.append_event(&id, 0, now_ms(), SPEC, &body)?;
            Ok((id, spec, earlier))
        });
        let (id, spec, earlier) = begun.await?;
        let earlier = earlier.into_iter().map(|m| ChatMessage {
            from: match m.role {
                MessageRole::User => "user".to_owned(),
                MessageRole::Assistant => "assistant".to_owned(),
            },
            text: m.text,
        });
        let earlier = earlier.collect();
        Ok((Run::new(spec), Log { store: self.store.clone(), id, seq: 0 }, earlier))
    }

    fn system_prompt(&self, role: Role) -> Result<String, DriveError> {
        Ok(prompt_of(&self.home, role)?)
    }
}

/// A run that is being performed.
struct AtWork<'a> {
    drive: &'a Drive,
    run: RunId,
    session: &'a SessionName,
    caller: Caller,
    secrets: Secrets,
    earlier: Vec<ChatMessage>,
    /// What retrieval found, until something ran.
    environment: Option<Vec<crate::llm::prompt::FileCard>>,
}

impl AtWork<'_> {
    async fn perform(&mut self, run: &Run, step: Step, listener: &mut dyn Listener) -> Result<StepResult, DriveError> {
        Ok(match step {
            Step::Retrieve => {
                let found = retrieval::retrieve(self.files()?);
                self.environment = Some(found.environment);
                found.result
            }
            Step::Plan(ask) => self.plan(run, &ask, listener).await?,
            Step::Start { task, .. } => StepResult::Started { task },
            Step::Execute { task, brief } => self.execute(task, &brief, listener).await?,
            Step::Review(ask) => self.review(run, &ask).await?,
            Step::Tell { text } => StepResult::Told { text },
            Step::Finish(outcome) => output::finish(&outcome),
            Step::Ended => unreachable!("the loop ends before"),
        })
    }

    async fn plan(&mut self, run: &Run, ask: &PlanAsk, listener: &mut dyn Listener) -> Result<StepResult, DriveError> {
        let environment = match self.environment.take() {
            Some(environment) => environment,
            None => retrieval::environment(self.files()?),
        };
        let given = Pieces {
            skills: Some(self.drive.tools.cards()),
            environment: Some(environment),
            messages: Some(self.earlier.clone()),
            ..Pieces::default()
        };
        let system = self.drive.system_prompt(Role::Planner)?;
        let request = self.clean(planner::request(&system, &given, run, ask, &boundary()))?;
        let model = self.drive.models.of(Role::Planner);
        let mut talk = |text: &str| listener.token(Role::Planner, text);
        let planning = planner::call(model, &request, &self.drive.tools, &run.spec().limits, &mut talk).await;
        // Before the event, so that nothing that follows can write a secret down; and what was written before is cleaned.
        let found = !planning.secrets.is_empty();
        for (name, value) in planning.secrets {
            self.secrets.add_session(name, SecretValue::new(value));
        }
        if found {
            self.clean_message(run).await?;
        }
        Ok(planning.result)
    }

    /// Takes the secrets that the planner found out of the message that was stored before anybody knew of them.
    async fn clean_message(&self, run: &Run) -> Result<(), DriveError> {
        let mut spec = run.spec().clone();
        spec.message = self.secrets.redact(&spec.message);
        let body = serde_json::to_string(&spec)?;
        let id = self.run.clone();
        Ok(self.drive.store.write(move |tx| tx.replace_message(&id, &spec.message, &body)).await?)
    }

    /// A request without any secret that is known by now.
    fn clean(&self, request: Request) -> Result<Request, DriveError> {
        let pieces = serde_json::from_str(&self.secrets.redact(&serde_json::to_string(&request.pieces)?))?;
        Ok(Request { user: self.secrets.redact(&request.user), pieces, ..request })
    }

    async fn execute(&self, task: usize, brief: &Brief, listener: &mut dyn Listener) -> Result<StepResult, DriveError> {
        let started = Instant::now();
        let (mut report, call) = match brief.task.kind {
            TaskKind::Msg => {
                let given = Pieces { messages: Some(self.earlier.clone()), ..Pieces::default() };
                let system = self.drive.system_prompt(Role::Worker)?;
                let request = self.clean(worker::request(&system, &given, brief, &boundary()))?;
                let model = self.drive.models.of(worker::model_role(&brief.task));
                let mut sink = |text: &str| listener.token(Role::Worker, text);
                worker::call(model, &request, &brief.task, &mut sink).await
            }
            _ => {
                let caller = skill::Caller { session: self.session, locale: "en", secrets: &self.secrets };
                (self.drive.tools.run(&brief.task, self.caller, caller).await, None)
            }
        };
        report.millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        // Here, because from here it goes into prompts, the reply, the terminal and the log.
        let task_as_planned = report.task.clone();
        report = serde_json::from_str(&self.secrets.redact(&serde_json::to_string(&report)?))?;
        report.task = task_as_planned;
        Ok(StepResult::Executed { task, report: Box::new(report), call })
    }

    async fn review(&self, run: &Run, ask: &ReviewAsk) -> Result<StepResult, DriveError> {
        let system = self.drive.system_prompt(Role::Reviewer)?;
        let request = self.clean(reviewer::request(&system, run, ask, &boundary()))?;
        let model = self.drive.models.of(Role::Reviewer);
        Ok(reviewer::call(model, &request, &self.drive.tools, &run.spec().limits).await)
    }

    fn files(&self) -> Result<Vec<crate::llm::prompt::FileCard>, DriveError> {
        Ok(files::cards(&self.drive.home.open_work(self.session)?))
    }
}

/// The log of one run in the store.
struct Log {
    store: Store,
    id: RunId,
    seq: u32,
}

impl Log {
    async fn append(&mut self, event: &Event, secrets: &Secrets) -> Result<(), DriveError> {
        self.seq += 1;
        let body = secrets.redact(&serde_json::to_string(event)?);
        let (id, seq, kind) = (self.id.clone(), self.seq, event.result.name());
        self.store.write(move |tx| tx.append_event(&id, seq, now_ms(), kind, &body)).await?;
        Ok(())
    }

    /// The outcome and the reply, in one transaction.
    async fn finish(&self, session: &SessionName, outcome: &Outcome, secrets: &Secrets) -> Result<(), DriveError> {
        let status = match outcome.ending {
            Ending::Done => RunStatus::Done,
            Ending::Failed { .. } | Ending::LimitHit(_) => RunStatus::Failed,
        };
        let body = secrets.redact(&serde_json::to_string(outcome)?);
        let reply = secrets.redact(&output::reply(outcome));
        let (id, session) = (self.id.clone(), session.clone());
        let write = self.store.write(move |tx| {
            tx.finish_run(&id, status, now_ms(), &body)?;
            tx.add_message(&session, MessageRole::Assistant, &reply, now_ms(), Some(&id)).map(|_| ())
        });
        Ok(write.await?)
    }
}

/// The limits that `config.toml` gives a run.
fn limits(config: &Config) -> Limits {
    let limits = &config.limits;
    let small = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    Limits {
        max_parse_retries: small(limits.max_parse_retries),
        max_review_depth: small(limits.max_review_depth),
        max_replan_depth: small(limits.max_replan_depth),
        max_tasks: usize::try_from(limits.max_tasks).unwrap_or(usize::MAX),
        max_tokens_per_run: limits.max_tokens_per_run,
    }
}

/// What fences foreign text in one prompt: sixteen characters that nobody can guess.
fn boundary() -> String {
    let mut bytes = [0u8; 8];
    let random = ring::rand::SystemRandom::new();
    ring::rand::SecureRandom::fill(&random, &mut bytes).expect("the system has random numbers");
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
