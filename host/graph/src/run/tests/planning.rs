//! Plans: requested, corrected and abandoned ones.

use super::*;

#[test]
fn an_unusable_plan_goes_back_until_the_retries_end() {
    let mut live = Live::at_planner(Limits::default());
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
    let mut live = Live::at_planner(Limits::default());
    live.feed(model_failed("no route to host"));
    assert_eq!(live.finish().reply, "Planning failed: no route to host");
}

#[test]
fn replan_tells_the_user_and_then_the_planner_everything() {
    let mut live = Live::planned(vec![skill(false), skill(true), msg()]);
    live.done();
    live.done();
    let event = live.feed(replan("wrong file"));
    assert_eq!(way(&event), [(Node::Critic, Why::Replan, Node::Planner)]);
    let notice = live.take_notice();
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
    // The context stays when the planner must correct its answer.
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
            live.take_notice();
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
fn a_blocked_plan_talks_and_fails() {
    let mut live = Live::at_planner(Limits::default());
    let plan = Plan { goal: "g".to_owned(), tasks: vec![msg()], blocked: Some("there is no sea.csv".to_owned()) };
    live.feed(planned(plan, 0));
    live.execute(|report| report.text = "I looked, but there is no sea.csv.".to_owned());
    let outcome = live.finish();
    assert_eq!(outcome.ending, Ending::Failed { reason: "there is no sea.csv".to_owned() });
    assert_eq!(outcome.reply, "I looked, but there is no sea.csv.");
}
