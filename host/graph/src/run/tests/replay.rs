//! The log: valid results, their storage, and rebuilding a run from it.

use super::*;

#[test]
fn an_interrupted_task_is_shown_to_the_critic_and_not_run_again() {
    let mut live = Live::planned(vec![skill(true), msg()]);
    assert_eq!(live.run.interrupt(false), Ok(None));
    live.feed(StepResult::Started { task: 0 });
    let mut run = Run::replay(live.run.spec.clone(), &live.log).unwrap();
    let event = run.interrupt(false).unwrap().unwrap();
    let Step::Review(ask) = run.next_step() else { panic!() };
    assert_eq!(ask.report.status, TaskStatus::Interrupted);
    assert_eq!(event.result.name(), "executed");
    // Without a review, it is a reason for a new plan.
    let mut live = Live::planned(vec![skill(false), msg()]);
    live.feed(StepResult::Started { task: 0 });
    live.run.interrupt(false).unwrap();
    assert!(live.take_notice().contains("may or may not have taken effect"));
    // A message has had no effect yet.
    let mut live = Live::planned(vec![msg()]);
    live.feed(StepResult::Started { task: 0 });
    assert_eq!(live.run.interrupt(false), Ok(None));
    assert!(matches!(live.run.next_step(), Step::Execute { .. }));
}

#[test]
fn interrupted_calls_are_shown_to_the_actor_and_not_made_again() {
    let mut live = Live::medium(Limits::default());
    let calls = vec![find("1", "x"), find("2", "y")];
    live.feed(acted("", calls.clone()));
    // Calls that were not started are made.
    let mut run = Run::replay(live.run.spec.clone(), &live.log).unwrap();
    assert_eq!(run.interrupt(false), Ok(None));
    assert_eq!(run.next_step(), Step::StartCalls { calls });
    live.feed(StepResult::CallsStarted);
    live.run = Run::replay(live.run.spec.clone(), &live.log).unwrap();
    let event = live.run.interrupt(false).unwrap().unwrap();
    let StepResult::Called { results } = &event.result else { panic!() };
    let told: Vec<_> = results.iter().map(|result| (result.id.as_str(), result.status, result.code.clone())).collect();
    assert_eq!(
        told,
        [
            ("1", ToolStatus::Error, Some(ErrorCode::Interrupted)),
            ("2", ToolStatus::Error, Some(ErrorCode::Interrupted))
        ]
    );
    live.log.push(event);
    let Step::Act(ask) = live.run.next_step() else { panic!() };
    let lane = ask.lane.transcript();
    assert!(lane[1].text.contains("may or may not have taken effect"), "{lane:?}");
    assert!(lane[3].text.contains("find out whether it took effect"), "{lane:?}");
    assert_eq!(live.run.interrupt(false), Ok(None), "once is enough");
    live.feed(acted("It had.", Vec::new()));
    assert_eq!(live.finish().reply, "It had.");
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let mut live = Live::new("draw a.csv", Limits::default(), Policy::default());
    assert_eq!(live.refuse(ok()), "the run waits for the result of admit, and reviewed is not one");
    live.feed(admitted("draw a.csv"));
    assert_eq!(live.refuse(ok()), "the run waits for the result of retrieve, and reviewed is not one");
    live.feed(retrieved(&[]));
    live.feed(routed(Effort::High));
    assert!(live.refuse(plan(vec![])).contains("at least one task"));
    assert!(live.refuse(plan(vec![skill(false)])).contains("the last task must be a msg"));
    assert!(live.refuse(plan(vec![msg(); 51])).contains("at most 50"));
    live.feed(plan(vec![skill(true), msg()]));
    assert!(live.refuse(StepResult::Started { task: 1 }).contains("waits for the result of start"));
    live.feed(StepResult::Started { task: 0 });
    let report = Box::new(TaskReport::new(msg(), TaskStatus::Done, ""));
    assert!(live.refuse(StepResult::Executed { task: 0, report, call: None }).contains("another task"));
    let report = Box::new(TaskReport::new(skill(true), TaskStatus::Done, ""));
    let executed = |task| StepResult::Executed { task, report: report.clone(), call: None };
    assert!(live.refuse(executed(1)).contains("another task"));
    live.feed(executed(0));
    assert!(live.refuse(fix(&[])).contains("needs_fix without tasks"));
    assert!(live.refuse(verdict(json!({"status": "replan"}))).contains("without a reason"));
    for status in ["ok", "replan"] {
        let verdict = verdict(json!({"status": status, "reason": "r", "inject": [skill(false)]}));
        assert!(live.refuse(verdict).contains("tasks without needs_fix"));
    }
    live.feed(replan("x"));
    assert!(live.refuse(StepResult::Told { text: "else".to_owned() }).contains("result of tell"));
}

#[test]
fn a_log_that_says_something_else_is_noticed() {
    let mut live = Live::planned(vec![msg()]);
    live.done();
    live.log[4].moves[0].to = Node::End;
    assert_eq!(Run::replay(live.run.spec.clone(), &live.log), Err(IllegalResult::Diverged { index: 4 }));
    live.log.remove(3);
    assert!(matches!(
        Run::replay(live.run.spec.clone(), &live.log),
        Err(IllegalResult::Unexpected { waiting: "plan", got: "started" })
    ));
}

#[test]
fn events_are_tagged_with_their_kind() {
    let live = Live::planned(vec![msg()]);
    let event = serde_json::to_value(&live.log[3]).unwrap();
    assert_eq!(event["kind"], "planned");
    assert_eq!(event["moves"][0], json!({"from": "planner", "why": "planned", "to": "reasoning"}));
    assert_eq!(event["plan"]["tasks"][0], json!({"type": "msg", "detail": "tell", "notify": true}));
}

#[test]
fn every_state_can_be_stored() {
    ending::everywhere().iter().for_each(Live::replay);
}
