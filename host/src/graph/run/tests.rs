use super::super::plan::TaskKind;
use super::super::report::{FileNote, TaskError};
use super::super::step::{Call, Route};
use super::super::verdict::Verdict;
use super::*;
use proptest::prelude::*;
use serde_json::json;

fn task(value: serde_json::Value) -> Task {
    serde_json::from_value(value).unwrap()
}

fn skill(review: bool) -> Task {
    task(json!({"type": "skill", "detail": "skill chart", "skill": "chart", "args": {"file": "a.csv"},
        "expect": "a chart", "review": review}))
}

fn msg() -> Task {
    task(json!({"type": "msg", "detail": "tell", "notify": true}))
}

fn plan(tasks: Vec<Task>) -> StepResult {
    let plan = Plan { goal: "draw".to_owned(), tasks, blocked: None };
    StepResult::Planned { plan, chatter: String::new(), secrets: Vec::new(), call: Call::default() }
}

fn correction() -> Correction {
    Correction { broken: "?".to_owned(), violations: vec!["there is no JSON object".to_owned()] }
}

fn unplanned() -> StepResult {
    StepResult::Unplanned { chatter: String::new(), correction: correction(), call: Call::default() }
}

fn unreviewed() -> StepResult {
    StepResult::Unreviewed { correction: correction(), call: Call::default() }
}

fn verdict(value: serde_json::Value) -> StepResult {
    StepResult::Reviewed { verdict: serde_json::from_value(value).unwrap(), call: Call::default() }
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

/// A live run with its log, which is checked against a replay after every event.
struct Live {
    run: Run,
    log: Vec<Event>,
}

impl Live {
    fn with(limits: Limits) -> Self {
        let spec = RunSpec {
            id: "r1".to_owned(),
            session: "s1".to_owned(),
            message: "draw a.csv".to_owned(),
            caller: Caller::User,
            limits,
        };
        Self { run: Run::new(spec), log: Vec::new() }
    }

    /// A run that has this plan.
    fn planned(tasks: Vec<Task>) -> Self {
        let mut live = Self::with(Limits::default());
        live.retrieve();
        live.feed(plan(tasks));
        live
    }

    fn retrieve(&mut self) {
        self.feed(StepResult::Retrieved { route: Route::High, files: vec!["a.csv".to_owned()] });
    }

    #[track_caller]
    fn feed(&mut self, result: StepResult) -> Event {
        let event = self.run.accept(result).unwrap();
        self.log.push(event.clone());
        event
    }

    /// Starts the next task and ends it with what `change` makes of a success.
    #[track_caller]
    fn execute(&mut self, change: impl FnOnce(&mut TaskReport)) -> Event {
        let Step::Start { task, brief } = self.run.next_step() else { panic!("{:?}", self.run.next_step()) };
        self.feed(StepResult::Started { task });
        let mut report = Box::new(TaskReport::new(brief.task, TaskStatus::Done, "it worked"));
        change(&mut report);
        self.feed(StepResult::Executed { task, report, call: None })
    }

    fn done(&mut self) -> Event {
        self.execute(|_| {})
    }

    fn failed(&mut self) -> Event {
        self.execute(|report| {
            report.status = TaskStatus::Failed;
            report.error = Some(error("boom"));
        })
    }

    #[track_caller]
    fn told(&mut self) -> String {
        let Step::Tell { text } = self.run.next_step() else { panic!("{:?}", self.run.next_step()) };
        self.feed(StepResult::Told { text: text.clone() });
        text
    }

    #[track_caller]
    fn finish(&mut self) -> Outcome {
        let Step::Finish(outcome) = self.run.next_step() else { panic!("{:?}", self.run.next_step()) };
        self.feed(StepResult::Finished { reply: outcome.reply.clone() });
        assert_eq!(self.run.next_step(), Step::Ended);
        assert_eq!(self.run.outcome(), Some(&*outcome));
        self.replay();
        *outcome
    }

    /// The log, written down and read back, leads to the same state.
    fn replay(&self) {
        let stored = serde_json::to_string(&self.log).unwrap();
        let events: Vec<Event> = serde_json::from_str(&stored).unwrap();
        assert_eq!(events, self.log);
        assert_eq!(Run::replay(self.run.spec.clone(), &events), Ok(self.run.clone()));
    }
}

fn error(message: &str) -> TaskError {
    TaskError { code: "x".to_owned(), message: message.to_owned(), limit: None, retryable: false, policy: false }
}

fn way(event: &Event) -> Vec<(Node, Why, Node)> {
    event.moves.iter().map(|step| (step.from, step.why, step.to)).collect()
}

fn limit_names(event: &Event) -> Vec<&str> {
    event.limits.iter().map(|limit| limit.limit.as_str()).collect()
}

#[test]
fn the_straight_way() {
    let mut live = Live::with(Limits::default());
    assert_eq!((live.run.node(), live.run.next_step()), (Node::Retrieval, Step::Retrieve));
    live.retrieve();
    assert_eq!(way(&live.log[0]), [(Node::Retrieval, Why::High, Node::Planner)]);
    let event = live.feed(plan(vec![skill(true), msg()]));
    assert_eq!(way(&event), [(Node::Planner, Why::Planned, Node::Reasoning)]);
    let Step::Start { task: 0, brief } = live.run.next_step() else { panic!() };
    assert_eq!((brief.goal.as_str(), brief.expect.as_deref(), brief.number, brief.of), ("draw", Some("a chart"), 1, 2));
    let event = live.done();
    assert_eq!(way(&live.log[2]), [(Node::Reasoning, Why::Ready, Node::Action)]);
    assert_eq!(way(&event), [(Node::Action, Why::TaskEnded, Node::Critic)]);
    let Step::Review(ask) = live.run.next_step() else { panic!() };
    assert_eq!((ask.task, ask.attempt, ask.goal.as_str(), ask.report.text.as_str()), (0, 1, "draw", "it worked"));
    let event = live.feed(ok());
    assert_eq!(way(&event), [(Node::Critic, Why::TasksRemain, Node::Reasoning)]);
    let Step::Start { task: 1, brief } = live.run.next_step() else { panic!() };
    assert_eq!((brief.number, brief.evidence.len()), (2, 1));
    let event = live.execute(|report| report.text = " Here it is.\n".to_owned());
    assert_eq!(event.say.as_deref(), Some("Here it is."));
    assert_eq!(way(&event)[1], (Node::Critic, Why::PlanExhausted, Node::Output));
    let outcome = live.finish();
    assert_eq!((outcome.ending, outcome.reply.as_str()), (Ending::Done, "Here it is."));
    assert_eq!(way(&live.log[7]), [(Node::Output, Why::CycleComplete, Node::End)]);
}

#[test]
fn an_unusable_plan_goes_back_until_the_retries_end() {
    let mut live = Live::with(Limits::default());
    live.retrieve();
    for attempt in 1..=3 {
        let event = live.feed(unplanned());
        assert_eq!(way(&event), [(Node::Planner, Why::NoPlan, Node::Planner)]);
        let Step::Plan(ask) = live.run.next_step() else { panic!() };
        assert_eq!((ask.attempt, ask.correction), (attempt + 1, Some(correction())));
    }
    let event = live.feed(unplanned());
    assert_eq!(way(&event), [(Node::Planner, Why::PlanningFailed, Node::Output)]);
    assert_eq!(limit_names(&event), ["max_parse_retries"]);
    let outcome = live.finish();
    assert_eq!(outcome.reply, "Planning failed: could not parse planner response after 4 attempts.");
    assert!(matches!(outcome.ending, Ending::Failed { .. }));
}

#[test]
fn a_planner_without_a_model_fails_the_run() {
    let mut live = Live::with(Limits::default());
    live.retrieve();
    live.feed(StepResult::ModelFailed { message: "no route to host".to_owned() });
    assert_eq!(live.finish().reply, "Planning failed: no route to host");
}

#[test]
fn needs_fix_injects_before_what_waits() {
    let mut live = Live::planned(vec![skill(true), msg()]);
    live.done();
    let event = live.feed(fix(&[skill(false), skill(true)]));
    assert_eq!(way(&event), [(Node::Critic, Why::NeedsFix, Node::Reasoning)]);
    let Step::Start { brief, .. } = live.run.next_step() else { panic!() };
    assert_eq!((brief.number, brief.of, brief.task.review), (2, 4, false));
    live.done();
    live.done();
    live.feed(ok());
    live.done();
    assert_eq!(live.finish().ending, Ending::Done);
}

#[test]
fn after_too_many_fixes_the_reviewer_is_left_out() {
    let mut live = Live::planned(vec![skill(true), msg()]);
    for _ in 0..3 {
        live.done();
        live.feed(fix(&[skill(true)]));
    }
    let event = live.done();
    assert_eq!(limit_names(&event), ["max_review_depth"]);
    let notice = live.told();
    assert!(
        notice.contains("Task 4 (skill chart) was not reviewed") && notice.contains("max_review_depth"),
        "{notice}"
    );
    live.done();
    assert_eq!(live.finish().ending, Ending::Done);
}

#[test]
fn a_fix_that_does_not_fit_is_a_replan() {
    let mut live = Live::with(Limits { max_tasks: 2, ..Limits::default() });
    live.retrieve();
    live.feed(plan(vec![skill(true), msg()]));
    live.done();
    let event = live.feed(fix(&[skill(false)]));
    assert_eq!((limit_names(&event), way(&event)[0].1), (vec!["max_tasks"], Why::Replan));
    assert!(live.told().contains("max_tasks allows (2)"));
}

#[test]
fn replan_tells_the_user_and_then_the_planner_everything() {
    let mut live = Live::planned(vec![skill(false), skill(true), msg()]);
    live.done();
    live.done();
    let event = live.feed(replan("wrong file"));
    assert_eq!(way(&event), [(Node::Critic, Why::Replan, Node::Planner)]);
    let notice = live.told();
    assert!(notice.contains("wrong file") && notice.contains("1 of 3"), "{notice}");
    let Step::Plan(ask) = live.run.next_step() else { panic!() };
    let context = ask.replan.unwrap();
    assert_eq!((context.completed.len(), context.remaining.as_slice()), (1, &[msg()][..]));
    assert_eq!(context.failure.reason, "wrong file");
    let [attempt] = &context.history[..] else { panic!() };
    assert_eq!((attempt.goal.as_str(), attempt.reason.as_str()), ("draw", "wrong file"));
    assert_eq!(
        attempt.tried,
        [r#"skill chart {"file":"a.csv"} → done"#, r#"skill chart {"file":"a.csv"} → wrong file"#]
    );
    // The context stays while the planner is asked to correct itself.
    live.feed(unplanned());
    let Step::Plan(ask) = live.run.next_step() else { panic!() };
    assert!(ask.replan.is_some() && ask.attempt == 2);
    live.feed(plan(vec![skill(false), msg()]));
    live.done();
    live.done();
    assert_eq!(live.finish().ending, Ending::Done);
}

#[test]
fn replanning_ends() {
    let mut live = Live::planned(vec![skill(true), msg()]);
    for round in 0..4 {
        live.done();
        let event = live.feed(replan(&format!("no {round}")));
        if round < 3 {
            live.told();
            live.feed(plan(vec![skill(true), msg()]));
        } else {
            assert_eq!(way(&event), [(Node::Critic, Why::ReplansExhausted, Node::Output)]);
            assert_eq!(limit_names(&event), ["max_replan_depth"]);
        }
    }
    let outcome = live.finish();
    assert!(outcome.reply.contains("no 3") && outcome.reply.contains("max_replan_depth"), "{}", outcome.reply);
    assert!(matches!(outcome.ending, Ending::Failed { .. }));
}

#[test]
fn an_unreviewed_failure_is_a_replan_with_the_error() {
    let mut live = Live::planned(vec![skill(false), msg()]);
    let event = live.failed();
    assert_eq!(way(&event)[1], (Node::Critic, Why::Replan, Node::Planner));
    assert!(live.told().contains("boom"));
    // A plan that only apologises does not make the run a success.
    live.feed(plan(vec![msg()]));
    live.execute(|report| report.text = "Sorry.".to_owned());
    let outcome = live.finish();
    assert_eq!(outcome.ending, Ending::Failed { reason: "boom".to_owned() });
    assert_eq!(outcome.reply, "Sorry.\n\nboom");
}

#[test]
fn an_exit_code_is_a_failure_whatever_the_status_says() {
    let mut live = Live::planned(vec![skill(false), msg()]);
    live.execute(|report| report.exit_code = Some(2));
    assert!(live.told().contains("it ended with exit code 2"));
}

#[test]
fn what_the_reviewer_rejected_stays_rejected() {
    let mut live = Live::planned(vec![skill(true), msg()]);
    live.done();
    live.feed(replan("empty chart"));
    live.told();
    live.feed(plan(vec![msg()]));
    live.done();
    assert_eq!(live.finish().ending, Ending::Failed { reason: "empty chart".to_owned() });
}

#[test]
fn a_reviewer_may_approve_an_exit_code_but_not_a_limit() {
    for (limit, failed) in [(None, false), (Some("timeout_s".to_owned()), true)] {
        let mut live = Live::planned(vec![skill(true), msg()]);
        live.execute(|report| {
            report.status = TaskStatus::Failed;
            report.exit_code = Some(1);
            report.error = Some(TaskError { limit, ..error("ended with 1") });
        });
        live.feed(ok());
        live.done();
        assert_eq!(matches!(live.finish().ending, Ending::Failed { .. }), failed);
    }
}

#[test]
fn a_goal_unmet_at_the_end_is_a_replan() {
    let unmet = json!({"status": "ok", "goal_met": false, "reason": "only half"});
    let mut live = Live::planned(vec![skill(true), skill(true), msg()]);
    live.done();
    let event = live.feed(verdict(unmet.clone()));
    assert_eq!(way(&event)[0].1, Why::TasksRemain, "other work is waiting");
    live.done();
    let event = live.feed(verdict(unmet));
    assert_eq!(way(&event)[0].1, Why::Replan);
    assert!(live.told().contains("only half"));
}

#[test]
fn a_review_that_cannot_be_read_leaves_the_status_to_decide() {
    for fails in [false, true] {
        let mut live = Live::planned(vec![skill(true), msg()]);
        if fails {
            live.failed()
        } else {
            live.done()
        };
        for _ in 0..3 {
            let event = live.feed(unreviewed());
            assert_eq!(way(&event), [(Node::Critic, Why::NoVerdict, Node::Critic)]);
        }
        let event = live.feed(unreviewed());
        assert_eq!(limit_names(&event), ["max_parse_retries"]);
        assert_eq!(way(&event)[0].1, if fails { Why::Replan } else { Why::TasksRemain });
        assert!(live.told().contains("could not be read after 4 attempts"));
    }
}

#[test]
fn a_reviewer_without_a_model_leaves_the_status_to_decide() {
    let mut live = Live::planned(vec![skill(true), msg()]);
    live.done();
    live.feed(StepResult::ModelFailed { message: "timed out".to_owned() });
    assert!(live.told().contains("could not be reviewed (timed out)"));
    live.done();
    assert_eq!(live.finish().ending, Ending::Done);
}

#[test]
fn a_blocked_plan_talks_and_fails() {
    let mut live = Live::with(Limits::default());
    live.retrieve();
    let plan = Plan { goal: "g".to_owned(), tasks: vec![msg()], blocked: Some("there is no sea.csv".to_owned()) };
    live.feed(StepResult::Planned { plan, chatter: String::new(), secrets: Vec::new(), call: Call::default() });
    live.execute(|report| report.text = "I looked, but there is no sea.csv.".to_owned());
    let outcome = live.finish();
    assert_eq!(outcome.ending, Ending::Failed { reason: "there is no sea.csv".to_owned() });
    assert_eq!(outcome.reply, "I looked, but there is no sea.csv.");
}

#[test]
fn a_message_is_said_only_once_the_critic_accepts_it() {
    let reviewed = Task { review: true, expect: Some("polite".to_owned()), ..msg() };
    let mut live = Live::planned(vec![reviewed]);
    let event = live.execute(|report| report.text = "Rude.".to_owned());
    assert_eq!(event.say, None);
    live.feed(fix(&[msg()]));
    let event = live.execute(|report| report.text = "Polite.".to_owned());
    assert_eq!(event.say.as_deref(), Some("Polite."));
    assert_eq!(live.finish().reply, "Polite.");
}

#[test]
fn files_are_listed_once_as_they_were_last() {
    let file = |path: &str, bytes| FileNote {
        path: path.to_owned(),
        media_type: "image/svg+xml".to_owned(),
        bytes,
        title: None,
        link: None,
    };
    let mut live = Live::planned(vec![skill(false), skill(false), msg()]);
    live.execute(|report| report.files = vec![file("pub/a.svg", 1), file("pub/b.svg", 2)]);
    live.execute(|report| report.files = vec![file("pub/a.svg", 3)]);
    live.done();
    assert_eq!(live.finish().files, [file("pub/a.svg", 3), file("pub/b.svg", 2)]);
}

#[test]
fn tokens_run_out() {
    let call = |tokens| Call {
        model: "m".to_owned(),
        usage: Usage { input_tokens: tokens, output_tokens: 0, cost_micros: 0 },
    };
    let mut live = Live::with(Limits { max_tokens_per_run: 100, ..Limits::default() });
    live.retrieve();
    let StepResult::Planned { plan, chatter, secrets, .. } = plan(vec![skill(true), msg()]) else { panic!() };
    live.feed(StepResult::Planned { plan, chatter, secrets, call: call(60) });
    live.done();
    let StepResult::Reviewed { verdict, .. } = replan("no") else { panic!() };
    let event = live.feed(StepResult::Reviewed { verdict, call: call(40) });
    assert_eq!(way(&event), [(Node::Critic, Why::OutOfTokens, Node::Output)]);
    let outcome = live.finish();
    assert_eq!(outcome.ending, Ending::LimitHit(LimitReached::new("max_tokens_per_run", 100)));
    assert!(outcome.reply.contains("limits.max_tokens_per_run"), "{}", outcome.reply);
    assert_eq!(live.run.usage().total(), 100);
}

#[test]
fn an_interrupted_task_is_shown_to_the_critic_and_not_run_again() {
    let mut live = Live::planned(vec![skill(true), msg()]);
    assert_eq!(live.run.interrupt(), Ok(None));
    live.feed(StepResult::Started { task: 0 });
    let mut run = Run::replay(live.run.spec.clone(), &live.log).unwrap();
    let event = run.interrupt().unwrap().unwrap();
    let Step::Review(ask) = run.next_step() else { panic!() };
    assert_eq!(ask.report.status, TaskStatus::Interrupted);
    assert_eq!(event.result.name(), "executed");
    // Without a review it is a reason to plan again.
    let mut live = Live::planned(vec![skill(false), msg()]);
    live.feed(StepResult::Started { task: 0 });
    live.run.interrupt().unwrap();
    assert!(live.told().contains("may or may not have taken effect"));
    // A message had no effect yet.
    let mut live = Live::planned(vec![msg()]);
    live.feed(StepResult::Started { task: 0 });
    assert_eq!(live.run.interrupt(), Ok(None));
    assert!(matches!(live.run.next_step(), Step::Execute { .. }));
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let mut live = Live::with(Limits::default());
    let refuse = |live: &mut Live, result: StepResult| {
        let before = live.run.clone();
        let error = live.run.accept(result).unwrap_err();
        assert_eq!(live.run, before, "{error}");
        error.to_string()
    };
    assert_eq!(refuse(&mut live, ok()), "the run waits for the result of retrieve, and reviewed is not one");
    live.retrieve();
    assert!(refuse(&mut live, plan(vec![])).contains("at least one task"));
    assert!(refuse(&mut live, plan(vec![skill(false)])).contains("the last task must be a msg"));
    live.feed(plan(vec![skill(true), msg()]));
    assert!(refuse(&mut live, StepResult::Started { task: 1 }).contains("waits for the result of start"));
    live.feed(StepResult::Started { task: 0 });
    let report = Box::new(TaskReport::new(msg(), TaskStatus::Done, ""));
    let result = StepResult::Executed { task: 0, report, call: None };
    assert!(refuse(&mut live, result).contains("another task"));
    let report = Box::new(TaskReport::new(skill(true), TaskStatus::Done, ""));
    live.feed(StepResult::Executed { task: 0, report, call: None });
    assert!(refuse(&mut live, fix(&[])).contains("needs_fix without tasks"));
    assert!(refuse(&mut live, verdict(json!({"status": "replan"}))).contains("without a reason"));
    live.feed(replan("x"));
    assert!(refuse(&mut live, StepResult::Told { text: "else".to_owned() }).contains("result of tell"));
}

#[test]
fn a_log_that_says_something_else_is_noticed() {
    let mut live = Live::planned(vec![msg()]);
    live.done();
    live.log[2].moves[0].to = Node::End;
    assert_eq!(Run::replay(live.run.spec.clone(), &live.log), Err(IllegalResult::Diverged { index: 2 }));
}

#[test]
fn events_are_tagged_with_their_kind() {
    let live = Live::planned(vec![msg()]);
    let event = serde_json::to_value(&live.log[1]).unwrap();
    assert_eq!(event["kind"], "planned");
    assert_eq!(event["moves"][0], json!({"from": "planner", "why": "planned", "to": "reasoning"}));
    assert_eq!(event["plan"]["tasks"][0], json!({"type": "msg", "detail": "tell", "notify": true}));
}

/// One random number per decision: what the world answers to a step.
fn answer(step: &Step, dice: u32) -> StepResult {
    let tokens = Usage { input_tokens: u64::from(dice % 97), output_tokens: u64::from(dice % 13), cost_micros: 0 };
    let call = Call { model: "m".to_owned(), usage: tokens };
    // Mostly reviewed skills: they are what leads into the far corners of the graph.
    let some = |kind: u32| -> Vec<Task> {
        let task = |n: u32| match (kind >> (2 * n)) % 4 {
            0 => msg(),
            review => skill(review > 1),
        };
        (0..=kind % 3).map(task).collect()
    };
    match step {
        Step::Retrieve => StepResult::Retrieved { route: Route::High, files: Vec::new() },
        Step::Plan(_) => match dice % 5 {
            0 => StepResult::Unplanned { chatter: "hm".to_owned(), correction: correction(), call },
            1 if dice % 40 == 1 => StepResult::ModelFailed { message: "gone".to_owned() },
            _ => {
                let mut tasks = some(dice / 5);
                let blocked = (dice.is_multiple_of(11)).then(|| "cannot".to_owned());
                if blocked.is_some() {
                    tasks.clear();
                }
                tasks.push(msg());
                let plan = Plan { goal: format!("g{dice}"), tasks, blocked };
                StepResult::Planned { plan, chatter: String::new(), secrets: Vec::new(), call }
            }
        },
        Step::Start { task, .. } => StepResult::Started { task: *task },
        Step::Execute { task, brief } => {
            let status = match dice % 8 {
                0 => TaskStatus::Failed,
                1..=3 if dice.is_multiple_of(7) => TaskStatus::Interrupted,
                _ => TaskStatus::Done,
            };
            let mut report = Box::new(TaskReport::new(brief.task.clone(), status, format!("text {dice}")));
            report.exit_code = (dice.is_multiple_of(3)).then_some(1);
            StepResult::Executed { task: *task, report, call: Some(call) }
        }
        Step::Review(_) => match dice % 6 {
            0 => StepResult::Unreviewed { correction: correction(), call },
            1 => replan("because"),
            2 | 3 => fix(&some(dice / 6)),
            4 => verdict(json!({"status": "ok", "goal_met": !dice.is_multiple_of(5)})),
            _ if dice % 30 == 5 => StepResult::ModelFailed { message: "gone".to_owned() },
            _ => StepResult::Reviewed {
                verdict: Verdict { status: Status::Ok, inject: vec![], reason: None, learn: None, goal_met: None },
                call,
            },
        },
        Step::Tell { text } => StepResult::Told { text: text.clone() },
        Step::Finish(outcome) => StepResult::Finished { reply: outcome.reply.clone() },
        Step::Ended => unreachable!("nobody answers the end"),
    }
}

fn some_limits() -> impl Strategy<Value = Limits> {
    (0u32..4, 0u32..4, 0u32..4, 4usize..12, prop_oneof![Just(u64::MAX), 50u64..3_000]).prop_map(
        |(max_parse_retries, max_review_depth, max_replan_depth, max_tasks, max_tokens_per_run)| Limits {
            max_parse_retries,
            max_review_depth,
            max_replan_depth,
            max_tasks,
            max_tokens_per_run,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever the models and the tasks do: the run ends within what its limits allow, takes only edges of the
    /// graph, refuses what does not fit, and can be rebuilt from its log at every point.
    #[test]
    fn every_run_ends(limits in some_limits(), dice in prop::collection::vec(any::<u32>(), 64)) {
        let mut live = Live::with(limits);
        let plans = limits.max_replan_depth as usize + 1;
        let calls = limits.max_parse_retries as usize + 1;
        // Per plan its calls and a notice; per task start, end, reviews and two notices; retrieval and output.
        let most = 2 + plans * (calls + 1 + limits.max_tasks * (2 + calls + 2));
        let mut rolls = dice.iter().cycle().zip(0u32..).map(|(dice, turn)| dice.wrapping_mul(2 * turn + 1));
        let mut reviews_in_a_row = 0;
        loop {
            let step = live.run.next_step();
            if step == Step::Ended {
                break;
            }
            let roll = rolls.next().unwrap();
            let other = answer(&Step::Tell { text: "not asked for".to_owned() }, roll);
            let before = live.run.clone();
            prop_assert!(live.run.accept(other).is_err());
            prop_assert_eq!(&live.run, &before);
            let from = live.run.node();
            let event = live.feed(answer(&step, roll));
            let mut at = from;
            for step in &event.moves {
                prop_assert_eq!(step.from, at);
                prop_assert_eq!(edge(step.from, step.why), Some(step.to));
                at = step.to;
            }
            prop_assert_eq!(live.run.node(), at);
            match &event.result {
                StepResult::Unreviewed { .. } => reviews_in_a_row += 1,
                _ => reviews_in_a_row = 0,
            }
            prop_assert!(reviews_in_a_row <= calls);
            prop_assert!(live.run.current.size <= limits.max_tasks);
            prop_assert!(live.run.history.len() <= limits.max_replan_depth as usize);
            prop_assert!(live.run.records.iter().all(|record| record.depth <= limits.max_review_depth));
            prop_assert!(live.log.len() <= most, "{} events, at most {most}", live.log.len());
        }
        prop_assert_eq!(live.run.node(), Node::End);
        let outcome = live.run.outcome().unwrap();
        prop_assert!(!outcome.reply.trim().is_empty());
        if let Ending::Failed { reason } = &outcome.ending {
            prop_assert!(outcome.reply.contains(reason.as_str()), "the reply hides why: {}", outcome.reply);
        }
        live.replay();
        // A machine that was stored as it stands is the same one, too.
        let stored = serde_json::to_string(&live.run).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Run>(&stored).unwrap(), &live.run);
        // Killed after any event, it goes on: a task that had started becomes a report, and nothing is run twice.
        for length in 0..live.log.len() {
            let mut run = Run::replay(live.run.spec.clone(), &live.log[..length]).unwrap();
            let acting = matches!(run.state, State::Acting { ref task, .. } if task.kind != TaskKind::Msg);
            let event = run.interrupt().unwrap();
            prop_assert_eq!(event.is_some(), acting);
            prop_assert!(!acting || run.node() != Node::Action);
        }
    }
}
