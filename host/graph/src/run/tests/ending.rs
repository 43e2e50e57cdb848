//! Runs that are ended early by their user or a limit.

use super::*;

/// A run before each kind of step.
pub(super) fn everywhere() -> Vec<Live> {
    let mut lives = vec![Live::new("draw a.csv", Limits::default(), Policy::default())];
    let mut add = |live: Live| lives.push(live);
    let mut live = Live::new("draw a.csv", Limits::default(), Policy::default());
    live.feed(admitted("draw a.csv"));
    add(live);
    add(Live::at_router(Limits::default()));
    add(Live::at_planner(Limits::default()));
    add(Live::planned(vec![act(true), act(true), msg()]));
    add(Live::planned(vec![skill(true), msg()]));
    let mut live = Live::planned(vec![skill(true), msg()]);
    live.start();
    add(live);
    let mut live = Live::planned(vec![act(true), msg()]);
    live.brief();
    add(live);
    // The action loop before its compression, before and during its calls, and at its end.
    let policy = Policy { lane_tokens: 1, ..Policy::default() };
    let mut live = Live::new("draw a.csv", Limits::default(), policy);
    for result in [admitted("draw a.csv"), retrieved(&[]), routed(Effort::Medium)] {
        live.feed(result);
    }
    for id in ["1", "2", "3"] {
        live.round(&[find(id, id)], "y");
    }
    add(live);
    for started in [false, true] {
        let mut live = Live::medium(Limits::default());
        live.feed(acted("", vec![find("1", "x")]));
        if started {
            live.feed(StepResult::CallsStarted);
        }
        add(live);
    }
    add(Live::medium(Limits { max_tool_call_rounds: 0, ..Limits::default() }));
    let mut live = Live::planned(vec![skill(true), msg()]);
    live.done();
    add(live);
    let mut live = Live::at_router(Limits::default());
    live.feed(routed(Effort::Low));
    add(live);
    let mut live = Live::planned(vec![skill(false), msg()]);
    live.failed();
    add(live);
    let mut live = Live::planned(vec![msg()]);
    live.done();
    add(live);
    lives
}

#[test]
fn everywhere_is_everywhere() {
    let names: Vec<_> = everywhere().iter().map(Live::next).collect();
    assert_eq!(
        names,
        [
            "admit",
            "retrieve",
            "route",
            "plan",
            "reason",
            "start",
            "execute",
            "act",
            "compress",
            "start_calls",
            "call",
            "assess",
            "review",
            "converse",
            "tell",
            "finish"
        ]
    );
}

#[test]
fn a_run_can_be_cancelled_everywhere_but_in_its_delivery() {
    for mut live in everywhere() {
        let (at, node) = (live.next(), live.run.node());
        if at == "finish" {
            assert!(live.refuse(StepResult::Cancelled).contains("cancelled is not one"));
            live.finish();
            assert!(live.refuse(StepResult::Cancelled).contains("result of ended"));
            continue;
        }
        let event = live.feed(StepResult::Cancelled);
        assert_eq!(way(&event), [(node, Why::Cancelled, Node::Output)], "{at}");
        let board = live.run.board();
        assert!(board.iter().all(|entry| entry.state != TaskState::Planned && entry.state != TaskState::Running));
        let under_way: Vec<_> = board.iter().filter_map(|entry| entry.report).collect();
        match at {
            // Started work may have taken effect.
            "execute" | "call" => assert_eq!(under_way[0].status, TaskStatus::Interrupted),
            "act" | "compress" | "start_calls" | "assess" => assert_eq!(under_way[0].status, TaskStatus::Failed),
            "review" | "tell" => assert_eq!(under_way.len(), 1),
            _ => assert!(under_way.is_empty(), "{at}"),
        }
        let outcome = live.finish();
        assert_eq!(outcome.ending, Ending::Cancelled);
        assert!(outcome.reply.contains("was cancelled"));
    }
}

#[test]
fn what_was_said_before_the_end_is_in_the_reply() {
    for (end, words) in [(StepResult::Cancelled, "was cancelled"), (stopped(), "max_tokens_per_day of 9")] {
        let mut live = Live::planned(vec![msg(), act(false), msg()]);
        live.execute(|report| report.text = "One.".to_owned());
        live.brief();
        live.feed(end);
        let outcome = live.finish();
        assert!(outcome.reply.starts_with("One.\n\n") && outcome.reply.contains(words), "{}", outcome.reply);
    }
}

#[test]
fn every_step_that_calls_a_model_can_be_stopped() {
    const CALLS: [&str; 9] = ["route", "plan", "reason", "act", "compress", "assess", "review", "converse", "execute"];
    for mut live in everywhere() {
        let (at, node) = (live.next(), live.run.node());
        if !CALLS.contains(&at) {
            assert!(live.refuse(stopped()).contains("stopped is not one"), "{at}");
            continue;
        }
        let event = live.feed(stopped());
        assert_eq!(limit_names(&event), ["max_tokens_per_day"], "{at}");
        match at {
            "converse" => assert_eq!(way(&event), []),
            _ => assert_eq!(way(&event), [(node, Why::LimitReached, Node::Output)], "{at}"),
        }
        let board = live.run.board();
        assert!(board.iter().all(|entry| entry.state != TaskState::Planned && entry.state != TaskState::Running));
        let outcome = live.finish();
        assert!(matches!(outcome.ending, Ending::LimitHit(limit) if limit.limit == "max_tokens_per_day"));
        assert!(outcome.reply.contains("limits.max_tokens_per_day"), "{}", outcome.reply);
    }
}

#[test]
fn tokens_run_out() {
    let mut live = Live::at_planner(Limits { max_tokens_per_run: 100, ..Limits::default() });
    live.feed(planned(Plan { goal: "g".to_owned(), tasks: vec![skill(true), msg()], blocked: None }, 60));
    live.done();
    let StepResult::Reviewed { verdict, .. } = replan("no") else { panic!() };
    let (instructions, read) = (Vec::new(), Default::default());
    let event = live.feed(StepResult::Reviewed { verdict, instructions, read, call: paid(40) });
    assert_eq!(way(&event), [(Node::Critic, Why::LimitReached, Node::Output)]);
    let outcome = live.finish();
    assert_eq!(outcome.ending, Ending::LimitHit(LimitReached::new("max_tokens_per_run", 100)));
    assert!(outcome.reply.contains("limits.max_tokens_per_run"), "{}", outcome.reply);
    assert_eq!(live.run.usage().total(), 100);
}

#[test]
fn money_runs_out() {
    let limits = Limits { max_cost_cents_per_run: 2, ..Limits::default() };
    let mut live = Live::at_planner(limits);
    let call = |cost_micros| Call { model: "m".to_owned(), usage: Usage { cost_micros, ..Usage::default() } };
    let failed = |cost_micros| StepResult::Unplanned {
        chatter: String::new(),
        correction: correction(),
        call: call(cost_micros),
    };
    live.feed(failed(19_999));
    assert_eq!(live.next(), "plan");
    let event = live.feed(failed(1));
    assert_eq!(whys(&event), [Why::NoPlan, Why::LimitReached]);
    let outcome = live.finish();
    assert_eq!(outcome.ending, Ending::LimitHit(LimitReached::new("max_cost_cents_per_run", 2)));
    // 0 means unlimited.
    let mut live = Live::at_planner(Limits::default());
    live.feed(failed(u64::MAX));
    assert_eq!(live.next(), "plan");
}

#[test]
fn tokens_run_out_inside_the_action_loop() {
    let limits = Limits { max_tokens_per_run: 100, ..Limits::default() };
    let act_on = |call: Call| StepResult::Acted { text: String::new(), calls: vec![find("1", "x")], call };
    // Reached before the calls are started: they are not made.
    let mut live = Live::medium(limits);
    let event = live.feed(act_on(paid(100)));
    assert_eq!(way(&event), [(Node::Action, Why::LimitReached, Node::Output)]);
    assert_eq!(live.run.board()[0].state, TaskState::Failed);
    assert!(live.finish().reply.contains("limits.max_tokens_per_run"));
    // The last answer reaches the limit. It is complete, so it is delivered.
    let mut live = Live::medium(limits);
    live.feed(act_on(paid(99)));
    live.feed(StepResult::CallsStarted);
    live.feed(StepResult::Called { results: vec![tool_result(&find("1", "x"), "y")] });
    live.feed(StepResult::Acted { text: "There.".to_owned(), calls: Vec::new(), call: paid(1) });
    let outcome = live.finish();
    assert_eq!((outcome.ending, outcome.reply.as_str()), (Ending::Done, "There."));
    // Reached by a summary.
    let policy = Policy { lane_tokens: 1, ..Policy::default() };
    let mut live = Live::new("draw a.csv", limits, policy);
    for result in [admitted("draw a.csv"), retrieved(&[]), routed(Effort::Medium)] {
        live.feed(result);
    }
    for id in ["1", "2", "3"] {
        live.round(&[find(id, id)], "y");
    }
    let (reference, summary) = ("c".to_owned(), "s".to_owned());
    let event = live.feed(StepResult::Compressed { reference, summary, calls: vec![paid(50), paid(50)] });
    assert_eq!(whys(&event), [Why::LimitReached]);
    live.finish();
}

#[test]
fn a_run_without_tokens_ends_at_once_and_does_not_cycle() {
    let mut live = Live::new("draw a.csv", Limits { max_tokens_per_run: 0, ..Limits::default() }, Policy::default());
    let event = live.feed(admitted("draw a.csv"));
    assert_eq!(whys(&event), [Why::Admitted, Why::LimitReached]);
    assert!(!live.deliver(&["and?"]).continues);
}

#[test]
fn small_talk_costs_nothing_once_nothing_is_left() {
    let mut live = Live::at_router(Limits { max_tokens_per_run: 100, ..Limits::default() });
    let StepResult::Routed { routing, by, secrets, trouble, .. } = routed(Effort::Low) else { panic!() };
    let event = live.feed(StepResult::Routed { routing, by, memory: None, secrets, trouble, call: Some(paid(100)) });
    assert_eq!((whys(&event), limit_names(&event)), (vec![Why::Low], vec!["max_tokens_per_run"]));
    assert!(matches!(live.finish().ending, Ending::LimitHit(_)));
}

#[test]
fn nobody_is_told_of_a_way_that_is_not_taken() {
    let limits = Limits { max_tokens_per_run: 100, max_parse_retries: 0, ..Limits::default() };
    // The plan's own text is no longer used.
    let mut live = Live::planned_with(limits, vec![act(false), act(false), msg()]);
    live.feed(StepResult::Unbriefed { correction: correction(), call: paid(100) });
    assert_eq!(live.next(), "finish");
    live.finish();
}
