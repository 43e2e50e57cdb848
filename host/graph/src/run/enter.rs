//! From the message to a plan: input, retrieval, planner, and the briefs of the reasoning node.

use super::super::Why;
use super::super::execution_brief::{self, ExecutionBrief};
use super::super::lane::{Entry, SharedKind};
use super::super::outcome::Ending;
use super::super::repeat::Repeat;
use super::super::route;
use super::super::route::Routing;
use super::super::step::{Event, IllegalResult};
use super::named::NamedEffects;
use super::{Current, Record, Run, Stage, State, Waiting};
use kiso_plan::cues;
use kiso_plan::effort::Effort;
use kiso_plan::label::Label;
use kiso_plan::limits::LimitReached;
use kiso_plan::pill::PillUse;
use kiso_plan::plan::{Plan, Task, TaskKind};
use kiso_plan::report::{Correction, TaskStatus};

impl Run {
    pub(super) fn admit(
        &mut self,
        event: &mut Event,
        message: String,
        pill: Option<PillUse>,
        categories: Vec<String>,
    ) -> Result<(), IllegalResult> {
        self.lane.push(Entry::User(message.clone()));
        (self.message, self.pill, self.tagged) = (message, pill, categories);
        self.go(event, Why::Admitted, State::Retrieving)
    }

    pub(super) fn take_retrieval(
        &mut self,
        event: &mut Event,
        files: &[String],
        memory: &[String],
        credentials: Vec<String>,
    ) -> Result<(), IllegalResult> {
        self.credentials = credentials;
        self.lane.refresh(SharedKind::Environment, files.join("\n"));
        self.lane.refresh(SharedKind::ObservationalMemory, memory.join("\n"));
        match self.routing_without_model() {
            Some(routing) => self.leave_retrieval(event, routing),
            None => {
                self.state = State::Routing;
                Ok(())
            }
        }
    }

    /// Returns the route of the message if no model is needed: a pill determines it, or it takes the fast path.
    pub(super) fn routing_without_model(&self) -> Option<Routing> {
        if let Some(pill) = &self.pill {
            return Some(Routing {
                effort: pill.effort,
                categories: pill.categories.clone(),
                durable: cues::durable(&self.message),
                ..Routing::unknown(&self.message)
            });
        }
        let fast = self.spec.policy.fast_path && self.tagged.is_empty() && cues::fast_path(&self.message);
        fast.then(|| Routing::fast(&self.message))
    }

    pub(super) fn take_routing(
        &mut self,
        event: &mut Event,
        mut routing: Routing,
        memory: Option<Vec<String>>,
        secrets: Vec<String>,
    ) -> Result<(), IllegalResult> {
        self.take_credentials(secrets);
        if let Some(memory) = memory {
            self.lane.refresh(SharedKind::ObservationalMemory, memory.join("\n"));
        }
        // With a tag, the user requests tools.
        if self.tagged.is_empty() {
            route::calibrate(&mut routing, self.spec.policy.tool_need_threshold);
        }
        self.leave_retrieval(event, routing)
    }

    /// Adds names of secrets that a model found in the message.
    fn take_credentials(&mut self, names: Vec<String>) {
        let new: Vec<_> = names.into_iter().filter(|name| !self.credentials.contains(name)).collect();
        self.credentials.extend(new);
    }

    fn leave_retrieval(&mut self, event: &mut Event, mut routing: Routing) -> Result<(), IllegalResult> {
        // No categories means all of them, so there is nothing to add.
        if !routing.categories.is_empty() {
            let new = self.tagged.iter().filter(|tag| !routing.categories.contains(tag));
            let new: Vec<_> = new.cloned().collect();
            routing.categories.extend(new);
        } else if routing.effort != Effort::Low && !self.tagged.is_empty() {
            routing.categories.clone_from(&self.tagged);
        }
        let (effort, goal) = (routing.effort, routing.goal.clone());
        self.routing = Some(routing);
        match effort {
            Effort::Low => self.go(event, Why::Low, State::Conversing),
            Effort::Medium => self.act_directly(event, goal),
            Effort::High => {
                self.planner_lane.seed(&self.lane);
                let state = State::Planning { attempt: 1, correction: None, abandoned: None };
                self.go(event, Why::High, state)
            }
        }
    }

    /// The medium route: one task without a plan, whose answer is the reply.
    fn act_directly(&mut self, event: &mut Event, goal: String) -> Result<(), IllegalResult> {
        let task = Task { notify: true, ..Task::new(TaskKind::Act, self.message.clone()) };
        let brief = execution_brief::direct(&self.credentials);
        self.current = Current { goal, size: 1, first: self.records.len(), direct: true, ..Current::default() };
        let id = self.new_id();
        let label = self.label();
        let waiting = Waiting { id, task, depth: 0, label, instructions: Label::default() };
        self.enter_loop(event, Why::Medium, waiting, brief)
    }

    pub(super) fn take_plan(
        &mut self,
        event: &mut Event,
        plan: Plan,
        chatter: &str,
        skill_environment: Vec<String>,
        (secrets, instructions): (Vec<String>, Vec<Label>),
    ) -> Result<(), IllegalResult> {
        self.take_credentials(secrets);
        let tasks =
            plan.tasks.iter().map(|task| format!("- {}: {}", task.label(), kiso_plan::clip::clip(&task.detail, 200)));
        let tasks = tasks.collect::<Vec<_>>().join("\n");
        let said = format!("{chatter}\nPlan: {}\n{tasks}", plan.goal);
        self.planner_lane.push(Entry::Assistant(said.trim().to_owned()));
        self.lane.refresh(SharedKind::SkillEnvironment, skill_environment.join("\n"));
        let size = plan.tasks.len();
        let acts = plan.tasks.iter().filter(|task| task.kind == TaskKind::Act).count();
        let (label, first_id) = (self.planner_label(), self.next_id + 1);
        let mut instructions = instructions.into_iter();
        let waiting = |task| {
            let instructions = instructions.next().unwrap_or_default();
            Waiting { id: self.new_id(), task, depth: 0, label: label.clone(), instructions }
        };
        let waiting = plan.tasks.into_iter().map(waiting).collect();
        self.current = Current {
            goal: plan.goal,
            blocked: plan.blocked,
            waiting,
            size,
            first: self.records.len(),
            first_id,
            skill_environment,
            acts,
            direct: false,
        };
        self.reasoning_lane.seed(&self.lane);
        self.go(event, Why::Planned, State::reasoning())
    }

    pub(super) fn retry_plan(&mut self, event: &mut Event, correction: Correction) -> Result<(), IllegalResult> {
        let State::Planning { attempt, abandoned, .. } = &self.state else {
            return Ok(());
        };
        let (attempt, abandoned) = (*attempt, abandoned.clone());
        self.planner_lane.reject(&correction);
        let retries = self.spec.limits.max_parse_retries;
        if attempt <= retries {
            let state = State::Planning { attempt: attempt + 1, correction: Some(correction), abandoned };
            return self.go(event, Why::NoPlan, state);
        }
        event.limits.push(LimitReached::new("max_parse_retries", retries.into()));
        // Users search for this exact text; the log has the violations.
        let reason = format!("Planning failed: could not parse planner response after {attempt} attempts.");
        self.go(event, Why::PlanningFailed, State::Finishing { ending: Ending::Failed { reason } })
    }

    pub(super) fn take_brief(&mut self, brief: ExecutionBrief) -> Result<(), IllegalResult> {
        self.reasoning_lane.push(Entry::Assistant(brief.text()));
        self.state = State::Reasoning { attempt: 1, correction: None, brief: Some(brief) };
        Ok(())
    }

    pub(super) fn retry_brief(&mut self, event: &mut Event, correction: Correction) -> Result<(), IllegalResult> {
        let State::Reasoning { attempt, .. } = &self.state else {
            return Ok(());
        };
        let attempt = *attempt;
        self.reasoning_lane.reject(&correction);
        let retries = self.spec.limits.max_parse_retries;
        if attempt <= retries {
            let state = State::Reasoning { attempt: attempt + 1, correction: Some(correction), brief: None };
            return self.go(event, Why::NoBrief, state);
        }
        event.limits.push(LimitReached::new("max_parse_retries", retries.into()));
        self.do_without_brief(&format!("it could not be read after {attempt} attempts"))
    }

    /// Continues without a brief: the task is executed according to its own text, which is all that the planner wrote about it.
    pub(super) fn do_without_brief(&mut self, why: &str) -> Result<(), IllegalResult> {
        let Some(Waiting { task, .. }) = self.current.waiting.front() else {
            return Ok(());
        };
        let brief = self.derived(&self.current.goal, task);
        let number = self.records.len() - self.current.first + 1;
        self.notices
            .push_back(format!("There is no brief for task {number} ({why}), so the plan's own words are used."));
        self.state = State::Reasoning { attempt: 1, correction: None, brief: Some(brief) };
        Ok(())
    }

    pub(super) fn start_task(&mut self, event: &mut Event) -> Result<(), IllegalResult> {
        let State::Reasoning { brief, .. } = &self.state else {
            return Ok(());
        };
        let brief = brief.clone();
        let Some(waiting) = self.current.waiting.pop_front() else {
            return Ok(());
        };
        self.labels.take_in(&waiting.instructions);
        let Waiting { id, task, depth, label, instructions } = waiting;
        let brief = brief.unwrap_or_else(|| self.derived(&self.current.goal, &task));
        if task.kind == TaskKind::Act {
            return self.enter_loop(event, Why::Ready, Waiting { id, task, depth, label, instructions }, brief);
        }
        if task.kind != TaskKind::Msg {
            self.lane.push(Entry::Brief(brief.text()));
        }
        self.go(event, Why::Ready, State::Acting { id, task, depth, label })
    }

    fn enter_loop(
        &mut self,
        event: &mut Event,
        why: Why,
        Waiting { id, task, depth, label, .. }: Waiting,
        mut brief: ExecutionBrief,
    ) -> Result<(), IllegalResult> {
        brief.agree(&task.effects);
        brief.reply = self.closing_message().map(|message| message.detail.clone());
        brief.is_step = !self.current.direct;
        let is_alone = self.records.len() <= self.current.first && self.only_messages_remain();
        if is_alone {
            // The goal of a plan with a single task repeats the message, which the actor has.
            brief.goal.clear();
            brief.reply = brief.reply.map(|_| String::new());
        }
        let text = brief.text();
        if !text.is_empty() {
            self.lane.push(Entry::Brief(text));
        }
        self.action_lane = Default::default();
        let (repeat, results) = (Repeat::default(), Vec::new());
        let (brief, named) = (Box::new(brief), NamedEffects::planned_from(label));
        let state = State::Looping { id, task, depth, brief, round: 0, repeat, results, stage: Stage::Thinking, named };
        self.go(event, why, state)
    }

    /// Returns a brief without a model call.
    pub(super) fn derived(&self, goal: &str, task: &Task) -> ExecutionBrief {
        execution_brief::derive(goal, task, self.reports().next_back(), &self.credentials, &self.feedback())
    }

    /// Returns the message that ends the plan, if it is the only task left and the actor's text can be that message.
    pub(super) fn closing_message(&self) -> Option<&Task> {
        let Waiting { task, .. } = self.current.waiting.front().filter(|_| self.current.waiting.len() == 1)?;
        (closes_plan(task) && self.current.blocked.is_none()).then_some(task)
    }

    /// Returns the text of a message, if the actor of the task before it was told to write it.
    pub(super) fn written(&self, message: &Task) -> Option<String> {
        if !self.current.waiting.is_empty() || !closes_plan(message) || self.current.blocked.is_some() {
            return None;
        }
        let of_plan = self.records.get(self.current.first..)?;
        let Record { report, rejected, .. } = of_plan.last()?;
        let accepted = report.task.kind == TaskKind::Act && report.status == TaskStatus::Done && rejected.is_none();
        let text = report.text.trim();
        (accepted && !text.is_empty()).then(|| text.to_owned())
    }
}

/// Whether a message is an ordinary final message: without a schema or a model of its own.
fn closes_plan(task: &Task) -> bool {
    task.kind == TaskKind::Msg && task.notify && !task.review && task.schema.is_none() && task.model.is_none()
}
