//! The results that fit each step, listed a second time, and results that are nearly valid.

use super::*;
use kiso_plan::approval::{CallEffect, Card, CardAnswer, MAX_EFFECTS};

/// Names of the results that fit a step, besides `cancelled`.
pub(super) fn takes(step: &str) -> &'static [&'static str] {
    match step {
        "admit" => &["admitted"],
        "retrieve" => &["retrieved"],
        "route" => &["routed", "stopped"],
        "plan" => &["planned", "unplanned", "model_failed", "stopped"],
        "reason" => &["briefed", "unbriefed", "model_failed", "stopped"],
        "start" => &["started", "approval_wanted"],
        "approve" => &["approval_given"],
        "execute" => &["executed", "approval_wanted", "stopped"],
        "act" => &["acted", "model_failed", "stopped"],
        "compress" => &["compressed", "stopped"],
        "start_calls" => &["calls_started", "approval_wanted"],
        "call" => &["called", "approval_wanted"],
        "assess" => &["assessed", "model_failed", "stopped"],
        "review" => &["reviewed", "unreviewed", "model_failed", "stopped"],
        "converse" => &["conversed", "model_failed", "stopped"],
        "tell" => &["told"],
        "finish" => &["finished"],
        "ended" => &[],
        other => panic!("there is no step {other}"),
    }
}

/// A result of each kind.
pub(super) fn one_of_each() -> Vec<StepResult> {
    let report = Box::new(TaskReport::new(skill(true), TaskStatus::Done, ""));
    let all = vec![
        admitted("draw a.csv"),
        retrieved(&[]),
        routed(Effort::High),
        plan(vec![msg()]),
        unplanned(),
        briefed("look"),
        unbriefed(),
        StepResult::ApprovalWanted { card: card(1) },
        StepResult::ApprovalGiven { answer: accepts(&[1]) },
        StepResult::Started { task: 0 },
        StepResult::Executed { task: 0, report, call: None },
        acted("1 bar", Vec::new()),
        StepResult::Compressed { reference: "c".to_owned(), summary: "s".to_owned(), calls: Vec::new() },
        StepResult::CallsStarted,
        StepResult::Called { results: Vec::new() },
        assessed("well"),
        ok(),
        unreviewed(),
        StepResult::Conversed { text: "Hello.".to_owned(), call: Call::default() },
        model_failed("gone"),
        stopped(),
        StepResult::Cancelled,
        StepResult::Told { text: "else".to_owned() },
        StepResult::Finished { reply: "else".to_owned(), arrived: Vec::new(), gone: Vec::new() },
    ];
    // A new kind does not compile here until it is added above.
    for result in &all {
        match result {
            StepResult::Admitted { .. } | StepResult::Retrieved { .. } | StepResult::Routed { .. } => {}
            StepResult::Planned { .. } | StepResult::Unplanned { .. } => {}
            StepResult::Briefed { .. } | StepResult::Unbriefed { .. } => {}
            StepResult::ApprovalWanted { .. } | StepResult::ApprovalGiven { .. } => {}
            StepResult::Started { .. } | StepResult::Executed { .. } | StepResult::Acted { .. } => {}
            StepResult::Compressed { .. } | StepResult::CallsStarted | StepResult::Called { .. } => {}
            StepResult::Assessed { .. } | StepResult::Reviewed { .. } | StepResult::Unreviewed { .. } => {}
            StepResult::Conversed { .. } | StepResult::ModelFailed { .. } | StepResult::Stopped { .. } => {}
            StepResult::Cancelled | StepResult::Told { .. } | StepResult::Finished { .. } => {}
        }
    }
    all
}

/// A card with this number of effects.
pub(super) fn card(effects: usize) -> Card {
    let effect = |number: usize| CallEffect::new("fetch", Vec::new(), &[], &number.to_string());
    Card { effects: (0..effects).map(effect).collect(), expires_ms: 1 }
}

pub(super) fn accepts(numbers: &[usize]) -> CardAnswer {
    CardAnswer { accepted: numbers.to_vec(), expired: false, by: "a person".to_owned(), always: None }
}

/// Whether a result of this name may answer the step.
pub(super) fn fits(step: &str, result: &str) -> bool {
    takes(step).contains(&result) || (result == "cancelled" && !matches!(step, "finish" | "ended"))
}

#[test]
fn a_step_takes_its_own_results_and_no_others() {
    let names: std::collections::HashSet<_> = one_of_each().iter().map(StepResult::name).collect();
    assert_eq!(names.len(), 24, "each kind stands there once");
    let mut ended = Live::planned(vec![msg()]);
    ended.done();
    ended.finish();
    for mut live in ending::everywhere().into_iter().chain([ended]) {
        let step = live.next();
        assert!(takes(step).iter().all(|name| names.contains(name)), "{step}");
        for result in one_of_each() {
            let name = result.name();
            if !fits(step, name) {
                assert_eq!(
                    live.refuse(result),
                    format!("the run waits for the result of {step}, and {name} is not one")
                );
            } else if !matches!(name, "told" | "called") {
                // The text of a notice and the ids of calls must be those of this step.
                let taken = live.run.clone().accept(result);
                assert!(taken.is_ok(), "{step} {taken:?}");
            }
        }
    }
}

/// Answers to `step` of the right kind that are invalid.
pub(super) fn malformed(step: &Step, limits: &Limits) -> Vec<StepResult> {
    match step {
        Step::Route { .. } => {
            let StepResult::Routed { routing, .. } = routed(Effort::Low) else { panic!() };
            let by = RoutedBy::Pill;
            vec![StepResult::Routed { routing, by, memory: None, secrets: Vec::new(), trouble: None, call: None }]
        }
        Step::Plan(_) => {
            let blocked = Plan { goal: "g".to_owned(), tasks: vec![act(false), msg()], blocked: Some("no".to_owned()) };
            let silent = Task { notify: false, ..msg() };
            let bad = [vec![], vec![skill(false)], vec![silent], vec![msg(); limits.max_tasks + 1]];
            bad.into_iter().map(plan).chain([planned(blocked, 0)]).collect()
        }
        Step::Start { task, .. } => vec![
            StepResult::Started { task: task + 1 },
            StepResult::ApprovalWanted { card: card(0) },
            StepResult::ApprovalWanted { card: card(MAX_EFFECTS + 1) },
        ],
        Step::Approve { card } => vec![
            StepResult::ApprovalGiven { answer: accepts(&[0]) },
            StepResult::ApprovalGiven { answer: accepts(&[1, card.effects.len() + 1]) },
        ],
        Step::Execute { task, brief } => {
            let report = |of: Task| Box::new(TaskReport::new(of, TaskStatus::Done, ""));
            let other = Task { detail: "else".to_owned(), ..brief.task.clone() };
            vec![
                StepResult::Executed { task: *task, report: report(other), call: None },
                StepResult::Executed { task: task + 1, report: report(brief.task.clone()), call: None },
            ]
        }
        Step::Call { calls } => {
            let results: Vec<_> = calls.iter().map(|call| tool_result(call, "")).collect();
            let mut renamed = results.clone();
            renamed[0].name.push('x');
            let mut other = results.clone();
            other[0].id.push('x');
            let mut more = results.clone();
            more.push(results[0].clone());
            let fewer = results[1..].to_vec();
            [renamed, other, more, fewer].into_iter().map(|results| StepResult::Called { results }).collect()
        }
        Step::Review(_) => vec![
            fix(&[]),
            verdict(json!({"status": "replan"})),
            verdict(json!({"status": "ok", "inject": [msg()]})),
            verdict(json!({"status": "replan", "reason": "r", "inject": [msg()]})),
        ],
        Step::Tell { text } => vec![StepResult::Told { text: format!("{text}!") }],
        _ => Vec::new(),
    }
}

#[test]
fn what_nearly_fits_is_refused() {
    for mut live in ending::everywhere() {
        let (step, limits) = (live.run.next_step(), live.run.spec().limits);
        for result in malformed(&step, &limits) {
            assert!(fits(step.name(), result.name()));
            let why = live.refuse(result);
            assert!(why.contains(&format!("the result of {}", step.name())), "{why}");
        }
    }
}
