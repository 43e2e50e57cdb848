//! Performing the steps of a run.

use super::approve::Clearance;
use super::run_context::RunContext;
use super::voice::{Listener, Voice};
use super::window::{CALL, without_result};
use super::{DriveError, form, rights};
use crate::node::conversation::NewMessage;
use crate::node::{self, output, planner, reasoner, retrieval, router, worker};
use crate::tool::allows;
use kiso_base::role::Role;
use kiso_graph::brief::Brief;
use kiso_graph::run::Run;
use kiso_graph::step::{PlanAsk, ReasonAsk, Step, StepResult};
use kiso_llm::Sink;
use kiso_plan::code::ErrorCode;
use kiso_plan::label::{Integrity, Label};
use kiso_plan::plan::TaskKind;
use kiso_plan::prompt::{ATTACHED, Pieces};
use kiso_plan::report::{TaskError, TaskReport, TaskStatus};
use kiso_sandbox::effect::sink::Permit;
use kiso_sandbox::exec::Watch;
use kiso_sandbox::skill::{self, wire_name};
use kiso_store::memory;
use std::sync::Arc;
use std::time::Instant;

/// Maximum number of lines of observational memory.
const DIGEST: u32 = 5;

impl RunContext<'_> {
    #[tracing::instrument(name = "drive.perform", level = "debug", skip_all, fields(node = run.node().name(), step = step.name()))]
    pub(super) async fn perform(
        &mut self,
        run: &Run,
        step: Step,
        listener: &mut dyn Listener,
    ) -> Result<StepResult, DriveError> {
        let result = match step {
            Step::Admit { texts } => self.admit(&texts, &run.spec().label).await?,
            Step::Retrieve { goal } => self.retrieve(run, goal.as_deref()).await?,
            Step::Route { message } => self.route(run, &message).await?,
            Step::Plan(ask) => self.plan(run, &ask, listener).await?,
            Step::Reason(ask) => self.reason(run, &ask).await?,
            Step::Start { task, .. } => match self.wanted_card(run).await? {
                Some(card) => StepResult::ApprovalWanted { card },
                None => StepResult::Started { task },
            },
            Step::Approve { .. } => self.card_answer().await?,
            Step::Execute { task, brief } => self.execute(run, task, &brief, listener).await?,
            Step::Act(ask) => self.act(run, &ask, listener).await?,
            Step::Assess(ask) => self.assess(run, &ask).await?,
            Step::Compress(ask) => self.compress(run, &ask).await?,
            Step::StartCalls { .. } => match self.wanted_card(run).await? {
                Some(card) => StepResult::ApprovalWanted { card },
                None => StepResult::CallsStarted,
            },
            Step::Call { calls } => {
                // The files that retrieval found may have changed.
                self.environment = None;
                self.call_tools(run, &calls, listener).await?
            }
            Step::Review(ask) => {
                let mut result = self.review(run, &ask).await?;
                self.learn(&result);
                if let StepResult::Reviewed { verdict, instructions, .. } = &mut result {
                    *instructions = self.instructions_of_tasks(&verdict.inject);
                }
                result
            }
            Step::Converse { message } => self.converse(run, &message, listener).await?,
            Step::Tell { text } => StepResult::Told { text },
            Step::Finish(outcome) => {
                let gone = self.gone_files(&outcome);
                let reply = output::reply(&outcome.without_files(&gone));
                StepResult::Finished { reply, arrived: self.arrived(run).await?, gone }
            }
            Step::Ended => unreachable!("the loop ends before"),
        };
        tracing::debug!(result = result.name(), "performed");
        self.without_secrets(result)
    }

    /// Removes secrets from a result before it is used, because text of a model goes into prompts, to the terminal and into the
    /// log, and a replay must equal the original. A report was cleaned already and keeps its task as planned.
    fn without_secrets(&self, result: StepResult) -> Result<StepResult, DriveError> {
        if matches!(result, StepResult::Executed { .. }) {
            return Ok(result);
        }
        Ok(self.secrets.redact_document(result)?)
    }

    async fn retrieve(&mut self, run: &Run, goal: Option<&str>) -> Result<StepResult, DriveError> {
        let memory = match goal {
            Some(goal) => self.remembered(goal).await?,
            None => Vec::new(),
        };
        let credentials = self.secrets.session_names().map(str::to_owned).collect();
        // The files of an event have the label of its message.
        let is_shown = |label: &Label| label.is_shown_to_planners() || run.expects(label);
        let (files, label) = self.labelled_files(run, is_shown).await?;
        let mut attached = self.attached(run.message(), &files).await;
        if label.integrity > Label::default().integrity {
            attached.label.join(&label);
        }
        let found = retrieval::retrieve(files, memory, credentials, attached);
        self.environment = Some(found.environment);
        Ok(found.result)
    }

    /// Returns the passages in memory that relate to a goal.
    async fn remembered(&self, goal: &str) -> Result<Vec<String>, DriveError> {
        let meaning = self.meaning(goal).await?;
        let told = memory::ShownTimes { session: self.session.clone(), times: self.earlier.told.clone() };
        Ok(memory::digest(&self.drive.store, goal, meaning, Some(told), DIGEST).await?)
    }

    async fn route(&mut self, run: &Run, message: &str) -> Result<StepResult, DriveError> {
        let system = self.drive.system_prompt(Role::Router)?;
        let lines = self.drive.tools.category_lines();
        let said: Vec<_> = self
            .trusted_talk(run, &[])
            .into_iter()
            .filter(|message| message.from != CALL && message.from != ATTACHED)
            .collect();
        let categories = self.drive.tools.categories();
        let known =
            Pieces { categories: Some(lines), agent_skills: self.brief_agent_skill_cards(), ..Pieces::default() };
        let files = self.environment.as_deref().unwrap_or_default();
        let request = router::request(&system, message, &said, files, &known, &self.boundary);
        let request = router::limit_categories(request, &categories);
        let request = match self.ready(run, request).await? {
            Ok(request) => request,
            Err(limit) => return Ok(StepResult::Stopped { limit }),
        };
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
            None => retrieval::environment(self.files(run).await?),
        };
        let mut skills = self.drive.tools.cards();
        if !ask.categories.is_empty() {
            skills.retain(|card| ask.categories.contains(&card.category));
            skills.iter_mut().for_each(|card| Arc::make_mut(card).chosen = true);
        }
        let in_use = self.agent_skills_in_use(run);
        skills.retain(|card| allows(&in_use, &wire_name(&card.name), &card.category));
        // Before the planner is called, this is the environment of every skill that it may choose. The plan replaces it with the
        // environment of its own skills.
        let names = skills.iter().map(|card| card.name.as_str());
        let mut skill_environment = vec![self.drive.tools.commands()];
        skill_environment.extend(self.drive.tools.environment(names, &self.secrets));
        let given = Pieces {
            caller: Some(self.rights(run)),
            skills: Some(skills),
            environment: Some(environment),
            skill_environment: Some(skill_environment),
            // The messages with which its lane was started.
            messages: Some(self.trusted_talk(run, &ask.replies).into_iter().map(without_result).collect()),
            ..self.trusted_known(run)
        };
        let system = self.drive.system_prompt(Role::Planner)?;
        let request = planner::request(&system, &given, run, ask, &self.boundary);
        let request = match self.ready(run, request).await? {
            Ok(request) => request,
            Err(limit) => return Ok(StepResult::Stopped { limit }),
        };
        let model = self.model(Role::Planner);
        let mut voice = Voice::new(Role::Planner, &self.secrets, listener);
        let planning = planner::call(&model, &request, &self.drive.tools, &run.spec().limits, &mut voice).await;
        voice.finish();
        let integrity = run.planner_label().integrity;
        // Before the event, so that nothing that follows can record a secret. Secrets from a planner that has read text from
        // anybody are ignored: it could have every word of the message redacted.
        match integrity {
            Integrity::User => self.keep(run, planning.secrets).await?,
            Integrity::Attached => self.keep_asked_for(run, planning.secrets).await?,
            Integrity::Publisher => self.keep_unnamed(run, planning.secrets).await?,
            Integrity::Person | Integrity::World => {}
        }
        self.answered(planning.answer);
        Ok(match planning.result {
            StepResult::Planned { plan, chatter, mut secrets, call, .. } => {
                match integrity {
                    Integrity::User => {}
                    Integrity::Attached => secrets.retain(|name| self.is_asked_for(name)),
                    Integrity::Publisher | Integrity::Person | Integrity::World => secrets.clear(),
                }
                let names = plan.tasks.iter().filter_map(|task| task.skill.as_deref());
                let skill_environment = self.drive.tools.environment(names, &self.secrets);
                let instructions = self.instructions_of_tasks(&plan.tasks);
                StepResult::Planned { plan, chatter, secrets, skill_environment, instructions, call }
            }
            other => other,
        })
    }

    async fn reason(&self, run: &Run, ask: &ReasonAsk) -> Result<StepResult, DriveError> {
        let system = self.drive.system_prompt(Role::Reasoner)?;
        let mut readiness: Vec<_> =
            retrieval::environment(self.files(run).await?).iter().map(|file| format!("file {}", file.path)).collect();
        readiness.extend(self.secrets.session_names().map(|name| format!("credential {name}")));
        readiness.extend(self.drive.tools.category_lines().into_iter().map(|line| format!("tools of {line}")));
        let message = run.message();
        let request = reasoner::request(&system, message, ask, readiness, &self.now, &self.boundary);
        Ok(match self.complete(run, request, &mut |_: &str| {}).await? {
            Ok(completion) => {
                let briefed = reasoner::read(&completion);
                self.answered(reasoner::again(&briefed));
                briefed
            }
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
            TaskKind::Msg if brief.written.is_some() => {
                let text = brief.written.clone().unwrap_or_default();
                (TaskReport::new(brief.task.clone(), TaskStatus::Done, text), None)
            }
            TaskKind::Msg => {
                let writer = worker::writer(&brief.task);
                let system = self.drive.system_prompt(writer)?;
                let request = worker::request(&system, &self.known(run), self.new_message(run), brief, &self.boundary);
                let by = worker::model_role(&brief.task);
                let request = match self.ready_for(run, request, by).await? {
                    Ok(request) => request,
                    Err(limit) => return Ok(StepResult::Stopped { limit }),
                };
                let model = self.model(by);
                // A task with a review is shown only after it is accepted.
                let (report, call) = if brief.task.notify && !brief.task.review {
                    let mut voice = Voice::new(writer, &self.secrets, listener);
                    let written = worker::call(&model, &request, &brief.task, &mut voice).await;
                    voice.finish();
                    written
                } else {
                    worker::call(&model, &request, &brief.task, &mut |_: &str| {}).await
                };
                (form::read(report), call)
            }
            _ => {
                let transaction = self.transaction(run, 0);
                let (locale, transaction) = (self.locale.as_str(), transaction.as_ref());
                let (bound, clearance, permit) = match self.with_labels(run, &brief.task, &run.decision_label()).await?
                {
                    Ok((task, labels)) => {
                        let (clearance, permit) = self.clear_task(run, &task, &labels).await?;
                        (task, clearance, permit)
                    }
                    Err(why) => {
                        let error = TaskError { code: ErrorCode::BadArgs, ..TaskError::of_host(why) };
                        (brief.task.clone(), Clearance::Denied(error), Permit::default())
                    }
                };
                let (session, secrets, accepted) = (&self.session, &self.secrets, clearance.accepted());
                let permit = Some(&permit);
                let shared = rights::sees_shared(run);
                let network = self.network(run).await?;
                let caller = skill::Caller {
                    session,
                    locale,
                    secrets,
                    shared,
                    transaction,
                    accepted,
                    permit,
                    network: Some(&network),
                };
                let watch = Watch::default();
                let mut tell = |stream: &'static str, text: &str| listener.output(0, stream, text);
                let report = match (self.narrowed(run, &brief.task), &clearance) {
                    (Some(narrowed), _) => narrowed,
                    (None, Clearance::Denied(error)) => {
                        let mut report = TaskReport::failed(brief.task.clone(), error.clone());
                        report.sinks = permit.map(Permit::take_log).unwrap_or_default();
                        report
                    }
                    (None, _) => tokio::select! {
                        report = self.drive.tools.run(&bound, self.caller, caller, &watch) => {
                            TaskReport { task: brief.task.clone(), ..report }
                        }
                        () = watch.follow(&self.secrets, &mut tell) => unreachable!("it goes on until it is dropped"),
                    },
                };
                let permit = permit.filter(|_| report.error.is_some());
                let wanted = permit.map(|permit| self.card_for_wanted(run, (&network, permit), &bound));
                if let Some(wanted) = wanted
                    && let Some(card) = wanted.await?
                {
                    return Ok(StepResult::ApprovalWanted { card });
                }
                (report, None)
            }
        };
        report.millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        // Redacted here, because from here the text goes into prompts, the reply, the terminal and the log.
        let task_as_planned = report.task.clone();
        // The task itself appears in later prompts, even if nothing was done. Text of a model gets the label of everything that
        // the model has read.
        report.label.join(&if report.task.kind == TaskKind::Msg { run.label() } else { run.decision_label() });
        report = self.secrets.redact_document(report)?;
        report.task = task_as_planned;
        if report.task.kind != TaskKind::Msg {
            self.guard_report(run, &mut report).await;
        }
        Ok(StepResult::Executed { task, report: Box::new(report), call })
    }

    /// Answers without tools: the worker writes, and its task is the message itself.
    async fn converse(&self, run: &Run, message: &str, listener: &mut dyn Listener) -> Result<StepResult, DriveError> {
        let system = self.drive.system_prompt(Role::Worker)?;
        let request = worker::talk(
            &system,
            &self.known(run),
            NewMessage { text: message, ..self.new_message(run) },
            &self.boundary,
        );
        let mut voice = Voice::new(Role::Worker, &self.secrets, listener);
        let completion = self.complete(run, request, &mut voice).await?;
        let note = completion.as_ref().map(|answer| node::notes(answer, run.attached())).unwrap_or_default();
        voice.text(&note);
        voice.finish();
        Ok(match completion {
            Ok(completion) => {
                let call = kiso_graph::step::Call { model: completion.model, usage: completion.usage };
                StepResult::Conversed { text: completion.text + &note, call }
            }
            Err(none) => none.result(),
        })
    }
}
