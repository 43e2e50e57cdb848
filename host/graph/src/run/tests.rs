//! Shared by the tests of the state machine: a live run that checks itself, and results for it.

mod action;
mod audit;
mod board;
mod briefs;
mod critic;
mod cycles;
mod dice;
mod edges;
mod ending;
mod fits;
mod history;
mod lanes;
mod named;
mod planning;
mod random;
mod replay;
mod routing;

use super::pending::interrupted;
use super::*;
use crate::lane::Entry;
use crate::reflection::Status as ToolStatus;
use crate::route::RoutedBy;
use crate::step::{Call, Step};
use kiso_plan::attached::AttachedFiles;
use kiso_plan::code::ErrorCode;
use kiso_plan::effort::Effort;
use kiso_plan::limits::{LimitReached, Limits};
use kiso_plan::plan::{CallerScope, Plan, TaskKind};
use kiso_plan::report::{FileNote, INTERRUPTED, TaskError, TaskStatus};
use serde_json::{Value, json};

fn task(value: Value) -> Task {
    serde_json::from_value(value).unwrap()
}

fn skill(review: bool) -> Task {
    task(json!({"type": "skill", "detail": "skill chart", "skill": "chart", "args": {"file": "a.csv"},
        "expect": "a chart", "review": review}))
}

fn act(review: bool) -> Task {
    task(json!({"type": "act", "detail": "find the pressure", "expect": "a number", "review": review}))
}

fn msg() -> Task {
    task(json!({"type": "msg", "detail": "tell", "notify": true}))
}

/// A call that used this many tokens.
fn paid(tokens: u64) -> Call {
    Call { model: "m".to_owned(), usage: Usage { input_tokens: tokens, ..Usage::default() } }
}

fn admitted(message: &str) -> StepResult {
    StepResult::Admitted {
        message: message.to_owned(),
        tags: Vec::new(),
        pill: None,
        categories: Vec::new(),
        unknown: Vec::new(),
        archived: None,
        instructions: Default::default(),
    }
}

fn retrieved(files: &[&str]) -> StepResult {
    StepResult::Retrieved {
        files: files.iter().map(|&file| file.to_owned()).collect(),
        memory: Vec::new(),
        credentials: Vec::new(),
        attached: AttachedFiles::default(),
    }
}

fn routed(effort: Effort) -> StepResult {
    let routing = Routing {
        effort,
        categories: vec!["data".to_owned()],
        tool_need: 90,
        goal: "a chart".to_owned(),
        durable: false,
    };
    StepResult::Routed { routing, by: RoutedBy::Router, memory: None, secrets: Vec::new(), trouble: None, call: None }
}

fn plan(tasks: Vec<Task>) -> StepResult {
    let plan = Plan { goal: "draw".to_owned(), tasks, blocked: None };
    planned(plan, 0)
}

fn planned(plan: Plan, tokens: u64) -> StepResult {
    StepResult::Planned {
        plan,
        chatter: String::new(),
        secrets: Vec::new(),
        skill_environment: Vec::new(),
        instructions: Vec::new(),
        call: paid(tokens),
    }
}

fn correction() -> Correction {
    Correction { broken: "?".to_owned(), violations: vec!["there is no JSON object".to_owned()] }
}

fn unplanned() -> StepResult {
    StepResult::Unplanned { chatter: String::new(), correction: correction(), call: Call::default() }
}

fn execution_brief(action: &str) -> ExecutionBrief {
    ExecutionBrief {
        goal: "draw".to_owned(),
        required: Vec::new(),
        delta: "all".to_owned(),
        success: vec!["it is there".to_owned()],
        context: Default::default(),
        action: action.to_owned(),
        reply: None,
        is_step: false,
    }
}

fn briefed(action: &str) -> StepResult {
    StepResult::Briefed { brief: execution_brief(action), call: Call::default() }
}

fn unbriefed() -> StepResult {
    StepResult::Unbriefed { correction: correction(), call: Call::default() }
}

fn acted(text: &str, calls: Vec<ToolCall>) -> StepResult {
    StepResult::Acted { text: text.to_owned(), calls, call: Call::default() }
}

fn assessed(text: &str) -> StepResult {
    StepResult::Assessed { text: text.to_owned(), call: Call::default() }
}

/// A call of the tool `find`.
fn find(id: &str, what: &str) -> ToolCall {
    ToolCall::new(id, "find", json!({"what": what}).to_string())
}

fn tool_result(call: &ToolCall, text: &str) -> ToolResult {
    ToolResult {
        status: ToolStatus::Ok,
        text: text.to_owned(),
        code: None,
        millis: 5,
        ..interrupted(call, INTERRUPTED)
    }
}

fn unreviewed() -> StepResult {
    StepResult::Unreviewed { correction: correction(), read: Default::default(), call: Call::default() }
}

fn verdict(value: Value) -> StepResult {
    let verdict = serde_json::from_value(value).unwrap();
    StepResult::Reviewed { verdict, instructions: Vec::new(), read: Default::default(), call: Call::default() }
}

fn ok() -> StepResult {
    verdict(json!({"status": "ok"}))
}

fn replan(reason: &str) -> StepResult {
    verdict(json!({"status": "replan", "reason": reason}))
}

fn fix(tasks: &[Task]) -> StepResult {
    verdict(json!({"status": "needs_fix", "inject": tasks}))
}

fn model_failed(message: &str) -> StepResult {
    StepResult::ModelFailed { message: message.to_owned() }
}

/// The session's limit, which the run itself does not know.
fn stopped() -> StepResult {
    let limit = LimitReached {
        limit: "max_tokens_per_day".to_owned(),
        value: 9,
        setting: "limits.max_tokens_per_day".to_owned(),
        because: None,
    };
    StepResult::Stopped { limit }
}

fn error(message: &str) -> TaskError {
    TaskError { code: ErrorCode::Failed, message: message.to_owned(), limit: None, retryable: false, policy: false }
}

fn file(path: &str, bytes: u64) -> FileNote {
    FileNote { path: path.to_owned(), media_type: "image/svg+xml".to_owned(), bytes, title: None, link: None }
}

/// A live run with its log.
struct Live {
    run: Run,
    log: Vec<Event>,
}

impl Live {
    /// A run without any result yet.
    fn new(message: &str, limits: Limits, policy: Policy) -> Self {
        let spec = RunSpec {
            id: "r1".to_owned(),
            session: "s1".to_owned(),
            message: message.to_owned(),
            joined: Vec::new(),
            caller: CallerScope::User,
            limits,
            policy,
            segment: Segment::default(),
            label: Default::default(),
            context: Default::default(),
            shown: Default::default(),
        };
        Self { run: Run::new(spec), log: Vec::new() }
    }

    /// A run before the router is called.
    fn at_router(limits: Limits) -> Self {
        let mut live = Self::new("draw a.csv", limits, Policy::default());
        live.feed(admitted("draw a.csv"));
        live.feed(retrieved(&["a.csv"]));
        live
    }

    /// A run before its first plan.
    fn at_planner(limits: Limits) -> Self {
        let mut live = Self::at_router(limits);
        live.feed(routed(Effort::High));
        live
    }

    /// A run with this plan.
    fn planned(tasks: Vec<Task>) -> Self {
        Self::planned_with(Limits::default(), tasks)
    }

    fn planned_with(limits: Limits, tasks: Vec<Task>) -> Self {
        let mut live = Self::at_planner(limits);
        live.feed(plan(tasks));
        live
    }

    /// A run on the medium route, before the first answer of the actor.
    fn medium(limits: Limits) -> Self {
        let mut live = Self::at_router(limits);
        live.feed(routed(Effort::Medium));
        live
    }

    #[track_caller]
    fn feed(&mut self, result: StepResult) -> Event {
        let event = self.run.accept(result).unwrap();
        self.log.push(event.clone());
        event
    }

    /// Asserts that a result is refused and changes nothing.
    #[track_caller]
    fn refuse(&mut self, result: StepResult) -> String {
        let before = self.run.clone();
        let error = self.run.accept(result).unwrap_err();
        assert_eq!(self.run, before, "{error}");
        error.to_string()
    }

    /// The name of the next step.
    fn next(&self) -> &'static str {
        self.run.next_step().name()
    }

    /// Starts the next task, and ends it with a success that `change` modifies.
    #[track_caller]
    fn execute(&mut self, change: impl FnOnce(&mut TaskReport)) -> Event {
        let Step::Start { task, brief } = self.run.next_step() else { panic!("{:?}", self.run.next_step()) };
        self.feed(StepResult::Started { task });
        let mut report = Box::new(TaskReport::new(brief.task, TaskStatus::Done, "it worked"));
        change(&mut report);
        self.feed(StepResult::Executed { task, report, call: None })
    }

    #[track_caller]
    fn done(&mut self) -> Event {
        self.execute(|_| {})
    }

    #[track_caller]
    fn failed(&mut self) -> Event {
        self.execute(|report| {
            report.status = TaskStatus::Failed;
            report.error = Some(error("boom"));
        })
    }

    /// Starts the loop of the next task, which is an `act`, after its brief if the reasoner writes one.
    #[track_caller]
    fn brief(&mut self) {
        if self.next() == "reason" {
            self.feed(briefed("look"));
        }
        self.start();
    }

    #[track_caller]
    fn start(&mut self) -> Event {
        let Step::Start { task, .. } = self.run.next_step() else { panic!("{:?}", self.run.next_step()) };
        self.feed(StepResult::Started { task })
    }

    /// A round of the action loop in which each call returns `text`.
    #[track_caller]
    fn round(&mut self, calls: &[ToolCall], text: &str) -> Event {
        self.feed(acted("", calls.to_vec()));
        self.feed(StepResult::CallsStarted);
        self.feed(StepResult::Called { results: calls.iter().map(|call| tool_result(call, text)).collect() })
    }

    #[track_caller]
    fn take_notice(&mut self) -> String {
        let Step::Tell { text } = self.run.next_step() else { panic!("{:?}", self.run.next_step()) };
        self.feed(StepResult::Told { text: text.clone() });
        text
    }

    /// Delivers the reply; no messages arrive meanwhile.
    #[track_caller]
    fn finish(&mut self) -> Outcome {
        let Step::Finish(outcome) = self.run.next_step() else { panic!("{:?}", self.run.next_step()) };
        self.feed(StepResult::Finished { reply: outcome.reply.clone(), arrived: Vec::new(), gone: Vec::new() });
        assert_eq!(self.run.next_step(), Step::Ended);
        assert_eq!(self.run.outcome(), Some(&*outcome));
        self.replay();
        self.audit();
        *outcome
    }

    /// Delivers the reply while these messages arrive.
    #[track_caller]
    fn deliver(&mut self, arrived: &[&str]) -> Event {
        let Step::Finish(outcome) = self.run.next_step() else { panic!("{:?}", self.run.next_step()) };
        let arrived = arrived.iter().map(|&text| text.to_owned()).collect();
        self.feed(StepResult::Finished { reply: outcome.reply, arrived, gone: Vec::new() })
    }

    /// Asserts that the log of an ended run respects every limit, and that the run agrees with its log.
    #[track_caller]
    fn audit(&self) {
        let sum = audit::audit(self.run.spec(), &self.log).unwrap_or_else(|wrong| panic!("{wrong}"));
        let usage = self.run.usage();
        assert_eq!((usage.total(), usage.cost_micros), (sum.tokens, sum.micros));
        // Every planned task is on the board once, and none is open.
        let mut ids: Vec<_> = self.run.board().iter().map(|entry| entry.id).collect();
        ids.sort_unstable();
        assert_eq!(ids, (1..=sum.tasks).collect::<Vec<_>>());
        let open = |entry: &BoardTask<'_>| matches!(entry.state, TaskState::Planned | TaskState::Running);
        assert!(!self.run.board().iter().any(open));
    }

    /// Asserts that the stored log and the stored state lead to the same state.
    #[track_caller]
    fn replay(&self) {
        let stored = serde_json::to_string(&self.log).unwrap();
        let events: Vec<Event> = serde_json::from_str(&stored).unwrap();
        assert_eq!(events, self.log);
        assert_eq!(Run::replay(self.run.spec.clone(), &events), Ok(self.run.clone()));
        let stored = serde_json::to_string(&self.run).unwrap();
        assert_eq!(serde_json::from_str::<Run>(&stored).unwrap(), self.run);
    }
}

fn way(event: &Event) -> Vec<(Node, Why, Node)> {
    event.moves.iter().map(|step| (step.from, step.why, step.to)).collect()
}

fn whys(event: &Event) -> Vec<Why> {
    event.moves.iter().map(|step| step.why).collect()
}

fn limit_names(event: &Event) -> Vec<&str> {
    event.limits.iter().map(|limit| limit.limit.as_str()).collect()
}
