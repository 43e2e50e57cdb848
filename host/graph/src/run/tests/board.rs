//! The board: every task of a run with its state.

use super::*;

fn shown(live: &Live) -> Vec<(u32, &'static str)> {
    live.run.board().iter().map(|entry| (entry.id, entry.state.name())).collect()
}

#[test]
fn every_state_and_its_ids() {
    let mut live = Live::planned(vec![skill(true), act(false), msg()]);
    assert_eq!(shown(&live), [(1, "planned"), (2, "planned"), (3, "planned")]);
    live.start();
    assert_eq!(shown(&live), [(1, "running"), (2, "planned"), (3, "planned")]);
    let Step::Execute { task, brief } = live.run.next_step() else { panic!() };
    let report = Box::new(TaskReport::new(brief.task, TaskStatus::Done, "it worked"));
    live.feed(StepResult::Executed { task, report, call: None });
    // Ids are in the order of planning, tasks in the order in which they run.
    live.feed(fix(&[skill(true), skill(false)]));
    assert_eq!(shown(&live), [(1, "failed"), (4, "planned"), (5, "planned"), (2, "planned"), (3, "planned")]);
    assert!(live.run.board()[0].rejected.is_some() && live.run.board()[0].report.is_some());
    live.execute(|report| report.status = TaskStatus::Interrupted);
    live.feed(fix(&[skill(false)]));
    assert_eq!(shown(&live)[..3], [(1, "failed"), (4, "interrupted"), (6, "planned")]);
    live.done();
    live.done();
    assert_eq!(shown(&live)[2..4], [(6, "done"), (5, "done")]);
    live.brief();
    assert_eq!(shown(&live)[4..], [(2, "running"), (3, "planned")]);
    live.feed(model_failed("gone"));
    assert_eq!(shown(&live)[4..], [(2, "failed"), (3, "dropped")]);
    live.take_notice();
    live.feed(plan(vec![msg()]));
    assert_eq!(shown(&live)[5..], [(7, "planned"), (3, "dropped")]);
    live.done();
    live.finish();
    assert_eq!(shown(&live)[5..], [(7, "done"), (3, "dropped")]);
}

#[test]
fn the_reasoner_sees_no_task_that_was_dropped() {
    let mut live = Live::planned(vec![skill(false), skill(false), msg()]);
    live.failed();
    live.take_notice();
    live.feed(plan(vec![act(false), act(false), msg()]));
    let Step::Reason(ask) = live.run.next_step() else { panic!() };
    let expected = [
        "1. [failed] skill chart: skill chart",
        "2. [planned] act: find the pressure",
        "3. [planned] act: find the pressure",
        "4. [planned] msg: tell",
    ];
    assert_eq!(ask.plan, expected);
}

#[test]
fn the_medium_route_has_one_task() {
    let mut live = Live::medium(Limits::default());
    assert_eq!(shown(&live), [(1, "running")]);
    live.feed(acted("There.", Vec::new()));
    assert_eq!(shown(&live), [(1, "done")]);
}
