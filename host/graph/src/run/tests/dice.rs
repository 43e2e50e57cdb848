//! A driver with random results: it answers every step with something that could happen.

use super::*;
use crate::banner::Banner;

/// The source of random numbers.
pub(super) enum Dice {
    /// A seed: fast, and the same every time.
    Seed(u64),
    /// Given choices, then always the first one; this shrinks well.
    Given(std::vec::IntoIter<u16>),
}

impl Dice {
    /// Returns a number below `n`. The first choice always leads to the end.
    pub(super) fn below(&mut self, n: usize) -> usize {
        match self {
            // splitmix64
            Self::Seed(state) => {
                *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mut bits = *state;
                bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                ((bits ^ (bits >> 31)) % n as u64) as usize
            }
            Self::Given(choices) => usize::from(choices.next().unwrap_or(0)) % n,
        }
    }

    pub(super) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == n - 1
    }

    fn choose<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }
}

/// A random run, with limits that are reached after a few steps.
pub(super) fn spec(dice: &mut Dice) -> RunSpec {
    let limits = Limits {
        max_parse_retries: dice.below(3) as u32,
        max_review_depth: dice.below(3) as u32,
        max_replan_depth: dice.below(3) as u32,
        max_tasks: dice.choose(&[2, 1, 3, 5, 0]),
        max_tool_call_rounds: dice.choose(&[1, 0, 2, 4]),
        tool_output_limit_tokens: 2_000,
        max_cycles: dice.below(3) as u32,
        max_tokens_per_run: dice.choose(&[u64::MAX, 500_000, 300, u64::MAX, 100, 500_000, 1_000, 0]),
        max_cost_cents_per_run: dice.choose(&[0, 0, 0, 2]),
    };
    RunSpec {
        id: "r1".to_owned(),
        session: "s1".to_owned(),
        message: dice.choose(&["draw a.csv", "hello"]).to_owned(),
        joined: Vec::new(),
        caller: CallerScope::User,
        limits: if dice.one_in(16) { Limits::default() } else { limits },
        policy: Policy {
            fast_path: dice.below(2) == 0,
            tool_need_threshold: dice.choose(&[30, 0, 100]),
            lane_tokens: dice.choose(&[6_000, 1, 80]),
            subagent: false,
            shows_all: dice.one_in(8),
        },
        segment: Segment::default(),
        label: Default::default(),
        context: Default::default(),
        shown: Default::default(),
    }
}

/// A random result of `step`. The first choice is always the success.
pub(super) fn answer(dice: &mut Dice, step: &Step, limits: &Limits) -> StepResult {
    if dice.one_in(80) && fits::fits(step.name(), "stopped") {
        return stopped();
    }
    if dice.one_in(120) && fits::fits(step.name(), "cancelled") {
        return StepResult::Cancelled;
    }
    if dice.one_in(24) && fits::fits(step.name(), "model_failed") {
        return model_failed("no route to host");
    }
    match step {
        Step::Admit { texts } => StepResult::Admitted {
            message: texts.join("\n"),
            tags: Vec::new(),
            pill: dice.one_in(8).then(|| PillUse {
                name: "sum".to_owned(),
                effort: effort(dice),
                categories: web(dice),
            }),
            categories: web(dice),
            unknown: Vec::new(),
            archived: None,
            instructions: instructions(dice),
        },
        Step::Retrieve { .. } => StepResult::Retrieved {
            files: dice.choose(&[vec![], vec!["a.csv".to_owned()]]),
            memory: web(dice),
            credentials: dice.choose(&[vec![], vec!["api_key".to_owned()]]),
            attached: AttachedFiles::default(),
        },
        Step::Route { message } => route(dice, message),
        Step::Plan(_) if limits.max_tasks == 0 || dice.one_in(5) => {
            StepResult::Unplanned { chatter: String::new(), correction: correction(), call: some_call(dice) }
        }
        Step::Plan(_) => a_plan(dice, limits.max_tasks),
        Step::Reason(_) if dice.one_in(3) => StepResult::Unbriefed { correction: correction(), call: some_call(dice) },
        Step::Reason(_) => StepResult::Briefed { brief: execution_brief("look"), call: some_call(dice) },
        Step::Start { .. } | Step::StartCalls { .. } | Step::Execute { .. } | Step::Call { .. } if dice.one_in(16) => {
            StepResult::ApprovalWanted { card: fits::card(dice.choose(&[1, 2])) }
        }
        Step::Approve { .. } => StepResult::ApprovalGiven { answer: fits::accepts(dice.choose(&[&[1], &[]])) },
        Step::Start { task, .. } => StepResult::Started { task: *task },
        Step::Execute { task, brief } => {
            let report = Box::new(report(dice, &brief.task));
            StepResult::Executed { task: *task, report, call: dice.one_in(3).then(|| some_call(dice)) }
        }
        Step::Act(_) => StepResult::Acted {
            text: dice.choose(&["1 bar", "", "Let me see.", "✅ GOAL ACHIEVED"]).to_owned(),
            calls: batch(dice),
            call: some_call(dice),
        },
        Step::Compress(_) => StepResult::Compressed {
            reference: "context-1".to_owned(),
            summary: "what was found".to_owned(),
            calls: if dice.one_in(2) { vec![some_call(dice), some_call(dice)] } else { Vec::new() },
        },
        Step::StartCalls { .. } => StepResult::CallsStarted,
        Step::Call { calls } => StepResult::Called { results: calls.iter().map(|call| result(dice, call)).collect() },
        Step::Assess(_) => {
            let banner = dice.choose(&["", Banner::Achieved.text(), Banner::PartiallyAchieved.text()]);
            StepResult::Assessed { text: format!("{banner}\nwell"), call: some_call(dice) }
        }
        Step::Review(_) => review(dice),
        Step::Converse { .. } => {
            StepResult::Conversed { text: dice.choose(&["Hello.", " "]).to_owned(), call: some_call(dice) }
        }
        Step::Tell { text } => StepResult::Told { text: text.clone() },
        Step::Finish(outcome) => StepResult::Finished {
            reply: outcome.reply.clone(),
            arrived: if dice.one_in(3) { vec!["draw b.csv".to_owned()] } else { Vec::new() },
            gone: outcome.files.iter().skip(1).map(|file| file.path.clone()).collect(),
        },
        Step::Ended => panic!("nothing is left to answer"),
    }
}

fn effort(dice: &mut Dice) -> Effort {
    dice.choose(&[Effort::Low, Effort::High, Effort::Medium, Effort::High])
}

fn web(dice: &mut Dice) -> Vec<String> {
    if dice.one_in(6) { vec!["web".to_owned()] } else { Vec::new() }
}

fn some_call(dice: &mut Dice) -> Call {
    let usage = Usage {
        input_tokens: dice.choose(&[1, 0, 10, 60]),
        output_tokens: dice.choose(&[0, 5]),
        cached_tokens: 0,
        cost_micros: dice.choose(&[0, 3_000, 9_000]),
    };
    Call { model: String::new(), usage }
}

fn route(dice: &mut Dice, message: &str) -> StepResult {
    let call = Some(some_call(dice));
    let (secrets, trouble) = (Vec::new(), None);
    if dice.one_in(8) {
        return StepResult::Routed {
            routing: Routing::unknown(message),
            by: RoutedBy::Default,
            memory: None,
            secrets,
            trouble,
            call,
        };
    }
    let routing = Routing {
        effort: effort(dice),
        categories: web(dice),
        tool_need: dice.choose(&[0, 29, 30, 100]),
        goal: "a chart".to_owned(),
        durable: false,
    };
    StepResult::Routed { routing, by: RoutedBy::Router, memory: None, secrets, trouble, call }
}

/// The label of the Agent Skills that a text names.
fn instructions(dice: &mut Dice) -> Label {
    if dice.one_in(8) { Label::of_skill("greet") } else { Label::default() }
}

fn a_task(dice: &mut Dice) -> Task {
    let kind = dice.choose(&[TaskKind::Msg, TaskKind::Act, TaskKind::Skill, TaskKind::Act, TaskKind::Exec]);
    let skill = (kind == TaskKind::Skill).then(|| "chart".to_owned());
    let (notify, review) = (dice.one_in(2), dice.one_in(2));
    Task { skill, notify, review, ..Task::new(kind, "it") }
}

fn a_plan(dice: &mut Dice, max_tasks: usize) -> StepResult {
    // Few tasks, even if many are allowed: a run with fifty tasks tests no more than one with five.
    let mut tasks: Vec<_> = (0..dice.below(max_tasks.min(5))).map(|_| a_task(dice)).collect();
    let blocked = dice.one_in(12).then(|| "there is no sea.csv".to_owned());
    if blocked.is_some() {
        tasks.retain(|task| task.kind == TaskKind::Msg);
    }
    tasks.push(Task { kind: TaskKind::Msg, skill: None, notify: true, ..a_task(dice) });
    let told = tasks.iter().map(|_| instructions(dice)).collect();
    StepResult::Planned {
        plan: Plan { goal: "draw".to_owned(), tasks, blocked },
        chatter: String::new(),
        secrets: Vec::new(),
        skill_environment: web(dice),
        instructions: told,
        call: some_call(dice),
    }
}

fn report(dice: &mut Dice, task: &Task) -> TaskReport {
    let status = dice.choose(&[TaskStatus::Done, TaskStatus::Done, TaskStatus::Failed, TaskStatus::Interrupted]);
    let mut report = TaskReport::new(task.clone(), status, dice.choose(&["it worked", "", "well"]));
    if status == TaskStatus::Failed && dice.one_in(2) {
        report.error = Some(TaskError { limit: dice.one_in(2).then(|| "timeout_s".to_owned()), ..error("boom") });
    }
    report.exit_code = dice.choose(&[None, None, Some(0), Some(1)]);
    if dice.one_in(6) {
        report.files.push(file("pub/a.svg", 1));
    }
    report
}

fn batch(dice: &mut Dice) -> Vec<ToolCall> {
    let size = dice.choose(&[0, 1, 1, 2, 1, 1, 2, 1]);
    let size = if dice.one_in(40) { MAX_BATCH + 2 } else { size };
    // Few different arguments, so that an actor often repeats itself.
    (0..size).map(|n| find(["1", "2", "3", "4"][n % 4], dice.choose(&["x", "y"]))).collect()
}

fn result(dice: &mut Dice, call: &ToolCall) -> ToolResult {
    let status =
        dice.choose(&[ToolStatus::Ok, ToolStatus::Ok, ToolStatus::Partial, ToolStatus::Error, ToolStatus::Blocked]);
    let code = (status == ToolStatus::Error).then_some(ErrorCode::NotFound);
    ToolResult {
        status,
        code,
        ..tool_result(call, "something of some length, so that a lane fills up after a few rounds")
    }
}

fn review(dice: &mut Dice) -> StepResult {
    use kiso_plan::verdict::{Status, Verdict};
    let call = some_call(dice);
    if dice.one_in(4) {
        return StepResult::Unreviewed { correction: correction(), read: instructions(dice), call };
    }
    let status = dice.choose(&[Status::Ok, Status::NeedsFix, Status::Ok, Status::Replan]);
    let inject = match status {
        Status::NeedsFix => (0..=dice.below(3)).map(|_| a_task(dice)).collect(),
        _ => Vec::new(),
    };
    let reason = (status == Status::Replan || dice.one_in(2)).then(|| "too small".to_owned());
    let goal_met = dice.choose(&[None, Some(true), Some(false)]);
    let told = inject.iter().map(|_| instructions(dice)).collect();
    let blocked = dice.one_in(6).then(|| "there is no tool for it".to_owned());
    let verdict = Verdict { status, inject, reason, learn: None, goal_met, blocked };
    StepResult::Reviewed { verdict, instructions: told, read: instructions(dice), call }
}
