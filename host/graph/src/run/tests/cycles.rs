//! Turns that continue with messages that arrived meanwhile.

use super::*;

fn conversed(live: &mut Live) {
    live.feed(routed(Effort::Low));
    live.feed(StepResult::Conversed { text: "Hello.".to_owned(), call: Call::default() });
}

#[test]
fn what_arrived_goes_through_the_graph_again() {
    let mut live = Live::planned(vec![skill(false), msg()]);
    live.done();
    live.done();
    let event = live.deliver(&["and b.csv", "in blue"]);
    assert_eq!(way(&event), [(Node::Output, Why::CycleIncomplete, Node::Input)]);
    assert!(event.continues && live.run.outcome().is_none());
    let texts = vec!["and b.csv".to_owned(), "in blue".to_owned()];
    assert_eq!(live.run.next_step(), Step::Admit { texts });
    live.feed(admitted("and b.csv\nin blue"));
    live.feed(retrieved(&["b.csv"]));
    assert_eq!((live.run.message(), live.run.routing()), ("and b.csv\nin blue", None));
    live.feed(routed(Effort::High));
    live.feed(plan(vec![skill(false), msg()]));
    let Step::Start { task: 2, brief } = live.run.next_step() else { panic!("{:?}", live.run.next_step()) };
    assert_eq!((brief.number, brief.of, brief.evidence.len()), (1, 2, 2), "what was done before is evidence");
    live.done();
    live.execute(|report| report.text = "Blue.".to_owned());
    let outcome = live.finish();
    assert_eq!((outcome.ending, outcome.reply.as_str()), (Ending::Done, "Blue."), "each reply is delivered once");
}

#[test]
fn cycles_end() {
    let limits = Limits { max_cycles: 2, ..Limits::default() };
    let mut live = Live::at_router(limits);
    for cycle in 0..=2 {
        conversed(&mut live);
        let event = live.deliver(&["and?"]);
        if cycle < 2 {
            assert!(event.continues && event.limits.is_empty());
            live.feed(admitted("and c.csv?"));
            live.feed(retrieved(&[]));
        } else {
            assert_eq!((limit_names(&event), event.continues), (vec!["max_cycles"], false));
            assert_eq!(way(&event), [(Node::Output, Why::CycleComplete, Node::End)]);
        }
    }
    assert_eq!(live.next(), "ended");
    live.replay();
}

#[test]
fn a_failure_goes_on_but_an_end_by_a_limit_or_the_user_does_not() {
    for (result, goes_on) in [(model_failed("gone"), true), (stopped(), false), (StepResult::Cancelled, false)] {
        let mut live = Live::at_planner(Limits::default());
        live.feed(result);
        let event = live.deliver(&["and?"]);
        assert_eq!(event.continues, goes_on);
        assert!(event.limits.is_empty());
        assert_eq!(live.run.outcome().is_none(), goes_on);
    }
}

#[test]
fn a_failure_of_one_cycle_is_not_that_of_the_next() {
    let mut live = Live::planned_with(Limits { max_replan_depth: 0, ..Limits::default() }, vec![skill(false), msg()]);
    live.failed();
    assert!(matches!(live.run.next_step(), Step::Finish(outcome) if outcome.reply.contains("boom")));
    live.deliver(&["then tell me a joke"]);
    live.feed(admitted("then tell me a joke"));
    live.feed(retrieved(&[]));
    live.feed(routed(Effort::High));
    live.feed(plan(vec![msg()]));
    live.execute(|report| report.text = "A joke.".to_owned());
    let outcome = live.finish();
    assert_eq!((outcome.ending, outcome.reply.as_str()), (Ending::Done, "A joke."));
}

#[test]
fn each_cycle_has_its_own_replans() {
    let limits = Limits { max_replan_depth: 1, ..Limits::default() };
    let mut live = Live::planned_with(limits, vec![skill(false), msg()]);
    for cycle in 0..2 {
        live.failed();
        assert!(live.take_notice().contains("(1 of 1)"));
        let Step::Plan(ask) = live.run.next_step() else { panic!() };
        assert_eq!(ask.replan.unwrap().history.len(), 1);
        live.feed(plan(vec![skill(false), msg()]));
        let event = live.failed();
        assert_eq!(whys(&event)[1], Why::ReplansExhausted);
        if cycle == 0 {
            live.deliver(&["try b.csv"]);
            live.feed(admitted("try b.csv"));
            live.feed(retrieved(&[]));
            live.feed(routed(Effort::High));
            live.feed(plan(vec![skill(false), msg()]));
        }
    }
    live.finish();
}
